"""Types of HDF5 as types of NumPy: which values are numbers, and the content of their chunks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Self

import h5py
import numpy as np
from h5py import h5t
from numpy.typing import NDArray

_ORDERS = {h5t.ORDER_LE: "little", h5t.ORDER_BE: "big"}


def numpy_type(dataset: h5py.Dataset) -> np.dtype[Any] | None:
    """Return the type of the values in h5py; None if NumPy has none, or HDF5 cannot convert them to it."""
    try:
        dtype: np.dtype[Any] = dataset.dtype
    except (KeyError, TypeError, ValueError):
        return None
    return None if dtype.kind == "c" and dtype.itemsize > 16 and not dtype.isnative else dtype


def memory_type(file_type: h5t.TypeID, dtype: np.dtype[Any]) -> h5t.TypeID:
    """Return the type in which HDF5 reads values into an array of `dtype`, which is h5py's for the type in the file.

    HDF5 cannot convert opaque values to untagged ones or, before 2.0, bit fields to integers, as h5py requests: these
    stay as in the file.
    """
    if not file_type.detect_class(h5t.OPAQUE) and not file_type.detect_class(h5t.BITFIELD):
        return h5t.py_create(dtype)
    if isinstance(file_type, h5t.TypeArrayID) and dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return h5t.array_create(memory_type(file_type.get_super(), base), shape)
    if isinstance(file_type, h5t.TypeCompoundID) and dtype.fields is not None:
        compound = h5t.create(h5t.COMPOUND, dtype.itemsize)
        for name, (member, offset, *_) in dtype.fields.items():
            raw_name = name.encode("utf-8")
            member_type = file_type.get_member_type(file_type.get_member_index(raw_name))
            compound.insert(raw_name, offset, memory_type(member_type, member))
        return compound
    return h5t.py_create(dtype) if dtype.kind == "O" else file_type


def number_type(datatype: h5t.TypeID, dtype: np.dtype[Any] | None) -> np.dtype[Any] | None:
    """Return the type of values that are floats or integers as NumPy stores them, otherwise None."""
    if dtype is None or not isinstance(datatype, (h5t.TypeFloatID, h5t.TypeIntegerID)):
        return None
    try:
        return dtype if h5t.py_create(dtype).equal(datatype) else None
    except (TypeError, ValueError):
        return None


def stored_type(datatype: h5t.TypeID, numbers: np.dtype[Any] | None) -> np.dtype[Any] | None:
    """Return the type in which chunks go from one dataset to another: numbers, or else bytes of a fixed size.

    None if values are elsewhere in the file, or refer to it.
    """
    if numbers is not None:
        return numbers
    if datatype.detect_class(h5t.REFERENCE) or has_varying(datatype):
        return None
    return np.dtype((np.void, datatype.get_size()))


def varies(datatype: h5t.TypeID) -> bool:
    """Return whether values have varying lengths, and are therefore stored outside the chunks."""
    return bool(datatype.detect_class(h5t.VLEN)) or is_variable_text(datatype)


def is_variable_text(datatype: h5t.TypeID) -> bool:
    """Return whether values are texts of varying length."""
    return datatype.get_class() == h5t.STRING and bool(datatype.is_variable_str())


def has_varying(datatype: h5t.TypeID) -> bool:
    """Return whether a type has texts or sequences of varying length, whose bytes are in a heap, anywhere."""
    pending = [datatype]  # no recursion: the file says how deep types are in each other
    while pending:
        inner = pending.pop()
        if isinstance(inner, h5t.TypeCompoundID):
            pending += [inner.get_member_type(index) for index in range(inner.get_nmembers())]
        elif isinstance(inner, h5t.TypeArrayID):
            pending.append(inner.get_super())
        elif inner.get_class() == h5t.VLEN or is_variable_text(inner):
            return True
    return False


def chunk_value_nbytes(datatype: h5t.TypeID, address_nbytes: int) -> int:
    """Return the bytes that a value takes in a chunk; HDF5 reports those in memory.

    If its length varies, these are its length, the address of a heap and an index there.
    """
    if datatype.get_class() == h5t.VLEN or is_variable_text(datatype):
        return 4 + address_nbytes + 4
    if isinstance(datatype, h5t.TypeArrayID):
        return int(math.prod(datatype.get_array_dims())) * chunk_value_nbytes(datatype.get_super(), address_nbytes)
    nbytes = int(datatype.get_size())
    if isinstance(datatype, h5t.TypeCompoundID):
        members = [datatype.get_member_type(index) for index in range(datatype.get_nmembers())]
        nbytes += sum(chunk_value_nbytes(member, address_nbytes) - int(member.get_size()) for member in members)
    return nbytes


def byteorder(datatype: h5t.TypeID) -> str:
    """Return the byte order of values, ``little`` or ``big``; empty if they have none or several."""
    if isinstance(datatype, (h5t.TypeEnumID, h5t.TypeArrayID)):
        datatype = datatype.get_super()
    if not isinstance(datatype, (h5t.TypeIntegerID, h5t.TypeFloatID, h5t.TypeBitfieldID)):
        return ""
    return _ORDERS.get(datatype.get_order(), "") if datatype.get_size() > 1 else ""


def dtype_text(dtype: np.dtype[Any] | None) -> str:
    """Name a type for people, with the byte order if it is not the machine's."""
    if dtype is None:
        return "a type that numpy does not have"
    if h5py.check_string_dtype(dtype) is not None:
        return "string"
    if dtype.names:
        return "compound"
    if dtype.kind == "O":
        return "variable-length" if h5py.check_vlen_dtype(dtype) else "reference"
    return str(dtype)


