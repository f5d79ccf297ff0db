"""D22: NCZarr's shuffle claims elements of 0 bytes; `tamis.repair` makes the store right for zarr-python."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
import zarr
from click.testing import CliRunner

import tamis
from tamis import FileError
from tamis.cli import main
from tamis.netcdf.library import has

netCDF4 = pytest.importorskip("netCDF4")  # noqa: N816 - its name
VALUES = {"v": np.arange(480, dtype="f4").reshape(8, 6, 10), "w": np.arange(480, dtype="i2").reshape(8, 6, 10) - 100}


@pytest.fixture
def store(tmp_path: Path, netcdf4_plugins: None) -> Path:
    """A store as netCDF-C writes it, which zarr-python reads wrong."""
    path = tmp_path / "a.zarr"
    if not has("nc_plugin_path_set") or not (Path(netCDF4.__file__).parent / "plugins").is_dir():
        pytest.skip("this wheel has no codecs for NCZarr")
    with netCDF4.Dataset(f"file://{path}#mode=zarr,file", "w") as dataset:
        for name, extent in zip("zyx", (8, 6, 10), strict=True):
            dataset.createDimension(name, extent)
        for name, values in VALUES.items():
            group = dataset.createGroup("g") if name == "w" else dataset
            options: dict[str, Any] = {"zlib": True, "complevel": 4, "shuffle": True, "chunksizes": (4, 6, 10)}
            group.createVariable(name, values.dtype, tuple("zyx"), **options)[:] = values
    if '"elementsize": 0' not in (path / "v" / ".zarray").read_text():
        pytest.skip("this wheel writes the size of the values")
    return path


def metadata(store: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in store.rglob(".z*")}


def test_repaired_store_is_read_right_by_all(store: Path) -> None:
    zarr.consolidate_metadata(str(store), zarr_format=2)
    assert not np.array_equal(zarr.open_group(str(store), mode="r")["v"][...], VALUES["v"])
    chunk, before = (store / "v" / "0.0.0").read_bytes(), metadata(store)
    (store / "v" / ".zarray.0123abcd.tamis").write_text("of a killed run")
    assert [array.path for array in tamis.repair(store, dry_run=True).datasets] == ["/g/w", "/v"]
    assert metadata(store).items() >= before.items()
    result = tamis.repair(store)
    assert result["v"].filters.startswith("shuffle")
    assert metadata(store).keys() == before.keys()
    assert (store / "v" / "0.0.0").read_bytes() == chunk
    for consolidated in (True, False):
        group = zarr.open_group(str(store), mode="r", use_consolidated=consolidated)
        np.testing.assert_array_equal(group["v"][...], VALUES["v"])
        np.testing.assert_array_equal(group["g/w"][...], VALUES["w"])
    with xarray.open_zarr(store) as ds, netCDF4.Dataset(f"file://{store}#mode=zarr,file") as dataset:
        np.testing.assert_array_equal(ds.v.values, VALUES["v"])
        np.testing.assert_array_equal(dataset["g/w"][...], VALUES["w"])
    run = CliRunner().invoke(main, ["repair", str(store)])
    assert (run.exit_code, run.output) == (0, f"{store}: nothing to repair\n")


def test_nothing_changes_if_a_file_cannot_be_replaced(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, replace, calls = metadata(store), os.replace, []

    def full_disk(source: Any, target: Any) -> None:
        calls.append(target)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(source, target)

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(FileError, match=r"v/\.zarray: cannot be written: the disk is full"):
        tamis.repair(store)
    assert metadata(store) == before


def test_what_cannot_be_repaired_is_refused(store: Path, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="expected the folder of a Zarr store, found none"):
        tamis.repair(tmp_path / "none")
    path = store / "v" / ".zarray"
    document = json.loads(path.read_text())
    swapped = document | {"filters": [document["compressor"]], "compressor": document["filters"][0]}
    path.write_text(json.dumps(swapped))
    with pytest.raises(FileError, match=r"expected shuffle as the first codec, got zlib\|shuffle"):
        tamis.repair(store)
    path.write_text(json.dumps(document))
    chunk = store / "v" / "0.0.0"
    chunk.write_bytes(chunk.read_bytes()[:9])
    with pytest.raises(FileError, match=r"chunk at \(0, 0, 0\) cannot be decoded"):
        tamis.repair(store)
    (store / ".zattrs").write_text("{}")
    with pytest.raises(FileError, match="no sign that netCDF-C wrote this store"):
        tamis.repair(store)
