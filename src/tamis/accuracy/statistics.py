"""Statistics of errors against a source, added up chunk by chunk."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tamis import _native
from tamis.accuracy.difference import PairSums, crossed, differences, same_values
from tamis.arrays.gather import block_shape, cut, read_slab_by_slab, several_chunks, whole, within
from tamis.arrays.grid import Grid, Region, first_element, origin_of, shape_of
from tamis.arrays.index import Parts
from tamis.arrays.threads import ordered_map
from tamis.meaning.missing import NONE_MISSING, Missing, has_native

if TYPE_CHECKING:
    from tamis.arrays.reader import ArrayReader


@dataclass(frozen=True, slots=True)
class Moments:
    """Means and central moments of pairs of values."""

    count: int = 0
    # Means of the first and of the second values
    mean_1: float = 0.0
    mean_2: float = 0.0
    # Sums of squared deviations from the means, and of the products of both deviations
    square_1: float = 0.0
    square_2: float = 0.0
    product: float = 0.0

    @classmethod
    def of(cls, first: NDArray[Any], second: NDArray[Any]) -> Moments:
        """Return the moments of two arrays of one shape and type, of finite numbers."""
        return cls.from_sums(PairSums.of(first, second, moments=True))

    @classmethod
    def from_sums(cls, sums: PairSums) -> Moments:
        """Return the moments of pairs whose sums are known."""
        return cls(sums.pair_count, sums.mean_1, sums.mean_2, sums.square_1, sums.square_2, sums.product)

    def plus(self, other: Moments) -> Moments:
        """Return the moments of these pairs and of others."""
        count = self.count + other.count
        if not self.count or not other.count:
            return self if self.count else other
        apart_1, apart_2 = other.mean_1 - self.mean_1, other.mean_2 - self.mean_2
        share, weight = other.count / count, self.count * other.count / count
        return Moments(
            count,
            self.mean_1 + apart_1 * share,
            self.mean_2 + apart_2 * share,
            self.square_1 + other.square_1 + apart_1 * apart_1 * weight,
            self.square_2 + other.square_2 + apart_2 * apart_2 * weight,
            self.product + other.product + apart_1 * apart_2 * weight,
        )

    @property
    def deviation(self) -> float | None:
        """Standard deviation of the first values; None without pairs."""
        return math.sqrt(self.square_1 / self.count) if self.count else None

    @property
    def correlation(self) -> float | None:
        """Pearson's r; None if either side is constant, or a number overflows."""
        size = math.sqrt(self.square_1) * math.sqrt(self.square_2)
        if not size or not math.isfinite(size) or not math.isfinite(self.product):
            return None
        return min(max(self.product / size, -1.0), 1.0)


Array = NDArray[Any]
Index = tuple[int, ...]
Number = int | float
"""A value of an array, exact if it is a whole number."""

_STEP = 1 << 15
"""Values that are compared at once: they fit into the processor's cache, and memory does not depend on chunks."""


@dataclass(frozen=True, slots=True)
class Place:
    """A value that changed."""

    index: Index  # Index in the array, slowest axis first
    # The value in source and target
    source: Number
    target: Number


@dataclass(frozen=True, slots=True)
class Squares:
    """A sum of squares, ``mantissa * 4**exponent``, that neither overflows nor underflows."""

    mantissa: float = 0.0
    exponent: int = 0

    @classmethod
    def of(cls, values: Array, largest: float) -> Squares:
        """Return the sum of the squares of floats, whose largest magnitude is given; the array is overwritten."""
        exponent = math.frexp(largest)[1] if math.isfinite(largest) else 0
        if abs(exponent) > 400:  # otherwise squares are ordinary numbers
            np.ldexp(values, -exponent, out=values)
        else:
            exponent = 0
        np.multiply(values, values, out=values)
        return cls(float(np.add.reduce(values)), exponent)

    def plus(self, other: Squares) -> Squares:
        """Return the sum of two sums; scaling by powers of 2 does not round."""
        if not self.mantissa or not other.mantissa:
            return self if self.mantissa else other
        exponent = max(self.exponent, other.exponent)
        parts = (math.ldexp(term.mantissa, 2 * (term.exponent - exponent)) for term in (self, other))
        return Squares(sum(parts), exponent)

    def root_of_mean(self, count: int) -> float:
        """Return the square root of the mean of `count` squares."""
        try:
            return math.ldexp(math.sqrt(self.mantissa / count), self.exponent)
        except OverflowError:
            return math.inf


