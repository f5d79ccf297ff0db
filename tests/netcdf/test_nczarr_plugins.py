"""U34: netCDF-C loads the plugins of NCZarr once, when a process first uses a filter there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tamis.netcdf.library import has

netCDF4 = pytest.importorskip("netCDF4")  # noqa: N816 - its name
PLUGINS = Path(netCDF4.__file__).parent / "plugins"

pytestmark = [
    pytest.mark.skipif(not has("nc_plugin_path_set"), reason="netcdf-c before 4.9.3"),
    pytest.mark.skipif(not PLUGINS.is_dir(), reason="this wheel has no codecs for NCZarr"),
]

WRITE = """
import sys
import netCDF4, tamis
folder, plugins, order = sys.argv[1:]
tamis.netcdf.plugin_path_set([])  # as where netCDF4 carries no plugins

def open_store(name):
    dataset = netCDF4.Dataset(f"file://{folder}/{name}#mode=zarr,file", "w")
    dataset.createDimension("x", 100)
    return dataset

if order == "late":
    tamis.netcdf.inq_filter_avail(open_store("first"), "deflate")
tamis.netcdf.plugin_path_append(plugins)
dataset = open_store("second")
try:
    tamis.netcdf.def_var_filter(dataset.createVariable("v", "f4", ("x",)), "shuffle|deflate(4)")
except tamis.TamisError as error:
    print(error)
else:
    dataset["v"][:] = range(100)
    dataset.close()
    with netCDF4.Dataset(f"file://{folder}/second#mode=zarr,file") as dataset:
        print(*dataset["v"][[0, 99]])
"""


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (
            "late",
            ": write HDF5, use another filter, or add the folder of its plugin with"
            " tamis.netcdf.plugin_path_append before the process first uses a filter in NCZarr",
        ),
        ("early", "0.0 99.0"),
    ],
)
def test_u34_plugins_of_nczarr_added_after_the_first_use_are_an_error_that_says_so(
    python: Callable[..., str], tmp_path: Path, order: str, expected: str
) -> None:
    said = python(WRITE, tmp_path, PLUGINS, order, env={"HDF5_PLUGIN_PATH": "/nonexistent"})
    assert expected in said
