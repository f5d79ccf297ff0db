"""SPERR and SZ3 by repack and from Python: every value within the bound, missing ones exact, read by hdf5plugin."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray

import tamis
from tamis import DataError, MissingFilterError, ParameterError

BOUND = 0.1
FILL = np.float32(9.96921e36)
REST = "shuffle|deflate(4)"
FILTERS = {"sperr": f"sperr(bound={BOUND})|{REST}", "sz3": f"sz3(bound={BOUND})|{REST}"}
Run = Callable[..., str]


def field(shape: tuple[int, ...] = (8, 40, 60)) -> Any:
    steps = np.random.default_rng(5).standard_normal(shape)
    return (np.cumsum(np.cumsum(steps, -1), -2) / 20 + 280).astype("f4")


def make(path: Path, values: Any, chunks: tuple[int, ...] | None = None, fill: Any = None, **attributes: Any) -> Path:
    with netCDF4.Dataset(path, "w") as file:
        names = [f"d{axis}" for axis in range(values.ndim)]
        for name, extent in zip(names, values.shape, strict=True):
            file.createDimension(name, extent)
        variable = file.createVariable("v", values.dtype, names, chunksizes=chunks, fill_value=fill)
        variable.setncatts(attributes)
        file.history = "made"
        variable.set_auto_maskandscale(False)
        variable[:] = values
    return path


def values_of(path: Path) -> Any:
    """The stored values, read by tamis."""
    with tamis.open(path) as file:
        return file["v"][...]


def check(path: Path, before: Any, missing: Any = False) -> None:
    """Check that a target keeps the bound of valid values, and missing ones exactly, and that verify finds the same."""
    after = values_of(path)
    assert after.dtype == before.dtype
    differences = np.abs(after.astype("f8") - before.astype("f8"))[~np.broadcast_to(missing, before.shape)]
    assert 0 < differences.max() <= BOUND
    assert (
        after[np.broadcast_to(missing, before.shape)].tobytes() == before[missing].tobytes()
        if np.any(missing)
        else True
    )


@pytest.mark.matrix
@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("dtype", ["f4", "f8", ">f4"])
def test_target_keeps_the_bound_and_hdf5plugin_reads_the_same(
    name: str, dtype: str, tmp_path: Path, python: Run
) -> None:
    before = field().astype(dtype)
    source, target = make(tmp_path / "a.nc", before, (4, 40, 60)), tmp_path / "b.nc"
    result = tamis.repack(source, target, {"v": FILTERS[name]})["v"]
    check(target, before.astype(before.dtype.newbyteorder("=")))
    assert result.ratio is not None
    assert result.ratio > 4
    assert result.bound == BOUND
    assert result.largest_error <= BOUND
    assert result.lossless_chunks == 0
    assert "recorded without shuffle|deflate(4), which no chunk needs" in result.notes
    assert tamis.verify(source, target, bounds={"v": BOUND}).ok
    assert tamis.verify(source, target, bounds="recorded").ok
    code = f"import hdf5plugin, h5py; print(h5py.File({str(target)!r})['v'][...].tobytes().hex())"
    assert bytes.fromhex(python(code).strip()) == values_of(target).tobytes()
    with h5py.File(target) as file:
        history = file.attrs["history"].decode()
        assert ("sz3_plugin" in file["v"].attrs) == (name == "sz3")
    assert re.search(r" with hdf5plugin \d+\.\d+\S*: ", history)
    assert f"-f 'v:{tamis.Pipeline.parse(FILTERS[name])}|fletcher32'" in history


def test_sperr_bound_becomes_parameters_that_use_nearly_all_of_it(tmp_path: Path) -> None:
    target = tmp_path / "b.nc"
    tamis.repack(make(tmp_path / "a.nc", field(), (4, 40, 60), FILL), target, {"v": FILTERS["sperr"]})
    with h5py.File(target) as file:
        sperr = tamis.hdf5.pipeline_of(file["v"]).filters[0]
    assert isinstance(sperr, tamis.Sperr)
    assert (sperr.mode, sperr.gaps, sperr.order) == ("absolute", "1e35", "swapped")
    assert 0.999 * BOUND < sperr.quality < BOUND


@pytest.mark.parametrize("name", FILTERS)
def test_missing_values_of_1e35_and_more_are_kept_by_the_filter(name: str, tmp_path: Path) -> None:
    before, gaps = field(), np.zeros((8, 40, 60), bool)
    gaps[:, 5:20, 10:30] = gaps[3] = True
    before[gaps] = FILL
    source, target = make(tmp_path / "a.nc", before, (1, 40, 60), FILL), tmp_path / "b.nc"
    result = tamis.repack(source, target, {"v": FILTERS[name]})["v"]
    check(target, before, gaps)
    # SPERR cannot encode a chunk without valid values.
    assert result.lossless_chunks == (1 if name == "sperr" else 0)
    assert tamis.verify(source, target, bounds={"v": BOUND}).ok


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("mark", [np.nan, -999.0, np.inf])
def test_other_missing_values_keep_their_chunks_lossless(name: str, mark: float, tmp_path: Path) -> None:
    before, gaps = field(), np.zeros((8, 40, 60), bool)
    gaps[2, 4:9] = gaps[6, :3, :3] = True
    before[gaps] = mark
    source, target = make(tmp_path / "a.nc", before, (1, 40, 60), np.float32(mark)), tmp_path / "b.nc"
    result = tamis.repack(source, target, {"v": FILTERS[name]})["v"]
    check(target, before, gaps)
    exact = name == "sz3" and mark == -999  # the next whole multiple of SZ3's steps happens to be it, or not
    assert result.lossless_chunks == 2 or (exact and result.lossless_chunks < 2)
    assert any(f"stored without {name}" in note for note in result.notes)


@pytest.mark.parametrize("name", FILTERS)
def test_companion_lets_all_chunks_through_the_filter(name: str, tmp_path: Path) -> None:
    before, gaps = field(), np.zeros((8, 40, 60), bool)
    gaps[2, 4:9] = gaps[6, :3, :3] = True
    before[gaps] = np.nan
    source, target = make(tmp_path / "a.nc", before, (4, 40, 60)), tmp_path / "b.nc"
    result = tamis.repack(source, target, {"v": FILTERS[name]}, missing="mask")["v"]
    assert result.lossless_chunks == 0
    assert result.missing_mask
    check(target, before, gaps)


def test_packed_integers_go_through_sz3_in_units_and_not_through_sperr(tmp_path: Path) -> None:
    stored = np.round((field() - 280) / 0.05).astype("i4")
    source, target = (
        make(tmp_path / "a.nc", stored, (4, 40, 60), scale_factor=0.05, add_offset=280.0),
        tmp_path / "b.nc",
    )
    result = tamis.repack(source, target, {"v": FILTERS["sz3"]})["v"]
    assert result.bound == pytest.approx(BOUND)
    assert 0 < np.abs(values_of(target) - stored).max() * 0.05 <= BOUND * (1 + 1e-12)
    with pytest.raises(ParameterError, match="/v: expected float32 or float64 for sperr, got int32: use zfp or sz3"):
        tamis.repack(source, tmp_path / "c.nc", {"v": FILTERS["sperr"]})
    assert not (tmp_path / "c.nc").exists()


@pytest.mark.matrix
@pytest.mark.parametrize("filters", ["sz3(absolute,0.1)!", "sperr(absolute,0.1,none,swapped)!"])
def test_required_filter_that_cannot_keep_missing_values_leaves_no_target(
    filters: str, tmp_path: Path, python: Run
) -> None:
    before = field()
    before[2, 4:9] = np.nan
    source = make(tmp_path / "a.nc", before, (1, 40, 60))
    with pytest.raises(DataError, match=r"/v: chunk at \(2, 0, 0\): filter 1, s"):
        tamis.repack(source, tmp_path / "b.nc", {"v": filters})
    code = f"""
