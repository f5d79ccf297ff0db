"""The loosest tolerance of zfp that keeps a bound, found on a sample of chunks.

ZFP's largest error is a fraction of its tolerance: 0.22 to 0.28 with three axes. So a tolerance above the bound keeps
most chunks within it, in fewer bytes. Every value is proven to keep the bound when chunks are written, and a chunk that
does not is stored without zfp. So the sample only affects the number of bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tamis.arrays.gather import each_result
from tamis.arrays.grid import Grid, Region, grid_of
from tamis.arrays.index import Parts
from tamis.errors import TamisError
from tamis.filters import Filter, Fletcher32, Stage, Zfp
from tamis.formatting import plural
from tamis.lazy_property import lazy_property
from tamis.meaning.companions import fill_gaps
from tamis.meaning.missing import has_native
from tamis.pipeline import Pipeline
from tamis.rewrite.encode import idle_types
from tamis.rewrite.new_chunk import make_chunk
from tamis.rewrite.plan import ArrayPlan, Recode
from tamis.zfp import MAX_RANK, Accuracy, Precision
from tamis.zfp.arrays import Rung, rungs_of

if TYPE_CHECKING:
    from tamis.stores.protocols import StoredArray

_CHECKSUM_NBYTES = 4


class LadderPart:
    """A part whose error alone decides whether zfp is applied, unless values become missing or cross a limit."""

    def __init__(self, plan: ArrayPlan, values: NDArray[Any], encoded: NDArray[Any], largest: float) -> None:
        self._plan, self._values, self._encoded, self._largest = plan, values, encoded, largest

    @classmethod
    def of(cls, plan: ArrayPlan, values: NDArray[Any]) -> LadderPart | None:
        """Return a part; None if other filters, missing values or padding also decide."""
        if not _has_ladder(plan) or plan.padding.is_read(values.shape, plan.chunk_shape):
            return None
        encoded = values
        if plan.flags is not None and (flags := plan.flags.find(values)) is not None:
            if plan.flags.stored_flag and (flags == plan.flags.stored_flag).any():
                return None
            encoded = fill_gaps(values, flags != 0, plan.chunk_shape)
        survey = plan.checks.missing.survey(encoded)
        return None if survey.missing or not survey.finite else cls(plan, values, encoded, survey.largest)

    @property
    def is_filled(self) -> bool:
        """True if gaps were filled, whose errors count like those of values."""
        return self._encoded is not self._values

    def stays_valid(self, error: float) -> bool:
        """Return whether no value with this error becomes missing, or crosses a limit of the valid range."""
        missing = self._plan.checks.missing
        limits = [limit for limit in (missing.low, missing.high) if limit is not None]
        return all(abs(float(value)) > self._largest + error for value in (*missing.values, *limits))

    def rungs(self, modes: Sequence[Accuracy | Precision]) -> Sequence[Rung]:
        """Return bytes and errors in several modes of zfp; see `tamis.zfp.arrays`."""
        shape = self._plan.chunk_shape
        whole = self._plan.padding.pad(self._encoded, shape)
        inside = None
        if whole.shape != self._encoded.shape:
            inside = np.zeros(shape, bool)
            inside[tuple(map(slice, self._encoded.shape))] = True
        axes = _axes(shape)
        return rungs_of(whole.reshape(axes), modes, None if inside is None else inside.reshape(axes))

    @property
    def checksums_nbytes(self) -> int:
        """Bytes that the filters after zfp add."""
        return _CHECKSUM_NBYTES * sum(isinstance(item, Fletcher32) for item in self._plan.pipeline.filters)

    @lazy_property
    def lossless_nbytes(self) -> int:
        """Bytes of the part without zfp."""
        return len(self._plan.encoder().encode_lossless(self._values).data)


def _axes(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without axes of 1, as zfp encodes chunks."""
    return tuple(extent for extent in shape if extent > 1)


def _has_ladder(plan: ArrayPlan) -> bool:
    """Return whether the error of a part without missing values alone decides how it is stored."""
    if not plan.pipeline.stages:
        return False
    first, *others = plan.pipeline.stages
    idle = idle_types(plan.pipeline)
    return (
        has_native(plan.dtype)
        and first.optional
        and isinstance(first.filter, Zfp)
        and isinstance(first.filter.mode, Accuracy | Precision)
        and plan.checks.bounds is None
        and plan.rounding is None
        and 1 <= len(_axes(plan.chunk_shape)) <= MAX_RANK
        and all(stage.filter.error_bound == 0 and isinstance(stage.filter, (*idle, Fletcher32)) for stage in others)
    )


