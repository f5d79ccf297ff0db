"""Encode the chunks of a plan, decode them again and compare them."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis import _native, zfp
from tamis.accuracy.difference import ValueComparison, compare
from tamis.arrays.gather import within
from tamis.arrays.grid import Origin, Region, origin_of
from tamis.arrays.index import Parts, as_array
from tamis.arrays.read_many import SMALL_NBYTES, native_pipeline
from tamis.arrays.source import Placed, checksum_of, seal_of
from tamis.errors import BoundError, TamisError, located
from tamis.filters import ChunkType, Deflate, Fletcher32, StoredZfp, Zfp
from tamis.filters.zfp import is_stored
from tamis.pipeline import Pipeline
from tamis.rewrite.encode import Broken, ChunkEncoder, Encoded, fallback_mask
from tamis.rewrite.steps import RoundedPart, RoundStep
from tamis.rewrite.values import Padding

if TYPE_CHECKING:
    from tamis.accuracy.measured import Measured
    from tamis.meaning.missing import Flags, Missing
    from tamis.rewrite.plan import ArrayPlan


def compare_chunk(plan: ArrayPlan, origin: Origin, before: NDArray[Any], after: NDArray[Any]) -> float:
    """Compare the values of a chunk with those of the source, and return the largest error."""
    if (step := plan.step(RoundStep)) is None:
        error = check_comparison(plan, origin, compare(before, after, plan.checks.missing if plan.lossy else None))
    else:
        with located(f"{plan.path}: chunk at {origin}", dataset=plan.path, chunk=origin):
            error = step.check(before, after, plan.checks.missing).error
    if plan.checks.bounds is not None and (broken := plan.checks.bounds.broken(before, after, error)):
        raise BoundError(f"{plan.path}: expected {broken}, in the chunk at {origin}: nothing was kept").at(
            dataset=plan.path, chunk=origin
        )
    return error


def check_comparison(plan: ArrayPlan, origin: Origin, comparison: ValueComparison) -> float:
    """Return the largest error of a finished comparison; raises the errors of `compare_chunk`."""
    try:
        return _check(plan, f"in the chunk at {origin}", comparison)
    except BoundError as error:
        error.at(dataset=plan.path, chunk=origin)
        raise


def _check(plan: ArrayPlan, where: str, comparison: ValueComparison) -> float:
    if plan.dtype.kind == "V" and not comparison.kept:
        raise BoundError(f"{plan.path}: bytes differ from those of the source {where}")
    if plan.bound is not None and not comparison.error <= plan.bound:
        raise BoundError(
            f"{plan.path}: expected an error of at most {plan.bound:g}, found {comparison.error:g} {where}: nothing was"
            " kept"
        )
    if not comparison.kept:
        what = (
            "missing values differ from those of the source" if plan.lossy else "bits differ from those of the source"
        )
        if comparison.crossed:
            what = "values crossed a limit of the valid range"
        raise BoundError(f"{plan.path}: {what} {where}")
    return comparison.error


_FLAGS_PIPELINE = Pipeline([Deflate(6), Fletcher32()])
"""Filters of companions, which every reader of HDF5 has. A lower level of deflate gives three times the bytes."""

_TWICE_PIPELINE = Pipeline([Deflate(6), Deflate(6), Fletcher32()])
"""Deflate sees 32 KiB at a time: in larger chunks its second pass finds steps that repeat, a third of the bytes."""

_TWICE_NBYTES = 128 << 10


def flags_pipeline(chunk_shape: tuple[int, ...]) -> Pipeline:
    """Return the filters of a companion, whose values are bytes."""
    return _TWICE_PIPELINE if math.prod(chunk_shape) > _TWICE_NBYTES else _FLAGS_PIPELINE


_EQUAL = ValueComparison(0.0, True, 0)

Loss = tuple[int, NDArray[Any], tuple[float, float], float | None]
"""Mask of chunks that zfp encodes, missing values, limits of valid ones, and the bound."""


class NewChunk(NamedTuple):
    """An encoded chunk, ready to be written."""

    number: int  # Number of the chunk in the grid
    # Bytes and filter mask
    data: bytes
    mask: int
    missing: int = 0  # Number of missing values; 0 if nothing is lossy
    # Number of values that zfp would have moved across a limit of the valid range, so that it was skipped; or, with a
    # rounding, of the values that stay unchanged because they would become missing or cross a limit
    crossed: int = 0
    error: float | None = None  # Largest error of the decoded values; None if the chunk was not decoded and compared
    # Bytes and filter mask of the companion's chunk; None if there is none to write
    flags: tuple[bytes, int] | None = None
    # Whether nothing is lost because zfp or a rounding does not meet the requirements on each value
    missed: bool = False
    # Measures of the decoded values; None if the chunk was not decoded and compared, or nothing must be measured
    measured: Measured | None = None
    placed: Placed | None = None  # Set if the chunk is in its file already; `data` is then empty

    @property
    def nbytes(self) -> int:
        """Number of its bytes."""
        return len(self.data) if self.placed is None else self.placed.nbytes

    @property
    def checksum(self) -> int:
        """Checksum of its bytes."""
        return checksum_of(self.data) if self.placed is None else self.placed.checksum

    @property
    def seal(self) -> int:
        """Checksum of its bytes and its filter mask."""
        return seal_of(self.data, self.mask) if self.placed is None else self.placed.seal


def make_chunks(plan: ArrayPlan, parts: Parts, box: Region, values: NDArray[Any]) -> list[NewChunk]:
    """Encode several chunks like `make_chunk`, small ones in one native call; `values` are those of `box`."""
    native = encode_many(plan.pipeline, values, box, parts, plan.chunk, plan.checks.missing) if is_simple(plan) else []
    chunks = []
    for number, encoded in zip(as_array(parts.numbers).tolist(), native or itertools.repeat(None), strict=False):
        if encoded is None:
            part = parts.grid.region_of(number)
            # Each step needs contiguous values: copied here, they are copied once.
            chunks.append(make_chunk(plan, part, np.ascontiguousarray(values[within(part, box)]), number))
        else:
            stored, comparison = encoded
            if not comparison.keeps(plan.bound):
                check_comparison(plan, parts.grid.origin_of(number), comparison)
            chunks.append(_new(number, stored, comparison))
    return chunks


def is_simple(plan: ArrayPlan, *, rounded: bool = False) -> bool:
    """Return whether a chunk needs only its filters, or a rounding if `rounded`, and values only keep their bound."""
    bounds = plan.checks.bounds
    by_values = plan.lossy and ((bounds is not None and bounds.needs_values) or plan.measures)
    return plan.flags is None and (rounded or plan.rounding is None) and not by_values


def make_chunk(plan: ArrayPlan, part: Region, values: NDArray[Any], number: int = 0) -> NewChunk:
    """Make the chunk of a part of an array: the values go through steps and filters, and back again to be compared.

    What is required of each value decides on the steps, and then on the filters: see
    `tamis.rewrite.encode.ChunkEncoder`. What fails is left out of the chunk. The comparison comes at once, while the
    chunk is in the processor's cache, unless there is a companion, because only both together give the values.
    """
    origin = origin_of(part)
    step = plan.step(RoundStep)
    rounded = None
    try:
        if step is not None:
            rounded = _rounded(plan, step, origin, values)
        if plan.flags is not None:
            return _with_flags(plan, plan.flags, number, values)
        if rounded is None:
            proven = plan.encoder(_broken(plan)).encode_proven(values)
        else:
            proven = plan.encoder().encode_proven(rounded.values)
    except TamisError as error:
        error.at(f"{plan.path}: chunk at {origin}", dataset=plan.path, chunk=origin)
        raise
    check_comparison(plan, origin, proven.comparison)
    chunk = _new(number, proven.stored, proven.comparison)
    chunk = chunk._replace(missed=proven.missed, measured=plan.measured(values, proven.after))
    if step is None:
        return chunk
    if rounded is None:
        return chunk._replace(missed=True, missing=plan.checks.missing.survey(values).missing)
    # The decoded values have the bits of the rounded ones.
    comparison = rounded.comparison
    return chunk._replace(error=comparison.error, missing=comparison.missing, crossed=rounded.unrounded)


def _broken(plan: ArrayPlan) -> Broken | None:
    """Return the function that says what is required of values and not kept; None if nothing is required."""
    return None if plan.checks.bounds is None else plan.checks.bounds.broken


def _rounded(plan: ArrayPlan, step: RoundStep, origin: Origin, values: NDArray[Any]) -> RoundedPart | None:
    """Return the rounded values; None if they do not keep what is required of each value."""
    rounded = step.apply(values, origin, plan.checks.missing)
    broken = _broken(plan)
    if broken is not None and broken(values, rounded.values, rounded.comparison.error):
        return None
    return rounded


def _new(number: int, stored: Encoded, comparison: ValueComparison) -> NewChunk:
    return NewChunk(number, stored.data, stored.mask, comparison.missing, comparison.crossed, comparison.error)


def _with_flags(plan: ArrayPlan, table: Flags, number: int, values: NDArray[Any]) -> NewChunk:
    """Encode a chunk with its gaps filled, and the companion's chunk with the flags of the gaps."""
    gaps = table.find(values)
    required = _broken(plan)
    missed: list[str] = []

    def broken(before: NDArray[Any], after: NDArray[Any], error: float) -> str:
        text = "" if required is None else required(before, after, error)
        if text:
            missed.append(text)
        return text

    encoder = plan.encoder(None if required is None else broken)
    if gaps is None:
        encoded = encoder.encode(values)
        if table.fill == 0:
            near = _near_limits(plan, encoded.mask, values)
            return NewChunk(number, encoded.data, encoded.mask, crossed=near, missed=bool(missed))
        gaps = np.zeros(values.shape, np.uint8)
    else:
        encoded = encoder.encode_filled(values, gaps, table)
    # If the array grows, the values beyond its present edge are valid: flag 0.
    beyond = Padding((True,) * gaps.ndim, np.uint8(0))
    flags = ChunkEncoder(flags_pipeline(plan.chunk_shape), ChunkType(gaps.dtype, plan.chunk_shape), beyond).encode(gaps)
    missing = int(np.count_nonzero(gaps))
    near = _near_limits(plan, encoded.mask, values[gaps == 0])
    return NewChunk(
        number, encoded.data, encoded.mask, missing, near, flags=(flags.data, flags.mask), missed=bool(missed)
    )


