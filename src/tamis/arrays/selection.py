"""Selections by ``array[…]``, and their pieces in each chunk."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tamis.distinct import distinct
from tamis.errors import ParameterError

if TYPE_CHECKING:
    from tamis.arrays.grid import Grid, Region

Indices = range | NDArray[np.intp]
Index = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """The part of a selection that is in one chunk."""

    origin: tuple[int, ...]  # Origin of the chunk
    # Index into the chunk: slices with start, stop and step, and arrays. A single array selects along its axis; one
    # array for each of several axes are the coordinates of points.
    inside: Index
    outside: Index  # Index into the result, of the same shape, with the axes that a number selects

    def covers(self, extents: tuple[int, ...]) -> bool:
        """Return whether the piece is a whole chunk of these extents, in order."""
        return all(
            isinstance(index, slice) and index.step == 1 and index.stop - index.start == extent
            for index, extent in zip(self.inside, extents, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Selection:
    """Elements of an array, axis by axis."""

    axes: tuple[Indices, ...]  # Indices along each axis, in increasing order
    dropped: frozenset[int]  # Axes that a number selects, which the result does not have

    @property
    def full_shape(self) -> tuple[int, ...]:
        """Shape of the result, with the axes that a number selects."""
        return tuple(len(indices) for indices in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return tuple(len(indices) for axis, indices in enumerate(self.axes) if axis not in self.dropped)

    @property
    def region(self) -> Region | None:
        """The part of the array that is selected; None if that is not a region without gaps."""
        spans = []
        for axis in self.axes:
            if not isinstance(axis, range) or axis.step != 1:
                return None
            spans.append(slice(axis.start, axis.stop))
        return tuple(spans)

    def numbers(self, grid: Grid) -> NDArray[np.int64]:
        """Return the numbers of the chunks that the selection touches, in order."""
        if 0 in self.full_shape:
            return np.empty(0, np.int64)
        touched = [
            distinct(np.asarray(indices) // step) for indices, step in zip(self.axes, grid.chunk_shape, strict=True)
        ]
        return np.ravel_multi_index(np.ix_(*touched), grid.counts).ravel()

    def pieces(self, chunk_shape: tuple[int, ...]) -> Iterator[Piece]:
        """Yield the pieces of the selection in chunks of such a shape, last axis fastest."""
        if 0 in self.full_shape:
            return
        cut = [_cut(indices, step) for indices, step in zip(self.axes, chunk_shape, strict=True)]
        for parts in itertools.product(*cut):
            origin = tuple(part[0] for part in parts)
            inside = tuple(part[1] for part in parts)
            outside = tuple(part[2] for part in parts)
            yield Piece(origin, inside, outside)


@dataclass(frozen=True, slots=True)
class Points:
    """Elements of an array by their coordinates, selected by a boolean array of its shape."""

    coordinates: tuple[NDArray[np.intp], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result: one axis."""
        return (len(self.coordinates[0]),)

    @property
    def full_shape(self) -> tuple[int, ...]:
        """The same as `shape`."""
        return self.shape

    def pieces(self, chunk_shape: tuple[int, ...]) -> Iterator[Piece]:
        """Yield the pieces of the selection in each chunk."""
        if not len(self.coordinates[0]):
            return
        grid = np.stack([axis // step for axis, step in zip(self.coordinates, chunk_shape, strict=True)])
        order = np.lexsort(grid[::-1])
        ends = np.flatnonzero((np.diff(grid[:, order], axis=1) != 0).any(axis=0)) + 1
        for members in np.split(order, ends):
            origin = tuple(int(number) * step for number, step in zip(grid[:, members[0]], chunk_shape, strict=True))
            inside = tuple(axis[members] - start for axis, start in zip(self.coordinates, origin, strict=True))
            yield Piece(origin, inside, (members,))


def select(key: Any, shape: tuple[int, ...]) -> Selection | Points:
    """Return the selection of ``array[key]``, by the rules of h5py.

    A key has numbers, slices, ``...``, and one list or array of increasing indices or of booleans; or it is a boolean
    array of the whole shape.
    """
    keys = key if isinstance(key, tuple) else (key,)
    first = keys[0] if keys else None
    if len(keys) == 1 and isinstance(first, np.ndarray) and first.dtype == bool and first.shape == shape:
        return Points(np.nonzero(first))
    if any(item is None for item in keys):
        raise TypeError("None (numpy.newaxis) is not supported in an index: add the axis to the result")
    axes: list[Indices] = []
    dropped: set[int] = set()
    has_ellipsis = False
    # One after the other, so that the first of several mistakes is reported, as by h5py.
    for item in keys:
        if item is Ellipsis:
            if has_ellipsis:
                raise ParameterError("expected one '...' in an index, got several")
            has_ellipsis = True
            missing = len(shape) - (len(keys) - 1)
            if missing < 0:
                raise _too_many(len(shape))
            axes += [range(extent) for extent in shape[len(axes) : len(axes) + missing]]
            continue
        axis = len(axes)
        if axis == len(shape):
            raise _too_many(len(shape))
        if isinstance(item, slice):
            axes.append(_range(item, shape[axis]))
        elif (number := _number(item)) is not None:
            dropped.add(axis)
            index = _inside(number, shape[axis], axis)
            axes.append(range(index, index + 1))
        else:
            is_first = all(isinstance(indices, range) for indices in axes)
            axes.append(_indices(item, shape[axis], axis, alone=is_first))
    axes += [range(extent) for extent in shape[len(axes) :]]
    return Selection(tuple(axes), frozenset(dropped))


def _too_many(rank: int) -> ParameterError:
    return ParameterError(f"expected at most {rank} indices, one for each axis, got more")


def _range(item: slice, extent: int) -> range:
    step = 1 if item.step is None else operator.index(item.step)
    if step < 1:
        raise ParameterError(f"expected a step of 1 or more, got {item}")
    return range(*item.indices(extent))


def _number(item: Any) -> int | None:
    try:
        return operator.index(item)
    except TypeError:
        return None


def _inside(index: int, extent: int, axis: int) -> int:
    if not -extent <= index < extent:
        raise IndexError(f"expected an index of {-extent} to {extent - 1} along axis {axis}, got {index}")
    return index + extent if index < 0 else index


def _array(item: Any) -> NDArray[Any]:
    """Return the indices or booleans along an axis as an array."""
    if not isinstance(item, (list, tuple, range)) and not hasattr(item, "__array__"):
        raise TypeError(f"expected numbers, slices, '...' or an array of indices, got {item!r}")
    array = np.asarray(item)
    if array.ndim != 1:
        raise TypeError(f"expected one axis of indices, or a boolean array of the whole shape, got {item!r}")
    if not array.size and isinstance(item, (list, tuple, range)):
        return array.astype(np.intp)  # NumPy takes them for floats
    return array


def _indices(item: Any, extent: int, axis: int, *, alone: bool) -> NDArray[np.intp]:
    """Return increasing indices along an axis, from a list or array of indices or booleans, the only one of a key."""
    array = _array(item)
    if array.dtype == bool and len(array) != extent:
        raise TypeError(f"expected {extent} booleans along axis {axis}, got {len(array)}")
    if array.dtype.kind not in "biu":
        raise TypeError(f"expected whole numbers as indices, got {array.dtype}")
    if not alone:
        raise TypeError("expected one array of indices, got several: select one axis after the other")
    if array.dtype == bool:
        return np.flatnonzero(array)
    if not array.size:
        return np.empty(0, np.intp)
    for extreme in (array.min(), array.max()):
        _inside(int(extreme), extent, axis)
    indices = array.astype(np.intp)
    indices[indices < 0] += extent
    if np.any(np.diff(indices) <= 0):
        raise TypeError(f"indices along axis {axis} must increase: sort them, and put the result back into your order")
    return indices


def _cut(indices: Indices, step: int) -> list[tuple[int, Any, Any]]:
    """Return origin of the chunk, index into it and index into the result for increasing indices along one axis."""
    if not isinstance(indices, range):
        numbers = indices // step
        ends = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(indices)]
        pieces: list[tuple[int, Any, Any]] = []
        for first, last in itertools.pairwise(ends):
            origin = int(numbers[first]) * step
            pieces.append((origin, indices[first:last] - origin, slice(first, last)))
        return pieces
    pieces = []
    begin = 0
    while begin < len(indices):
        origin = indices[begin] // step * step
        count = -(-(min(origin + step, indices.stop) - indices[begin]) // indices.step)
        inside = slice(indices[begin] - origin, indices[begin + count - 1] - origin + 1, indices.step)
        pieces.append((origin, inside, slice(begin, begin + count)))
        begin += count
    return pieces
