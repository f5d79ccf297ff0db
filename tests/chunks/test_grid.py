"""The grid of chunks over an array, and default chunk shapes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import zfp
from tamis.chunks.grid import chunk_count, chunk_origins, default_chunks, region
from tamis.filters import ChunkType, Zfp

GRIDS = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 11)), max_size=4).map(
    lambda axes: (tuple(n for n, _ in axes), tuple(step for _, step in axes))
)
SHAPES = st.lists(st.one_of(st.integers(0, 5), st.integers(1, 5000), st.integers(1, 10**9)), max_size=7).map(tuple)


@given(GRIDS)
def test_regions_any_grid_cover_the_array_exactly_once(grid: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    shape, chunks = grid
    times = np.zeros(shape, int)
    origins = list(chunk_origins(shape, chunks))
    for origin in origins:
        part = region(origin, shape, chunks)
        assert times[part].size
        assert all(start % step == 0 for start, step in zip(origin, chunks, strict=True))
        times[part] += 1
    assert (times == 1).all()
    assert len(origins) == len(set(origins)) == chunk_count(shape, chunks)
    assert origins == sorted(origins), "last axis fastest"


def test_region_at_the_end_smaller() -> None:
    assert region((8, 0), (10, 3), (4, 5)) == (slice(8, 10), slice(0, 3))


@pytest.mark.parametrize("function", [chunk_count, lambda shape, chunks: list(chunk_origins(shape, chunks))])
def test_grid_of_other_rank_refused(function: object) -> None:
    with pytest.raises(ValueError, match="zip"):
        function((4, 4), (2,))  # type: ignore[operator]


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
