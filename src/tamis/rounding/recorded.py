"""All kinds of rounding, and the attributes of a variable that record one."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.errors import ParameterError
from tamis.rounding.absolute import Absolute
from tamis.rounding.netcdf_kinds import BitGroom, BitRound, Granular
from tamis.rounding.rounding_base import Rounding

KINDS: tuple[type[Rounding], ...] = (BitGroom, Granular, BitRound)
"""The kinds of netCDF, in the order of its numbers 1 to 3, in which it also looks for their attributes."""

ALL_KINDS: tuple[type[Rounding], ...] = (*KINDS, Absolute)

ROUNDING_ATTRIBUTES = tuple(kind.attribute for kind in ALL_KINDS)

BY_NAME: Mapping[str, type[Rounding]] = {kind.name: kind for kind in ALL_KINDS} | {"bits": BitRound, "digits": Granular}
"""Kinds by name, and by other names for them."""


def recorded_rounding(attributes: Mapping[str, Any], dtype: np.dtype[Any] | None) -> Rounding | None:
    """Return the rounding that the attributes of a variable record; None without one, or if it is no valid one.

    Parameters
    ----------
    attributes
        Attributes by name.
    dtype
        Type of the variable, which is rounded only if it is one of floats; None if it has no numbers.
    """
    for kind in ALL_KINDS if dtype is not None and dtype.kind == "f" else ():
        if kind.attribute in attributes:
            value = np.asarray(attributes[kind.attribute])
            return _recorded(kind, value.reshape(())) if value.size == 1 else None
    return None


def _recorded(kind: type[Rounding], value: NDArray[Any]) -> Rounding | None:
    with suppress(ParameterError):
        if kind is not Absolute:
            return kind(int(value)) if value.dtype.kind in "iu" else None  # type: ignore[call-arg]
        rounding = Absolute(float(value) / 2) if value.dtype.kind in "iuf" else None
        return rounding if rounding is not None and rounding.step == value else None
    return None


def still_needed(rounding: Rounding, attributes: Mapping[str, Any]) -> Rounding | None:
    """Return a rounding; None if the attributes of a variable of floats record that its values are rounded so already.

    Raises
    ------
    ParameterError
        If they record another rounding: its error and the new one would add up, without a record.
    """
    if (done := recorded_rounding(attributes, np.dtype(float))) is not None and done.covers(rounding):
        return None
    for kind in ALL_KINDS:
        if kind.attribute in attributes:
            raise ParameterError(
                f"expected values that are not rounded yet for {rounding}, found the attribute {kind.attribute} ="
                f" {attributes[kind.attribute]}: another rounding would add its error, and a file records one only; use"
                " lossless filters, or start from the original values"
            ).at(filter=rounding)
    return rounding
