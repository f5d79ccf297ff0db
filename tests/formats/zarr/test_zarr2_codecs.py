"""The codecs for numcodecs: zfpy without zfpy, and chunks of HDF5."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numcodecs
import numpy as np
import pytest
import zarr
import zfpy

import tamis
from tamis import ParameterError
from tamis.zarr import H5zZfp, Pipeline2Codec, Zfpy, codecs


def field(dtype: str = "f4") -> np.ndarray[Any, Any]:
    return (280 + 10 * np.sin(np.arange(1024) / 50)).reshape(4, 16, 16).astype(dtype)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"mode": 2, "rate": 8.0}, {"rate": 8.0}),
        ({"mode": 3, "precision": 16}, {"precision": 16}),
        ({"mode": 4, "tolerance": 0.1}, {"tolerance": 0.1}),
        ({"mode": 5}, {}),
    ],
)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
def test_zfpy_same_bytes_as_zfpy(ours: dict[str, Any], theirs: dict[str, Any], dtype: str) -> None:
    if ours.get("tolerance") and dtype[0] == "i":
        ours, theirs = {"mode": 4, "tolerance": 64}, {"tolerance": 64}
    values = field(dtype)
    stream = Zfpy(**ours).encode(values)
    assert stream == zfpy.compress_numpy(values, write_header=True, **theirs)
    np.testing.assert_array_equal(Zfpy(**ours).decode(stream), zfpy.decompress_numpy(stream))


@pytest.mark.parametrize(
    "codec",
    [Zfpy(mode=5), H5zZfp(mode="reversible", dtype="float32", shape=[4, 16, 16])],
    ids=lambda codec: codec.codec_id,
)
def test_values_are_little_endian_and_others_refused(codec: Any, tmp_path: Path) -> None:
    """Zarr 2 gives no byte order, and takes what is decoded for what the array has."""
    options: dict[str, Any] = {"zarr_format": 2, "filters": [codec], "compressors": None}
    array = zarr.create_array(tmp_path / "little.zarr", shape=(4, 16, 16), chunks=(4, 16, 16), dtype="<f4", **options)
    array[...] = field()
    assert codec.decode(codec.encode(field("<f4"))).dtype == np.dtype("<f4")
    np.testing.assert_array_equal(array[...], field())
    other = zarr.create_array(tmp_path / "big.zarr", shape=(4, 16, 16), chunks=(4, 16, 16), dtype=">f4", **options)
    with pytest.raises(ParameterError, match=r"expected little-endian values for ZFP, got '>f4': .*; use '<f4', or"):
        other[...] = field()


@pytest.mark.parametrize("order", "<>")
def test_pipeline_with_zfp_keeps_any_byte_order(order: str, tmp_path: Path) -> None:
    values, codec = field(f"{order}f4"), Pipeline2Codec("zfp(accuracy=0.1)|shuffle", f"{order}f4", [4, 16, 16])
    values = np.concatenate([values, values], dtype=f"{order}f4")
    values[5, 3, 3] = np.nan  # of the second chunk, which zfp skips
    array = zarr.create_array(
        tmp_path / "a.zarr", shape=(8, 16, 16), chunks=(4, 16, 16), dtype=f"{order}f4", zarr_format=2,
        filters=[codec], compressors=None,
    )  # fmt: skip
    array[...] = values
    read = array[...]
    np.testing.assert_array_equal(read[4:], values[4:])
    assert 0 < np.abs(read[:4].astype("f8") - values[:4]).max() <= 0.1
    stream = codec.encode(values[:4])
    assert stream == Pipeline2Codec("zfp(accuracy=0.1)|shuffle", "<f4", [4, 16, 16]).encode(field("<f4"))


def test_zfpy_of_numcodecs_reads_ours_and_the_reverse() -> None:
    theirs, ours = numcodecs.zfpy.ZFPY(mode=4, tolerance=0.1), Zfpy(mode=4, tolerance=0.1)
    np.testing.assert_array_equal(theirs.decode(ours.encode(field())), ours.decode(theirs.encode(field())))
    assert (
        theirs.get_config().items() >= {"id": "zfpy", "mode": 4, "tolerance": 0.1}.items() <= ours.get_config().items()
    )


def test_d28_zfpy_arrays_read_without_the_package_zfpy(tmp_path: Path) -> None:
    array = zarr.create_array(
        str(tmp_path / "a.zarr"),
        shape=(4, 16, 16),
        dtype="f4",
        chunks=(4, 16, 16),
        zarr_format=2,
        compressors=Zfpy(tolerance=0.1),
    )
    array[...] = field()
    code = (
        "import sys; sys.modules['zfpy'] = None\n"
        "import zarr, numcodecs; assert 'zfpy' not in numcodecs.registry.codec_registry\n"
        f"print(float(zarr.open_array({str(tmp_path / 'a.zarr')!r})[...].sum()))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) == pytest.approx(float(field().sum()), rel=1e-3)


def test_zfpy_wrong_mode_refused() -> None:
    with pytest.raises(tamis.ParameterError, match="expected zfpy mode 2 rate"):
        Zfpy(mode=1).encode(field())
    with pytest.raises(tamis.ParameterError, match="above 0"):
        Zfpy(mode=4, tolerance=-1).encode(field())


def test_zfpy_bound_proven() -> None:
    values = field()
    values[0, 0, 0] = 1e36
    with pytest.raises(tamis.DataError, match=r"cannot keep the tolerance.*; tamis\.zarr\.H5zZfp stores such chunks"):
        Zfpy(mode=4, tolerance=0.1).encode(values)
    values[0, 0, 0] = np.nan
    with pytest.raises(tamis.DataError, match=r"found NaN.*; tamis\.zarr\.H5zZfp stores such chunks without zfp"):
        Zfpy(mode=4, tolerance=0.1).encode(values)


@pytest.mark.parametrize("wrong", [b"abc", field().T, [1.0, 2.0]], ids=["bytes", "Fortran order", "list"])
def test_zfpy_other_than_c_array_refused(wrong: Any) -> None:
    with pytest.raises(tamis.ParameterError, match="expected an array"):
        Zfpy(mode=2, rate=8).encode(wrong)


def test_d29_zfpy_leaves_out_unit_axes_and_numcodecs_reads_it() -> None:
    values = field().reshape(1, 64, 16)
    stream = Zfpy(tolerance=0.1).encode(values)
    assert stream == zfpy.compress_numpy(values[0], write_header=True, tolerance=0.1)
    assert len(stream) < len(zfpy.compress_numpy(values, write_header=True, tolerance=0.1))
    assert np.abs(numcodecs.zfpy.ZFPY(tolerance=0.1).decode(stream).reshape(values.shape) - values).max() <= 0.1
    assert Zfpy(mode=5).decode(Zfpy(mode=5).encode(values[:, :1, :1])).tobytes() == values[:, :1, :1].tobytes()


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ("zfp(accuracy=0.1)", {"id": "zfpy", "mode": 4, "tolerance": 0.1, "rate": -1, "precision": -1}),
        ("zfp(rate=8)", {"id": "zfpy", "mode": 2, "tolerance": -1, "rate": 8.0, "precision": -1}),
        ("zfp(precision=9)", {"id": "zfpy", "mode": 3, "tolerance": -1, "rate": -1, "precision": 9}),
        ("zfp(reversible=True)", {"id": "zfpy", "mode": 5, "tolerance": -1, "rate": -1, "precision": -1}),
        ("zfp(minbits=1,maxbits=999,maxprec=9,minexp=-9)", {"id": "h5z_zfp", "mode": "expert"}),
    ],
)
def test_u72_codecs_of_version_2_are_zfpy_where_it_has_the_mode(filters: str, expected: dict[str, Any]) -> None:
    config = codecs(filters, "f4", (1, 16, 16), zarr_format=2)["compressors"][0].get_config()
    assert config.items() >= expected.items()


def test_h5z_zfp_same_bytes_as_hdf5(tmp_path: Path) -> None:
    values = field()
    array = zarr.create_array(
        str(tmp_path / "a.zarr"),
        shape=(4, 16, 16),
        dtype="f4",
        chunks=(1, 16, 16),
        zarr_format=2,
        compressors=H5zZfp.of(tamis.Zfp(accuracy=0.1), "f4", (1, 16, 16)),
    )
    array[...] = values
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("x", data=values, chunks=(1, 16, 16), **tamis.Zfp(accuracy=0.1))
        assert (tmp_path / "a.zarr" / "2.0.0").read_bytes() == dataset.id.read_direct_chunk((2, 0, 0))[1]
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(zarr.open_array(str(tmp_path / "a.zarr"))[...], file["x"][...])
    assert json.loads((tmp_path / "a.zarr" / ".zarray").read_text())["compressor"] == {
        "id": "h5z_zfp", "mode": "fixed_accuracy", "tolerance": 0.1, "dtype": "float32", "shape": [16, 16],
    }  # fmt: skip


def test_h5z_zfp_chunk_that_zfp_cannot_keep_stored_as_it_is() -> None:
    codec = H5zZfp("fixed_accuracy", "float32", [4, 16, 16], tolerance=0.1)
    values = field()
    values[1, 2, 3] = np.nan
    data = codec.encode(values)
    assert data == values.tobytes()
    np.testing.assert_array_equal(codec.decode(data), values)


def test_h5z_zfp_rate_of_the_size_of_values_has_no_raw_chunks() -> None:
    codec = H5zZfp("fixed_rate", "float32", [4, 16, 16], rate=32.0)
    values = field()
    assert len(codec.encode(values)) == values.nbytes
    assert np.abs(codec.decode(codec.encode(values)) - values).max() < 1e-3
    values[0, 0, 0] = np.nan
    with pytest.raises(tamis.DataError, match="NaN"):
        codec.encode(values)


def test_h5z_zfp_in_a_chain_decodes_into_given_memory() -> None:
    codec, out = H5zZfp("reversible", "float64", [4, 16, 16]), np.empty((4, 16, 16))
    assert codec.decode(codec.encode(field("f8")), out) is out
    np.testing.assert_array_equal(out, field("f8"))
    with pytest.raises(tamis.ParameterError, match="expected room for 8192 bytes"):
        codec.decode(codec.encode(field("f8")), np.empty(3))


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"mode": "reversible", "dtype": "f4", "shape": [4]}, "expected dtype to be one of"),
        ({"mode": "reversible", "dtype": "float32", "shape": [1, 4]}, "without unit axes"),
        ({"mode": "reversible", "dtype": "float32", "shape": [2] * 5}, "1 to 4 of them"),
        ({"mode": "reversible", "dtype": "float32", "shape": []}, "1 to 4 of them"),
        ({"mode": "reversible", "dtype": "float32"}, "expected shape, got"),
        ({"mode": "fixed_rate", "dtype": "float32", "shape": [4]}, "expected a number as rate"),
        ({"mode": "fixed_accuracy", "tolerance": 0.5, "dtype": "int32", "shape": [4]}, "accuracy of 1 or more"),
    ],
)
def test_h5z_zfp_malformed_metadata_refused(config: dict[str, Any], text: str) -> None:
    with pytest.raises(tamis.ParameterError, match=text):
        numcodecs.get_codec({"id": "h5z_zfp", **config})


def test_h5z_zfp_other_values_than_its_metadata_say_refused() -> None:
    with pytest.raises(tamis.ParameterError, match="expected float32 of shape"):
        H5zZfp("reversible", "float32", [4, 4]).encode(field())
