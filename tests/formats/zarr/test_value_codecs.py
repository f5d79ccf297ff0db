"""The Zarr codecs scale_offset and cast_value: values as zarr-python 3.2 reads them, with any version of it."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cast_value_rs
import numpy as np
import pytest
import zarr
from hypothesis import assume, given
from hypothesis import strategies as st

import tamis
from tamis import DataError, ParameterError
from tamis.formats.zarr.value_codecs import (
    CastValueCodec,
    ScaleOffsetCodec,
    cast_values,
    scaled,
    unscaled,
    with_own_codecs,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore:overflow")

INTEGERS = [f"{kind}{nbits}" for kind in ("int", "uint") for nbits in (8, 16, 32, 64)]
FLOATS = ["float16", "float32", "float64"]
ROUNDINGS = ["nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away"]
BITS = (0, 7, 8, 15, 16, 24, 31, 32, 53, 63)
NUMBERS = [
    *(sign * (1 << bits) + step for sign in (1, -1) for bits in BITS for step in (-1, 0, 1)),
    *(65504, 65519, 65520, 5, 100, (1 << 64) - 1),
]
FRACTIONS = [0.5, 1.5, -0.5, -2.5, 0.49999999999999994, -0.0, 1e-40, 1e30, 3.4028235677973366e38, 255.5, -0.7, 127.5]
SPECIALS = [np.inf, -np.inf, np.nan]


def samples(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.array([*NUMBERS, *FRACTIONS, *SPECIALS], "f8").astype(dtype)
    limits = np.iinfo(dtype)
    return np.array([number for number in NUMBERS if limits.min <= number <= limits.max], dtype)


def outcome(function: Callable[..., Any], *arguments: Any, **options: Any) -> bytes | None:
    """Return the bytes of a result, with one NaN for all; None for an error."""
    try:
        result: np.ndarray[Any, Any] = function(*arguments, **options)
    except Exception:  # both raise kinds of their own
        return None
    if result.dtype.kind == "f":
        result = np.where(np.isnan(result), np.array(np.nan, result.dtype), result)
    return result.tobytes()


@pytest.mark.matrix
@pytest.mark.parametrize("source", INTEGERS + FLOATS)
@pytest.mark.parametrize("target", INTEGERS + FLOATS)
def test_cast_values_as_the_package_of_zarr_python(source: str, target: str) -> None:
    before, after = np.dtype(source), np.dtype(target)
    for rounding, mode in itertools.product(ROUNDINGS, (None, "clamp", "wrap")):
        if not CastValueCodec(target, rounding).can_cast(before) or (mode == "wrap" and after.kind == "f"):
            continue
        for value in samples(before):
            one = np.array([value])
            modes: Any = {"rounding_mode": rounding, "out_of_range_mode": mode, "scalar_map_entries": None}
            expected = outcome(cast_value_rs.cast_array, one, target_dtype=after, **modes)
            assert outcome(cast_values, one, after, rounding, mode) == expected, (value, rounding, mode)


def test_cast_values_maps_first() -> None:
    entries = [(np.float64(np.nan), np.int16(-1)), (np.float64(3), np.int16(7)), (np.float64(3), np.int16(8))]
    values = np.array([[np.nan, 3.0], [4.0, -0.0]])
    result = cast_values(values, np.dtype("i2"), entries=entries)
    np.testing.assert_array_equal(result, [[-1, 7], [4, 0]])
    with pytest.raises(DataError, match="expected values that int16 can hold, found 1000000000"):
        cast_values(np.array([1e9]), np.dtype("i2"), entries=entries)
    with pytest.raises(DataError, match="found nan"):
        cast_values(np.array([np.nan]), np.dtype("i2"), out_of_range="clamp")


@given(
    st.sampled_from(INTEGERS + FLOATS),
    st.lists(st.integers(-300, 300), max_size=6),
    st.integers(-200, 200),
    st.integers(-9, 9),
)
def test_scale_and_offset_as_zarr_python(name: str, numbers: list[int], offset: int, scale: int) -> None:
    stock = pytest.importorskip("zarr.codecs.scale_offset", reason="zarr before 3.2")
    dtype = np.dtype(name)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        numbers = [number for number in numbers if limits.min <= number <= limits.max]
        offset, scale = (min(max(number, limits.min), limits.max) for number in (offset, scale))
    assume(numbers)
    values, pair = np.array(numbers, dtype), (dtype.type(offset), dtype.type(scale or 1))
    with np.errstate(all="ignore"):
        assert outcome(unscaled, values, *pair) == outcome(stock._decode, values, *pair, scale_repr=scale)
        for value in values:
            one = np.array([value])
            assert outcome(scaled, one, *pair) == outcome(stock._encode, one, *pair)


def test_integers_that_the_scale_does_not_divide_are_refused() -> None:
    with pytest.raises(DataError, match="expected integers that 3 divides, found 7"):
        unscaled(np.array([6, 7], "i4"), np.int32(0), np.int32(3))
    with pytest.raises(DataError, match="expected values that int8 can hold, from -128 to 127, got 130"):
        unscaled(np.array([30], "i1"), np.int8(100), np.int8(1))
    with pytest.raises(DataError, match="got 128"):
        unscaled(np.array([-128], "i1"), np.int8(0), np.int8(-1))


@pytest.mark.parametrize(
    ("codec", "words"),
    [
        ({"name": "scale_offset", "configuration": {"factor": 2}}, "expected an object with offset, scale, got"),
        ({"name": "scale_offset", "configuration": {"scale": 0}}, "expected a scale other than 0, got 0"),
        ({"name": "cast_value", "configuration": {}}, "expected data_type to be one of float16"),
        ({"name": "cast_value"}, "expected data_type to be one of float16"),
        ({"name": "cast_value", "configuration": {"data_type": "bfloat16"}}, "got 'bfloat16'"),
        ({"name": "cast_value", "configuration": {"data_type": "int8", "rounding": "up"}}, "got 'up'"),
        ({"name": "cast_value", "configuration": {"data_type": "int8", "out_of_range": "no"}}, "wrap, got 'no'"),
    ],
)
def test_metadata_that_are_malformed_are_refused(codec: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        with_own_codecs([codec], "float32")


def test_codecs_that_are_not_ours_stay() -> None:
    others = [{"name": "transpose", "configuration": {"order": [0]}}, "bytes", 7, {"name": "cast_value"}]
    assert with_own_codecs(others, "complex64") == others
    assert with_own_codecs("bytes", "int8") == "bytes"
    assert with_own_codecs(["scale_offset"], "int8") == [ScaleOffsetCodec()]
    assert with_own_codecs(["scale_offset"], "bool") == ["scale_offset"]


def test_codecs_give_their_metadata_back() -> None:
    for metadata in (
        {"name": "scale_offset", "configuration": {}},
        {"name": "scale_offset", "configuration": {"offset": "NaN", "scale": 0.5}},
        {"name": "cast_value", "configuration": {"data_type": "int8"}},
        {
            "name": "cast_value",
            "configuration": {
                "data_type": "int8",
                "rounding": "towards-zero",
                "out_of_range": "wrap",
                "scalar_map": {"decode": [[0, "NaN"]]},
            },
        },
    ):
        (codec,) = with_own_codecs([metadata], "float64")
        assert codec.to_dict() == metadata


def packed(path: Path, **options: Any) -> np.ndarray[Any, Any]:
    """Write a packed array with zarr-python, and return the values that it reads."""
    from zarr.codecs import CastValue, ScaleOffset

    values = 250 + np.arange(120.0).reshape(10, 12) / 4
    values[3, 4:7] = np.nan
    missing = {"encode": [("NaN", -32768)], "decode": [(-32768, "NaN")]}
    array = zarr.create_array(
        path,
        shape=values.shape,
        dtype="f8",
        chunks=(4, 5),
        fill_value=np.nan,
        filters=[ScaleOffset(offset=270.0, scale=100.0), CastValue(data_type="int16", scalar_map=missing)],
        **options,
    )
    array[:] = values
    read = array[:]
    assert np.nanmax(np.abs(read - values)) < 0.01
    return np.asarray(read)


@pytest.mark.skipif(not hasattr(zarr.codecs, "CastValue"), reason="zarr before 3.2")
@pytest.mark.parametrize("shards", [None, (8, 10)])
def test_arrays_of_zarr_python_are_read_copied_and_verified(shards: Any, tmp_path: Path) -> None:
    expected = packed(tmp_path / "a.zarr", shards=shards)
    with tamis.open(tmp_path / "a.zarr") as file:
        np.testing.assert_array_equal(file["a"][...], expected)
        np.testing.assert_array_equal(file["a"][2:9:3, 5:], expected[2:9:3, 5:])
    for target in ("b.h5", "b.zarr"):
        tamis.repack(tmp_path / "a.zarr", tmp_path / target, {})
        assert tamis.verify(tmp_path / "a.zarr", tmp_path / target).ok
    np.testing.assert_array_equal(zarr.open(tmp_path / "b.zarr")["a"][:], expected)
    assert "read by  Zarr with zarr 3.2 and cast-value-rs" in str(tamis.inspect(tmp_path / "a.zarr"))


@pytest.mark.skipif(not hasattr(zarr.codecs, "CastValue"), reason="zarr before 3.2")
@pytest.mark.parametrize(("dtype", "stored"), [("f4", "int16"), ("i4", "float64"), ("i8", "uint8"), ("u2", "int64")])
@pytest.mark.parametrize("mode", [None, "clamp"])
def test_scalars_are_read(dtype: str, stored: str, mode: Any, tmp_path: Path) -> None:
    from zarr.codecs import CastValue, ScaleOffset

    filters = [ScaleOffset(offset=1, scale=2), CastValue(data_type=stored, out_of_range=mode)]
    root = zarr.create_group(tmp_path / "a.zarr")
    root.create_array("x", shape=(), dtype=dtype, filters=filters, fill_value=1)[...] = 7
    with tamis.open(tmp_path / "a.zarr") as file:
        assert file["x"][()] == 7
    tamis.repack(tmp_path / "a.zarr", tmp_path / "b.h5", {})
    assert tamis.verify(tmp_path / "a.zarr", tmp_path / "b.h5").ok


@pytest.mark.skipif(not hasattr(zarr.codecs, "CastValue"), reason="zarr before 3.2")
def test_arrays_are_read_without_the_package_of_zarr_python(tmp_path: Path) -> None:
    expected = packed(tmp_path / "a.zarr")
    np.save(tmp_path / "expected.npy", expected)
    code = """
