"""Files for machines of another order of bytes: `exchange.py write FOLDER` makes them, `exchange.py read FOLDER` reads.

Each prints JSON. What two machines print of the same files is the same: parameters as stored, values, what
`tamis inspect` says, and of what they wrote by tamis' own filters the chunks, too.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

import tamis

TYPES = ("|u1", "|i1", "<i2", ">i2", "<u2", ">u4", "<i4", ">i4", "<i8", ">i8", "<u8", "<f4", ">f4", "<f8", ">f8")
OF_ZFP = ("=i4", "=i8", "=f4", "=f8")
"""The filter takes no values of the other order: two machines write different types."""

SHAPE, CHUNKS = (24, 20), (8, 16)
MISSING = -999

MODES = {
    "i": ("rate=20", "precision=24", "reversible=True"),
    "f": ("rate=9", "precision=17", "accuracy=0.01", "reversible=True", "minbits=64,maxbits=640,maxprec=20,minexp=-12"),
}

OWN = {
    "u": ("scaleoffset(integer,0)",),
    "i": ("scaleoffset(integer,0)",),
    "f": ("scaleoffset(decimal,2)", "bitround(keepbits=9)|shuffle", "digits(4)|shuffle"),
}
EVERY = ("nbit|shuffle", "shuffle", "fletcher32", "szip(nn,8)", "szip(ec,16)", "shuffle|szip(nn,16)|fletcher32")
"""Filters that tamis encodes itself: chunks have the same bytes everywhere."""

OF_OTHERS = ("deflate(4)", "shuffle|deflate(4)|fletcher32", "bzip2(9)")
"""Filters that libraries encode: their versions, and the order of bytes, may change the chunks."""


def values_of(dtype: str) -> NDArray[Any]:
    """Make values that every machine makes alike: small integers and fractions with few bits."""
    rows, columns = np.indices(SHAPE)
    numbers = rows * rows * 3 + columns * 7 % 31 + rows * columns % 5
    numbers = numbers % 120 if dtype[1:] in ("u1", "i1") else numbers
    return (numbers / 16).astype(dtype) if dtype[1] == "f" else numbers.astype(dtype)


def cases() -> Iterator[tuple[str, str, str]]:
    """Yield name, type and filters of each dataset; names begin with "own" where the chunks are the same everywhere."""
    for dtype in OF_ZFP:
        for mode in MODES[dtype[1]]:
            yield f"own {dtype[1:]} zfp({mode})", dtype, f"zfp({mode})"
            yield f"own {dtype[1:]} zfp({mode}) and others", dtype, f"zfp({mode})|shuffle|fletcher32"
    for dtype in TYPES:
        order = "big" if dtype[0] == ">" else "little"
        for text in (*OWN[dtype[1]], *EVERY):
            yield f"own {dtype[1:]} {order} {text}", dtype, text
        for text in OF_OTHERS:
            yield f"other {dtype[1:]} {order} {text}", dtype, text


def write(folder: Path) -> None:
    """Write files by tamis, by h5py with the plugin, and by repack."""
    with h5py.File(folder / "filters.h5", "w") as file:
        for name, dtype, text in cases():
            values = values_of(dtype)
            values[0, 0] = MISSING if dtype[1] in "if" and dtype[2] != "1" else 1
            tamis.hdf5.write(file, name, values, filters=text, chunks=CHUNKS)
            add_attributes(file[name], dtype)
    with h5py.File(folder / "plugin.h5", "w") as file:
        for dtype in OF_ZFP:
            for mode in MODES[dtype[1]]:
                words = tamis.Pipeline.parse(f"zfp({mode})").filters[0]
                for fill in (0, 7):
                    name = f"own {dtype[1:]} zfp {mode}, fill {fill}"
                    values = values_of(dtype)
                    file.create_dataset(name, data=values, chunks=CHUNKS, fillvalue=fill, **words)
    with h5py.File(folder / "plain.h5", "w") as file:
        for dtype in ("<f4", ">f4", "<f8", ">f8"):
            name = f"{'big' if dtype[0] == '>' else 'little'} {dtype[1:]}"
            values = values_of(dtype)
            values[3:6] = MISSING
            values[9, 9] = np.nan
            file.create_dataset(name, data=values, chunks=CHUNKS, fillvalue=MISSING)
            add_attributes(file[name], dtype)
    with h5py.File(folder / "types.h5", "w") as file:
        pairs = np.zeros(5, [("a", "<i2"), ("b", ">f8"), ("c", "S3")])
        pairs["a"], pairs["b"], pairs["c"] = range(5), np.arange(5) / 4, b"xyz"
        file["compound"] = pairs
        file["text"] = ["a", "bc", "d\u00e9"]
        file.create_dataset("enum", data=[0, 1, 1], dtype=h5py.enum_dtype({"no": 0, "yes": 1}, basetype=">i2"))
    for name, recipe in RECIPES.items():
        for ending in ("h5", "zarr"):
            tamis.repack(folder / "plain.h5", folder / f"{name}.{ending}", {"* f?": recipe})


RECIPES = {
    "zfp": "zfp(bound=0.01)",
    "shuffled": "shuffle|deflate(1)",
    "packed": "pack(bound=0.05)|shuffle|deflate(4)",
    "rounded": "bitround(keepbits=8)|zstd(3)",
}


def add_attributes(dataset: h5py.Dataset, dtype: str) -> None:
    """Add attributes of both orders of bytes, beside the missing value."""
    if dtype[1] == "f":
        dataset.attrs["_FillValue"] = np.array([MISSING], dtype)
    dataset.attrs["little"], dataset.attrs["big"] = np.array([1, 2], "<i4"), np.array([1, 2], ">i4")
    dataset.attrs["valid_range"] = np.array([-1000, 1000]).astype(dtype if dtype[2] != "1" else "<i2")
    dataset.attrs["units"] = "K"


def sum_of(data: bytes) -> str:
    """Return a short sum of bytes."""
    return hashlib.sha256(data).hexdigest()[:16]


def sum_of_values(values: Any) -> str:
    """Return a sum of values, whatever their order of bytes in memory."""
    array = np.asarray(values)
    if array.dtype.hasobject:
        return sum_of(repr(array.tolist()).encode())
    return sum_of(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes())


def attribute_of(value: Any, has_order: bool) -> object:
    """Return type and values of an attribute; those of Zarr, which are JSON, have no order of bytes."""
    array = np.asarray(value)
    dtype = array.dtype.str if has_order else array.dtype.str.lstrip("<>")
    return f"{'text' if array.dtype.kind in 'OSU' else dtype} {array.tolist()}"


DESCRIBED = ("shape", "byteorder", "chunks", "packing", "valid_range", "rounding", "used_bits", "problem")
"""What `tamis inspect` says of a dataset that is no matter of who reads it, where. Of Zarr's zfp a big-endian machine
names the codec in place of the filters."""


def read(folder: Path) -> dict[str, dict[str, object]]:
    """Return what is in each file, by its name and that of the array."""
    found: dict[str, dict[str, object]] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix not in (".h5", ".zarr"):
            continue
        with tamis.open(path) as file:
            for each in tamis.inspect(path).to_dict()["datasets"]:
                array = file[each["path"].lstrip("/")]
                found[f"{path.name} {each['path'].lstrip('/')}"] = {
                    "values": sum_of_values(array[...]),
                    "attributes": {
                        name: attribute_of(array.attrs[name], path.suffix == ".h5") for name in sorted(array.attrs)
                    },
                    "inspect": {name: each[name] for name in DESCRIBED},
                }
    for name in ("filters", "plugin"):
        with h5py.File(folder / f"{name}.h5") as file:
            for key, dataset in file.items():
                found[f"{name}.h5 {key}"] |= stored_of(dataset)
                if "bzip2" not in key:  # of which HDF5 has no plugin here
                    found[f"{name}.h5 {key}"]["by HDF5"] = sum_of_values(dataset[...])
    return found


def stored_of(dataset: h5py.Dataset) -> dict[str, object]:
    """Return the filters and their parameters as stored, and of tamis' own ones the chunks."""
    properties = dataset.id.get_create_plist()
    filters = [properties.get_filter(number)[:3] for number in range(properties.get_nfilters())]
    # h5py before 3.14 gives anything in place of parameters after the sixteenth.
    parameters = [[number, flags, [value % 2**32 for value in values[:16]]] for number, flags, values in filters]
    found = {"filters": str(tamis.hdf5.pipeline_of(dataset)), "parameters": parameters}
    if not dataset.name.startswith("/own"):
        return found
    offsets = [dataset.id.get_chunk_info(number).chunk_offset for number in range(dataset.id.get_num_chunks())]
    chunks = [dataset.id.read_direct_chunk(offset) for offset in sorted(offsets)]
    # A chunk that zfp leaves out has the order of its type.
    sums = ["" if mask & 1 and " zfp" in dataset.name else sum_of(data) for mask, data in chunks]
    return {**found, "masks": [mask for mask, _ in chunks], "chunks": sums}


