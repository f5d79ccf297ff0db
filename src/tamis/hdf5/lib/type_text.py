"""HDF5 types in words: equal texts mean equal types, in any byte order."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from h5py import h5t

_ENDS = {h5t.STR_NULLTERM: "null-terminated", h5t.STR_NULLPAD: "null-padded", h5t.STR_SPACEPAD: "space-padded"}


def type_words(datatype: Any) -> str:
    """Return a description of a type, without its byte order and the offsets of members."""
    nbytes = int(datatype.get_size())
    match datatype.get_class():
        case h5t.COMPOUND:
            members = (
                f"{_text(datatype.get_member_name(i))}: {type_words(datatype.get_member_type(i))}"
                for i in range(datatype.get_nmembers())
            )
            return f"compound {{{', '.join(members)}}}"
        case h5t.ENUM:
            names = (
                f"{_text(datatype.get_member_name(i))}={datatype.get_member_value(i)}"
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
            return f"opaque of {nbytes} bytes, {_text(datatype.get_tag())!r}"
        case h5t.INTEGER | h5t.FLOAT:
            return _number_text(datatype.encode())
        case h5t.BITFIELD:
            return f"bitfield of {nbytes} bytes"
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


def _text(name: bytes | str) -> str:
    return name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name