_AT_ONCE = 4
"""Tolerances that are measured together: in most arrays the loosest one that keeps a bound is the second or third."""

Part = tuple[Region, NDArray[Any]]


def with_tolerance(pipeline: Pipeline, tolerance: float, missing: Sequence[Any] = ()) -> Pipeline:
    """Return a pipeline with a tolerance instead of an open bound, keeping the bound.

    A pipeline without a bound is returned unchanged. `missing` are the missing values of the data.
    """
    first = pipeline.bounded
    bound = pipeline.bound if first is None or first.open_bound is None else first.open_bound
    if bound is None:
        return pipeline
    if first is None:
        return Pipeline(pipeline.stages, bound=bound)
    return Pipeline(_replaced(pipeline, first, first.with_tolerance(tolerance, missing)), bound=bound)


def _replaced(pipeline: Pipeline, old: Filter, new: Filter) -> Iterator[Stage]:
    """Yield the stages of a pipeline, one with another filter."""
    for stage in pipeline.stages:
        yield replace(stage, filter=new) if stage.filter is old else stage


class Trial:
    """Parts of an array, to encode with several tolerances, each twice the one before.

    One pass over a part's values gives zfp's results for several tolerances, if only the error decides whether zfp is
    applied. Other parts are encoded and decoded for each tolerance.
    """

    def __init__(self, plan: ArrayPlan, parts: Sequence[Part]) -> None:
        self._parts = [_climbed(plan, values) or _Encoded(plan, part, values) for part, values in parts]

    def missed(self, tolerance: float) -> int:
        """Return the number of parts stored without zfp, for a tolerance that is a power of two."""
        return sum(part.misses(tolerance) for part in self._parts)

    def nbytes(self, tolerance: float) -> int:
        """Return the bytes of the parts."""
        return sum(part.nbytes(tolerance) for part in self._parts)


def _climbed(plan: ArrayPlan, values: NDArray[Any]) -> _Climbed | None:
    """Return a part that need not be encoded for each tolerance; None if it must be."""
    bound = plan.pipeline.error_bound or 0.0
    part = LadderPart.of(plan, values)
    return _Climbed(part, bound) if part is not None and part.stays_valid(bound) else None


class _Encoded:
    """A part that is encoded and decoded for each tolerance."""

    def __init__(self, plan: ArrayPlan, part: Region, values: NDArray[Any]) -> None:
        self._plan, self._part, self._values = plan, part, values
        self._sizes: dict[float, tuple[bool, int]] = {}

    def misses(self, tolerance: float) -> bool:
        return self._encoded(tolerance)[0]

    def nbytes(self, tolerance: float) -> int:
        return self._encoded(tolerance)[1]

    def _encoded(self, tolerance: float) -> tuple[bool, int]:
        if tolerance not in self._sizes:
            plan = replace(self._plan, pipeline=with_tolerance(self._plan.pipeline, tolerance))
            chunk = make_chunk(plan, self._part, self._values)
            self._sizes[tolerance] = bool(chunk.mask & 1), len(chunk.data)
        return self._sizes[tolerance]


class _Climbed:
    """A part that is measured with several tolerances together."""

    def __init__(self, part: LadderPart, bound: float) -> None:
        self._part, self._bound = part, bound
        self._rungs: dict[float, Rung] = {}

    def misses(self, tolerance: float) -> bool:
        return not self._rung(tolerance).error <= self._bound

    def nbytes(self, tolerance: float) -> int:
        if self.misses(tolerance):
            return self._part.lossless_nbytes
        return self._rung(tolerance).nbytes + self._part.checksums_nbytes

    def _rung(self, tolerance: float) -> Rung:
        if tolerance not in self._rungs:
            candidates = [tolerance * 2**i for i in range(_AT_ONCE)]
            tolerances = [candidate for candidate in candidates if math.isfinite(candidate)]
            rungs = self._part.rungs([Accuracy(candidate) for candidate in tolerances[::-1]])
            self._rungs |= zip(tolerances[::-1], rungs, strict=True)
        return self._rungs[tolerance]