import hdf5plugin, tamis
try:
    tamis.repack({str(source)!r}, {str(tmp_path / "b.nc")!r}, {{"v": {filters!r}}})
except tamis.DataError as error:
    print(error)
"""
    assert "/v: chunk at (2, 0, 0): filter 1, s" in python(code)
    assert [path.name for path in tmp_path.iterdir()] == ["a.nc"]


def test_four_axes_are_cut_and_chunks_that_sperr_cannot_have_are_refused(tmp_path: Path) -> None:
    before = field((3, 4, 40, 60))
    source, target = make(tmp_path / "a.nc", before, (2, 4, 40, 60)), tmp_path / "b.nc"
    tamis.repack(source, target, {"v": FILTERS["sperr"]})
    check(target, before)
    with h5py.File(target) as file:
        assert file["v"].chunks == (1, 4, 40, 60)
    with pytest.raises(ParameterError, match=r"in 2 or 3 axes for sperr, got float32 of shape \(2, 4, 40, 60\)"):
        tamis.repack(source, tmp_path / "c.nc", {"v": FILTERS["sperr"]}, chunks={"v": (2, 4, 40, 60)})
    with pytest.raises(ParameterError, match=r"in 2 or 3 axes for sperr, got float32 of shape \(1, 4, 1, 1\)"):
        tamis.repack(source, tmp_path / "c.nc", {"v": FILTERS["sperr"]}, chunks={"v": (1, 4, 1, 1)})


def test_contiguous_variable_gets_large_chunks(tmp_path: Path) -> None:
    before = field((4, 400, 600))
    source, target = make(tmp_path / "a.nc", before), tmp_path / "b.nc"
    tamis.repack(source, target, {"v": FILTERS["sz3"]})
    with h5py.File(target) as file:
        assert file["v"].chunks == before.shape


def test_other_modes_are_written_without_a_bound(tmp_path: Path) -> None:
    source, target = make(tmp_path / "a.nc", field(), (4, 40, 60)), tmp_path / "b.nc"
    for filters in ("sperr(rate,8,none,swapped)", "sperr(psnr,80,none,swapped)", "sz3(relative,1e-3)"):
        result = tamis.repack(source, target, {"v": f"{filters}|{REST}"}, overwrite=True)["v"]
        assert result.bound is None
        assert 0 < result.largest_error < 1


def test_requirement_makes_the_bound_tighter(tmp_path: Path) -> None:
    before = field()
    source, target = make(tmp_path / "a.nc", before, (4, 40, 60)), tmp_path / "b.nc"
    for filters in FILTERS.values():
        result = tamis.repack(source, target, {"v": filters}, require={"v": "abs=0.01"}, overwrite=True)["v"]
        assert np.abs(values_of(target) - before).max() <= 0.01
        assert result.lossless_chunks == 0


def test_requirement_leaves_the_other_parameters_of_sperr(tmp_path: Path) -> None:
    before = field()
    source, target = make(tmp_path / "a.nc", before, (4, 40, 60)), tmp_path / "b.nc"
    tamis.repack(source, target, {"v": f"sperr(absolute,0.5,nan,kept)|{REST}"}, require={"v": "abs=0.1"})
    with h5py.File(target) as file:
        sperr = tamis.hdf5.pipeline_of(file["v"]).filters[0]
    assert isinstance(sperr, tamis.Sperr)
    assert (sperr.gaps, sperr.order) == ("nan", "kept")
    assert 0.0998 < sperr.quality <= 0.1
    assert np.abs(values_of(target) - before).max() <= 0.1


def test_zarr_target_is_read_by_zarr_python_with_tamis(tmp_path: Path) -> None:
    before = field()
    source, target = make(tmp_path / "a.nc", before, (4, 40, 60)), tmp_path / "b.zarr"
    tamis.repack(source, target, {"v": FILTERS["sperr"]})
    check(target, before)
    with xarray.open_dataset(target, engine="zarr") as data:
        assert data["v"].values.tobytes() == values_of(target).tobytes()


def test_to_netcdf_and_write_keep_the_bound(tmp_path: Path) -> None:
    before = field()
    data = xarray.Dataset({"v": (("t", "y", "x"), before)})
    for name, filters in FILTERS.items():
        data.tamis.to_netcdf(tmp_path / f"{name}.nc", {"v": filters})
        check(tmp_path / f"{name}.nc", before)
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            tamis.hdf5.write(file, "v", before, filters=filters, chunks=(4, 40, 60))
        check(tmp_path / f"{name}.h5", before)


def test_bound_without_values_is_refused(tmp_path: Path) -> None:
    with (
        h5py.File(tmp_path / "a.h5", "w") as file,
        pytest.raises(ParameterError, match="cannot be recorded as it is"),
    ):
        tamis.hdf5.create_dataset(file, "v", (8, 8), "f4", filters="sperr(bound=0.1)", chunks=(8, 8))


@pytest.mark.parametrize("name", FILTERS)
def test_inspect_says_what_was_written(name: str, tmp_path: Path) -> None:
    target = tmp_path / "b.nc"
    tamis.repack(make(tmp_path / "a.nc", field(), (4, 40, 60)), target, {"v": FILTERS[name]})
    text = str(tamis.inspect(target))
    assert f"{name}, largest error 0.0999" in text or f"{name}, largest error 0.1" in text
    (dataset,) = [entry for entry in json.loads(tamis.inspect(target).to_json())["datasets"] if entry["path"] == "/v"]
    assert [step["name"] for step in dataset["filters"]] == [name, "fletcher32"]


def hostile(dtype: str) -> dict[str, Any]:
    """Fields that codecs of floats fail on."""
    random = np.random.default_rng(11)
    smooth = np.cumsum(random.standard_normal((5, 24, 36)), -1).astype(dtype)
    tiny = np.finfo(dtype).smallest_subnormal
    fields = {
        "constant": np.full_like(smooth, 3.7),
        "zero": np.zeros_like(smooth),
        "minus_zero": np.where(smooth > 0, smooth.dtype.type(-0.0), smooth.dtype.type(0.0)),
        "denormal": (random.integers(-9, 9, smooth.shape) * tiny).astype(dtype),
        "noise": random.standard_normal(smooth.shape).astype(dtype) * 1e4,
        "spikes": np.where(random.random(smooth.shape) < 0.01, smooth * 1e12, smooth).astype(dtype),
        "large": smooth * 1e30,
        "largest": np.where(smooth > 0, np.finfo(dtype).max, -np.finfo(dtype).max).astype(dtype),
        "checker": ((np.indices(smooth.shape).sum(0) % 2) * 2 - 1).astype(dtype) * 1e3,
        "bits": random.integers(0, 1 << 32, smooth.shape, "u4").view("f4").astype(dtype),
        "nan": np.where(smooth > 2, np.nan, smooth).astype(dtype),
        "all_nan": np.full_like(smooth, np.nan),
        "infinite": np.where(smooth > 2, np.inf, np.where(smooth < -2, -np.inf, smooth)).astype(dtype),
        "fill": np.where(smooth > 1, smooth.dtype.type(FILL), smooth),
        "all_fill": np.full_like(smooth, FILL),
        "two_fills": np.where(
            smooth > 1, smooth.dtype.type(1e36), np.where(smooth < -1, smooth.dtype.type(FILL), smooth)
        ),
        "fill_and_nan": np.where(smooth > 1, smooth.dtype.type(FILL), np.where(smooth < -1, np.nan, smooth)),
        "one": smooth[:1, :2, :2],
        "thin": smooth[:, :1, :2],
    }
    return {name: np.ascontiguousarray(values.astype(dtype)) for name, values in fields.items()}


@pytest.mark.check
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_hostile_values_keep_the_bound_in_every_reader(name: str, dtype: str, tmp_path: Path, python: Run) -> None:
    fields, source, target = hostile(dtype), tmp_path / "a.h5", tmp_path / "b.h5"
    with h5py.File(source, "w") as file:
        for key, values in fields.items():
            file[key] = values
            file[key].attrs["_FillValue"] = values.dtype.type(FILL)
    tamis.repack(source, target, dict.fromkeys(fields, FILTERS[name]))
    code = f"""
