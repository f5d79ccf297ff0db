"""What programs make of files of tamis when they copy or change them, with the plugin and without it."""

from __future__ import annotations

import sys
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest
from numpy.typing import NDArray

import tamis

from .conftest import Run, Target, filters

pytestmark = [pytest.mark.check, pytest.mark.peer]

ZFP, SHORT, LONG = 32013, [32013, 3], [32013, 2, 1, 3]


def stored(path: Path) -> NDArray[np.float64]:
    """Return the values of t, NaN where they are missing, read by HDF5's own filters or by tamis."""
    values = np.asarray(tamis.open(path)["t"][:], "f8")
    return np.where(values > 9e36, np.nan, values)


def test_u38_nccopy_keeps_zfp_and_loses_it_beside_deflate(targets: dict[str, Target], run: Run, tmp_path: Path) -> None:
    for kind, expected in (("zfp", SHORT), ("masks", [3, 2, 1]), ("rounded", [2, 1])):
        done = run("nccopy", targets[kind].path, f"{kind}.nc")
        assert (done.code, filters(tmp_path / f"{kind}.nc")) == (0, expected), done.output
        targets[kind].check(stored(tmp_path / f"{kind}.nc"))
    # What to do instead.
    assert run(Path(sys.executable).with_name("tamis"), "copy", targets["masks"].path, "copy.nc").code == 0
    assert filters(tmp_path / "copy.nc") == LONG
    assert tamis.verify(targets["masks"].path, tmp_path / "copy.nc").ok


def test_u38_nccopy_without_the_plugin_fails(targets: dict[str, Target], run: Run) -> None:
    assert run("nccopy", targets["zfp"].path, "o.nc", plugin=False).code == 1
    assert run("nccopy", targets["rounded"].path, "r.nc", plugin=False).code == 0


def test_u38_ncgen_writes_what_ncdump_s_says(targets: dict[str, Target], run: Run, tmp_path: Path) -> None:
    for kind in ("zfp", "rounded", "masks"):
        text = run("ncdump", "-s", "-p", "9,17", targets[kind].path).output
        (tmp_path / f"{kind}.cdl").write_text(text)
        done = run("ncgen", "-4", "-o", f"{kind}.nc", f"{kind}.cdl")
        assert (done.code, filters(tmp_path / f"{kind}.nc")) == (0, filters(targets[kind].path)), done.output
        values = stored(tmp_path / f"{kind}.nc")
        # zfp once more: errors add up.
        bound = 0.0101 if kind == "rounded" else 0.02
        np.testing.assert_allclose(values, targets[kind].values, rtol=0, atol=bound, equal_nan=True)
    # Without -s there are no filters, and everything goes.
    (tmp_path / "plain.cdl").write_text(run("ncdump", "-p", "9,17", targets["masks"].path).output)
    assert run("ncgen", "-4", "-o", "plain.nc", "plain.cdl").code == 0
    assert filters(tmp_path / "plain.nc") == []
    targets["masks"].check(stored(tmp_path / "plain.nc"))


@pytest.mark.parametrize("kind", ["zfp", "masks"])
def test_u38_nco_copies_only_through_filters_that_are_named(
    kind: str, targets: dict[str, Target], run: Run, tmp_path: Path
) -> None:
    path = targets[kind].path
    for command in (("ncks", "-O"), ("ncks", "-O", "-d", "time,0,3"), ("ncra", "-O")):
        done = run(*command, path, "failed.nc")
        assert done.code == 1
        assert "filter ID = 32013 is unknown by NCO" in done.output
    # What to do instead: other filters, no filters, or netCDF-4 made again by tamis.
    for name, options, expected in (
        ("deflate", ["--cmp=shf|dfl,1"], [2, 1]),
        ("none", ["-L", "0"], []),
        ("level", ["-L", "1"], [2, 1]),
    ):
        done = run("ncks", "-O", *options, path, f"{name}.nc")
        assert (done.code, filters(tmp_path / f"{name}.nc")) == (0, expected), done.output[-500:]
        targets[kind].check(stored(tmp_path / f"{name}.nc"))
    assert run("ncra", "-O", "-L", "0", path, "mean.nc").code == 0
    with netCDF4.Dataset(tmp_path / "mean.nc") as file:
        expected_mean = targets[kind].values.astype("f8").mean(axis=0)
        found = np.ma.filled(file["t"][0].astype("f8"), np.nan)
    np.testing.assert_allclose(found, expected_mean, rtol=0, atol=0.011)


def test_u38_nco_copies_rounded_values(targets: dict[str, Target], run: Run, tmp_path: Path) -> None:
    assert run("ncks", "-O", targets["rounded"].path, "o.nc", plugin=False).code == 0
    assert filters(tmp_path / "o.nc") == [2, 1]
    targets["rounded"].check(stored(tmp_path / "o.nc"))


