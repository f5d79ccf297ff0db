"""Measure filters on a sample: bytes, time and loss; and search the loosest filter that meets the requirement."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy import (
    SIGNIFICAND_BITS,
    BitPairs,
    Effects,
    Measured,
    Moments,
    Spectra,
    Squares,
    Tally,
    ValueChanges,
    compare,
    dssim,
    keepbits,
    ks_probability,
    unchanged,
)
from tamis.filters import Zfp
from tamis.jobs.plan.requirements import RELATIVE, PlanRequirement
from tamis.jobs.plan.sample import Piece, Sample
from tamis.meaning import Missing
from tamis.pipeline import Pipeline
from tamis.rewrite import ArrayPlan, LadderPart, PackStep, RoundStep, make_chunk

if TYPE_CHECKING:
    from tamis import meaning
    from tamis.zfp import Accuracy, Precision


_READ_NBYTES = 4_000_000
"""Bytes of values that are decoded to measure how long it takes."""
_CERTAIN = 1.96  # standard errors on each side of 95 % of a normal distribution


Change = Callable[[ArrayPlan, Piece, NDArray[Any]], NDArray[Any]]
"""Returns the values of a piece as readers get them."""


class Loss(NamedTuple):
    """The loss of the sampled values."""

    tally: Tally  # Errors, in stored units, or in units of the variable if it is packed anew
    moments: Moments  # Moments of the values and the result
    # The smallest DSSIM of the sampled fields, or the first one below the requirement; None if not requested,
    # or no field is large enough
    similarity: float | None
    distance: float | None  # Kolmogorov-Smirnov statistic, or more; None if not requested
    spectra: Spectra  # Power spectra of the rows, if requested


class Differences(NamedTuple):
    """What filters do to the sampled values, as their users see it."""

    effects: Effects = Effects()
    scale: float = 1.0  # Size of a step of the measured values in units of the variable
    # Ranges before and after
    ends: tuple[tuple[float, float], tuple[float, float]] = ((math.inf, -math.inf), (math.inf, -math.inf))
    # Sums of the squares of differences between neighbours along the last axis, and of the changes of these differences
    gradients: tuple[float, float] = (0.0, 0.0)

    def plus(self, other: Differences) -> Differences:
        """Return the changes of these values and of others."""
        ends = tuple((min(one[0], two[0]), max(one[1], two[1])) for one, two in zip(self.ends, other.ends, strict=True))
        gradients = (self.gradients[0] + other.gradients[0], self.gradients[1] + other.gradients[1])
        return Differences(self.effects.plus(other.effects), other.scale, (ends[0], ends[1]), gradients)

    @property
    def in_units(self) -> tuple[float, float, float, float]:
        """The change of the mean, of the smallest and the largest value, in units; of gradients, relative to them."""
        moments, (before, after) = self.effects.moments, self.ends
        low, high = (after[at] - before[at] if moments.count else 0.0 for at in (0, 1))
        if self.scale < 0:
            low, high = high, low
        gradient = math.sqrt(self.gradients[1] / self.gradients[0]) if self.gradients[0] else 0.0
        return (moments.mean_2 - moments.mean_1) * self.scale, low * self.scale, high * self.scale, gradient


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
    error: float  # Largest error of stored values


def loss_of(
    plans: Sequence[ArrayPlan], sample: Sample, requirement: PlanRequirement, changed: Change | None = None
) -> Loss:
    """Return the loss of a sample's tiles by the plans of all files, or by another function."""
    change = changed or _after
    # Others may mistake missing values for valid ones.
    detailed, words = changed is not None or requirement.relative is not None, requirement.limits.keys() & {"corr"}
    tally, moments = Tally(), Moments()
    similarities: list[float] = []
    changes, dtype = ValueChanges(), np.result_type(*(plan.in_variable_units.dtype for plan in plans))
    rows: list[Spectra] = []
    for plan, pieces in zip(plans, sample.tiles, strict=True):
        model = plan.in_variable_units
        zero = 0.0 if model.packing is None else model.packing.stored_zero
        missing, spectra = model.checks.missing, Spectra()
        # Filters after the first one are lossless and only take time.
        first = Pipeline(plan.pipeline.stages[:1], bound=plan.pipeline.bound)
        lossy = plan if changed else replace(plan, pipeline=first)
        for piece in pieces:
            values = values_for(plan, piece.values, sample)
            after = change(lossy, piece, values)
            absent = missing.find(values)
            kept = slice(None) if absent is None else ~absent
            if detailed:
                tally = tally.plus(compare(values, after, piece.origin, missing, zero))
                moments = moments.plus(Moments.of(values[kept], after[kept])) if words else moments
            else:
                measured = Measured.of(values, after, missing, words)
                tally, moments = tally.plus(measured.tally), moments.plus(measured.moments)
            if "ks" in requirement.limits:
                changes = changes.plus(
                    ValueChanges.of(*(part[kept].astype(dtype, copy=False) for part in (values, after)))
                )
            if "spectrum" in requirement.limits:
                spectra = spectra.plus(Spectra.of(values, after, absent))
            # One field below the requirement decides, and each further one takes as long.
            if "dssim" in requirement.limits and min(similarities, default=1.0) >= requirement.limits["dssim"]:
                similarities += _similarities(values, after, absent, every=sample.is_all)
        rows.append(spectra)
    worst = max(rows, key=lambda spectrum: spectrum.difference or 0.0)  # rows may differ in length between files
    distance = changes.ks_statistic(tally.compared) if "ks" in requirement.limits else None
    return Loss(tally, moments, min(similarities, default=None), distance, worst)