_SAMPLE_NBYTES = 8 << 20
_PART_NBYTES = 256 << 10
_MOST_PARTS = 256
_LEAST_PARTS = 16

_MARGIN = 0.9
"""The sample must keep this fraction of the bound, because other chunks have larger errors."""

_MISSES = 32
"""One in this many chunks of the sample may be stored without zfp for a looser tolerance."""

_ROOM = 1.0
"""Rounding adds half an epsilon of a value; other values than those of the sample may be twice as large."""

_LOWER = 1 - 2.0**-9
_LEAST_USED = 0.98
_STEP = 2.0**-16
"""SPERR records the logarithm of its tolerance in steps of this size."""

_GOLDEN = (5**0.5 - 1) / 2


def provisional(pipeline: Pipeline) -> Pipeline:
    """Return a pipeline whose filter with an open bound has the largest tolerance that certainly keeps it."""
    first = pipeline.bounded
    if first is None or (bound := first.open_bound) is None:
        return pipeline
    return with_tolerance(pipeline, Accuracy(bound).effective if isinstance(first, Zfp) else bound)


def within_bound(plan: ArrayPlan, bound: float) -> ArrayPlan:
    """Return a plan whose values keep a bound, in stored units, unless they already keep a smaller one.

    The tolerance of a filter with a bound follows it; that of others stays, and chunks beyond the bound are stored
    without it.
    """
    own = plan.pipeline.error_bound
    if own is not None and own <= bound:
        return plan
    if plan.pipeline.bound is None or bound == 0:
        return replace(plan, pipeline=_tightened(plan.pipeline, bound).within(bound))
    tolerance = bound
    if plan.pipeline.zfp is not None:
        tolerance = Accuracy(bound).effective
        if plan.dtype.kind == "i":
            tolerance = max(tolerance, 1.0)  # zfp accepts none below, and always keeps all bits of integers
    return replace(plan, pipeline=with_tolerance(plan.pipeline.within(bound), tolerance))


def _tightened(pipeline: Pipeline, bound: float) -> Pipeline:
    """Return a pipeline whose filter of hdf5plugin, if it bounds errors, has a lower error; zfp keeps its accuracy."""
    first = pipeline.bounded
    if first is None or not first.is_foreign or not first.error_bound or bound == 0:
        return pipeline
    lower = first.with_error(bound * _LOWER)  # most values are then rounded within the bound
    return Pipeline(_replaced(pipeline, first, lower))


def as_stored_already(pipeline: Pipeline, stored: Pipeline) -> Pipeline:
    """Return a pipeline with the tolerance that an array already has, if the bound keeps it, and uses most of it."""
    new, old = pipeline.bounded, stored.bounded
    if new is None or old is None or pipeline.bound is None or old.error_bound is None or type(new) is not type(old):
        return pipeline
    if isinstance(new, Zfp):
        return with_tolerance(pipeline, old.error_bound) if old.error_bound >= (new.error_bound or 0.0) else pipeline
    if not _LEAST_USED * pipeline.bound <= old.error_bound <= pipeline.bound:
        return pipeline
    return Pipeline(_replaced(pipeline, new, old), bound=pipeline.bound)


def with_loosest_tolerance(plan: ArrayPlan, source: StoredArray) -> ArrayPlan:
    """Return a plan with the loosest tolerance, a power of two, that keeps its bound on a sample of the source.

    The result depends only on the values. If zfp is required in every chunk, no chunk may break the bound, so the
    tolerance is not above the bound.
    """

    def read(sample: Parts) -> list[Part]:
        source.check_readable()
        return [*each_result(source.open_reader(), sample, plan.dtype, lambda part, values: (part, values.copy()), 1)]

    return with_tolerance_of(plan, source.shape, source.parts, read)


