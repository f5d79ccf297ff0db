"""Filters and chunks of an h5py dataset."""

from __future__ import annotations

import operator
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from tamis.arguments import Kind
from tamis.errors import FileError, TamisError, located
from tamis.filters import ChunkType
from tamis.formats.hdf5.lib.chunks import chunk_info
from tamis.formats.hdf5.stored_array import Hdf5Array
from tamis.pipeline import Pipeline

DATASET = Kind("an h5py dataset", lambda value: isinstance(value, h5py.Dataset))


def pipeline_of(dataset: h5py.Dataset) -> Pipeline:
    """Return the filters of a dataset as stored, including order, flags, duplicates and unknown filters.

    To decode its chunks, use ``pipeline_of(d).decode(data, mask, chunk_type(d))``.
    """
    DATASET.check("dataset", dataset)
    return Hdf5Array.of(dataset).storage.pipeline


def chunk_type(dataset: h5py.Dataset) -> ChunkType:
    """Return type and shape of the chunks of a chunked dataset.

    Values of a type that NumPy does not have, and references to values elsewhere in the file, are treated as bytes.
    """
    DATASET.check("dataset", dataset)
    return Hdf5Array.of(dataset).storage.chunk


def read_chunk(dataset: h5py.Dataset, origin: tuple[int, ...]) -> NDArray[Any]:
    """Read one chunk and decode it with tamis, whatever filters libhdf5 has.

    Parameters
    ----------
    dataset
        A chunked dataset.
    origin
        Index of the first value of the chunk.

    Returns
    -------
    array
        The whole chunk, including the part beyond the array; fill values if the chunk is not stored. It may be
        read-only.

    Raises
    ------
    FileError
        If there is no such chunk, or it cannot be decoded; names the filter.
    """
    DATASET.check("dataset", dataset)
    array = Hdf5Array.of(dataset)
    with located(path=array.filename, dataset=array.path):
        return _read_chunk(array, origin)


def _read_chunk(array: Hdf5Array, origin: tuple[int, ...]) -> NDArray[Any]:
    label, chunk, dataset = array.label, array.storage.chunk, array.dataset
    if array.storage.chunk_shape is None:
        raise FileError(f"{label}: has no chunks: read it by dataset[...]")
    try:
        start = tuple(map(operator.index, origin))
    except TypeError as error:
        raise FileError(f"{label}: expected whole numbers as the origin of a chunk, got {origin!r}") from error
    edges = list(zip(start, array.shape, chunk.shape, strict=False))
    if len(start) != len(array.shape) or any(first % step or not 0 <= first < extent for first, extent, step in edges):
        text = f"{label}: chunk at {start}: expected a multiple of {chunk.shape} inside of {array.shape}"
        raise FileError(text).at(chunk=start)
    try:
        record = chunk_info(dataset.id, start)
        if not record.size:
            return np.full(chunk.shape, array.fill.value if chunk.dtype == dataset.dtype else 0, chunk.dtype)
        # HDF5 trusts these numbers, and writes beyond its buffer if they are damaged.
        whole = bool(array.storage.pipeline.stages) or record.size == chunk.nbytes
        if not whole or record.byte_offset + record.size > array.file.id.get_filesize():
            raise FileError(f"{label}: chunk at {start}: damaged: {record.size} bytes at {record.byte_offset}").at(
                chunk=start
            )
        mask, data = dataset.id.read_direct_chunk(start)
        partial = any(first + step > extent for first, extent, step in edges)
        if partial and not array.storage.partial_filtered:
            mask = -1  # unfiltered, although HDF5 reports a mask of 0
        return array.storage.pipeline.decode(data, mask, chunk)
    except FileError:
        raise
    except (TamisError, OSError, RuntimeError, ValueError, MemoryError) as error:
        raise FileError(f"{label}: chunk at {start} cannot be decoded: {error}").at(chunk=start) from error
