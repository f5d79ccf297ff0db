"""The plugin in netCDF4's libhdf5: how it gets there when netCDF4 is imported after tamis."""

from __future__ import annotations

import os
import subprocess
import sys

LATER = """
import importlib.machinery, importlib.util, sys
import tamis
from tamis import import_hook
finders = [finder for finder in sys.meta_path if type(finder) is import_hook._Finder]
import_hook.after_import("netCDF4._netCDF4", tamis._add_plugin)
assert [finder for finder in sys.meta_path if type(finder) is import_hook._Finder] == finders
assert len(finders) == 1 and "netCDF4" not in sys.modules
assert importlib.util.find_spec("netCDF4") is not None  # looking is not importing
assert importlib.util.find_spec("no_such_module") is None
assert "netCDF4" not in sys.modules
import ctypes, netCDF4
assert netCDF4._netCDF4.__file__ == netCDF4._netCDF4.__spec__.origin
assert netCDF4._netCDF4.__loader__ is netCDF4._netCDF4.__spec__.loader
assert type(netCDF4._netCDF4.__loader__) is importlib.machinery.ExtensionFileLoader
print(ctypes.PyDLL(netCDF4._netCDF4.__file__).H5Zfilter_avail(32013), os.environ.get("HDF5_PLUGIN_PRELOAD"))
"""

WITHOUT = """
import sys
sys.modules["netCDF4"] = None
import tamis
try:
    tamis.netcdf.inq_filter_avail(None, 1)
except tamis.MissingFilterError as error:
    print(error)
"""


def run(code: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("HDF5_PLUGIN")}
    done = subprocess.run(
        [sys.executable, "-c", f"import os\n{code}"],
        env=env | {"HDF5_PLUGIN_PRELOAD": "::"},  # HDF5 loads no plugin by itself
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_netcdf4_imported_after_tamis_has_zfp_where_no_plugin_is_loaded() -> None:
    assert run(LATER) == "1 ::"


def test_netcdf4_absent_names_the_extra() -> None:
    said = run(WITHOUT)
    assert said.startswith("tamis.netcdf works through netCDF4")
    assert said.endswith("pip install 'tamis[netcdf]'")


WHILE_IMPORTED = """
import sys, types, h5py, tamis
sys.modules["netCDF4"] = types.ModuleType("netCDF4")
from tamis.netcdf.library import register
register(h5py.h5p)  # a libhdf5 without the list of folders of netcdf-c 4.9.3
print("registered")
"""


def test_register_before_netcdf_c_4_9_3_asks_nothing_of_netcdf4_which_is_being_imported() -> None:
    assert run(WHILE_IMPORTED) == "registered"
