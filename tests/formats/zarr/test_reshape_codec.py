"""The Zarr 3 codec reshape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import tamis
from tamis.zarr import ReshapeCodec


@pytest.mark.parametrize(
    ("shape", "chunk", "expected"),
    [
        ([[0, 1], [2], 3], (100, 50, 64, 3), (5000, 64, 3)),
        ([[0, 1], [2]], (1, 192, 288), (192, 288)),
        ([-1], (2, 3), (6,)),
        ([2, -1, [3]], (4, 3, 5, 7), (2, 30, 7)),
        ([], (), ()),
    ],
)
def test_shape_of_result(shape: list[Any], chunk: tuple[int, ...], expected: tuple[int, ...]) -> None:
    assert ReshapeCodec(shape).reshaped(chunk) == expected


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ([[1], [0]], "increasing order"),
        ([[1, 0], 10], "increasing order"),
        ([-1, -1], "-1 at most once"),
        ([0], "extents above 0"),
        ([1.5], "extents above 0"),
        (["a"], "extents above 0"),
        ("ab", "a list of extents"),
        (3, "a list of extents"),
    ],
)
def test_malformed_shape_refused(shape: Any, text: str) -> None:
    with pytest.raises(tamis.ParameterError, match=text):
        ReshapeCodec(shape)


@pytest.mark.parametrize(
    ("shape", "chunk", "text"),
    [
        ([7], (2, 3), "as many values"),
        ([-1, 4], (2, 3), "as many values"),
        ([[0], [5]], (2, 3), "input axes below 2"),
        ([3, [1]], (2, 3, 1), "as many values"),
        ([6, [1], 1], (2, 3, 3), "to begin where the input axis 1 does"),
    ],
)
def test_shape_that_does_not_fit_the_chunk_refused(shape: list[Any], chunk: tuple[int, ...], text: str) -> None:
    with pytest.raises(tamis.ParameterError, match=text):
        ReshapeCodec(shape).reshaped(chunk)


@pytest.mark.parametrize(
    ("chunk", "expected"),
    [((1, 8, 9), (8, 9)), ((4, 1, 3, 1, 2, 1), (4, 3, 2)), ((1, 1, 5), (5,)), ((5, 1), (5,)), ((2, 1, 1, 2), (2, 2))],
)
def test_squeezing_joins_unit_axes(chunk: tuple[int, ...], expected: tuple[int, ...]) -> None:
    codec = ReshapeCodec.squeezing(chunk)
    assert codec is not None
    assert codec.reshaped(chunk) == expected
    assert ReshapeCodec.from_dict(codec.to_dict()) == codec


@pytest.mark.parametrize("chunk", [(2, 3), (1, 1), ()])
def test_squeezing_not_needed(chunk: tuple[int, ...]) -> None:
    assert ReshapeCodec.squeezing(chunk) is None


def test_array_written_and_read(tmp_path: Path) -> None:
    values = np.arange(48.0).reshape(4, 3, 4)
    array = zarr.create_array(
        str(tmp_path / "a.zarr"),
        shape=values.shape,
        dtype="f8",
        chunks=(2, 3, 2),
        filters=[ReshapeCodec([[0, 1], [2]])],
    )
    array[...] = values
    np.testing.assert_array_equal(zarr.open_array(str(tmp_path / "a.zarr"))[...], values)


def test_metadata_with_other_keys_refused() -> None:
    with pytest.raises(tamis.ParameterError, match="shape alone"):
        ReshapeCodec.from_dict({"name": "reshape", "configuration": {"shape": [1], "order": "F"}})
