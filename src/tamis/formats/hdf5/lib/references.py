"""References: where they are in values of any type, where they lead, and copies of values with them in another file.

h5py corrupts memory when it converts sequences of region references (observed in 3.16), and does not support the
references of HDF5 1.12. So values with references are read in the type of their file, in which sequences are pointers
to memory of the library. A reference is an address, which is meaningless in another file: every reference is followed
in the source, and created anew in the target. Everything else is copied as bytes, in the type of the file.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from h5py import h5, h5a, h5d, h5f, h5g, h5i, h5s, h5t
from numpy.typing import NDArray

from tamis.arrays.gather import cut, several_chunks, whole
from tamis.arrays.grid import inner_count, origin_of
from tamis.errors import FileError
from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.lib.chunks import stored_chunks
from tamis.formats.hdf5.lib.datatypes import has_varying
from tamis.formats.hdf5.lib.quick_facts import bare_address

Memory = NDArray[np.uint8]

_OBJECT, _REGION, _OBJECT_2, _REGION_2, _ATTRIBUTE = range(5)
"""H5R_type_t: references before HDF5 1.12, and since."""

_OBJECT_NBYTES, _REGION_NBYTES = 8, 12
_SEQUENCE_POINTER = 8  # offset in hvl_t


def has_references(datatype: h5t.TypeID) -> bool:
    """Return whether an HDF5 type has references anywhere, also in members and sequences."""
    return bool(datatype.detect_class(h5t.REFERENCE))


@contextmanager
def values_in_memory(owner: Any, datatype: h5t.TypeID, memory: h5s.SpaceID, file: h5s.SpaceID) -> Iterator[Memory]:
    """Read an attribute, or a part of a dataset, in the type of its file, and free it at the end."""
    values = np.zeros(memory.get_simple_extent_npoints() * datatype.get_size(), np.uint8)
    if isinstance(owner, h5a.AttrID):
        calls.call("H5Aread", owner.id, datatype.id, values.ctypes.data)
    else:
        calls.call("H5Dread", owner.id, datatype.id, memory.id, file.id, 0, values.ctypes.data)
    try:
        yield values
    finally:
        free_values(datatype, memory, values)


def free_values(datatype: h5t.TypeID, memory: h5s.SpaceID, values: Memory) -> None:
    """Free what HDF5 allocated for values in the type of their file."""
    calls.call("H5Dvlen_reclaim", datatype.id, memory.id, 0, values.ctypes.data)


def write_values(owner: Any, datatype: h5t.TypeID, memory: h5s.SpaceID, file: h5s.SpaceID, values: Memory) -> None:
    """Write what `values_in_memory` reads."""
    if isinstance(owner, h5a.AttrID):
        calls.call("H5Awrite", owner.id, datatype.id, values.ctypes.data)
    else:
        calls.call("H5Dwrite", owner.id, datatype.id, memory.id, file.id, 0, values.ctypes.data)


class Place(NamedTuple):
    """Address of a reference in memory, and its size."""

    address: int
    nbytes: int

    @property
    def is_null(self) -> bool:
        """Whether it refers to nothing."""
        return not any(self.content)

    @property
    def is_address(self) -> bool:
        """Whether it is just the address of an object; only HDF5 can change others."""
        return self.nbytes == _OBJECT_NBYTES

    @property
    def content(self) -> bytes:
        """The bytes of the reference."""
        return ctypes.string_at(self.address, self.nbytes)

    def put(self, content: bytes) -> None:
        """Overwrite the reference."""
        ctypes.memmove(self.address, content, self.nbytes)

    def clear(self) -> None:
        """Make it a null reference."""
        self._destroy()
        ctypes.memset(self.address, 0, self.nbytes)

    def follow(self, root: Any) -> ReferenceTarget | None:
        """Return where a reference in the file of a group leads; None if the object does not exist."""
        is_region = self.nbytes == _REGION_NBYTES
        if self.nbytes not in (_OBJECT_NBYTES, _REGION_NBYTES):
            return self._follow_new(root)
        kind = _REGION if is_region else _OBJECT
        try:
            item = h5i.wrap_identifier(calls.call("H5Rdereference2", root.id, 0, kind, self.address))
        except FileError:
            return None
        region = calls.call("H5Rget_region", root.id, kind, self.address) if is_region else None
        return ReferenceTarget(item, None if region is None else h5s.SpaceID(region))

    def _follow_new(self, root: Any) -> ReferenceTarget | None:
        kind = calls.call("H5Rget_type", self.address)
        other_file = _text("H5Rget_file_name", self.address)
        if other_file and other_file != h5f.get_name(root):
            return ReferenceTarget(None)
        try:
            item = h5i.wrap_identifier(calls.call("H5Ropen_object", self.address, 0, 0))
        except FileError:
            return None
        region = calls.call("H5Ropen_region", self.address, 0, 0) if kind == _REGION_2 else None
        attribute = _text("H5Rget_attr_name", self.address) if kind == _ATTRIBUTE else b""
        return ReferenceTarget(item, None if region is None else h5s.SpaceID(region), attribute)

    def lead_to(self, home: Any, name: bytes, target: ReferenceTarget) -> None:
        """Refer to the same part of another object: the one that has a name in a group."""
        if self.nbytes in (_OBJECT_NBYTES, _REGION_NBYTES):
            kind, space = (_OBJECT, -1) if target.region is None else (_REGION, target.region.id)
            calls.call("H5Rcreate", self.address, home.id, name, kind, space)
            return
        self.clear()
        if target.region is not None:
            calls.call("H5Rcreate_region", home.id, name, target.region.id, 0, self.address)
        elif target.attribute:
            calls.call("H5Rcreate_attr", home.id, name, target.attribute, 0, self.address)
        else:
            calls.call("H5Rcreate_object", home.id, name, 0, self.address)

    def _destroy(self) -> None:
        if self.nbytes not in (_OBJECT_NBYTES, _REGION_NBYTES) and not self.is_null:
            with suppress(FileError):
                calls.call("H5Rdestroy", self.address)


class ReferenceTarget(NamedTuple):
    """Where a reference leads."""

    item: Any  # Identifier of the object; None if it is in another file
    region: h5s.SpaceID | None = None  # The selection that it means; None for the whole object
    attribute: bytes = b""  # Name of the attribute that it means; empty for the object


class Layout:
    """Where references are in a value of a type."""

    def __init__(self, datatype: h5t.TypeID) -> None:
        self.nbytes = int(datatype.get_size())
        kind = datatype.get_class()
        self._is_reference, self._is_sequence = kind == h5t.REFERENCE, kind == h5t.VLEN
        # Offset, count and type of parts.
        self._parts: list[tuple[int, int, Layout]] = []
        if kind == h5t.COMPOUND:
            for index in range(datatype.get_nmembers()):
                if has_references(member := datatype.get_member_type(index)):
                    self._parts.append((datatype.get_member_offset(index), 1, Layout(member)))
        elif kind == h5t.ARRAY:
            self._parts.append((0, math.prod(datatype.get_array_dims()), Layout(datatype.get_super())))
        elif self._is_sequence:
            self._element = Layout(datatype.get_super())

    def places(self, values: Memory) -> Iterator[Place]:
        """Yield each reference in values, which must stay in memory."""
        return self._places(values.ctypes.data, len(values) // max(self.nbytes, 1))

    def _places(self, address: int, count: int) -> Iterator[Place]:
        for start in range(address, address + count * self.nbytes, self.nbytes):
            if self._is_reference:
                yield Place(start, self.nbytes)
            elif self._is_sequence:
                yield from self._element._places(*reversed(sequence_at(start)))
            for offset, part_count, part in self._parts:
                yield from part._places(start + offset, part_count)


def sequence_at(address: int) -> tuple[int, int]:
    """Return the length of a sequence, and the address of its elements."""
    elements = ctypes.c_size_t.from_address(address + _SEQUENCE_POINTER).value
    return ctypes.c_size_t.from_address(address).value if elements else 0, elements


def _text(name: str, address: int) -> bytes:
    room = ctypes.create_string_buffer(calls.call(name, address, None, 0) + 1)
    calls.call(name, address, room, len(room))
    return room.value


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


def has_short_chunks(dataset: Any, file_type: Any) -> bool:
    """Return whether an unfiltered chunk ends after its last element inside the array, as some programs store it.

    HDF5 trusts the size, and writes beyond its buffers when it copies such a chunk. Types whose size may differ between
    memory and file are not checked.

    Raises
    ------
    FileError
        If a chunk has any other size than its values.
    """
    plist = dataset.get_create_plist()
    chunked = plist.get_layout() == h5d.CHUNKED and not plist.get_nfilters()
    if not chunked or has_varying(file_type) or has_references(file_type):
        return False
    steps, itemsize, shape = plist.get_chunk(), file_type.get_size(), dataset.shape
    chunk_nbytes = math.prod(steps) * itemsize
    short: list[Any] = []

    def check(chunk: Any) -> None:
        if chunk.size == chunk_nbytes:
            return
        if not inner_count(chunk.chunk_offset, steps, shape) * itemsize <= chunk.size < chunk_nbytes:
            raise FileError(
                f"damaged: expected {chunk_nbytes} bytes in the chunk at {chunk.chunk_offset}, found {chunk.size}"
            )
        short.append(chunk.chunk_offset)

    dataset.chunk_iter(check)
    return bool(short)


def copy_values(source: Any, target: Any) -> None:
    """Fill a dataset with the values of another of equal type and creation properties, byte by byte.

    Chunks are copied as stored, with their filter masks, unless the type has variable-length parts, which are stored
    outside the chunks. Unfiltered ones get all their bytes: see `has_short_chunks`. Values in other files are copied
    unless the target has them there, too.
    """
    file_type = source.get_type()
    plist = source.get_create_plist()
    if is_elsewhere(plist):
        if not is_elsewhere(target.get_create_plist()):
            _copy_blocks(source, target, _blocks(source))
        return
    if plist.get_layout() == h5d.CHUNKED and not has_varying(file_type):
        least_nbytes = 0 if plist.get_nfilters() else math.prod(plist.get_chunk()) * file_type.get_size()
        for stored in stored_chunks(source):
            mask, payload = source.read_direct_chunk(stored.chunk_offset)
            payload = payload[: stored.size].ljust(least_nbytes, b"\0")  # h5py returns memory after the end
            target.write_direct_chunk(stored.chunk_offset, payload, mask)
        return
    _copy_blocks(source, target, _stored_blocks(source))


def is_elsewhere(plist: Any) -> bool:
    """Return whether creation properties are those of a dataset whose values are in other files."""
    return bool(plist.get_external_count() or plist.get_layout() == h5d.VIRTUAL)


_Blocks = Iterator[tuple[tuple[int, ...], tuple[int, ...]]]


def _copy_blocks(source: Any, target: Any, blocks: _Blocks) -> None:
    file_type = source.get_type()
    for start, count in blocks:
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


def _stored_blocks(dataset: Any) -> _Blocks:
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
        yield from _blocks(dataset)


def _blocks(dataset: Any) -> _Blocks:
    """Yield start and count of bounded boxes that cover a dataset."""
    if dataset.get_space().get_simple_extent_type() == h5s.NULL or 0 in dataset.shape:
        return
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
