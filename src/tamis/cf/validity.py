"""Which stored values stand for missing ones, and which are valid."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.cf.packing import packing_of
from tamis.cf.variables import Attributes, is_unsigned, numbers

FILL_ATTRIBUTES = ("_FillValue", "missing_value")
"""Attributes that name values which stand for missing ones."""

_CLOSE = 1e-9
"""A limit that was unpacked and packed again is as close as this to the integer that it was, in parts of it."""


class ValidRange(NamedTuple):
    """Smallest and largest valid value as they are stored, of the type of the data; None where there is no limit."""

    low: Any = None
    high: Any = None


def missing_values(
    attributes: Attributes, dtype: np.dtype[Any], fill: NDArray[Any] | None = None
) -> tuple[np.generic, ...]:
    """List the finite values that stand for missing ones: of ``_FillValue`` and ``missing_value``, and the fill value.

    A fill value of 0 that no attribute names is not taken for one: formats have it where nobody asked.

    Parameters
    ----------
    attributes
        Of the variable.
    dtype
        Of the stored values, in native byte order.
    fill
        The fill value of the storage, if somebody chose one.
    """
    found = [each for name in FILL_ATTRIBUTES for each in _as_stored(numbers(attributes, name), dtype, attributes)]
    if fill is not None and fill.dtype.kind in "iuf":
        found += [each for each in _as_stored(fill.reshape(-1), dtype, {}) if each != 0]
    unique: list[np.generic] = []
    for each in found:
        if np.isfinite(each) and each not in unique:
            unique.append(each)
    return tuple(unique)


def valid_range(attributes: Attributes, dtype: np.dtype[Any]) -> ValidRange:
    """Return the limits of valid values, by ``valid_range``, or else ``valid_min`` and ``valid_max``.

    The limits are in stored units, unless they have the type of the unpacked values and that is wider than the stored
    one, as the NetCDF Users Guide has it. Limits that leave no value valid, and those of ``_Unsigned`` integers, whose
    order is another one, are none.

    Parameters
    ----------
    attributes
        Of the variable.
    dtype
        Of the stored values, in native byte order.
    """
    if dtype.kind not in "iuf" or is_unsigned(attributes):
        return ValidRange()
    both = numbers(attributes, "valid_range")
    one = [numbers(attributes, name) for name in ("valid_min", "valid_max")]
    limits = [both[:1], both[1:]] if both.size == 2 else [each if each.size == 1 else each[:0] for each in one]
    low, high = (_stored_limit(each, attributes, dtype) for each in limits)
    packing = packing_of(attributes)
    if packing and packing.scale < 0 and any(_is_unpacked(each, attributes, dtype) for each in limits):
        low, high = high, low
    found = ValidRange(_rounded(low, dtype, up=True), _rounded(high, dtype, up=False))
    if found.low is not None and found.high is not None and found.low > found.high:
        return ValidRange()
    return found


def _is_unpacked(limit: NDArray[Any], attributes: Attributes, dtype: np.dtype[Any]) -> bool:
    """Whether a limit has the type of the unpacked values, which is wider than that of the stored ones."""
    given = [numbers(attributes, name) for name in ("scale_factor", "add_offset")]
    types = [each.dtype for each in given if each.size]
    if packing_of(attributes) is None or not limit.size or not types:
        return False
    unpacked = np.result_type(*types)
    wider = (unpacked.kind == "f" and dtype.kind != "f") or unpacked.itemsize > dtype.itemsize
    return bool(wider and limit.dtype == unpacked)


def _stored_limit(limit: NDArray[Any], attributes: Attributes, dtype: np.dtype[Any]) -> Any:
    """Give a limit in stored units, as a number of any type; None where there is none."""
    if not limit.size:
        return None
    value = limit[0].item()
    packing = packing_of(attributes)
    if packing is not None and _is_unpacked(limit, attributes, dtype):
        value = (float(value) - packing.offset) / packing.scale
        if dtype.kind != "f" and math.isfinite(value) and abs(value - round(value)) <= _CLOSE * max(1, abs(value)):
            value = round(value)
    return None if value != value else value


def _rounded(limit: Any, dtype: np.dtype[Any], *, up: bool) -> Any:
    """Round a limit to the type of the data: to the next float, or to an integer that is inside."""
    if limit is None:
        return None
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            found = dtype.type(limit)
        return found if np.isfinite(found) else None
    if math.isinf(limit):
        return None
    whole, bounds = math.ceil(limit) if up else math.floor(limit), np.iinfo(dtype)
    return dtype.type(whole) if bounds.min <= whole <= bounds.max else None


def _as_stored(given: NDArray[Any], dtype: np.dtype[Any], attributes: Attributes) -> list[Any]:
    """Values of an attribute as the data would hold them."""
    if given.dtype.kind == "u" and dtype.kind == "i" and given.itemsize == dtype.itemsize and is_unsigned(attributes):
        return list(given.astype(given.dtype.newbyteorder("=")).view(dtype))
    with np.errstate(over="ignore", invalid="ignore"):
        values = given.astype(dtype)
    # A missing_value of double type, such as 1e20, stands for the float next to it; an integer has to be exact.
    same = values == given if dtype.kind != "f" else np.ones(values.shape, bool)
    return list(values[same])
