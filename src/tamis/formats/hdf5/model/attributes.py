"""Types and shapes of attributes that readers of netCDF do not tell apart, and attributes that have them again."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import h5py
import numpy as np
from h5py import h5a, h5r, h5s, h5t

from tamis.formats.hdf5.lib.attributes import attribute_content
from tamis.formats.hdf5.tree.references import attribute_names
from tamis.meaning import FILL_ATTRIBUTES
from tamis.stores.data_model import AttributeForm

INTERNAL = frozenset(
    (
        *("CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST"),
        *("_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict", "_NCProperties"),
    )
)
"""Attributes that HDF5's dimension scales and netCDF-4 need for themselves."""


def attribute_values(owner: h5py.HLObject, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return attributes of an object, without internal ones and references to objects.

    Text is `str`, or `bytes` if it is no UTF-8 or marks missing characters; several texts are a list; one number is a
    scalar.
    """
    own = names_of(owner) if names is None else names
    values = ((name, attribute_value(owner, name)) for name in own if name not in INTERNAL)
    return {name: value for name, value in values if value is not None}


def names_of(owner: h5py.HLObject) -> list[str]:
    """Return the names of the attributes of an object, in the order in which they were created if that is known."""
    return [name.decode("utf-8", "surrogateescape") for name in attribute_names(owner.id)]


def attribute_value(owner: h5py.HLObject, name: str) -> Any:
    """Return the value of an attribute; None for references."""
    attribute = h5a.open(owner.id, _raw(name))
    kind = attribute.get_type()
    if isinstance(kind, (h5t.TypeIntegerID, h5t.TypeFloatID)) and attribute.shape is not None:
        with suppress(TypeError):  # of a float that NumPy does not have
            numbers = np.empty(attribute.shape, kind.dtype)
            if numbers.size:
                attribute.read(numbers)
            return numbers.reshape(-1)[0] if numbers.size == 1 else numbers
    if kind.detect_class(h5t.REFERENCE):
        return None
    if isinstance(kind, h5t.TypeStringID):
        return _text(owner, name, attribute, kind)
    value = attribute_content(owner, _raw(name))
    if isinstance(value, h5py.Empty):
        return np.array([], value.dtype)
    return value.reshape(-1)[0] if isinstance(value, np.ndarray) and value.size == 1 else value


def _raw(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _text(owner: h5py.HLObject, name: str, attribute: h5a.AttrID, kind: h5t.TypeStringID) -> Any:
    """Return an attribute of texts."""
    if attribute.shape is None:
        return ""
    if kind.is_variable_str():
        values = owner.attrs[_raw(name)]
    else:
        values = np.empty(attribute.shape, f"S{kind.get_size()}")
        if values.size:
            attribute.read(values, mtype=kind)
        if name in FILL_ATTRIBUTES and kind.get_size() == 1:
            return bytes(values.reshape(-1)[0]) if values.size == 1 else values  # marks single characters
    texts = [_decoded(value) for value in np.asarray(values, object).reshape(-1)]
    return texts[0] if len(texts) == 1 else texts


def _decoded(text: Any) -> str | bytes:
    raw = text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogateescape")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw


def references(owner: h5py.HLObject, name: str) -> list[Any]:
    """Return references of an attribute as lists of them, one for each axis."""
    return [
        [ref for ref in np.atleast_1d(axis) if isinstance(ref, h5r.Reference) and ref] for axis in owner.attrs[name]
    ]


_CHARSETS = {h5t.CSET_ASCII: "ascii", h5t.CSET_UTF8: "utf-8"}
_ENDS = {h5t.STR_NULLTERM: "nullterm", h5t.STR_NULLPAD: "nullpad", h5t.STR_SPACEPAD: "spacepad"}


def attribute_forms(owner: h5py.HLObject) -> dict[str, AttributeForm]:
    """Return the forms of the attributes that netCDF-4 would not write so, by name."""
    known = {}
    for name in names_of(owner):
        if name in INTERNAL:
            continue
        attribute = h5a.open(owner.id, name.encode("utf-8", "surrogateescape"))
        kind, shape = attribute.get_type(), attribute.shape
        if (text := _type_name(kind)) and not _is_usual(kind, shape):
            known[name] = AttributeForm(text, shape)
    return known


def write_attribute(owner: h5py.HLObject, name: str, value: Any, form: AttributeForm) -> bool:
    """Create an attribute of a form; return False, and write nothing, if its value does not fit."""
    count = 0 if form.shape is None else math.prod(form.shape)
    if (":" in form.type) != isinstance(value, (str, bytes, list, tuple)):
        return False
    if ":" in form.type:
        values: Any = np.array([value] if isinstance(value, (str, bytes)) else list(value), object)
        values = [text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text for text in values]
        kind = _text_type(form.type, max(map(len, values), default=1))
        values = values if count else []  # netCDF has no texts for "", in place of an attribute without a value
    else:
        kind, values = _number_type(form.type), np.asarray(value).reshape(-1)
    if kind is None or len(values) != count:
        return False
    raw = name.encode("utf-8", "surrogateescape")
    if h5a.exists(owner.id, raw):
        h5a.delete(owner.id, raw)
    if form.shape is None:
        space = h5s.create(h5s.NULL)
    else:
        space = h5s.create_simple(form.shape) if form.shape else h5s.create(h5s.SCALAR)
    attribute = h5a.create(owner.id, raw, kind, space)
    if count:
        is_variable = ":" in form.type and kind.is_variable_str()
        dtype = np.dtype(object) if is_variable else kind.dtype
        memory = h5t.py_create(h5py.string_dtype()) if is_variable else kind
        attribute.write(np.array(values, dtype).reshape(form.shape or ()), mtype=memory)
    return True


def _is_usual(kind: h5t.TypeID, shape: tuple[int, ...] | None) -> bool:
    """Return whether netCDF-4 writes such attributes: numbers along an axis, and one text of a fixed length."""
    if isinstance(kind, h5t.TypeStringID):
        fixed = not kind.is_variable_str() and kind.get_strpad() == h5t.STR_NULLTERM
        return shape == () and fixed
    little = kind.dtype.newbyteorder("<") == kind.dtype
    return little and kind.dtype.kind in "iuf" and kind.dtype.itemsize <= 8 and _is_row(shape) and _is_wide(kind.dtype)


def _is_row(shape: tuple[int, ...] | None) -> bool:
    return shape is not None and len(shape) == 1 and shape[0] > 0


def _is_wide(dtype: np.dtype[Any]) -> bool:
    return dtype.kind != "f" or dtype.itemsize >= 4


def _type_name(kind: h5t.TypeID) -> str:
    """Return the name of a type of numbers, booleans or texts; empty for others."""
    if isinstance(kind, h5t.TypeStringID):
        size = "str" if kind.is_variable_str() else f"S{kind.get_size()}"
        return f"{size}:{_CHARSETS.get(kind.get_cset(), '')}:{_ENDS.get(kind.get_strpad(), '')}"
    try:
        dtype: np.dtype[Any] = kind.dtype
    except (KeyError, TypeError, ValueError):
        return ""
    numeric = isinstance(kind, (h5t.TypeIntegerID, h5t.TypeFloatID)) and dtype.kind in "iuf"
    return dtype.str if numeric or dtype.kind == "b" else ""


def _text_type(name: str, nbytes: int) -> h5t.TypeID | None:
    """Return the type of texts of at least so many bytes; None if there is none of the name."""
    size, *words = name.split(":")
    charsets, ends = ({text: code for code, text in names.items()} for names in (_CHARSETS, _ENDS))
    if len(words) != 2 or words[0] not in charsets or words[1] not in ends:
        return None
    if size != "str" and not (size[:1] == "S" and size[1:].isdecimal() and len(size) < 10):
        return None
    kind = h5t.C_S1.copy()
    kind.set_size(h5t.VARIABLE if size == "str" else max(int(size[1:]), nbytes, 1))
    kind.set_cset(charsets[words[0]])
    kind.set_strpad(ends[words[1]])
    return kind


def _number_type(name: str) -> h5t.TypeID | None:
    """Return the type of numbers or booleans; None if there is none of the name."""
    try:
        dtype = np.dtype(name)
    except (TypeError, ValueError):
        return None
    return h5t.py_create(dtype, logical=True) if dtype.kind in "iufb" else None