@dataclass(frozen=True, slots=True)
class Tally:
    """The statistics of a comparison, of valid values unless stated otherwise.

    A value is missing if it is NaN, infinite, or one of the fill values, and valid otherwise. Errors are differences of
    values that are valid in source and target, in units of the data.
    """

    count: int = 0  # Number of compared values, including missing ones
    different: int = 0  # Number of values whose bits differ; if types differ, whose values differ
    missing: int = 0  # Number of missing values of the source
    # Number of missing values of the source with other bits in the target; number of values missing only in the
    # target
    lost: int = 0
    gained: int = 0
    # The first of each by index
    first_different: Place | None = None
    first_lost: Place | None = None
    first_gained: Place | None = None
    worst: Place | None = None  # The first value with the largest error; None if there is no error
    error: Number = 0  # The largest error: exact for integers, rounded to double precision for floats
    relative: float = 0.0  # The largest error relative to the source's value, for values that are not 0
    # Number of zeros of the source that are not 0 in the target, for which there is no relative error
    zeros_changed: int = 0
    squares: Squares = Squares()  # Sum of the squares of the errors
    # Range of the source; None if no value is valid
    low: Number | None = None
    high: Number | None = None
    compared: int = 0  # Number of values with errors: valid in source and target
    # Number of values that left or entered the valid range, and the first of them
    crossed: int = 0
    first_crossed: Place | None = None
    # The largest relative error of stored floats as roundings bound it, without subnormal numbers: see
    # `tamis.rounding`. For values of other types, or of two types, the same as `relative`.
    stored_relative: float = 0.0

    def plus(self, other: Tally) -> Tally:
        """Return the tally of these values and of others; the order affects the rounding of sums, and nothing else."""
        if other.error == self.error:
            worst = _first_of(self.worst, other.worst)
        else:
            worst = other.worst if other.error > self.error else self.worst
        lows = [tally.low for tally in (self, other) if tally.low is not None]
        highs = [tally.high for tally in (self, other) if tally.high is not None]
        return Tally(
            count=self.count + other.count,
            different=self.different + other.different,
            missing=self.missing + other.missing,
            lost=self.lost + other.lost,
            gained=self.gained + other.gained,
            first_different=_first_of(self.first_different, other.first_different),
            first_lost=_first_of(self.first_lost, other.first_lost),
            first_gained=_first_of(self.first_gained, other.first_gained),
            worst=worst,
            error=max(self.error, other.error),
            relative=max(self.relative, other.relative),
            zeros_changed=self.zeros_changed + other.zeros_changed,
            squares=self.squares.plus(other.squares),
            low=min(lows, default=None),
            high=max(highs, default=None),
            compared=self.compared + other.compared,
            crossed=self.crossed + other.crossed,
            first_crossed=_first_of(self.first_crossed, other.first_crossed),
            stored_relative=max(self.stored_relative, other.stored_relative),
        )

    @property
    def rmse(self) -> float | None:
        """Root of the mean square error; None if nothing was compared."""
        return self.squares.root_of_mean(self.compared) if self.compared else None

    @property
    def psnr(self) -> float | None:
        """Peak signal-to-noise ratio, range of the source over RMSE, in dB; None if the source has no range."""
        rmse = self.rmse
        if rmse is None or self.low is None or self.high is None or self.low == self.high:
            return None
        if not self.squares.mantissa:
            return math.inf
        # Halves and separate logarithms, because the range of the values and the ratio may overflow a float.
        half = self.high / 2 - self.low / 2
        mean = math.log10(self.squares.mantissa / self.compared) / 2 + self.squares.exponent * math.log10(2)
        return 20 * (math.log10(half) + math.log10(2) - mean) if half else None


def _first_of(one: Place | None, other: Place | None) -> Place | None:
    """Return the place with the lower index, slowest axis first."""
    if one is None or other is None:
        return other if one is None else one
    return other if other.index < one.index else one


