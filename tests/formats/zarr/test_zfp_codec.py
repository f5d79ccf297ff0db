"""The Zarr 3 codec zfp, through zarr-python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import zarr
import zfpy
from zarr.core.array_spec import ArrayConfig, ArraySpec
from zarr.registry import get_codec_class

import tamis
from tamis.zarr import ReshapeCodec, ZfpCodec, codecs

MODES = {
    "rate": tamis.Zfp(rate=8),
    "precision": tamis.Zfp(precision=16),
    "accuracy": tamis.Zfp(accuracy=0.5),
    "expert": tamis.Zfp(minbits=1, maxbits=16658, maxprec=20, minexp=-4),
    "reversible": tamis.Zfp(reversible=True),
}
CONFIGURATIONS = [
    {"mode": "reversible"},
    {"mode": "expert", "minbits": 1, "maxbits": 13, "maxprec": 19, "minexp": -2},
    {"mode": "fixed_accuracy", "tolerance": 0.05},
    {"mode": "fixed_rate", "rate": 10.5},
    {"mode": "fixed_precision", "precision": 19},
]


def field(shape: tuple[int, ...], dtype: str = "f4") -> np.ndarray[Any, Any]:
    size = int(np.prod(shape))
    return (40 + 30 * np.sin(np.arange(size) / 17)).reshape(shape).astype(dtype)


def create(path: Path, values: np.ndarray[Any, Any], chunks: tuple[int, ...], codec: ZfpCodec, **options: Any) -> Any:
    array = zarr.create_array(
        str(path), shape=values.shape, dtype=values.dtype, chunks=chunks, serializer=codec, compressors=None, **options
    )
    array[...] = values
    return zarr.open_array(str(path))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["i4", "i8", "f4", "f8"])
@pytest.mark.parametrize("shape", [(20,), (8, 12), (1, 8, 12), (3, 4, 5, 6), (1, 4, 1, 6, 8, 1)])
def test_chunk_same_bytes_as_hdf5(tmp_path: Path, mode: str, dtype: str, shape: tuple[int, ...]) -> None:
    zfp = tamis.Zfp(accuracy=64) if mode == "accuracy" and dtype[0] == "i" else MODES[mode]
    values = field((2 * shape[0], *shape[1:]), dtype)
    arguments = codecs(zfp, dtype, shape)
    array = zarr.create_array(str(tmp_path / "a.zarr"), shape=values.shape, dtype=dtype, chunks=shape, **arguments)
    array[...] = values
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("x", data=values, chunks=shape, **zfp)
        for i in range(2):
            mask, chunk = dataset.id.read_direct_chunk((i * shape[0], *(0,) * (len(shape) - 1)))
            key = "/".join(map(str, (i, *(0,) * (len(shape) - 1))))
            assert mask == 0
            assert (tmp_path / "a.zarr" / "c" / key).read_bytes() == chunk
        np.testing.assert_array_equal(zarr.open_array(str(tmp_path / "a.zarr"))[...], dataset[...])


def test_chunk_with_unit_axis_same_bytes_as_libzfp_gives_for_its_shape(tmp_path: Path) -> None:
    values = field((1, 8, 12))
    create(tmp_path / "a.zarr", values, values.shape, ZfpCodec(accuracy=0.5))
    stream = (tmp_path / "a.zarr" / "c" / "0" / "0" / "0").read_bytes()
    expected = zfpy.compress_numpy(values, tolerance=0.5, write_header=False)
    assert expected.startswith(stream)
    assert not any(expected[len(stream) :])


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=lambda configuration: configuration["mode"])
def test_metadata_of_the_registered_examples_read_and_written(configuration: dict[str, Any]) -> None:
    assert get_codec_class("zfp") is ZfpCodec
    metadata = {"name": "zfp", "configuration": configuration}
    assert ZfpCodec.from_dict(metadata).to_dict() == metadata


@pytest.mark.parametrize(
    ("configuration", "text"),
    [
        ({}, "expected a mode of zfp"),
        ({"mode": "lossless"}, "got 'lossless'"),
        ({"mode": "fixed_rate"}, "expected a number as rate, got None"),
        ({"mode": "fixed_rate", "rate": -1}, "above 0"),
        ({"mode": "fixed_rate", "rate": 8, "tolerance": 1}, "got 'tolerance' as well"),
        ({"mode": "fixed_precision", "precision": 65}, "1 to 64"),
        (None, "expected an object with name and configuration"),
    ],
)
def test_metadata_malformed_refused(configuration: Any, text: str) -> None:
    with pytest.raises(tamis.ParameterError, match=text) as caught:
        ZfpCodec.from_dict({"name": "zfp", "configuration": configuration})
    assert "Zarr codec zfp" in str(caught.value)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "f2"])
@pytest.mark.parametrize("mode", ["reversible", "rate", "precision"])
def test_small_types_promoted_as_libzfp_does(tmp_path: Path, dtype: str, mode: str) -> None:
    values = field((8, 12), dtype)
    array = create(tmp_path / "a.zarr", values, values.shape, ZfpCodec(MODES[mode]))
    nbits = 8 * values.itemsize
    offset = 1 << (nbits - 1) if dtype[0] == "u" else 0
    wide = values.astype("f4") if dtype == "f2" else (values.astype("i4") - offset) << (31 - nbits)
    arguments = {"rate": {"rate": 8}, "precision": {"precision": 16}, "reversible": {}}[mode]
    expected = zfpy.compress_numpy(wide, write_header=False, **arguments)
    stream = (tmp_path / "a.zarr" / "c" / "0" / "0").read_bytes()
    assert expected[: len(stream)] == stream
    if mode == "reversible":
        np.testing.assert_array_equal(array[...], values)
    else:
        assert np.abs(array[...].astype("f8") - values).max() < 8


def test_unsigned_values_beyond_the_signed_type_refused(tmp_path: Path) -> None:
    values = np.array([1, 2, 2**31, 4], "u4")
    with pytest.raises(tamis.DataError, match=r"up to 2147483647 .* found 2147483648 at index \(2,\)"):
        create(tmp_path / "a.zarr", values, (4,), ZfpCodec(reversible=True))


def test_accuracy_nan_refused_with_its_index(tmp_path: Path) -> None:
    values = field((8, 8))
    values[3, 4] = np.nan
    with pytest.raises(tamis.DataError, match=r"NaN or infinity at index \(3, 4\).*PipelineCodec"):
        create(tmp_path / "a.zarr", values, (8, 8), ZfpCodec(accuracy=0.1))


def test_accuracy_huge_neighbour_refused_not_stored_wrong(tmp_path: Path) -> None:
    """D9: beside a fill value of 9.97e36 zfp keeps nothing of ordinary values."""
    values = field((8, 8))
    values[0, 0] = 9.96921e36
    with pytest.raises(tamis.DataError, match="cannot keep the tolerance at index"):
        create(tmp_path / "a.zarr", values, (8, 8), ZfpCodec(accuracy=0.1))


def test_accuracy_fill_value_that_would_change_refused(tmp_path: Path) -> None:
    values = field((8, 8))
    values[2, 2] = -999.25
    with pytest.raises(tamis.DataError, match="fill value"):
        create(tmp_path / "a.zarr", values, (8, 8), ZfpCodec(accuracy=64), fill_value=-999.25)


def test_shards_hold_chunks_and_stay_within_the_bound(tmp_path: Path) -> None:
    values = field((8, 32, 32))
    array = zarr.create_array(
        str(tmp_path / "a.zarr"),
        shape=values.shape,
        dtype="f4",
        chunks=(1, 16, 16),
        shards=(4, 32, 32),
        **codecs("zfp(accuracy=0.1)|zstd(3)", "f4", (1, 16, 16)),
    )
    array[...] = values
    metadata = json.loads((tmp_path / "a.zarr" / "zarr.json").read_text())
    names = [codec["name"] for codec in metadata["codecs"][0]["configuration"]["codecs"]]
    assert names == ["reshape", "zfp", "zstd"]
    assert np.abs(zarr.open_array(str(tmp_path / "a.zarr"))[...] - values).max() <= 0.1


def test_d29_squeezed_chunk_is_smaller_than_one_with_a_unit_axis(tmp_path: Path) -> None:
    """D29: blocks of 4 × 4 × 4 values hold one level of a unit axis."""
    values = field((1, 192, 288))
    plain = ZfpCodec(accuracy=1e-3)
    create(tmp_path / "a.zarr", values, values.shape, plain)
    array = zarr.create_array(
        str(tmp_path / "b.zarr"),
        shape=values.shape,
        dtype="f4",
        chunks=values.shape,
        **codecs(plain.filter, "f4", values.shape),
    )
    array[...] = values
    sizes = [(tmp_path / name / "c" / "0" / "0" / "0").stat().st_size for name in ("a.zarr", "b.zarr")]
    assert sizes[1] < sizes[0]


def test_scalar_array_is_a_field_of_one_value(tmp_path: Path) -> None:
    array = create(tmp_path / "a.zarr", np.array(1.5, "f4"), (), ZfpCodec(reversible=True))
    assert array[...] == 1.5


def test_five_axes_refused_with_the_codec_to_use(tmp_path: Path) -> None:
    with pytest.raises(tamis.ParameterError, match="put a ReshapeCodec before"):
        create(tmp_path / "a.zarr", field((2, 2, 2, 2, 2)), (2,) * 5, ZfpCodec(rate=8))


def test_type_without_definition_refused_on_creation(tmp_path: Path) -> None:
    with pytest.raises(tamis.ParameterError, match="complex128"):
        create(tmp_path / "a.zarr", np.zeros((4, 4), "c16"), (4, 4), ZfpCodec(rate=8))


@pytest.mark.parametrize("damage", ["truncated", "empty"])
def test_damaged_chunk_refused(tmp_path: Path, damage: str) -> None:
    create(tmp_path / "a.zarr", field((8, 8)), (8, 8), ZfpCodec(accuracy=0.01))
    chunk = tmp_path / "a.zarr" / "c" / "0" / "0"
    chunk.write_bytes(chunk.read_bytes()[: 10 if damage == "truncated" else 0])
    with pytest.raises(tamis.StreamError, match="truncated"):
        zarr.open_array(str(tmp_path / "a.zarr"))[...]


def test_rate_has_a_fixed_size_others_have_none(tmp_path: Path) -> None:
    create(tmp_path / "a.zarr", field((10, 9)), (10, 9), ZfpCodec(rate=8))
    config, prototype = ArrayConfig.from_dict({}), zarr.core.buffer.default_buffer_prototype()
    spec = ArraySpec((10, 9), zarr.dtype.Float32(), np.float32(0), config, prototype)
    codec = ZfpCodec(rate=8)
    assert codec.is_fixed_size
    assert codec.compute_encoded_size(360, spec) == (tmp_path / "a.zarr" / "c" / "0" / "0").stat().st_size
    assert not ZfpCodec(accuracy=1).is_fixed_size
    with pytest.raises(NotImplementedError):
        ZfpCodec(accuracy=1).compute_encoded_size(360, spec)


def test_zfp_codec_needs_exactly_one_mode() -> None:
    with pytest.raises(tamis.ParameterError, match="exactly one ZFP mode"):
        ZfpCodec(rate=8, accuracy=0.1)
    with pytest.raises(tamis.ParameterError, match=r"expected a tamis\.Zfp"):
        ZfpCodec("zfp(rate=8)")  # type: ignore[arg-type]


def test_reshape_codec_registered() -> None:
    assert get_codec_class("reshape") is ReshapeCodec


@pytest.mark.parametrize(("dtype", "lowest"), [("u1", 0), ("i1", -128), ("u2", 0), ("i2", -32768)])
def test_smallest_value_of_small_integers_refused_in_lossy_modes(tmp_path: Path, dtype: str, lowest: int) -> None:
    """It is promoted to -2^30, which libzfp's transform may turn into a large positive number."""
    values = np.full((8, 8), 100, dtype)
    values[2, 3] = lowest
    with pytest.raises(tamis.DataError, match=r"magnitude below 2\^30 .* at index \(2, 3\)"):
        create(tmp_path / "a.zarr", values, (8, 8), ZfpCodec(rate=8))
    np.testing.assert_array_equal(create(tmp_path / "b.zarr", values, (8, 8), ZfpCodec(reversible=True))[...], values)
