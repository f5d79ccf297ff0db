"""Known defects D17, D23 to D26 through netCDF-C's API: what it drops, reorders or cannot find, and what tamis does."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest

import tamis
from tamis import netcdf

Run = Callable[..., str]
SHAPE = (8, 16, 16)


def folder_of(package: str) -> str:
    """Give the folder of plugins of a package, without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"could not import '{package}'")
    return str(Path(spec.origin).parent / "plugins")


DROPPED = """
import ctypes, sys
import netCDF4, tamis
raw = ctypes.PyDLL(netCDF4._netCDF4.__file__)
with netCDF4.Dataset(f"file://{sys.argv[1]}#mode=zarr,file", "w") as dataset:
    dataset.createDimension("x", 16)
    variable = dataset.createVariable("v", "f4", ("x",), chunksizes=(8,))
    words = (ctypes.c_uint * 1)(0)
    status = raw.nc_def_var_filter(variable._grpid, variable._varid, 32004, ctypes.c_size_t(1), words)
    print("netCDF-C:", status, tamis.netcdf.inq_var_filter_ids(variable))
    for call in (
        lambda: tamis.netcdf.def_var_filter(variable, tamis.Lz4()),
        lambda: tamis.netcdf.create_variable(dataset, "w", "f4", "x", "lz4"),
    ):
        try:
            call()
        except tamis.MissingFilterError as error:
            print(error.name, error)
    print(tamis.netcdf.inq_filter_avail(dataset, "lz4"), list(dataset.variables))
    tamis.netcdf.create_variable(dataset, "w", "f4", "x", "shuffle|deflate(4)")[:] = range(16)
with netCDF4.Dataset(f"file://{sys.argv[1]}#mode=zarr,file") as dataset:
    print(tamis.netcdf.filters(dataset["w"]), dataset["w"][:].sum())
"""


def test_d23_plugin_without_nczarr_codec_refused_where_netcdf_c_drops_it(tmp_path: Path, python: Run) -> None:
    folders = os.pathsep.join([folder_of("netCDF4"), folder_of("hdf5plugin")])
    said = python(DROPPED, tmp_path / "a.zarr", env={"HDF5_PLUGIN_PATH": folders}).splitlines()
    assert said[0] == "netCDF-C: 0 ()"  # success, and no filter
    for line in said[1:3]:
        assert line.startswith("NC_ENOFILTER ")
        assert "no plugin here has an NCZarr codec for lz4 (filter 32004): write HDF5" in line
    assert said[3] == "False ['v']"
    assert said[4] == "shuffle|deflate(4) 120.0"


