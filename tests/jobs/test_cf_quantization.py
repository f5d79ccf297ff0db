"""The attributes of CF 1.12, section 8.4, for rounded values: written, kept, compared, and read by other programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr

import tamis
import tamis.hdf5

Run = Callable[..., str]

KINDS = {
    "bitround(keepbits=7)": ("bitround", "quantization_nsb", 7),
    "granular(digits=3)": ("granular_bitround", "quantization_nsd", 3),
    "bitgroom(digits=3)": ("bitgroom", "quantization_nsd", 3),
}


def field() -> Any:
    return (280 + 30 * np.sin(np.arange(24 * 40) / 17)).reshape(24, 40).astype("f4")


def make(path: Path, *names: str) -> Path:
    with h5py.File(path, "w") as file:
        for name in names:
            file.create_dataset(name, data=field(), chunks=(8, 40))
    return path


def described(ds: Any, name: str, text: str) -> bool:
    """Whether a variable and its container, as netCDF4 or xarray read them, say what CF asks for."""
    algorithm, count, number = KINDS[text]
    attributes = ds[name].attrs if isinstance(ds, xr.Dataset) else ds[name].__dict__
    container = ds[attributes["quantization"]]
    about = container.attrs if isinstance(ds, xr.Dataset) else container.__dict__
    assert about == {"algorithm": algorithm, "implementation": f"tamis version {tamis.__version__}"}
    assert container.shape == ()
    return bool(attributes[count] == number)


@pytest.mark.matrix
@pytest.mark.parametrize("text", KINDS)
def test_repack_describes_every_rounding_of_netcdf(text: str, sample: Path, tmp_path: Path, tool: Run) -> None:
    target = tmp_path / "a.nc"
    tamis.repack(sample, target, {"TS": f"{text}|shuffle|deflate(4)"})
    with netCDF4.Dataset(target) as file:
        assert described(file, "TS", text)
        assert file["TS"].quantization() is not None
    with xr.open_dataset(target, engine="h5netcdf") as ds:
        assert described(ds, "TS", text)
    found = tamis.verify(sample, target, bounds="recorded")
    assert found.ok
    notes = {item.path: item.text for item in found.notes if "only in the target" in item.text}
    name = f"quantization_{KINDS[text][0]}"
    assert notes == {f"/{name}": "only in the target: it describes how values were rounded"}
    assert sum("records a rounding" in item.text for item in found.notes) == 3
    assert f"\tbyte {name} ;\n\t\t{name}:algorithm = " in tool("ncdump", "-h", target)
    tool("nccopy", target, tmp_path / "b.nc")
    with netCDF4.Dataset(tmp_path / "b.nc") as file:
        assert described(file, "TS", text)
    tamis.repack(target, tmp_path / "c.nc", {"TS": "shuffle|deflate(9)"})  # a copy keeps all
    found = tamis.verify(target, tmp_path / "c.nc")
    assert found.ok
    assert not [item for item in found.notes if "only in the target" in item.text]
    tamis.repack(target, tmp_path / "d.nc", {"TS": f"{text}|zstd"})  # not rounded twice, nor described twice
    with h5py.File(target) as before, h5py.File(tmp_path / "d.nc") as after:
        assert set(before) == set(after)


def test_variables_of_a_group_share_a_container_and_names_are_not_taken_away(tmp_path: Path) -> None:
    source = make(tmp_path / "a.h5", "v", "w", "g/v", "quantization_bitround")
    text = "bitround(keepbits=7)|deflate(1)"
    tamis.repack(source, tmp_path / "b.h5", {"v": text, "w": text, "g/v": text})
    with h5py.File(tmp_path / "b.h5") as file:
        assert set(file) == {"v", "w", "g", "quantization_bitround", "quantization_bitround_2"}
        assert set(file["g"]) == {"v", "quantization_bitround"}
        assert file["v"].attrs["quantization"] == file["w"].attrs["quantization"] == b"quantization_bitround_2"
        assert file["g/v"].attrs["quantization"] == b"quantization_bitround"
    assert tamis.verify(source, tmp_path / "b.h5", bounds="recorded").ok
    tamis.repack(tmp_path / "b.h5", tmp_path / "c.h5", {"quantization_bitround": text})
    with h5py.File(tmp_path / "c.h5") as file:
        assert file["quantization_bitround"].attrs["quantization"] == b"quantization_bitround_2"
        assert len(file) == 5


def test_a_rounding_to_a_step_has_no_container(tmp_path: Path) -> None:
    tamis.repack(make(tmp_path / "a.h5", "v"), tmp_path / "b.h5", {"v": "absolute(0.1)|deflate(1)"})
    with h5py.File(tmp_path / "b.h5") as file:
        assert set(file) == {"v"}
        assert set(file["v"].attrs) == {"quantization_step"}


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zarr_and_back(zarr_format: int, tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    source, text = make(tmp_path / "a.h5", "v", "w"), "granular(digits=3)"
    recipe = f"{text}|deflate(1)"
    store, back = tmp_path / "b.zarr", tmp_path / "c.nc"
    tamis.repack(source, store, {"*": recipe}, zarr_format=zarr_format)
    with xr.open_dataset(store, engine="zarr") as ds:
        assert described(ds, "v", text)
        assert described(ds, "w", text)
        assert len(ds.variables) == 3
    found = tamis.verify(source, store, bounds="recorded")
    assert found.ok
    assert "describes how values were rounded" in str(found.notes)
    tamis.repack(store, back, {"*": recipe})
    with netCDF4.Dataset(back) as file:
        assert described(file, "v", text)
        assert len(file.variables) == 3
    assert tamis.verify(store, back).ok


def test_write_create_and_to_netcdf_describe_it(tmp_path: Path) -> None:
    text = "bitround(keepbits=7)"
    recipe = f"{text}|shuffle|deflate(4)"
    with h5py.File(tmp_path / "a.h5", "w") as file:
        tamis.hdf5.write(file, "g/v", field(), filters=recipe)
        tamis.hdf5.create_dataset(file, "g/w", (0, 40), "f4", filters=recipe, maxshape=(None, 40))
        assert set(file["g"]) == {"v", "w", "quantization_bitround"}
    with netCDF4.Dataset(tmp_path / "a.h5") as file:
        assert described(file["g"], "v", text)
        assert described(file["g"], "w", text)
    ds = xr.Dataset({"v": (("y", "x"), field())})
    ds.tamis.to_netcdf(tmp_path / "b.nc", {"v": recipe})
    with xr.open_dataset(tmp_path / "b.nc", engine="netcdf4") as read:
        assert described(read, "v", text)
        read.load().tamis.to_netcdf(tmp_path / "c.nc")
    with netCDF4.Dataset(tmp_path / "c.nc") as file:
        assert described(file, "v", text)


def test_roundings_of_other_programs_are_known_by_the_attributes_of_cf(tmp_path: Path) -> None:
    """NCO writes these alone, without netCDF-C's attribute."""
    source = make(tmp_path / "a.h5", "v", "w")
    with h5py.File(source, "r+") as file:
        file["v"].attrs["quantization_nsb"] = np.int32(7)
        file["w"].attrs["quantization_nsd"] = np.int32(3)
    (copied,) = tamis.repack(source, tmp_path / "b.h5", {"v": "bitround(keepbits=7)|deflate(1)"}).datasets
    assert "are not rounded again" in str(copied.notes)
    with pytest.raises(tamis.ParameterError, match=r"granular.*found the attribute quantization_nsd"):
        tamis.repack(source, tmp_path / "b.h5", {"w": "granular(digits=3)|deflate(1)"}, overwrite=True)


def test_a_target_without_a_record_is_known_again(tmp_path: Path) -> None:
    source, recipe = make(tmp_path / "a.h5", "v"), {"v": "bitround(keepbits=7)|deflate(1)"}
    tamis.repack(source, tmp_path / "b.h5", recipe)
    (tmp_path / "c.h5").write_bytes((tmp_path / "b.h5").read_bytes())
    assert tamis.repack(source, tmp_path / "c.h5", recipe, resume=True).done_already
