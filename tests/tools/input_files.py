"""Files of every kind that tamis knows or refuses, as other programs write them; the same in every run."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import zarr

import tamis

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"


def field(shape: tuple[int, ...], dtype: str = "f4") -> Any:
    """Return a smooth field with noise, the same in every run."""
    axes = np.meshgrid(*(np.linspace(0, 4, extent) for extent in shape), indexing="ij")
    noise = np.random.default_rng(1).normal(size=shape)
    return (280 + 20 * np.sin(sum(axes)) + 0.1 * noise).astype(dtype)


def write_inputs(folder: Path) -> None:
    """Write a file of each kind."""
    shutil.copy(SAMPLE, folder / "cam.nc")
    (folder / "cam.nc").chmod(0o644)
    write_hdf5(folder)
    write_netcdf(folder)
    write_zarr(folder)
    (folder / "text.nc").write_text("no scientific file\n")
    (folder / "empty.h5").write_bytes(b"")
    (folder / "short.h5").write_bytes((folder / "fields.h5").read_bytes()[:5000])


def write_all_kinds(folder: Path) -> None:
    """Write a file of each kind, and of kinds that are rarer."""
    write_inputs(folder)
    write_virtual(folder)
    write_references(folder)
    write_damaged(folder)
    write_user_types(folder)
    with h5py.File(folder / "block.h5", "w", userblock_size=1024) as file:
        file.create_dataset("x", data=field((20, 30)), chunks=(10, 10), compression="gzip")
    (folder / "block.h5").open("r+b").write(b"#!/bin/sh\n")
    with h5py.File(folder / "nothing.h5", "w"):
        pass
    sharded = zarr.create_array(
        folder / "sharded.zarr", shape=(40, 60), shards=(20, 30), chunks=(10, 10), dtype="f4", fill_value=0
    )
    sharded[:] = field((40, 60))
    tamis.export(folder / "cam.nc", folder / "references.json")
    text = (folder / "references.json").read_text()
    (folder / "references.json").write_text(text.replace(f"file://{folder}/", ""))  # tests copy the folder
    (folder / "folder.zarr").mkdir()
    (folder / "folder.zarr" / "notes.txt").write_text("no store\n")


def write_virtual(folder: Path) -> None:
    """Write virtual datasets: sources in another folder, absent, and in the file itself."""
    (folder / "parts").mkdir()
    for number in range(2):
        with h5py.File(folder / "parts" / f"{number}.h5", "w") as file:
            file["x"] = np.full((10, 20), float(number))
    with h5py.File(folder / "parts" / "elsewhere.h5", "w") as file:
        layout = h5py.VirtualLayout((20, 20), "f8")
        for number in range(2):
            layout[10 * number : 10 * number + 10] = h5py.VirtualSource(f"{number}.h5", "x", (10, 20))
        file.create_virtual_dataset("v", layout, fillvalue=-5.0)
        file.create_dataset("n", data=field((40, 40)), chunks=(8, 8))
    layout = h5py.VirtualLayout((10, 20), "f8")
    layout[:] = h5py.VirtualSource("nowhere.h5", "x", (10, 20))
    with h5py.File(folder / "absent_source.h5", "w") as file:
        file.create_virtual_dataset("v", layout)
    layout = h5py.VirtualLayout((5, 20), "f8")
    layout[:] = h5py.VirtualSource(".", "x", (5, 20))
    with h5py.File(folder / "own_source.h5", "w", libver="latest") as file:
        file.create_dataset("x", data=field((5, 20), "f8"), chunks=(5, 20))
        file.create_virtual_dataset("v", layout)


def write_references(folder: Path) -> None:
    """Write object and region references, in values and attributes, and a type with a name."""
    with h5py.File(folder / "references.h5", "w") as file:
        values = file.create_dataset("values", data=field((20, 30)), chunks=(10, 10), compression="gzip")
        file["kind"] = np.dtype([("a", "i4"), ("b", ">f8")])
        file.create_dataset("record", (4,), file["kind"], chunks=(2,), compression="gzip")
        file["objects"] = np.array([values.ref, file.ref], h5py.ref_dtype)
        regions = file.create_dataset("regions", (2,), h5py.regionref_dtype, chunks=(1,), compression="gzip")
        regions[0] = values.regionref[2:5, 3:9]
        values.attrs["home"] = file["record"].ref
        texts = file.create_dataset("texts", (3,), h5py.string_dtype(), chunks=(2,), compression="gzip")
        texts[:] = ["one", "", "three"]


def write_damaged(folder: Path) -> None:
    """Write a damaged chunk, and a damaged header."""
    with h5py.File(folder / "damaged_chunk.h5", "w") as file:
        damaged = file.create_dataset("x", data=field((40, 40)), chunks=(20, 20), compression="gzip")
        place = damaged.id.get_chunk_info(2)
        file.create_dataset("y", data=field((40, 40)), chunks=(20, 20), compression="gzip")
    content = bytearray((folder / "damaged_chunk.h5").read_bytes())
    middle = place.byte_offset + place.size // 2
    content[middle : middle + 8] = bytes(255 - byte for byte in content[middle : middle + 8])
    (folder / "damaged_chunk.h5").write_bytes(content)
    content = bytearray((folder / "fields.h5").read_bytes())
    content[96:800] = bytes(704)
    (folder / "damaged_header.h5").write_bytes(content)


def write_user_types(folder: Path) -> None:
    """Write the user types of netCDF-4, and a 64-bit offset file."""
    with netCDF4.Dataset(folder / "user_types.nc", "w") as file:
        file.createDimension("n", 3)
        point = file.createCompoundType(np.dtype([("x", "f4"), ("y", "i2")]), "point")
        colour = file.createEnumType("u1", "colour", {"red": 0, "blue": 1})
        ragged = file.createVLType("i4", "ragged")
        file.createVariable("points", point, ("n",))[:] = np.array([(1, 2), (3, 4), (5, 6)], point.dtype)
        file.createVariable("colours", colour, ("n",))[:] = [0, 1, 0]
        file.createVariable("names", str, ("n",))[:] = np.array(["a", "bc", ""], object)
        rows = file.createVariable("rows", ragged, ("n",))
        for number in range(3):
            rows[number] = np.arange(number + 1, dtype="i4")
    with netCDF4.Dataset(folder / "offset64.nc", "w", format="NETCDF3_64BIT_OFFSET") as file:
        file.createDimension("time", None)
        file.createVariable("v", "i2", ("time",))[:] = np.arange(7)


def write_hdf5(folder: Path) -> None:
    with h5py.File(folder / "fields.h5", "w") as file:
        for dtype in ("f4", "f8", "i4", "i8", ">f4", "u2", "f2"):
            file.create_dataset(f"g/{dtype}", data=field((10, 33, 47), dtype), chunks=(4, 16, 16), compression="gzip")
        file.create_dataset("contiguous", data=field((40, 50)))
        file.create_dataset("scalar", data=3.5)
        file.create_dataset("nothing", data=h5py.Empty("f4"))
        file.create_dataset("growing", data=field((8, 9)), maxshape=(None, 9), chunks=(2, 9), fletcher32=True)
        file["soft"], file["hard"] = h5py.SoftLink("/g/f4"), file["contiguous"]
        file["outside"] = h5py.ExternalLink("types.h5", "/text")
        file.attrs["title"], file["g"].attrs["list"] = "recorded", np.arange(6).reshape(2, 3)
    with h5py.File(folder / "types.h5", "w") as file:
        file["text"] = ["a", "bc", "def"]
        file["fixed"] = np.array([b"ab", b"cd"], "S4")
        file["record"] = np.array([(1, 2.5)] * 5, [("a", "i4"), ("b", "f8")])
        file["complex"] = np.arange(4) * (1 + 2j)
        file["flag"] = np.array([True, False])
        file.create_dataset("enum", data=[0, 1, 1], dtype=h5py.enum_dtype({"NO": 0, "YES": 1}, "u1"))
        file["opaque"] = np.array([b"12345678"], "V8")
        file["reference"] = np.array([file["text"].ref], h5py.ref_dtype)
        ragged = file.create_dataset("ragged", (2,), h5py.vlen_dtype("i4"))
        ragged[0], ragged[1] = [1, 2], [3]
    with h5py.File(folder / "gaps.h5", "w") as file:
        values = field((12, 40, 52))
        values[:, 8:23, 9:30] = 9.96921e36
        gaps = file.create_dataset("sst", data=values, chunks=(4, 20, 26), compression="gzip", fillvalue=9.96921e36)
        gaps.attrs["_FillValue"], gaps.attrs["units"] = np.float32(9.96921e36), "K"
        packed = file.create_dataset("packed", data=np.round(field((6, 30, 30)) * 10).astype("i2"), chunks=(3, 15, 15))
        packed.attrs["scale_factor"], packed.attrs["add_offset"] = 0.1, 0.0
        rain = file.create_dataset("rain", data=np.maximum(field((6, 32, 32)) - 290, 0), chunks=(3, 16, 16))
        rain.attrs["valid_min"] = np.float32(0)
    layout = h5py.VirtualLayout((2, 40, 50), "f4")
    for i in range(2):
        layout[i] = h5py.VirtualSource("fields.h5", "contiguous", (40, 50))
    with h5py.File(folder / "virtual.h5", "w") as file:
        file.create_virtual_dataset("both", layout, fillvalue=-1)
    field((30, 30)).tofile(folder / "raw.bin")
    with h5py.File(folder / "external.h5", "w") as file:
        file.create_dataset("outside", (30, 30), "f4", external=[("raw.bin", 0, h5py.h5f.UNLIMITED)])


def write_netcdf(folder: Path) -> None:
    kinds = {"classic.nc": "NETCDF3_CLASSIC", "cdf5.nc": "NETCDF3_64BIT_DATA", "groups.nc": "NETCDF4"}
    for name, kind in kinds.items():
        with netCDF4.Dataset(folder / name, "w", format=kind) as file:
            for dimension, length in {"time": None, "lat": 24, "lon": 36}.items():
                file.createDimension(dimension, length)
            file.Conventions, file.history = "CF-1.8", "made"
            place = file.createGroup("ocean") if kind == "NETCDF4" else file
            variable = place.createVariable("ta", "f4", ("time", "lat", "lon"), fill_value=-999.0)
            variable[:], variable.units, variable.standard_name = field((6, 24, 36)), "K", "air_temperature"
            file.createVariable("lat", "f8", ("lat",))[:] = np.linspace(-80, 80, 24)
            file.createVariable("time", "f8", ("time",))[:] = np.arange(6)


def write_zarr(folder: Path) -> None:
    for version in (2, 3):
        group = zarr.open_group(folder / f"v{version}.zarr", mode="w", zarr_format=version)
        names = {"dimension_names": ("t", "y", "x")} if version == 3 else {}
        array = group.create_array("ta", shape=(6, 30, 40), chunks=(3, 15, 20), dtype="f4", fill_value=0, **names)
        array[:], array.attrs["units"] = field((6, 30, 40)), "K"
        group.create_array("ids", data=np.arange(10))
