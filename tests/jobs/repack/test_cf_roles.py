"""Known defect U5: a lossy recipe by pattern changed coordinates, bounds, indices and other exact values."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest

import tamis

Run = Callable[..., str]
LOSSY = "zfp(accuracy=1)|shuffle|deflate(4)"
SIZES = {"time": 40, "lev": 32, "lat": 16, "lon": 20, "nv": 2, "node": 48, "face": 40, "three": 3}

# name: type, dimensions, attributes
VARIABLES: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "T": (
        "f4",
        ("time", "lev", "lat", "lon"),
        {"coordinates": "number xlat xlon", "cell_measures": "area: cell_area", "ancillary_variables": "T_qc T_error"},
    ),
    "time": ("f8", ("time",), {"bounds": "time_bnds", "climatology": "clim"}),
    "time_bnds": ("f8", ("time", "nv"), {}),
    "clim": ("f8", ("time", "nv"), {}),
    "lev": ("f8", ("lev",), {"formula_terms": "a: hyam b: hybm p0: gone ps: PS"}),
    "hyam": ("f8", ("lev",), {}),
    "hybm": ("f8", ("lev",), {}),
    "PS": ("f4", ("time", "lat", "lon"), {}),
    "lat": ("f8", ("lat",), {}),
    "lon": ("f8", ("lon",), {}),
    "number": ("i4", ("lev",), {}),
    "xlat": ("f8", ("lat", "lon"), {}),
    "xlon": ("f8", ("lat", "lon"), {}),
    "cell_area": ("f8", ("lat", "lon"), {}),
    "T_qc": ("i4", ("time", "lat", "lon"), {"flag_values": np.arange(3, dtype="i4"), "flag_meanings": "a b c"}),
    "mask_bits": ("f8", ("time", "lat", "lon"), {"flag_masks": np.arange(3, dtype="f8")}),
    "T_error": ("f4", ("time", "lat", "lon"), {}),
    "count": ("i4", ("time", "lat", "lon"), {}),
    "packed": ("i4", ("time", "lat", "lon"), {"scale_factor": 0.5, "add_offset": 3.0}),
    "gw": ("f8", ("lat",), {}),
    "y2": ("f8", ("lat", "lon"), {"units": "degrees_north"}),
    "t2": ("f8", ("time", "nv"), {"units": "days since 1970-01-01"}),
    "x2": ("f8", ("lat", "lon"), {"axis": "X"}),
    "reftime": ("f8", ("time", "nv"), {"standard_name": "forecast_reference_time"}),
    "mesh": ("i4", (), {"cf_role": "mesh_topology", "node_coordinates": "node_x", "face_node_connectivity": "faces"}),
    "node_x": ("f8", ("node",), {}),
    "faces": ("f8", ("face", "three"), {}),
}
DATA = {"T", "T_error", "packed"}
CHANGED = {"T", "T_error"}  # zfp errs by more than 2 of integers, so that chunks of `packed` go without it
REASONS = {
    "lat": "coordinate of PS, T and 11 more",
    "time_bnds": "bounds of time",
    "clim": "climatology bounds of time",
    "hyam": "formula term of lev",
    "PS": "formula term of lev",
    "number": "auxiliary coordinate of T",
    "cell_area": "cell measure of T",
    "T_qc": "flags, by its attribute flag_values",
    "mask_bits": "flags, by its attribute flag_masks",
    "count": "integers, which may be counts or labels",
    "gw": "one value for each step of lat, beside larger variables",
    "y2": "coordinate, by its units 'degrees_north'",
    "t2": "time, by its units",
    "x2": "coordinate, by its attribute axis 'X'",
    "reftime": "coordinate, by its standard_name 'forecast_reference_time'",
    "node_x": "auxiliary coordinate of mesh",
    "faces": "index of mesh",
}


def fill_in(group: Any) -> None:
    """Define dimensions and variables of a netCDF group."""
    for name, size in SIZES.items():
        group.createDimension(name, size)
    rng = np.random.default_rng(5)
    for name, (dtype, dimensions, attributes) in VARIABLES.items():
        variable = group.createVariable(
            name, dtype, dimensions, chunksizes=[SIZES[each] for each in dimensions] or None
        )
        variable.set_auto_maskandscale(False)
        shape = [SIZES[each] for each in dimensions]
        variable[...] = (1000 * rng.random(shape)).astype(dtype)
        variable.setncatts(attributes)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("roles") / "a.nc"
    with netCDF4.Dataset(path, "w") as file:
        fill_in(file)
    return path


def changed(source: Path, target: Path) -> set[str]:
    with h5py.File(source) as before, h5py.File(target) as after:
        names = [name for name in before if isinstance(before[name], h5py.Dataset)]
        return {name for name in names if before[name][()].tobytes() != after[name][()].tobytes()}


def test_u05_lossy_pattern_changes_data_only_and_says_why(source: Path, tmp_path: Path) -> None:
    result = tamis.repack(source, tmp_path / "b.nc", {"*": LOSSY})
    kept = dict(result.kept)
    assert {each.path for each in result.datasets} == {f"/{name}" for name in DATA}
    assert changed(source, tmp_path / "b.nc") == CHANGED
    for name, reason in REASONS.items():
        assert kept[f"/{name}"] == f"{reason}; name it to store it lossily"


def test_u05_lossless_pattern_is_for_all(source: Path, tmp_path: Path) -> None:
    result = tamis.repack(
        source, tmp_path / "b.nc", {"*": LOSSY, "[a-zA-Z]*": "shuffle|deflate(4)"}, min_size=0, larger=True
    )
    stored = {each.path[1:]: each.pipeline for each in result.datasets}
    assert stored["lat"] == stored["T_qc"] == "shuffle|deflate(4)"
    assert stored["T"].startswith("zfp")
    assert {path for path, _ in result.kept} <= {"/mesh", "/nv", "/node", "/face", "/three"}
    assert changed(source, tmp_path / "b.nc") == CHANGED


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["lat", "/hyam", "count", "T_qc", "xlat"])
def test_u05_recipe_by_name_is_done(source: Path, tmp_path: Path, name: str) -> None:
    result = tamis.repack(source, tmp_path / "b.nc", {name: LOSSY, "*": LOSSY})
    assert f"/{name.strip('/')}" in {each.path for each in result.datasets}
    assert changed(source, tmp_path / "b.nc") == CHANGED | ({name.strip("/")} - {"count", "T_qc"})


def test_u05_dry_run_and_json_say_the_same(source: Path, tmp_path: Path, python: Run) -> None:
    planned = {each.path[1:]: each for each in tamis.preview_repack(source, tmp_path / "b.nc", {"*": LOSSY}).datasets}
    assert {name for name, each in planned.items() if each.action == "store"} == DATA
    assert planned["gw"].reason == f"{REASONS['gw']}; name it to store it lossily"
    command = "import sys, tamis.cli; tamis.cli.main(sys.argv[1:])"
    said = python(command, "repack", source, tmp_path / "b.nc", "-f", f"*:{LOSSY}", "--json")
    assert {"path": "/gw", "reason": planned["gw"].reason} in json.JSONDecoder().raw_decode(said)[0]["kept"]


def test_u05_copied_and_kept_streams_are_not_passed_over(source: Path, tmp_path: Path) -> None:
    """What is lossy already loses nothing more."""
    tamis.repack(source, tmp_path / "b.nc", {"xlat": "zfp(accuracy=1)"})
    result = tamis.repack(tmp_path / "b.nc", tmp_path / "c.nc", {"*": "zfp(accuracy=1)"})
    assert {each.path: each.copied for each in result.datasets}["/xlat"]
    assert changed(tmp_path / "b.nc", tmp_path / "c.nc") == CHANGED


def test_u05_names_are_looked_up_from_their_group_upwards(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        fill_in(file)
        inner = file.createGroup("model").createGroup("run")
        for name, dimensions in (("U", ("time", "lat", "lon")), ("lat2", ("lat", "lon")), ("other", ("lat", "lon"))):
            inner.createVariable(name, "f8", dimensions)[:] = np.random.default_rng(1).random(
                [SIZES[each] for each in dimensions]
            )
        inner["U"].coordinates = "lat2 ../../T_error /packed nowhere"
    result = tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", {"*": LOSSY}, min_size=0, larger=True)
    assert {each.path for each in result.datasets} == {"/T", "/model/run/U", "/model/run/other"}
    kept = dict(result.kept)
    for path in ("/model/run/lat2", "/T_error", "/packed"):
        assert kept[path].startswith("auxiliary coordinate of /model/run/U")


def test_u05_coordinates_that_xarray_names_for_the_whole_file(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    values = np.random.default_rng(0).random((8, 16, 16))
    ds = xarray.Dataset({"v": (("t", "y", "x"), values)}, coords={"far": (("p", "q"), values[0])})
    ds.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    kept = dict(tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", {"*": LOSSY}).kept)
    assert kept["/far"] == "auxiliary coordinate of the file; name it to store it lossily"
    assert "/v" not in kept


def test_u05_dimension_scales_of_plain_hdf5(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        values = np.random.default_rng(0).random((32, 32))
        for name in ("image", "scale", "second", "unused", "plain"):
            file[name] = values if name == "image" else values[0] * 1000
        for name in ("scale", "second", "unused"):
            file[name].make_scale()
        for name in ("scale", "second"):
            file["image"].dims[0].attach_scale(file[name])
        file["indices"] = np.arange(1024, dtype="i4").reshape(32, 32)
        file["kinds"] = np.zeros((32, 32), h5py.enum_dtype({"a": 0, "b": 1}, "i4"))
    result = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"*": "zfp(accuracy=1)"}, min_size=0, larger=True)
    assert {each.path for each in result.datasets} == {"/image", "/plain"}


HOSTILE: list[tuple[str, Any]] = [
    ("coordinates", "T " * 40_000),
    ("coordinates", "../" * 5000 + "T"),
    ("coordinates", np.arange(5)),
    ("coordinates", "\udcff\udcfe"),
    ("coordinates", h5py.Empty("S1")),
    ("bounds", "T"),
    ("formula_terms", ": : a: b: :"),
    ("cell_measures", ["a", "b"]),
    ("flag_values", h5py.Empty("f4")),
    ("scale_factor", "ten"),
    ("scale_factor", 0.0),
    ("scale_factor", np.nan),
    ("scale_factor", 1e-320),
    ("scale_factor", np.arange(7.0)),
    ("add_offset", np.array([(1, 2)], [("a", "i4"), ("b", "f8")])),
    ("valid_range", np.array([np.nan, 3.0])),
    ("valid_range", np.array([5.0, -5.0])),
    ("valid_range", 1.0),
    ("valid_min", "0"),
    ("valid_max", 1e300),
    ("missing_value", np.array([1 + 2j])),
    ("_Unsigned", 3),
    ("units", np.array([b"a", b"b"])),
    ("axis", "X" * 60_000),
]


@pytest.mark.parametrize(("name", "value"), HOSTILE, ids=[f"{at}-{name}" for at, (name, _) in enumerate(HOSTILE)])
def test_u05_strange_attributes_mean_nothing_and_break_nothing(tmp_path: Path, name: str, value: Any) -> None:
    values = np.random.default_rng(0).random((16, 16, 16)).astype("f4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["T"] = file["other"] = values
        for path in ("T", "other"):
            try:
                file[path].attrs[name] = value
            except (TypeError, UnicodeEncodeError, OSError):
                file[path].attrs.create(name, np.bytes_(b"\xff\xfe T"))
    tamis.inspect(tmp_path / "a.h5")
    result = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"*": "zfp(accuracy=0.01)|deflate(1)"})
    assert {each.path for each in result.datasets} | {path for path, _ in result.kept} == {"/T", "/other"}
    assert tamis.verify(tmp_path / "a.h5", tmp_path / "b.h5", bounds={"*": 0.01}).ok


def test_u05_circles_of_names_end(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, others in (("a", "b"), ("b", "c a"), ("c", "c")):
            file[name] = np.random.default_rng(0).random((16, 16))
            file[name].attrs["coordinates"] = file[name].attrs["bounds"] = others
    result = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"*": "zfp(accuracy=0.01)"})
    assert {path for path, _ in result.kept} == {"/a", "/b", "/c"}
    assert not result.datasets
