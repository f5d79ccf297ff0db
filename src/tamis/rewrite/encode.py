"""Encode one chunk: pad it, apply the filters, and decode it again if a bound must be proven."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.difference import ValueComparison, compare
from tamis.errors import BoundError, DataError, ParameterError
from tamis.filters import Bitshuffle, ChunkType, Filter, Fletcher32, Shuffle, Zfp
from tamis.meaning.companions import fill_gaps
from tamis.meaning.missing import NONE_MISSING, Flags, Missing
from tamis.pipeline import Pipeline
from tamis.rewrite.values import Padding


def shorter_pipeline(pipeline: Pipeline) -> Pipeline | None:
    """Return the filters of chunks that go through the first one, without those for others; None if none differ."""
    for item in pipeline.filters[1:]:  # most pipelines have no shuffle behind another filter, and need no look-up
        if item.__class__ in (Shuffle, Bitshuffle):
            return _without_fallback(pipeline)
    return None


@lru_cache(maxsize=64)  # many arrays have the same pipeline
def _without_fallback(pipeline: Pipeline) -> Pipeline | None:
    idle = fallback_types(pipeline)
    stages = (stage for stage in pipeline.stages if type(stage.filter) not in idle)
    return Pipeline(stages, bound=pipeline.bound) if idle else None


@lru_cache(maxsize=64)
def fallback_mask(pipeline: Pipeline) -> int:
    """Return the filter mask of chunks that go through the first filter, and skip those that are for other chunks."""
    idle = fallback_types(pipeline)
    return sum(1 << at for at, item in enumerate(pipeline.filters) if type(item) in idle)


def fallback_text(pipeline: Pipeline) -> str:
    """Return the filters for chunks that skip the first one, as text; empty if there are none."""
    idle = fallback_types(pipeline)
    return str(Pipeline(stage for stage in pipeline.stages if type(stage.filter) in idle)) if idle else ""


def fallback_types(pipeline: Pipeline) -> tuple[type[Filter], ...]:
    """Return the filters that only chunks without the first one go through."""
    return idle_types(pipeline) if pipeline.stages and pipeline.filters[0].needs_values else ()


# For each size of a value: a tolerance of at least this fraction of the largest value covers all rounding by zfp and
# by one conversion.
_ROUNDING_SHARE = {4: 2.0**-18, 8: 2.0**-44}

_REPEATED = Padding()

Broken = Callable[[NDArray[Any], NDArray[Any], float], str]
"""Returns what is required of values that the decoded ones do not keep, in words: see `ValueBounds.broken`."""


class Encoded(NamedTuple):
    """An encoded chunk."""

    data: bytes
    mask: int  # The filter mask: bit i is set if filter i was skipped


class Proven(NamedTuple):
    """An encoded chunk that was compared with its values."""

    stored: Encoded
    # The comparison of its values; `crossed` counts those that the first filter would move across a limit
    comparison: ValueComparison
    after: NDArray[Any]
    # Whether the first filter is skipped because the values, none of which is missing, fail the requirements
    missed: bool


def is_lossy(pipeline: Pipeline, mask: int = 0) -> bool:
    """Return whether the values of a chunk with this filter mask may change."""
    return any(item.error_bound != 0 and not mask >> i & 1 for i, item in enumerate(pipeline.filters))


def absorbs_rounding(bound: float, largest: float, dtype: np.dtype[Any]) -> bool:
    """Return whether zfp and rounding to float32 or float64 together certainly keep a bound."""
    return largest * _ROUNDING_SHARE[dtype.itemsize] <= bound


def can_skip_loss(pipeline: Pipeline) -> bool:
    """Return whether a chunk can be stored without loss because every lossy filter is optional."""
    return all(stage.optional or stage.filter.error_bound == 0 for stage in pipeline.stages)


def is_rejected(comparison: ValueComparison, pipeline: Pipeline, rounding: float = 0.0) -> bool:
    """Return whether values differ by more than a pipeline allows, together with the error of rounding before it."""
    if not comparison.kept:
        return True
    bound = pipeline.error_bound
    if bound is None:
        return False
    allowed = bound - rounding if bound else bound
    return not comparison.error <= allowed


class _Encoding(NamedTuple):
    """A chunk that was encoded in one of the ways, and what is known of it."""

    stored: Encoded
    comparison: ValueComparison | None = None  # None if it was not decoded and compared
    crossed: int = 0  # Number of values that the first filter would move across a limit
    after: NDArray[Any] | None = None  # The decoded values of the comparison
    missed: bool = False  # See `Proven.missed`
    broken: str = ""  # What it does not keep, in words; empty if it keeps everything


_NOTHING = Encoded(b"", 0)


class Way(NamedTuple):
    """A way to encode a chunk."""

    skip: tuple[type[Filter], ...]  # Filters that it skips
    prove: bool  # Whether the filters prove their bounds themselves
    keeps_all: bool  # Whether a chunk need not be decoded and compared


@lru_cache(maxsize=64)  # all chunks of a dataset have the same pipeline
def ways_of(pipeline: Pipeline) -> tuple[Way, ...]:
    """Return the ways to encode a chunk, in the order in which they are tried.

    If the first filter needs values, like zfp, a chunk goes through it, and skips the filters that are meant for other
    chunks. If it is optional, the last way is without it. Other pipelines have one way, through all filters.
    """
    first = pipeline.stages[0] if pipeline.stages else None
    if first is None or not first.filter.needs_values:
        return (Way((), prove=True, keeps_all=True),)
    # A bound is proven for the whole chunk, with its missing values and the padding that may be read later.
    through = Way(idle_types(pipeline), prove=pipeline.error_bound is None, keeps_all=False)
    without = Way((type(first.filter),), prove=True, keeps_all=True)
    return (through, without) if first.optional else (through,)


class ChunkEncoder(NamedTuple):
    """The filters of an array, and what its chunks must keep: the filters' bound, and missing values.

    If the first filter needs values, like zfp, and cannot encode these or does not keep the bound, an optional filter
    is skipped, and the mask says so. If it is applied, an optional shuffle and all that follows it except checksums are
    skipped: those filters are meant for the chunks without zfp.
    """

    pipeline: Pipeline
    chunk: ChunkType
    padding: Padding = _REPEATED
    missing: Missing = NONE_MISSING
    rounding: float = 0.0  # Error of a rounding before the filters, which is part of the bound
    broken: Broken | None = None  # Further requirements on the values; None if there are none

    def encode(self, values: NDArray[Any]) -> Encoded:
        """Encode a chunk, and decode and compare it unless it is certain to keep everything required."""
        return self._encode(values).stored

    def encode_proven(self, values: NDArray[Any]) -> Proven:
        """Encode a chunk as `encode` does, and always compare it; without a lossy filter, bits are compared."""
        encoding = self._encode(values, always_compare=True)
        comparison, after = encoding.comparison, encoding.after
        if comparison is None or after is None:
            comparison, decoded = self._compare(encoding.stored, values)
            after = decoded[tuple(map(slice, values.shape))]
        return Proven(encoding.stored, comparison._replace(crossed=encoding.crossed), after, encoding.missed)

    def encode_filled(self, values: NDArray[Any], flags: NDArray[np.uint8], table: Flags) -> Encoded:
        """Encode a chunk with its gaps filled, so that valid values keep the bound of the pipeline.

        The values are stored unfilled, including the missing ones, if the first filter is skipped nevertheless or a
        missing value has no flag of its own.
        """
        if table.stored_flag and (flags == table.stored_flag).any():
            return self._replace(broken=None).encode(values)
        filled = fill_gaps(values, flags != 0, self.chunk.shape)
        broken = None if self.broken is None else _broken_of_valid(self.broken, flags == 0)
        encoded = self._replace(broken=broken).encode(filled)
        if encoded.mask & 1 and can_skip_loss(self.pipeline):
            return self.encode_lossless(values)
        return encoded

    def encode_lossless(self, values: NDArray[Any]) -> Encoded:
        """Encode a chunk without its lossy filters, which must be optional."""
        if not can_skip_loss(self.pipeline):
            raise ParameterError(f"expected filters without loss or optional ones, got {self.pipeline}")
        skip = tuple({type(item) for item in self.pipeline.filters if item.error_bound != 0})
        return Encoded(*self.pipeline.encode(self.padding.pad(values, self.chunk.shape), skip=skip))

    def _encode(self, values: NDArray[Any], *, always_compare: bool = False) -> _Encoding:
        required = bool(self.pipeline.stages) and not self.pipeline.stages[0].optional
        if required and self.padding.is_read(values.shape, self.chunk.shape):
            try:
                return self._encode_padded(values, always_compare)
            except (BoundError, DataError):  # the values matter more: the filter cannot be skipped in this chunk
                return self._replace(padding=_REPEATED)._encode_padded(values, always_compare)
        return self._encode_padded(values, always_compare)

    def _encode_padded(self, values: NDArray[Any], always_compare: bool) -> _Encoding:
        """Encode a chunk the first way that keeps everything required; see `ways_of`."""
        whole = self.padding.pad(values, self.chunk.shape)
        refused = _Encoding(_NOTHING)
        for way in ways_of(self.pipeline):
            encoded = Encoded(*self.pipeline.encode(whole, skip=way.skip, prove=way.prove))
            if way.keeps_all:
                return _Encoding(encoded, crossed=refused.crossed, missed=refused.missed)
            if encoded.mask & 1:  # the first filter cannot encode these values; the other way is meant for this case
                if way.skip:
                    continue
                return _Encoding(encoded)  # which would do the same
            tried = self._tried(values, whole, encoded, always_compare)
            if not tried.broken:
                return tried
            refused = tried
        first = self.pipeline.filters[0]
        raise BoundError(
            f"{first} cannot keep {refused.broken}; as an optional filter, {first}?, it is left out of such a chunk"
        ).at(filter=first)

    def _tried(self, values: NDArray[Any], whole: NDArray[Any], encoded: Encoded, always_compare: bool) -> _Encoding:
        """Decode and compare an encoded chunk, unless it is certain to keep everything required."""
        if not always_compare and self.broken is None and self._kept_for_sure(values):
            return _Encoding(encoded)
        comparison, decoded = self._compare(encoded, values)
        after = decoded[tuple(map(slice, values.shape))]
        bound = self.pipeline.error_bound
        unmet = ""
        if self.broken is not None and comparison.kept:
            unmet = self.broken(values, after, comparison.error)
        keeps_bound = not is_rejected(comparison, self.pipeline, self.rounding)
        if keeps_bound and not unmet and self.padding.is_kept(whole, decoded, values.shape, bound):
            return _Encoding(encoded, comparison, after=after)
        return _Encoding(
            encoded,
            comparison,
            crossed=comparison.crossed,
            after=after,
            missed=bool(unmet) and not comparison.missing,
            broken=unmet or self._promise(values, comparison),
        )

    def _promise(self, values: NDArray[Any], comparison: ValueComparison) -> str:
        """Return in words the promise of the pipeline that a chunk breaks."""
        if comparison.crossed:
            return "the valid range"
        bound = self.pipeline.error_bound
        promise = "missing values" if bound is None else f"an error of at most {bound:g} and missing values"
        return f"{promise}, plus {self.rounding:g} from rounding to {values.dtype}" if self.rounding else promise

    def _compare(self, encoded: Encoded, values: NDArray[Any]) -> tuple[ValueComparison, NDArray[Any]]:
        """Compare values with the decoded chunk, and return the comparison and the whole decoded chunk."""
        decoded = self.pipeline.decode(encoded.data, encoded.mask, self.chunk)
        after = decoded[tuple(map(slice, values.shape))]
        return compare(values, after, None if self.pipeline.error_bound == 0 else self.missing), decoded

    def _kept_for_sure(self, values: NDArray[Any]) -> bool:
        """Return whether an encoded chunk, which has no NaN, is certain to keep bound, missing values and valid range.

        No value can become a missing one or cross a limit if all of these are further away than the bound.
        """
        bound, missing = self.pipeline.error_bound, self.missing
        first = self.pipeline.filters[0]
        padding_is_read = self.padding.is_read(values.shape, self.chunk.shape)
        if bound is None:
            no_limits = missing.low is None and missing.high is None
            return not missing.values and no_limits and not padding_is_read
        if not isinstance(first, Zfp) or values.dtype.kind != "f" or bound == 0:
            return False
        if self.pipeline.bound is not None and not (first.error_bound or math.inf) <= bound:
            return False  # the tolerance alone does not guarantee it
        if self.padding.exact and padding_is_read:
            return False
        largest = missing.survey(values).largest
        if not first.keeps_for_sure(self.chunk, largest):
            return False
        if self.rounding and not absorbs_rounding(bound - self.rounding, largest, values.dtype):
            return False
        limits = [limit for limit in (missing.low, missing.high) if limit is not None]
        return all(abs(float(value)) > largest + bound for value in (*missing.values, *limits))


def _broken_of_valid(broken: Broken, valid: NDArray[np.bool_]) -> Broken:
    """Return what says the same of the valid values of a chunk alone."""
    return lambda before, after, error: broken(before[valid], after[valid], error)


def encode_stream(pipeline: Pipeline, stream: bytes, chunk: ChunkType) -> Encoded:
    """Apply the other filters to the output of the first one, like `ChunkEncoder.encode`."""
    return Encoded(*pipeline.encode_rest(stream, chunk, skip=idle_types(pipeline)))


@lru_cache(maxsize=64)  # all chunks of a dataset have the same pipeline
def idle_types(pipeline: Pipeline) -> tuple[type[Filter], ...]:
    """Return the filters that gain nothing on the first one's output: an optional shuffle, and what follows it."""
    kinds = [type(item) for item in pipeline.filters]
    begin = next((at for at, kind in enumerate(kinds) if at and kind in (Shuffle, Bitshuffle)), len(kinds))
    required = {type(stage.filter) for stage in pipeline.stages if not stage.optional}
    return tuple(set(kinds[begin:]) - required - {Fletcher32, kinds[0]})
