"""Bounds of packed values are in units of the variable, and packing again adds only what it changes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
from inprocess import threads_as_workers

import tamis
from tamis import ParameterError, cf
from tamis.jobs.repack.stored_units import in_stored_units

Run = Callable[..., str]
WAVE = 100_000 + 5000 * np.sin(np.linspace(0, 20, 4000)).reshape(40, 100)
READ = """
import sys, netCDF4, numpy as np
a, b = (netCDF4.Dataset(each)["v"][:] for each in sys.argv[1:3])
print(repr(float(abs(a - b).max())))
"""


def make(path: Path, dtype: str, **attributes: Any) -> Path:
    """Write unpacked values of about 100,000 as netCDF4 packs them."""
    with netCDF4.Dataset(path, "w") as file:
        for name, size in zip("tx", WAVE.shape, strict=True):
            file.createDimension(name, size)
        variable = file.createVariable("v", dtype, ("t", "x"), chunksizes=(16, 16))
        variable.setncatts(attributes)
        variable[:] = WAVE
    return path


def unpacked_error(python: Run, source: Path, target: Path) -> float:
    return float(python(READ, source, target, env={"HDF5_PLUGIN_PATH": str(tamis.plugin_path())}))


CASES: list[tuple[str, float, dict[str, Any]]] = [
    ("f4", 4, {"scale_factor": np.float32(100)}),
    ("f8", 4, {"scale_factor": 0.1}),
    ("f8", 0.3, {"scale_factor": -0.01, "add_offset": 5.0}),
    ("f8", 4, {"add_offset": 90_000.0}),
    ("i4", 40, {"scale_factor": 2.0, "add_offset": 3.0}),
    ("i8", 3, {"scale_factor": 0.001}),
]


@pytest.mark.matrix
@pytest.mark.parametrize(("dtype", "bound", "attributes"), CASES)
@pytest.mark.parametrize("name", ["v", "*"])
def test_u12_accuracy_is_in_units_of_the_variable(
    name: str, dtype: str, bound: float, attributes: dict[str, Any], tmp_path: Path, python: Run
) -> None:
    source = make(tmp_path / "a.nc", dtype, **attributes)
    found = tamis.repack(source, tmp_path / "b.nc", {name: f"zfp(accuracy={bound})|deflate(1)"}).datasets[0]
    assert found.bound == bound
    assert bound / 1000 < found.largest_error <= bound  # of integers zfp keeps all bit planes
    assert unpacked_error(python, source, tmp_path / "b.nc") == pytest.approx(found.largest_error, rel=0.02)
    scale = float(attributes.get("scale_factor", 1))
    stored = tamis.Pipeline.parse(found.pipeline).error_bound
    assert stored == pytest.approx(bound / abs(scale))
    said = json.loads(tamis.repack(source, tmp_path / "c.nc", {name: f"zfp(accuracy={bound})"}).to_json())
    assert said["datasets"][0]["packing"] == {"scale_factor": scale, "add_offset": attributes.get("add_offset", 0.0)}
    assert tamis.verify(source, tmp_path / "b.nc", bounds={"v": bound}).ok


def test_u12_result_and_dry_run_say_both(tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc", "f4", scale_factor=np.float32(100))
    note = "packed by scale_factor 100: accuracy=4 of its units is accuracy=0.04 of the stored values"
    found = tamis.repack(source, tmp_path / "b.nc", {"v": "zfp(accuracy=4)"}).datasets[0]
    datasets = tamis.preview_repack(source, tmp_path / "c.nc", {"v": "zfp(accuracy=4)"}).datasets
    planned = next(each for each in datasets if each.path == "/v")
    for each in (found, planned):
        assert note in each.notes
        assert (each.bound, each.pipeline) == (4, "zfp(accuracy=0.04)|fletcher32")


def test_u12_integers_below_one_are_refused_with_the_arithmetic(tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc", "i4", scale_factor=10.0)
    text = r"/v: expected an accuracy of 10 or more, since its values are stored as int32 with scale_factor 10, got accuracy=4, which is 4 / 10 = 0\.4 of the stored integers"  # noqa: E501
    with pytest.raises(ParameterError, match=text):
        tamis.repack(source, tmp_path / "b.nc", {"v": "zfp(accuracy=4)"})
    assert "which is 4 / 10 = 0.4" in dict(tamis.repack(source, tmp_path / "b.nc", {"*": "zfp(accuracy=4)"}).kept)["/v"]


def test_u12_verify_is_in_units_of_the_variable(tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc", "i4", scale_factor=0.1, add_offset=-100.0)
    target = make(tmp_path / "b.nc", "i4", scale_factor=0.1, add_offset=-100.0)
    with h5py.File(target, "r+") as file:
        values = file["v"][()]
        values[7, 8] += 3
        file["v"][...] = values
    assert tamis.verify(source, target, bounds={"v": 0.3}).ok  # 3 * 0.1 is no less than 0.3 in binary
    found = tamis.verify(source, target, bounds={"v": 0.29})
    assert [each.code for each in found.violations] == ["bound"]
    tally = found["v"].tally
    assert tally is not None
    assert tally.worst is not None
    before = (int(values[7, 8]) - 3) * 0.1 - 100
    assert (tally.error, tally.worst.index) == (0.3, (7, 8))
    assert tally.worst.source == pytest.approx(before)
    assert tally.worst.target == pytest.approx(before + 0.3)
    assert tally.relative == pytest.approx(0.3 / abs(before))
    assert tally.rmse == pytest.approx(0.3 / np.sqrt(4000))
    assert tally.low == pytest.approx(95_000, rel=1e-4)
    assert tally.high == pytest.approx(105_000, rel=1e-4)
    assert "packed" in [each.code for each in found.notes]


def test_u12_zero_of_packed_values(tmp_path: Path) -> None:
    for name, shift in (("a.h5", 0), ("b.h5", 1)):
        with h5py.File(tmp_path / name, "w") as file:
            file["v"] = np.array([10, 20, 30]) + shift
            file["v"].attrs.update(scale_factor=0.5, add_offset=-5.0)
    tally = tamis.verify(tmp_path / "a.h5", tmp_path / "b.h5", bounds={"v": 0.5})["v"].tally
    assert tally is not None
    assert (tally.zeros_changed, tally.relative, tally.low, tally.high) == (1, 0.1, 0.0, 10.0)


def test_u12_same_recipe_again_copies(tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc", "f8", scale_factor=0.1)
    tamis.repack(source, tmp_path / "b.nc", {"v": "zfp(accuracy=4)"})
    again = tamis.repack(tmp_path / "b.nc", tmp_path / "c.nc", {"v": "zfp(accuracy=4)"}).datasets[0]
    assert again.copied
    other = tamis.repack(tmp_path / "b.nc", tmp_path / "d.nc", {}, chunks={"v": (20, 20)}).datasets[0]
    assert other.pipeline == "zfp(accuracy=32)|fletcher32"  # its own, which is about stored values already
    assert other.bound == 3.2


def test_u12_other_modes_are_about_stored_values(tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc", "f8", scale_factor=0.1)
    for recipe in ("zfp(rate=16)", "zfp(precision=20)", "shuffle|deflate(1)"):
        found = tamis.repack(source, tmp_path / "b.nc", {"v": recipe}, overwrite=True, checksum=False).datasets[0]
        assert found.pipeline == str(tamis.Pipeline.parse(recipe))


def test_u12_unsigned_integers_are_never_lossy(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["v"] = np.arange(64, dtype="i4").reshape(8, 8) - 32
        file["v"].attrs.update(_Unsigned="true", scale_factor=0.5)
    with pytest.raises(ParameterError, match="expected lossless filters for integers that are unsigned by _Unsigned"):
        tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"v": "zfp(accuracy=4)"})
    assert "_Unsigned" in tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"*": "zfp(accuracy=4)"}).kept[0][1]


@pytest.mark.parametrize(("scale", "accuracy"), [(1e-300, 1e300), (1e300, 1e-300)])
def test_u12_tolerance_that_no_float_has_is_refused(scale: float, accuracy: float) -> None:
    packing = cf.packing_of({"scale_factor": scale})
    with pytest.raises(ParameterError, match="that a float can hold, got accuracy="):
        in_stored_units(tamis.Pipeline.parse(f"zfp(accuracy={accuracy!r})"), packing, np.dtype("f8"))


SAMPLE = Path(__file__).resolve().parents[3] / "examples" / "data" / "cam_ts.nc"


def bound_of(path: Path) -> float:
    with netCDF4.Dataset(path) as file:
        return float(file["TS"].quantization_bound)


def test_u88_files_that_were_touched_keep_their_bound(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = Path(shutil.copy(SAMPLE, tmp_path / "in" / "a.nc"))
    made = []
    with threads_as_workers():
        for number in range(3):
            os.utime(path, (1e9 + number, 1e9 + number))
            found = tamis.repack_many(path.parent, None, {"TS": "pack(bound=0.1)|deflate(4)"}, replace=True, workers=1)
            made.append((found.made, bound_of(path), found.worst.largest_error if found.worst else 0))
    error = made[0][2]
    assert error > 0
    assert made == [(1, 0.1, error)] * 3  # from the original: later runs add nothing
    with netCDF4.Dataset(SAMPLE) as before, netCDF4.Dataset(path) as after:
        assert abs(after["TS"][:].astype("f8") - before["TS"][:]).max() <= 0.1


@pytest.mark.parametrize("second", ["pack(bound=0.1)|deflate(9)", "pack(bound=0.1,range=100:400)|shuffle|deflate(4)"])
def test_u88_the_same_steps_from_another_offset_change_nothing(tmp_path: Path, second: str) -> None:
    tamis.repack(SAMPLE, tmp_path / "a.nc", {"TS": "pack(bound=0.1)|deflate(4)"})
    result = tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", {"TS": second})
    assert bound_of(tmp_path / "b.nc") == 0.1
    assert result["TS"].largest_error == 0
    assert any("its values do not change" in note for note in result["TS"].notes)
    with netCDF4.Dataset(tmp_path / "a.nc") as before, netCDF4.Dataset(tmp_path / "b.nc") as after:
        np.testing.assert_array_equal(before["TS"][:], after["TS"][:])


def test_u88_other_steps_add_their_error(tmp_path: Path) -> None:
    tamis.repack(SAMPLE, tmp_path / "a.nc", {"TS": "pack(bound=0.1)|deflate(4)"})
    tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", {"TS": "pack(bound=0.15)|deflate(4)"})
    assert bound_of(tmp_path / "b.nc") == pytest.approx(0.25)