def compare(source: Array, target: Array, origin: Index, missing: Missing = NONE_MISSING, zero: float = 0.0) -> Tally:
    """Compare the values of two arrays of one shape, floats or integers of any byte order."""
    flat_source, flat_target = _flat(source), _flat(target)
    both = missing, missing.of_type(flat_target.dtype)
    tally = Tally()
    for start in range(0, source.size, _STEP):
        part = slice(start, start + _STEP)
        part_tally = _compare(flat_source[part], flat_target[part], start, both, zero)
        tally = tally.plus(part_tally) if start else part_tally
    return _with_indices(tally, source.shape, origin)


def unchanged(values: Array, missing: Missing = NONE_MISSING) -> Tally:
    """Return what `compare` returns for values that did not change; `missing` is in their type."""
    flat = _flat(values)
    valid = missing.valid(flat)
    low, high = (_item(valid.min()), _item(valid.max())) if valid.size else (None, None)
    return Tally(flat.size, missing=flat.size - valid.size, low=low, high=high, compared=valid.size)


def _flat(values: Array) -> Array:
    """Return values in a row, contiguous and in native byte order."""
    return np.ascontiguousarray(values).astype(values.dtype.newbyteorder("="), copy=False).ravel()


def _with_indices(tally: Tally, shape: Index, origin: Index) -> Tally:
    """Convert positions in flat arrays to indices in the whole array."""

    def convert(place: Place | None) -> Place | None:
        if place is None:
            return None
        inside = np.unravel_index(place.index[0], shape)
        index = tuple(int(at) + first for at, first in zip(inside, origin, strict=True))
        return replace(place, index=index)

    places = ("worst", "first_different", "first_lost", "first_gained", "first_crossed")
    changes: dict[str, Any] = {name: convert(getattr(tally, name)) for name in places if tally.different}
    return replace(tally, **changes) if changes else tally


def _compare(source: Array, target: Array, start: int, missing: tuple[Missing, Missing], zero: float) -> Tally:
    """Compare values in a row that begin at a position; `missing` is for source and target, in their types."""
    same = same_values(source, target)
    different = source.size - int(np.count_nonzero(same))
    absent = missing[0].find(source)
    values = source if absent is None else source[~absent]
    low, high = (_item(values.min()), _item(values.max())) if values.size else (None, None)
    facts: dict[str, Any] = {"different": different, "low": low, "high": high, "compared": source.size}
    if absent is None and not different:
        return Tally(source.size, **facts)
    absent_target = missing[1].find(target)
    if different:
        facts["first_different"] = _first(~same, source, target, start)
    valid = None
    if absent is not None or absent_target is not None:
        before, after = (np.zeros(source.shape, bool) if mask is None else mask for mask in (absent, absent_target))
        lost = before & ~_kept(source, target, same)
        gained = after & ~before
        valid = ~(before | after)
        facts |= {
            "missing": int(np.count_nonzero(before)),
            "lost": int(np.count_nonzero(lost)),
            "gained": int(np.count_nonzero(gained)),
            "first_lost": _first(lost, source, target, start),
            "first_gained": _first(gained, source, target, start),
            "compared": int(np.count_nonzero(valid)),
        }
    if not different or not facts["compared"]:
        return Tally(source.size, **facts)
    beyond = crossed(source, target, missing[0])
    if beyond is not None:
        if valid is not None:
            beyond &= valid
        facts["crossed"] = int(np.count_nonzero(beyond))
        facts["first_crossed"] = _first(beyond, source, target, start)
    return Tally(source.size, **facts, **_errors(source, target, valid, start, zero))


def _errors(source: Array, target: Array, valid: Array | None, start: int, zero: float) -> dict[str, Any]:
    """Return the fields of a tally that the errors of valid values give."""
    sources, targets = (source, target) if valid is None else (source[valid], target[valid])
    if has_native(sources.dtype) and sources.dtype == targets.dtype:
        worst, *errors, mantissa, exponent = _native.valid_errors(sources, targets, zero)
        names = ("error", "relative", "stored_relative", "zeros_changed")
        facts = dict(zip(names, errors, strict=True)) | {"squares": Squares(mantissa, exponent)}
    else:
        worst, facts = _numpy_errors(sources, targets, zero)
    if not facts["error"]:
        return {}
    position = worst if valid is None else int(np.flatnonzero(valid)[worst])
    return facts | {"worst": Place((start + position,), _item(source[position]), _item(target[position]))}


