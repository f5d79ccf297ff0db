"""Values converted to the type of a target, and the values of a chunk beyond the edge of its array."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.difference import largest_error, same_bits
from tamis.arrays.grid import LEAST_CHUNK_NBYTES, default_chunks, large_chunks, pads_little, whole_blocks
from tamis.errors import BoundError, DataError, ParameterError
from tamis.filters import ChunkType
from tamis.meaning.missing import NONE_MISSING, Missing
from tamis.stores.facts import ArrayFacts, fill_as
from tamis.zfp.header import BLOCK_SIDE

if TYPE_CHECKING:
    from tamis.pipeline import Pipeline

# Pairs of kinds that are converted if all values fit.
_CHECKED = ("ii", "iu", "ui", "uu", "ff", "if", "uf")


class Cast(NamedTuple):
    """Converted values."""

    values: NDArray[Any]  # The values in the new type
    rounding: float  # Largest error of the valid values if a bound was given, otherwise 0


def cast(
    given: NDArray[Any],
    dtype: np.dtype[Any],
    *,
    masked: Any = None,
    missing: Missing = NONE_MISSING,
    bound: float | None = None,
    origin: tuple[int, ...] = (),
) -> Cast:
    """Convert values to a type, with no change except the rounding of floats."""
    if isinstance(given, np.ma.MaskedArray):
        if not np.ma.is_masked(given):
            given = given.data
        elif masked is None:
            raise DataError("masked values need a fill value: give a fillvalue, or fill them first")
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
    """Return the largest error that rounding to the type can have caused in valid floats."""
    if values.dtype.kind != "f":
        return 0.0
    return float(np.spacing(np.abs(missing.valid(values)).max(initial=0))) / 2


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


_MOST_COUNTS = 64
"""How many numbers of chunks along an axis are tried."""

_GROWING_NBYTES = 64 << 10
"""Smallest size of chunks of a growing array, however small it is now."""


@dataclass(frozen=True, slots=True)
class Padding:
    """The values of a chunk beyond the array: the fill value along axes that can grow, the last values along others.

    Other programs extend arrays, and may write no values for some of the new steps. They then read the padding of the
    chunk, which must be the fill value, as in HDF5 itself. Along other axes, the padding is never read; repeated values
    take few bytes there and do not disturb the blocks of zfp.
    """

    growing: tuple[bool, ...] = ()  # For each axis, whether it can grow; empty if no axis can
    fill: Any = 0  # The fill value, in the type of the chunks
    # Whether the fill value must keep its bits because a user chose it. HDF5's default of 0 only keeps the bound of
    # the filters, or its bits if they have no bound.
    exact: bool = True

    @classmethod
    def of(cls, array: ArrayFacts, dtype: np.dtype[Any]) -> Padding:
        """Return the padding of an array for chunks of a type, numbers or plain bytes."""
        growing = tuple(end is None or end > n for n, end in zip(array.shape, array.maxshape, strict=True))
        return cls(growing, fill_as(array.fill, dtype), array.fill.is_chosen) if any(growing) else cls()

    def pad(self, values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """Return a whole chunk that begins with these values."""
        whole = values
        if self.is_read(values.shape, shape):
            whole = np.full(self._readable(values.shape, shape), self.fill, values.dtype)
            whole[tuple(map(slice, values.shape))] = values
        if whole.shape == shape:
            return whole
        return np.pad(whole, [(0, step - n) for step, n in zip(shape, whole.shape, strict=True)], mode="edge")

    def is_read(self, extents: tuple[int, ...], shape: tuple[int, ...]) -> bool:
        """Return whether a chunk with these extents inside the array reaches beyond it along a growing axis."""
        return next(self._beyond(extents, shape), None) is not None

    def is_kept(
        self, whole: NDArray[Any], decoded: NDArray[Any], extents: tuple[int, ...], bound: float | None
    ) -> bool:
        """Return whether the padding that may be read later keeps its values."""
        for part in self._beyond(extents, whole.shape):
            before, after = whole[part], decoded[part]
            if self.exact or bound is None:
                if not same_bits(before, after):
                    return False
            elif largest_error(before, after) > bound:
                return False
        return True

    def shares_blocks(self, extents: tuple[int, ...], shape: tuple[int, ...]) -> bool:
        """Return whether blocks of zfp mix values with padding that may be read later, or zfp cannot encode it."""
        if np.asarray(self.fill).dtype.kind == "f" and not np.isfinite(self.fill):
            return self.is_read(extents, shape)
        axes = zip(self.growing, extents, shape, strict=False)
        return any(grows and 0 < n < step and n % BLOCK_SIDE for grows, n, step in axes)

    def lossless_steps(self, axis: int, extent: int, step: int) -> int:
        """Return the number of steps at the end of an axis in chunks that zfp cannot encode, with chunks of `step`."""
        if not (left := extent % step):
            return 0
        shape = tuple(step if at == axis else 1 for at in range(len(self.growing)))
        extents = tuple(left if at == axis else 1 for at in range(len(self.growing)))
        return left if self.shares_blocks(extents, shape) else 0

    def lossless_share(self, shape: tuple[int, ...], chunk_shape: tuple[int, ...]) -> float:
        """Return the fraction of an array's values in chunks that zfp cannot encode."""
        axes = enumerate(zip(shape, chunk_shape, strict=True))
        return 1 - math.prod(1 - self.lossless_steps(axis, n, step) / max(n, 1) for axis, (n, step) in axes)

    def best_chunks(self, shape: tuple[int, ...], chunk_shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return a chunk shape up to twice as long, with which zfp can encode more of the partial chunks."""
        axes = enumerate(zip(shape, chunk_shape, strict=True))
        return tuple(
            self._better_step(axis, n, min(2 * step, n)) if self.lossless_steps(axis, n, step) else step
            for axis, (n, step) in axes
        )

    def _better_step(self, axis: int, extent: int, most: int) -> int:
        """Return whole blocks, or a divisor of the extent with little padding, whichever leaves more steps to zfp."""
        steps = (extent // count for count in _counts(extent, most) if extent % count == 0)
        even = [step for step in steps if step >= BLOCK_SIDE and pads_little(step)]
        return min([self.best_step(axis, extent, most), *even[:1]], key=partial(self.lossless_steps, axis, extent))

    def best_step(self, axis: int, extent: int, most: int, least: int = BLOCK_SIDE) -> int:
        """Return the chunk extent along an axis, in whole blocks, with which zfp can encode most of the steps."""
        even = (extent // count // BLOCK_SIDE * BLOCK_SIDE for count in _counts(extent, most))
        steps = [most // BLOCK_SIDE * BLOCK_SIDE or most, *(step for step in even if max(least, BLOCK_SIDE) <= step)]
        # Compared in units of 5 %: a smaller gain is not worth smaller chunks.
        return min(steps, key=lambda step: (20 * self.lossless_steps(axis, extent, step) // max(extent, 1), -step))

    def _readable(self, extents: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
        axes = zip(self.growing, extents, shape, strict=True)
        return tuple(step if grows else n for grows, n, step in axes)

    def _beyond(self, extents: tuple[int, ...], shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
        """Yield the parts of a chunk beyond each axis that can grow."""
        for axis, (grows, n, step) in enumerate(zip(self.growing, extents, shape, strict=False)):
            if grows and 0 < n < step:
                part = [*map(slice, self._readable(extents, shape))]
                part[axis] = slice(n, step)
                yield tuple(part)


def _counts(extent: int, most: int) -> range:
    """Return numbers of chunks along an axis to try, from the longest chunks on."""
    fewest = -(-extent // most)
    return range(max(fewest, 1), fewest + _MOST_COUNTS)


def suitable_chunks(array: ArrayFacts, pipeline: Pipeline, dtype: np.dtype[Any]) -> tuple[int, ...]:
    """Return the chunk shape of an array, or if it has none or the filters cannot encode it, one that suits them."""
    first, own = pipeline.bounded, array.storage.chunk_shape
    if first is None or not first.is_foreign:
        return own or default_chunks(array.shape or (), dtype.itemsize, zfp=first is not None)
    if own is not None:
        with suppress(ParameterError):
            first.check(ChunkType(dtype, own))
            return own
    return large_chunks(array.shape or (), dtype.itemsize)


def growing_chunks(
    shape: tuple[int, ...], most: tuple[int | None, ...], itemsize: int, pipeline: Pipeline, fill: Any
) -> tuple[int, ...]:
    """Return chunks for a new array: whole blocks of zfp, and few steps of growing axes that zfp cannot encode.

    zfp cannot encode steps in a last chunk that share blocks with a fill value that must be kept.
    """
    ends = [
        whole_blocks(max(extent, 1)) if end is None else min(end, max(extent, BLOCK_SIDE))
        for extent, end in zip(shape, most, strict=False)
    ]
    if pipeline.bounded is not None and pipeline.bounded.is_foreign:
        return large_chunks(tuple(ends), itemsize)
    growing = next((axis for axis, end in enumerate(most[: len(ends)]) if end is None), None)
    if growing is not None:
        others = math.prod(ends) // ends[growing] * itemsize
        ends[growing] = max(ends[growing], whole_blocks(_GROWING_NBYTES // max(others, 1)))
    chunks = default_chunks(tuple(ends), itemsize, zfp=pipeline.zfp is not None)
    if pipeline.zfp is None or (fill is None and pipeline.error_bound is not None):
        return chunks
    padding = Padding(tuple(end is None for end in most), 0 if fill is None else fill)
    for axis, (extent, end) in enumerate(zip(shape, most, strict=False)):
        if extent and end is None:
            others = math.prod(chunks) // chunks[axis] * itemsize
            step = padding.best_step(axis, extent, chunks[axis], -(-LEAST_CHUNK_NBYTES // others))
            chunks = (*chunks[:axis], step, *chunks[axis + 1 :])
    return chunks
