"""Write and read through every filter in every way that tamis has: FOLDER [MODULE…], which are imported first.

A way prints a line if it fails. HDF5_PLUGIN_PATH is what the caller, or one of the modules, makes of it; what is in
LATER takes its place when tamis is there.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

folder = Path(sys.argv[1])
for module in sys.argv[2:]:
    importlib.import_module(module)

import h5py  # noqa: E402  # after the modules, as a program would that imports them first
import netCDF4  # noqa: E402
import numpy as np  # noqa: E402
import xarray as xr  # noqa: E402

import tamis  # noqa: E402
from tamis.filters import by_id  # noqa: E402
from tamis.formats.hdf5.lib import new_filters  # noqa: E402

if "LATER" in os.environ:
    os.environ["HDF5_PLUGIN_PATH"] = os.environ["LATER"]

TEXTS = {
    "zfp": "zfp(accuracy=0.01)",
    "sz3": "sz3(bound=0.01)",
    "sperr": "sperr(mode=absolute,quality=0.01)",
    "blosc": "shuffle|blosc(compressor=zstd)|fletcher32",
}
BOUND = 0.0101
DIMENSIONS = ("a", "b", "c")
CHUNKS = (8, 16, 8)
HDF5S_OWN = {"deflate", "shuffle", "fletcher32", "szip", "nbit", "scaleoffset", "lzf", "zfp"}

floats = np.random.default_rng(66).normal(size=(16, 32, 8)).cumsum(0).round().astype("f4")  # szip makes them smaller
integers = floats.astype("i4")


def check(found: Any, values: Any) -> None:
    assert np.abs(np.asarray(found, "f8") - values).max() <= BOUND, "other values"


def read(path: Path, values: Any, name: str) -> None:
    with tamis.open(path) as file:
        check(file["x"][...], values)
    tamis.inspect(path)
    if h5py.h5z.filter_avail(by_name[name].id):
        with h5py.File(path) as file:
            check(file["x"][...], values)
    tamis.repack(path, folder / "read.nc", {"x": "shuffle|deflate(1)"}, larger=True, overwrite=True)


def repack(path: Path, text: str, values: Any) -> None:
    with h5py.File(folder / "plain.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=CHUNKS)
    tamis.repack(folder / "plain.h5", path, {"x": text}, larger=True, min_size=0)


def write(path: Path, text: str, values: Any) -> None:
    with h5py.File(path, "w") as file:
        tamis.hdf5.write(file, "x", values, filters=text, chunks=CHUNKS)


def write_required(path: Path, text: str, values: Any) -> None:
    write(path, "|".join(f"{part}!" for part in text.split("|")), values)


def append(path: Path, text: str, values: Any) -> None:
    with h5py.File(path, "w") as file:
        shape, most = (0, *values.shape[1:]), (None, *values.shape[1:])
        tamis.hdf5.create_dataset(
            file, "x", shape, values.dtype, filters=text, chunks=CHUNKS, maxshape=most, fillvalue=-99
        )
    for part in np.split(values, 2):
        with h5py.File(path, "r+") as file, tamis.hdf5.Appender(file["x"]) as appender:
            appender.append(part)


def to_netcdf(path: Path, text: str, values: Any) -> None:
    xr.Dataset({"x": (DIMENSIONS, values)}).tamis.to_netcdf(path, {"x": text})


def through_zarr(path: Path, text: str, values: Any) -> None:
    store = path.with_suffix(".zarr")
    xr.Dataset({"x": (DIMENSIONS, values)}).tamis.to_zarr(store, {"x": "shuffle|deflate(1)"})
    tamis.repack(store, path, {"x": text}, larger=True, min_size=0)


def create_variable(path: Path, text: str, values: Any) -> None:
    with netCDF4.Dataset(path, "w") as file:
        for name, size in zip(DIMENSIONS, values.shape, strict=True):
            file.createDimension(name, size)
        text = "|".join(sorted(text.split("|"), key=lambda part: part != "fletcher32"))  # netCDF's order
        variable = tamis.netcdf.create_variable(file, "x", values.dtype, DIMENSIONS, text, chunksizes=CHUNKS)
        variable[...] = values
    with netCDF4.Dataset(path) as file:
        check(file["x"][...], values)


def save_by_h5netcdf(path: Path, text: str, values: Any) -> None:
    dataset = xr.Dataset({"x": (DIMENSIONS, values)})
    encoding = tamis.encoding(dataset, {"x": text}, engine="h5netcdf")
    dataset.to_netcdf(path, engine="h5netcdf", encoding=encoding)


def copy_with_hdf5(path: Path, text: str, values: Any) -> None:
    """Copy texts and a type that has two names, which HDF5 decodes and encodes where it has the filter."""
    (entry,) = tamis.Pipeline.parse(text).filters
    stored = entry.stored(tamis.filters.ChunkType(np.dtype("i1"), (16,)))
    with h5py.File(folder / "odd.h5", "w") as file:
        lists = [h5py.h5p.create(h5py.h5p.DATASET_CREATE) for _ in range(2)]
        new_filters.set_filters(lists[0], [new_filters.NewFilter(entry.id, 1, stored, is_stored=True)])
        lists[1].set_filter(entry.id, h5py.h5z.FLAG_OPTIONAL, stored)  # HDF5 asks no filters of texts
        for name in ("first", "second"):
            file[name] = h5py.enum_dtype({"A": 0, "B": 1}, basetype="i1")
        for name in ("first", "second"):
            file.create_dataset(f"a_{name}", (64,), file[name], chunks=(16,), dcpl=lists[0])[:50] = 1
        options = {"chunks": (16,), "fillvalue": "none", "dcpl": lists[1]}
        file.create_dataset("t", (64,), h5py.string_dtype(), **options)[:50] = "text"
        file.create_dataset("x", data=values, chunks=CHUNKS)
    tamis.repack(folder / "odd.h5", path, {"x": text}, larger=True, min_size=0)
    assert tamis.verify(folder / "odd.h5", path, bounds={"x": 0.0101}).ok


def create_group(path: Path, text: str, values: Any) -> None:
    write(path, text, values)
    with h5py.File(path, "r+") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # HDF5 lacks the filter, which is optional
        group = tamis.hdf5.create_group(file, "g", text)
        for number in range(20):
            group[f"link {number}"] = file["x"]
    with h5py.File(path) as file:
        assert len(file["g"]) == 20


@contextmanager
def said(way: Callable[..., None], text: str) -> Iterator[None]:
    try:
        yield
    except (tamis.MissingFilterError, tamis.ParameterError) as error:
        if not any(way.__name__ == name and text == other and reason in str(error) for name, other, reason in REFUSED):
            print(way.__name__, text, error)
    except BaseException:
        print(way.__name__, text, traceback.format_exc(limit=-3))


by_name = {kind.name: kind for kind in by_id().values()}
WAYS = (repack, write, write_required, append, to_netcdf, through_zarr, create_variable, save_by_h5netcdf)
SINGLE = {name for name in by_name if name not in HDF5S_OWN and name not in ("sz3", "sperr", "blosc")}
# h5py and netCDF-C run these filters themselves, and xarray passes only some to them.
REFUSED = {
    ("create_variable", "lzf", "netCDF's HDF5 has no plugin for"),
    ("save_by_h5netcdf", "nbit", "the engine h5netcdf cannot write nbit"),
    ("save_by_h5netcdf", "scaleoffset", "the engine h5netcdf cannot write scaleoffset"),
    *(("save_by_h5netcdf", TEXTS.get(name, name), f"{name} cannot be written by h5py here") for name in by_name),
}
number = 0
for name, kind in by_name.items():
    text = TEXTS.get(name, name)
    values = integers if name == "scaleoffset" else floats
    ways = [*WAYS, *([create_group] if kind.group_safe else [])]
    if name in SINGLE and h5py.h5z.filter_avail(kind.id):
        ways.insert(0, copy_with_hdf5)  # HDF5 loads the plugin
    for way in ways:
        path = folder / f"{(number := number + 1)}.nc"
        with said(way, text):
            way(path, text, values)
            read(path, values, name)
with h5py.File(folder / "mapping.h5", "w") as file:
    file.create_dataset("x", data=floats, chunks=CHUNKS, **tamis.Zfp(accuracy=0.01))
read(folder / "mapping.h5", floats, "zfp")
print(f"{number} written")
