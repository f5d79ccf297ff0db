"""Ladders of lossy filters from loose to tight, and the loosest rung that meets the want."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from tamis.accuracy.distribution import ks_probability
from tamis.accuracy.fields import SIGNIFICAND_BITS, BitPairs, bit_pairs, keepbits
from tamis.accuracy.statistics import Moments, Tally, unchanged
from tamis.filters import Zfp
from tamis.jobs.plan.wants import RELATIVE, Want
from tamis.rounding import Absolute, Rounding

if TYPE_CHECKING:
    from tamis import meaning
    from tamis.jobs.plan.measure import Loss
    from tamis.jobs.plan.sample import Sample
    from tamis.meaning.missing import Missing

T = TypeVar("T")

_LONGEST = 28
"""Rungs that are tried at most: from far too loose to almost without loss."""

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
    # Bits of the significand with the wanted share of the information; None if not requested
    keepbits: int | None
    value_count: int = 0  # Values in all files

    @property
    def span(self) -> float:
        """Range of the values."""
        return self.high - self.low


def facts_of(sample: Sample, missing: Sequence[Missing], packing: meaning.Packing | None, want: Want) -> Facts:
    """Return the facts of a sample, without missing values."""
    tally, moments = Tally(), Moments()
    for marks, pieces in zip(missing, sample.chunks, strict=True):
        for piece in pieces:
            values = piece.values
            tally = tally.plus(unchanged(values, marks.of_type(values.dtype)))
            if "corr" in want.limits or "std" in want.limits:
                absent = marks.find(values)
                valid = values if absent is None else values[~absent]
                moments = moments.plus(Moments.of(valid, valid))
    scale = 1.0 if packing is None else abs(packing.scale)
    if tally.low is None or tally.high is None:
        return Facts(math.nan, math.nan, 0.0, 0.0, scale, None)
    ends = (float(tally.low), float(tally.high))
    low, high = sorted(ends if packing is None else map(packing.unpacked, ends))
    deviation = math.sqrt(moments.square_1 / moments.count) * scale if moments.count else 0.0
    share = want.limits.get("information")
    bits = None if share is None else _informative(sample, missing, share)
    largest = max(map(abs, ends)) * (_UNSEEN if sample.nbytes < sample.array_nbytes else 1)
    return Facts(low, high, deviation, largest, scale, bits, sample.array_nbytes // sample.itemsize)


def _informative(sample: Sample, missing: Sequence[Missing], share: float) -> int | None:
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
                    pairs = bit_pairs(piece.values, None if absent is None else ~absent, axis)
                    counts[axis] = counts[axis].plus(pairs) if axis in counts else pairs
    return keepbits([pairs.information() for pairs in counts.values()], itemsize, share)


def absolute_bound(want: Want, facts: Facts) -> float | None:
    """Return the wanted largest absolute error, from ``abs``, ``range`` and ``std``; None if none is given."""
    sizes = {"abs": 1.0, "range": facts.span, "std": facts.deviation}
    return min((want.limits[name] * size for name, size in sizes.items() if name in want.limits), default=None)


def zfp_ladders(want: Want, facts: Facts, itemsize: int) -> Iterator[list[Zfp]]:
    """Yield ladders of zfp filters, each from loose to tight.

    If an absolute error is wanted, there is one ladder, of bounds, which begins with it. Otherwise there is one for
    each lossy mode. Accuracies are powers of two, because zfp rounds all others down to these. Precision and rate give
    each block a number of bits, which suits measures that weigh each field by its own range.
    """
    if any(name in want.limits for name in RELATIVE):
        return
    if (bound := absolute_bound(want, facts)) is not None:
        yield [Zfp(bound=error) for error in _halved(bound)]
        return
    # The rmse of zfp is 0.02 of its tolerance or more: looser rungs cannot keep what is wanted.
    yield [Zfp(accuracy=error) for error in _powers_of_two(want, facts, 64)]
    yield [Zfp(precision=bits) for bits in range(2, 8 * itemsize)]
    yield [Zfp(rate=bits) for bits in range(2, 8 * itemsize)]


def absolute_roundings(want: Want, facts: Facts) -> Iterator[Rounding]:
    """Yield roundings to multiples of a step, from loose to tight, beginning with the wanted absolute error."""
    return (Absolute(bound=error) for error in absolute_errors(want, facts))


def absolute_errors(want: Want, facts: Facts) -> Iterator[float]:
    """Yield largest errors from loose to tight: first the wanted ones, or powers of two."""
    bound = absolute_bound(want, facts)
    # The rmse of a rounding is 0.58 of its largest error.
    return _powers_of_two(want, facts, 4) if bound is None else _halved(bound)


def _halved(bound: float) -> Iterator[float]:
    if 0 < bound < math.inf:
        yield from (bound / 2**halvings for halvings in range(_LONGEST))


def _powers_of_two(want: Want, facts: Facts, most_roots: float) -> Iterator[float]:
    """Yield falling errors from the range of the data, beginning at most at a multiple of the wanted rmse."""
    start = facts.span
    roots = [want.limits["rmse"]] if "rmse" in want.limits else []
    if "psnr" in want.limits:
        roots.append(facts.span / 10 ** (want.limits["psnr"] / 20))
    if "corr" in want.limits and facts.deviation:
        roots.append(facts.deviation * math.sqrt(2 * (1 - want.limits["corr"])))
    if roots and min(roots) > 0:
        start = min(start, most_roots * min(roots))
    if 0 < start < math.inf:
        top = math.floor(math.log2(start))
        yield from (math.ldexp(1, exponent) for exponent in range(top, top - _LONGEST, -1))


def kept_bits(want: Want, facts: Facts, itemsize: int) -> Iterator[int]:
    """Yield numbers of bits that rounding keeps, from few to all but the last.

    The first number keeps all bounds of single values: relative ones for any values, absolute ones for all values up to
    the binary magnitude of the largest.
    """
    least = [1.0]
    if (relative := want.relative) is not None:
        least.append(-math.log2(relative) - 1)
    if facts.keepbits is not None:
        least.append(facts.keepbits)
    if (bound := absolute_bound(want, facts)) is not None:
        if not bound > 0:
            return
        least.append(magnitude(facts) - 2 - math.log2(bound / facts.scale))
    yield from range(math.ceil(max(least)), SIGNIFICAND_BITS[itemsize])


def magnitude(facts: Facts) -> int:
    """Return the smallest exponent e with all sampled stored values below ``2**e`` in magnitude."""
    return math.frexp(facts.largest)[1]


def failures(want: Want, loss: Loss, facts: Facts, *, stored_relative: bool, rounds: bool) -> list[str]:
    """Return the wants that a loss misses, each with the value found."""
    tally, limits = loss.tally, want.limits
    relative = tally.stored_relative if stored_relative else tally.relative
    rmse, psnr = (tally.rmse or 0.0) * facts.scale, tally.psnr
    similarity, correlation = loss.similarity, loss.moments.correlation
    bound, difference = absolute_bound(want, facts), loss.spectra.difference
    is_narrow = difference is not None and difference <= limits.get("spectrum", 0.0)
    probability = 1.0 if loss.distance is None else ks_probability(loss.distance, facts.value_count)
    kept = {
        "abs": bound is None or float(tally.error) * facts.scale <= bound,
        "rel": want.relative is None or (relative <= want.relative and not tally.zeros_changed),
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
    """Return a rung that meets the want, like the next tighter one, but unlike the next looser one.

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
