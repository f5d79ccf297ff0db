"""Groups and variables behind soft and external links in xarray's engine, as netCDF4 has them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest
import xarray

import tamis


def netcdf_variables(group: netCDF4.Group, path: str = "/") -> Iterator[tuple[str, str, list[float]]]:
    """Yield group, name and values of each variable that netCDF4 has in a group and those in it."""
    for name, variable in group.variables.items():
        yield path, name, variable[...].tolist()
    for name, inner in group.groups.items():
        yield from netcdf_variables(inner, f"{path.rstrip('/')}/{name}")


def check_like_netcdf4(path: Path) -> dict[str, xarray.Dataset]:
    """Check that the engine has the groups, variables and values of netCDF4, without a warning; return its groups."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        groups = xarray.open_groups(path, engine="tamis")
    values = [(group, str(name), data.values.tolist()) for group, own in groups.items() for name, data in own.items()]
    with netCDF4.Dataset(path) as file:
        assert sorted(values) == sorted(netcdf_variables(file))
    return groups


def test_groups_behind_soft_links_as_netcdf4(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "soft.h5", "w") as file:
        file["x"], file["g/y"], file["g/deep/z"] = np.arange(2.0), np.arange(3.0), np.arange(4.0)
        file["to_x"], file["to_g"], file["h/to_g"] = h5py.SoftLink("x"), h5py.SoftLink("g"), h5py.SoftLink("/g")
        file["to_link"] = h5py.SoftLink("to_g")
        file["again"] = file["g/deep"]
    groups = check_like_netcdf4(tmp_path / "soft.h5")
    assert {"/g", "/to_g", "/to_g/deep", "/to_link", "/h/to_g/deep", "/again"} < set(groups)
    with netCDF4.Dataset(tmp_path / "soft.h5") as file:
        assert groups["/to_g"]["y"].dims == file["to_g/y"].dimensions
        assert groups["/h/to_g"]["y"].dims == file["h/to_g/y"].dimensions


def test_groups_and_variables_behind_external_links_as_netcdf4(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with h5py.File(tmp_path / "data" / "run.h5", "w") as file:
        file["x"] = np.arange(5.0)
        file.create_dataset("g/y", data=np.arange(64.0), chunks=(8,), compression=4)
        file["g/inner/z"] = np.arange(3.0)
    with h5py.File(tmp_path / "main.h5", "w") as file:
        file["own"] = np.zeros(2)
        file["x"], file["run"] = (h5py.ExternalLink("data/run.h5", name) for name in ("/x", "/g"))
        file["to_y"] = h5py.SoftLink("/run/y")
    groups = check_like_netcdf4(tmp_path / "main.h5")
    assert set(groups) == {"/", "/run", "/run/inner"}
    assert groups["/run"]["y"].encoding["chunksizes"] == (8,)


def test_dimensions_of_another_file_are_not_those_of_this_one(tmp_path: Path) -> None:
    for name, dimension in (("other.h5", "time"), ("main.h5", "level")):
        with netCDF4.Dataset(tmp_path / name, "w") as file:
            group = file.createGroup("g")
            for place in (file, group):
                place.createDimension(dimension, 4)
            group.createVariable("v", "f4", (dimension,))[:] = np.arange(4)
            file.createVariable("v", "f4", (dimension,))[:] = np.arange(4)
    with h5py.File(tmp_path / "main.h5", "r+") as file:
        file["linked"] = h5py.ExternalLink("other.h5", "/g")
    with xarray.open_dataset(tmp_path / "main.h5", group="linked", engine="tamis") as linked:
        assert dict(linked.sizes) == {"time": 4}
        assert linked["v"].values.tolist() == [0, 1, 2, 3]


def test_links_that_lead_nowhere_are_named(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(3.0)
        file["soft"], file["absent"] = h5py.SoftLink("/none"), h5py.ExternalLink("absent.h5", "/x")
        file["itself"] = h5py.SoftLink("/itself")
    with (
        pytest.warns(UserWarning, match="is left out") as warned,
        xarray.open_dataset(tmp_path / "a.h5", engine="tamis") as opened,
    ):
        assert list(opened) == ["x"]
    texts = sorted(str(warning.message) for warning in warned)
    for name, text in zip(("absent", "itself", "soft"), texts, strict=True):
        assert text.endswith(f"a.h5: /: {name} is left out: the link leads nowhere")


def test_links_in_circles_end(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a/b/x"] = np.arange(3.0)
        file["a/b/up"], file["a/b/root"], file["short"] = h5py.SoftLink("/a"), file["/"], h5py.SoftLink("/a/b")
        file["other"] = h5py.ExternalLink("b.h5", "/")
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["y"], file["back"] = np.arange(2.0), h5py.ExternalLink("a.h5", "/a")
    groups = xarray.open_groups(tmp_path / "a.h5", engine="tamis")
    assert set(groups) == {"/", "/a", "/a/b", "/short", "/short/up", "/other", "/other/back", "/other/back/b"}
    assert groups["/other/back/b"]["x"].values.tolist() == [0, 1, 2]


@pytest.mark.check
@pytest.mark.parametrize("hard", [False, True], ids=["soft links", "hard links"])
def test_links_upon_links_do_not_grow_without_measure(tmp_path: Path, hard: bool) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        group = file.create_group("15")
        for level in reversed(range(15)):
            inner, group = group, file.create_group(str(level))
            for name in "ab":
                group[name] = inner if hard else h5py.SoftLink(inner.name)
        group["x"] = np.arange(3.0)
    with tamis.open(tmp_path / "a.h5") as opened:
        model = opened.data_model()
        paths = model.group_paths()
        assert 10_000 <= len(set(paths)) == len(paths) <= 10_100
        reasons = {reason for path in paths for reason in model.group(path).left_out.values()}
        assert reasons == {"hard links give groups more than 10,000 further paths"}
        assert any("x" in model.group(path).variables for path in paths)
        assert hard or {f"/{level}" for level in range(15)} < set(paths)


def test_other_files_are_not_opened_where_values_are_copied(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["secret"] = np.arange(3.0)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(3.0)
        file["g"] = h5py.ExternalLink(os.fspath(tmp_path / "other.h5"), "/")
        file["soft"] = h5py.SoftLink("/g/secret")
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.zarr", {})
    with tamis.open(tmp_path / "b.zarr") as copy:
        assert list(copy) == ["x"]
    tamis.export(tmp_path / "a.h5", tmp_path / "a.json", "kerchunk")
    assert "secret" not in (tmp_path / "a.json").read_text()
    assert "soft" not in (tmp_path / "a.json").read_text()
