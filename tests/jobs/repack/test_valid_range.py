"""Known defect U2: repack moved values across valid_min, valid_max or valid_range: readers masked valid data."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest

import tamis
from tamis import cf
from tamis.hdf5 import Appender, create_dataset, write

Run = Callable[..., str]
SHAPE = (24, 32, 32)
LAND = np.float32(-99)
RECIPE = "zfp(accuracy=0.1)|shuffle|deflate(4)"

# Counts what netCDF4 masks, by its own rules, in a process without tamis.
COUNT = """
import sys, warnings, netCDF4, numpy as np
with netCDF4.Dataset(sys.argv[1]) as file:
    warnings.simplefilter("ignore")  # limits of another type
    print(int(np.ma.count_masked(file["v"][:])))
"""


def rain() -> Any:
    """Return precipitation: mostly zero, with smooth showers."""
    rng = np.random.default_rng(0)
    return np.maximum(rng.gamma(0.3, 5, SHAPE) - 1, 0).astype("f4")


def make(path: Path, values: Any, chunks: Any = (4, 32, 32), **attributes: Any) -> Path:
    with netCDF4.Dataset(path, "w") as file:
        for name, size in zip("tyx", values.shape, strict=True):
            file.createDimension(name, size)
        variable = file.createVariable("v", values.dtype, ("t", "y", "x"), chunksizes=chunks)
        variable.set_auto_maskandscale(False)
        variable.setncatts(attributes)
        variable[:] = values
    return path


def masked(python: Run, path: Path) -> int:
    return int(python(COUNT, path, env={"HDF5_PLUGIN_PATH": str(tamis.plugin_path())}))


def read(path: Path) -> Any:
    with h5py.File(path) as file:
        return file["v"][()]


CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "valid_min": (rain(), {"valid_min": np.float32(0)}),
    "valid_max": (-rain(), {"valid_max": np.float32(0)}),
    "valid_range": (rain().clip(0, 3), {"valid_range": np.array([0, 3], "f4")}),
    "range over min": (rain().clip(0, 3), {"valid_range": np.array([0, 3], "f4"), "valid_min": np.float32(-9)}),
    "double limits of float values": (rain().clip(0.7, 3).astype("f4"), {"valid_min": 0.7, "valid_max": 3.0}),
    "some are invalid": (rain() - np.float32(0.05), {"valid_min": np.float32(0)}),
    "integers": (np.arange(np.prod(SHAPE), dtype="i4").reshape(SHAPE) % 50, {"valid_min": np.int32(0)}),
    "double": (rain().astype("f8"), {"valid_range": np.array([0.0, 20.0])}),
    "with a fill value": (np.where(rain() > 2, LAND, rain()), {"missing_value": LAND, "valid_min": 0}),
}  # fmt: skip


@pytest.mark.matrix
@pytest.mark.parametrize("missing", ["exact", "mask"])
@pytest.mark.parametrize("case", CASES)
def test_u02_valid_values_stay_valid(case: str, missing: Any, tmp_path: Path, python: Run) -> None:
    values, attributes = CASES[case]
    source = make(tmp_path / "a.nc", values, **attributes)
    recipe = "zfp(accuracy=8)|deflate(1)" if case == "integers" else RECIPE
    result = tamis.repack(source, tmp_path / "b.nc", {"v": recipe}, missing=missing)
    with h5py.File(source) as file:
        low, high = cf.valid_range(dict(file["v"].attrs), values.dtype)
    with tamis.open(tmp_path / "b.nc") as file:
        found = file["v"][:]
    inside = [(low is None or each >= low) & (high is None or each <= high) for each in (values, found)]
    assert np.array_equal(*inside)
    assert np.abs(found.astype("f8") - values).max() <= result.datasets[0].bound
    if missing == "exact":
        assert masked(python, tmp_path / "b.nc") == masked(python, source)
    assert tamis.verify(source, tmp_path / "b.nc", bounds={"v": result.datasets[0].bound}).ok


def test_u02_most_chunks_without_zfp_say_so_and_advise(tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc", rain(), valid_min=np.float32(0))
    found = tamis.repack(source, tmp_path / "b.nc", {"v": RECIPE}).datasets[0]
    assert (found.lossless_for_range, found.lossless_chunks, found.largest_error) == (6, 6, 0)
    assert found.notes == (
        "6 of 6 chunks stored without zfp, which would move values across the limits of the valid range (from 0):"
        " use filters that keep zeros and signs, such as shuffle|deflate(4)",
    )
    assert json.loads(tamis.repack(source, tmp_path / "c.nc", {"v": RECIPE}).to_json())["datasets"][0][
        "lossless_for_range"
    ]  # fmt: skip
    planned = next(
        each for each in tamis.preview_repack(source, tmp_path / "d.nc", {"v": RECIPE}).datasets if each.path == "/v"
    )
    assert "limits of the valid range (from 0)" in planned.notes[-1]


def test_u02_values_far_from_the_limits_go_through_zfp(tmp_path: Path) -> None:
    values = rain() + np.float32(1)
    values[:4] -= 1
    source = make(tmp_path / "a.nc", values, valid_range=np.array([0, 1e6], "f4"))
    found = tamis.repack(source, tmp_path / "b.nc", {"v": RECIPE}).datasets[0]
    assert (found.lossless_for_range, found.lossless_chunks) == (1, 1)
    assert 0 < found.largest_error <= 0.1


@pytest.mark.parametrize(
    "recipe", ["zfp(rate=4)|deflate(1)", "zfp(precision=5)", "scaleoffset(decimal, -1)|deflate(1)"]
)
def test_u02_modes_without_a_bound_keep_the_range(recipe: str, tmp_path: Path, python: Run) -> None:
    source = make(tmp_path / "a.nc", rain(), valid_min=np.float32(0), valid_max=np.float32(rain().max()))
    tamis.repack(source, tmp_path / "b.nc", {"v": recipe})
    assert masked(python, tmp_path / "b.nc") == 0


def test_u02_required_filter_is_an_error(tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc", rain(), valid_min=np.float32(0))
    with pytest.raises(tamis.BoundError, match=r"/v: chunk at \(0, 0, 0\): zfp.* cannot keep the valid range"):
        tamis.repack(source, tmp_path / "b.nc", {"v": "zfp(accuracy=0.1)!"})
    assert not (tmp_path / "b.nc").exists()


def test_u02_write_and_appender_keep_the_range(tmp_path: Path) -> None:
    attrs, values = {"valid_min": np.float32(0)}, rain()
    with h5py.File(tmp_path / "a.h5", "w") as file:
        write(file, "v", values, filters=RECIPE, chunks=(4, 32, 32), attrs=attrs)
        kind = {"filters": RECIPE, "chunks": (4, 32, 32), "maxshape": (None, 32, 32), "attrs": attrs}
        there = create_dataset(file, "there", (0, 32, 32), "f4", **kind)
        with Appender(there) as appender:
            for step in values:
                appender.append(step)
    with tamis.open(tmp_path / "a.h5") as file:
        for name in ("v", "there"):
            assert file[name][:].min() == 0, name
            assert np.abs(file[name][:] - values).max() <= 0.1


def test_u02_verify_counts_values_that_became_invalid(tmp_path: Path) -> None:
    values = rain()
    source = make(tmp_path / "a.nc", values, valid_min=np.float32(0))
    moved = values.copy()
    moved[3, 4, 5:8] = -0.01
    target = make(tmp_path / "b.nc", moved, valid_min=np.float32(0))
    for bounds in ({"v": 100}, {}):
        found = tamis.verify(source, target, bounds=bounds)
        texts = [each.text for each in found.violations if each.code == "valid-range"]
        assert len(texts) == 1
        assert texts[0].startswith("3 values crossed a limit of the valid range: at [3, 4, 5] ")
        assert not found.ok
        numbers = found["v"].to_dict()["numbers"]
        assert (numbers["validity_changed"], numbers["first_validity_changed"]["index"]) == (3, [3, 4, 5])
    # The other way round too: what was invalid is valid.
    assert [each.code for each in tamis.verify(target, source, bounds={"v": 100}).violations] == ["valid-range"]


def test_u02_resumed_run_says_the_same(tmp_path: Path) -> None:
    """The counts are in the journal: see `tamis.safety.journal`."""
    source = make(tmp_path / "a.nc", rain(), valid_min=np.float32(0))

    whole = tamis.repack(source, tmp_path / "b.nc", {"v": RECIPE}).datasets[0]
    code = "import os, sys, tamis\n" + (
        "def stop(what, done, total):\n"
        "    if what.startswith('writing') and done == 4: os._exit(9)\n"
        f"tamis.repack(sys.argv[1], sys.argv[2], {{'v': {RECIPE!r}}}, progress=stop)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(source), str(tmp_path / "c.nc")], check=False)
    assert done.returncode == 9
    found = tamis.repack(source, tmp_path / "c.nc", {"v": RECIPE}, resume=True).datasets[0]
    assert found.reused_chunks > 0
    assert (found.notes, found.lossless_for_range) == (whole.notes, whole.lossless_for_range)
    assert (tmp_path / "b.nc").read_bytes() == (tmp_path / "c.nc").read_bytes()


# Attributes, stored type, limits: NUG, "valid_range" and "_Unsigned".
LIMITS: list[tuple[dict[str, Any], str, tuple[Any, Any]]] = [
    ({}, "f4", (None, None)),
    ({"valid_min": np.int16(-5)}, "i2", (-5, None)),
    ({"valid_range": np.array([0.5, 9.5])}, "i4", (1, 9)),
    ({"valid_max": 1e300}, "f4", (None, None)),
    ({"valid_min": -np.inf, "valid_max": np.nan}, "f8", (None, None)),
    ({"valid_min": 1e10}, "i2", (None, None)),
    ({"valid_range": np.array([5.0, -5.0])}, "f8", (None, None)),
    # Of the type of scale_factor, which is wider than the stored one: unpacked.
    ({"valid_range": np.array([0.0, 30.0]), "scale_factor": 0.01}, "i2", (0, 3000)),
    ({"valid_range": np.array([0.0, 30.0]), "scale_factor": -0.01, "add_offset": 10.0}, "i2", (-2000, 1000)),
    ({"valid_min": np.float64(0.0), "scale_factor": 2.0, "add_offset": 1.0}, "f4", (-0.5, None)),
    # Of the stored type, or not wider: packed.
    ({"valid_range": np.array([0, 30], "i2"), "scale_factor": 0.01}, "i2", (0, 30)),
    ({"valid_min": np.float64(3.0), "scale_factor": 2.0}, "f8", (3.0, None)),
    ({"valid_range": np.array([0, 200], "u1"), "_Unsigned": "true"}, "i1", (None, None)),
]


@pytest.mark.parametrize(("attributes", "dtype", "limits"), LIMITS)
def test_u02_limits_in_stored_units(attributes: dict[str, Any], dtype: str, limits: tuple[Any, Any]) -> None:
    assert cf.valid_range(attributes, np.dtype(dtype)) == limits


def test_u02_unsigned_fill_value_of_signed_bytes() -> None:
    found = cf.missing_values({"_FillValue": np.uint8(255), "_Unsigned": "true"}, np.dtype("i1"))
    assert found == (np.int8(-1),)
    assert cf.missing_values({"_FillValue": np.uint8(255)}, np.dtype("i1")) == ()
