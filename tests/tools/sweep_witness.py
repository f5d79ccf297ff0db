"""Compare a file with its copy, in another format, or back again: by h5py, netCDF4, zarr and xarray, without tamis.

`sweep.py` starts `python sweep_witness.py`, and writes a line of JSON for each comparison: the name of a function, and
its arguments. The answer is a list of differences. Each comparison is a process of its own, which may die of a library.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import posixpath
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin  # noqa: F401 - h5py reads with its filters
import netCDF4
import numpy as np
import xarray as xr
import zarr
from hdf5_files import content, plain

warnings.simplefilter("ignore")

LARGEST_NBYTES = 64 << 20
DOCUMENTS = (".zarray", ".zattrs", ".zgroup", "zarr.json")
CHANGED = {
    "compressor",
    "filters",
    "codecs",
    "chunks",
    "chunk_grid",
    "chunk_key_encoding",
    "dimension_separator",
    "order",
}
SCALES = {"DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_NCProperties", "_nc3_strict"}
SCALES |= {"DIMENSION_LABELS"}
EXPECTED = SCALES | {"_FillValue", "dtype", "_ARRAY_DIMENSIONS", "_json_attributes"}


def kind_of(path: Path) -> str:
    """Return `zarr`, `classic` or `hdf5`."""
    if path.is_dir():
        return "zarr"
    with path.open("rb") as file:
        return "classic" if file.read(3) == b"CDF" else "hdf5"


def copy(source: Path, target: Path, filtered: bool, dropped: list[str]) -> Iterator[str]:
    """Compare a copy in the same format: everything, or everything but filters and chunks; but for what was dropped."""
    for text in _copy(source, target, filtered):
        if not any(text.startswith((f"{name}:", f"{name} ", f"{name.strip('/')}/")) for name in dropped):
            yield text


def _copy(source: Path, target: Path, filtered: bool) -> Iterator[str]:
    kinds = kind_of(source), kind_of(target)
    if kinds == ("zarr", "zarr"):
        yield from _same_store(source, target, filtered)
    elif kinds == ("hdf5", "hdf5"):
        yield from _same_file(source, target, filtered)
    else:
        yield from _same_netcdf(source, target)


def _same_file(source: Path, target: Path, filtered: bool) -> Iterator[str]:
    before, after = content(source), content(target)
    for found in (before, after):  # names of files are relative to the file
        for item in found.values():
            if isinstance(item, dict) and "_filename" in item:
                item["_filename"] = os.path.basename(item["_filename"])
    for name in [*before, *(name for name in after if name not in before)]:
        if name not in after or name not in before:
            yield f"{name} is only in the {'source' if name in before else 'copy'}"
            continue
        one, other = before[name], after[name]
        if filtered and isinstance(one, tuple) and isinstance(one[0], tuple) and one[0][0] == "dataset":
            one, other = _without_storage(one), _without_storage(other)
        if one != other:
            yield f"{name}: {_difference(one, other)}"
    done = subprocess.run(["h5diff", source, target], capture_output=True, check=False, timeout=60)
    if done.returncode == 1 and b"not comparable" not in done.stdout:
        yield f"h5diff: {done.stdout.decode(errors='replace')[:300]}"


def _without_storage(item: Any) -> Any:
    (words, kind, storage, values), attributes = item
    return (words, kind, (*storage[:2], *storage[5:]), values), attributes


def _difference(one: Any, other: Any) -> str:
    """Return the first parts that differ, in words."""
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return "; ".join(_difference(*pair) for pair in zip(one, other, strict=True) if pair[0] != pair[1])
    if isinstance(one, dict) and isinstance(other, dict):
        return "; ".join(
            f"{key}: {_difference(one.get(key), other.get(key))}"
            for key in {**one, **other}
            if one.get(key) != other.get(key)
        )
    return f"{str(one)[:120]} became {str(other)[:120]}"


def _documents(root: Path) -> dict[str, Any]:
    """Return the documents of a store, numbers as texts, without consolidated metadata."""
    found = {}
    for path in root.rglob("*"):
        if path.name in DOCUMENTS and path.is_file():
            text = path.read_bytes()
            try:
                known = json.loads(text, parse_float=lambda text: f"float {text}", parse_constant=str)
            except ValueError:
                known = text.decode(errors="replace")
            if isinstance(known, dict):
                known.pop("consolidated_metadata", None)
            found[path.relative_to(root).as_posix()] = known
    return found


def _same_store(source: Path, target: Path, filtered: bool) -> Iterator[str]:
    if "/" in _arrays(source) and len(inner := [path for path in target.iterdir() if path.is_dir()]) == 1:
        target = inner[0]  # repack lists that a store of one array becomes a group with it
    before, after = _documents(source), _documents(target)
    for name in [*before, *(name for name in after if name not in before)]:
        if name not in after or name not in before:
            yield f"{name} is only in the {'source' if name in before else 'copy'}"
            continue
        one, other = before[name], after[name]
        if filtered and isinstance(one, dict) and isinstance(other, dict):
            one, other = (_without_filters(known) for known in (one, other))
        if one != other or list(one) != list(other):
            yield f"{name}: {_difference(one, other) or 'another order'}"
    if not filtered:
        files = [
            {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
            for root in (source, target)
        ]
        names = (*DOCUMENTS, ".zmetadata")
        for name in files[0]:
            if not name.endswith(names) and files[0][name] != files[1].get(name):
                yield f"{name} has other bytes in the copy"
    yield from _zarr_values(source, target)


def _without_filters(document: dict[str, Any]) -> dict[str, Any]:
    """Return the rest of a document; an array with new filters is little-endian."""
    kept = {key: value for key, value in document.items() if key not in CHANGED}
    dtype = kept.get("dtype")
    return kept | {"dtype": json.loads(json.dumps(dtype).replace('">', '"<'))} if dtype else kept


def _arrays(path: Path) -> dict[str, Any]:
    """Return the arrays of a store by zarr-python, those that it opens."""
    found = {}
    for place in sorted(path.rglob("*")):
        if place.name == ".zarray" or (place.name == "zarr.json" and b'"array"' in place.read_bytes()):
            name = place.parent.relative_to(path).as_posix()
            version = 2 if place.name == ".zarray" else 3
            try:
                found["/" if name == "." else f"/{name}"] = zarr.open_array(place.parent, mode="r", zarr_format=version)
            except Exception:  # zarr-python does not know it
                continue
    return found


def _values(array: Any) -> Any:
    """Return the values of an array; None where its library does not read them, or they are many."""
    if math.prod(array.shape or (1,)) * array.dtype.itemsize > LARGEST_NBYTES:
        return None
    try:
        return array[...]
    except Exception:
        return None


def _zarr_values(source: Path, target: Path) -> Iterator[str]:
    own, other = _arrays(source), _arrays(target)
    for name, array in own.items():
        if name not in other:
            yield f"{name}: zarr-python opens it in the source alone"
        elif array.shape != other[name].shape or not _same_type(array.dtype, other[name].dtype):
            yield f"{name}: {array.shape} {array.dtype} became {other[name].shape} {other[name].dtype}"
        elif (values := _values(array)) is not None:
            copied = _values(other[name])
            if copied is None or _bits(values) != _bits(copied):
                yield f"{name}: values differ by zarr-python"


def _same_type(one: Any, other: Any) -> bool:
    return bool(one == other or one.newbyteorder("<") == other.newbyteorder("<"))


def _bits(values: Any) -> Any:
    array = np.asarray(values)
    if array.dtype.kind in "OTU":
        return array.shape, [
            item if not isinstance(item, np.ndarray) else item.tobytes() for item in array.ravel().tolist()
        ]
    if array.dtype.names:
        return [_bits(array[name]) for name in array.dtype.names]
    return array.shape, array.astype(array.dtype.newbyteorder("=")).tobytes()


def _same_netcdf(source: Path, target: Path) -> Iterator[str]:
    """Compare a classic file with a copy as netCDF-4, by netCDF4."""
    with netCDF4.Dataset(source) as one, netCDF4.Dataset(target) as other:
        for file in (one, other):
            file.set_auto_maskandscale(False)
            file.set_auto_chartostring(False)
        dims = [{key: (len(dim), dim.isunlimited()) for key, dim in file.dimensions.items()} for file in (one, other)]
        if dims[0] != dims[1] or list(dims[0]) != list(dims[1]):
            yield f"dimensions: {_difference(*dims)} {list(dims[0])} {list(dims[1])}"
        if list(one.variables) != list(other.variables):
            yield f"variables: {list(one.variables)} became {list(other.variables)}"
        yield from _same_attributes("/", one, other)
        for name, variable in one.variables.items():
            if name not in other.variables:
                continue
            copied = other[name]
            if (variable.dtype, variable.dimensions) != (copied.dtype, copied.dimensions):
                yield f"{name}: {variable.dtype} {variable.dimensions} became {copied.dtype} {copied.dimensions}"
            yield from _same_attributes(name, variable, copied)
            if variable.size * variable.dtype.itemsize <= LARGEST_NBYTES and _bits(variable[...]) != _bits(copied[...]):
                yield f"{name}: values differ by netCDF4"


def _same_attributes(owner: str, one: Any, other: Any) -> Iterator[str]:
    names = one.ncattrs(), other.ncattrs()
    if sorted(names[0]) != sorted(names[1]):
        yield f"{owner}: attributes {names[0]} became {names[1]}"
    for name in names[0]:
        if name in names[1]:
            values = one.getncattr(name), other.getncattr(name)
            kinds = [getattr(value, "dtype", type(value)) for value in values]
            if kinds[0] != kinds[1] or _bits(values[0]) != _bits(values[1]):
                yield f"{owner}: attribute {name} {values[0]!r} ({kinds[0]}) became {values[1]!r} ({kinds[1]})"


def ways(source: Path, target: Path, notes: list[str]) -> Iterator[str]:
    """Compare a file with its copy in the other format, array by array, but for what a run listed."""
    is_file = kind_of(source) != "zarr"
    file_path, store_path = (source, target) if is_file else (target, source)
    arrays = _arrays(store_path)
    if kind_of(file_path) == "classic":
        yield from _classic_ways(file_path, arrays)
        yield from _xarray_ways(source, target, notes)
        return
    with h5py.File(file_path) as file:
        datasets = _datasets(file)
        if is_file:
            for name, dataset in datasets.items():
                wanted = _plain_name(name)
                if _is_dimension(dataset) or _listed(name, notes):
                    continue
                if wanted in arrays:
                    yield from _array_ways(name, dataset, arrays[wanted], True)
                elif dataset.shape is not None:
                    yield f"{name} is not in the store, and not listed"
            known = {*map(_plain_name, datasets)}
            for name in arrays:
                if name not in known and not isinstance(file.get(name), h5py.Dataset):
                    yield f"{name} is only in the store"
        else:
            inverse = {_plain_name(name): dataset for name, dataset in datasets.items() if not _is_dimension(dataset)}
            for name, array in arrays.items():
                if name == "/":
                    continue
                if name not in inverse and not _listed(name, notes):
                    yield f"{name} is not in the file, and not listed"
                elif name in inverse:
                    yield from _array_ways(name, inverse[name], array, False)
    yield from _xarray_ways(source, target, notes)


def _classic_ways(path: Path, arrays: dict[str, Any]) -> Iterator[str]:
    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        file.set_auto_chartostring(False)
        for name, variable in file.variables.items():
            array = arrays.get(f"/{name}")
            if array is None:
                yield f"{name} is not in the store"
            elif array.shape != variable.shape or _bits(array[...]) != _bits(variable[...]):
                yield f"{name}: {variable.dtype} {variable.shape} became {array.dtype} {array.shape}, or values differ"


def _datasets(file: h5py.File) -> dict[str, h5py.Dataset]:
    """Return the datasets below each path, without following links twice around."""
    found: dict[str, h5py.Dataset] = {}
    pending: list[tuple[str, Any, tuple[Any, ...]]] = [("", file, ())]
    while pending:
        path, group, around = pending.pop()
        for name in group:
            inner = f"{path}/{name}"
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                continue
            try:
                item = group[name]
            except Exception:
                continue
            if isinstance(item, h5py.Dataset):
                found[inner] = item
            elif isinstance(item, h5py.Group) and item not in around:
                pending.append((inner, item, (*around, group)))
    return found


def _plain_name(name: str) -> str:
    base = posixpath.basename(name).removeprefix("_nc4_non_coord_")
    return posixpath.join(posixpath.dirname(name), base)


def _is_dimension(dataset: h5py.Dataset) -> bool:
    try:
        name = dataset.attrs.get("NAME", b"")
    except Exception:
        return False
    return isinstance(name, bytes) and name.startswith(b"This is a netCDF dimension but not a netCDF variable")


def _listed(name: str, notes: list[str]) -> bool:
    parts = name.split("/")
    above = {"/".join(parts[:count]) for count in range(2, len(parts) + 1)}
    return any(note.startswith(f"{path}: ") or note == path for note in notes for path in above)


def _array_ways(name: str, dataset: h5py.Dataset, array: Any, to_zarr: bool) -> Iterator[str]:
    if dataset.shape != array.shape:
        shapes = (dataset.shape, array.shape) if to_zarr else (array.shape, dataset.shape)
        yield f"{name}: shape {shapes[0]} became {shapes[1]}"
        return
    values, others = _values(dataset), _values(array)
    if values is None or others is None:
        return
    one, other = np.asarray(values), np.asarray(others)
    if one.dtype.kind in "OTUS" or other.dtype.kind in "OTUS":
        texts = [[_text(item) for item in known.ravel().tolist()] for known in (one, other)]
        if texts[0] != texts[1]:
            yield f"{name}: texts {str(texts[0])[:80]} are {str(texts[1])[:80]} in the store"
    elif one.dtype.kind in "biu" and other.dtype.kind in "biu":
        if one.dtype.kind != "b" and one.dtype.newbyteorder("=") != other.dtype.newbyteorder("="):
            yield f"{name}: type {one.dtype} is {other.dtype} in the store"
        if not np.array_equal(one, other):
            yield f"{name}: values differ"
    elif one.dtype.kind in "fc":
        if one.dtype.newbyteorder("=") != other.dtype.newbyteorder("=") or _bits(one) != _bits(other):
            yield f"{name}: {one.dtype} is {other.dtype} in the store, or values differ"
    elif one.dtype.names and other.dtype.names and _bits(one) != _bits(other):
        yield f"{name}: records differ"


def _text(value: Any) -> Any:
    if isinstance(value, str):
        return value.rstrip("\0")
    return value.rstrip(b"\0").decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _xarray_ways(source: Path, target: Path, notes: list[str]) -> Iterator[str]:
    """Compare what xarray decodes of a netCDF file or store, where it opens the source."""
    opened = []
    for path in (source, target):
        engine: Any = {"engine": "zarr", "consolidated": False} if path.is_dir() else {"engine": "netcdf4"}
        try:
            opened.append(xr.open_groups(path, **engine))
        except Exception as error:
            if opened:
                yield f"xarray opens the source alone: {type(error).__name__}: {str(error)[:200]}"
            return
    one, other = opened
    for group, dataset in one.items():
        if group not in other:
            if not _listed(group, notes):
                yield f"xarray: group {group} is in the source alone"
            continue
        for name, variable in dataset.variables.items():
            if _listed(f"{group.rstrip('/')}/{name}", notes):
                continue
            if name not in other[group].variables:
                yield f"xarray: {group} {name} is in the source alone"
                continue
            yield from (
                f"xarray: {group} {name}: {text}" for text in _variables(variable, other[group].variables[name])
            )
        if text := _attributes(dataset.attrs, other[group].attrs, new=source.is_dir()):
            yield f"xarray: {group}: {text}"


def _variables(one: Any, other: Any) -> Iterator[str]:
    if one.dims != other.dims and not any(str(dim).startswith("phony") for dim in (*one.dims, *other.dims)):
        yield f"dimensions {one.dims} became {other.dims}"
    if one.shape != other.shape:
        yield f"shape {one.shape} became {other.shape}"
        return
    if text := _attributes(one.attrs, other.attrs, new=False):
        yield text
    if one.dtype.kind == "f" and "scale_factor" in {**one.encoding, **other.encoding}:
        scales = one.encoding.get("scale_factor"), other.encoding.get("scale_factor")
        if scales[0] != scales[1]:
            yield f"scale {scales[0]} became {scales[1]}"
        return  # numbers of JSON have no type: xarray unpacks by float64 where HDF5 has a scale of float32
    if (
        "b" not in (one.dtype.kind, other.dtype.kind)
        and one.dtype.kind not in "SUOTV"
        and one.dtype.newbyteorder("=") != other.dtype.newbyteorder("=")
    ):
        yield f"type {one.dtype} became {other.dtype}"
    if math.prod(one.shape or (1,)) * one.dtype.itemsize > LARGEST_NBYTES:
        return
    try:
        values = np.asarray(one.values)
    except Exception:
        return
    try:
        others = np.asarray(other.values)
    except Exception as error:
        yield f"values cannot be read: {type(error).__name__}: {str(error)[:100]}"
        return
    if values.dtype.kind in "SUOT":
        same = [_loose(item) for item in values.ravel().tolist()] == [_loose(item) for item in others.ravel().tolist()]
    elif "b" in (values.dtype.kind, others.dtype.kind):  # netCDF4 reads them as numbers
        same = np.array_equal(values, others)
    else:
        same = _bits(values) == _bits(others)
    if not same:
        yield "values differ"


def _loose(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    return _text(value)


def _attributes(one: dict[str, Any], other: dict[str, Any], *, new: bool = True) -> str:
    texts = []
    for name, value in one.items():
        if name in EXPECTED or name.startswith("_nc"):
            continue
        if name not in other:
            texts.append(f"attribute {name!r} is lost")
            continue
        copied = other[name]
        if isinstance(value, (dict, bool, type(None))) or (
            isinstance(value, list) and any(isinstance(item, (dict, list, bool, type(None))) for item in value)
        ):
            if copied != json.dumps(value) and copied != value and copied != json.dumps(value, separators=(",", ":")):
                texts.append(f"attribute {name!r} {str(value)[:80]!r} became {str(copied)[:80]!r}")
            continue
        flat = [
            [_loose(item) for item in np.ravel(np.asarray(known, object if isinstance(known, list) else None)).tolist()]
            for known in (value, copied)
        ]
        if flat[0] != flat[1]:
            texts.append(f"attribute {name!r} {str(value)[:80]!r} became {str(copied)[:80]!r}")
    others = [name for name in other if name not in one and not name.startswith("_nc") and name not in EXPECTED]
    texts += [f"attribute {name!r} is new" for name in others if new]
    return "; ".join(texts)


def back(source: Path, target: Path, notes: list[str], dropped: list[str]) -> Iterator[str]:
    """Compare a file with what came back from the other format, as docs/format.md says."""
    if kind_of(source) == "zarr":
        yield from _store_back(source, target, notes)
    elif kind_of(source) == "classic":
        yield from (text for text in _same_netcdf(source, target) if not text.startswith(("dimensions", "variables")))
    else:
        yield from _file_back(source, target, notes, dropped)


def _store_back(source: Path, target: Path, notes: list[str]) -> Iterator[str]:
    own, other = _arrays(source), _arrays(target)
    for name, array in own.items():
        if name not in other and name != "/":
            if not _listed(name, notes):
                yield f"{name} did not come back, and is not listed"
            continue
        if name == "/":
            continue
        values, others = _values(array), _values(other[name])
        if values is None:
            continue
        if others is None or array.shape != other[name].shape:
            yield f"{name}: {array.shape} {array.dtype} came back as {other[name].shape} {other[name].dtype}"
            continue
        one, two = np.asarray(values), np.asarray(others)
        if one.dtype.kind in "OTUS":
            if [_text(item) for item in one.ravel().tolist()] != [_text(item) for item in two.ravel().tolist()]:
                yield f"{name}: texts differ after both ways"
        elif _bits(one) != _bits(two) or one.dtype.newbyteorder("=") != two.dtype.newbyteorder("="):
            yield f"{name}: {one.dtype} came back as {two.dtype}, or values differ"
        if text := _attributes(dict(array.attrs), dict(other[name].attrs)):
            yield f"{name}: {text}"


def _file_back(source: Path, target: Path, notes: list[str], dropped: list[str]) -> Iterator[str]:
    with h5py.File(source) as before, h5py.File(target) as after:
        pending: list[tuple[str, Any, tuple[Any, ...]]] = [("/", before["/"], ())]
        while pending:
            path, item, around = pending.pop()
            if path in dropped or any(name in before and item == before[name] for name in dropped):
                continue
            if path not in after:
                hidden = isinstance(item, h5py.Dataset) and (_is_dimension(item) or item.shape is None)
                if not hidden and not _listed(path, notes) and not isinstance(item, h5py.Datatype):
                    yield f"{path} did not come back, and is not listed"
                continue
            yield from _attributes_back(path, item, after[path], notes)
            if isinstance(item, h5py.Dataset):
                if not _is_dimension(item) and not _listed(path, notes):
                    yield from _values_back(path, item, after[path])
                continue
            if isinstance(item, h5py.Datatype):
                continue
            for name in item:
                inner = f"{path.rstrip('/')}/{name}"
                if not isinstance(item.get(name, getlink=True), h5py.HardLink):
                    if inner not in after and not _listed(inner, notes):
                        yield f"{inner}: a link that did not come back, and is not listed"
                    continue
                if item[name] in (*around, item):
                    if not _listed(inner, notes):
                        yield f"{inner}: a link around that is not listed"
                else:
                    pending.append((inner, item[name], (*around, item)))


def _attributes_back(path: str, before: Any, after: Any, notes: list[str]) -> Iterator[str]:
    is_scale = isinstance(before, h5py.Dataset) and before.is_scale
    for name in before.attrs:
        if name in SCALES or (is_scale and name in ("CLASS", "NAME")):
            continue
        if name not in after.attrs:
            if f"{path}: attribute {name!r} of references: left out" not in notes:
                yield f"{path}: attribute {name!r} did not come back, and is not listed"
            continue
        first, second = before.attrs.get_id(name), after.attrs.get_id(name)
        if first.shape != second.shape or not first.get_type().equal(second.get_type()):
            yield f"{path}: attribute {name!r}: {first.shape} {first.dtype} came back as {second.shape} {second.dtype}"
            continue
        try:
            values = before.attrs[name], after.attrs[name]
        except Exception:
            continue
        if not isinstance(values[0], h5py.Empty) and repr(plain(values[0])) != repr(plain(values[1])):
            yield f"{path}: attribute {name!r} {str(values[0])[:60]} came back as {str(values[1])[:60]}"


def _values_back(path: str, before: h5py.Dataset, after: Any) -> Iterator[str]:
    if not isinstance(after, h5py.Dataset) or before.shape != after.shape:
        yield f"{path}: {before.shape} came back as {getattr(after, 'shape', 'a group')}"
        return
    first, second = _values(before), _values(after)
    if first is None:
        return
    one, two = np.asarray(first), np.asarray(second)
    if one.dtype.kind in "OS":
        same = [_text(item) for item in one.ravel().tolist()] == [_text(item) for item in two.ravel().tolist()]
    else:
        same = one.dtype.kind == two.dtype.kind and _bits(one) == _bits(two)
    if not same:
        yield f"{path}: {one.dtype} came back as {two.dtype}, or values differ"


def netcdf_opens(path: Path) -> Iterator[str]:
    """Say why ncdump, or xarray by netCDF4, cannot open a file."""
    done = subprocess.run(["ncdump", "-h", path], capture_output=True, check=False, timeout=60)
    if done.returncode:
        yield f"ncdump: {done.stderr.decode(errors='replace')[-200:]}"


FUNCTIONS: dict[str, Any] = {"copy": copy, "ways": ways, "back": back, "netcdf_opens": netcdf_opens}


def answer(words: list[Any]) -> list[str]:
    """Call a function; paths are texts that begin with a slash."""
    name, *arguments = words
    try:
        found = FUNCTIONS[name](*(Path(item) if isinstance(item, str) else item for item in arguments))
        return [*itertools.islice(found, 8)]
    except Exception as error:
        place = error.__traceback__
        while place and place.tb_next:
            place = place.tb_next
        line = place.tb_lineno if place else 0
        words = re.sub(r"\s+", " ", str(error))[:300]
        return [f"witness: {type(error).__name__} at {line}: {words}"]


def serve() -> None:
    """Answer each line of the input, a list of questions, in a process of its own."""
    for line in sys.stdin:
        with tempfile.TemporaryFile() as file:
            child = os.fork()
            if not child:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                file.write(json.dumps([*map(answer, json.loads(line))]).encode())
                file.flush()
                os._exit(0)
            _, status = os.waitpid(child, 0)
            text = os.pread(file.fileno(), 1 << 20, 0).decode()
        dead = [[f"witness: died of status {status}"]] * len(json.loads(line))
        print(text if not status and text else json.dumps(dead), flush=True)


if __name__ == "__main__":
    serve()
