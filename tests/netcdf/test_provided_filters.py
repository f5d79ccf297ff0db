"""Filters that netCDF's HDF5 gets from tamis, each in a process whose HDF5_PLUGIN_PATH is of no use to netCDF4."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tamis.netcdf.library import has

pytestmark = [
    pytest.mark.skipif(not has("nc_plugin_path_set"), reason="netcdf-c before 4.9.3"),
    pytest.mark.skipif(importlib.util.find_spec("hdf5plugin") is None, reason="could not import 'hdf5plugin'"),
]

WRITE_BY_NETCDF4 = """
import netCDF4, tamis
assert tamis.netcdf.plugin_path_get() == [sys.argv[2], *sys.argv[3:], str(tamis.plugin_path())]
with netCDF4.Dataset(sys.argv[1], "w") as file:
    file.createDimension("x", 64)
    for name in ("zstd", "bzip2", "blosc_lz"):
        file.createVariable(name, "f4", ("x",), compression=name)[:] = 1
with netCDF4.Dataset(sys.argv[1]) as file:
    assert [file[name][:].sum() for name in file.variables] == [64] * 3
"""
WRITE = """
import tamis, netCDF4, numpy as np
file = netCDF4.Dataset(sys.argv[1], "w")
file.createDimension("x", 64)
file.createDimension("y", 32)
values = np.arange(2048).reshape(64, 32)
for text in ("blosc2", "bitshuffle", "lz4", "sz3(bound=0.01)"):
    name = text.partition("(")[0]
    assert tamis.netcdf.inq_filter_avail(file, name)
    tamis.netcdf.create_variable(file, name, "f4", ("x", "y"), text)[...] = values
variable = file.createVariable("defined", "f8", ("x", "y"), chunksizes=(32, 32))
tamis.netcdf.def_var_filter(variable, "blosc2(compressor=zstd)")
variable[...] = values
for other in ("lzf", 32002):
    assert not tamis.netcdf.inq_filter_avail(file, other)
try:
    tamis.netcdf.create_variable(file, "z", "f4", ("x", "y"), "lzf")
except tamis.MissingFilterError as error:
    assert error.name == "NC_ENOFILTER", error
if sys.argv[2] == "closed":
    file.close()
else:  # what netCDF-C does not close has its values, too, if Python ends
    keep = [file]
"""
READ = """
import netCDF4, numpy as np
with netCDF4.Dataset(sys.argv[1]) as file:
    for name in file.variables:
        assert abs(file[name][...] - np.arange(2048).reshape(64, 32)).max() <= 0.0101, name
    assert sorted(file.variables) == ["bitshuffle", "blosc2", "defined", "lz4", "sz3"]
"""


def folder_of(name: str) -> str:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return str(Path(spec.origin).parent / "plugins")


def run(code: str, *arguments: str | Path, plugins: str) -> str:
    env = os.environ | {"HDF5_PLUGIN_PATH": plugins}
    command = [sys.executable, "-c", f"import sys\n{code}", *map(str, arguments)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.matrix
@pytest.mark.parametrize("value", ["/nonexistent", "hdf5plugin", "hdf5plugin netCDF4"])
def test_import_tamis_lets_netcdf4_find_its_own_plugins_first(value: str, tmp_path: Path) -> None:
    own = folder_of("netCDF4")
    if not any(Path(own).glob("*nczhdf5filters*")):
        pytest.skip("this netCDF4 carries no plugins")
    folders = [name if name.startswith("/") else folder_of(name) for name in value.split()]
    others = [folder for folder in folders if folder != own]
    said = run(WRITE_BY_NETCDF4, tmp_path / "a.nc", own, *others, plugins=os.pathsep.join(folders))
    assert not said


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("plugins", "end"), [("/nonexistent", "closed"), ("/nonexistent", "left open"), ("hdf5plugin", "closed")]
)
def test_variables_through_plugins_of_hdf5plugin_are_written_by_netcdf4(plugins: str, end: str, tmp_path: Path) -> None:
    folder = folder_of("hdf5plugin")
    assert not run(WRITE, tmp_path / "a.nc", end, plugins=folder if plugins == "hdf5plugin" else plugins)
    run(READ, tmp_path / "a.nc", plugins=folder)
