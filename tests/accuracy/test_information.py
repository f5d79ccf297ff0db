"""Real information of bits, as Klöwer et al. (2021) define it: against counts made bit by bit."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tamis.accuracy import BitPairs, keepbits
from tamis.accuracy.fields import information_by_chance


def bits_of(value: Any) -> str:
    """The bits of a float, the highest first, with an exponent of sign and magnitude."""
    big = np.array(value).astype(f">f{value.itemsize}")
    bits = "".join(f"{byte:08b}" for byte in big.tobytes())
    width = 8 if value.itemsize == 4 else 11
    exponent = int(bits[1 : 1 + width], 2) - (1 << width - 1) + 1
    return f"{bits[0]}{int(exponent < 0)}{abs(exponent):0{width - 1}b}{bits[1 + width :]}"


def plain_information(values: NDArray[Any], valid: NDArray[np.bool_], axis: int) -> list[float]:
    """The definition, pair by pair: sum of p(a, b) * log2(p(a, b) / (p(a) * p(b))), without the test for chance."""
    pairs = []
    for index in np.ndindex(values.shape):
        after = tuple(i + (number == axis) for number, i in enumerate(index))
        if after[axis] < values.shape[axis] and valid[index] and valid[after]:
            pairs.append((bits_of(values[index]), bits_of(values[after])))
    found = []
    for bit in range(8 * values.itemsize):
        joint = Counter((one[bit], two[bit]) for one, two in pairs)
        total = 0.0
        for a, b in itertools.product("01", repeat=2):
            both = joint[a, b] / len(pairs)
            here = (joint[a, "0"] + joint[a, "1"]) / len(pairs)
            there = (joint["0", b] + joint["1", b]) / len(pairs)
            total += both * math.log2(both / (here * there)) if both else 0
        found.append(total)
    return found


def walk(shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    steps = np.random.default_rng(3).standard_normal(shape)
    for axis in range(len(shape)):
        steps = np.cumsum(steps, axis)
    return steps.astype(dtype)


@pytest.mark.parametrize("dtype", ["f4", "f8", ">f4"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_information_as_defined(dtype: str, axis: int) -> None:
    values = walk((5, 7, 6), dtype) / 4  # exponents of both signs
    valid = np.random.default_rng(4).random(values.shape) < 0.9
    expected = np.array(plain_information(values, valid, axis))
    found = BitPairs.of(values, valid, axis)
    chance = information_by_chance(found.pair_count)
    np.testing.assert_allclose(found.information(), np.where(expected > chance, expected, 0), atol=1e-12)
    assert found.information().any()


def test_information_of_parts_is_that_of_the_whole() -> None:
    values = walk((8, 9), "f4")
    whole = BitPairs.of(values, None, 1)
    parts = BitPairs.of(values[:3], None, 1).plus(BitPairs.of(values[3:], None, 1))
    assert parts.pair_count == whole.pair_count
    np.testing.assert_array_equal(parts.information(), whole.information())


def test_information_by_chance_is_what_random_bits_stay_below() -> None:
    random = np.random.default_rng(5)
    count, trials = 4000, 400
    above = 0
    for _ in range(trials):
        bits = random.integers(0, 2, (2, count))
        pair = BitPairs(count, *(np.array([row.sum()]) for row in (bits[0], bits[1], bits[0] & bits[1])))
        above += int(pair.information()[0] > 0)
    assert above / trials < 0.02
    assert information_by_chance(1) == 1
    assert information_by_chance(10**6) == pytest.approx(2 / math.log(2) * (2.5758293 / 2000) ** 2, rel=1e-4)


def test_information_of_noise_and_without_pairs_is_none() -> None:
    noise = np.random.default_rng(6).integers(0, 1 << 32, (100, 100), np.uint32) & np.uint32(0xBFFFFFFF)
    assert np.count_nonzero(BitPairs.of(noise.view("f4"), None, 0).information()) <= 2
    assert not BitPairs.of(np.ones((1, 4), "f4"), None, 0).information().any()
    assert not BitPairs.of(np.ones((4, 4), "f4"), np.zeros((4, 4), bool), 0).information().any()


def test_keepbits_of_rounded_values_are_the_bits_that_they_have() -> None:
    smooth = walk((60, 60), "f4")
    coarse = (smooth.view("u4") & np.uint32(0xFFFF0000)).view("f4")  # 7 bits of the significand
    informations = [BitPairs.of(coarse, None, axis).information() for axis in (0, 1)]
    assert 1 <= keepbits(informations, 4, 0.99) <= keepbits(informations, 4, 1.0) <= 7


def test_keepbits_counts_from_the_significand() -> None:
    information = np.zeros(32)
    information[[1, 9, 12]] = 1, 0.5, 0.5  # an exponent bit, and the first and fourth bit of the significand
    assert [keepbits([information], 4, share) for share in (0.4, 0.75, 0.76, 1.0)] == [1, 1, 4, 4]
    assert keepbits([np.zeros(32), information], 4, 1.0) == 4
    assert keepbits([np.zeros(32)], 4, 0.99) == 23
    assert keepbits([np.zeros(64)], 8, 0.99) == 52
