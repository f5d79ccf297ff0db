"""xarray's engine "tamis", compared with the engines netcdf4 and h5netcdf."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import dask
import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr

import tamis
from tamis import FileError, ParameterError
from tamis.xarray import TamisEngine

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"
VALUES = np.sin(np.arange(12 * 20 * 24, dtype="f4")).reshape(12, 20, 24)


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """A file with filters that other engines cannot all read."""
    with h5py.File(tmp_path / "packed.nc", "w") as file:
        for name, size in {"t": 12, "y": 20, "x": 24}.items():
            file[name] = np.arange(size)
            file[name].make_scale(name)
        for name, filters in {
            "zfp": "zfp(accuracy=0.01)|shuffle|deflate(4)|fletcher32",
            "plain": "shuffle|deflate(4)|fletcher32",
            "alone": "zfp(rate=16)|fletcher32",
            "zstd": "zstd(5)",
            "none": "none",
        }.items():
            tamis.hdf5.write(file, name, VALUES, filters=filters, chunks=(4, 20, 12))
            for axis, scale in enumerate("tyx"):
                file[name].dims[axis].attach_scale(file[scale])
    return tmp_path / "packed.nc"


def test_open_real_file_identical_to_netcdf4() -> None:
    with xr.open_dataset(SAMPLE, engine="netcdf4") as theirs, xr.open_dataset(SAMPLE, engine="tamis") as ours:
        assert not ours["TS"].variable._in_memory
        assert ours.encoding == theirs.encoding
        assert list(ours.variables) == list(theirs.variables)
        for name in ours.variables:
            own, other = ours[name].encoding, theirs[name].encoding
            common = own.keys() & other.keys()
            assert common >= {"dtype", "source", "original_shape", "chunksizes"}
            np.testing.assert_equal({key: own[key] for key in common}, {key: other[key] for key in common})
        xr.testing.assert_identical(ours, theirs)


def test_open_any_filters_without_plugin_as_tamis_open_reads_them(packed: Path) -> None:
    with xr.open_dataset(packed, engine="tamis") as ds, tamis.open(packed) as file:
        for name in ("zfp", "plain", "alone", "zstd", "none"):
            np.testing.assert_array_equal(ds[name], file[name][()])
        assert float(abs(ds["zfp"] - VALUES).max()) <= 0.01
        key = {"t": [7, 2], "y": slice(None, None, -3), "x": 5}
        np.testing.assert_array_equal(ds["zfp"].isel(key), ds["zfp"].to_numpy()[[7, 2], ::-3, 5])


def test_open_filters_of_each_variable_in_encoding(packed: Path) -> None:
    with xr.open_dataset(packed, engine="tamis") as ds:
        filters = {name: ds[name].encoding.get("pipeline") for name in ("zfp", "plain", "alone", "zstd", "none", "x")}
        assert filters == {
            "zfp": "zfp(accuracy=0.0078125)|shuffle|deflate(4)|fletcher32",
            "plain": "shuffle|deflate(4)|fletcher32",
            "alone": "zfp(rate=16)|fletcher32",
            "zstd": "zstd(5)",
            "none": None,
            "x": None,
        }
        assert ds["plain"].encoding["preferred_chunks"] == {"t": 4, "y": 20, "x": 12}


def test_open_save_by_other_engines_keeps_filters_or_refuses(packed: Path, tmp_path: Path) -> None:
    with xr.open_dataset(packed, engine="tamis") as ds:
        ds.drop_vars(["zfp", "zstd"]).to_netcdf(tmp_path / "same.nc", engine="h5netcdf")
        for engine in ("h5netcdf", "netcdf4"):
            with pytest.raises(ValueError, match=r"Compression filter|Unsupported value for compression"):
                ds[["zfp"]].to_netcdf(tmp_path / "lost.nc", engine=engine)
        ds[["plain"]].to_netcdf(tmp_path / "deflated.nc", engine="netcdf4")
    with h5py.File(tmp_path / "same.nc") as file, h5py.File(tmp_path / "deflated.nc") as deflated:
        kept = [str(tamis.hdf5.pipeline_of(file[name])) for name in ("plain", "alone", "none")]
        assert kept == ["shuffle|deflate(4)|fletcher32", "zfp(rate=16)|fletcher32", "none"]
        assert str(tamis.hdf5.pipeline_of(deflated["plain"])) == "fletcher32|shuffle|deflate(4)"


def test_open_reads_chunks_when_they_are_needed(packed: Path) -> None:
    with h5py.File(packed) as file:
        offset = file["zfp"].id.get_chunk_info_by_coord((8, 0, 0)).byte_offset
    raw = bytearray(packed.read_bytes())
    raw[offset + 40] ^= 0xFF
    packed.write_bytes(raw)
    with xr.open_dataset(packed, engine="tamis") as ds:
        np.testing.assert_allclose(ds["zfp"][:8], VALUES[:8], atol=0.01)
        with pytest.raises(FileError, match=r"packed\.nc: /zfp: chunk at \(8, 0, 0\).*fletcher32"):
            ds["zfp"].load()


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
@pytest.mark.matrix
def test_open_in_dask_same_values(packed: Path, scheduler: str) -> None:
    with xr.open_dataset(packed, engine="tamis", chunks={}) as ds, xr.open_dataset(packed, engine="tamis") as whole:
        assert ds["zfp"].chunks == ((4, 4, 4), (20,), (12, 12))
        with dask.config.set(scheduler=scheduler, num_workers=1 if scheduler == "processes" else 2):
            computed = ds[["zfp", "plain"]].compute()
        xr.testing.assert_identical(computed, whole[["zfp", "plain"]].load())


def test_open_pickled_opens_the_file_again(packed: Path) -> None:
    with xr.open_dataset(packed, engine="tamis") as ds:
        raw = pickle.dumps(ds)
        expected = ds["zfp"][3].to_numpy()
    with pickle.loads(raw) as again:
        assert not again["zfp"].variable._in_memory
        np.testing.assert_array_equal(again["zfp"][3], expected)


def test_open_files_that_xarray_closes_in_between(packed: Path) -> None:
    with (
        xr.set_options(file_cache_maxsize=1),
        xr.open_dataset(packed, engine="tamis") as ds,
        xr.open_dataset(SAMPLE, engine="tamis") as other,
    ):
        for number in range(3):
            np.testing.assert_array_equal(ds["none"][number], VALUES[number])
            assert other["TS"][number].notnull().all()


def test_open_mfdataset_joins_files(tmp_path: Path) -> None:
    for part in range(3):
        ds = xr.Dataset({"v": (("t", "x"), VALUES[0] + part)}, {"t": np.arange(20) + 20 * part})
        ds.to_netcdf(tmp_path / f"part{part}.nc", engine="h5netcdf")
    with xr.open_mfdataset(str(tmp_path / "part*.nc"), engine="tamis") as ds:
        assert ds.sizes == {"t": 60, "x": 24}
        np.testing.assert_array_equal(ds["v"], np.concatenate([VALUES[0] + part for part in range(3)]))


def test_open_groups_and_tree_as_h5netcdf(tmp_path: Path) -> None:
    tree = xr.DataTree.from_dict(
        {
            "/": xr.Dataset({"a": ("x", np.arange(3.0))}, {"x": [1, 2, 3]}, {"title": "root"}),
            "/g": xr.Dataset({"b": (("x", "y"), np.ones((3, 2)))}),
            "/g/h": xr.Dataset({"c": 7}),
        }
    )
    path = tmp_path / "tree.nc"
    tree.to_netcdf(path, engine="h5netcdf")
    with xr.open_datatree(path, engine="tamis") as ours, xr.open_datatree(path, engine="h5netcdf") as theirs:
        xr.testing.assert_identical(ours, theirs)
    assert list(xr.open_groups(path, engine="tamis", group="g")) == ["/", "/h"]
    with xr.open_dataset(path, engine="tamis", group="/g/h") as ds:
        assert ds["c"] == 7
    for group, kind in {"nowhere": "none", "a": "a dataset"}.items():
        with pytest.raises(FileError, match=f"expected a group at '/{group}', found {kind}"):
            xr.open_dataset(path, engine="tamis", group=group)


@pytest.fixture
def kinds(tmp_path: Path) -> Path:
    """A file with values of many kinds."""
    with netCDF4.Dataset(tmp_path / "kinds.nc", "w") as file:
        for name, size in {"n": 3, "none": None, "t": None, "letters": 4}.items():
            file.createDimension(name, size)
        file.createVariable("text", str, ("n",))[:] = np.array(["a", "", "wörd"], object)
        file.createVariable("chars", "S1", ("n", "letters"))[:] = netCDF4.stringtochar(np.array(["ab", "c", "d"], "S4"))
        file.createVariable("empty", "f4", ("none",), zlib=True)
        file.createVariable("scalar", "i8")[()] = 5
        color = file.createEnumType("u1", "color_t", {"red": 0, "green": 1})
        file.createVariable("enum", color, ("n",))[:] = np.array([0, 1, 0], "u1")
        record = file.createCompoundType(np.dtype([("x", "f4"), ("y", "i4")]), "record_t")
        file.createVariable("record", record, ("n",))[:] = np.array([(1, 2), (3, 4), (5, 6)], record.dtype)
        long = file.createVariable("long", ">i2", ("t", "n"), fill_value=-9, endian="big")
        long[:] = np.arange(12).reshape(4, 3)
        long.coordinates = "time"
        file.createVariable("short", "f8", ("t",))[:] = [0.5, 1.5]  # behind `long`
        time = file.createVariable("time", "f8", ("t",))
        time[:], time.units = [0, 1, 2, 3], "days since 2000-01-01"
    with h5py.File(tmp_path / "kinds.nc", "a") as file:
        file.create_dataset("flag", data=[True, False], chunks=(2,))
    return tmp_path / "kinds.nc"


def test_open_kinds_of_values_as_h5netcdf(kinds: Path) -> None:
    with (
        xr.open_dataset(kinds, engine="h5netcdf", phony_dims="access") as theirs,
        xr.open_dataset(kinds, engine="tamis", phony_dims="access") as ours,
    ):
        xr.testing.assert_identical(ours, theirs)
        assert ours.encoding["unlimited_dims"] == theirs.encoding["unlimited_dims"] == {"t", "none"}
        for name in theirs.variables:
            own, other = ours[name].encoding["dtype"], theirs[name].encoding["dtype"]
            assert (own, getattr(own, "metadata", None)) == (other, getattr(other, "metadata", None))


def test_open_short_variable_of_unlimited_dimension_ends_in_fill_values(kinds: Path) -> None:
    with xr.open_dataset(kinds, engine="netcdf4", drop_variables=["record", "flag"]) as ds:
        expected = ds["short"].to_numpy()
    selections: list[Any] = [
        3,
        0,
        -1,
        slice(1, 4, 2),
        slice(None, None, -1),
        slice(2, 4),
        [0, 3],
        [3],
        [],
        np.array([3, 0]),
    ]
    for selection in selections:
        with xr.open_dataset(kinds, engine="tamis") as ds:
            np.testing.assert_array_equal(ds["short"][selection], expected[selection])


def test_open_complex_numbers_as_netcdf4(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w", auto_complex=True) as file:
        file.createDimension("x", 5)
        file.createVariable("whole", "c16", ("x",))[:] = np.arange(5) - 1j
    with netCDF4.Dataset(tmp_path / "a.nc", "a") as file:
        for name, size in {"ri": 2, "complex": 3}.items():
            file.createDimension(name, size)
        for name, dtype, last in (("parts", "f4", "ri"), ("triples", "f4", "complex")):
            variable = file.createVariable(name, dtype, ("x", last), chunksizes=(2, 1))
            variable[:] = np.arange(variable.size).reshape(variable.shape)
    for chunks in (None, {}):
        ours, theirs = (
            xr.open_dataset(tmp_path / "a.nc", engine=engine, auto_complex=True, chunks=chunks)
            for engine in ("tamis", "netcdf4")
        )
        assert ours["parts"].encoding["chunksizes"] == theirs["parts"].encoding["chunksizes"][:1]
        np.testing.assert_array_equal(ours["parts"][[3, 1]], theirs["parts"][[3, 1]])
        xr.testing.assert_identical(ours.load(), theirs.load())


@pytest.mark.parametrize("chunks", [None, (2,)], ids=["contiguous", "chunked"])
@pytest.mark.parametrize("order", "<>")
def test_open_records_of_any_byte_order_as_h5py(tmp_path: Path, order: str, chunks: tuple[int, ...] | None) -> None:
    names = ["number", "text", "parts"]
    dtype = np.dtype({"names": names, "formats": [f"{order}i8", "S3", (f"{order}f4", (2,))], "offsets": [0, 9, 16]})
    values = np.zeros(5, dtype)
    values["number"], values["text"], values["parts"] = np.arange(5) - 2, b"abc", np.arange(10.0).reshape(5, 2)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=values, chunks=chunks)
        expected = file["v"][...]
    with xr.open_dataset(tmp_path / "a.h5", engine="tamis") as ds:
        for selection in (slice(None), slice(4, 0, -2), [1, 3], 3):
            selected = ds["v"][selection].to_numpy()
            for name in names:
                np.testing.assert_array_equal(selected[name], expected[selection][name])
        assert ds["v"].encoding["dtype"] == expected.dtype


@pytest.mark.parametrize("dtype", [np.dtype("V3"), np.dtype([("a", "<i4"), ("b", "<f4")])], ids=["opaque", "records"])
def test_open_fill_values_of_opaque_values_and_records_are_not_compared(tmp_path: Path, dtype: np.dtype[Any]) -> None:
    values = np.frombuffer(bytes(range(5 * dtype.itemsize)), dtype)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["v"] = values
        file["v"].attrs.create("_FillValue", values[1], dtype=dtype)
        file["v"].attrs["units"] = "1"
    for mask_and_scale in (True, False):
        with xr.open_dataset(tmp_path / "a.h5", engine="tamis", mask_and_scale=mask_and_scale) as ds:
            assert ds["v"].to_numpy().tobytes() == values.tobytes()
            assert ds["v"].attrs["units"] == "1"
            fill = (ds["v"].encoding if mask_and_scale else ds["v"].attrs)["_FillValue"]
            assert mask_and_scale == ("_FillValue" not in ds["v"].attrs)
            assert np.asarray(fill).tobytes() == values[1].tobytes()


def test_open_restores_missing_values_of_companion(tmp_path: Path) -> None:
    values = VALUES[0].copy()
    values[5:9, 5:9] = np.nan
    ds = xr.Dataset({"v": (("y", "x"), values)})
    ds.to_netcdf(tmp_path / "in.nc", encoding={"v": {"_FillValue": np.float32(1e20), "chunksizes": (20, 24)}})
    tamis.repack(tmp_path / "in.nc", tmp_path / "out.nc", {"v": "zfp(accuracy=0.01)"}, missing="mask")
    with xr.open_dataset(tmp_path / "out.nc", engine="tamis") as opened:
        assert list(opened.variables) == ["v"]
        np.testing.assert_array_equal(np.isnan(opened["v"]), np.isnan(values))
    with xr.open_dataset(tmp_path / "out.nc", engine="tamis", restore=False) as stored:
        assert len(stored.variables) == 2
        assert not np.isnan(stored["v"]).any()


def test_open_leaves_out_what_is_no_variable_with_warning(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["v"], file["null"] = np.arange(3), h5py.Empty("f4")
    with pytest.warns(UserWarning, match=r"f\.h5: /: null is left out: expected an array .* null dataspace"):
        ds = xr.open_dataset(tmp_path / "f.h5", engine="tamis")
    assert list(ds.variables) == ["v"]
    ds.close()


def test_attributes_without_a_value_as_netcdf4_reads_them(tmp_path: Path) -> None:
    texts = {"varying": h5py.string_dtype(), "one character": "S1", "five": "S5"}
    with h5py.File(tmp_path / "f.nc", "w") as file:
        file["v"] = np.arange(3)
        for name, dtype in {**texts, "number": "<f8"}.items():
            file.attrs[f"no {name}"] = file["v"].attrs[f"no {name}"] = h5py.Empty(dtype)
            file["v"].attrs[f"an empty list of {name}"] = np.array([], dtype)
    opened = {engine: xr.load_dataset(tmp_path / "f.nc", engine=engine) for engine in ("netcdf4", "tamis")}
    for find in (lambda dataset: dataset.attrs, lambda dataset: dataset["v"].attrs):
        expected, found = find(opened["netcdf4"]), find(opened["tamis"])
        assert found.keys() == expected.keys()
        assert {name: repr(value) for name, value in found.items()} == {
            name: repr(value) for name, value in expected.items()
        }


def test_open_wrong_input_refused(packed: Path, tmp_path: Path) -> None:
    (tmp_path / "text.nc").write_text("no file of HDF5")
    for path, text in {
        tmp_path / "absent.nc": "No such file or directory",
        tmp_path: "a Zarr store, or references \\(kerchunk\\), got a folder without Zarr metadata",
        tmp_path / "text.nc": "got text that begins with 'no file of HDF5'",
    }.items():
        with pytest.raises(FileError, match=text):
            xr.open_dataset(path, engine="tamis")
    with pytest.raises(ParameterError, match=r"expected a path or address.*: engine='h5netcdf' opens files in memory"):
        xr.open_dataset(io.BytesIO(packed.read_bytes()), engine="tamis")
    with pytest.raises(ParameterError, match="expected phony_dims to be 'sort' or 'access', got 'all'"):
        xr.open_dataset(packed, engine="tamis", phony_dims="all")
    with pytest.raises(ParameterError, match="threads"):
        xr.open_dataset(packed, engine="tamis", threads=0)


def test_open_without_engine_leaves_file_to_others(packed: Path) -> None:
    assert not TamisEngine().guess_can_open(packed)
    assert "tamis" in xr.backends.list_engines()


def test_import_without_xarray_names_the_extra() -> None:
    code = "import sys; sys.modules['xarray'] = None; import tamis.xarray"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "ImportError: tamis.xarray needs xarray, which is not installed: pip install 'tamis[xarray]'" in done.stderr


@pytest.mark.check
def test_search_for_an_engine_imports_nothing_else_of_tamis() -> None:
    code = f"""