def with_tolerance_of(
    plan: ArrayPlan, shape: tuple[int, ...], parts: Callable[[Grid], Parts], read: Callable[[Parts], list[Part]]
) -> ArrayPlan:
    """Return the same as `with_loosest_tolerance`, for an array of any kind."""
    zfp = plan.pipeline.zfp
    if plan.pipeline.bound is None or not isinstance(plan, Recode):
        return plan
    if zfp is None:
        return _with_room_for_rounding(plan, shape, parts, read)
    if not plan.pipeline.stages[0].optional:
        note = "its tolerance is not above the bound, because zfp is required in every chunk, whatever its error"
        return replace(plan, notes=(*plan.notes, f"{note}; as an optional filter, zfp? takes fewer bytes"))
    tolerance = Accuracy(zfp.error_bound or 0.0).effective
    try:
        sample = _sample(plan, parts(grid_of(shape, _part_shape(plan))))
        values = read(sample)
        near = plan.pipeline.within(_MARGIN * plan.pipeline.bound)
        trial = Trial(replace(plan, pipeline=near, chunk_shape=sample.grid.chunk_shape), values)
        nbytes = trial.nbytes(tolerance)
        allowed = len(values) // _MISSES if sample.grid.chunk_shape == plan.chunk_shape else 0
        allowed += trial.missed(tolerance)
        while math.isfinite(2 * tolerance) and trial.missed(2 * tolerance) <= allowed:
            looser_nbytes = trial.nbytes(2 * tolerance)
            if looser_nbytes >= nbytes:
                break
            tolerance *= 2
            nbytes = looser_nbytes
    except TamisError:
        return plan
    return replace(
        plan, pipeline=with_tolerance(plan.pipeline, tolerance), notes=(*plan.notes, _note(plan, tolerance, sample))
    )


def _with_room_for_rounding(
    plan: ArrayPlan, shape: tuple[int, ...], parts: Callable[[Grid], Parts], read: Callable[[Parts], list[Part]]
) -> ArrayPlan:
    """Return a plan whose tolerance, which SPERR keeps in float64, is lower than the bound by the error of rounding."""
    bound, missing = plan.pipeline.bound or 0.0, plan.checks.missing
    marks = () if plan.flags is not None else missing.values
    try:
        sample = _sample(plan, parts(grid_of(shape, _part_shape(plan))))
        # The median, because spikes need no room elsewhere: their chunks may be stored without loss.
        magnitudes = [missing.survey(missing.valid(values)).largest for _, values in read(sample)]
        largest = float(np.median(magnitudes or [0.0]))
    except TamisError:
        largest = 0.0
    room = _ROOM * largest * float(np.finfo(plan.dtype).eps)
    tolerance = max(bound - room, bound / 2) * (1 - _STEP)
    note = (
        f"the tolerance of {plan.pipeline.filters[0].name} is"
        f" {plan.in_units(tolerance):g}; every value is proven to keep the bound of {plan.unpacked_bound:g}"
    )
    return replace(plan, pipeline=with_tolerance(plan.pipeline, tolerance, marks), notes=(*plan.notes, note))


def _note(plan: ArrayPlan, tolerance: float, sample: Parts) -> str:
    what = "chunk" if sample.grid.chunk_shape == plan.chunk_shape else "part"
    of_its = f"{plural(len(sample), what)} of {sample.grid.chunk_count}"
    return (
        f"zfp's tolerance is {plan.in_units(tolerance):g}, found on {of_its}; every value is proven to keep the bound"
        f" of {plan.unpacked_bound:g}"
    )


def _sample(plan: ArrayPlan, parts: Parts) -> Parts:
    """Return chunks of the target, or parts of large ones, spread over the array."""
    nbytes = math.prod(parts.grid.chunk_shape) * plan.dtype.itemsize
    count = min(len(parts), max(_LEAST_PARTS, min(_MOST_PARTS, _SAMPLE_NBYTES // nbytes)))
    # Equal steps would hit the same place in each row of chunks.
    places = [int((i + i * _GOLDEN % 1) * len(parts) / count) for i in range(count)]
    return Parts(parts.grid, np.array([parts.numbers[place] for place in places], np.int64))


def _part_shape(plan: ArrayPlan) -> tuple[int, ...]:
    """Return the chunk shape, halved along its longest axes, to whole blocks, until a part is small."""
    shape = [*plan.chunk_shape]
    while math.prod(shape) * plan.dtype.itemsize > _PART_NBYTES:
        axis = max(range(len(shape)), key=lambda axis: shape[axis])
        half = -(-shape[axis] // 8) * 4
        if half >= shape[axis]:
            break
        shape[axis] = half
    return tuple(shape)