def differences_of(plans: Sequence[ArrayPlan], sample: Sample, packing: meaning.Packing | None) -> Differences:
    """Return what the plans of all files do to a sample's tiles."""
    total = Differences()
    for plan, pieces in zip(plans, sample.tiles, strict=True):
        packing = None if plan.codes is not None else packing  # then values are measured in units
        scale, zero = (1.0, 0.0) if packing is None else (packing.scale, packing.stored_zero)
        missing = plan.in_variable_units.checks.missing
        for piece in pieces:
            before = values_for(plan, piece.values, sample)
            after = _after(plan, piece, before)
            effects = Effects.of(before, after, missing, zero)
            if effects.moments.count:
                total = total.plus(Differences(effects, scale, *_ends_and_gradients(before, after, missing)))
    return total


def expected_effects(
    plans: Sequence[ArrayPlan], sample: Sample, bound: float, packing: meaning.Packing | None
) -> Effects:
    """Return the effects that a bound of stored values allows on a sample's tiles, by plans without loss."""
    zero, total = 0.0 if packing is None else packing.stored_zero, Effects()
    for plan, pieces in zip(plans, sample.tiles, strict=True):
        for piece in pieces:
            total = total.plus(Effects.expected(piece.values, bound, plan.checks.missing, zero))
    return total


def _ends_and_gradients(
    before: NDArray[Any], after: NDArray[Any], missing: Missing
) -> tuple[tuple[tuple[float, float], tuple[float, float]], tuple[float, float]]:
    """Return the fields of `Differences` for some values, not all of them missing."""
    values = [part.astype(np.float64) for part in (before, after)]
    if (absent := missing.find(before)) is not None:
        values = [np.where(absent, np.nan, part) for part in values]
    one, other = values
    axis = max((axis for axis, extent in enumerate(one.shape) if extent > 1), default=0)
    with np.errstate(invalid="ignore", over="ignore"):
        steps, changed = np.diff(one, axis=axis), np.diff(other - one, axis=axis)
        valid = np.isfinite(steps) & np.isfinite(changed)
        gradients = float(np.square(steps[valid]).sum()), float(np.square(changed[valid]).sum())
    ends = tuple((float(np.nanmin(part)), float(np.nanmax(part))) for part in values)
    return (ends[0], ends[1]), gradients


