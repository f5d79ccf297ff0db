"""The loss between values as they were given and as a reader finds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Misfit:
    """A value that a reader gets otherwise than it was given."""

    index: tuple[int, ...]
    given: Any
    found: Any

    def __str__(self) -> str:
        return f"{self.given!s} at {list(self.index)}, which reads as {self.found!s}"


@dataclass(frozen=True, slots=True)
class Loss:
    """What an encoding does to values; nothing by default."""

    largest: float = 0.0  # Largest absolute error; infinite if a value is lost, as a time, or a missing value is
    relative: float = 0.0  # Largest error relative to a value
    first: Misfit | None = None  # The first value that changes
    beyond: Misfit | None = None  # The first one that changes by more than rounding to the stored type does

    def plus(self, later: Loss) -> Loss:
        """Return the loss of both of two parts."""
        return Loss(
            max(self.largest, later.largest),
            max(self.relative, later.relative),
            self.first or later.first,
            self.beyond or later.beyond,
        )


def loss_between(expected: NDArray[Any], found: NDArray[Any], step: Any, origin: tuple[int, ...]) -> Loss:
    """Return the loss between values as given and as found, of which rounding explains a step."""
    if expected.dtype.kind in "mMO":
        wrong = ~_same_times(expected, found)
        first = _first(wrong, expected, found, origin)
        return Loss() if first is None else Loss(np.inf, np.inf, first, first)
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
    return Loss(
        float(error.max()),
        float(relative.max()),
        _first(changed, expected, found, origin),
        _first(changed & ~(error <= step), expected, found, origin),
    )


def _same_times(expected: NDArray[Any], found: NDArray[Any]) -> NDArray[np.bool_]:
    if expected.dtype.kind in "mM" and expected.dtype.kind == found.dtype.kind:
        return np.asarray((expected == found) | (np.isnat(expected) & np.isnat(found)))
    if expected.dtype.kind != "O":
        return np.zeros(expected.shape, bool)
    pairs = zip(expected.reshape(-1), found.reshape(-1), strict=True)
    return np.array([_same_time(one, other) for one, other in pairs], bool).reshape(expected.shape)


def _same_time(one: Any, other: Any) -> bool:
    """Return whether two times of cftime are equal, or both missing; those of different calendars never are."""
    if one is None or one != one:
        return bool(other is None or other != other)
    return getattr(one, "calendar", "") == getattr(other, "calendar", "") and bool(one == other)


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
