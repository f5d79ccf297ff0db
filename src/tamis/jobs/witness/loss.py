"""The loss between values, texts or times as they were given and as a reader finds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Misfit:
    """A value that a reader gets differently from how it was given."""

    index: tuple[int, ...]
    given: Any
    found: Any

    def __str__(self) -> str:
        given, found = self.calendars
        if given == found:
            return f"{_shown(self.given)} at {list(self.index)}, which reads as {_shown(self.found)}"
        return (
            f"{self.given} of the calendar {given} at {list(self.index)}, which reads as {self.found} of the calendar"
            f" {found}"
        )

    @property
    def calendars(self) -> tuple[str, str]:
        """The calendars of the value as given and as found, if both are times; otherwise empty texts."""
        given, found = calendar_of(self.given), calendar_of(self.found)
        return (given, found) if given and found else ("", "")


def calendar_of(value: Any) -> str:
    """Return the calendar of a time of cftime or NumPy; empty for missing ones and all else."""
    if isinstance(value, np.datetime64):
        return "" if np.isnat(value) else "proleptic_gregorian"
    return str(getattr(value, "calendar", ""))


def _shown(value: Any) -> str:
    """Return a value for people: texts with quotation marks."""
    return repr(str(value)) if isinstance(value, str) else str(value)


@dataclass(frozen=True, slots=True)
class Loss:
    """What an encoding does to values; nothing by default."""

    largest: float = 0.0  # Largest absolute error; infinite if a value is lost, as a time, or a missing value is
    relative: float = 0.0  # Largest error relative to a value
    first: Misfit | None = None  # The first value that changes
    beyond: Misfit | None = None  # The first one that changes by more than rounding to the stored type does
    worst: Misfit | None = None  # The first one with the largest absolute error
    worst_relative: Misfit | None = None  # The first one with the largest error relative to it

    def plus(self, later: Loss) -> Loss:
        """Return the loss of both of two parts."""
        return Loss(
            max(self.largest, later.largest),
            max(self.relative, later.relative),
            self.first or later.first,
            self.beyond or later.beyond,
            self.worst if self.worst is not None and self.largest >= later.largest else later.worst,
            self.worst_relative
            if self.worst_relative is not None and self.relative >= later.relative
            else later.worst_relative,
        )


def loss_between(expected: NDArray[Any], found: NDArray[Any], step: Any, origin: tuple[int, ...]) -> Loss:
    """Return the loss between values as given and as found; rounding explains differences of up to a step."""
    if expected.dtype.kind in "mMOSTU":
        wrong = ~_same(expected, found)
        first = _first(wrong, expected, found, origin)
        return Loss() if first is None else Loss(np.inf, np.inf, first, first, first, first)
    if found.dtype.kind == "f" and expected.dtype.kind == "f" and found.dtype.itemsize > expected.dtype.itemsize:
        # A wider value that the given type cannot tell from the given one is the same.
        with np.errstate(over="ignore"):
            found = found.astype(expected.dtype)
    # float64 does not hold all whole numbers of 64 bits.
    wide: Any = np.longdouble if {expected.dtype.kind, found.dtype.kind} & set("iu") else np.float64
    with np.errstate(all="ignore"):
        before, after = expected.astype(wide), found.astype(wide)
        same = (before == after) | (np.isnan(before) & np.isnan(after))
        error = np.where(same, 0, np.abs(after - before))
        error = np.where(np.isnan(error), np.inf, error)
        changed = error > 0
        if not changed.any():
            return Loss()
        relative = np.where(changed, error / np.abs(before), 0)
        relative = np.where(np.isnan(relative), np.inf, relative)
    largest, largest_relative = error.max(), relative.max()
    return Loss(
        float(largest),
        float(largest_relative),
        _first(changed, expected, found, origin),
        _first(changed & ~(error <= step), expected, found, origin),
        _first(error == largest, expected, found, origin),
        _first(relative == largest_relative, expected, found, origin),
    )


def _same(expected: NDArray[Any], found: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where texts or times are equal, or both missing."""
    kinds = expected.dtype.kind + found.dtype.kind
    if kinds in ("mm", "MM"):
        return _same_counts(expected, found)
    if kinds == "MO":
        return _same_dates(expected, found)
    if kinds == "OM":
        return _same_dates(found, expected)
    if expected.dtype.kind not in "OSTU":
        return np.zeros(expected.shape, bool)
    return _same_objects(expected.astype(object), found.astype(object))


