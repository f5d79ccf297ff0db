"""What chunks hold beyond the end of an array: the fill value where it can grow, repeated values elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tamis import BoundError, Pipeline
from tamis.filters import ChunkType
from tamis.meaning import Missing
from tamis.meaning.missing import Flags
from tamis.rewrite.encode import ChunkEncoder
from tamis.rewrite.values import Padding

REST = "zfp(accuracy=0.1)|shuffle|deflate(4)"
FILL = np.float32(-999)


def field(shape: tuple[int, ...]) -> NDArray[Any]:
    return (50 * np.sin(np.arange(np.prod(shape)) / 11)).reshape(shape).astype("f4")


def through(text: str, values: NDArray[Any], shape: tuple[int, ...], padding: Padding, **options: Any) -> Any:
    chunk, pipeline = ChunkType(values.dtype, shape), Pipeline.parse(text)
    encoder = ChunkEncoder(pipeline, chunk, padding, **options)
    made, proven = encoder.encode(values), encoder.encode_proven(values)
    assert proven.stored == made
    assert proven.comparison.error <= (0.0 if made.mask & 1 else 0.1)
    return pipeline.decode(made.data, made.mask, chunk), made.mask


def test_pad_fill_value_along_growing_axes_and_last_values_along_others() -> None:
    padded = Padding((True, False, True), FILL).pad(field((2, 3, 4)), (4, 5, 6))
    np.testing.assert_array_equal(padded[:2, :3, :4], field((2, 3, 4)))
    assert (padded[2:] == FILL).all()
    assert (padded[:, :, 4:] == FILL).all()
    np.testing.assert_array_equal(padded[:2, 3:, :4], np.repeat(field((2, 3, 4))[:, 2:], 2, axis=1))


@pytest.mark.parametrize("growing", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("rows", range(1, 9))
def test_encode_chunk_fill_value_beyond_growing_axes_keeps_its_bits(rows: int, growing: tuple[bool, ...]) -> None:
    found, mask = through(REST, field((rows, 6)), (8, 8), Padding(growing, FILL), missing=Missing((FILL,)))
    assert np.abs(found[:rows, :6] - field((rows, 6))).max() <= 0.1
    assert not growing[0] or (found[rows:, :6] == FILL).all()
    assert not growing[1] or (found[:rows, 6:] == FILL).all()
    # Whole blocks of the fill value decode to it; 6 columns end inside of a block.
    assert bool(mask & 1) == (growing[1] or (growing[0] and rows % 4 > 0))


@pytest.mark.parametrize("fill", [-999, 9.96921e36, np.nan, np.inf, 0, 1e-40])
@pytest.mark.parametrize("text", [REST, "zfp(rate=8)|shuffle", "zfp(precision=12)", "deflate", "none"])
def test_encode_chunk_any_fill_value_that_was_chosen_keeps_its_bits(text: str, fill: float) -> None:
    for rows in range(1, 8):
        chunk, pipeline = ChunkType(np.dtype("f4"), (8, 8)), Pipeline.parse(text)
        padding = Padding((True, False), np.float32(fill))
        made = ChunkEncoder(pipeline, chunk, padding).encode(field((rows, 8)))
        found = pipeline.decode(made.data, made.mask, chunk)[rows:]
        np.testing.assert_array_equal(found.view("u4"), np.full(found.shape, fill, "f4").view("u4"))


def test_encode_chunk_default_fill_value_keeps_the_bound_through_zfp() -> None:
    padding = Padding((True, False), np.float32(0), exact=False)
    found, mask = through(REST, field((5, 8)), (8, 8), padding)
    assert mask & 1 == 0
    assert np.abs(found[5:]).max() <= 0.1
    assert (found[5:] != 0).any()
    # Without a bound nothing but its bits would do, and zeros would cost their neighbours.
    for text in ("zfp(rate=8)", "zfp(precision=12)"):
        chunk, pipeline = ChunkType(np.dtype("f4"), (8, 8)), Pipeline.parse(text)
        made = ChunkEncoder(pipeline, chunk, padding).encode(field((5, 8)))
        assert made.mask == 1


def test_encode_chunk_required_filter_repeats_values_where_it_cannot_keep_the_fill_value() -> None:
    required, padding = "zfp(accuracy=0.1)!", Padding((True, False), FILL)
    found, mask = through(required, field((4, 8)), (8, 8), padding)
    assert mask == 0
    assert (found[4:] == FILL).all()
    for fill in (FILL, np.float32(np.nan)):
        found, mask = through(required, field((5, 8)), (8, 8), Padding((True, False), fill))
        assert mask == 0
        np.testing.assert_allclose(found[5:], np.repeat(field((5, 8))[4:], 3, axis=0), atol=0.1)
    broken = field((5, 8))
    broken[0, 0] = 1e30
    with pytest.raises(BoundError, match=r"zfp\(accuracy=0.1\) cannot keep an error of at most 0\.1"):
        through(required, broken, (8, 8), padding)


def test_encode_filled_chunk_that_is_partial_has_its_missing_values_itself() -> None:
    """Readers that know no companion see the fill value in steps that are left out later."""
    values = field((5, 8))
    values[:, 3] = FILL
    missing, table = Missing((FILL,)), Flags.of([FILL], np.dtype("f4"))
    flags = table.find(values)
    assert flags is not None
    chunk, pipeline = ChunkType(values.dtype, (8, 8)), Pipeline.parse(REST)
    padding = Padding((True, False), FILL)
    made = ChunkEncoder(pipeline, chunk, padding, missing).encode_filled(values, flags, table)
    assert made.mask & 1
    np.testing.assert_array_equal(pipeline.decode(made.data, made.mask, chunk), padding.pad(values, (8, 8)))
    made = ChunkEncoder(pipeline, chunk, padding, missing).encode_filled(values[:4], flags[:4], table)
    assert made.mask & 1 == 0
    assert (pipeline.decode(made.data, made.mask, chunk)[4:] == FILL).all()


@pytest.mark.parametrize(
    ("rows", "fill", "expected"), [(4, -999, False), (5, -999, True), (8, np.nan, False), (4, np.nan, True)]
)
def test_shares_blocks_where_zfp_cannot_keep_the_fill_value(rows: int, fill: float, expected: bool) -> None:
    assert Padding((True, False), np.float32(fill)).shares_blocks((rows, 6), (8, 8)) == expected
    assert not Padding((False, False), np.float32(fill)).shares_blocks((rows, 6), (8, 8))


@pytest.mark.parametrize(
    ("extent", "most", "fill", "expected"),
    [
        (31, 32, -999, 28),
        (10, 12, -999, 8),
        (12, 32, -999, 32),  # whole blocks of the fill value cost next to nothing
        (12, 32, np.nan, 12),  # zfp codes no NaN
        (100, 64, -999, 64),
        (101, 64, -999, 48),
        (3, 8, -999, 8),
        (1000, 8, np.nan, 8),
    ],
)
def test_best_step_leaves_few_steps_to_other_filters(extent: int, most: int, fill: float, expected: int) -> None:
    padding = Padding((True, False), np.float32(fill))
    assert padding.best_step(0, extent, most) == expected
    assert padding.best_step(1, extent, most) == most // 4 * 4
    lossless = [padding.lossless_steps(0, extent, step) for step in range(4, most + 1, 4)]
    assert padding.lossless_steps(0, extent, expected) < min(lossless) + max(extent / 20, 1)


def test_best_chunks_are_whole_blocks_or_even_parts_of_the_array() -> None:
    padding = Padding((True, False), FILL)
    assert padding.best_chunks((31, 50), (16, 16)) == (31, 16)
    assert padding.best_chunks((90, 50), (16, 16)) == (30, 16)
    assert padding.best_chunks((97, 50), (16, 16)) == (32, 16)
    assert padding.best_chunks((96, 50), (16, 16)) == (16, 16)
    assert padding.best_chunks((3, 50), (4, 16)) == (3, 16)
    assert padding.best_chunks((10, 50), (12, 16)) == (8, 16)  # of 10 a sixth would be padding
    assert padding.lossless_share((31, 50), (16, 16)) == pytest.approx(15 / 31)
    assert padding.lossless_share((31, 50), (31, 16)) == 0
