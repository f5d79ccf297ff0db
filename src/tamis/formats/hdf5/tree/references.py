"""Copy attributes, and values with references, to another HDF5 file.

A reference in HDF5 is an address, which is meaningless in another file: every reference is followed in the source, and
created anew in the target. Everything else is copied as bytes, in the type of the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from h5py import h5, h5a, h5d, h5g, h5s, h5t

from tamis.arrays.gather import cut, several_chunks, whole
from tamis.arrays.grid import origin_of
from tamis.errors import FileError
from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.lib.chunk_index import stored_chunks
from tamis.formats.hdf5.lib.quick_facts import bare_address
from tamis.formats.hdf5.lib.references import (
    Layout,
    Memory,
    Place,
    free_values,
    has_references,
    values_in_memory,
    write_values,
)

Array: TypeAlias = npt.NDArray[Any]
Rewire = Callable[[Place], None]
"""Turn a reference of the source, in memory, into one of the target; never called with a null reference."""

BLOCK_ELEMENTS = 1 << 16
"""Limit of elements in memory if a dataset is not chunked."""


def has_more(item: Any) -> bool:
    """Return whether an object has attributes, a comment or references."""
    if isinstance(item, h5g.GroupID) and bare_address(item) is not None:
        return False
    if h5a.get_num_attrs(item) or calls.may_have_comment(item):
        return True
    return isinstance(item, h5d.DatasetID) and has_references(item.get_type())


def is_variable(datatype: Any) -> bool:
    """Return whether an HDF5 type has variable-length strings or sequences, whose bytes are in a heap."""
    kind = datatype.get_class()
    if kind == h5t.STRING:
        return bool(datatype.is_variable_str())
    if kind == h5t.COMPOUND:
        return any(is_variable(datatype.get_member_type(i)) for i in range(datatype.get_nmembers()))
    return bool(kind == h5t.VLEN or (kind == h5t.ARRAY and is_variable(datatype.get_super())))


def attribute_names(owner: Any) -> list[bytes]:
    """Return the names of an object's attributes in creation order, or in stored order if it is not tracked."""
    names: list[bytes] = []
    if h5a.get_num_attrs(owner) == 0:
        return names
    # append returns None, which tells the library to continue.
    if h5a.get_info(owner, index=0).corder_valid:
        h5a.iterate(owner, names.append, index_type=h5.INDEX_CRT_ORDER, order=h5.ITER_INC)
    else:
        h5a.iterate(owner, names.append, index_type=h5.INDEX_NAME, order=h5.ITER_NATIVE)
    return names


def copy_attribute(
    source: Any,
    target: Any,
    name: bytes,
    rewire: Rewire | None,
    target_type: Callable[[Any], Any] = lambda datatype: datatype,
) -> None:
    """Copy one attribute from an object to its copy."""
    attribute = h5a.open(source, name)
    space = attribute.get_space()
    file_type = attribute.get_type()
    datatype = target_type(file_type)
    utf8 = h5a.get_info(source, name).cset == h5t.CSET_UTF8 and calls.has("H5Acreate2")
    copied = (calls.create_utf8_attribute if utf8 else h5a.create)(
        target, name, calls.unshared(datatype), calls.unshared(space)
    )
    if space.get_simple_extent_type() == h5s.NULL or space.get_simple_extent_npoints() == 0:
        return
    if has_references(file_type):
        with values_in_memory(attribute, file_type, space, space) as values:
            if rewire is not None:
                _rewire_all(values, file_type, rewire)
            write_values(copied, file_type, space, space, values)
    else:
        values = _bytes_buffer(attribute.shape, file_type)
        attribute.read(values, mtype=file_type)
        copied.write(values, mtype=file_type)


def rewrite_references(source: Any, target: Any, rewire: Rewire) -> None:
    """Overwrite the values in the copy of a dataset, with translated references."""
    file_type = source.get_type()
    for start, count in _stored_blocks(source):
        memory, file = _select(source, start, count)
        with values_in_memory(source, file_type, memory, file) as values:
            _rewire_all(values, file_type, rewire)
            write_values(target, file_type, memory, file, values)


