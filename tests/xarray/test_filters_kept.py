"""D18: filters outlive xarray's open and save."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray

import tamis

Run = Callable[..., str]
SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"

# In a process of its own, because netCDF4 takes the plugin path from the environment.
SAVE = """
import sys, xarray, tamis
source, target, opener, engine, helped = sys.argv[1:]
with xarray.open_dataset(source, engine=opener) as ds:
    encoding = tamis.encoding(ds, engine=engine) if helped == "helped" else None
    ds.to_netcdf(target, engine=engine, encoding=encoding)
"""


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("d18") / "lossy.nc"
    tamis.repack(SAMPLE, path, {"TS": "zfp(accuracy=0.1)"})
    return path


def save(python: Run, *arguments: str | Path, exit_code: int = 0) -> str:
    return python(SAVE, *arguments, env={"HDF5_PLUGIN_PATH": str(tamis.plugin_path())}, exit_code=exit_code)


def pipelines(path: Path) -> dict[str, str]:
    return {each.path: str(each.pipeline) for each in tamis.inspect(path).datasets}


@pytest.mark.matrix
@pytest.mark.parametrize("opener", ["h5netcdf", "netcdf4"])
def test_d18_xarray_open_and_save_keeps_zfp(opener: str, lossy: Path, tmp_path: Path, python: Run) -> None:
    """D18: xarray loses ZFP or fails; with tamis.encoding the filters, chunks and values are those of the file."""
    target = tmp_path / "again.nc"
    save(python, lossy, target, opener, "h5netcdf", "helped")
    assert pipelines(target) == pipelines(lossy)
    assert "zfp" in pipelines(target)["/TS"]
    with h5py.File(lossy) as old, h5py.File(target) as new:
        assert new["TS"].chunks == old["TS"].chunks
        assert new["TS"].id.get_num_chunks() == sum(
            not new["TS"].id.get_chunk_info(i).filter_mask & 1 for i in range(new["TS"].id.get_num_chunks())
        )
        assert np.abs(new["TS"][...] - old["TS"][...]).max() <= 0.0625  # the power of two that the file has


@pytest.mark.check
@pytest.mark.parametrize("opener", ["h5netcdf", "netcdf4"])
def test_d18_xarray_netcdf4_engine_is_refused_rather_than_losing_zfp(
    opener: str, lossy: Path, tmp_path: Path, python: Run
) -> None:
    said = save(python, lossy, tmp_path / "again.nc", opener, "netcdf4", "helped", exit_code=1)
    assert "TS: the engine netcdf4 cannot write zfp(accuracy=0.0625)|fletcher32" in said
    assert "engine='h5netcdf' supports more filters; tamis repack" in said
    assert not (tmp_path / "again.nc").exists()


@pytest.mark.check
def test_d18_engine_tamis_keeps_zfp_in_xarray_alone_and_any_pipeline_in_ours(
    lossy: Path, tmp_path: Path, python: Run
) -> None:
    save(python, lossy, tmp_path / "again.nc", "tamis", "h5netcdf", "alone")
    assert pipelines(tmp_path / "again.nc") == pipelines(lossy)
    said = save(python, lossy, tmp_path / "lost.nc", "tamis", "netcdf4", "alone", exit_code=1)
    assert "Unsupported value for compression" in said
    tamis.repack(lossy, tmp_path / "both.nc", {"TS": "zfp(accuracy=0.0625)|shuffle|deflate(4)|fletcher32"})
    with xarray.open_dataset(tmp_path / "both.nc", engine="tamis") as ds:
        ds.tamis.to_netcdf(tmp_path / "ours.nc")
    assert pipelines(tmp_path / "ours.nc") == pipelines(tmp_path / "both.nc")
    assert pipelines(tmp_path / "ours.nc")["/TS"] == "zfp(accuracy=0.0625)|fletcher32"


@pytest.mark.check
def test_d18_today_xarray_alone_loses_zfp_or_fails(lossy: Path, tmp_path: Path, python: Run) -> None:
    target = tmp_path / "again.nc"
    save(python, lossy, target, "netcdf4", "netcdf4", "alone")
    assert "zfp" not in json.dumps(pipelines(target))
    said = save(python, lossy, target, "h5netcdf", "h5netcdf", "alone", exit_code=1)
    assert 'Compression filter "unknown" is unavailable' in said


@pytest.mark.parametrize("engine", ["h5netcdf", "netcdf4"])
def test_filters_of_dates_of_another_calendar_are_kept(engine: str, tmp_path: Path) -> None:
    with xarray.open_dataset(SAMPLE, engine="tamis") as dataset:
        encoding = tamis.encoding(dataset, {"TS": "shuffle|deflate(4)"}, engine=engine)
        assert str(encoding.pipelines["time_bnds"]) == "shuffle|deflate(2)"
        dataset.to_netcdf(tmp_path / "a.nc", engine=engine, encoding=encoding)
        with xarray.open_dataset(tmp_path / "a.nc") as found:
            xarray.testing.assert_equal(found, dataset)
    inspection = tamis.inspect(tmp_path / "a.nc")
    assert str(inspection["TS"].pipeline) == "shuffle|deflate(4)"
    assert str(inspection["time"].pipeline) == "shuffle|deflate(2)"