import sys, xarray
xarray.open_dataset({str(SAMPLE)!r}).close()
print(sorted(name for name in sys.modules if name.split(".")[0].startswith("tamis")), hasattr(xarray.Dataset, "tamis"))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "['tamis_xarray', 'tamis_xarray.accessor', 'tamis_xarray.engine'] True\n"


@pytest.mark.check
def test_encoding_spells_compression_as_netcdf4_does(tmp_path: Path) -> None:
    code = """
import os
os.environ.pop("HDF5_PLUGIN_PATH", None)  # netCDF4 then finds the plugins that it carries
import netCDF4, numpy, tamis, xarray
for filters in (
    {"compression": "zstd", "complevel": 5},
    {"compression": "bzip2", "complevel": 3},
    {"compression": "szip", "szip_coding": "ec", "szip_pixels_per_block": 16},
    {"compression": "blosc_lz4", "blosc_shuffle": 2, "complevel": 4},
):
    with netCDF4.Dataset("a.nc", "w") as file:
        file.createDimension("x", 1000)
        file.createVariable("v", "i4", ("x",), chunksizes=(500,), **filters)[:] = numpy.repeat(numpy.arange(20), 50)
    name = filters["compression"].partition("_")[0]
    ours, theirs = (xarray.load_dataset("a.nc", engine=engine) for engine in ("tamis", "netcdf4"))
    assert ours.v.encoding[name] == theirs.v.encoding[name], (ours.v.encoding, theirs.v.encoding)
    assert ours.v.encoding.get("complevel", 0) == theirs.v.encoding["complevel"]
    if name == "szip":
        ours.to_netcdf("b.nc", engine="netcdf4")
        print(tamis.inspect("b.nc")["v"].pipeline)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (run.returncode, run.stdout) == (0, "szip(coding=ec,pixels=16)\n"), run.stderr


def test_dimensions_of_no_elements_have_the_names_of_netcdf(tmp_path: Path) -> None:
    """An axis of no elements, whose dimension is unlimited in netCDF-C then, shares none with a fixed one."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name in ("a", "b"):
            file[name] = np.zeros(0)
            file.create_dataset(f"{name}_grows", (0,), "f4", maxshape=(None,), chunks=(4,))
            file.create_dataset(f"{name}_table", (0, 3), "f4")
    with (
        xr.open_dataset(tmp_path / "a.h5", engine="netcdf4") as expected,
        xr.open_dataset(tmp_path / "a.h5", engine="tamis") as dataset,
    ):
        assert {name: array.dims for name, array in dataset.items()} == {
            name: array.dims for name, array in expected.items()
        }
