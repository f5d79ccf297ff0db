"""How far values may be from those that they once were, by what their file records: losses add up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tamis.meaning.variables import asked_bound
from tamis.rounding import Pack, Rounding, recorded_rounding
from tamis.stores.facts import IN_MEMORY

if TYPE_CHECKING:
    from tamis.meaning.variables import Packing
    from tamis.stores.facts import ArrayFacts

_CODES, _FLOATS = np.dtype("i2"), np.dtype("f4")


class RecordedLoss(NamedTuple):
    """What a file records about the values of an array, whichever way lost something."""

    # Largest absolute error, in units of the variable; None if a filter records none. It does not include `relative`.
    bound: float | None = 0.0
    relative: Rounding | None = None  # A rounding with a relative bound, which cannot be added to an absolute one


def recorded_loss(array: ArrayFacts) -> RecordedLoss:
    """Return what the attributes and the filters of an array record.

    ``tamis_error_bound`` is the whole bound wherever it is present. Otherwise it is that of the packing or rounding,
    together with that of the filters. Values in memory have gone through no filters yet.
    """
    filtered = 0.0 if array.storage.layout == IN_MEMORY else array.storage.pipeline.error_bound
    return loss_of(array.attributes, array.meaning.packing, filtered)


def loss_of(attributes: Mapping[str, Any], packing: Packing | None, filtered: float | None = 0.0) -> RecordedLoss:
    """Return what attributes record of packed or plain values, whose filters have an error bound, or None."""
    rounding = recorded_rounding(attributes, _FLOATS)
    relative = rounding if rounding is not None and rounding.absolute_bound is None else None
    whole = asked_bound(attributes)
    if whole is not None:
        return RecordedLoss(whole, relative)
    # Floats have the attribute of a packing where codecs unpack them, or xarray did.
    packed = recorded_rounding(attributes, _CODES)
    bound = 0.0
    if isinstance(packed, Pack):
        bound = packed.bound
    elif rounding is not None and rounding.absolute_bound is not None:
        bound = rounding.absolute_bound if packing is None else packing.unpacked_error(rounding.absolute_bound)
    if filtered is None:
        return RecordedLoss(None, relative)
    return RecordedLoss(bound + (filtered if packing is None else packing.unpacked_error(filtered)), relative)
