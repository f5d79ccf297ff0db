"""Measure filters on a sample: bytes, time and loss of the values."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.distribution import Changes
from tamis.accuracy.fields import Spectra, dssim
from tamis.accuracy.measured import Measured
from tamis.accuracy.statistics import Moments, Squares, Tally, compare, unchanged
from tamis.jobs.plan.sample import Piece, Sample
from tamis.pipeline import Pipeline
from tamis.rewrite.new_chunk import make_chunk
from tamis.rewrite.rewrite import Rewrite
from tamis.rewrite.tolerance import LadderPart

if TYPE_CHECKING:
    from tamis.jobs.plan.wants import Want
    from tamis.zfp import Accuracy, Precision

_READ_NBYTES = 4_000_000
"""Bytes of values that are decoded to measure how long it takes."""
_CERTAIN = 1.96  # standard errors on each side of 95 % of a normal distribution


Change = Callable[[Rewrite, Piece, NDArray[Any]], NDArray[Any]]
"""Returns the values of a piece as readers get them."""


class Loss(NamedTuple):
    """The loss of the sampled values."""

    tally: Tally  # Errors, in stored units
    moments: Moments  # Moments of the values and the result
    # The smallest DSSIM of the sampled fields, or the first one below the want; None if not requested,
    # or no field is large enough
    similarity: float | None
    distance: float | None  # Kolmogorov-Smirnov statistic, or more; None if not requested
    spectra: Spectra  # Power spectra of the rows, if requested


class Cost(NamedTuple):
    """Bytes and seconds of the sampled chunks."""

    ratio: float  # Bytes of values for each stored byte
    # The range of the ratio in the whole array with a probability of 95 %, judging by the sample
    low: float
    high: float
    # Megabytes of values per second in one thread; writing is like repack, which decodes again and compares
    write_mbs: float
    read_mbs: float
    # Share of the chunks that are stored without zfp, because it cannot keep their values or the bound
    fallbacks: float


def loss_of(plans: Sequence[Rewrite], sample: Sample, want: Want, changed: Change | None = None) -> Loss:
    """Return the loss of a sample's tiles by the plans of all files, or by another function."""
    change = changed or _after
    # Others may mistake missing values for valid ones.
    detailed, words = changed is not None or want.relative is not None, want.limits.keys() & {"corr"}
    tally, moments = Tally(), Moments()
    similarities: list[float] = []
    changes, dtype = Changes(), np.result_type(*(plan.dtype for plan in plans))
    rows: list[Spectra] = []
    for plan, pieces in zip(plans, sample.tiles, strict=True):
        zero = 0.0 if plan.packing is None else plan.packing.stored_zero
        missing, spectra = plan.missing, Spectra()
        lossy = plan if changed else _with_first_filter(plan)
        for piece in pieces:
            values = piece.values.astype(plan.dtype, copy=False)
            after = change(lossy, piece, values)
            absent = missing.find(values)
            kept = slice(None) if absent is None else ~absent
            if detailed:
                tally = tally.plus(compare(values, after, piece.origin, missing, zero))
                moments = moments.plus(Moments.of(values[kept], after[kept])) if words else moments
            else:
                measured = Measured.of(values, after, missing, words)
                tally, moments = tally.plus(measured.tally), moments.plus(measured.moments)
            if "ks" in want.limits:
                changes = changes.plus(Changes.of(*(part[kept].astype(dtype, copy=False) for part in (values, after))))
            if "spectrum" in want.limits:
                spectra = spectra.plus(Spectra.of(values, after, absent))
            # One field below the want decides, and each further one takes as long.
            if "dssim" in want.limits and min(similarities, default=1.0) >= want.limits["dssim"]:
                similarities += _similarities(values, after, absent, every=sample.is_all)
        rows.append(spectra)
    worst = max(rows, key=lambda spectrum: spectrum.difference or 0.0)  # rows may differ in length between files
    distance = changes.ks_statistic(tally.compared) if "ks" in want.limits else None
    return Loss(tally, moments, min(similarities, default=None), distance, worst)


def losses_of_modes(
    plans: Sequence[Rewrite], sample: Sample, modes: Sequence[Accuracy | Precision]
) -> list[Loss] | None:
    """Return the loss of a sample's tiles in several modes of zfp, measured together."""
    tally = Tally()
    errors, squares = [0.0] * len(modes), [0.0] * len(modes)
    for plan, pieces in zip(plans, sample.tiles, strict=True):
        for piece in pieces:
            values = piece.values.astype(plan.dtype, copy=False)
            part = LadderPart.of(_for_piece(plan, piece), values)
            if part is None or part.is_filled:
                return None
            rungs = part.rungs(modes)
            errors = [max(error, rung.error) for error, rung in zip(errors, rungs, strict=True)]
            squares = [total + rung.squares for total, rung in zip(squares, rungs, strict=True)]
            if not part.stays_valid(max(errors)):
                return None
            tally = tally.plus(unchanged(values, plan.missing))
    return [
        Loss(replace(tally, error=error, squares=Squares(total)), Moments(), None, None, Spectra())
        for error, total in zip(errors, squares, strict=True)
    ]


