"""What inspect says of real, odd, filtered, large and damaged files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t, h5z

import tamis
from tamis.errors import FileError
from tamis.jobs.inspect import DatasetInfo

Run = Callable[..., str]


def found(path: Path) -> dict[str, DatasetInfo]:
    return {each.path: each for each in tamis.inspect(path).datasets}


def test_inspect_sample_gives_shape_type_chunks_filters_and_ratio(sample: Path) -> None:
    result = tamis.inspect(sample)
    assert [each.path for each in result.datasets] == ["/TS", "/lat", "/lon", "/nbnd", "/time", "/time_bnds"]
    ts, lat, _, nbnd, time, _ = result.datasets
    assert (ts.shape, ts.dtype, ts.chunks) == ((30, 192, 288), "float32", (1, 192, 288))
    assert ts.filters == ("shuffle", "deflate(2)")
    assert ts.nbytes == 30 * 192 * 288 * 4
    with h5py.File(sample) as file:
        assert ts.stored_nbytes == file["TS"].id.get_storage_size()
    assert ts.ratio == ts.nbytes / ts.stored_nbytes
    assert (ts.stored_chunks, ts.unfiltered_chunks) == (30, 0)
    assert (lat.shape, lat.dtype, lat.chunks) == ((192,), "float64", (192,))
    assert (nbnd.dtype, nbnd.chunks, nbnd.filters, nbnd.ratio) == (">f4", None, (), None)
    assert (time.chunks, time.stored_chunks) == ((1,), 30)


def test_inspection_as_text_has_a_line_for_each_dataset(sample: Path) -> None:
    lines = str(tamis.inspect(str(sample))).splitlines()
    assert lines[0] == str(sample)
    assert lines[1] == "  /TS (30, 192, 288) float32 1.72x shuffle | deflate(2)"
    assert lines[4] == "  /nbnd (2,) >f4"
    assert len(lines) == 7


def test_inspect_repacked_sample_names_tolerance_and_writer(sample: Path, tmp_path: Path) -> None:
    tamis.repack(sample, tmp_path / "b.nc", {"TS": "zfp(accuracy=0.1)"})
    assert found(tmp_path / "b.nc")["/TS"].filters == (
        "zfp accuracy, effective tolerance 2^-4 = 0.0625 (H5Z-ZFP 1.1.1, zfp 1.0.1)",
        "fletcher32",
    )


DEFAULT = "zfp expert, minbits=1, maxbits=16658, maxprec=64, minexp=-1074"
H5ZZFP = {
    "test_zfp_030040.h5": "zfp rate, 12 bits per value (H5Z-ZFP 0.3.0, zfp 0.4.0)",
    "test_zfp_030235.h5": "zfp rate, 12 bits per value (H5Z-ZFP 0.3.0, zfp 2.3.5)",
    "test_zfp_050.h5": "zfp precision, 24 bit planes (H5Z-ZFP 0.9.0, zfp 0.5.0)",
    "test_zfp_052.h5": "zfp precision, 24 bit planes (H5Z-ZFP 0.9.0, zfp 0.5.2)",
    "test_zfp_054.h5": "zfp precision, 24 bit planes (H5Z-ZFP 0.9.0, zfp 0.5.4)",
    "test_zfp_110050.h5": "zfp rate, 12 bits per value (H5Z-ZFP 1.1.0, zfp 0.5.0)",
    "test_zfp_110xxx.h5": "zfp [32013], not readable: expected ZFP codec 5, got parameters of codec 7",
    "test_zfp_be.h5": f"{DEFAULT} (H5Z-ZFP 0.2.0, zfp 0.5.0, written on a machine of the other byte order)",
    "test_zfp_le.h5": f"{DEFAULT} (H5Z-ZFP 0.2.0, zfp 0.5.0)",
}


@pytest.mark.parametrize("name", H5ZZFP)
def test_inspect_file_of_each_h5zzfp_version_names_mode_and_writer(name: str, real: Callable[[str], Path]) -> None:
    compressed = found(real(f"h5zzfp/{name}"))["/compressed"]
    assert compressed.filters == (H5ZZFP[name],)
    assert compressed.dtype == (">f8" if "_be" in name else "float64")
    assert (compressed.chunks, compressed.stored_chunks, compressed.unfiltered_chunks) == ((256,), 4, 0)


def test_inspect_filter_that_nobody_knows_gives_id_and_values(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_chunk((10,))
        plist.set_filter(400, h5z.FLAG_OPTIONAL, (1, 2))
        h5d.create(file.id, b"u", h5t.NATIVE_FLOAT, h5s.create_simple((20,)), plist)
    (each,) = tamis.inspect(tmp_path / "a.h5").datasets
    assert each.filters == ("filter [400] 1,2",)


def test_inspect_known_filters_of_others_named(tmp_path: Path, python: Run) -> None:
    code = """
import sys, h5py, hdf5plugin, numpy
with h5py.File(sys.argv[1], "w") as file:
    for name, kind in {"blosc": hdf5plugin.Blosc(), "zstd": hdf5plugin.Zstd(3), "lz4": hdf5plugin.LZ4()}.items():
        file.create_dataset(name, data=numpy.arange(100), chunks=(10,), **kind)
    file.create_dataset("lzf", data=numpy.arange(100), chunks=(10,), compression="lzf", scaleoffset=0)