def _numpy_errors(sources: Array, targets: Array, zero: float) -> tuple[int, dict[str, Any]]:
    """Return the index of the largest error, and fields of a tally, for any type of numbers."""
    errors = differences(sources, targets)
    worst = int(errors.argmax())
    error = _item(errors[worst])
    wide = errors.dtype if errors.dtype.kind == "f" else np.dtype(np.float64)
    errors = errors.astype(wide, copy=False)
    with np.errstate(all="ignore"):
        relative = sources.astype(wide) - wide.type(zero)
        np.divide(errors, np.abs(relative, out=relative), out=relative)
    zeros = sources == zero
    zeros_changed = 0
    if zeros.any():
        relative[zeros] = 0
        zeros_changed = int(np.count_nonzero(zeros & (targets != zero)))
    relative_largest = float(relative.max())
    return worst, {
        "error": error,
        "relative": relative_largest,
        "stored_relative": relative_largest,
        "zeros_changed": zeros_changed,
        "squares": Squares.of(errors.astype(np.float64, copy=False), float(error)),
    }


def _kept(source: Array, target: Array, same: Array) -> Array:
    """Return which values are the same, also after conversion to the target's type."""
    if source.dtype == target.dtype:
        return same
    with np.errstate(all="ignore"):
        return same | same_values(source.astype(target.dtype), target)


def _first(mask: Array, source: Array, target: Array, start: int) -> Place | None:
    """Return the first value of a mask; None if it has none."""
    if not mask.any():
        return None
    position = int(mask.argmax())
    return Place((start + position,), _item(source[position]), _item(target[position]))


def _item(value: Any) -> Number:
    """Return a Python number; longer floats are rounded."""
    number = value.item() if isinstance(value, np.generic) else value
    return number if isinstance(number, int) else float(number)


Shape = tuple[int, ...]

_BLOCK_NBYTES = 32 << 20
"""Bytes of a block of the source, unless one chunk has more."""

_SLAB_NBYTES = 1 << 20
"""Bytes of several small chunks that are compared at once."""


class Observer(Protocol):
    """Sees the values of both arrays while they are compared."""

    block: Shape  # Extents of the blocks in which both are read
    threads: int

    def look(self, part: Region, source: Array, target: Array, tally: Tally) -> Any:
        """Return what is known of a block, from its values and its tally; called in threads."""

    def add(self, part: Region, tally: Tally, known: Any) -> None:
        """Add what is known of a block; called in order."""


