"""The files that the runs of `recorded.py` read: those of `input_files.py`, and more kinds; the same in each recording.

They are written by h5py, netCDF4 and zarr-python, not by tamis, so that they stay the same when tamis changes. The
exceptions are `references.json` and `by_tamis.h5`, which only tamis writes; their bytes are recorded like all others.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import time
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import h5py
import netCDF4
import numpy as np
import zarr
from input_files import field, write_all_kinds
from numcodecs import JenkinsLookup3

import tamis

FIXED_TIME = 1_767_225_600
"""When all sources were changed last: the first second of 2026."""


class Source(NamedTuple):
    """A file or Zarr store, and what it needs beside it."""

    name: str
    ending: str  # of a target of its own kind
    needs: tuple[str, ...] = ()


SOURCES = (
    Source("climate.nc", ".nc"),
    Source("fields.h5", ".h5", ("types.h5",)),
    Source("types.h5", ".h5"),
    Source("gaps.h5", ".h5"),
    Source("virtual.h5", ".h5", ("fields.h5", "types.h5")),
    Source("external.h5", ".h5", ("raw.bin",)),
    Source("parts/elsewhere.h5", ".h5", ("parts",)),
    Source("absent_source.h5", ".h5"),
    Source("own_source.h5", ".h5"),
    Source("references.h5", ".h5"),
    Source("damaged_chunk.h5", ".h5"),
    Source("block.h5", ".h5"),
    Source("nothing.h5", ".h5"),
    Source("filters.h5", ".h5"),
    Source("by_tamis.h5", ".h5"),
    Source("edges.h5", ".h5"),
    Source("unfiltered_chunks.h5", ".h5"),
    Source("indexes.h5", ".h5"),
    Source("numbers.h5", ".h5"),
    Source("special_values.h5", ".h5"),
    Source("scalars.h5", ".h5"),
    Source("strings.h5", ".h5"),
    Source("records.h5", ".h5"),
    Source("attributes.h5", ".h5"),
    Source("links.h5", ".h5", ("types.h5",)),
    Source("groups.nc", ".nc"),
    Source("user_types.nc", ".nc"),
    Source("packed.nc", ".nc"),
    Source("classic_model.nc", ".nc"),
    Source("classic.nc", ".nc"),
    Source("cdf5.nc", ".nc"),
    Source("offset64.nc", ".nc"),
    Source("classic_types.nc", ".nc"),
    Source("v2.zarr", ".zarr"),
    Source("v3.zarr", ".zarr"),
    Source("sharded.zarr", ".zarr"),
    Source("coded2.zarr", ".zarr"),
    Source("coded3.zarr", ".zarr"),
    Source("named.zarr", ".zarr"),
    Source("references.json", ".h5", ("cam.nc",)),
)
"""Those that tamis reads, at least in part."""

BROKEN = (
    *("text.nc", "empty.h5", "short.h5", "damaged_header.h5", "short_classic.nc", "folder.zarr", "damaged.zarr"),
    *("wrong.json", "absent.h5"),
)
"""Those that it refuses."""


def write_sources(folder: Path) -> None:
    """Write all of them into a folder."""
    with mock.patch.object(time, "time", return_value=FIXED_TIME):  # which gzip writes into chunks
        write_all_kinds(folder)
        write_filters(folder)
        write_layouts(folder)
        write_values(folder)
        write_objects(folder)
        write_netcdf(folder)
        write_zarr(folder)
        write_broken(folder)
    for path in (folder, *folder.rglob("*")):
        if path.is_file() and path.read_bytes()[:4] == b"\x89HDF":
            fix_times(path)
        os.utime(path, (FIXED_TIME, FIXED_TIME))


def fix_times(path: Path) -> None:
    """Set the times in the headers of an HDF5 file's objects, which h5py and netCDF-C write for some of them.

    Headers of version 1 have a message of the type 18. Those of version 2 have four times if the flag 32 is set, and a
    checksum at their end.
    """
    content, now = bytearray(path.read_bytes()), struct.pack("<I", FIXED_TIME)
    for message in [*re.finditer(rb"\x12\0\x08\0.\0\0\0\x01\0\0\0", content, re.DOTALL)]:
        content[message.end() : message.end() + 4] = now
    for header in [*re.finditer(rb"OHDR\x02", content)]:
        start, flags = header.start(), content[header.end()]
        if flags & 32:
            content[start + 6 : start + 22] = 4 * now
            width, place = 1 << (flags & 3), start + 22 + 4 * bool(flags & 16)
            end = place + width + int.from_bytes(content[place : place + width], "little")
            content[end : end + 4] = JenkinsLookup3().encode(bytes(content[start:end]))[-4:]
    path.write_bytes(content)


def copy_source(names: tuple[str, ...], inputs: Path, folder: Path) -> None:
    """Copy sources, and what they need, with their times; a source that is absent on purpose stays absent."""
    needs = {source.name: source.needs for source in SOURCES}
    for name in dict.fromkeys(each for asked in names for each in (asked, *needs.get(asked, ()))):
        place = folder / name
        place.parent.mkdir(exist_ok=True)
        if (inputs / name).is_dir():
            shutil.copytree(inputs / name, place, dirs_exist_ok=True)
        elif (inputs / name).exists():
            shutil.copy2(inputs / name, place)


def write_filters(folder: Path) -> None:
    """Write datasets with the filters of HDF5 itself, of h5py, and of tamis."""
    values, counts = field((9, 14, 22)), (field((9, 14, 22)) * 10).astype("i4")
    with h5py.File(folder / "filters.h5", "w") as file:
        keywords: dict[str, dict[str, Any]] = {
            "deflate": {"compression": "gzip", "compression_opts": 1},
            "shuffled": {"compression": "gzip", "shuffle": True, "fletcher32": True},
            "lzf": {"compression": "lzf"},
            "checked": {"fletcher32": True},
            "offsets": {"scaleoffset": 2},
            "plain": {},
        }
        for name, each in keywords.items():
            file.create_dataset(name, data=values, chunks=(3, 7, 11), **each)
        file.create_dataset("whole_offsets", data=counts, chunks=(3, 7, 11), scaleoffset=0)
        for name, number, parameters in (
            ("nbit", h5py.h5z.FILTER_NBIT, ()),
            ("szip", h5py.h5z.FILTER_SZIP, (h5py.h5z.SZIP_NN_OPTION_MASK, 8)),
        ):
            creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            creation.set_chunk((3, 7, 11))
            creation.set_filter(number, 0, parameters)
            space = h5py.h5s.create_simple(counts.shape)
            dataset = h5py.h5d.create(file.id, name.encode(), h5py.h5t.NATIVE_INT32, space, creation)
            dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, counts)
    with h5py.File(folder / "by_tamis.h5", "w") as file:
        for number, text in enumerate(
            (
                *("zfp(accuracy=0.1)", "zfp(rate=8)|fletcher32", "zfp(precision=16)", "zfp(reversible=true)"),
                *("zfp(accuracy=0.1)|shuffle|deflate(4)", "bitround(7)|shuffle|deflate(4)", "zstd(3)", "lz4"),
                *("absolute(bound=0.1)|shuffle|deflate(4)", "pack(bound=0.1)|shuffle|deflate(4)", "bzip2", "blosc"),
            )
        ):
            tamis.hdf5.write(file, f"x{number:02}", values, filters=text, chunks=(3, 7, 11))


def write_layouts(folder: Path) -> None:
    """Write chunks at edges, chunks that skip filters, chunks that are absent, and each kind of index of chunks."""
    with h5py.File(folder / "edges.h5", "w") as file:
        for rank, extent in enumerate((101, 23, 11, 7, 5), 1):
            chunk = (extent // 2,) * rank
            file.create_dataset(f"rank{rank}", data=field((extent,) * rank), chunks=chunk, compression="gzip")
        file.create_dataset("larger", data=field((5, 6)), chunks=(8, 9), maxshape=(None, None), compression="gzip")
        file.create_dataset("ones", data=field((1, 1, 40)), chunks=(1, 1, 16), compression="gzip")
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((4, 6))
        dataset = h5py.h5d.create(file.id, b"compact", h5py.h5t.IEEE_F32LE, space, compact)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, field((4, 6)))
    with h5py.File(folder / "unfiltered_chunks.h5", "w") as file:
        some = file.create_dataset("some", (20, 20), "f4", chunks=(10, 10), compression="gzip", shuffle=True)
        some[:10, :10] = field((10, 10))
        some.id.write_direct_chunk((10, 0), field((10, 10)).tobytes(), filter_mask=3)
        absent = file.create_dataset("absent", (30, 20), "f4", chunks=(10, 10), compression="gzip", fillvalue=7.5)
        absent[10:20] = field((10, 20))
        file.create_dataset("never_written", (30, 20), "f8", chunks=(10, 10), compression="gzip")
        file.create_dataset("no_space", (30, 20), "i2", fillvalue=3)
    with h5py.File(folder / "indexes.h5", "w", libver="latest", track_order=True) as file:
        values = field((12, 16))
        file.create_dataset("single_chunk", data=values, chunks=(12, 16), compression="gzip")
        file.create_dataset("fixed_array", data=values, chunks=(4, 8), compression="gzip")
        file.create_dataset("extensible_array", data=values, chunks=(4, 8), maxshape=(None, 16), compression="gzip")
        file.create_dataset("tree", data=values, chunks=(4, 8), maxshape=(None, None), compression="gzip")
        file.create_dataset("contiguous", data=values)
        for name in "zyxa":
            file.create_group(f"in_order/{name}", track_order=True).attrs["name"] = name


def write_values(folder: Path) -> None:
    """Write each type of number, values that are special, scalars, texts and records."""
    with h5py.File(folder / "numbers.h5", "w") as file:
        for kind in ("f2", "f4", "f8", ">f4", ">f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i2", ">u4"):
            values = field((9, 13)) if "f" in kind else (field((9, 13)) - 270).clip(0, 100)
            file.create_dataset(kind, data=values.astype(kind), chunks=(4, 5), compression="gzip")
        for kind in ("c8", "c16"):
            file.create_dataset(kind, data=(field((9, 13)) * (1 + 2j)).astype(kind), chunks=(4, 5), compression="gzip")
        file.create_dataset("bool", data=field((9, 13)) > 290, chunks=(4, 5), compression="gzip")
    with h5py.File(folder / "special_values.h5", "w") as file:
        values = field((8, 12, 16), "f8")
        values[0, :3], values[1, 0, 0], values[2, 0, 0], values[3, 0, 0] = np.nan, np.inf, -np.inf, -0.0
        values[4, 4:8], values[5, 0, :4] = 0, [1e300, -1e300, 5e-324, 1e-40]
        file.create_dataset("mixed", data=values, chunks=(4, 6, 8), compression="gzip")
        file.create_dataset("same", data=np.full((8, 12, 16), 3.25, "f4"), chunks=(4, 6, 8), compression="gzip")
        file.create_dataset("all_nan", data=np.full((8, 12, 16), np.nan, "f4"), chunks=(4, 6, 8), compression="gzip")
        filled = field((8, 12, 16))
        filled[2:5, 3:9] = -999
        gaps = file.create_dataset("filled", data=filled, chunks=(4, 6, 8), compression="gzip", fillvalue=-999)
        gaps.attrs["missing_value"], gaps.attrs["valid_max"] = np.float32(-999), np.float32(301)
    with h5py.File(folder / "scalars.h5", "w") as file:
        file["number"], file["text"], file["record"] = 2.5, "one", np.array((1, 2.0), "i4,f8")
        file["null"] = h5py.Empty("f8")
        file["no_elements"] = np.zeros((0, 5), "f4")
        file.create_dataset("may_grow", (0, 5), "f4", chunks=(4, 5), maxshape=(None, 5), compression="gzip")
        file.attrs["empty"], file.attrs["no_elements"] = h5py.Empty("S3"), np.zeros(0, "i4")
    with h5py.File(folder / "strings.h5", "w") as file:
        words = ["", "a", "größer", "of several words"] * 5
        file.create_dataset("any_length", data=words, dtype=h5py.string_dtype(), chunks=(6,), compression="gzip")
        file.create_dataset("ascii", data=words[:2], dtype=h5py.string_dtype("ascii"))
        fixed = np.array([word.encode() for word in words], "S20")
        file.create_dataset("fixed", data=fixed, chunks=(6,), compression="gzip", shuffle=True)
        file.create_dataset("fixed_utf8", data=fixed.astype(h5py.string_dtype("utf-8", 20)))
    with h5py.File(folder / "records.h5", "w") as file:
        inner = np.dtype([("x", "<f4"), ("y", ">f8")])
        outer = np.dtype([("id", "i4"), ("place", inner), ("list", "u2", (3,))])
        records = np.zeros(20, outer)
        records["id"], records["place"]["x"], records["list"] = np.arange(20), field((20,)), 7
        file.create_dataset("records", data=records, chunks=(8,), compression="gzip", shuffle=True)
        file.create_dataset("arrays", (6,), np.dtype(("f4", (2, 3))), chunks=(4,))[:] = field((6, 2, 3))
        file.create_dataset("enum", data=[0, 1, 1] * 5, dtype=h5py.enum_dtype({"NO": 0, "YES": 1}, "i2"), chunks=(4,))
        file.create_dataset("opaque", data=np.arange(12, dtype="u8").view("V8"), chunks=(4,), compression="gzip")
        ragged = file.create_dataset("ragged", (6,), h5py.vlen_dtype("f4"), chunks=(4,), compression="gzip")
        for number in range(6):
            ragged[number] = np.arange(number, dtype="f4")


def write_objects(folder: Path) -> None:
    """Write attributes of many kinds, and links."""
    with h5py.File(folder / "attributes.h5", "w") as file:
        dataset = file.create_dataset("x", data=field((12, 16)), chunks=(4, 8), compression="gzip")
        for owner in (file, file.create_group("group"), dataset):
            owner.attrs["text"], owner.attrs["texts"], owner.attrs["bytes"] = "größer", ["a", "bc"], np.bytes_(b"\xff")
            owner.attrs["numbers"], owner.attrs["matrix"] = np.arange(3, dtype=">i2"), field((2, 3))
            owner.attrs["record"] = np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")])
            owner.attrs["flag"], owner.attrs["nan"] = True, np.nan
            owner.attrs["reference"] = dataset.ref
        for number in range(20):
            dataset.attrs[f"many{number:02}"] = number
        dataset.attrs["large"] = field((50, 100))
        scale = file.create_dataset("scale", data=np.arange(12.0))
        scale.make_scale("height")
        dataset.dims[0].attach_scale(scale)
        dataset.dims[1].label = "breadth"
    with h5py.File(folder / "links.h5", "w") as file:
        file.create_dataset("a/b/x", data=field((12, 16)), chunks=(4, 8), compression="gzip")
        file["hard"], file["soft"], file["nowhere"] = file["a/b/x"], h5py.SoftLink("a/b/x"), h5py.SoftLink("/none")
        file["outside"], file["absent_file"] = (
            h5py.ExternalLink("types.h5", "/record"),
            h5py.ExternalLink("no.h5", "/x"),
        )
        file["a/circle"], file["a/up"] = file["a"], h5py.SoftLink("/")
        file["größer name"], file["empty"] = field((3,)), field((0,))
        file.create_group("no members")


def write_netcdf(folder: Path) -> None:
    """Write netCDF files as models write them: coordinates, bounds, flags, packing, missing values, records."""
    kinds = {"climate.nc": "NETCDF4", "classic_model.nc": "NETCDF4_CLASSIC"}
    for name, kind in kinds.items():
        with netCDF4.Dataset(folder / name, "w", format=kind) as file:
            write_climate(file, 12)
    (folder / "years").mkdir()
    for year in range(3):
        with netCDF4.Dataset(folder / "years" / f"{2001 + year}.nc", "w") as file:
            write_climate(file, 4, 4 * year)
    with netCDF4.Dataset(folder / "packed.nc", "w") as file:
        for dimension, length in {"time": None, "lat": 12, "lon": 18}.items():
            file.createDimension(dimension, length)
        for number, kind in enumerate(("i1", "i2", "i4", "f4")):
            packed = file.createVariable(
                f"p{kind}", kind, ("time", "lat", "lon"), zlib=True, chunksizes=(2, 6, 9), fill_value=-9
            )
            packed.scale_factor, packed.add_offset = 0.5, 250.0 + number
            values = np.ma.array(field((6, 12, 18)), mask=np.zeros((6, 12, 18), bool))
            values[1, 2:5] = np.ma.masked
            packed[:] = values
        unsigned = file.createVariable("unsigned", "i1", ("lat", "lon"), zlib=True)
        unsigned._Unsigned, unsigned.valid_range = "true", np.array([0, 100], "i1")
        unsigned[:] = np.arange(12 * 18).reshape(12, 18) % 100
    with netCDF4.Dataset(folder / "classic_types.nc", "w", format="NETCDF3_CLASSIC") as file:
        for dimension, length in {"record": None, "n": 5, "letters": 4}.items():
            file.createDimension(dimension, length)
        for kind in ("i1", "i2", "i4", "f4", "f8"):
            file.createVariable(f"r{kind}", kind, ("record", "n"))[:] = np.arange(15).reshape(3, 5)
            file.createVariable(f"n{kind}", kind, ("n",))[:] = np.arange(5)
        file.createVariable("names", "S1", ("record", "letters"))[:] = np.array([[*"abcd"]] * 3, "S1")
        file.createVariable("scalar", "f8").setncatts({"long_name": "größer", "numbers": np.arange(3, dtype="i2")})


def write_climate(file: Any, steps: int, start: int = 0) -> None:
    """Write variables of every role that CF knows."""
    for dimension, length in {"time": None, "lat": 16, "lon": 24, "nv": 2}.items():
        file.createDimension(dimension, length)
    file.Conventions, file.history, file.title = "CF-1.11", "made", "recorded"
    time = file.createVariable("time", "f8", ("time",))
    time.units, time.bounds, time.calendar = "days since 2000-01-01", "time_bnds", "noleap"
    time[:] = np.arange(start, start + steps) + 0.5
    file.createVariable("time_bnds", "f8", ("time", "nv"))[:] = time[:][:, None] + [-0.5, 0.5]
    for name, end in {"lat": 80, "lon": 350}.items():
        axis = file.createVariable(name, "f8", (name,))
        axis[:] = np.linspace(-end if name == "lat" else 0, end, len(axis))
        axis.units = {"lat": "degrees_north", "lon": "degrees_east"}[name]
    shape, chunks = ("time", "lat", "lon"), (4, 8, 12)
    warmth = file.createVariable("TS", "f4", shape, zlib=True, shuffle=True, complevel=2, chunksizes=chunks)
    warmth[:] = field((start + steps, 16, 24))[start:]
    warmth.units, warmth.standard_name, warmth.long_name = "K", "surface_temperature", "temperature"
    sea = file.createVariable("SST", "f4", shape, zlib=True, chunksizes=chunks, fill_value=1e20)
    sea[:] = np.ma.masked_where(np.broadcast_to(np.arange(24) < 7, (steps, 16, 24)), warmth[:])
    sea.units, sea.coordinates, sea.ancillary_variables = "K", "lat lon", "flag"
    rain = file.createVariable("PR", "f8", shape, zlib=True, chunksizes=chunks)
    rain[:] = np.maximum(warmth[:] - 290, 0)
    rain.units, rain.valid_min, rain.standard_name = "mm", 0.0, "precipitation_flux"
    flag = file.createVariable("flag", "i1", shape, zlib=True, chunksizes=chunks)
    flag.flag_values, flag.flag_meanings = np.array([0, 1], "i1"), "sea land"
    flag[:] = np.broadcast_to(np.arange(24) < 7, (steps, 16, 24))
    file.createVariable("area", "f4", ("lat", "lon"))[:] = field((16, 24))
    file.createVariable("crs", "i4").grid_mapping_name = "latitude_longitude"


def write_zarr(folder: Path) -> None:
    """Write stores with codecs, orders, separators, absent chunks, nested groups and names of dimensions."""
    from numcodecs import Blosc, Delta, FixedScaleOffset, Shuffle, Zlib
    from zarr import codecs

    values = field((9, 14, 22))
    shape: dict[str, Any] = {"shape": values.shape, "chunks": (3, 7, 11), "dtype": "f4"}
    group = zarr.open_group(folder / "coded2.zarr", mode="w", zarr_format=2)
    for name, compressors, filters in (
        ("blosc", Blosc("lz4", 5, 1), None),
        ("shuffled", Zlib(4), [Shuffle(4)]),
        ("delta", Zlib(1), [Delta("f4")]),
        ("scaled", Zlib(1), [FixedScaleOffset(250, 10, "f4", "i2")]),
        ("plain", None, None),
    ):
        group.create_array(name, compressors=compressors, filters=filters, fill_value=0, **shape)[:] = values
    columns = group.create_array("columns", order="F", fill_value=None, chunk_key_encoding={"name": "v2"}, **shape)
    columns[:3] = values[:3]
    group.create_array("swapped", shape=(10,), chunks=(4,), dtype=">i4", fill_value=-1)[:7] = np.arange(7)
    group.create_array("names", shape=(3,), chunks=(2,), dtype="S5", fill_value=b"")[:] = [b"a", b"bc", b""]
    group.create_group("deep").create_group("deeper").create_array("x", data=np.arange(5.0)).attrs["units"] = "K"
    group = zarr.open_group(folder / "coded3.zarr", mode="w", zarr_format=3)
    for name, keywords in {
        "blosc": {"compressors": codecs.BloscCodec(cname="zstd", clevel=3, typesize=4, shuffle="shuffle")},
        "zstd": {"compressors": [codecs.ZstdCodec(level=3, checksum=True), codecs.Crc32cCodec()]},
        "gzip": {"compressors": codecs.GzipCodec(level=4)},
        "turned": {"filters": codecs.TransposeCodec(order=(2, 0, 1)), "compressors": None},
        "plain": {"compressors": None},
        "in_shards": {"shards": (6, 14, 22), "compressors": codecs.GzipCodec(level=1)},
    }.items():
        group.create_array(name, fill_value=float("nan"), **shape, **keywords)[:6] = values[:6]
    group.create_array("texts", shape=(4,), chunks=(2,), dtype=str)[:] = np.array(["", "a", "größer", "d"])
    group.create_array("flags", data=values > 290, chunks=(3, 7, 11))
    group = zarr.open_group(folder / "named.zarr", mode="w", zarr_format=3, attributes={"Conventions": "CF-1.11"})
    for name, length in {"time": 6, "lat": 12, "lon": 18}.items():
        group.create_array(name, data=np.arange(length, dtype="f8"), dimension_names=(name,))
    names = ("time", "lat", "lon")
    warmth = group.create_array(
        "TS", shape=(6, 12, 18), chunks=(2, 6, 9), dtype="f4", fill_value=-999, dimension_names=names
    )
    warmth[:], warmth.attrs["units"] = field((6, 12, 18)), "K"
    warmth.attrs["_FillValue"] = "AAAAAAA4j8A="  # -999.0, as xarray writes it
    zarr.consolidate_metadata(folder / "named.zarr")


def write_broken(folder: Path) -> None:
    """Write files and stores that are damaged."""
    content = (folder / "classic.nc").read_bytes()
    (folder / "short_classic.nc").write_bytes(content[: len(content) // 2])
    shutil.copytree(folder / "v3.zarr", folder / "damaged.zarr")
    (folder / "damaged.zarr" / "ta" / "c" / "0" / "1" / "0").write_bytes(b"no chunk")
    (folder / "damaged.zarr" / "ids" / "zarr.json").write_text('{"zarr_format": 3')
    (folder / "wrong.json").write_text('{"version": 1, "refs": {".zgroup": 5}}')
