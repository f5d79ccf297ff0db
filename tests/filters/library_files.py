"""What h5py and hdf5plugin make of many filters, types and shapes, and how they read ours; in a process of its own.

``python library_files.py write FILE`` writes a dataset of one chunk for each case, with what it reads as in the group
``expected``; what was given is in ``given`` where that is something else. ``read`` prints the datasets that do
not read as expected.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from itertools import product
from typing import Any

import h5py
import hdf5plugin
import numpy as np

logging.disable(logging.WARNING)

OPTIONAL = 1
TYPES = ["i1", "u1", "<i2", ">i2", "<u4", ">u4", "<i8", ">u8", "<f4", ">f4", "<f8", ">f8"]
SHAPES = [(1,), (7,), (40,), (5, 9), (3, 4, 35), (2, 700), (6000,), (1, 4100)]
LARGE, LARGE_TYPES = (130, 1021), ["<i2", ">f4", "<f8"]  # several blocks of every codec
NBIT, SCALEOFFSET = 5, 6
BYTEDELTA = 35  # a filter of Blosc2's plugins, which hdf5plugin has and its Python does not name
INTEGER, DECIMAL = 2, 0  # ways of scaleoffset

Filters = dict[str, Any]


def filters() -> Iterator[Filters]:
    """As keywords of create_dataset, or id and words."""
    blosc, blosc2, bits = hdf5plugin.Blosc, hdf5plugin.Blosc2, hdf5plugin.Bitshuffle
    yield from ({"compression": "szip", "compression_opts": each} for each in [("nn", 8), ("ec", 32), ("nn", 2)])
    yield {"compression": "lzf"}
    yield from (hdf5plugin.BZip2(level) for level in (1, 9))
    yield from (hdf5plugin.Zstd(level) for level in (-7, 0, 3, 22))
    yield from (hdf5plugin.LZ4(block) for block in (0, 96, 1000))
    for name in ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"):
        yield from (blosc(name, level, shuffle) for level, shuffle in [(1, 0), (5, 1), (9, 2)])
    yield blosc("lz4", 0, 1)
    yield {"compression": blosc.filter_id}
    for name in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
        yield from (blosc2(name, level, shuffle) for level, shuffle in [(1, 0), (5, 1), (9, 2)])
    yield from (blosc2("lz4", 5, blosc2.DELTA), blosc2("zstd", 0, 1))
    yield from ({"filter": (blosc2.filter_id, (0, 0, 0, 0, level, BYTEDELTA, 5))} for level in (1, 9))
    yield from (bits(block, name) for block in (0, 8, 64) for name in ("none", "lz4"))
    yield from (bits(block, "zstd", level) for block in (0, 64) for level in (1, 3, 22))
    yield {"compression": bits.filter_id}
    yield {"filter": (NBIT, ())}
    yield from ({"filter": (SCALEOFFSET, (INTEGER, bits))} for bits in (0, 3, 8))
    yield from ({"filter": (SCALEOFFSET, (DECIMAL, digits))} for digits in (0, 3, 0xFFFFFFFF))


def values_of(dtype: str, shape: tuple[int, ...], kind: str) -> np.ndarray[Any, Any]:
    """Values that compress, or not, or are one."""
    count, made = int(np.prod(shape)), np.dtype(dtype)
    if kind == "steps":
        return (np.arange(count) // 3 % 101).reshape(shape).astype(made)
    if kind == "one":
        return np.full(shape, 7, made)
    random = np.random.default_rng(count)
    if made.kind == "f":
        return (random.standard_normal(count) * 50).reshape(shape).astype(made)
    return np.frombuffer(random.bytes(count * made.itemsize), made).reshape(shape)


def written(file: h5py.File, name: str, values: np.ndarray[Any, Any], wanted: Filters, fill: int | None) -> None:
    """Make one dataset, or none where HDF5 refuses it."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk(values.shape)
    if fill is not None:
        plist.set_fill_value(np.array(fill, values.dtype))
    if "filter" in wanted:
        number, words = wanted["filter"]
        plist.set_filter(number, OPTIONAL, words)
        keywords: Filters = {}
    else:
        keywords = dict(wanted)
    try:
        file.create_dataset(name, data=values, chunks=values.shape, dcpl=plist, **keywords)
    except (ValueError, OSError, RuntimeError):
        file.pop(name, None)


def write(path: str) -> None:
    """Write every case, and what the library then reads; the values themselves where these are others."""
    originals = {}
    with h5py.File(path, "w") as file:
        # Every second of them: each filter has each type and each shape, many times.
        small = product(enumerate(filters()), enumerate(TYPES), enumerate(SHAPES))
        cases = [tuple(value for _, value in case) for case in small if sum(at for at, _ in case) % 2]
        cases += product(list(filters()), LARGE_TYPES, [LARGE])
        for at, (wanted, dtype, shape) in enumerate(cases):
            kind = ("steps", "random", "one")[at % 3] if at % 7 else "steps"
            fill = 7 if wanted.get("filter", (0,))[0] == SCALEOFFSET and at % 2 else None
            originals[str(at)] = values_of(dtype, shape, kind)
            written(file, str(at), originals[str(at)], wanted, fill)
    with h5py.File(path, "a") as file:
        given = file.create_group("given")
        for name in list(file):
            if name == "given":
                continue
            values = file[name][...]
            if values.tobytes() != originals[name].tobytes():
                given[name] = originals[name]
            file[f"expected/{name}"] = values


def read(path: str) -> None:
    """Print what is not read as expected."""
    with h5py.File(path) as file:
        for name, expected in file["expected"].items():
            try:
                if file[name][...].tobytes() != expected[...].tobytes():
                    print(name, "other values")
            except OSError as error:
                print(name, error)


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](sys.argv[2])
