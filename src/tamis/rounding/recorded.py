"""All kinds of rounding, and the attributes of a variable that record one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tamis import _native
from tamis.errors import ParameterError
from tamis.rounding.kinds import Absolute, BitGroom, BitRound, Granular
from tamis.rounding.pack import Pack

if TYPE_CHECKING:
    from tamis.rounding.rounding_base import Rounding

ERROR_BOUND = "tamis_error_bound"
"""The attribute with the requested absolute error, in units of the variable, if the filters record another."""

CONTAINER = "quantization"
"""The attribute of a rounded variable that names its container."""

CONTAINER_ATTRIBUTES = ("algorithm", "implementation")
"""Attributes of a container."""

COUNTS = ("quantization_nsb", "quantization_nsd")
"""Attributes of a rounded variable: number of significant bits, or of significant digits."""


def container_attributes(rounding: Rounding) -> dict[str, str]:
    """Return the attributes of the container of a rounding; empty if it has none."""
    if not rounding.algorithm:
        return {}
    values = (rounding.algorithm, f"tamis version {_native.version}")
    return dict(zip(CONTAINER_ATTRIBUTES, values, strict=True))


def container_names(rounding: Rounding) -> Iterator[str]:
    """Yield names for the container of a rounding; the first that is free or has its attributes is used."""
    first = f"{CONTAINER}_{rounding.algorithm}"
    yield first
    yield from (f"{first}_{number}" for number in itertools.count(2))


def is_container(shape: tuple[int, ...] | None, attributes: Mapping[str, Any]) -> bool:
    """Return whether a variable is the container of a rounding."""
    return shape == () and all(name in attributes for name in CONTAINER_ATTRIBUTES)


KINDS: tuple[type[Rounding], ...] = (BitGroom, Granular, BitRound)
"""The kinds of netCDF, in the order of its numbers 1 to 3, in which it also looks for their attributes."""

ALL_KINDS: tuple[type[Rounding], ...] = (*KINDS, Absolute, Pack)
"""All kinds of roundings."""

ROUNDING_ATTRIBUTES = (*(kind.attribute for kind in ALL_KINDS), CONTAINER, *COUNTS)
"""Attributes of a variable that record a rounding."""

BY_NAME: Mapping[str, type[Rounding]] = {kind.name: kind for kind in ALL_KINDS} | {"bits": BitRound, "digits": Granular}
"""Kinds by name, and by other names for them."""


def recorded_rounding(attributes: Mapping[str, Any], dtype: np.dtype[Any] | None) -> Rounding | None:
    """Return the rounding that the attributes of a variable record; None if there is none, or it is invalid.

    Parameters
    ----------
    attributes
        Attributes by name.
    dtype
        Type of the variable, which is only rounded if it has floats, and packed if it has integers; None if it has no
        numbers.
    """
    if dtype is None:
        return None
    for kind in ALL_KINDS:
        if kind.attribute in attributes and dtype.kind == ("f" if kind.in_place else "i"):
            return _recorded(kind, np.asarray(attributes[kind.attribute]))
    # Programs other than netCDF-C only write those of CF, in which a number of bits can only be BitRound's.
    if dtype.kind == "f" and BitRound.count in attributes:
        return _recorded(BitRound, np.asarray(attributes[BitRound.count]))
    return None


def _recorded(kind: type[Rounding], values: NDArray[Any]) -> Rounding | None:
    """Return the rounding of a kind that an attribute records; None if its values are no parameter of it."""
    if values.size != 1 or values.dtype.kind not in "iuf":
        return None
    value = values.reshape(())
    with suppress(ParameterError):
        if kind is Pack:
            return Pack(float(value))
        if kind is not Absolute:
            return kind(int(value)) if value.dtype.kind in "iu" else None  # type: ignore[call-arg]
        rounding = Absolute(float(value) / 2)
        return rounding if rounding.step == value else None
    return None


def still_needed(rounding: Rounding, attributes: Mapping[str, Any]) -> Rounding | None:
    """Return a rounding; None if the attributes of a variable of floats record that its values already have it.

    Raises
    ------
    ParameterError
        If they record another rounding: its error and the new one would add up, without any record.
    """
    done = recorded_rounding(attributes, np.dtype(float))
    if done is not None and done.covers(rounding):
        return None
    for name in ROUNDING_ATTRIBUTES:
        if name in attributes:
            raise ParameterError(
                f"expected values that are not rounded yet for {rounding}, found the attribute {name} ="
                f" {attributes[name]}: another rounding would add its error, and a file records one only; use"
                " lossless filters, or start from the original values"
            ).at(filter=rounding)
    return rounding
