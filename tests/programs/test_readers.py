"""What programs read from files of tamis, with the plugin and without it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from .conftest import Run, Target

pytestmark = [pytest.mark.check, pytest.mark.peer]

_R = "v <- format(v, digits = 9); cat(v, sep = '\\n')"
_OCTAVE = "printf('%.9g\\n', v); exit(0)"
_PRINT = "import sys, numpy; print(*numpy.asarray(v).ravel().tolist(), sep='\\n')"

# Each prints the values of t, slowest axis first, one after the other.
READERS: dict[str, tuple[str, ...]] = {
    "ncdump": ("ncdump", "-p", "9,17", "-v", "t", "{}"),
    "ncks": ("ncks", "-H", "-C", "-s", "%.9g\\n", "-v", "t", "{}"),
    "cdo": ("cdo", "-s", "outputf,%.9g,1", "{}"),
    "h5dump": ("h5dump", "-A", "0", "-y", "-w", "1", "-m", "%.9g", "-d", "t", "{}"),
    "R ncdf4": ("Rscript", "-e", f"library(ncdf4); v <- ncvar_get(nc_open('{{}}'), 't'); {_R}"),
    "R hdf5r": ("Rscript", "-e", f"library(hdf5r); v <- H5File$new('{{}}', 'r')[['t']][,,]; {_R}"),
    "R terra": ("Rscript", "-e", f"suppressMessages(library(terra)); v <- as.vector(values(rast('{{}}', 't'))); {_R}"),
    "Octave ncread": ("octave", "--no-gui", "-q", "--eval", f"pkg load netcdf; v = ncread('{{}}', 't'); {_OCTAVE}"),
    "Octave load": ("octave", "--no-gui", "-q", "--eval", f"v = load('-hdf5', '{{}}').t; {_OCTAVE}"),
    "h5py": (sys.executable, "-c", f"import h5py; v = h5py.File('{{}}')['t'][:]; {_PRINT}"),
    "netCDF4": (sys.executable, "-c", f"import netCDF4; v = netCDF4.Dataset('{{}}')['t'][:].filled(); {_PRINT}"),
    "PyTables": (sys.executable, "-c", f"import tables; v = tables.open_file('{{}}').root.t[:]; {_PRINT}"),
    "h5netcdf": (sys.executable, "-c", f"import h5netcdf; file = h5netcdf.File('{{}}'); v = file['t'][:]; {_PRINT}"),
    "xarray": (sys.executable, "-c", f"import xarray; v = xarray.open_dataset('{{}}', engine='netcdf4').t; {_PRINT}"),
    "Dask": (
        sys.executable,
        "-c",
        f"import xarray; v = xarray.open_dataset('{{}}', engine='h5netcdf', chunks={{{{}}}}).t.compute(); {_PRINT}",
    ),
}


def numbers(text: str) -> NDArray[np.float64]:
    """Return the values that a reader printed; fill values and words for missing values become NaN."""
    text = re.sub(r"^.*\bDATA \{|^.*\bt =", "", text, flags=re.DOTALL)
    words = re.split(r"[\s,;}]+", text.strip())
    values = np.array([float("nan" if word in ("_", "NA", "NaN") else word) for word in words if word])
    return np.where(values > 9e36, np.nan, values)


@pytest.mark.parametrize("kind", ["zfp", "masks", "rounded"])
@pytest.mark.parametrize("program", READERS)
def test_u38_programs_with_the_plugin_read_every_value_within_the_bound(
    program: str, kind: str, targets: dict[str, Target], run: Run
) -> None:
    done = run(*(word.format(targets[kind].path) for word in READERS[program]))
    assert done.code == 0, done.output[-2000:]
    targets[kind].check(numbers(done.values))


@pytest.mark.parametrize("program", READERS)
def test_u38_programs_without_the_plugin_read_rounded_values_and_fail_on_zfp(
    program: str, targets: dict[str, Target], run: Run
) -> None:
    command = READERS[program]
    done = run(*(word.format(targets["rounded"].path) for word in command), plugin=False)
    assert done.code == 0, done.output[-2000:]
    targets["rounded"].check(numbers(done.values))
    assert run(*(word.format(targets["zfp"].path) for word in command), plugin=False).code != 0


@pytest.mark.parametrize("kind", ["zfp", "masks", "rounded"])
def test_u38_gdal_with_the_plugin_reads_every_value_within_the_bound(
    kind: str, targets: dict[str, Target], run: Run, tmp_path: Path
) -> None:
    for driver in ("NETCDF:{}:t", "HDF5:{}://t"):
        source = driver.format(targets[kind].path)
        done = run("gdal_translate", "-q", "-of", "ENVI", "-co", "INTERLEAVE=BSQ", source, "raw.bin")
        assert done.code == 0, done.output
        values = np.fromfile(tmp_path / "raw.bin", "<f4").astype("f8")
        targets[kind].check(np.where(values > 9e36, np.nan, values))


def test_u38_gdal_without_the_plugin_fails_but_gdalinfo_exits_0(targets: dict[str, Target], run: Run) -> None:
    source = f"NETCDF:{targets['zfp'].path}:t"
    assert run("gdal_translate", "-q", "-of", "ENVI", source, "raw.bin", plugin=False).code == 1
    done = run("gdalinfo", "-stats", source, plugin=False)
    assert done.code == 0
    assert "undefined filter encountered" in done.output


def test_u38_h5diff_compares_with_the_plugin_and_fails_without(targets: dict[str, Target], run: Run) -> None:
    path = targets["zfp"].path
    source = path.with_name("zfp.source.nc")
    assert run("h5diff", "-d", "0.01", source, path, "t").code == 0
    assert run("h5diff", source, path, "t").code == 1
    assert run("h5diff", source, path, "t", plugin=False).code == 2
