"""The grid of chunks over an array, and default chunk shapes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import Pipeline, Zfp
from tamis.advice import Chunking
from tamis.advice.chunk_shapes import padding_note
from tamis.arrays import OBJECT_NBYTES, default_chunks
from tamis.arrays.grid import chunks_for_objects, region
from tamis.filters import ChunkType

GRIDS = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 11)), max_size=4).map(
    lambda axes: (tuple(n for n, _ in axes), tuple(step for _, step in axes))
)
SHAPES = st.lists(st.one_of(st.integers(0, 5), st.integers(1, 5000), st.integers(1, 10**9)), max_size=7).map(tuple)


def whole(shape: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(0, extent) for extent in shape)


def test_region_at_the_end_smaller() -> None:
    assert region((8, 0), (10, 3), (4, 5)) == (slice(8, 10), slice(0, 3))


def test_grid_of_other_rank_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        region((0, 0), (4, 4), (2,))


@given(SHAPES, st.sampled_from([1, 2, 4, 8, 16]), st.booleans())
def test_default_chunks_any_shape_as_promised(shape: tuple[int, ...], itemsize: int, zfp: bool) -> None:
    chunks = default_chunks(shape, itemsize, zfp=zfp)
    assert len(chunks) == len(shape)
    assert all(1 <= chunk <= max(extent, 1) for chunk, extent in zip(chunks, shape, strict=True))
    assert math.prod(chunks) * itemsize <= 1 << 20
    if zfp:
        assert sum(chunk > 1 for chunk in chunks) <= 4
        assert all(chunk in (1, extent) or chunk % 4 == 0 for chunk, extent in zip(chunks, shape, strict=True))
    if not zfp or sum(extent > 1 for extent in shape) <= 4:
        assert math.prod(chunks) * itemsize >= min(1 << 14, math.prod(max(extent, 1) for extent in shape) * itemsize)


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=5).map(tuple), st.sampled_from(["f4", "f8"]))
def test_default_chunks_any_shape_inspect_has_no_better_ones(shape: tuple[int, ...], dtype: str) -> None:
    pipeline = Pipeline.parse("zfp(accuracy=0.1)|fletcher32")
    chunk = ChunkType(np.dtype(dtype), default_chunks(shape, int(dtype[1]), zfp=True))
    asked = Chunking(shape, (False,) * len(shape), chunk, pipeline, {})
    noted = [each for each in asked.notes if each.code in ("zfp-padding", "tiny-chunks", "large-chunks")]
    assert not noted
    assert not padding_note("x", asked)


@given(SHAPES, st.sampled_from(["f4", "f8"]))
def test_default_chunks_any_shape_taken_by_zfp(shape: tuple[int, ...], dtype: str) -> None:
    chunk = ChunkType(np.dtype(dtype), default_chunks(shape, int(dtype[1]), zfp=True))
    if math.prod(chunk.shape) > 1:
        Zfp(rate=16).check(chunk)


@pytest.mark.parametrize("shape", [(100_000, 2, 2, 2), (3, 10**6, 3, 3), (10**6, 2, 2), (10**9, 2), (10**9,)], ids=str)
def test_default_chunks_long_axis_taken_by_zfp(shape: tuple[int, ...]) -> None:
    Zfp(rate=16).check(ChunkType(np.dtype("f4"), default_chunks(shape, 4, zfp=True)))


@pytest.mark.parametrize(
    ("shape", "itemsize", "lossy", "lossless"),
    [
        ((), 4, (), ()),
        ((0,), 4, (1,), (1,)),
        ((100, 192, 288), 4, (4, 192, 288), (4, 192, 288)),
        ((3, 30, 192, 288), 4, (1, 4, 192, 288), (3, 4, 64, 288)),
        ((10, 4, 2, 61, 120), 8, (1, 4, 1, 61, 120), (2, 4, 2, 61, 120)),
        ((12, 4, 2, 61, 120), 8, (4, 4, 1, 61, 120), (2, 4, 2, 61, 120)),
        ((10, 20), 8, (10, 20), (10, 20)),
        ((3, 20), 8, (3, 20), (3, 20)),
        ((3, 200, 200), 8, (1, 200, 200), (3, 200, 200)),
        ((10**9,), 4, (1 << 18,), (1 << 18,)),
        ((1 << 18, 10), 8, (13104, 10), (13104, 10)),
    ],
    ids=str,
)
def test_default_chunks_known_shapes_at_most_1_mib(
    shape: tuple[int, ...], itemsize: int, lossy: tuple[int, ...], lossless: tuple[int, ...]
) -> None:
    assert default_chunks(shape, itemsize, zfp=True) == lossy
    assert default_chunks(shape, itemsize, zfp=False) == lossless


@given(
    st.lists(st.tuples(st.integers(0, 10**5), st.integers(1, 2000)), min_size=1, max_size=4),
    st.sampled_from([1, 4, 8]),
    st.floats(1, 100),
)
def test_chunks_for_objects_fit_or_are_all(axes: list[tuple[int, int]], itemsize: int, ratio: float) -> None:
    shape, own = zip(*axes, strict=True)
    chunks = chunks_for_objects(shape, own, itemsize, ratio)
    least, most = OBJECT_NBYTES
    nbytes = math.prod(chunks) * itemsize
    assert nbytes <= most * ratio
    assert all(step <= max(extent, before) for step, extent, before in zip(chunks, shape, own, strict=True))
    is_all = all(step >= extent for step, extent in zip(chunks, shape, strict=True))
    assert is_all or nbytes >= min(least * ratio, (64 << 20) / 2.1) or max(shape) < 10


def test_chunks_for_objects_are_merged_where_there_are_most() -> None:
    assert chunks_for_objects((400, 180, 360), (10, 36, 36), 4, 1.0) == (200, 60, 120)
    assert chunks_for_objects((8760, 180, 360), (1, 180, 360), 4, 2.0) == (64, 180, 360)