def _near_limits(plan: ArrayPlan, mask: int, valid: NDArray[Any]) -> int:
    """Count the values of a chunk without zfp that it could have moved across a limit of the valid range."""
    limits = [float(limit) for limit in (plan.checks.missing.low, plan.checks.missing.high) if limit is not None]
    if not mask & 1 or not limits:
        return 0
    reach = np.inf if plan.bound is None else plan.bound
    near = [np.abs(valid.astype(np.float64) - limit) <= reach for limit in limits]
    return int(np.count_nonzero(np.any(near, axis=0)))


def encode_many(
    pipeline: Pipeline, values: NDArray[np.generic], box: Region, parts: Parts, chunk: ChunkType, missing: Missing
) -> list[tuple[Encoded, ValueComparison] | None]:
    """Encode small chunks in one native call, as `ChunkEncoder` would, if nothing is lost or zfp keeps the bound."""
    small = chunk.nbytes <= SMALL_NBYTES and values.dtype == chunk.dtype
    encoder = native_encoder(pipeline, chunk) if small else None
    if encoder is None:
        return [None] * len(parts)
    places = np.array(origin_of(box)), parts.origin_table()
    if not encoder.has_zfp:
        data = encoder.native.encode_bytes(values, *places)
        return [None if entry is None else (Encoded(entry, 0), _EQUAL) for entry in data]
    mask, marks, limits, bound = encoder.loss(missing)
    encoded = encoder.native.encode(values, *places, mask, marks, limits, bound)
    return [
        None if entry is None else (Encoded(entry[0], encoder.mask), ValueComparison(entry[1], True, entry[2]))
        for entry in encoded
    ]


