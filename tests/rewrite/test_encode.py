"""One chunk encoded: what is padded, left out, decoded again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tamis import BoundError, ParameterError, Pipeline
from tamis.accuracy.difference import largest_error
from tamis.filters import ChunkType
from tamis.meaning import Missing
from tamis.rewrite.encode import ChunkEncoder, can_skip_loss, is_lossy

REST = "zfp(accuracy=0.1)|shuffle|deflate(4)|fletcher32"


def field(shape: tuple[int, ...] = (8, 8), dtype: str = "f4") -> NDArray[Any]:
    return (50 * np.sin(np.arange(np.prod(shape)) / 11)).reshape(shape).astype(dtype)


def through(
    text: str, values: NDArray[Any], shape: tuple[int, ...] = (8, 8), *, lossless: bool = False, **options: Any
) -> tuple[Any, int]:
    chunk = ChunkType(values.dtype, shape)
    pipeline = Pipeline.parse(text)
    encoder = ChunkEncoder(pipeline, chunk, **options)
    made = encoder.encode_lossless(values) if lossless else encoder.encode(values)
    return pipeline.decode(made.data, made.mask, chunk), made.mask


@pytest.mark.parametrize(
    ("text", "mask", "lossy", "skippable"),
    [
        ("none", 0, False, True),
        ("shuffle|deflate|fletcher32", 0, False, True),
        ("zfp(reversible=true)!", 0, False, True),
        ("zfp(accuracy=0.1)", 0, True, True),
        ("zfp(accuracy=0.1)", 1, False, True),
        ("zfp(accuracy=0.1)|deflate", 2, True, True),
        ("zfp(rate=8)!", 0, True, False),
        ("scaleoffset(kind=decimal,factor=2)", 0, True, True),
        ("zfp(precision=8)", 0, True, True),
    ],
)
def test_loss_of_pipelines_and_masks(text: str, mask: int, lossy: bool, skippable: bool) -> None:
    pipeline = Pipeline.parse(text)
    assert (is_lossy(pipeline, mask), can_skip_loss(pipeline)) == (lossy, skippable)


def test_encode_chunk_filters_for_raw_values_left_out_where_zfp_works_and_used_where_not() -> None:
    found, mask = through(REST, field())
    assert mask == 0b0110
    assert 0 < largest_error(field(), found) <= 0.1
    broken = field()
    broken[3, 3] = np.inf
    found, mask = through(REST, broken)
    assert mask == 0b0001
    np.testing.assert_array_equal(found, broken)


def test_encode_chunk_bytes_filters_alone_behind_zfp_are_used() -> None:
    assert through("zfp(rate=16)|deflate", np.zeros((8, 8), "f4"))[1] == 0


@pytest.mark.parametrize("text", ["zfp(accuracy=0.1)", REST])
def test_encode_chunk_bound_that_zfp_misses_goes_lossless(text: str) -> None:
    values = field()
    values[0, 0] = 1e30
    found, mask = through(text, values)
    assert mask == 1
    np.testing.assert_array_equal(found, values)


def test_encode_chunk_bound_that_a_required_filter_misses_refused() -> None:
    values = field()
    values[0, 0] = 1e30
    with pytest.raises(BoundError, match=r"zfp\(accuracy=0.1\) cannot keep an error of at most 0\.1.*\?"):
        through("zfp(accuracy=0.1)!", values)


def test_encode_chunk_without_bound_is_not_judged() -> None:
    values = field()
    values[0, 0] = 1e30
    found, mask = through("zfp(rate=8)", values)
    assert mask == 0
    assert largest_error(values, found) > 50


@pytest.mark.parametrize("text", ["zfp(accuracy=0.1)", "zfp(rate=8)"])
def test_encode_chunk_missing_value_that_would_change_goes_lossless(text: str) -> None:
    values = field()
    values[2, 3] = -99.9
    found, mask = through(text, values)
    assert (mask, found[2, 3] == values[2, 3]) == (0, False)
    found, mask = through(text, values, missing=Missing((np.float32(-99.9),)))
    assert mask == 1
    np.testing.assert_array_equal(found, values)
    with pytest.raises(BoundError, match=r"cannot keep .*missing values"):
        through(f"{text}!", values, missing=Missing((np.float32(-99.9),)))


def test_encode_chunk_missing_values_that_stay_are_no_reason() -> None:
    values = field()
    values[4:, 4:] = -9999  # a block of nothing else
    found, mask = through("zfp(accuracy=0.1)", values, missing=Missing((np.float32(-9999),)))
    assert mask == 0
    assert (found[4:, 4:] == -9999).all()


def test_encode_chunk_integers_that_zfp_changes_within_a_small_tolerance_go_lossless() -> None:
    noise = np.random.default_rng(0).integers(-(2**29), 2**29, (8, 8), dtype="i4")
    found, mask = through("zfp(accuracy=1)", noise)
    assert mask == 1
    np.testing.assert_array_equal(found, noise)


def test_encode_chunk_part_of_it_padded_by_repetition_where_it_cannot_grow() -> None:
    values = field((5, 6))
    found, mask = through("zfp(accuracy=0.1)", values)
    assert mask == 0
    assert largest_error(np.pad(values, ((0, 3), (0, 2)), mode="edge"), found) <= 0.1


def test_encode_chunk_lossless_leaves_out_what_loses_or_refuses() -> None:
    found, mask = through(REST, field(), lossless=True)
    assert mask == 1
    np.testing.assert_array_equal(found, field())
    with pytest.raises(ParameterError, match="expected filters without loss or optional ones"):
        through("zfp(rate=8)!", field(), lossless=True)
