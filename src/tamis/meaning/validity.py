"""Stored values that mark missing ones, and the range of valid values."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.kinds import ATTRIBUTES, DTYPE, explained
from tamis.meaning.variables import Attributes, is_unsigned, numbers, packing_of

FILL_ATTRIBUTES = ("_FillValue", "missing_value")
"""Attributes whose values mark missing ones."""

_CLOSE = 1e-9
"""Relative distance from an integer within which a limit, packed again, is taken for that integer."""


class ValidRange(NamedTuple):
    """Smallest and largest valid stored value, of the type of the data; None if there is no limit."""

    low: Any = None
    high: Any = None


@explained(attributes=ATTRIBUTES, dtype=DTYPE)
def missing_values(
    attributes: Attributes, dtype: np.dtype[Any], fill: NDArray[Any] | None = None
) -> tuple[np.generic, ...]:
    """Return the finite values that mark missing ones: ``_FillValue``, ``missing_value`` and the fill value.

    A fill value of 0 counts only if an attribute names it, because formats set it by default.

    Parameters
    ----------
    attributes
        Attributes of the variable.
    dtype
        Type of the stored values, in native byte order.
    fill
        The fill value of the storage, if one was chosen.
    """
    candidates = [
        value for name in FILL_ATTRIBUTES for value in _as_stored(numbers(attributes, name), dtype, attributes)
    ]
    if fill is not None and fill.dtype.kind in "iuf":
        candidates += [value for value in _as_stored(fill.reshape(-1), dtype, {}) if value != 0]
    unique: list[np.generic] = []
    for value in candidates:
        if np.isfinite(value) and value not in unique:
            unique.append(value)
    return tuple(unique)


@explained(attributes=ATTRIBUTES, dtype=DTYPE)
def valid_range(attributes: Attributes, dtype: np.dtype[Any]) -> ValidRange:
    """Return the limits of valid values, by ``valid_range``, or else ``valid_min`` and ``valid_max``.

    The limits are in stored units, unless they have the type of the unpacked values and that is wider than the stored
    type, as in the NetCDF Users Guide. Limits are ignored if they leave no value valid, and for ``_Unsigned`` integers,
    whose order differs.

    Parameters
    ----------
    attributes
        Attributes of the variable.
    dtype
        Type of the stored values, in native byte order.
    """
    if dtype.kind not in "iuf" or is_unsigned(attributes):
        return ValidRange()
    both = numbers(attributes, "valid_range")
    single = [numbers(attributes, name) for name in ("valid_min", "valid_max")]
    limits = [both[:1], both[1:]] if both.size == 2 else [limit if limit.size == 1 else limit[:0] for limit in single]
    low, high = (_stored_limit(limit, attributes, dtype) for limit in limits)
    packing = packing_of(attributes)
    if packing and packing.scale < 0 and any(_is_unpacked(limit, attributes, dtype) for limit in limits):
        low, high = high, low
    valid = ValidRange(_rounded(low, dtype, up=True), _rounded(high, dtype, up=False))
    if valid.low is not None and valid.high is not None and valid.low > valid.high:
        return ValidRange()
    return valid


def _is_unpacked(limit: NDArray[Any], attributes: Attributes, dtype: np.dtype[Any]) -> bool:
    """Return whether a limit has the type of the unpacked values, which must be wider than that of stored ones."""
    factors = [numbers(attributes, name) for name in ("scale_factor", "add_offset")]
    types = [factor.dtype for factor in factors if factor.size]
    if packing_of(attributes) is None or not limit.size or not types:
        return False
    unpacked = np.result_type(*types)
    wider = (unpacked.kind == "f" and dtype.kind != "f") or unpacked.itemsize > dtype.itemsize
    return bool(wider and limit.dtype == unpacked)


def _stored_limit(limit: NDArray[Any], attributes: Attributes, dtype: np.dtype[Any]) -> Any:
    """Return a limit in stored units, as a number of any type; None if there is no limit."""
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
    """Round a limit to the type of the data: to the nearest float, or to the next integer inside the range."""
    if limit is None:
        return None
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            number = dtype.type(limit)
        return number if np.isfinite(number) else None
    if math.isinf(limit):
        return None
    whole, bounds = math.ceil(limit) if up else math.floor(limit), np.iinfo(dtype)
    return dtype.type(whole) if bounds.min <= whole <= bounds.max else None


def _as_stored(values: NDArray[Any], dtype: np.dtype[Any], attributes: Attributes) -> list[Any]:
    """Return values of an attribute in the type of the data, without those that do not fit."""
    if values.dtype.kind == "u" and dtype.kind == "i" and values.itemsize == dtype.itemsize and is_unsigned(attributes):
        return list(values.astype(values.dtype.newbyteorder("=")).view(dtype))
    with np.errstate(over="ignore", invalid="ignore"):
        stored = values.astype(dtype)
    # A missing_value of double type, such as 1e20, means the nearest float; an integer has to be exact.
    fits = stored == values if dtype.kind != "f" else np.ones(stored.shape, bool)
    return list(stored[fits])
