"""What ``array[…]`` selects, and which part of it lies in which chunk. Knows no file format."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.errors import ParameterError

Indices = range | NDArray[np.intp]
Index = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """The part of a selection that lies in one chunk.

    Parameters
    ----------
    origin
        Of the chunk.
    inside
        Index into the chunk: slices with start, stop and step, and arrays. One array selects along its axis; where
        there is one for each axis of several, they are the coordinates of points.
    outside
        Index into the array that is selected, of the same shape; axes that a number selects are there.
    """

    origin: tuple[int, ...]
    inside: Index
    outside: Index

    def covers(self, extents: tuple[int, ...]) -> bool:
        """Return whether it is all of a chunk with so many values along each axis, in their order."""
        return all(
            isinstance(each, slice) and each.step == 1 and each.stop - each.start == extent
            for each, extent in zip(self.inside, extents, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Selection:
    """Elements of an array, axis by axis.

    Parameters
    ----------
    axes
        Indices along each axis, in increasing order.
    dropped
        Axes that a number selects, which the result does not have.
    """

    axes: tuple[Indices, ...]
    dropped: frozenset[int]

    @property
    def full_shape(self) -> tuple[int, ...]:
        """Shape with the axes that a number selects."""
        return tuple(len(each) for each in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return tuple(len(each) for axis, each in enumerate(self.axes) if axis not in self.dropped)

    def pieces(self, chunks: tuple[int, ...]) -> Iterator[Piece]:
        """Cut the selection along chunks of such a shape, last axis fastest."""
        if 0 in self.full_shape:
            return
        cut = [_cut(each, step) for each, step in zip(self.axes, chunks, strict=True)]
        for parts in itertools.product(*cut):
            yield Piece(
                tuple(part[0] for part in parts), tuple(part[1] for part in parts), tuple(part[2] for part in parts)
            )


@dataclass(frozen=True, slots=True)
class Points:
    """Elements of an array by their coordinates, as a boolean array of its shape selects them.

    Parameters
    ----------
    coordinates
        One array for each axis.
    """

    coordinates: tuple[NDArray[np.intp], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result: one axis."""
        return (len(self.coordinates[0]),)

    @property
    def full_shape(self) -> tuple[int, ...]:
        """The same."""
        return self.shape

    def pieces(self, chunks: tuple[int, ...]) -> Iterator[Piece]:
        """Group the elements by the chunk that they lie in."""
        if not len(self.coordinates[0]):
            return
        grid = np.stack([each // step for each, step in zip(self.coordinates, chunks, strict=True)])
        order = np.lexsort(grid[::-1])
        ends = np.flatnonzero((np.diff(grid[:, order], axis=1) != 0).any(axis=0)) + 1
        for places in np.split(order, ends):
            origin = tuple(int(each) * step for each, step in zip(grid[:, places[0]], chunks, strict=True))
            inside = tuple(each[places] - start for each, start in zip(self.coordinates, origin, strict=True))
            yield Piece(origin, inside, (places,))


def select(key: Any, shape: tuple[int, ...]) -> Selection | Points:
    """Understand what stands in brackets behind an array, as h5py does.

    Numbers, slices, ``...``, and one list or array of increasing indices or of booleans; or by itself a boolean array
    of the whole shape.

    Parameters
    ----------
    key
        As Python hands it to ``__getitem__``.
    shape
        Of the array: one axis or more.

    Raises
    ------
    IndexError
        If an index lies outside of the array.
    ParameterError
        If there are too many indices, or a step is below 1.
    TypeError
        If indices do not increase, there are several arrays of them, or something else stands there.
    """
    keys = key if isinstance(key, tuple) else (key,)
    if len(keys) == 1 and _is_mask(keys[0]) and keys[0].shape == shape:
        return Points(np.nonzero(keys[0]))
    if any(each is None for each in keys):
        raise TypeError("expected no None (numpy.newaxis) in an index, got one: add the axis to the result")
    axes: list[Indices] = []
    dropped: set[int] = set()
    seen = False
    # One after the other, so that of several mistakes the first is told, as h5py does.
    for each in keys:
        if each is Ellipsis:
            if seen:
                raise ParameterError("expected one '...' in an index, got several")
            seen = True
            missing = len(shape) - (len(keys) - 1)
            if missing < 0:
                raise _too_many(len(shape))
            axes += [range(extent) for extent in shape[len(axes) : len(axes) + missing]]
            continue
        axis = len(axes)
        if axis == len(shape):
            raise _too_many(len(shape))
        if isinstance(each, slice):
            axes.append(_range(each, shape[axis]))
        elif (number := _number(each)) is not None:
            dropped.add(axis)
            at = _inside(number, shape[axis], axis)
            axes.append(range(at, at + 1))
        else:
            axes.append(_listed(each, shape[axis], axis, alone=all(isinstance(other, range) for other in axes)))
    axes += [range(extent) for extent in shape[len(axes) :]]
    return Selection(tuple(axes), frozenset(dropped))


def _too_many(rank: int) -> ParameterError:
    return ParameterError(f"expected at most {rank} indices, got more")


def _range(each: slice, extent: int) -> range:
    step = 1 if each.step is None else operator.index(each.step)
    if step < 1:
        raise ParameterError(f"expected a step of 1 or more, got {each}")
    return range(*each.indices(extent))


def _number(each: Any) -> int | None:
    try:
        return operator.index(each)
    except TypeError:
        return None


def _inside(index: int, extent: int, axis: int) -> int:
    if not -extent <= index < extent:
        raise IndexError(f"expected an index of {-extent} to {extent - 1} along axis {axis}, got {index}")
    return index + extent if index < 0 else index


def _is_mask(each: Any) -> bool:
    return isinstance(each, np.ndarray) and each.dtype == bool


def _array(each: Any) -> NDArray[Any]:
    if not isinstance(each, (list, tuple, range)) and not hasattr(each, "__array__"):
        raise TypeError(f"expected numbers, slices, '...' or an array of indices, got {each!r}")
    listed = np.asarray(each)
    if listed.ndim != 1:
        raise TypeError(f"expected one axis of indices, or a boolean array of the whole shape, got {each!r}")
    return listed.astype(np.intp) if not listed.size and isinstance(each, (list, tuple, range)) else listed


def _listed(each: Any, extent: int, axis: int, *, alone: bool) -> NDArray[np.intp]:
    listed = _array(each)
    if listed.dtype == bool and len(listed) != extent:
        raise TypeError(f"expected {extent} booleans along axis {axis}, got {len(listed)}")
    if listed.dtype.kind not in "biu":
        raise TypeError(f"expected whole numbers as indices, got {listed.dtype}")
    if not alone:
        raise TypeError("expected one array of indices, got several: select one axis after the other")
    if listed.dtype == bool:
        return np.flatnonzero(listed)
    if not listed.size:
        return np.empty(0, np.intp)
    for extreme in (listed.min(), listed.max()):
        _inside(int(extreme), extent, axis)
    found = listed.astype(np.intp)
    found[found < 0] += extent
    if np.any(np.diff(found) <= 0):
        raise TypeError(f"expected increasing indices along axis {axis}, got others: sort them, and sort the result")
    return found


def _cut(indices: Indices, step: int) -> list[tuple[int, Any, Any]]:
    """Cut increasing indices along one axis: origin of the chunk, index into it, index into the result."""
    if not isinstance(indices, range):
        number = indices // step
        ends = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(indices)]
        return [
            (int(number[first]) * step, indices[first:last] - int(number[first]) * step, slice(first, last))
            for first, last in itertools.pairwise(ends)
        ]
    found = []
    done = 0
    while done < len(indices):
        origin = indices[done] // step * step
        here = -(-(min(origin + step, indices.stop) - indices[done]) // indices.step)
        inside = slice(indices[done] - origin, indices[done + here - 1] - origin + 1, indices.step)
        found.append((origin, inside, slice(done, done + here)))
        done += here
    return found
