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
from tamis import FileError
from tamis.formats.hdf5.tree.create import create_group
from tamis.jobs.inspect.job import DatasetInfo

Run = Callable[..., str]


def found(path: Path) -> dict[str, DatasetInfo]:
    return {each.path: each for each in tamis.inspect(path).datasets}


def test_inspect_sample_gives_shape_type_chunks_filters_and_ratio(sample: Path) -> None:
    result = tamis.inspect(sample)
    assert [each.path for each in result.datasets] == ["/TS", "/lat", "/lon", "/nbnd", "/time", "/time_bnds"]
    ts, lat, _, nbnd, time, _ = result.datasets
    assert (ts.shape, ts.dtype, ts.chunks) == ((30, 192, 288), "float32", (1, 192, 288))
    assert ts.filters == ("shuffle", "deflate level 2")
    assert str(ts.pipeline) == "shuffle|deflate(2)"
    assert (ts.byteorder, ts.layout, ts.maxshape) == ("little", "chunked", (None, 192, 288))
    assert (str(ts.readers), ts.chunks_in_words, ts.zfp_padding, ts.notes, ts.problem) == ("any HDF5", "", None, (), "")
    assert result.nbytes == sample.stat().st_size
    assert ts.nbytes == 30 * 192 * 288 * 4
    with h5py.File(sample) as file:
        assert ts.stored_nbytes == file["TS"].id.get_storage_size()
    assert ts.ratio == ts.nbytes / ts.stored_nbytes
    assert (ts.stored_chunks, ts.unfiltered_chunks) == (30, 0)
    assert (lat.shape, lat.dtype, lat.chunks) == ((192,), "float64", (192,))
    assert (nbnd.dtype, nbnd.chunks, nbnd.filters, nbnd.ratio) == (">f4", None, (), None)
    assert (nbnd.byteorder, nbnd.layout) == ("big", "contiguous")
    assert (time.chunks, time.stored_chunks) == ((1,), 30)


def test_inspection_as_text_has_a_line_for_each_dataset(sample: Path) -> None:
    lines = str(tamis.inspect(str(sample))).splitlines()
    assert lines[0] == f"{sample} (3.88 MB, 6 datasets)"
    assert lines[2].split() == ["/TS", "30x192x288", "float32", "1x192x288", "shuffle|deflate(2)", "3.85", "MB", "1.72"]
    assert lines[5].split() == ["/nbnd", "2", ">f4", "contiguous", "0", "B"]
    assert lines[8:10] == ["", "/TS, /lat, /lon, /time and 1 more"]


def test_inspect_repacked_sample_names_tolerance_and_writer(sample: Path, tmp_path: Path) -> None:
    tamis.repack(sample, tmp_path / "b.nc", {"TS": "zfp(accuracy=0.1)"})
    assert found(tmp_path / "b.nc")["/TS"].filters == (
        "zfp accuracy, effective tolerance 2^-4 = 0.0625 (H5Z-ZFP 1.1.1, zfp 1.0.1)",
        "fletcher32",
    )


DEFAULT = "zfp expert, minbits=1, maxbits=16658, maxprec=64, minexp=-1074"
H5ZZFP = {
    "test_zfp_030040.h5": "zfp rate, 12 bits per value (H5Z-ZFP 0.3.0, zfp 0.4.0), required",
    "test_zfp_030235.h5": "zfp rate, 12 bits per value (H5Z-ZFP 0.3.0, zfp 2.3.5), required",
    "test_zfp_050.h5": "zfp precision, 24 bit planes (H5Z-ZFP 0.9.0, zfp 0.5.0), required",
    "test_zfp_052.h5": "zfp precision, 24 bit planes (H5Z-ZFP 0.9.0, zfp 0.5.2), required",
    "test_zfp_054.h5": "zfp precision, 24 bit planes (H5Z-ZFP 0.9.0, zfp 0.5.4), required",
    "test_zfp_110050.h5": "zfp rate, 12 bits per value (H5Z-ZFP 1.1.0, zfp 0.5.0), required",
    "test_zfp_110xxx.h5": "H5Z-ZFP-1.1.0 (ZFP-1.0.0) [32013], not readable: expected ZFP codec 5,"
    " got parameters of codec 7, required",
    "test_zfp_be.h5": f"{DEFAULT} (H5Z-ZFP 0.2.0, zfp 0.5.0, written on a machine of the other byte order), required",
    "test_zfp_le.h5": f"{DEFAULT} (H5Z-ZFP 0.2.0, zfp 0.5.0), required",
}


