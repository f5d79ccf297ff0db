"""The grid of chunks over an array, and default chunk shapes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import zfp
from tamis.chunks.grid import default_chunks, region, touched
from tamis.filters import ChunkType, Zfp

GRIDS = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 11)), max_size=4).map(
    lambda axes: (tuple(n for n, _ in axes), tuple(step for _, step in axes))
)
SHAPES = st.lists(st.one_of(st.integers(0, 5), st.integers(1, 5000), st.integers(1, 10**9)), max_size=7).map(tuple)


def whole(shape: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(0, extent) for extent in shape)


@given(GRIDS)
def test_touched_by_all_of_any_array_covers_it_exactly_once(grid: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    shape, chunks = grid
    times = np.zeros(shape, int)
    parts = touched([whole(shape)], shape, chunks)
    for part in parts:
        assert times[part].size
        assert all(each.start % step == 0 for each, step in zip(part, chunks, strict=True))
        times[part] += 1
    assert (times == 1).all()
    assert len(parts) == math.prod(-(-extent // step) for extent, step in zip(shape, chunks, strict=True))
    assert parts == sorted(parts, key=lambda part: [each.start for each in part]), "last axis fastest"


def test_region_at_the_end_smaller() -> None:
    assert region((8, 0), (10, 3), (4, 5)) == (slice(8, 10), slice(0, 3))


def test_grid_of_other_rank_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        region((0, 0), (4, 4), (2,))


@given(SHAPES, st.sampled_from([1, 2, 4, 8, 16]))
def test_default_chunks_any_shape_as_promised(shape: tuple[int, ...], itemsize: int) -> None:
    chunks = default_chunks(shape, itemsize)
    assert len(chunks) == len(shape)
    assert all(1 <= chunk <= max(extent, 1) for chunk, extent in zip(chunks, shape, strict=True))
    assert sum(chunk > 1 for chunk in chunks) <= 4
    assert math.prod(chunks) * itemsize <= 1 << 20
    longer = [axis for axis, extent in enumerate(shape) if extent > 1][-4:]
    assert all(chunks[axis] in (shape[axis], chunks[axis] // 4 * 4) for axis in longer)
    most = zfp.max_extent(max(len(longer), 1))
    last_cut = max((axis for axis in longer if chunks[axis] < min(shape[axis], most)), default=0)
    assert all(chunks[axis] <= 4 for axis in longer if axis < last_cut), "the slowest axes are cut first"


@given(SHAPES, st.sampled_from(["f4", "f8"]))
def test_default_chunks_any_shape_taken_by_zfp(shape: tuple[int, ...], dtype: str) -> None:
    chunk = ChunkType(np.dtype(dtype), default_chunks(shape, int(dtype[1])))
    if math.prod(chunk.shape) > 1:
        Zfp(rate=16).check(chunk)


@pytest.mark.parametrize("shape", [(100_000, 2, 2, 2), (3, 10**6, 3, 3), (10**6, 2, 2), (10**9, 2), (10**9,)], ids=str)
def test_default_chunks_long_axis_taken_by_zfp(shape: tuple[int, ...]) -> None:
    Zfp(rate=16).check(ChunkType(np.dtype("f4"), default_chunks(shape, 4)))


@pytest.mark.parametrize(
    ("shape", "itemsize", "chunks"),
    [
        ((), 4, ()),
        ((0,), 4, (1,)),
        ((100, 192, 288), 4, (4, 192, 288)),
        ((3, 30, 192, 288), 4, (3, 4, 72, 288)),
        ((10, 20), 8, (10, 20)),
        ((10**9,), 4, (1 << 18,)),
    ],
    ids=str,
)
def test_default_chunks_known_shapes_about_1_mib(
    shape: tuple[int, ...], itemsize: int, chunks: tuple[int, ...]
) -> None:
    assert default_chunks(shape, itemsize) == chunks


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 9), st.integers(1, 9), st.data())
def test_touched_chunks_are_those_that_share_an_element(
    rows: int, columns: int, high: int, wide: int, data: st.DataObject
) -> None:
    shape, chunks = (rows, columns), (high, wide)
    marks = np.zeros(shape, bool)
    parts = []
    for _ in range(data.draw(st.integers(0, 4))):
        top, left = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, columns - 1))
        part = (
            slice(top, data.draw(st.integers(top + 1, rows))),
            slice(left, data.draw(st.integers(left + 1, columns))),
        )
        parts.append(part)
        marks[part] = True
    every = touched([whole(shape)], shape, chunks)
    assert touched(parts, shape, chunks) == [part for part in every if marks[part].any()]
