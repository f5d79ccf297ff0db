"""Copy attributes, and values with references, to another HDF5 file.

A reference in HDF5 is an address, which is meaningless in another file: every reference is followed in the source, and
created again in the target. Everything else is copied as bytes, in the type of the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import h5py
import numpy as np
import numpy.typing as npt
from h5py import h5, h5a, h5d, h5g, h5s, h5t

from tamis.chunks.boxes import cut, several_chunks, whole
from tamis.chunks.grid import origin_of
from tamis.errors import FileError
from tamis.hdf5.lib import calls
from tamis.hdf5.lib.chunk_index import stored_chunks
from tamis.hdf5.lib.quick_facts import bare_address

Array: TypeAlias = npt.NDArray[Any]
Reference: TypeAlias = Any
"""An `h5py.h5r.Reference` or its subclass `RegionReference`: h5py has no stubs."""

Rewire = Callable[[Reference], Reference]
"""Return the target's reference for one of the source; never called with a null reference."""

BLOCK_ELEMENTS = 1 << 16
"""Limit of elements in memory if a dataset is not chunked."""


def has_references(datatype: Any) -> bool:
    """Return whether an HDF5 type has references anywhere, also in members and sequences."""
    return bool(datatype.detect_class(h5t.REFERENCE))


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
    source: Any, target: Any, name: bytes, rewire: Rewire, target_type: Callable[[Any], Any] = lambda datatype: datatype
) -> None:
    """Copy one attribute from an object to its copy.

    Parameters
    ----------
    source, target
        Low-level identifiers of the two objects.
    name
        The attribute, which must not exist in the target.
    rewire
        Translates each reference in the value.
    target_type
        Returns the `h5py.h5t.TypeID` of the copy for that of the source: the same by default, or the corresponding
        named type of the target.
    """
    attribute = h5a.open(source, name)
    space = attribute.get_space()
    file_type = attribute.get_type()
    datatype = target_type(file_type)
    utf8 = h5a.get_info(source, name).cset == h5t.CSET_UTF8 and calls.has("H5Acreate2")
    copied = (calls.create_utf8_attribute if utf8 else h5a.create)(target, name, datatype, space)
    if space.get_simple_extent_type() == h5s.NULL or space.get_simple_extent_npoints() == 0:
        return
    if has_references(file_type):
        values, memory_type = _python_buffer(attribute.shape, file_type.dtype)
        attribute.read(values, mtype=memory_type)
        _rewire_values(values, file_type.dtype, rewire)
        copied.write(values, mtype=memory_type)
    else:
        values = _bytes_buffer(attribute.shape, file_type)
        attribute.read(values, mtype=file_type)
        copied.write(values, mtype=file_type)


def rewrite_references(source: Any, target: Any, rewire: Rewire) -> None:
    """Overwrite the references in the copy of a dataset by translated ones; other members of its type stay.

    Parameters
    ----------
    source, target
        `h5py.h5d.DatasetID` of the same shape and of equal type.
    rewire
        Translates each reference.

    Raises
    ------
    ValueError
        If references cannot be translated: they are in an external raw file, or in the fill value.
    """
    plist = source.get_create_plist()
    dtype = _reference_part(source.get_type().dtype)
    if plist.get_external_count():
        raise ValueError(
            "expected references inside the HDF5 file, got external raw storage, which source and copy would share"
        )
    if plist.fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED:
        fill, _ = _python_buffer((), dtype)
        plist.get_fill_value(fill)
        _rewire_values(fill, dtype, _refuse_fill)
    for start, count in _stored_blocks(source):
        values, memory_type = _python_buffer(count, dtype)
        memory_space, file_space = _select(source, start, count)
        source.read(memory_space, file_space, values, memory_type)
        _rewire_values(values, dtype, rewire)
        target.write(memory_space, file_space, values, memory_type)


def check_sizes(dataset: Any, file_type: Any) -> None:
    """Raise FileError if an unfiltered chunk has another size than its values.

    HDF5 trusts the size, and writes beyond its buffers when it copies such a chunk. Types whose size in memory may
    differ from that in the file are not checked.
    """
    plist = dataset.get_create_plist()
    chunked = plist.get_layout() == h5d.CHUNKED and not plist.get_nfilters()
    if not chunked or is_variable(file_type) or has_references(file_type):
        return
    chunk_nbytes = math.prod(plist.get_chunk()) * file_type.get_size()
    for chunk in stored_chunks(dataset):
        if chunk.size != chunk_nbytes:
            raise FileError(
                f"damaged: expected {chunk_nbytes} bytes in the chunk at {chunk.chunk_offset}, found {chunk.size}"
            )


def copy_values(source: Any, target: Any) -> None:
    """Fill a dataset with the values of another of equal type and creation properties, byte by byte.

    Chunks are copied as stored, with their filter masks, unless the type has variable-length parts, which are stored
    outside the chunks.

    Parameters
    ----------
    source, target
        `h5py.h5d.DatasetID`. References are copied, too, but still point into the source.
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


def _python_buffer(shape: tuple[int, ...], dtype: Any) -> tuple[Array, Any]:
    """Return an array for elements as numpy values and Python objects, and its memory type."""
    base, inner = dtype.subdtype or (dtype, ())
    return np.zeros((*shape, *inner), dtype=base), h5t.py_create(dtype)


def _reference_part(dtype: Any) -> Any:
    """Return a compound type with only the members that have references, so that no others pass through Python."""
    if dtype.subdtype:
        base, shape = dtype.subdtype
        return np.dtype((_reference_part(base), shape))
    if dtype.names:
        members = [name for name in dtype.names if _has_reference(dtype[name])]
        return np.dtype([(name, _reference_part(dtype[name])) for name in members])
    return dtype


def _has_reference(dtype: Any) -> bool:
    if dtype.subdtype:
        return _has_reference(dtype.subdtype[0])
    if dtype.names:
        return any(_has_reference(dtype[name]) for name in dtype.names)
    sequence = h5py.check_vlen_dtype(dtype)
    return h5py.check_ref_dtype(dtype) is not None or (isinstance(sequence, np.dtype) and _has_reference(sequence))


def _rewire_values(values: Array, dtype: Any, rewire: Rewire) -> None:
    """Replace each reference in an array, in place, through fields, arrays and sequences."""
    if dtype.subdtype:
        dtype = dtype.subdtype[0]
    sequence = h5py.check_vlen_dtype(dtype)
    if h5py.check_ref_dtype(dtype) is not None:
        for index in np.ndindex(values.shape):
            # A null reference may also be 0 or None, in a buffer that was never filled.
            if values[index]:
                values[index] = rewire(values[index])
    elif isinstance(sequence, np.dtype):
        for index in np.ndindex(values.shape):
            if isinstance(values[index], np.ndarray):
                _rewire_values(values[index], sequence, rewire)
    elif dtype.names:
        for name in dtype.names:
            _rewire_values(values[name], dtype[name], rewire)


def _refuse_fill(reference: Reference) -> Reference:
    raise ValueError(f"expected a null reference as fill value, got {reference!r}, which cannot be changed in the copy")


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
