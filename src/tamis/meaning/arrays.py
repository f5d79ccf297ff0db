"""What attributes say about the values of an array: which are missing, and how they are packed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.meaning.missing import NONE_MISSING, Missing
from tamis.meaning.variables import FILL_ATTRIBUTES, Packing, missing_values, packing_of, valid_range


class Meaning(NamedTuple):
    """What attributes, type and fill value of an array say about its values."""

    # Markers of missing values and limits of valid ones, in the type of the values in native byte order. NaN and the
    # infinities are always missing, and not among them. There are none if values are not numbers
    missing: Missing = NONE_MISSING
    packing: Packing | None = None  # The relation of stored values to those in units; None if they are not packed


def meaning_of(attributes: Mapping[str, Any], numbers: np.dtype[Any] | None, marker: NDArray[Any] | None) -> Meaning:
    """Return what the attributes of an array say about its values.

    Parameters
    ----------
    attributes
        At least those for which `tamis.meaning.is_known` is True.
    numbers
        Type of the values; None if they are not numbers.
    marker
        The fill value, if it marks missing values by itself.
    """
    if numbers is None:
        return Meaning()
    dtype = numbers.newbyteorder("=")
    missing = Missing(missing_values(attributes, dtype, marker), *valid_range(attributes, dtype))
    return Meaning(missing, packing_of(attributes))


def missing_nan(attributes: Mapping[str, Any], fill: NDArray[Any]) -> list[NDArray[Any]]:
    """Return the NaN values of attributes and fill value, with their bits."""
    found: list[NDArray[Any]] = []
    for marker in (fill, *(np.asarray(attributes.get(name, "")) for name in FILL_ATTRIBUTES)):
        if marker.dtype.kind == "f":
            found += [value for value in marker.reshape(-1) if value != value]
    return found