def rewire_fill(plist: Any, datatype: Any, rewire: Rewire) -> None:
    """Point the references in a fill value, if its type has any, to the copies of their targets."""
    values = np.frombuffer(bytearray(calls.fill_bytes(plist, datatype)), np.uint8)
    _rewire_all(values, datatype, rewire)
    calls.set_fill_bytes(plist, datatype, values.tobytes())
    free_values(datatype, h5s.create(h5s.SCALAR), values)


def _rewire_all(values: Memory, datatype: Any, rewire: Rewire) -> None:
    for place in Layout(datatype).places(values):
        if not place.is_null:
            rewire(place)


def check_sizes(dataset: Any, file_type: Any) -> None:
    """Raise FileError if an unfiltered chunk has another size than its values.

    HDF5 trusts the size, and writes beyond its buffers when it copies such a chunk. Types whose size may differ between
    memory and file are not checked.
    """
    plist = dataset.get_create_plist()
    chunked = plist.get_layout() == h5d.CHUNKED and not plist.get_nfilters()
    if not chunked or is_variable(file_type) or has_references(file_type):
        return
    chunk_nbytes = math.prod(plist.get_chunk()) * file_type.get_size()

    def check(chunk: Any) -> None:
        if chunk.size != chunk_nbytes:
            raise FileError(
                f"damaged: expected {chunk_nbytes} bytes in the chunk at {chunk.chunk_offset}, found {chunk.size}"
            )

    dataset.chunk_iter(check)


def copy_values(source: Any, target: Any) -> None:
    """Fill a dataset with the values of another of equal type and creation properties, byte by byte.

    Chunks are copied as stored, with their filter masks, unless the type has variable-length parts, which are stored
    outside the chunks.
    """
    file_type = source.get_type()
    plist = source.get_create_plist()
    if plist.get_external_count():
        return
    if plist.get_layout() == h5d.CHUNKED and not is_variable(file_type):
        for stored in stored_chunks(source):
            mask, payload = source.read_direct_chunk(stored.chunk_offset)
            target.write_direct_chunk(stored.chunk_offset, payload, mask)
        return
    for start, count in _stored_blocks(source):
        values = _bytes_buffer(count, file_type)
        memory_space, file_space = _select(source, start, count)
        source.read(memory_space, file_space, values, file_type)
        target.write(memory_space, file_space, values, file_type)


def _bytes_buffer(shape: tuple[int, ...], file_type: Any) -> Array:
    """Return memory for elements in the form of their file type.

    Variable-length parts are then pointers to memory of the library. h5py does not free them after reading, and lets
    the library free them after writing, so that a buffer that is read once and written once is neither leaked nor freed
    twice. Unlike Python objects, this form can tell null strings from empty ones, and has sequences of sequences.
    """
    return np.zeros(shape, dtype=np.dtype((np.void, file_type.get_size())))


def _stored_blocks(dataset: Any) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield start and count of blocks that cover the stored values of a dataset: its chunks, or bounded boxes."""
    plist = dataset.get_create_plist()
    layout = plist.get_layout()
    space = dataset.get_space()
    if layout == h5d.VIRTUAL or space.get_simple_extent_type() == h5s.NULL or 0 in dataset.shape:
        return
    if layout == h5d.CHUNKED:
        chunk = plist.get_chunk()
        for stored in stored_chunks(dataset):
            start = stored.chunk_offset
            yield start, tuple(min(c, n - s) for c, n, s in zip(chunk, dataset.shape, start, strict=True))
    elif dataset.get_space_status() != h5d.SPACE_STATUS_NOT_ALLOCATED:
        step = several_chunks(dataset.shape, (1,) * len(dataset.shape), BLOCK_ELEMENTS)
        for part in cut(whole(dataset.shape), step):
            yield origin_of(part), tuple(span.stop - span.start for span in part)


def _select(dataset: Any, start: tuple[int, ...], count: tuple[int, ...]) -> tuple[Any, Any]:
    """Return memory and file dataspace of one block."""
    space = dataset.get_space()
    if not count:
        return h5s.create(h5s.SCALAR), space
    space.select_hyperslab(start, count)
    return h5s.create_simple(count), space
