"""Parts in which an array goes from one grid to another: whole chunks, within bounds, with few reads."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.arrays import Grid, Parts, Region
from tamis.arrays.gather import gathered_shape, pieces_of, several_chunks

MIB = 1 << 20


@pytest.mark.parametrize(
    ("shape", "pieces", "chunks", "most", "expected"),
    [
        ((100, 192, 288), (1, 192, 288), (16, 16, 16), 32 * MIB, (16, 192, 288)),
        ((60, 384, 320), (1, 384, 320), (60, 16, 16), 32 * MIB, (60, 384, 320)),
        ((512, 512, 512), (1, 1, 512), (64, 64, 64), 32 * MIB, (64, 64, 512)),
        # Nothing to gain, and no room.
        ((100, 192, 288), (1, 192, 288), (4, 192, 288), 32 * MIB, (4, 192, 288)),
        ((100, 192, 288), (1, 192, 288), (1, 192, 288), 32 * MIB, (1, 192, 288)),
        ((100, 192, 288), (1, 192, 288), (16, 16, 16), 1, (16, 16, 16)),
        # Of pieces of 12 steps and chunks of 16, four and three fill the same part.
        ((96, 8), (12, 8), (16, 8), 32 * MIB, (48, 8)),
        ((5,), (5,), (8,), MIB, (8,)),
    ],
    ids=str,
)
def test_gathered_shape_of_known_grids(
    shape: tuple[int, ...], pieces: tuple[int, ...], chunks: tuple[int, ...], most: int, expected: tuple[int, ...]
) -> None:
    assert gathered_shape(shape, pieces, chunks, 4, most) == expected


def reads(parts: list[Region], pieces: tuple[int, ...], shape: tuple[int, ...]) -> int:
    return sum(
        math.prod(-(-axis.stop // step) - axis.start // step for axis, step in zip(part, pieces, strict=True))
        for part in parts
    )


axes = st.tuples(st.integers(1, 40), st.integers(1, 12), st.integers(1, 12))


@given(st.lists(axes, min_size=1, max_size=3), st.integers(1, 4000))
def test_gathered_shape_of_any_grids_is_whole_chunks_in_bounds_and_never_worse(
    axes: list[tuple[int, int, int]], most: int
) -> None:
    shape, pieces, chunks = (tuple(each) for each in zip(*axes, strict=True))
    gathered = gathered_shape(shape, pieces, chunks, 1, most)
    assert all(whole % step == 0 for whole, step in zip(gathered, chunks, strict=True))
    size = math.prod(min(whole, extent) for whole, extent in zip(gathered, shape, strict=True))
    assert size <= most or gathered == chunks
    before, after = (reads([*Parts(Grid(shape, each))], pieces, shape) for each in (chunks, gathered))
    assert Grid(shape, pieces).chunk_count <= after <= before


@given(st.lists(axes, min_size=1, max_size=3), st.integers(1, 500))
def test_pieces_of_cover_a_part_once_and_cut_no_piece_of_the_source(
    axes: list[tuple[int, int, int]], least: int
) -> None:
    shape, pieces, starts = (tuple(each) for each in zip(*axes, strict=True))
    part = tuple(slice(min(start, extent) - 1, extent) for start, extent in zip(starts, shape, strict=True))
    seen = np.zeros(shape, int)
    for each in pieces_of(part, pieces, 1, least):
        seen[each] += 1
        for inside, outer, step in zip(each, part, pieces, strict=True):
            assert inside.start % step == 0 or inside.start == outer.start
            assert inside.stop % step == 0 or inside.stop == outer.stop
    assert (seen[part] == 1).all()
    assert seen.sum() == seen[part].size


def test_pieces_of_small_pieces_come_several_at_once() -> None:
    part = (slice(0, 100), slice(0, 100))
    assert len(pieces_of(part, (1, 10), 4, 4000)) == 10
    assert len(pieces_of(part, (1, 10), 4, 1)) == 1000


@pytest.mark.parametrize(
    ("shape", "chunk_shape", "most", "expected"),
    [
        ((100, 8, 8), (1, 8, 8), 640, (10, 8, 8)),
        ((100, 20, 8), (1, 8, 8), 640, (3, 24, 8)),
        ((100, 64), (4, 8), 100, (4, 24)),
        ((100, 64), (4, 8), 10, (4, 8)),
        ((3, 64), (4, 64), 10**6, (4, 64)),
        ((10,), (3,), 10**6, (12,)),
    ],
)
def test_several_chunks_follow_each_other_in_the_order_of_the_array(
    shape: tuple[int, ...], chunk_shape: tuple[int, ...], most: int, expected: tuple[int, ...]
) -> None:
    assert several_chunks(shape, chunk_shape, most) == expected