"""
    python(code, tmp_path / "a.h5")
    words = {path: each.filters for path, each in found(tmp_path / "a.h5").items()}
    assert words["/zstd"] == ("zstd [32015] 3",)
    assert words["/blosc"][0].startswith("blosc [32001] ")
    assert words["/lz4"][0].startswith("lz4 [32004]")
    assert [each.split(" ")[0] for each in words["/lzf"]] == ["scaleoffset", "lzf"]


def test_inspect_chunks_that_skip_a_filter_counted(tmp_path: Path) -> None:
    data = np.arange(256.0).reshape(16, 16)
    data[0, 0] = data[9, 9] = np.nan
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=data, chunks=(8, 8))
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"v": "zfp(accuracy=0.1)"})
    each = found(tmp_path / "b.h5")["/v"]
    assert (each.unfiltered_chunks, each.stored_chunks) == (2, 4)


def test_inspect_many_chunks_counts_them_all(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = file.create_dataset("v", (20_000,), "f4", chunks=(1,), maxshape=(None,), compression=1, shuffle=True)
        for index in range(20_000):
            made.id.write_direct_chunk((index,), b"1234", index % 2)
    each = found(tmp_path / "a.h5")["/v"]
    assert (each.stored_chunks, each.unfiltered_chunks, each.stored_nbytes) == (20_000, 10_000, 80_000)


def test_inspect_every_kind_of_dataset_named(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["scalar"], file["null"], file["empty"] = 1.5, h5py.Empty("f4"), np.zeros((0, 3), "f4")
        file["compound"], file["text"] = np.zeros(4, [("a", "f4"), ("b", "i4")]), ["a", "b"]
        file.create_dataset("ragged", (3,), h5py.vlen_dtype("f4"))
        file.create_dataset("reference", data=np.array([file.ref], dtype=h5py.ref_dtype))
        file.create_dataset("never", (1000, 1000), "f8", chunks=(10, 10))
        h5d.create(file.id, b"time", h5t.UNIX_D32LE, h5s.create_simple((16,)))
        file["g/h/deep"], file["soft"] = np.arange(3), h5py.SoftLink("/scalar")
        file["gone"], file["other"] = h5py.SoftLink("/nowhere"), h5py.ExternalLink("none.h5", "/x")
    kinds = {path: (each.shape, each.dtype, each.ratio) for path, each in found(tmp_path / "a.h5").items()}
    assert kinds == {
        "/compound": ((4,), "compound", 1.0),
        "/empty": ((0, 3), "float32", None),
        "/g/h/deep": ((3,), "int64", 1.0),
        "/never": ((1000, 1000), "float64", None),
        "/null": ((), "float32", None),
        "/ragged": ((3,), "variable-length", None),
        "/reference": ((1,), "reference", 1.0),
        "/scalar": ((), "float64", 1.0),
        "/text": ((2,), "string", None),  # its values lie elsewhere in the file, and nothing counts them
        "/time": ((16,), "a type that numpy has not", None),
    }


def test_inspect_file_without_datasets_is_empty(tmp_path: Path) -> None:
    h5py.File(tmp_path / "a.h5", "w").close()
    assert tamis.inspect(tmp_path / "a.h5").datasets == ()


def test_inspect_leaves_the_file_unchanged_and_closed(
    sample: Path, tmp_path: Path, sha256: Callable[[Path], str]
) -> None:
    path = tmp_path / "a.nc"
    path.write_bytes(sample.read_bytes())
    tamis.inspect(path)
    assert sha256(path) == sha256(sample)
    with h5py.File(path, "a") as file:
        assert len(file) == 6


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("NETCDF3_CLASSIC", "a netCDF classic file"),
        ("NETCDF3_64BIT_OFFSET", "a netCDF 64-bit offset file"),
        ("NETCDF3_64BIT_DATA", "a netCDF CDF-5 file"),
    ],
)
def test_inspect_netcdf_of_another_kind_named(form: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w", format=form) as file:
        file.createDimension("x", 3)
        file.createVariable("v", "f4", ("x",))
    with pytest.raises(FileError, match=rf"a\.nc: expected an HDF5 or netCDF-4 file, found {words}$"):
        tamis.inspect(path)


@pytest.mark.parametrize("kept", [0.02, 0.5, 0.999])
def test_inspect_truncated_file_says_so(kept: float, sample: Path, tmp_path: Path) -> None:
    data = sample.read_bytes()
    (tmp_path / "a.nc").write_bytes(data[: int(len(data) * kept)])
    with pytest.raises(FileError, match=r"a\.nc: .*truncated file"):
        tamis.inspect(tmp_path / "a.nc")


def test_inspect_damaged_object_is_a_file_error_that_names_the_file(sample: Path, tmp_path: Path) -> None:
    data = bytearray(sample.read_bytes())
    with h5py.File(sample) as file:
        address = h5py.h5o.get_info(file["lat"].id).addr
    data[address : address + 64] = b"\xff" * 64
    (tmp_path / "a.nc").write_bytes(data)
    with pytest.raises(FileError, match=r"a\.nc: damaged, or not complete: "):
        tamis.inspect(tmp_path / "a.nc")


def test_inspect_any_byte_of_metadata_damaged_is_right_or_a_file_error(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=np.arange(64.0).reshape(8, 8), chunks=(8, 8), **tamis.Zfp(accuracy=0.1))
        file.attrs["a"] = "x"
        end = h5py.h5o.get_info(file["v"].id).addr + 300
    data = (tmp_path / "a.h5").read_bytes()
    path = tmp_path / "b.h5"
    failures = 0
    for offset in [offset for offset, byte in enumerate(data[:end]) if byte]:
        path.write_bytes(data[:offset] + bytes([data[offset] ^ 0xFF]) + data[offset + 1 :])
        try:
            str(tamis.inspect(path))
        except FileError as error:
            failures += str(path) in str(error)
    assert failures > 20
    assert sorted(os.listdir(tmp_path)) == ["a.h5", "b.h5"]
