"""References in memory, as in HDF5: where they are in values of any type, where they lead, and new ones.

h5py corrupts memory when it converts sequences of region references (observed in 3.16), and does not support the
references of HDF5 1.12. So values with references are read in the type of their file, in which sequences are pointers
to memory of the library.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np
from h5py import h5a, h5f, h5i, h5s, h5t
from numpy.typing import NDArray

from tamis.errors import FileError
from tamis.formats.hdf5.lib import calls

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

    def follow(self, root: Any) -> Target | None:
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
        return Target(item, None if region is None else h5s.SpaceID(region))

    def _follow_new(self, root: Any) -> Target | None:
        kind = calls.call("H5Rget_type", self.address)
        other_file = _text("H5Rget_file_name", self.address)
        if other_file and other_file != h5f.get_name(root):
            return Target(None)
        try:
            item = h5i.wrap_identifier(calls.call("H5Ropen_object", self.address, 0, 0))
        except FileError:
            return None
        region = calls.call("H5Ropen_region", self.address, 0, 0) if kind == _REGION_2 else None
        attribute = _text("H5Rget_attr_name", self.address) if kind == _ATTRIBUTE else b""
        return Target(item, None if region is None else h5s.SpaceID(region), attribute)

    def lead_to(self, home: Any, name: bytes, target: Target) -> None:
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


class Target(NamedTuple):
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
