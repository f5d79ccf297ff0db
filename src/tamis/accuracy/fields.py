"""Measures of whole fields and rows: similarity (DSSIM), power spectra, and the real information of bits.

The real information of a bit is what it tells about the same bit of the next value (Klöwer et al. 2021). As in
BitInformation.jl and xbitinfo, the exponent of a float counts as a sign and a magnitude.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis import _native
from tamis.accuracy.difference import same_bits

if TYPE_CHECKING:
    from tamis.meaning import Packing
    from tamis.meaning.missing import Missing

_REACH = 5
"""Values on each side of one in its window, and rows and columns at the edge that have no whole window."""

WINDOW = 2 * _REACH + 1
"""Least extents of a field."""


def has_windows(shape: Sequence[int]) -> bool:
    """Return whether the fields of an array, its last two axes, are large enough."""
    return len(shape) >= 2 and min(shape[-2:]) >= WINDOW


def dssim(source: NDArray[Any], target: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> float | None:
    """Return the data structural similarity of a field with two axes, 1 if both are the same.

    Both fields are scaled together to 0 … 1, rounded to 256 levels and compared in windows of 11 x 11 values with
    Gaussian weights; the result is the mean of all whole windows around a valid value.
    """
    if not has_windows(source.shape):
        return None
    present = np.ones(source.shape, bool) if valid is None else valid
    if not present[_REACH:-_REACH, _REACH:-_REACH].any():
        return None
    if source.dtype == target.dtype and same_bits(source, target):
        return 1.0
    dtype = np.float32 if source.dtype == target.dtype == np.float32 else np.float64
    first, second = (np.ascontiguousarray(field, dtype) for field in (source, target))
    return _native.dssim(first, second, None if valid is None else np.ascontiguousarray(valid))


SHORTEST = 4
"""Shortest wavelength that counts, in values: that of the blocks of zfp. Shorter ones are noise of the grid."""

_ROUNDING = 1e-24
"""Share of the power that rounding of the transform may leave in a wave that is not there."""


class Spectra(NamedTuple):
    """Sums of power spectra of rows, before and after; by wave number, without the mean."""

    # Power of each wave number, from 1 on; empty without rows
    before: NDArray[np.float64] = np.empty(0)
    after: NDArray[np.float64] = np.empty(0)

    @classmethod
    def of(cls, before: NDArray[Any], after: NDArray[Any], absent: NDArray[np.bool_] | None = None) -> Spectra:
        """Return the spectra of all rows without missing values, along the last axis."""
        extent = before.shape[-1]
        rows = [values.reshape(-1, extent).astype(np.float64) for values in (before, after)]
        if absent is not None:
            whole = ~absent.reshape(-1, extent).any(axis=1)
            rows = [values[whole] for values in rows]
        last = extent // SHORTEST
        if not last or not len(rows[0]):
            return cls()
        powers = (np.square(np.abs(np.fft.rfft(values, axis=1)[:, 1 : last + 1])).sum(axis=0) for values in rows)
        return cls(*powers)

    def plus(self, other: Spectra) -> Spectra:
        """Return the spectra of these rows and of others of the same length."""
        if not self.before.size or not other.before.size:
            return self if self.before.size else other
        return Spectra(self.before + other.before, self.after + other.after)

    @property
    def difference(self) -> float | None:
        """The largest relative difference of power, of wavelengths from `SHORTEST` on; None without power.

        It is infinite if there is power where there was none before.
        """
        least = _ROUNDING * self.before.sum()
        before, after = (np.where(power > least, power, 0.0) for power in self)
        if not before.any() and not after.any():
            return None
        is_there = before > 0
        if after[~is_there].any():
            return math.inf
        return float(np.abs(after[is_there] / before[is_there] - 1).max())


class FieldMeasures(NamedTuple):
    """Measures of some fields."""

    # The smallest DSSIM, in units of the variable; None if no field has one, or it was not requested
    similarity: float | None = None
    spectra: Spectra = Spectra()  # Power spectra of the rows, if requested

    @classmethod
    def of(
        cls,
        before: NDArray[Any],
        after: NDArray[Any],
        missing: Missing,
        packing: Packing | None,
        words: Collection[str],
    ) -> FieldMeasures:
        """Return the measures with these words of a part with whole fields, or rows, whose missing values stayed."""
        absent = missing.find(before) if words else None
        similarity = _least_similarity(before, after, absent, packing) if "dssim" in words else None
        spectra = Spectra.of(before, after, absent) if "spectrum" in words else Spectra()
        return cls(similarity, spectra)

    def plus(self, other: FieldMeasures) -> FieldMeasures:
        """Return the measures of these fields and of others."""
        similarities = [similarity for similarity in (self.similarity, other.similarity) if similarity is not None]
        return FieldMeasures(min(similarities, default=None), self.spectra.plus(other.spectra))

    @property
    def by_word(self) -> dict[str, float | None]:
        """The measures by their words."""
        return {"dssim": self.similarity, "spectrum": self.spectra.difference}


FIELD_WORDS = ("dssim", "spectrum")
"""Words of the measures of whole fields or rows."""


def words_within(words: Collection[str], shape: Sequence[int], chunk_shape: Sequence[int]) -> tuple[str, ...]:
    """Return those of the words whose fields or rows no chunk of an array cuts."""
    whole = [step >= extent for extent, step in zip(shape, chunk_shape, strict=True)]
    axes = {"dssim": 2, "spectrum": 1}
    return tuple(word for word in words if word in axes and all(whole[-axes[word] :]))


def _least_similarity(
    before: NDArray[Any], after: NDArray[Any], absent: NDArray[np.bool_] | None, packing: Packing | None
) -> float | None:
    """Return the smallest DSSIM of the fields of a part."""
    similarities = []
    for index in np.ndindex(before.shape[:-2]):
        one, other = (_in_units(packing, values[index]) for values in (before, after))
        similarity = dssim(one, other, None if absent is None else ~absent[index])
        if similarity is not None:
            similarities.append(similarity)
    return min(similarities, default=None)


def _in_units(packing: Packing | None, values: NDArray[Any]) -> NDArray[Any]:
    return values if packing is None else np.asarray(packing.unpacked(values.astype(np.float64)))


CONFIDENCE = 0.99
"""Bits count as noise if their information could be chance with a probability of more than 1 %."""

SIGNIFICAND_BITS = {4: 23, 8: 52}
"""Bits of the significand after the implicit first one, by the size of a float."""

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class BitPairs:
    """Counts of the bits of neighbours along an axis, for each bit of a float, the sign first."""

    pair_count: int  # Number of pairs of valid neighbours
    # How many of the first values, of the second values, and of the pairs with both values have the bit set
    first: Counts
    second: Counts
    both: Counts

    @classmethod
    def of(cls, values: NDArray[Any], valid: NDArray[np.bool_] | None, axis: int) -> BitPairs:
        """Return the counts of bits of neighbours along an axis; pairs with a missing value are left out."""
        native = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
        if not native.size:
            none = np.zeros(8 * native.itemsize, np.int64)
            return cls(0, none, none, none)
        extents = math.prod(values.shape[:axis]), values.shape[axis], math.prod(values.shape[axis + 1 :])
        flags = None if valid is None else np.ascontiguousarray(valid)
        pair_count, *counts = _native.bit_pairs(native, flags, extents)
        first, second, both = (np.array(count[::-1], np.int64) for count in counts)
        return cls(pair_count, first, second, both)

    def plus(self, other: BitPairs) -> BitPairs:
        """Return the counts of these pairs and of others."""
        return BitPairs(
            self.pair_count + other.pair_count,
            self.first + other.first,
            self.second + other.second,
            self.both + other.both,
        )

    def information(self, confidence: float = CONFIDENCE) -> NDArray[np.float64]:
        """Return the mutual information of neighbours in each bit, in bits; 0 where it may be chance."""
        total = np.zeros(self.first.size)
        if not self.pair_count:
            return total
        ones, next_ones = self.first / self.pair_count, self.second / self.pair_count
        both = self.both / self.pair_count
        cells = (
            (both, ones, next_ones),
            (ones - both, ones, 1 - next_ones),
            (next_ones - both, 1 - ones, next_ones),
            (1 - ones - next_ones + both, 1 - ones, 1 - next_ones),
        )
        for joint, here, there in cells:
            present = joint > 0
            total[present] += joint[present] * np.log2(joint[present] / (here[present] * there[present]))
        total[total <= information_by_chance(self.pair_count, confidence)] = 0
        return total


def information_by_chance(pair_count: int, confidence: float = CONFIDENCE) -> float:
    """Return the bits of information that independent bits of this many pairs exceed only with a small probability.

    A random bit is 1 in a share of the values that differs from 1/2 by chance; the bound is the resulting loss of
    entropy.
    """
    share = min(1.0, 0.5 + NormalDist().inv_cdf((1 + confidence) / 2) / (2 * math.sqrt(pair_count)))
    return 1.0 + sum(part * math.log2(part) for part in (share, 1 - share) if part > 0)


def keepbits(informations: Sequence[NDArray[np.float64]], itemsize: int, share: float) -> int:
    """Return the number of bits of the significand that keep a share of the information along each axis."""
    most = SIGNIFICAND_BITS[itemsize]
    needed = []
    for information in informations:
        sums = np.cumsum(information)
        if sums[-1] > 0:
            # The last sum is the total itself, so that rounding cannot make the share unreachable.
            needed.append(int(np.argmax(sums >= share * sums[-1])) + 1 - (information.size - most))
    return min(max(*needed, 1), most) if needed else most