@pytest.mark.parametrize("name", H5ZZFP)
def test_inspect_file_of_each_h5zzfp_version_names_mode_and_writer(name: str, real: Callable[[str], Path]) -> None:
    compressed = found(real(f"h5zzfp/{name}"))["/compressed"]
    assert compressed.filters == (H5ZZFP[name],)
    assert compressed.dtype == (">f8" if "_be" in name else "float64")
    codes = [note.code for note in compressed.notes]
    assert ("zfp-unproven" in codes) == compressed.filters[0].startswith("zfp ")
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
        file.create_dataset(name, data=numpy.zeros(10000), chunks=(10000,), **kind)
    file.create_dataset("lzf", data=numpy.arange(100), chunks=(10,), compression="lzf", scaleoffset=0)
"""
    python(code, tmp_path / "a.h5")
    shown = found(tmp_path / "a.h5")
    for name, number in {"blosc": 32001, "zstd": 32015, "lz4": 32004}.items():
        (each,) = shown[f"/{name}"].pipeline.filters
        assert each.id == number
        assert name in shown[f"/{name}"].filters[0].lower()
        assert "plugin" in str(shown[f"/{name}"].readers)
    assert [each.id for each in shown["/lzf"].pipeline.filters] == [6, 32000]


def test_inspect_chunks_that_skip_a_filter_counted(tmp_path: Path) -> None:
    data = np.arange(256.0).reshape(16, 16)
    data[0, 0] = data[9, 9] = np.nan
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=data, chunks=(8, 8))
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"v": "zfp(accuracy=0.1)"})
    each = found(tmp_path / "b.h5")["/v"]
    assert (each.unfiltered_chunks, each.stored_chunks) == (2, 4)
    assert each.chunks_in_words == "2 of 4 chunks: zfp, fletcher32; 2: fletcher32 (zfp skipped)"
    assert [(group.mask, group.count) for group in each.chunk_groups] == [(0, 2), (1, 2)]


def test_inspect_hundreds_of_chunks_with_many_masks_summarised_largest_first(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = file.create_dataset("v", (365,), "f4", chunks=(1,), compression=4, shuffle=True, fletcher32=True)
        for day in range(365):
            made.id.write_direct_chunk((day,), b"12345678", 0b011 if day % 7 == 0 else 0b001 if day % 73 == 1 else 0)
    each = found(tmp_path / "a.h5")["/v"]
    assert each.chunks_in_words == (
        "308 of 365 chunks: shuffle, deflate, fletcher32; 53: fletcher32 (shuffle, deflate skipped);"
        " 4: deflate, fletcher32 (shuffle skipped)"
    )


def test_inspect_chunks_that_are_not_stored_counted(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        some = file.create_dataset("some", (100, 30), "f4", chunks=(10, 20), compression=4)
        some[5, 5] = some[95, 25] = 1
        some.id.write_direct_chunk((50, 0), b"1234" * 200, 1)
        file.create_dataset("none", (100,), "f4", chunks=(10,), compression=4)
    shown = found(tmp_path / "a.h5")
    assert (shown["/some"].stored_chunks, shown["/some"].total_chunks) == (3, 20)
    assert shown["/some"].chunks_in_words == (
        "3 of 20 chunks stored, the others read as fill value; 2 of 3 chunks: deflate; 1: no filter (deflate skipped)"
    )
    assert shown["/none"].chunks_in_words == "none of 10 chunks stored, all read as fill value"


def test_inspect_mask_with_bits_of_no_filter_counted(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = file.create_dataset("v", (2,), "f4", chunks=(1,), compression=4)
        made.id.write_direct_chunk((0,), b"1234", 0xFFFFFFFF)
        made.id.write_direct_chunk((1,), b"12345", 0xFFFFFFFE)
    each = found(tmp_path / "a.h5")["/v"]
    assert {group.mask: (group.applied, group.skipped) for group in each.chunk_groups} == {
        0xFFFFFFFF: ((), ("deflate",)),
        0xFFFFFFFE: (("deflate",), ()),
    }


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
        "/null": (None, "float32", None),
        "/ragged": ((3,), "variable-length", None),
        "/reference": ((1,), "reference", 1.0),
        "/scalar": ((), "float64", 1.0),
        "/text": ((2,), "string", None),  # its values lie elsewhere in the file, and nothing counts them
        "/time": ((16,), "a type that numpy does not have", None),
    }


def test_inspect_layouts_and_byte_orders_named(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["contiguous"], file["bytes"] = np.arange(3, dtype=">i2"), np.zeros(3, "u1")
        file.create_dataset("chunked", data=np.arange(3.0), chunks=(2,))
        file.create_dataset("enum", (3,), h5py.enum_dtype({"a": 1}, ">i4"))
        file.create_dataset("array", (3,), np.dtype(("<f4", (2,))))
        file.create_dataset("external", (3,), "f8", external=[(str(tmp_path / "x.bin"), 0, h5py.h5f.UNLIMITED)])
        layout = h5py.VirtualLayout((3,), "f8")
        layout[:] = h5py.VirtualSource(".", "chunked", (3,))
        file.create_virtual_dataset("virtual", layout)
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_layout(h5d.COMPACT)
        h5d.create(file.id, b"compact", h5t.IEEE_F64BE, h5s.create_simple((3,)), plist)
    assert {path: (each.layout, each.byteorder) for path, each in found(tmp_path / "a.h5").items()} == {
        "/array": ("contiguous", "little"),
        "/bytes": ("contiguous", ""),
        "/chunked": ("chunked", "little"),
        "/compact": ("compact", "big"),
        "/contiguous": ("contiguous", "big"),
        "/enum": ("contiguous", "big"),
        "/external": ("external", "little"),
        "/virtual": ("virtual", "little"),
    }


@pytest.mark.parametrize(
    ("variables", "paths"),
    [
        ("TS", ["/TS"]),
        (["/TS", "lat"], ["/TS", "/lat"]),
        (["time*"], ["/time", "/time_bnds"]),
        (["lon", "*"], ["/TS", "/lat", "/lon", "/nbnd", "/time", "/time_bnds"]),
    ],
    ids=str,
)
def test_inspect_variables_by_name_and_pattern_selected(
    variables: str | list[str], paths: list[str], sample: Path
) -> None:
    assert [each.path for each in tamis.inspect(sample, variables).datasets] == paths


def test_inspect_variable_that_is_not_there_named_with_those_that_are(sample: Path) -> None:
    with pytest.raises(FileError, match=r"cam_ts\.nc: expected a dataset named 'PS', found only /TS, /lat, "):
        tamis.inspect(sample, ["TS", "PS"])


def test_inspect_group_filters_shown_apart_from_datasets(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        create_group(file, "g/h", "deflate(9)|fletcher32")["v"] = 1
        file.create_group("plain")
    result = tamis.inspect(tmp_path / "a.h5")
    (group,) = result.groups
    assert (group.path, group.filters, str(group.readers), group.problem) == (
        "/g/h",
        ("deflate level 9", "fletcher32"),
        "any HDF5",
        "",
    )
    assert [each.path for each in result.datasets] == ["/g/h/v"]
    assert tamis.inspect(tmp_path / "a.h5", ["*"]).groups == ()


def test_inspect_group_that_cannot_be_listed_does_not_hide_the_rest(tmp_path: Path, python: Run) -> None:
    code = """
import sys, h5py, hdf5plugin, tamis
from tamis.formats.hdf5.tree.create import create_group
with h5py.File(sys.argv[1], "w") as file:
    group = create_group(file, "g", "filter(32004,0)!", max_compact=0)
    for i in range(20):
        group[f"inside {i}"] = i
    file["outside"] = 1
"""
    python(code, tmp_path / "a.h5")
    result = tamis.inspect(tmp_path / "a.h5")
    assert [each.path for each in result.datasets] == ["/outside"]
    (group,) = result.groups
    assert group.pipeline.filters[0].id == 32004
    assert not group.readers.h5py
    assert "links of /g cannot be read without HDF5 filter 32004" in group.problem


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


@pytest.mark.parametrize("form", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"])
def test_inspect_netcdf_classic_file(form: str, tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w", format=form) as file:
        file.createDimension("x", 3)
        file.createVariable("v", "f4", ("x",))
    assert [(item.path, item.shape, item.dtype, item.byteorder) for item in tamis.inspect(path).datasets] == [
        ("/v", (3,), "float32", "big")
    ]


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
    with pytest.raises(FileError, match=r"a\.nc: /lat: damaged or incomplete: "):
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