def hard_values(dtype: str) -> NDArray[Any]:
    """Return powers of ten with their neighbours, and finite floats of any bits, which are alike everywhere."""
    least, most = (-37, 38) if dtype == "f4" else (-300, 308)
    of_bits = np.dtype(f"i{dtype[1]}")
    tens = np.array([float(f"1e{power}") for power in range(least, most)], dtype).view(of_bits)
    near = (tens[:, None] + np.arange(-3, 4, dtype=of_bits)).ravel().view(dtype)
    random = np.random.default_rng(1).integers(0, np.iinfo(of_bits).max, 20000, of_bits).view(dtype)
    return np.concatenate([near, -near, random[np.isfinite(random)]])


ROUNDINGS = (
    tamis.Granular(1),
    tamis.Granular(3),
    tamis.Granular(6),
    tamis.BitRound(1),
    tamis.BitRound(20),
    tamis.BitGroom(2),
)


def calculated() -> dict[str, dict[str, object]]:
    """Return sums of what is rounded and encoded from floats where processors and compilers would differ."""
    found: dict[str, dict[str, object]] = {}
    for dtype in ("f4", "f8"):
        values = hard_values(dtype)
        for rounding in ROUNDINGS:
            found[f"{dtype} {rounding}"] = {"chunks": sum_of_values(rounding.round(values))}
        ordinary = values[(np.abs(values) > 1e-6) & (np.abs(values) < 1e6)]
        for digits in (0, 2, 5):
            data, mask = tamis.Pipeline.parse(f"scaleoffset(decimal,{digits})").encode(ordinary)
            found[f"{dtype} scaleoffset {digits}"] = {"masks": mask, "chunks": sum_of(data)}
    return found


def main(verb: str, folder: Path) -> None:
    """Write files, or print what is in them; and what is calculated without one."""
    if verb == "write":
        folder.mkdir(parents=True)
        write(folder)
    print(json.dumps(read(folder) | calculated(), indent=1, default=str))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