_ENDS = {h5t.STR_NULLTERM: "null-terminated", h5t.STR_NULLPAD: "null-padded", h5t.STR_SPACEPAD: "space-padded"}


def type_words(datatype: Any) -> str:
    """Return a description of a type, without its byte order and the offsets of members."""
    nbytes = int(datatype.get_size())
    match datatype.get_class():
        case h5t.COMPOUND:
            members = (
                f"{text_of(datatype.get_member_name(i))}: {type_words(datatype.get_member_type(i))}"
                for i in range(datatype.get_nmembers())
            )
            return f"compound {{{', '.join(members)}}}"
        case h5t.ENUM:
            names = (
                f"{text_of(datatype.get_member_name(i))}={datatype.get_member_value(i)}"
                for i in range(datatype.get_nmembers())
            )
            return f"enum of {type_words(datatype.get_super())} {{{', '.join(names)}}}"
        case h5t.ARRAY:
            return f"array {datatype.get_array_dims()} of {type_words(datatype.get_super())}"
        case h5t.VLEN:
            return f"sequences of {type_words(datatype.get_super())}"
        case h5t.STRING:
            charset = "UTF-8" if datatype.get_cset() == h5t.CSET_UTF8 else "ASCII"
            if datatype.is_variable_str():
                return f"string, {charset}"
            return f"string of {nbytes} bytes, {charset}, {_ENDS.get(datatype.get_strpad(), 'padded')}"
        case h5t.REFERENCE:
            return "region reference" if datatype.equal(h5t.STD_REF_DSETREG) else "reference"
        case h5t.OPAQUE:
            return f"opaque of {nbytes} bytes, {text_of(datatype.get_tag())!r}"
        case h5t.INTEGER | h5t.FLOAT:
            return _number_text(datatype.encode())
        case h5t.BITFIELD:
            return f"bitfield of {nbytes} bytes"
        case 11:  # complex, which h5py names only if its HDF5 has it
            return f"complex of {type_words(datatype.get_super())}"
        case other:
            return f"type of class {other}, {nbytes} bytes"


@lru_cache(maxsize=1024)  # few types occur in a file, and each takes many calls of HDF5
def _number_text(encoded: bytes) -> str:
    datatype = h5t.decode(encoded)
    nbytes = int(datatype.get_size())
    kind = "float"
    if datatype.get_class() == h5t.INTEGER:
        kind = "int" if datatype.get_sign() == h5t.SGN_2 else "uint"
    try:
        dtype = np.dtype(f"{kind[0]}{nbytes}")
        usual = h5t.py_create(dtype)
    except (TypeError, ValueError):
        return f"{kind} of {nbytes} bytes{_bits(datatype)}"
    alike = kind != "float" or _float_text(datatype) == _float_text(usual)
    same = alike and (datatype.get_precision(), datatype.get_offset()) == (usual.get_precision(), usual.get_offset())
    return dtype.name if same else f"{kind} of {nbytes} bytes{_bits(datatype)}"


