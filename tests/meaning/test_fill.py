"""Gaps filled from beside them, and chunks encoded so."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import DataError, Pipeline, TamisError
from tamis.filters import ChunkType
from tamis.meaning import Missing
from tamis.meaning.companions import fill_gaps
from tamis.meaning.missing import Flags
from tamis.rewrite.encode import ChunkEncoder

PIPELINE = Pipeline.parse("zfp(accuracy=0.1)|shuffle|deflate(4)|fletcher32")


@st.composite
def chunks(draw: st.DrawFn) -> tuple[Any, Any, tuple[int, ...]]:
    chunk = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=5)))
    shape = tuple(draw(st.integers(1, extent)) for extent in chunk)
    seed, share = draw(st.integers(0, 2**32 - 1)), draw(st.sampled_from([0.02, 0.5, 0.98, 1]))
    numbers = np.random.default_rng(seed)
    return numbers.permutation(math.prod(shape)).reshape(shape) + 1, numbers.random(shape) < share, chunk


@given(chunks())
def test_gaps_filled_with_values_of_their_block_only(drawn: tuple[Any, Any, tuple[int, ...]]) -> None:
    values, gaps, chunk = drawn
    filled = fill_gaps(values, gaps, chunk)
    assert np.array_equal(filled[~gaps], values[~gaps])
    longer = [axis for axis, extent in enumerate(chunk) if extent > 1]
    place = {int(value): index for index, value in np.ndenumerate(values)}
    blocks = np.stack([np.indices(values.shape)[axis] // 4 for axis in longer]) if longer else None
    elsewhere = set()
    for index in zip(*np.nonzero(gaps), strict=True):
        if gaps.all():
            assert filled[index] == 0
            continue
        own = (
            np.ones(values.shape, bool)
            if blocks is None
            else (blocks == blocks[(..., *index)][(...,) + (None,) * values.ndim]).all(0)
        )
        inside = own & ~gaps
        assert not gaps[place[int(filled[index])]]
        if inside.any() and 0 < len(longer) <= 4:
            assert inside[place[int(filled[index])]], "a block has values of its own"
        else:
            elsewhere.add(int(filled[index]))
    assert len(elsewhere) <= 1, "blocks without values take one for all of the chunk"


def test_gap_takes_the_nearest_along_the_second_axis_first() -> None:
    values = np.zeros((4, 4, 4), "f4")
    values[1, 0, 2], values[1, 3, 2], values[1, 2, 0] = 5, 6, 7
    gaps = np.ones(values.shape, bool)
    gaps[1, 0, 2] = gaps[1, 3, 2] = gaps[1, 2, 0] = False
    filled = fill_gaps(values, gaps, (4, 4, 4))
    assert filled[1, :, 2].tolist() == [5, 5, 6, 6]
    assert filled[1, :, 0].tolist() == [7, 7, 7, 7]
    assert np.array_equal(filled[0], filled[1])
    assert np.array_equal(filled[3], filled[1])


def field(shape: tuple[int, ...]) -> Any:
    grid = np.meshgrid(*(np.arange(extent) / 9 for extent in shape), indexing="ij")
    return (20 + 10 * np.sin(sum(grid))).astype("f4")


@pytest.mark.parametrize(
    ("shape", "chunk"),
    [
        ((50,), (64,)),
        ((30, 21), (30, 24)),
        ((1, 30, 21), (1, 32, 32)),
        ((9, 1, 13, 14), (12, 1, 16, 16)),
        ((6, 5, 9, 7), (8, 8, 9, 8)),
    ],
)
def test_encode_filled_keeps_valid_values_and_gives_missing_back(
    shape: tuple[int, ...], chunk: tuple[int, ...]
) -> None:
    values = field(shape)
    table, missing = Flags.of([9.96921e36], values.dtype), Missing((np.float32(9.96921e36),))
    gaps = np.random.default_rng(1).random(shape)
    values[gaps < 0.2], values[gaps > 0.9] = 9.96921e36, np.nan
    flags = table.find(values)
    assert flags is not None
    encoder = ChunkEncoder(PIPELINE, ChunkType(values.dtype, chunk), missing=missing)
    found = encoder.encode_filled(values, flags, table)
    assert found.mask == 0b0110
    again = PIPELINE.decode(found.data, found.mask, ChunkType(values.dtype, chunk))
    part = again[tuple(slice(extent) for extent in shape)].copy()
    valid = flags == 0
    assert np.abs(part - values)[valid].max() <= 0.1
    assert part[~valid].max() < 31, "other readers see values like those beside them"
    table.restore(part, flags)
    assert part[~valid].tobytes() == values[~valid].tobytes()


def test_encode_filled_nan_of_other_bits_stays_where_it_is() -> None:
    values = field((8, 8))
    values[2, 3:4].view("u4")[...] = 0x7FC00042
    table = Flags.of([], values.dtype)
    flags = table.find(values)
    assert flags is not None
    assert flags[2, 3] == table.stored_flag
    encoder = ChunkEncoder(PIPELINE, ChunkType(values.dtype, (8, 8)), missing=Missing())
    found = encoder.encode_filled(values, flags, table)
    assert found.mask == 1
    assert PIPELINE.decode(found.data, 1, ChunkType(values.dtype, (8, 8))).tobytes() == values.tobytes()
    required = Pipeline.parse("zfp(accuracy=0.1)!")
    with pytest.raises(DataError, match="NaN"):
        ChunkEncoder(required, ChunkType(values.dtype, (8, 8)), missing=Missing()).encode_filled(values, flags, table)


@pytest.mark.parametrize(
    ("values", "fill", "accuracy"),
    [
        (np.array([2**30 + 5, -(2**30), 3, 9] * 16, "i4").reshape(8, 8), 9, "2"),
        (np.array([1e300, -1e300, 3, -99] * 16).reshape(8, 8), -99, "0.1"),
    ],
)
def test_encode_filled_values_that_zfp_cannot_keep_are_stored_as_they_are(
    values: Any, fill: Any, accuracy: str
) -> None:
    pipeline = Pipeline.parse(f"zfp(accuracy={accuracy})|deflate")
    table = Flags.of([fill], values.dtype)
    flags = table.find(values)
    assert flags is not None
    chunk = ChunkType(values.dtype, (8, 8))
    encoder = ChunkEncoder(pipeline, chunk, missing=Missing((values.dtype.type(fill),)))
    found = encoder.encode_filled(values, flags, table)
    assert found.mask & 1
    assert pipeline.decode(found.data, found.mask, chunk).tobytes() == values.tobytes()
    required = Pipeline.parse(f"zfp(accuracy={accuracy})!")
    with pytest.raises(TamisError, match=r"zfp\(accuracy|expected"):
        ChunkEncoder(required, chunk, missing=Missing((values.dtype.type(fill),))).encode_filled(values, flags, table)
