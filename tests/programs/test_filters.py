"""What programs make of each filter that plan may choose: docs/programs.md has a row for each."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import netCDF4
import numpy as np
import pytest

from tamis import Pipeline
from tamis.jobs.plan.readers import least_readers, readable
from tamis.stores import EVERY_PROGRAM, NCO, OF_HDF5
from tamis.stores.readers import NOT_OF_NCO

from .conftest import BOUND, Run, Target, make_target, without_gaps
from .test_readers import READERS, numbers

pytestmark = [pytest.mark.check, pytest.mark.peer]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "programs.md"
FILTERS = {
    "deflate": "shuffle|deflate(4)",
    "fletcher32": "shuffle|deflate(4)|fletcher32",
    "szip": "szip(nn,16)",
    "nbit": "nbit",
    "scaleoffset": f"pack({BOUND})|scaleoffset",
    "bzip2": "bzip2(9)",
    "zstd": "shuffle|zstd(9)",
    "zfp": f"zfp(accuracy={BOUND})",
    "lz4": "shuffle|lz4",
    "bitshuffle": "bitshuffle(compressor=zstd)",
    "blosc2": "blosc2(zstd,9,bytedelta)",
    "sperr": f"sperr(bound={BOUND})|shuffle|deflate(4)",
    "sz3": f"sz3(bound={BOUND})|shuffle|deflate(4)",
}
OWN = [name for name in FILTERS if name in OF_HDF5]
OTHERS = [name for name in FILTERS if name not in OF_HDF5]
# Variables that NCO copies or computes from one file to another.
OPERATORS = {
    "ncks": "ncks -O {} o.nc",
    "ncra": "ncra -O {} o.nc",
    "ncwa": "ncwa -O -a lat {} o.nc",
    "ncrcat": "ncrcat -O {} {} o.nc",
    "ncpdq -U": "ncpdq -O -U {} o.nc",
}
WORKS_IN_NCO = {
    **{name: {*OPERATORS} for name in ("deflate", "fletcher32", "nbit", "bzip2")},
    "scaleoffset": {"ncks", "ncrcat"},
}
"""Operators that work on each filter; none for those that are left out."""


@pytest.fixture(scope="module")
def filtered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Target]:
    """A file with a variable for each filter."""
    folder = tmp_path_factory.mktemp("filters")
    return {name: make_target(folder / f"{name}.nc", without_gaps(), text) for name, text in FILTERS.items()}


def folder_of(package: str) -> Path:
    """Return the folder of plugins of a package, which is not imported: it would change h5py in this process."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "plugins"


def plugin_for(name: str) -> Path | bool:
    """Return the plugin that a filter needs: none, that of tamis, or those of hdf5plugin."""
    return False if name in OWN else True if name == "zfp" else folder_of("hdf5plugin")


def command(program: str, target: Target) -> list[str]:
    return [word.format(target.path) for word in READERS[program]]


def check(target: Target, printed: str) -> None:
    """Check values that a program printed: those of the file, or its integers, which attributes explain."""
    values = numbers(printed)
    with netCDF4.Dataset(target.path) as file:
        names = file["t"].ncattrs()
        scale, offset = (
            float(file["t"].getncattr(name)) if name in names else None for name in ("scale_factor", "add_offset")
        )
    if scale is not None and offset is not None and np.abs(values).max() < 200:  # kelvin are near 280
        values = values * scale + offset
    target.check(values)


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("program", READERS)
def test_u70_programs_read_the_filters_of_hdf5_without_a_plugin(
    program: str, name: str, filtered: dict[str, Target], run: Run
) -> None:
    words = command(program, filtered[name])
    if program == "ncks" and name == "scaleoffset":
        words = [word.replace("%.9g", "%d") for word in words]  # integers
    done = run(*words, plugin=False)
    if program == "PyTables" and name == "szip":
        assert done.code != 0, "PyTables' wheels have szip now: say so in docs/programs.md"
        return
    assert done.code == 0, done.output[-2000:]
    check(filtered[name], done.values)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("program", READERS)