def compared(
    source: ArrayReader,
    target: ArrayReader,
    missing: Missing,
    threads: int,
    progress: Callable[[int, int], None],
    zero: float = 0.0,
    stored: Callable[[Grid], Parts] = Parts,
    observer: Observer | None = None,
) -> Tally:
    """Compare all values of two arrays of one shape, in threads; the result does not depend on their number.

    Chunks of the same shape are compared pair by pair. If the shapes differ, a block of the source of at most 32 MiB,
    or one chunk, is assembled first, and then compared with each part of the target. An observer sees all values that
    are stored, in its own blocks, in which both are read.
    """
    progress(0, math.prod(source.shape))
    if not math.prod(source.shape):
        return Tally()
    pair = _Pair(source, target, missing, zero, stored, progress)
    if observer is not None:
        return pair.in_blocks_of(observer)
    if pair.is_small:
        return pair.at_once()
    if source.chunk_shape == target.chunk_shape:
        return pair.by_chunks(threads)
    return pair.by_blocks(threads)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two arrays of one shape, which are compared; see `compared`."""

    source: ArrayReader
    target: ArrayReader
    missing: Missing
    zero: float
    stored: Callable[[Grid], Parts]
    progress: Callable[[int, int], None]

    @property
    def shape(self) -> Shape:
        """Shape of both arrays."""
        return self.source.shape

    @property
    def count(self) -> int:
        """Number of all values."""
        return math.prod(self.shape)

    @property
    def is_small(self) -> bool:
        """True if both arrays can be read at once, because neither has several chunks."""
        has_whole_chunks = {self.source.chunk_shape, self.target.chunk_shape} <= {None, self.shape}
        return has_whole_chunks and self.count * self.source.dtype.itemsize <= _SLAB_NBYTES

    def compare(self, part: Region) -> Tally:
        """Read and compare a part of both."""
        return self._tally_of(self.source.read(part), self.target.read(part), part)

    def _tally_of(self, before: Array, after: Array, part: Region) -> Tally:
        """Compare the values of a part."""
        return compare(before, after, origin_of(part), self.missing, self.zero)

    def at_once(self) -> Tally:
        """Compare small arrays."""
        tally = self.compare(whole(self.shape))
        self.progress(self.count, self.count)
        return tally

    def by_chunks(self, threads: int) -> Tally:
        """Compare arrays with chunks of one shape, several small chunks at a time."""
        parts, tally = self._divided(_step(self.source, self.shape))
        for part_tally in ordered_map(self.compare, parts, threads):
            tally = self._joined(tally, part_tally)
        return tally

    def in_blocks_of(self, observer: Observer) -> Tally:
        """Compare arrays block by block, and let an observer see all values."""
        parts, tally = self._divided(observer.block)

        def observed(part: Region) -> tuple[Tally, Any]:
            before, after = (read_slab_by_slab(values, part) for values in (self.source, self.target))
            part_tally = self._tally_of(before, after, part)
            return part_tally, observer.look(part, before, after, part_tally)

        with closing(ordered_map(observed, parts, observer.threads)) as results:
            for part, (part_tally, known) in zip(parts, results, strict=True):
                observer.add(part, part_tally, known)
                tally = self._joined(tally, part_tally)
        return tally

    def by_blocks(self, threads: int) -> Tally:
        """Compare arrays with other chunks: fill each block from the source, and compare it with the target."""
        itemsize = max(self.source.dtype.itemsize, 1)
        grids = [chunk_shape for chunk_shape in (self.source.chunk_shape, self.target.chunk_shape) if chunk_shape]
        size = block_shape(self.shape, grids, _BLOCK_NBYTES // itemsize)
        # One array for all blocks, because new memory costs as much time as decoding into it.
        room = np.empty(math.prod(size), self.source.dtype)
        blocks, tally = self._divided(size)
        for block in blocks:
            extents = shape_of(block)
            values = room[: math.prod(extents)].reshape(extents)

            def fill(part: Region, values: Array = values, block: Region = block) -> None:
                values[within(part, block)] = self.source.read(part)

            def check(part: Region, values: Array = values, block: Region = block) -> Tally:
                return self._tally_of(values[within(part, block)], self.target.read(part), part)

            for _ in ordered_map(fill, cut(block, _step(self.source, size)), threads):
                pass
            for part_tally in ordered_map(check, cut(block, _step(self.target, size)), threads):
                tally = self._joined(tally, part_tally)
        return tally

    def _divided(self, step: Shape) -> tuple[Parts, Tally]:
        """Return the parts to compare, and the tally of all others, in which each array has one value."""
        parts = self.stored(Grid(self.shape, step))
        if parts.are_all:
            return parts, Tally()
        sample = self.compare(first_element(parts.absent_sample()[0]))
        if sample.different:  # the result tells how many differ, and where
            return Parts(parts.grid), Tally()
        count = self.count - sum(math.prod(shape_of(part)) for part in parts)
        self.progress(count, self.count)
        others = replace(sample, count=count, missing=sample.missing * count, compared=sample.compared * count)
        return parts, others

    def _joined(self, tally: Tally, other: Tally) -> Tally:
        """Return the tally of both, and report how many values are compared."""
        tally = tally.plus(other)
        self.progress(tally.count, self.count)
        return tally


def _step(values: ArrayReader, block: Shape) -> Shape:
    """Return the shape of the parts of a block: chunks of an array, several small ones at a time, or slabs."""
    chunk_shape = values.chunk_shape or (1,) * len(block)
    return several_chunks(block, chunk_shape, _SLAB_NBYTES // max(values.dtype.itemsize, 1))