import sys
sys.modules["cast_value_rs"] = None
import numpy, tamis
expected = numpy.load("expected.npy")
with tamis.open("a.zarr") as file:
    numpy.testing.assert_array_equal(file["a"][...], expected)
tamis.repack("a.zarr", "b.h5", {})
assert tamis.verify("a.zarr", "b.h5").ok
print(tamis.inspect("a.zarr").datasets[0].problem)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


@pytest.mark.skipif(not hasattr(zarr.codecs, "CastValue"), reason="zarr before 3.2")
def test_roundings_that_tamis_lacks_need_the_package(tmp_path: Path) -> None:
    from zarr.codecs import CastValue

    root = zarr.create_group(tmp_path / "a.zarr")
    directed = CastValue(data_type="float32", rounding="towards-zero")
    root.create_array("x", data=np.arange(6.0) + 0.1, filters=[directed])
    root.create_array("y", data=np.arange(6))
    np.save(tmp_path / "expected.npy", root["x"][:])
    with tamis.open(tmp_path / "a.zarr") as file:
        np.testing.assert_array_equal(file["x"][...], root["x"][:])
    code = """
import sys
sys.modules["cast_value_rs"] = None
import tamis
with tamis.open("a.zarr") as file:
    print(file["y"][...].tolist())
    file["x"]
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "[0, 1, 2, 3, 4, 5]\n"
    assert "FileError" in done.stderr
    assert "requires the 'cast-value-rs' package" in done.stderr