def cost_of(plans: Sequence[Rewrite], sample: Sample, advance: Callable[[int], None]) -> Cost:
    """Return bytes and seconds of the chunks of a sample by the plans of all files."""
    raw: list[int] = []
    stored: list[int] = []
    fallbacks = 0
    write_seconds = read_seconds = 0.0
    read_nbytes = 0
    for plan, pieces in zip(plans, sample.chunks, strict=True):
        for piece in pieces:
            values = piece.values.astype(plan.dtype, copy=False)
            own = _for_piece(plan, piece)
            begin = time.perf_counter()
            chunk = make_chunk(own, piece.region, values)
            middle = time.perf_counter()
            write_seconds += middle - begin
            if read_nbytes < _READ_NBYTES:
                own.pipeline.decode(chunk.data, chunk.mask, own.chunk)
                read_seconds += time.perf_counter() - middle
                read_nbytes += values.nbytes
            raw.append(values.nbytes)
            stored.append(len(chunk.data) + (len(chunk.flags[0]) if chunk.flags else 0))
            fallbacks += own.pipeline.zfp is not None and bool(chunk.mask & 1)
            advance(values.nbytes)
    nbytes = sum(raw)
    return Cost(
        *ratio_and_range(raw, stored, sample),
        nbytes / write_seconds / 1e6,
        read_nbytes / read_seconds / 1e6,
        fallbacks / len(raw),
    )


def ratio_and_range(raw: Sequence[int], stored: Sequence[int], sample: Sample) -> tuple[float, float, float]:
    """Return the ratio of the whole array, estimated from sampled chunks, and its 95 % range."""
    ratio = sum(raw) / sum(stored) / sample.written_share
    spread = _spread(raw, stored, sample.array_nbytes) / sample.written_share
    return ratio, max(ratio - spread, 0.0), ratio + spread


def _for_piece(plan: Rewrite, piece: Piece) -> Rewrite:
    """Return the plan with a chunk of the piece's size, unless the piece is a chunk."""
    return plan if piece.is_chunk else replace(plan, chunk_shape=piece.values.shape)


def _with_first_filter(plan: Rewrite) -> Rewrite:
    """Return a plan without the filters after the first one, which are lossless and only take time."""
    return replace(plan, pipeline=Pipeline(plan.pipeline.stages[:1], bound=plan.pipeline.bound))


def _after(plan: Rewrite, piece: Piece, values: NDArray[Any]) -> NDArray[Any]:
    """Return the values as readers get them."""
    if plan.rounding is not None:
        return plan.rounding.apply(values, piece.origin, plan.missing).values
    own = _for_piece(plan, piece)
    if own.flags is None:
        return own.encoder().encode_proven(values).after
    chunk = make_chunk(own, piece.region, values)
    return own.pipeline.decode(chunk.data, chunk.mask, own.chunk)[tuple(map(slice, values.shape))]


def _similarities(
    before: NDArray[Any], after: NDArray[Any], absent: NDArray[np.bool_] | None, *, every: bool
) -> Iterator[float]:
    """Yield the DSSIM of the first field of a tile, or of each one, if it is large enough: its last two axes."""
    leading = before.shape[:-2]
    if before.ndim >= 2:
        for field in np.ndindex(leading) if every else [(0,) * len(leading)]:
            similarity = dssim(before[field], after[field], None if absent is None else ~absent[field])
            if similarity is not None:
                yield similarity


def _spread(raw: Sequence[int], stored: Sequence[int], array_nbytes: int) -> float:
    """Return half the 95 % range of the ratio of the whole array: the standard error of a ratio of means."""
    count = len(raw)
    if sum(raw) >= array_nbytes:
        return 0.0
    if count < 2:
        return math.inf
    ratio = sum(raw) / sum(stored)
    residuals = math.fsum((size - ratio * nbytes) ** 2 for size, nbytes in zip(raw, stored, strict=True))
    unseen = 1 - sum(raw) / array_nbytes
    return _CERTAIN * math.sqrt(unseen * residuals / (count - 1) / count) / (sum(stored) / count)