def test_programs_read_other_filters_with_their_plugins_and_fail_without(
    program: str, name: str, filtered: dict[str, Target], run: Run
) -> None:
    words = command(program, filtered[name])
    if program in ("ncdump", "h5dump"):  # others fail as well, and take a second to begin
        assert run(*words, plugin=False).code != 0
    done = run(*words, plugin=plugin_for(name))
    assert done.code == 0, done.output[-2000:]
    check(filtered[name], done.values)


@pytest.mark.parametrize("name", ["bzip2", "zstd"])
@pytest.mark.parametrize("program", ["ncdump", "cdo", "h5dump", "R ncdf4", "Octave ncread"])
def test_programs_read_bzip2_and_zstd_with_the_plugins_of_netcdf_c(
    program: str, name: str, filtered: dict[str, Target], run: Run
) -> None:
    done = run(*command(program, filtered[name]), plugin=folder_of("netCDF4"))
    assert done.code == 0, done.output[-2000:]
    check(filtered[name], done.values)


@pytest.mark.parametrize("driver", ["NETCDF:{}:t", "HDF5:{}://t"])
@pytest.mark.parametrize("name", FILTERS)
def test_gdal_reads_each_filter_with_its_plugin(
    name: str, driver: str, filtered: dict[str, Target], run: Run, tmp_path: Path
) -> None:
    command = ("gdal_translate", "-q", "-unscale", "-ot", "Float32", "-of", "ENVI", "-co", "INTERLEAVE=BSQ")
    done = run(*command, driver.format(filtered[name].path), "raw.bin", plugin=plugin_for(name))
    assert done.code == 0, done.output
    values = np.fromfile(tmp_path / "raw.bin", "<f4").astype("f8")
    if name == "scaleoffset" and driver.startswith("HDF5"):  # this driver knows no scale_factor
        with netCDF4.Dataset(filtered[name].path) as file:
            values = values * float(file["t"].scale_factor) + float(file["t"].add_offset)
    filtered[name].check(values)


@pytest.mark.parametrize("name", FILTERS)
def test_u70_nco_copies_and_averages_few_filters(name: str, filtered: dict[str, Target], run: Run) -> None:
    """Debian 12: NCO 5.1.4. `read by` says "not NCO 5.1" of the filters of HDF5 that it lacks."""
    plugin = plugin_for(name)
    path = filtered[name].path
    works = {
        operator
        for operator, words in OPERATORS.items()
        if run(*(word.format(path) for word in words.split()), plugin=plugin).code == 0
    }
    assert works == WORKS_IN_NCO.get(name, set())
    if name in OWN:
        assert (works != {*OPERATORS}) == (name in NOT_OF_NCO)
    # What to do instead.
    assert run("ncks", "-O", "-L", "1", path, "o.nc", plugin=plugin).code == 0
    version = run("ncks", "--version", plugin=False).output
    assert re.search(rf"version {re.escape(NCO.split()[1])}\b", version), "another NCO: look again at what it lacks"


@pytest.mark.parametrize("name", FILTERS)
def test_nccopy_keeps_the_values_of_all_but_sperr_and_sz3(
    name: str, filtered: dict[str, Target], run: Run, tmp_path: Path
) -> None:
    plugin = plugin_for(name)
    done = run("nccopy", filtered[name].path, "o.nc", plugin=plugin)
    assert (done.code == 0) == (name not in ("sperr", "sz3")), done.output
    if done.code == 0:
        done = run("ncdump", "-p", "9,17", "-v", "t", "o.nc", plugin=plugin)
        check(filtered[name], done.values)


@pytest.mark.parametrize("name", FILTERS)
def test_page_has_a_row_with_the_readers_of_each_filter(name: str) -> None:
    table = PAGE.read_text(encoding="utf-8").partition("## By filter")[2].partition("\n## ")[0]
    (row,) = [line for line in table.splitlines() if re.match(rf"\|[^|]*`{name}`", line)]
    filters = Pipeline.parse(FILTERS[name]).filters
    assert f"| `{least_readers(filters, 'any')}` |" in row
    assert readable(filters, "any") == ({item.name for item in filters} <= EVERY_PROGRAM)
    works = WORKS_IN_NCO.get(name, set())
    said = "all" if works == {*OPERATORS} else " and ".join(f"`{word}`" for word in sorted(works)) or "none"
    assert f"| {said}" in row.partition(f"`{least_readers(filters, 'any')}`")[2]