@pytest.mark.parametrize("kind", [str, "vlen"])
def test_d23_filters_of_strings_refused_where_netcdf_c_drops_them(kind: Any, tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as dataset:
        dataset.createDimension("x", 3)
        variable = dataset.createVariable("v", dataset.createVLType("i4", "list") if kind == "vlen" else str, ("x",))
        for call in (
            lambda: netcdf.def_var_filter(variable, "deflate(4)"),
            lambda: netcdf.def_var_deflate(variable),
            lambda: netcdf.create_variable(
                dataset, "w", variable.datatype if kind == "vlen" else str, "x", "deflate(4)"
            ),
        ):
            with pytest.raises(netcdf.NetcdfError, match=r"outside the chunks.*\(NC_EFILTER, -132\)"):
                call()
        assert list(dataset.variables) == ["v"]
        assert netcdf.inq_var_filter_ids(variable) == ()


def test_d26_true_pipeline_where_netcdf_lists_another(tmp_path: Path) -> None:
    values = np.arange(4096.0, dtype="f4").reshape(16, 16, 16)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((8, 16, 16))
    for number, flag, words in ((2, 1, ()), (1, 1, (4,)), (3, 0, ()), (1, 0, (9,))):
        plist.set_filter(number, flag, words)
    with h5py.File(tmp_path / "a.nc", "w", track_order=True) as file:
        space, kind = h5py.h5s.create_simple(values.shape), h5py.h5t.IEEE_F32LE
        h5py.Dataset(h5py.h5d.create(file.id, b"v", kind, space, plist))[...] = values
    for mode in ("r", "a"):  # h5py may not open the file while netCDF has it open for writing
        with netCDF4.Dataset(tmp_path / "a.nc", mode) as dataset:
            assert netcdf.inq_var_filter_ids(dataset["v"]) == (3, 2, 1)
            assert str(netcdf.filters(dataset["v"])) == "shuffle|deflate(4)|fletcher32|deflate(9)!"
            stages = netcdf.filters(dataset["v"]).stages
            assert [(stage.flag, stage.stored) for stage in stages] == [
                ("optional", (4,)), ("optional", (4,)), ("required", ()), ("required", (9,)),
            ]  # fmt: skip


def test_d17_request_that_netcdf_would_change_or_ignore_refused(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as dataset:
        for name, extent in zip("zyx", SHAPE, strict=True):
            dataset.createDimension(name, extent)
        variable = netcdf.create_variable(dataset, "v", "f4", tuple("zyx"), "deflate(4)")
        for filters in ("shuffle|fletcher32", "fletcher32?", "zfp(rate=8)"):  # another order, flag, first filter
            with pytest.raises(tamis.ParameterError, match="expected"):
                netcdf.def_var_filter(variable, filters)
        variable[:] = 1
        with pytest.raises(netcdf.NetcdfError, match="the variable is in the file already"):
            netcdf.def_var_filter(variable, "shuffle")
        assert str(netcdf.filters(variable)) == "deflate(4)"


@pytest.mark.parametrize("text", ["307,1.5", "307,0xff", "307,4294967296", "307,5LU", "[0]307,9"])
def test_d25_text_that_netcdf_c_reads_as_something_else_refused_on_definition(text: str, tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as dataset:
        dataset.createDimension("x", 16)
        variable = dataset.createVariable("v", "f4", ("x",), chunksizes=(8,))
        with pytest.raises(tamis.ParameterError, match="at position"):
            netcdf.def_var_filter(variable, text)
        assert netcdf.inq_var_filter_ids(variable) == ()


AVAILABLE = """
import sys
{imports}
import h5py, numpy as np
values = np.sin(np.arange(4096, dtype="f4")).reshape(16, 16, 16)
with netCDF4.Dataset(sys.argv[1], "w") as dataset:
    for name in "zyx":
        dataset.createDimension(name, 16)
    zfp = tamis.Zfp(accuracy=1e-3)
    tamis.netcdf.create_variable(dataset, "v", "f4", tuple("zyx"), zfp, chunksizes=(4, 16, 16))[:] = values
with h5py.File(sys.argv[1]) as file:
    print(np.abs(file["v"][...] - values).max() <= 1e-3, file["v"].id.get_chunk_info(0).filter_mask)
with h5py.File(sys.argv[2], "w") as file:
    file.create_dataset("v", data=values, chunks=(4, 16, 16), **tamis.Zfp(accuracy=1e-3))
with netCDF4.Dataset(sys.argv[2]) as dataset:
    print(np.abs(dataset["v"][:] - values).max() <= 1e-3)
"""


@pytest.mark.matrix
@pytest.mark.parametrize(
    "imports",
    ["import tamis, netCDF4", "import netCDF4, tamis", "import netCDF4, h5py, tamis"],
)
def test_d24_import_of_tamis_serves_netcdf4_imported_before_or_after(
    imports: str, tmp_path: Path, without_plugins: Run
) -> None:
    said = without_plugins(AVAILABLE.format(imports=imports), tmp_path / "a.nc", tmp_path / "b.nc")
    assert said.split() == ["True", "0", "True"]


def test_d24_netcdf4_alone_has_no_zfp(tmp_path: Path, without_plugins: Run) -> None:
    code = "import netCDF4, ctypes; print(ctypes.PyDLL(netCDF4._netCDF4.__file__).H5Zfilter_avail(32013))"
    assert without_plugins(code).strip() == "0"  # what the test above would otherwise not see


THREADS = """
import sys, threading
import h5py, netCDF4, numpy as np, tamis
folder, rounds, failures = sys.argv[1], 8, []
values = np.cumsum(np.random.default_rng(0).standard_normal((8, 32, 32)), axis=0)

def by_netcdf4():
    for turn in range(rounds):
        with netCDF4.Dataset(f"{folder}/a.nc", "w") as dataset:
            for name, extent in zip("zyx", values.shape):
                dataset.createDimension(name, extent)
            tamis.netcdf.create_variable(dataset, "v", "f8", tuple("zyx"), "zfp(accuracy=1e-3)|fletcher32")[:] = values
        with netCDF4.Dataset(f"{folder}/a.nc") as dataset:
            if np.abs(dataset["v"][:] - values).max() > 1e-3 or tamis.netcdf.filters(dataset["v"]).zfp is None:
                failures.append(turn)

def by_h5py(name):
    for turn in range(rounds):
        with h5py.File(f"{folder}/{name}.h5", "w") as file:
            file.create_dataset("v", data=values, chunks=(4, 16, 16), **tamis.Zfp(accuracy=1e-3))
        with h5py.File(f"{folder}/{name}.h5") as file:
            if np.abs(file["v"][...] - values).max() > 1e-3:
                failures.append(turn)

threads = [threading.Thread(target=by_netcdf4), *(threading.Thread(target=by_h5py, args=(n,)) for n in "bc")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("failures", failures)
"""


def test_d24_netcdf4_and_h5py_write_and_read_zfp_in_threads_at_once(tmp_path: Path, without_plugins: Run) -> None:
    assert without_plugins(THREADS, tmp_path).strip() == "failures []"
