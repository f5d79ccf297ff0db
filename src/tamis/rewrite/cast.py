"""Convert values to the type of the file. Integers never change; the error of rounding counts towards the bound."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.errors import BoundError, DataError
from tamis.missing.definition import NONE_MISSING, Missing

# Pairs of kinds that are converted if all values fit.
_CHECKED = ("ii", "iu", "ui", "uu", "ff", "if", "uf")


class Cast(NamedTuple):
    """Converted values.

    Parameters
    ----------
    values
        The values in the new type.
    rounding
        Largest error of the valid values if a bound was given, otherwise 0.
    """

    values: NDArray[Any]
    rounding: float


def cast(
    given: NDArray[Any],
    dtype: np.dtype[Any],
    *,
    masked: Any = None,
    missing: Missing = NONE_MISSING,
    bound: float | None = None,
    origin: tuple[int, ...] = (),
) -> Cast:
    """Convert values to a type, with no other change than the rounding of floats.

    Parameters
    ----------
    given
        The values, of any type.
    dtype
        Type of the file.
    masked
        The value to store for masked values; None refuses them.
    missing
        Definition of missing values, in the type of the file. A value that is rounded to one of them counts as missing.
    bound
        Largest error that valid values may get. None and 0 allow any rounding of floats.
    origin
        Index of the first value in the whole array, for messages.

    Raises
    ------
    DataError
        If an integer would change, a float would become infinite or an integer, or a masked value has no fill value.
    BoundError
        If rounding alone breaks the bound.
    """
    if isinstance(given, np.ma.MaskedArray):
        if not np.ma.is_masked(given):
            given = given.data
        elif masked is None:
            raise DataError("expected values without a mask, got masked ones: give a fillvalue, or fill them first")
        elif given.dtype == dtype:
            given = given.filled(masked)
        else:
            result = cast(given.filled(0), dtype, missing=missing, bound=bound, origin=origin)
            result.values[np.ma.getmaskarray(given)] = masked
            return result
    if given.dtype == dtype:
        return Cast(given, 0.0)
    if not (np.can_cast(given.dtype, dtype, "safe") or (given.dtype.kind + dtype.kind in _CHECKED)):
        raise DataError(f"expected values of {dtype}, got {given.dtype}: convert them first")
    with np.errstate(over="ignore", invalid="ignore"):
        values = given.astype(dtype)
    if (changed := _changed(given, values)).any():
        raise DataError(f"expected values that {dtype} can hold, got {_first(given, values, changed, origin)}")
    if not bound or np.can_cast(given.dtype, dtype, "safe") or given.dtype.kind != "f":
        return Cast(values, 0.0)
    with np.errstate(invalid="ignore"):
        error = np.abs(given - values)
    is_missing = missing.find(values)
    error[np.isnan(error) if is_missing is None else is_missing] = 0
    if (far := error > bound).any():
        first = _first(given, values, far, origin)
        raise BoundError(f"expected values that {dtype} holds with an error of at most {bound:g}, got {first}")
    return Cast(values, float(error.max(initial=0)))


def rounding_of(values: NDArray[Any], missing: Missing) -> float:
    """Return the largest error that rounding to their type can have caused in valid floats."""
    if values.dtype.kind != "f":
        return 0.0
    is_missing = missing.find(values)
    valid = np.abs(values) if is_missing is None else np.abs(values[~is_missing])
    return float(np.spacing(valid.max(initial=0))) / 2


def _changed(given: NDArray[Any], values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which integers changed, and which floats became infinite."""
    if given.dtype.kind in "iu":
        return _integers_changed(given, values)
    if given.dtype.kind == values.dtype.kind == "f":
        return np.asarray(np.isinf(values) != np.isinf(given))
    return np.zeros(given.shape, bool)


def _integers_changed(given: NDArray[Any], values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind == "c":
        values = values.real
    if values.dtype.kind != "f":
        return np.asarray(values != given) if values.dtype.kind in "iu" else np.zeros(given.shape, bool)
    # NumPy compares integers with floats as floats, so the floats are converted back. Those beyond the type cannot be.
    beyond = np.isinf(values) | (values.astype("f8") >= 2.0 ** (8 * given.itemsize - (given.dtype.kind == "i")))
    back = np.where(beyond, 0, values).astype(given.dtype)
    return np.asarray(beyond | (back != given))


def _first(given: NDArray[Any], values: NDArray[Any], selected: NDArray[np.bool_], origin: tuple[int, ...]) -> str:
    """Describe the first selected value: its type, its index in the whole array, and its converted value."""
    inside = tuple(int(at) for at in np.unravel_index(int(np.argmax(selected)), selected.shape))
    index = tuple(at + start for at, start in zip(inside, origin or (0,) * len(inside), strict=True))
    return (
        f"{given.dtype} {given[inside].item()!r} at index {index}, which would become {values[inside].item()!r}:"
        f" store {given.dtype}, or convert them first"
    )
