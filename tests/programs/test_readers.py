"""What programs read from files of tamis, with the plugin and without it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import netCDF4
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
    "netCDF4": (
        sys.executable,
        "-c",
        f"import netCDF4; v = netCDF4.Dataset('{{}}')['t'][:].filled(float('nan')); {_PRINT}",
    ),
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


@pytest.mark.parametrize("kind", ["packed", "zeros"])
@pytest.mark.parametrize("program", ["R ncdf4", "R terra", "Octave ncread", "netCDF4", "xarray", "Dask"])
def test_programs_unpack_every_value_within_the_bound(
    program: str, kind: str, targets: dict[str, Target], run: Run
) -> None:
    done = run(*(word.format(targets[kind].path) for word in READERS[program]), plugin=False)
    assert done.code == 0, done.output[-2000:]
    targets[kind].check(numbers(done.values))


@pytest.mark.parametrize("kind", ["packed", "zeros"])
@pytest.mark.parametrize(
    "command", ["ncpdq -O -U {} o.nc", "ncap2 -O -s t=t*1.0f {} o.nc", "cdo -s -b F32 copy {} o.nc"]
)
def test_nco_and_cdo_unpack_every_value_within_the_bound_and_lose_no_zero(
    command: str, kind: str, targets: dict[str, Target], run: Run, tmp_path: Path
) -> None:
    """They compare unpacked values with the number of the packed fill value."""
    done = run(*(word.format(targets[kind].path) for word in command.split()), plugin=False)
    assert done.code == 0, done.output
    with netCDF4.Dataset(tmp_path / "o.nc") as file:
        assert file["t"].dtype == np.float32
        targets[kind].check(np.ma.filled(file["t"][:].astype("f8"), np.nan))


@pytest.mark.parametrize("kind", ["packed", "zeros"])
def test_gdal_unscales_every_value_within_the_bound(
    kind: str, targets: dict[str, Target], run: Run, tmp_path: Path
) -> None:
    command = ("gdal_translate", "-q", "-unscale", "-ot", "Float32", "-of", "ENVI", "-co", "INTERLEAVE=BSQ")
    done = run(*command, f"NETCDF:{targets[kind].path}:t", "raw.bin", plugin=False)
    assert done.code == 0, done.output
    values = np.fromfile(tmp_path / "raw.bin", "<f4").astype("f8")
    with netCDF4.Dataset(targets[kind].path) as file:
        targets[kind].check(np.where(values == file["t"]._FillValue, np.nan, values))


@pytest.mark.parametrize("program", ["ncdump", "ncks", "h5dump", "R hdf5r", "Octave load", "h5py", "PyTables"])
def test_other_programs_show_the_integers_of_packed_values(program: str, targets: dict[str, Target], run: Run) -> None:
    command = " ".join(READERS[program]).replace("%.9g", "%d") if program == "ncks" else ""
    done = run(*(word.format(targets["packed"].path) for word in command.split() or READERS[program]), plugin=False)
    assert done.code == 0, done.output[-2000:]
    with netCDF4.Dataset(targets["packed"].path) as file:
        scale, offset, fill = (file["t"].getncattr(name) for name in ("scale_factor", "add_offset", "_FillValue"))
    codes = numbers(done.values)
    targets["packed"].check(np.where(codes == fill, np.nan, codes) * float(scale) + float(offset))


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