def _bits(datatype: Any) -> str:
    fields = _float_text(datatype) if datatype.get_class() == h5t.FLOAT else ""
    return f", {datatype.get_precision()} bits from bit {datatype.get_offset()} on{fields}"


def _float_text(datatype: Any) -> str:
    return f", fields {datatype.get_fields()}, bias {datatype.get_ebias()}, normalization {datatype.get_norm()}"


def text_of(name: bytes | str) -> str:
    """Return a name or path for messages."""
    return name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name


@dataclass(frozen=True, slots=True)
class Conversion:
    """A conversion of stored bytes to the values that h5py returns."""

    stored: np.dtype[Any]  # Type in which chunks are decoded: numbers, or bytes
    dtype: np.dtype[Any]  # Type of the values, as in h5py
    # Types between which HDF5 converts, encoded; empty if the bytes are the values
    file_type: bytes = b""
    memory_type: bytes = b""

    @classmethod
    def of(
        cls, stored: np.dtype[Any] | None, dtype: np.dtype[Any] | None, file_type: h5t.TypeID, is_number: bool
    ) -> Self | None:
        """Return the conversion of a dataset; None if its values are elsewhere in the file, or are references."""
        if stored is None or dtype is None:
            return None
        if is_number or _is_padded_with_zeros(file_type):
            return cls(stored, dtype)
        memory = memory_type(file_type, dtype)
        if memory.equal(file_type):
            return cls(stored, dtype)
        return cls(stored, dtype, file_type.encode(), memory.encode())

    @property
    def is_needed(self) -> bool:
        """True if the bytes of a value change."""
        return bool(self.memory_type)

    @property
    def is_plain(self) -> bool:
        """True if chunks decode to the values themselves."""
        return self.stored == self.dtype

    def __call__(self, raw: NDArray[Any]) -> NDArray[Any]:
        """Convert an array of the stored type; axes of the type itself come last."""
        if self.is_plain:
            return raw
        room = np.ascontiguousarray(raw).reshape(-1).view(np.uint8) if raw.size else np.empty(0, np.uint8)
        if self.memory_type and raw.size:
            # HDF5 converts in place, so the buffer must fit the larger type.
            wider = np.zeros(raw.size * max(self.stored.itemsize, self.dtype.itemsize), np.uint8)
            wider[: room.size] = room
            h5t.convert(h5t.decode(self.file_type), h5t.decode(self.memory_type), raw.size, wider)
            room = wider
        return np.ndarray(raw.shape, self.dtype, room[: raw.size * self.dtype.itemsize])


def _is_padded_with_zeros(datatype: h5t.TypeID) -> bool:
    """Return whether values are fixed-length strings as in NumPy: single characters, or padded with zeros."""
    if not isinstance(datatype, h5t.TypeStringID) or datatype.is_variable_str():
        return False
    padding = datatype.get_strpad()
    return bool(padding == h5t.STR_NULLPAD or (padding == h5t.STR_NULLTERM and datatype.get_size() == 1))


TEXTS = (str, bytes)
"""Types of the characters of texts, where h5py has types of the items of sequences."""


def in_native_order(values: Any, dtype: np.dtype[Any]) -> Any:
    """Return what h5py reads as a type, with the numbers of lists of varying length swapped where h5py forgets it."""
    if not dtype.hasobject or not isinstance(values, (np.ndarray, np.void)):
        return values
    for name in dtype.names or ():
        if name in (values.dtype.names or ()):
            in_native_order(values[name], dtype[name])
    base = h5py.check_vlen_dtype(dtype)
    if isinstance(base, np.dtype):
        for item in values.flat if values.dtype.kind == "O" else (values,):
            if base.hasobject:
                in_native_order(item, base)
            elif isinstance(item, np.ndarray) and item.dtype.isnative and not base.isnative and _forgets_byte_order():
                item.byteswap(inplace=True)
    return values


@cache
def _forgets_byte_order() -> bool:
    """Return whether h5py reads the numbers of big-endian lists as if they were little-endian (observed in 3.16)."""
    swapped, lists = np.dtype(np.int16).newbyteorder("S"), np.empty(1, object)
    lists[0] = np.array([1], swapped)
    with h5py.File("lists", "w", driver="core", backing_store=False) as file:
        file.attrs.create("lists", lists, dtype=h5py.vlen_dtype(swapped))
        return bool(file.attrs["lists"][0] != 1)
