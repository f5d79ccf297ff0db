"""How a dataset is stored: its filters as the file has them, and its chunks."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5t, h5z
from numpy.typing import NDArray

from tamis.chunks.grid import Region, regions
from tamis.errors import FileError, TamisError, located
from tamis.filters import ChunkType, Request, Stage, StoredZfp, UnknownFilter, Zfp, from_values
from tamis.filters.zfp import is_stored
from tamis.hdf5.facts import address_nbytes, datatype_of, file_of, layout_plist, once, place_of
from tamis.hdf5.lib import calls
from tamis.hdf5.lib.chunk_index import chunk_info, stored_chunks
from tamis.hdf5.lib.places import SAME_FILE, find_virtual
from tamis.pipeline import Pipeline

_LAYOUTS = {h5d.CHUNKED: "chunked", h5d.CONTIGUOUS: "contiguous", h5d.COMPACT: "compact", h5d.VIRTUAL: "virtual"}
_ORDERS = {h5t.ORDER_LE: "little", h5t.ORDER_BE: "big"}


@dataclass(frozen=True, slots=True)
class Chunks:
    """The chunks of a dataset, counted.

    Parameters
    ----------
    count
        Chunks that are stored.
    nbytes
        Bytes that they take.
    masks
        How many have each filter mask.
    """

    count: int
    nbytes: int
    masks: dict[int, int]


@once
def pipeline_of(dataset: h5py.Dataset) -> Pipeline:
    """Return the filters of a dataset as its file has them: order, flags, duplicates and unknown ones included.

    Its chunks are decoded by ``pipeline_of(d).decode(data, mask, chunk_type(d))``.
    """
    return listed_pipeline(layout_plist(dataset))


def listed_pipeline(plist: Any) -> Pipeline:
    """Return the filters of a property list that came from a file."""
    return _pipeline(tuple(calls.filter_list(plist)))


@lru_cache(maxsize=1024)  # most datasets of a file have the same filters
def _pipeline(listed: tuple[calls.ListedFilter, ...]) -> Pipeline:
    return Pipeline(map(_stage, listed))


def _stage(listed: calls.ListedFilter) -> Stage:
    found = from_values(Request(listed.id, listed.values), listed.label, stored=True)
    if listed.total > len(listed.values):
        reason = f"it has {listed.total} parameters, of which HDF5 gives out {len(listed.values)}"
        found = UnknownFilter(listed.id, listed.values, listed.label or found.name, reason)
    return Stage(found, bool(listed.flags & h5z.FLAG_OPTIONAL), listed.values)


@once
def chunk_type(dataset: h5py.Dataset) -> ChunkType:
    """Type and shape of the chunks of a chunked dataset.

    Values of a type that numpy does not have, and references to values elsewhere in the file, are taken as bytes.
    """
    try:
        dtype = dataset.dtype
    except (TypeError, ValueError):
        dtype = None
    nbytes = _chunk_nbytes(datatype_of(dataset), address_nbytes(file_of(dataset)))
    if dtype is None or dtype.hasobject or dtype.itemsize != nbytes:
        dtype = np.dtype(f"V{nbytes}")
    return ChunkType(dtype, dataset.chunks)


def read_chunk(dataset: h5py.Dataset, origin: tuple[int, ...]) -> NDArray[Any]:
    """Read and decode one chunk by tamis, whatever filters libhdf5 has.

    Parameters
    ----------
    dataset
        Chunked.
    origin
        Index of the first value of the chunk.

    Returns
    -------
    array
        All of the chunk, the part beyond the array included; fill values where the chunk is not stored. It may be
        read-only.

    Raises
    ------
    FileError
        If there is no such chunk, or it cannot be decoded; names the filter.
    """
    with located(path=file_of(dataset).filename, dataset=dataset.name):
        return _read_chunk(dataset, origin)


def _read_chunk(dataset: h5py.Dataset, origin: tuple[int, ...]) -> NDArray[Any]:
    place = place_of(dataset)
    if dataset.chunks is None:
        raise FileError(f"{place}: expected a chunked dataset, found none: read it by dataset[...]")
    chunk = chunk_type(dataset)
    try:
        start = tuple(map(operator.index, origin))
    except TypeError as error:
        raise FileError(f"{place}: expected whole numbers as the origin of a chunk, got {origin!r}") from error
    edges = list(zip(start, dataset.shape, chunk.shape, strict=False))
    if len(start) != dataset.ndim or any(at % step or not 0 <= at < extent for at, extent, step in edges):
        text = f"{place}: chunk at {start}: expected a multiple of {chunk.shape} inside of {dataset.shape}"
        raise FileError(text).at(chunk=start)
    pipeline = pipeline_of(dataset)
    try:
        found = chunk_info(dataset.id, start)
        if not found.size:
            return np.full(chunk.shape, fill_value(dataset) if chunk.dtype == dataset.dtype else 0, chunk.dtype)
        # HDF5 believes these numbers, and writes beyond its buffer where they are damaged.
        whole = bool(pipeline.stages) or found.size == chunk.nbytes
        if not whole or found.byte_offset + found.size > file_of(dataset).id.get_filesize():
            raise FileError(f"{place}: chunk at {start}: damaged: {found.size} bytes at {found.byte_offset}").at(
                chunk=start
            )
        mask, data = dataset.id.read_direct_chunk(start)
        partial = any(at + step > extent for at, extent, step in edges)
        if partial and not calls.filters_partial_chunks(layout_plist(dataset)):
            mask = -1  # every filter was left out, and HDF5 does not say so
        return pipeline.decode(data, mask, chunk)
    except FileError:
        raise
    except (TamisError, OSError, RuntimeError, ValueError, MemoryError) as error:
        raise FileError(f"{place}: chunk at {start} cannot be decoded: {error}").at(chunk=start) from error


def _chunk_nbytes(found: h5t.TypeID, address_nbytes: int) -> int:
    """Bytes that a value takes in a chunk; HDF5 tells those in memory.

    Where its length varies, these are its length, the address of a heap and a place there.
    """
    if found.get_class() == h5t.VLEN or (found.get_class() == h5t.STRING and found.is_variable_str()):
        return 4 + address_nbytes + 4
    if isinstance(found, h5t.TypeArrayID):
        return int(math.prod(found.get_array_dims())) * _chunk_nbytes(found.get_super(), address_nbytes)
    nbytes = int(found.get_size())
    if isinstance(found, h5t.TypeCompoundID):
        members = [found.get_member_type(index) for index in range(found.get_nmembers())]
        nbytes += sum(_chunk_nbytes(each, address_nbytes) - int(each.get_size()) for each in members)
    return nbytes


def chunks_of(dataset: h5py.Dataset) -> Chunks:
    """Count the chunks of a chunked dataset, in one pass over its index."""
    masks: Counter[int] = Counter()
    nbytes = 0

    def visit(chunk: h5d.StoreInfo) -> None:
        nonlocal nbytes
        masks[chunk.filter_mask] += 1
        nbytes += chunk.size

    dataset.id.chunk_iter(visit)
    return Chunks(masks.total(), nbytes, dict(masks))


def type_text(dataset: h5py.Dataset) -> str:
    """Name the type of a dataset's values, with the byte order where that is not the machine's."""
    try:
        dtype = dataset.dtype
    except (TypeError, ValueError):
        return "a type that numpy does not have"
    if h5py.check_string_dtype(dtype) is not None:
        return "string"
    if dtype.names:
        return "compound"
    if dtype.kind == "O":
        return "variable-length" if h5py.check_vlen_dtype(dtype) else "reference"
    return str(dtype)


@once
def fill_value(dataset: h5py.Dataset) -> NDArray[Any]:
    """Return HDF5's fill value, in the type of the dataset.

    Zero where it is undefined, as in files of old C programs: HDF5 then says nothing about values that were never
    written.
    """
    if layout_plist(dataset).fill_value_defined() == h5d.FILL_VALUE_UNDEFINED:
        return np.zeros((), dataset.dtype)
    return np.asarray(dataset.fillvalue)


def is_unreadable_empty(dataset: h5py.Dataset) -> bool:
    """Tell a dataset without values and fill value, which HDF5 refuses to read; tamis reads zeros."""
    plist = layout_plist(dataset)
    undefined = plist.fill_value_defined() == h5d.FILL_VALUE_UNDEFINED
    elsewhere = dataset.is_virtual or plist.get_external_count() > 0
    return undefined and not elsewhere and dataset.id.get_storage_size() == 0


def byteorder(dataset: h5py.Dataset) -> str:
    """Return the byte order of the values, ``little`` or ``big``; empty where they have none, or several."""
    found = datatype_of(dataset)
    if isinstance(found, (h5t.TypeEnumID, h5t.TypeArrayID)):
        found = found.get_super()
    if not isinstance(found, (h5t.TypeIntegerID, h5t.TypeFloatID, h5t.TypeBitfieldID)):
        return ""
    return _ORDERS.get(found.get_order(), "") if found.get_size() > 1 else ""


ELSEWHERE = ("virtual", "external")
"""Layouts whose values are in other files, as `layout_text` names them."""


def layout_text(dataset: h5py.Dataset) -> str:
    """Return where the values are: chunked, contiguous, compact, external (in other files) or virtual."""
    if dataset.is_virtual:
        return "virtual"
    plist = layout_plist(dataset)
    if plist.get_external_count():
        return "external"
    return _LAYOUTS[plist.get_layout()]


def varies(dataset: h5py.Dataset) -> bool:
    """Tell values of varying length, which lie elsewhere in the file than the chunks."""
    found = datatype_of(dataset)
    return bool(found.detect_class(h5t.VLEN)) or (found.get_class() == h5t.STRING and bool(found.is_variable_str()))


def values_nbytes(dataset: h5py.Dataset) -> int:
    """Bytes of all values; 0 for those of varying length, which lie elsewhere in the file where nothing counts them."""
    found = datatype_of(dataset)
    if found.get_class() == h5t.VLEN or (found.get_class() == h5t.STRING and found.is_variable_str()):
        return 0
    return (dataset.size or 0) * int(found.get_size())


@once
def number_type(dataset: h5py.Dataset) -> np.dtype[Any] | None:
    """Return the type of the values where they are floats or integers as numpy stores them, otherwise None."""
    found = datatype_of(dataset)
    if not isinstance(found, (h5t.TypeFloatID, h5t.TypeIntegerID)):
        return None
    try:
        dtype: np.dtype[Any] = dataset.dtype
        return dtype if h5t.py_create(dtype).equal(found) else None
    except (TypeError, ValueError):
        return None


@once
def stored_type(dataset: h5py.Dataset) -> np.dtype[Any] | None:
    """Type in which chunks can be taken from one dataset to another: numbers, or else bytes of a fixed size.

    None where values lie elsewhere in the file, or lead there.
    """
    found = datatype_of(dataset)
    if (numbers := number_type(dataset)) is not None:
        return numbers
    if varies(dataset) or found.detect_class(h5t.REFERENCE) or found.detect_class(h5t.VLEN):
        return None
    if any(each.is_variable_str() for each in _strings(found)):
        return None
    return np.dtype((np.void, found.get_size()))


def _strings(found: h5t.TypeID) -> Iterator[h5t.TypeStringID]:
    """Yield the strings that a type is made of."""
    if isinstance(found, h5t.TypeStringID):
        yield found
    elif isinstance(found, h5t.TypeArrayID):
        yield from _strings(found.get_super())
    elif isinstance(found, h5t.TypeCompoundID):
        for index in range(found.get_nmembers()):
            yield from _strings(found.get_member_type(index))


def stored_regions(dataset: h5py.Dataset) -> list[Region]:
    """Parts of the array that have values in the file: its chunks, or all of it. What is left reads as fill value.

    Raises
    ------
    FileError
        If a chunk lies outside of the array: the file is damaged.
    """
    shape = dataset.shape
    if dataset.chunks is None:
        # A virtual dataset has its values in other files, and no bytes in this one.
        anything = dataset.size and (dataset.is_virtual or dataset.id.get_storage_size() > 0)
        return [tuple(slice(0, extent) for extent in shape)] if anything else []
    if not dataset.size:
        return []
    origins = sorted([each.chunk_offset for each in stored_chunks(dataset.id)])
    furthest = [max(axis) for axis in zip(*origins, strict=True)]
    if any(start >= extent for start, extent in zip(furthest, shape, strict=False)):
        raise FileError(f"{place_of(dataset)}: damaged: chunk at {furthest} of shape {shape}")
    return regions(origins, shape, dataset.chunks)


def check_readable(dataset: h5py.Dataset) -> None:
    """Raise FileError where HDF5 would read something else than the values of the dataset, without a word.

    It does not check the length of what a filter returns, and takes a virtual dataset's missing files for fill values.
    """
    if dataset.is_virtual:
        place, file = place_of(dataset), file_of(dataset).filename
        for each in dataset.virtual_sources():
            if each.file_name != SAME_FILE and find_virtual(each.file_name, file) is None:
                name = each.file_name
                raise FileError(f"{place}: No such file or directory: {name}, a source of this virtual dataset")
    if problem := zfp_problem(dataset, pipeline_of(dataset)):
        raise FileError(f"{place_of(dataset)}: {problem}")


def zfp_problem(dataset: h5py.Dataset, pipeline: Pipeline) -> str:
    """Return how the stored parameters of zfp contradict the dataset; empty where they do not."""
    for each in pipeline.stages:
        if each.filter.id != Zfp.id:
            continue
        if isinstance(each.filter, UnknownFilter):
            return each.filter.reason
        if is_stored(each.stored or ()):
            stored = StoredZfp.parse(each.stored or ())
            described = math.prod(stored.shape) * stored.dtype.itemsize
            expected = math.prod(dataset.chunks) * datatype_of(dataset).get_size()
            if described != expected:
                return f"damaged: its ZFP parameters describe chunks of {described} bytes, its chunks have {expected}"
    return ""
