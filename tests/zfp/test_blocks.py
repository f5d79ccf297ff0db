"""Blocks of fixed-rate streams: which a selection touches, and decoding those alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import StreamError, zfp
from tamis.arrays.selection import select
from tamis.zfp.arrays import block_count, block_nbits, decode_blocks, nbytes_of, touched

pytestmark = pytest.mark.usefixtures("kernel")  # once for each


def field(shape: tuple[int, ...], dtype: str = "f4") -> Any:
    return (np.random.default_rng(0).standard_normal(shape).cumsum(axis=-1) * 100).astype(dtype)


def decoded(index: Any, shape: tuple[int, ...], mode: zfp.Mode, dtype: str = "f4") -> tuple[Any, Any, Any]:
    """All of a field, the same where only touched blocks were decoded, and the runs."""
    stream = zfp.encode(field(shape, dtype), mode)
    whole = zfp.decode(stream, shape, dtype, mode)
    nbits = block_nbits(mode, np.dtype(dtype), len(shape))
    assert nbits is not None
    runs = touched(index, shape)
    if runs is None:
        return whole, whole, None
    start, stop = nbytes_of(runs, nbits)
    out = np.full(shape, -12345, dtype)
    return whole, decode_blocks(stream[start:stop], start, runs, out, mode, nbits), runs


def inside(key: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """A selection as a piece of the one chunk has it."""
    return next(iter(select(key, shape).pieces(shape))).inside


KEYS: list[tuple[tuple[int, ...], Any, int]] = [
    ((400,), 5, 1),
    ((400_000,), slice(10, 4000, 3), 998),
    ((64, 64), 0, 16),
    ((512, 512), (slice(None), 63), 128),
    ((30, 31, 33), (29, 30, 32), 1),
    ((32, 32, 32), 7, 64),
    ((32, 32, 32), (slice(None), 7), 64),
    ((32, 32, 32), (slice(4, 13), slice(None), slice(8, 12)), 24),
    ((32, 32, 32), (slice(0, 32, 20), slice(0, 8)), 32),
    ((32, 32, 32), ([0, 31], slice(0, 4)), 16),
    ((16, 16, 16, 16), (3, slice(None), 5), 16),
]


@pytest.mark.parametrize(("shape", "key", "nblocks"), KEYS, ids=repr)
@pytest.mark.parametrize(("mode", "dtype"), [(zfp.Rate(7), "f4"), (zfp.Rate(11.3), "f8"), (zfp.Rate(9), "i4")])
def test_touched_part_of_an_array_only_its_blocks_decoded_and_right(
    shape: tuple[int, ...], key: Any, nblocks: int, mode: zfp.Mode, dtype: str
) -> None:
    index = inside(key, shape)
    whole, part, runs = decoded(index, shape, mode, dtype)
    assert sum(run.nblocks for run in runs) == nblocks < block_count(shape)
    assert np.array_equal(part[index], whole[index])
    mark = np.zeros(shape, bool)
    for run in runs:
        mark[run.where] = True
    assert np.all(part[~mark] == -12345)


@pytest.mark.parametrize("key", [(), (slice(None, None, 4),), (slice(0, 29),)])
def test_touched_every_block_none(key: Any) -> None:
    assert touched(inside(key, (32, 32, 32)), (32, 32, 32)) is None


def test_touched_where_calls_cost_more_than_blocks_none() -> None:
    assert touched(inside((slice(None), 0), (400, 8)), (400, 8)) is None


def test_touched_points_their_blocks_only() -> None:
    mask = np.zeros((32, 32, 32), bool)
    mask[[0, 1, 3, 31], [0, 1, 3, 31], [0, 1, 3, 31]] = True
    index = inside(mask, mask.shape)
    whole, part, runs = decoded(index, mask.shape, zfp.Rate(8))
    assert [run.first for run in runs] == [0, 511]
    assert np.array_equal(part[index], whole[index])


@given(st.data())
def test_decode_blocks_any_box_as_the_whole(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(2, 40), min_size=2, max_size=3)))
    bounds = [sorted(data.draw(st.integers(0, extent)) for _ in range(2)) for extent in shape]
    steps = [data.draw(st.integers(1, 9)) for _ in shape]
    key = tuple(slice(a, max(b, a + 1), step) for (a, b), step in zip(bounds, steps, strict=True))
    if any(each.start >= extent for each, extent in zip(key, shape, strict=True)):
        return
    index = inside(key, shape)
    whole, part, _ = decoded(index, shape, zfp.Rate(6))
    assert np.array_equal(part[index], whole[index])


@pytest.mark.parametrize("mode", [zfp.Accuracy(0.1), zfp.Precision(9), zfp.Reversible()])
def test_block_nbits_blocks_of_different_length_none(mode: zfp.Mode) -> None:
    assert block_nbits(mode, np.dtype("f4"), 3) is None


def test_block_nbits_expert_mode_of_one_length() -> None:
    assert block_nbits(zfp.Expert(minbits=500, maxbits=500), np.dtype("f4"), 3) == 500


def test_decode_blocks_stream_ends_before_refused() -> None:
    shape, mode = (32, 32, 32), zfp.Rate(8)
    stream = zfp.encode(field(shape), mode)
    runs = touched(inside(31, shape), shape)
    assert runs is not None
    start, stop = nbytes_of(runs, 512)
    assert stop == len(stream)
    with pytest.raises(StreamError, match="truncated"):
        decode_blocks(stream[start : stop - 1], start, runs, np.empty(shape, "f4"), mode, 512)