class NativeEncoder(NamedTuple):
    """The native twin of a pipeline, which encodes chunks, decodes them again and compares them."""

    native: _native.ChunkPipeline
    dtype: np.dtype[Any]  # Type of the chunks
    mask: int = 0  # Mask of the chunks, which zfp encodes; 0 without zfp
    bound: float | None = 0.0  # Largest allowed error; None if there is none
    has_zfp: bool = False  # Whether zfp is the first filter; otherwise no filter loses anything

    def loss(self, missing: Missing) -> Loss:
        """Return the other arguments of `_native.ChunkPipeline.encode` if zfp is the first filter."""
        low = -math.inf if missing.low is None else float(missing.low)
        high = math.inf if missing.high is None else float(missing.high)
        return self.mask, missing.marks(self.dtype), (low, high), self.bound


@lru_cache(maxsize=64)  # all chunks of a dataset have the same pipeline
def native_encoder(pipeline: Pipeline, chunk: ChunkType) -> NativeEncoder | None:
    """Return the native encoder of a pipeline with stored parameters; None if Python must encode the chunks."""
    native = native_pipeline(pipeline, chunk)
    if native is not None and native.encodes_bytes:
        return NativeEncoder(native, chunk.dtype)
    first = pipeline.stages[0] if pipeline.stages else None
    if first is None or not isinstance(first.filter, Zfp) or not is_stored(first.stored or ()):
        return None
    # The native pipeline does not prove this mode, so Python encodes and proves it.
    unbounded = isinstance(first.filter.mode, zfp.Expert) and pipeline.error_bound is None
    header = StoredZfp.parse(first.stored or ())
    requested, stored = (
        mode.params(chunk.dtype, len(header.shape)) for mode in (first.filter.mode, header.filter.mode)
    )
    if unbounded or header.dtype != chunk.dtype or header.shape != tuple(n for n in chunk.shape if n > 1):
        return None
    if _numbers(requested) != _numbers(stored) or chunk.dtype.kind != "f":
        return None
    mask = fallback_mask(pipeline)
    if native is None or not native.encodes(mask):
        return None
    return NativeEncoder(native, chunk.dtype, mask, pipeline.error_bound, has_zfp=True)


def _numbers(params: _native.Params) -> tuple[int, ...]:
    return params.minbits, params.maxbits, params.maxprec, params.minexp
