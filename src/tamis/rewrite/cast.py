"""Values in the type that a file has for them. Integers never change; what rounding costs counts towards the bound."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.errors import BoundError, DataError
from tamis.missing.definition import Missing

_NONE_MISSING = Missing()

# Kinds of types between which values may be converted where they fit.
_CHECKED = ("ii", "iu", "ui", "uu", "ff", "if", "uf")


class Cast(NamedTuple):
    """Values in another type.

    Parameters
    ----------
    values
        In that type.
    rounding
        Largest error of the valid ones where a bound was given, else 0.
    """

    values: NDArray[Any]
    rounding: float


def cast(
    given: NDArray[Any],
    dtype: np.dtype[Any],
    *,
    masked: Any = None,
    missing: Missing = _NONE_MISSING,
    bound: float | None = None,
    origin: tuple[int, ...] = (),
) -> Cast:
    """Convert values to a type, without a change that is more than the rounding of floats.

    Parameters
    ----------
    given
        Of any type.
    dtype
        Of the file.
    masked
        What masked values become; None refuses them.
    missing
        What stands for missing values, in the type of the file. What rounding makes one of them is missing.
    bound
        Largest error that valid values may get. None and 0 allow any rounding of floats.
    origin
        Index of the first value in the whole array, for messages.

    Raises
    ------
    DataError
        If an integer would change, a float become infinite or an integer, or a masked value has no fill value.
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
            found = cast(given.filled(0), dtype, missing=missing, bound=bound, origin=origin)
            found.values[np.ma.getmaskarray(given)] = masked
            return found
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
    lost = missing.find(values)
    error[np.isnan(error) if lost is None else lost] = 0
    if (far := error > bound).any():
        where = _first(given, values, far, origin)
        raise BoundError(f"expected values that {dtype} holds with an error of at most {bound:g}, got {where}")
    return Cast(values, float(error.max(initial=0)))


def rounding_of(values: NDArray[Any], missing: Missing) -> float:
    """Return the most that valid floats may have lost when they were rounded to the type that they have."""
    if values.dtype.kind != "f":
        return 0.0
    lost = missing.find(values)
    valid = np.abs(values) if lost is None else np.abs(values[~lost])
    return float(np.spacing(valid.max(initial=0))) / 2


def _changed(given: NDArray[Any], values: NDArray[Any]) -> NDArray[np.bool_]:
    """Find the integers that are not what they were, and the floats that became infinite."""
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
    # NumPy compares integers with floats as floats. What lies beyond the type cannot be converted back.
    beyond = np.isinf(values) | (values.astype("f8") >= 2.0 ** (8 * given.itemsize - (given.dtype.kind == "i")))
    back = np.where(beyond, 0, values).astype(given.dtype)
    return np.asarray(beyond | (back != given))


def _first(given: NDArray[Any], values: NDArray[Any], where: NDArray[np.bool_], origin: tuple[int, ...]) -> str:
    """Name the first of some values, its place in the whole array, and what would become of it."""
    inside = tuple(int(at) for at in np.unravel_index(int(np.argmax(where)), where.shape))
    index = tuple(at + start for at, start in zip(inside, origin or (0,) * len(inside), strict=True))
    return (
        f"{given.dtype} {given[inside].item()!r} at index {index}, which would become {values[inside].item()!r}:"
        f" store {given.dtype}, or convert them first"
    )