import hdf5plugin, h5py, numpy
file = h5py.File({str(target)!r})
numpy.savez({str(tmp_path / "read.npz")!r}, **{{key: file[key][...] for key in file}})
"""
    python(code)
    read = np.load(tmp_path / "read.npz")
    with tamis.open(target) as file:
        for key, before in fields.items():
            after = read[key]
            assert after.tobytes() == file[key][...].tobytes(), key
            exact = ~np.isfinite(before) | (before == before.dtype.type(FILL))
            assert after[exact].tobytes() == before[exact].tobytes(), key
            assert not (~np.isfinite(after) | (after == after.dtype.type(FILL)))[~exact].any(), key
            assert np.abs(after.astype("f8") - before.astype("f8"))[~exact].max(initial=0) <= BOUND, key
    assert tamis.verify(source, target, bounds=dict.fromkeys(fields, BOUND)).ok


def test_recorded_bound_has_room_for_rounding_of_each_value_only(tmp_path: Path) -> None:
    before = field()
    before[0, 0, 0] = 1e10
    source, target = make(tmp_path / "a.nc", before, (1, 40, 60)), tmp_path / "b.nc"
    tamis.repack(source, target, {"v": FILTERS["sperr"]})
    assert tamis.verify(source, target, bounds="recorded").ok
    with netCDF4.Dataset(source, "r+") as file:
        file["v"][5, 3, 4] = before[5, 3, 4] + 0.2
    result = tamis.verify(source, target, bounds="recorded")
    assert [finding.code for finding in result.violations] == ["bound"]


def test_repeated_repack_copies_the_chunks(tmp_path: Path) -> None:
    source, first, second = make(tmp_path / "a.nc", field(), (4, 40, 60)), tmp_path / "b.nc", tmp_path / "c.nc"
    for filters in FILTERS.values():
        tamis.repack(source, first, {"v": filters}, overwrite=True)
        result = tamis.repack(first, second, {"v": filters}, overwrite=True)["v"]
        assert result.copied
        assert values_of(second).tobytes() == values_of(first).tobytes()
    tamis.repack(first, second, {"v": REST}, overwrite=True)
    with h5py.File(first) as before, h5py.File(second) as after:
        assert "sz3_plugin" in before["v"].attrs
        assert "sz3_plugin" not in after["v"].attrs


@pytest.mark.parametrize("mode", ["norm2", "psnr"])
def test_modes_that_sz3_does_not_keep_are_refused(mode: str, tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc", field(), (4, 40, 60))
    with pytest.raises(MissingFilterError, match=f"tamis does not encode with sz3.mode={mode},bound=10.0."):
        tamis.repack(source, tmp_path / "b.nc", {"v": f"sz3({mode},10)"})
    assert not (tmp_path / "b.nc").exists()


def test_byte_order_that_hdf5plugin_would_misread_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for filters in FILTERS.values():
            with pytest.raises(ParameterError, match="expected native byte order for s"):
                tamis.hdf5.write(file, "v", field().astype(">f4"), filters=filters, chunks=(4, 40, 60))


def test_appender_of_few_steps_knows_missing_values(tmp_path: Path) -> None:
    before = field((12, 40, 60))
    before[:, 5:20, 10:30] = FILL
    with h5py.File(tmp_path / "a.h5", "w") as file:
        with tamis.hdf5.create_appender(
            file, "v", before[:2], filters=FILTERS["sperr"], chunks=(4, 40, 60), fillvalue=FILL
        ) as appender:
            appender.append(before[2:])
        dataset = file["v"]
        sperr = tamis.hdf5.pipeline_of(dataset).filters[0]
        assert isinstance(sperr, tamis.Sperr)
        assert (sperr.gaps, sperr.order) == ("1e35", "swapped")
        assert dataset.id.get_storage_size() < before.nbytes / 4
    check(tmp_path / "a.h5", before, before == FILL)


def test_unstructured_grid_gets_chunks_of_two_axes(tmp_path: Path) -> None:
    source, target = make(tmp_path / "a.nc", field((3, 40_000)), (1, 40_000)), tmp_path / "b.nc"
    tamis.repack(source, target, {"v": FILTERS["sperr"]})
    with h5py.File(target) as file:
        assert file["v"].chunks == (3, 40_000)
