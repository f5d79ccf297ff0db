"""Types of HDF5 in words, so that two files can be compared: equal words mean equal types, in any byte order."""

from __future__ import annotations

from typing import Any

import numpy as np
from h5py import h5t

_ENDS = {h5t.STR_NULLTERM: "null-terminated", h5t.STR_NULLPAD: "null-padded", h5t.STR_SPACEPAD: "space-padded"}


def type_words(found: Any) -> str:
    """Describe a type without its byte order and without the places of members in memory.

    Parameters
    ----------
    found
        An `h5py.h5t.TypeID`.
    """
    nbytes = int(found.get_size())
    match found.get_class():
        case h5t.COMPOUND:
            members = (
                f"{_text(found.get_member_name(i))}: {type_words(found.get_member_type(i))}"
                for i in range(found.get_nmembers())
            )
            return f"compound {{{', '.join(members)}}}"
        case h5t.ENUM:
            names = (
                f"{_text(found.get_member_name(i))}={found.get_member_value(i)}" for i in range(found.get_nmembers())
            )
            return f"enum of {type_words(found.get_super())} {{{', '.join(names)}}}"
        case h5t.ARRAY:
            return f"array {found.get_array_dims()} of {type_words(found.get_super())}"
        case h5t.VLEN:
            return f"sequences of {type_words(found.get_super())}"
        case h5t.STRING:
            charset = "UTF-8" if found.get_cset() == h5t.CSET_UTF8 else "ASCII"
            if found.is_variable_str():
                return f"string, {charset}"
            return f"string of {nbytes} bytes, {charset}, {_ENDS.get(found.get_strpad(), 'padded')}"
        case h5t.REFERENCE:
            return "region reference" if found.equal(h5t.STD_REF_DSETREG) else "reference"
        case h5t.OPAQUE:
            return f"opaque of {nbytes} bytes, {_text(found.get_tag())!r}"
        case h5t.INTEGER | h5t.FLOAT:
            return _number_words(found, nbytes)
        case h5t.BITFIELD:
            return f"bitfield of {nbytes} bytes"
        case other:
            return f"type of class {other}, {nbytes} bytes"


def _number_words(found: Any, nbytes: int) -> str:
    kind = "float"
    if found.get_class() == h5t.INTEGER:
        kind = "int" if found.get_sign() == h5t.SGN_2 else "uint"
    try:
        dtype = np.dtype(f"{kind[0]}{nbytes}")
        usual = h5t.py_create(dtype)
    except (TypeError, ValueError):
        return f"{kind} of {nbytes} bytes{_bits(found)}"
    alike = kind != "float" or _float_words(found) == _float_words(usual)
    same = alike and (found.get_precision(), found.get_offset()) == (usual.get_precision(), usual.get_offset())
    return dtype.name if same else f"{kind} of {nbytes} bytes{_bits(found)}"


def _bits(found: Any) -> str:
    fields = _float_words(found) if found.get_class() == h5t.FLOAT else ""
    return f", {found.get_precision()} bits from bit {found.get_offset()} on{fields}"


def _float_words(found: Any) -> str:
    return f", fields {found.get_fields()}, bias {found.get_ebias()}, normalization {found.get_norm()}"


def _text(name: bytes | str) -> str:
    return name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name