def _same_counts(expected: NDArray[Any], found: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where times of NumPy are equal, which may have different units.

    NumPy would convert to the finer unit, in which far times wrap around to others or, from NumPy 2.5 on, are an error.
    """
    is_finer = np.promote_types(expected.dtype, found.dtype) == found.dtype
    coarse, fine = (expected, found) if is_finer else (found, expected)
    units: Any = np.datetime_data(coarse.dtype)
    unit, count = np.datetime_data(fine.dtype)
    step = int(np.timedelta64(1, units).astype(f"m8[{unit}]").astype("i8")) // count
    is_whole = fine.astype("i8") % step == 0
    same = (fine.astype(coarse.dtype) == coarse) & is_whole
    return np.asarray(same | (np.isnat(expected) & np.isnat(found)))


_CALENDARS = ("proleptic_gregorian", "standard", "gregorian")
"""Calendars of cftime that have the days of NumPy's, at least since the reform."""

_REFORM = np.datetime64("1582-10-15")
"""First day of the Gregorian calendar: the standard one has Julian days before."""

_FIELDS = ("year", "month", "day", "hour", "minute", "second", "microsecond")


def _same_dates(times: NDArray[Any], objects: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where times of NumPy are the dates of objects of cftime, or both are missing."""
    missing = missing_among(objects)
    dates = np.full(objects.shape, np.datetime64("NaT"), "M8[us]")
    dates[~missing] = _numpy_dates(objects[~missing])
    return np.asarray(_same_counts(times, dates) | (np.isnat(times) & missing))


def _numpy_dates(dates: NDArray[Any]) -> NDArray[Any]:
    """Return dates of cftime as times of NumPy; NaT for those for which its calendar has another day."""
    is_known = np.array([getattr(date, "calendar", "") in _CALENDARS for date in dates], bool)
    result = np.full(dates.shape, np.datetime64("NaT"), "M8[us]")
    fields = np.array([[getattr(date, name) for name in _FIELDS] for date in dates[is_known]], "i8")
    year, month, day, hour, minute, second, microsecond = fields.reshape(-1, len(_FIELDS)).T
    months = (year - 1970).astype("M8[Y]").astype("M8[M]") + (month - 1)
    days = months.astype("M8[D]") + (day - 1)
    counts = ((hour * 60 + minute) * 60 + second) * 1_000_000 + microsecond
    is_other = np.array([date.calendar != "proleptic_gregorian" for date in dates[is_known]], bool) & (days < _REFORM)
    result[is_known] = np.where(is_other, np.datetime64("NaT"), days.astype("M8[us]") + counts.astype("m8[us]"))
    return result


def _same_objects(expected: NDArray[Any], found: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where texts or times of cftime are equal, or both missing; times of different calendars never are."""
    same = np.empty(expected.shape, bool)
    pairs = zip(expected.reshape(-1), found.reshape(-1), strict=True)
    # Most texts are equal, and need no other test.
    same.reshape(-1)[:] = [(type(one) is str and one == other) or _same_object(one, other) for one, other in pairs]
    return same


def _same_object(one: Any, other: Any) -> bool:
    if _is_missing(one) or _is_missing(other):
        return _is_missing(one) and _is_missing(other)
    if isinstance(one, bytes) != isinstance(other, bytes):
        one, other = _text(one), _text(other)
    return getattr(one, "calendar", "") == getattr(other, "calendar", "") and bool(one == other)


def _text(value: Any) -> Any:
    """Return bytes as text."""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _is_missing(value: Any) -> bool:
    """Return whether an object stands for a missing value: None, NaN, NaT or pandas' NA."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # NA is neither equal to itself nor different
        return True


def missing_among(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which objects, or texts of NumPy's StringDType, are missing."""
    objects = values.astype(object)
    missing = np.empty(objects.shape, bool)
    missing.reshape(-1)[:] = [type(value) is not str and _is_missing(value) for value in objects.reshape(-1)]
    return missing


def first_index(wrong: NDArray[np.bool_]) -> tuple[int, ...] | None:
    """Return the index of the first value that is true; None if none is."""
    return tuple(map(int, np.unravel_index(int(np.argmax(wrong)), wrong.shape))) if wrong.any() else None


def _first(
    wrong: NDArray[np.bool_], expected: NDArray[Any], found: NDArray[Any], origin: tuple[int, ...]
) -> Misfit | None:
    if (inside := first_index(wrong)) is None:
        return None
    index = tuple(start + step for start, step in zip(origin, inside, strict=True))
    return Misfit(index, expected[inside], found[inside])
