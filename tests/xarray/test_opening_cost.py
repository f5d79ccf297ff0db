"""What opening costs in calls, which times would not show on every machine; and what it reads at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
from calls import calls_of

# About 10% more than they take: xarray itself takes most of them.


def write(path: Path, count: int) -> None:
    with netCDF4.Dataset(path, "w") as file:
        for name, size in (("time", None), ("lat", 48), ("lon", 96)):
            file.createDimension(name, size)
            file.createVariable(name, "f8", (name,)).units = "degrees"
        for number in range(count):
            own = file.createVariable(f"V{number}", "f4", ("time", "lat", "lon"), zlib=True, fill_value=1e36)
            own.units, own.long_name = "K", f"variable {number}"
        file["V0"][:2] = 0


def opened(path: Path) -> None:
    xr.open_dataset(path, engine="tamis").close()


def test_calls_for_a_variable_grow_with_no_other(tmp_path: Path) -> None:
    counts = {}
    for count in (20, 60, 140):
        write(path := tmp_path / f"{count}.nc", count)
        opened(path)  # what is imported or cached the first time is not counted
        counts[count] = calls_of(lambda path=path: opened(path))  # type: ignore[misc]
    few, many = (counts[60] - counts[20]) / 40, (counts[140] - counts[60]) / 80
    assert many <= 1.1 * few


@pytest.mark.parametrize("name", ["short", "small"])
def test_small_values_are_own_and_selected_like_others(name: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("short", data=np.arange(40.0), chunks=(7,))
        file.create_dataset("small", data=np.arange(120, dtype=">i2").reshape(4, 5, 6), chunks=(2, 5, 6))
    with (
        xr.open_dataset(tmp_path / "a.h5", engine="tamis", decode_cf=False) as ds,
        h5py.File(tmp_path / "a.h5") as file,
    ):
        whole = file[name][()]
        keys: list[tuple[Any, ...]] = [(2,), (slice(3, 0, -1),), ([0, 3, 1],), (-1,)]
        if name == "small":
            keys += [(0, slice(None), [4, 1]), (1, [3, 0], slice(1, 3)), ([0, 2], [1, 1], 3)]
        for key in keys:
            expected = xr.Variable(ds[name].dims, whole)[key]
            np.testing.assert_array_equal(ds[name].variable[key].values, expected.values, err_msg=str(key))
        values = ds[name].variable.load().values
        assert values.flags.writeable
        np.testing.assert_array_equal(values, whole)


def test_attribute_of_numbers_that_numpy_lacks_leaves_the_others(tmp_path: Path) -> None:
    kind = h5py.h5t.STD_U64LE.copy()
    kind.set_size(16)
    kind.set_precision(128)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("x", data=np.arange(3))
        dataset.attrs["units"] = "K"
        space = h5py.h5s.create(h5py.h5s.SCALAR)
        h5py.h5a.create(dataset.id, b"wide", kind, space)
    with xr.open_dataset(tmp_path / "a.h5", engine="tamis") as ds:
        assert ds["x"].attrs["units"] == "K"
        assert "wide" in ds["x"].attrs


def test_dimension_that_was_deleted_or_is_in_a_group_around(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=np.arange(3.0)).make_scale("x")
        file.create_dataset("gone", data=np.arange(4.0)).make_scale("gone")
        for place in ("v", "inner/v"):
            own = file.create_dataset(place, data=np.zeros((3, 4)))
            own.dims[0].attach_scale(file["x"])
        own.dims[1].attach_scale(file["gone"])
        del file["gone"]
    with xr.open_dataset(tmp_path / "a.h5", engine="tamis", group="inner") as inner:
        assert inner["v"].dims == ("phony_dim_1", "phony_dim_2")  # one of its references leads nowhere
    with xr.open_datatree(tmp_path / "a.h5", engine="tamis") as tree:
        assert tree["v"].dims == ("x", "phony_dim_3")
