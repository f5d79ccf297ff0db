"""Values of types that have references, with the targets of these in words, so that two files can be compared."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
from h5py import h5s, h5t
from numpy.typing import NDArray

from tamis.hdf5.lib.references import Place, sequence_at, values_in_memory
from tamis.hdf5.tree.objects import Objects


def followed_values(
    owner: Any, datatype: h5t.TypeID, memory: h5s.SpaceID, file: h5s.SpaceID, own: Objects
) -> NDArray[Any]:
    """Read an attribute, or a part of a dataset, as objects: texts for references, tuples of members, lists.

    Raises
    ------
    FileError
        If the values cannot be read.
    """
    shape = memory.get_simple_extent_dims()
    values = np.empty(math.prod(shape), object)
    with values_in_memory(owner, datatype, memory, file) as content:
        for index in range(values.size):
            values[index] = _value(content.ctypes.data + index * datatype.get_size(), datatype, own)
    return values.reshape(shape)


def followed_value(content: bytes, datatype: h5t.TypeID, own: Objects) -> Any:
    """Return one value that is in memory."""
    room = ctypes.create_string_buffer(content, len(content))
    return _value(ctypes.addressof(room), datatype, own)


def _value(address: int, datatype: h5t.TypeID, own: Objects) -> Any:
    """Return a value in memory."""
    if isinstance(datatype, h5t.TypeReferenceID):
        return own.target_text(Place(address, datatype.get_size()))
    if isinstance(datatype, h5t.TypeCompoundID):
        return tuple(
            _value(address + datatype.get_member_offset(index), datatype.get_member_type(index), own)
            for index in range(datatype.get_nmembers())
        )
    if isinstance(datatype, h5t.TypeArrayID):
        return _values(address, math.prod(datatype.get_array_dims()), datatype.get_super(), own)
    if isinstance(datatype, h5t.TypeVlenID):
        count, elements = sequence_at(address)
        return _values(elements, count, datatype.get_super(), own)
    if isinstance(datatype, h5t.TypeStringID) and datatype.is_variable_str():
        return ctypes.c_char_p.from_address(address).value or b""
    return _plain(ctypes.string_at(address, datatype.get_size()), datatype)


def _values(address: int, count: int, datatype: h5t.TypeID, own: Objects) -> list[Any]:
    return [_value(address + index * datatype.get_size(), datatype, own) for index in range(count)]


def _plain(content: bytes, datatype: h5t.TypeID) -> Any:
    """Return a number or text; its bytes where NumPy does not have its type."""
    try:
        return np.frombuffer(content, datatype.dtype)[0]
    except (KeyError, TypeError, ValueError):
        return content