@pytest.mark.parametrize("kind", ["zfp", "masks", "rounded"])
def test_u38_cdo_copies_values_and_stores_them_by_its_own_options(
    kind: str, targets: dict[str, Target], run: Run, tmp_path: Path
) -> None:
    path = targets[kind].path
    for name, options, expected in (("plain", [], []), ("zip", ["-z", "zip_1"], [1])):
        done = run("cdo", "-s", "-f", "nc4", *options, "copy", path, f"{name}.nc")
        assert (done.code, filters(tmp_path / f"{name}.nc")) == (0, expected), done.output
        targets[kind].check(stored(tmp_path / f"{name}.nc"))


def test_u38_cdo_without_the_plugin_fails_and_leaves_a_file_of_fill_values(
    targets: dict[str, Target], run: Run, tmp_path: Path
) -> None:
    assert run("cdo", "-s", "copy", targets["zfp"].path, "o.nc", plugin=False).code == 1
    with h5py.File(tmp_path / "o.nc") as file:
        assert (file["t"][:] > 9e36).all()


@pytest.mark.parametrize(("kind", "expected"), [("zfp", SHORT), ("masks", LONG), ("rounded", [2, 1])])
def test_u38_h5repack_keeps_all_filters_with_the_plugin_and_without(
    kind: str, expected: list[int], targets: dict[str, Target], run: Run, tmp_path: Path
) -> None:
    for plugin in (True, False):
        target = tmp_path / f"{plugin}.h5"
        assert run("h5repack", targets[kind].path, target, plugin=plugin).code == 0
        assert filters(target) == expected
        targets[kind].check(stored(target))


def test_u38_h5repack_to_other_filters_without_the_plugin_loses_the_dataset_and_exits_0(
    targets: dict[str, Target], run: Run, tmp_path: Path
) -> None:
    path = targets["zfp"].path
    done = run("h5repack", "-f", "GZIP=4", path, "lost.h5", plugin=False)
    assert done.code == 0
    assert "Warning: dataset </t> cannot be read" in done.output
    with h5py.File(tmp_path / "lost.h5") as file:
        assert "t" not in file
    assert run("h5repack", "-f", "GZIP=4", path, "kept.h5").code == 0
    assert filters(tmp_path / "kept.h5") == [1]
    targets["zfp"].check(stored(tmp_path / "kept.h5"))


def test_u38_gdal_translates_values_and_stores_them_by_its_own_options(
    targets: dict[str, Target], run: Run, tmp_path: Path
) -> None:
    source = f"NETCDF:{targets['masks'].path}:t"
    options = ("-of", "netCDF", "-co", "FORMAT=NC4", "-co", "COMPRESS=DEFLATE")
    assert run("gdal_translate", "-q", *options, source, "o.nc").code == 0
    with netCDF4.Dataset(tmp_path / "o.nc") as file:
        latitudes = file["lat"][:]
        values = np.ma.filled(file["t"][:].astype("f8"), np.nan)
    # From south to north, whatever the source has.
    assert latitudes[0] < latitudes[-1]
    targets["masks"].check(values[:, ::-1])


def test_u38_zarr_of_gdal_and_netcdf_c_lack_the_filters(targets: dict[str, Target], run: Run, tmp_path: Path) -> None:
    """Debian 12: GDAL 3.6 and netCDF-C 4.9.0."""
    for kind, reason in (("zfp", "fletcher32 not handled"), ("rounded", "shuffle not handled")):
        tamis.repack(targets[kind].path, tmp_path / f"{kind}.zarr", {}, zarr_format=2)
        done = run("gdalinfo", f'ZARR:"{kind}.zarr":/t')
        assert done.code == 1
        assert reason in done.output
    tamis.repack(targets["rounded"].path, tmp_path / "plain.zarr", {"t": "none"}, zarr_format=2)
    assert run("gdalinfo", 'ZARR:"plain.zarr":/t:0').code == 0


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("kind", ["zfp", "masks", "rounded"])
def test_u38_zarr_python_and_xarray_read_stores_with_tamis_installed(
    kind: str, zarr_format: int, targets: dict[str, Target], run: Run, tmp_path: Path
) -> None:
    tamis.repack(targets[kind].path, tmp_path / "o.zarr", {}, zarr_format=zarr_format)
    code = "import xarray, numpy; numpy.save('v.npy', xarray.open_zarr('o.zarr').t.values)"
    done = run(sys.executable, "-c", code, plugin=False)
    assert done.code == 0, done.output
    targets[kind].check(np.load(tmp_path / "v.npy"))