def losses_of_modes(
    plans: Sequence[ArrayPlan], sample: Sample, modes: Sequence[Accuracy | Precision]
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
            tally = tally.plus(unchanged(values, plan.checks.missing))
    return [
        Loss(replace(tally, error=error, squares=Squares(total)), Moments(), None, None, Spectra())
        for error, total in zip(errors, squares, strict=True)
    ]


def cost_of(plans: Sequence[ArrayPlan], sample: Sample, advance: Callable[[int], None]) -> Cost:
    """Return bytes and seconds of the chunks of a sample by the plans of all files."""
    raw: list[int] = []
    stored: list[int] = []
    fallbacks, error = 0, 0.0
    write_seconds = read_seconds = 0.0
    read_nbytes = 0
    for plan, pieces in zip(plans, sample.chunks, strict=True):
        for piece in pieces:
            values = values_for(plan, piece.values, sample)
            own = _for_piece(plan, piece)
            begin = time.perf_counter()
            chunk = make_chunk(own, piece.region, plan.as_stored(values))
            middle = time.perf_counter()
            write_seconds += middle - begin
            if read_nbytes < _READ_NBYTES:
                decoded = own.pipeline.decode(chunk.data, chunk.mask, own.chunk)
                plan.as_read(decoded)
                read_seconds += time.perf_counter() - middle
                read_nbytes += piece.values.nbytes
            raw.append(piece.values.nbytes)
            stored.append(len(chunk.data) + (len(chunk.flags[0]) if chunk.flags else 0))
            fallbacks += own.pipeline.bounded is not None and bool(chunk.mask & 1)
            error = max(error, chunk.error or 0.0)
            advance(piece.values.nbytes)
    nbytes = sum(raw)
    return Cost(
        *ratio_and_range(raw, stored, sample),
        nbytes / write_seconds / 1e6,
        read_nbytes / read_seconds / 1e6,
        fallbacks / len(raw),
        error,
    )


def ratio_and_range(raw: Sequence[int], stored: Sequence[int], sample: Sample) -> tuple[float, float, float]:
    """Return the ratio of the whole array, estimated from sampled chunks, and its 95 % range."""
    ratio = sum(raw) / sum(stored) / sample.written_share
    spread = _spread(raw, stored, sample.array_nbytes) / sample.written_share
    return ratio, max(ratio - spread, 0.0), ratio + spread


def values_for(plan: ArrayPlan, values: NDArray[Any], sample: Sample) -> NDArray[Any]:
    """Return stored values as a plan gets them: in units of the variable, if it packs them."""
    return values.astype(plan.dtype, copy=False) if plan.codes is None else sample.in_units(values)


def _for_piece(plan: ArrayPlan, piece: Piece) -> ArrayPlan:
    """Return the plan with a chunk of the piece's size, unless the piece is a chunk."""
    return plan if piece.is_chunk else replace(plan, chunk_shape=piece.values.shape)


def _after(plan: ArrayPlan, piece: Piece, values: NDArray[Any]) -> NDArray[Any]:
    """Return the values as readers get them."""
    if plan.step(PackStep) is not None:
        return plan.as_read(plan.as_stored(values))
    if (step := plan.step(RoundStep)) is not None:
        return step.apply(values, piece.origin, plan.checks.missing).values
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


T = TypeVar("T")

_LONGEST = 28
"""Rungs that are tried at most: from far too loose to almost without loss."""

_STEPS = 4
"""Rungs of packings for each power of two: a quarter of a bit of each value is saved on average."""

_UNSEEN = 1.125
"""Values that are not in the sample may be larger by this factor."""


class Facts(NamedTuple):
    """Facts about a variable from its sample, in its units."""

    # Range of the valid values; NaN if there are none
    low: float
    high: float
    deviation: float  # Standard deviation of the values
    largest: float  # Largest magnitude of the stored values; larger than that of the sample if there are others
    scale: float  # Size of a step of the stored values in units of the variable; 1 if they are not packed
    # Bits of the significand with the required share of the information; None if not requested
    keepbits: int | None
    value_count: int = 0  # Values in all files

    @property
    def span(self) -> float:
        """Range of the values."""
        return self.high - self.low


def facts_of(
    sample: Sample, missing: Sequence[Missing], packing: meaning.Packing | None, requirement: PlanRequirement
) -> Facts:
    """Return the facts of a sample, without missing values."""
    tally, moments = Tally(), Moments()
    for marks, pieces in zip(missing, sample.chunks, strict=True):
        for piece in pieces:
            values = piece.values
            tally = tally.plus(unchanged(values, marks.of_type(values.dtype)))
            if "corr" in requirement.limits or "std" in requirement.limits:
                valid = marks.valid(values)
                moments = moments.plus(Moments.of(valid, valid))
    scale = 1.0 if packing is None else abs(packing.scale)
    if tally.low is None or tally.high is None:
        return Facts(math.nan, math.nan, 0.0, 0.0, scale, None)
    ends = (float(tally.low), float(tally.high))
    low, high = sorted(ends if packing is None else map(packing.unpacked, ends))
    deviation = math.sqrt(moments.square_1 / moments.count) * scale if moments.count else 0.0
    share = requirement.limits.get("information")
    bits = None if share is None else informative_bits(sample, missing, share)
    largest = max(map(abs, ends)) * (_UNSEEN if sample.nbytes < sample.array_nbytes else 1)
    return Facts(low, high, deviation, largest, scale, bits, sample.array_nbytes // sample.itemsize)


def informative_bits(sample: Sample, missing: Sequence[Missing], share: float) -> int | None:
    """Return the number of significand bits that hold a share of the information; None if values are not floats."""
    itemsize = sample.tiles[0][0].values.itemsize
    if sample.tiles[0][0].values.dtype.kind != "f" or itemsize not in SIGNIFICAND_BITS:
        return None
    counts: dict[int, BitPairs] = {}
    for marks, pieces in zip(missing, sample.tiles, strict=True):
        for piece in pieces:
            absent = marks.find(piece.values)
            for axis, extent in enumerate(piece.values.shape):
                if extent > 1:
                    pairs = BitPairs.of(piece.values, None if absent is None else ~absent, axis)
                    counts[axis] = counts[axis].plus(pairs) if axis in counts else pairs
    return keepbits([pairs.information() for pairs in counts.values()], itemsize, share)


def absolute_bound(requirement: PlanRequirement, facts: Facts) -> float | None:
    """Return the required largest absolute error, from ``abs``, ``range`` and ``std``; None if none is given."""
    sizes = {"abs": 1.0, "range": facts.span, "std": facts.deviation}
    return min(
        (requirement.limits[name] * size for name, size in sizes.items() if name in requirement.limits), default=None
    )


def zfp_ladders(requirement: PlanRequirement, facts: Facts, itemsize: int) -> Iterator[list[Zfp]]:
    """Yield ladders of zfp filters, each from loose to tight.

    If an absolute error is required, there is one ladder, of bounds, which begins with it. Otherwise there is one for
    each lossy mode. Accuracies are powers of two, because zfp rounds all others down to these. Precision and rate give
    each block a number of bits, which suits measures that weigh each field by its own range.
    """
    if any(name in requirement.limits for name in RELATIVE):
        return
    if (bound := absolute_bound(requirement, facts)) is not None:
        yield [Zfp(bound=error) for error in _halved(bound)]
        return
    # The rmse of zfp is 0.02 of its tolerance or more: looser rungs cannot keep what is required.
    yield [Zfp(accuracy=error) for error in _powers_of_two(requirement, facts, 64)]
    yield [Zfp(precision=bits) for bits in range(2, 8 * itemsize)]
    yield [Zfp(rate=bits) for bits in range(2, 8 * itemsize)]


def absolute_errors(requirement: PlanRequirement, facts: Facts) -> Iterator[float]:
    """Yield largest errors from loose to tight: first the required ones, or powers of two."""
    bound = absolute_bound(requirement, facts)
    # The rmse of a rounding is 0.58 of its largest error.
    return _powers_of_two(requirement, facts, 4) if bound is None else _halved(bound)


def packing_errors(requirement: PlanRequirement, facts: Facts) -> Iterator[float]:
    """Yield largest errors of packings, like `absolute_errors`, but in finer steps, because a packing takes any."""
    if absolute_bound(requirement, facts) is not None:
        yield from absolute_errors(requirement, facts)
        return
    for error in absolute_errors(requirement, facts):
        yield from (float(f"{error / 2 ** (step / _STEPS):.2g}") for step in range(_STEPS))


def _halved(bound: float) -> Iterator[float]:
    if 0 < bound < math.inf:
        yield from (bound / 2**halvings for halvings in range(_LONGEST))


def _powers_of_two(requirement: PlanRequirement, facts: Facts, most_roots: float) -> Iterator[float]:
    """Yield falling errors from the range of the data, beginning at most at a multiple of the required rmse."""
    start = facts.span
    roots = [requirement.limits["rmse"]] if "rmse" in requirement.limits else []
    if "psnr" in requirement.limits:
        roots.append(facts.span / 10 ** (requirement.limits["psnr"] / 20))
    if "corr" in requirement.limits and facts.deviation:
        roots.append(facts.deviation * math.sqrt(2 * (1 - requirement.limits["corr"])))
    if roots and min(roots) > 0:
        start = min(start, most_roots * min(roots))
    if 0 < start < math.inf:
        top = math.floor(math.log2(start))
        yield from (math.ldexp(1, exponent) for exponent in range(top, top - _LONGEST, -1))


def kept_bits(requirement: PlanRequirement, facts: Facts, itemsize: int) -> Iterator[int]:
    """Yield numbers of bits that rounding keeps, from few to all but the last.

    The first number keeps all bounds of single values: relative ones for any values, absolute ones for all values up to
    the binary magnitude of the largest.
    """
    least = [1.0]
    if (relative := requirement.relative) is not None:
        least.append(-math.log2(relative) - 1)
    if facts.keepbits is not None:
        least.append(facts.keepbits)
    if (bound := absolute_bound(requirement, facts)) is not None:
        if not bound > 0:
            return
        least.append(magnitude(facts) - 2 - math.log2(bound / facts.scale))
    yield from range(math.ceil(max(least)), SIGNIFICAND_BITS[itemsize])


def magnitude(facts: Facts) -> int:
    """Return the smallest exponent e with all sampled stored values below ``2**e`` in magnitude."""
    return math.frexp(facts.largest)[1]


def failures(
    requirement: PlanRequirement, loss: Loss, facts: Facts, *, stored_relative: bool, rounds: bool
) -> list[str]:
    """Return the requirements that a loss misses, each with the value found."""
    tally, limits = loss.tally, requirement.limits
    relative = tally.stored_relative if stored_relative else tally.relative
    rmse, psnr = (tally.rmse or 0.0) * facts.scale, tally.psnr
    similarity, correlation = loss.similarity, loss.moments.correlation
    bound, difference = absolute_bound(requirement, facts), loss.spectra.difference
    is_narrow = difference is not None and difference <= limits.get("spectrum", 0.0)
    probability = 1.0 if loss.distance is None else ks_probability(loss.distance, facts.value_count)
    kept = {
        "abs": bound is None or float(tally.error) * facts.scale <= bound,
        "rel": requirement.relative is None or (relative <= requirement.relative and not tally.zeros_changed),
        "information": "information" not in limits or rounds,
        "rmse": "rmse" not in limits or rmse <= limits["rmse"],
        "psnr": "psnr" not in limits or tally.error == 0 or (psnr is not None and psnr >= limits["psnr"]),
        "dssim": "dssim" not in limits or (similarity is not None and similarity >= limits["dssim"]),
        "ks": "ks" not in limits or probability >= limits["ks"],
        "spectrum": "spectrum" not in limits or tally.error == 0 or is_narrow,
        "corr": "corr" not in limits or tally.error == 0 or (correlation is not None and correlation >= limits["corr"]),
    }
    return [name for name, is_kept in kept.items() if not is_kept]


def loosest(rungs: Sequence[T], keeps: Callable[[T], bool], likely: int | None = None) -> T | None:
    """Return a rung that meets the requirement, like the next tighter one, but unlike the next looser one.

    The first rung is tried first, then the ladder is bisected. If a measure falls and rises along it, there may be
    several such rungs; the result is one of them.
    """
    kept = cache(lambda index: keeps(rungs[index]))
    if likely is not None and kept(likely):
        return rungs[likely]
    low, high = 0, len(rungs)  # the first rung that meets it is one of these, or there is none
    middle = 0
    while low < high:
        low, high = (low, middle) if kept(middle) else (middle + 1, high)
        middle = (low + high) // 2
    while low < len(rungs) and not (kept(low) and (low + 1 == len(rungs) or kept(low + 1))):
        low += 1
    return rungs[low] if low < len(rungs) else None


def finite(facts: Facts) -> bool:
    """Return whether the sample has valid values."""
    return bool(np.isfinite(facts.low))
