"""Types and shapes of attributes that netCDF readers do not distinguish, and how to restore them."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import h5py
import numpy as np
from h5py import h5a, h5r, h5s, h5t
from numpy.typing import NDArray

from tamis.formats.hdf5.lib.attributes import attribute_content, created
from tamis.formats.hdf5.lib.datatypes import memory_type
from tamis.formats.hdf5.lib.quick_facts import Attributes, Content, quick_attributes
from tamis.formats.hdf5.lib.references import attribute_names, write_values
from tamis.meaning import FILL_ATTRIBUTES
from tamis.stores.data_model import JSON_FORMS, JSON_MARK, LATIN_1, NUMBERS, AttributeForm, decoded

INTERNAL = frozenset(("CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST")) | frozenset(
    ("_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict", "_NCProperties")
)
"""Attributes that HDF5's dimension scales and netCDF-4 need for themselves."""

SCALE = "DIMENSION_SCALE"
"""The class of dimension scales."""

OF_SCALES = frozenset(("CLASS", "NAME"))
"""Those that mean something else in objects that are no dimension scales."""


def is_scale_class(value: Any) -> bool:
    """Return whether a value of the attribute ``CLASS``, of any type, is that of dimension scales."""
    return isinstance(value, str) and value == SCALE


def listed_attributes(owner: h5py.HLObject) -> Attributes:
    """Return the attributes of an open object, in creation order if it is known, and read as far as possible."""
    if (known := quick_attributes(owner.id)) is not None:
        return known
    names = tuple(attribute_names(owner.id))
    user_count = h5a.open(owner.id, _USERS).shape[0] if _USERS in names else 0
    return Attributes(names, (None,) * len(names), None, user_count)


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


_USERS = b"REFERENCE_LIST"

_READ_INTERNAL = ("CLASS", "NAME", "_Netcdf4Dimid", "_Netcdf4Coordinates")
"""Internal attributes of dimension scales; `quick_facts.Attributes` has the others."""


def read_attributes(
    owner: Callable[[], h5py.HLObject], known: Attributes
) -> tuple[dict[str, Any], dict[str, AttributeForm]]:
    """Return the attributes of an object without references, and the forms that netCDF-4 would write differently.

    Text is `str`, or `bytes` if it is not UTF-8 or marks missing characters; several texts are a list; one number is a
    scalar. The object is only opened if `known`, its attributes read at once, lacks some.
    """
    values: dict[str, Any] = {}
    forms: dict[str, AttributeForm] = {}
    for raw, content in zip(known.names, known.contents, strict=True):
        name = raw.decode("utf-8", "surrogateescape")
        if content is not None and (decoded := _decoded_content(name, content)) is not None:
            value, form = decoded
        elif name not in INTERNAL:
            value = attribute_value(owner(), name)
            form = _form_of(owner(), name, value)
        elif name in _READ_INTERNAL:
            value = form = None
            with suppress(Exception):  # HDF5 and h5py raise many kinds
                value = attribute_value(owner(), name)
                form = _form_of(owner(), name, value) if name in OF_SCALES else None
        else:
            continue
        if value is not None:
            values[name] = value
        if form is not None and name not in INTERNAL - OF_SCALES:
            forms[name] = form
    if (marked := _marked(values)) is not None:
        del values[JSON_MARK]
        forms = {name: form for name, form in forms.items() if name != JSON_MARK} | marked
    if is_scale_class(values.get("CLASS")):
        forms = {name: form for name, form in forms.items() if name not in OF_SCALES}
    return values, forms


def _marked(values: Mapping[str, Any]) -> dict[str, AttributeForm] | None:
    """Return the forms of attributes that are marked as values of JSON; None if there is no such mark."""
    try:
        marks = json.loads(values[JSON_MARK])
    except (KeyError, TypeError, ValueError):
        return None
    if not isinstance(marks, dict):
        return None
    known = {name: kind for name, kind in marks.items() if name in values and kind in JSON_FORMS}
    return {name: AttributeForm(kind, ()) for name, kind in known.items()}


def _decoded_content(name: str, content: Content) -> tuple[Any, AttributeForm | None] | None:
    """Return the value and the unusual form of an attribute that was read; None for types that h5py converts."""
    data = content[3]
    if (known := _known_type(content[1], content[2])) is None:
        return None
    dtype, shape, kind, end = known
    if dtype is None:
        value: Any = _decoded_all([text[1:-1] for text in _VARYING.findall(data)])
    else:
        values = np.frombuffer(data, dtype).reshape(shape)
        if dtype.kind == "S":
            value = _fixed_text(name, values, end)
        else:
            value = values.reshape(-1)[0] if values.size == 1 else values.copy()
    return value, _unusual_form(kind, shape, value)


@lru_cache(maxsize=1024)  # many attributes have the same
def _known_type(datatype: bytes, dataspace: bytes) -> tuple[Any, tuple[int, ...], _Kind, int] | None:
    """Return NumPy's type, None for texts of varying length, extents, what HDF5's type is, and the end of texts.

    None if h5py converts it.
    """
    kind = h5t.decode(datatype)
    dtype = None
    extents = memoryview(dataspace)[1:].cast("Q").tolist()  # and maximum extents, after the class of the dataspace
    shape = tuple(extents[: len(extents) // 2])
    end = 0
    if isinstance(kind, h5t.TypeStringID):
        end = kind.get_strpad()
        if not kind.is_variable_str():
            dtype = np.dtype(f"S{kind.get_size()}")
    else:
        with suppress(TypeError):  # of numbers that NumPy does not have
            if type(kind) in (h5t.TypeIntegerID, h5t.TypeFloatID) and h5t.py_create(kind.dtype) == kind:
                dtype = kind.dtype
        if dtype is None:
            return None
    return dtype, shape, _Kind.of(kind), end


_VARYING = re.compile(rb"\x00|\x01[^\x00]*\x00")
"""A variable-length string, or none, as native code returns it."""


def _raw(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _text(owner: h5py.HLObject, name: str, attribute: h5a.AttrID, kind: h5t.TypeStringID) -> Any:
    """Return an attribute of texts."""
    if attribute.shape is None:
        return [] if kind.is_variable_str() else ""  # as netCDF-C reads them
    if kind.is_variable_str():
        return _decoded_all(np.asarray(owner.attrs[_raw(name)], object).reshape(-1))
    values = np.empty(attribute.shape, f"S{kind.get_size()}")
    if values.size:
        attribute.read(values, mtype=kind)
    return _fixed_text(name, values, kind.get_strpad())


def _fixed_text(name: str, values: NDArray[np.bytes_], end: int) -> Any:
    """Return an attribute of fixed-length strings, which end at the first zero if they are null-terminated."""
    if name in FILL_ATTRIBUTES and values.itemsize == 1:
        return bytes(values.reshape(-1)[0]) if values.size == 1 else values  # marks single characters
    texts = values.reshape(-1).tolist()
    return _decoded_all([text.partition(b"\0")[0] for text in texts] if end == h5t.STR_NULLTERM else texts)


def _decoded_all(values: Iterable[Any]) -> Any:
    texts = [_decoded(value) for value in values]
    return texts[0] if len(texts) == 1 else texts


def _decoded(text: Any) -> str | bytes:
    raw = text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogateescape")
    try:
        return decoded(raw)
    except UnicodeDecodeError:
        return raw


def references(owner: h5py.HLObject, name: str) -> list[Any]:
    """Return references of an attribute as lists of them, one for each axis."""
    return [
        [ref for ref in np.atleast_1d(axis) if isinstance(ref, h5r.Reference) and ref] for axis in owner.attrs[name]
    ]


_LIST = "[]"
"""The end of the type of lists of varying length."""

_CHARSETS = {h5t.CSET_ASCII: "ascii", h5t.CSET_UTF8: "utf-8"}
_ENDS = {h5t.STR_NULLTERM: "nullterm", h5t.STR_NULLPAD: "nullpad", h5t.STR_SPACEPAD: "spacepad"}


def _form_of(owner: h5py.HLObject, name: str, value: Any) -> AttributeForm | None:
    """Return the form of an attribute with a value, if it is unusual."""
    attribute = h5a.open(owner.id, _raw(name))
    return _unusual_form(_Kind.of(attribute.get_type()), attribute.shape, value)


class _Kind(NamedTuple):
    """What matters of the type of an attribute, without HDF5's identifier, so that it can be kept."""

    name: str  # Empty if the type is unknown
    nbytes: int
    is_text: bool = False
    is_fixed_text: bool = False  # Text of a fixed length that ends with a zero
    is_utf8: bool = False
    is_number: bool = False  # A number that netCDF-4 has, little-endian

    @classmethod
    def of(cls, kind: h5t.TypeID) -> _Kind:
        """Describe a type of HDF5."""
        if isinstance(kind, h5t.TypeStringID):
            is_fixed = not kind.is_variable_str() and kind.get_strpad() == h5t.STR_NULLTERM
            is_utf8 = kind.get_cset() == h5t.CSET_UTF8
            return cls(_type_name(kind), kind.get_size(), is_text=True, is_fixed_text=is_fixed, is_utf8=is_utf8)
        name = _type_name(kind)
        return cls(name, kind.get_size(), is_number=name.lstrip("<|") in NUMBERS)


def _unusual_form(kind: _Kind, shape: tuple[int, ...] | None, value: Any) -> AttributeForm | None:
    """Return a form that netCDF-4 would not write for a value; None if it would or if the type is unknown."""
    return AttributeForm(kind.name, shape) if kind.name and not _is_usual(kind, shape, value) else None


def write_attribute(owner: h5py.HLObject, name: str, value: Any, form: AttributeForm) -> bool:
    """Create an attribute of a form; return False, and write nothing, if its value does not fit."""
    count = 0 if form.shape is None else math.prod(form.shape)
    space = _space(form.shape)
    if form.type.endswith(_LIST) or form.type.startswith("{"):
        return _write_parts(owner, name, value, form, space)
    if (":" in form.type) != isinstance(value, (str, bytes, list, tuple)):
        return False
    if ":" in form.type:
        values: Any = np.array([value] if isinstance(value, (str, bytes)) else list(value), object)
        try:
            values = [text.encode(*_charset(form.type)) if isinstance(text, str) else text for text in values]
        except UnicodeEncodeError:
            return False
        kind = _text_type(form.type, max(map(len, values), default=1))
        values = values if count else []  # netCDF has no texts for "", in place of an attribute without a value
    else:
        kind = _number_type(form.type)
        values = np.asarray(value).reshape(-1)
    if kind is None or len(values) != count:
        return False
    attribute = created(owner, name, kind, space)
    if count:
        is_variable = ":" in form.type and kind.is_variable_str()
        dtype = np.dtype(object) if is_variable else kind.dtype
        memory = h5t.py_create(h5py.string_dtype()) if is_variable else kind
        attribute.write(np.array(values, dtype).reshape(form.shape or ()), mtype=memory)
    return True


def _space(shape: tuple[int, ...] | None) -> h5s.SpaceID:
    """Return the dataspace of an attribute; that of one without a value for None."""
    if shape is None:
        return h5s.create(h5s.NULL)
    return h5s.create_simple(shape) if shape else h5s.create(h5s.SCALAR)


def _write_parts(owner: h5py.HLObject, name: str, value: Any, form: AttributeForm, space: h5s.SpaceID) -> bool:
    """Create an attribute of lists, records and the like, whose values are JSON's in other formats."""
    try:
        kind = _type_of_parts(form.type)
        dtype = kind.dtype
        items = json.loads(value) if isinstance(value, str) and value[:1] in ("[", "{") else value
        items = items.tolist() if isinstance(items, (np.ndarray, np.generic)) else items
        count = space.get_simple_extent_npoints()
        if count > 1:
            for _ in (form.shape or ())[1:]:
                items = [row for rows in items for row in rows]
        else:
            items = [items] * count
        base, inner = dtype.subdtype or (dtype, ())
        values = np.empty((count, *inner), base)
        if len(items) != count:
            return False
        for index, item in enumerate(items):
            values[index] = _from_json(item, dtype, _charset(form.type))
        values = values.reshape((*(form.shape or ()), *inner))
        # converted only where needed, because that puts a zero in place of the last character of texts
        is_whole = not dtype.hasobject and dtype.itemsize == kind.get_size()
        memory = kind if is_whole else memory_type(kind, dtype)
        part = h5py.check_vlen_dtype(dtype)
        lists = isinstance(part, np.dtype) and not part.hasobject and part.itemsize == kind.get_super().get_size()
    except (AttributeError, KeyError, OverflowError, RuntimeError, TypeError, ValueError):
        return False  # metadata of other programs
    attribute = created(owner, name, kind, space)
    if lists:
        pairs = np.array([(len(item), item.ctypes.data) for item in values.flat], "P,P")
        write_values(attribute, kind, space, space, pairs)
    elif count:
        attribute.write(values, mtype=memory)
    return True


def _charset(kind: str) -> tuple[str, str]:
    """Return the character set of the JSON of texts of a type, and what becomes of others."""
    return (LATIN_1, "strict") if f":{LATIN_1}" in kind else ("utf-8", "surrogateescape")


def _type_of_parts(described: Any) -> Any:
    """Return the type with a name or description: `_type_name` and `_described` the other way round."""
    if isinstance(described, str) and not described.startswith("{"):
        base = described.removesuffix(_LIST)
        kind = _text_type(base, 1) if ":" in base else _number_type(base)
        return kind if base == described else h5t.vlen_create(kind)
    match json.loads(described) if isinstance(described, str) else described:
        case {"nbytes": int(nbytes), "members": members} if 0 < nbytes <= _MOST_NBYTES:
            kind = h5t.create(h5t.COMPOUND, nbytes)
            for name, offset, member in members:
                kind.insert(name.encode(), offset, _type_of_parts(member))
            return kind
        case {"of": base, "shape": [*shape]}:
            return h5t.array_create(_type_of_parts(base), tuple(shape))
        case {"of": base}:
            return h5t.vlen_create(_type_of_parts(base))
        case {"nbytes": int(nbytes), "tag": tag} if 0 < nbytes <= _MOST_NBYTES:
            kind = h5t.create(h5t.OPAQUE, nbytes)
            kind.set_tag(tag.encode())
            return kind
        case {"bits": name} if name in _BITS:
            return _BITS[name]
    raise ValueError(described)


def _from_json(item: Any, dtype: np.dtype[Any], charset: tuple[str, str]) -> Any:
    """Return a value of a type from JSON's."""
    if dtype.names:
        return tuple(_from_json(item[name], dtype[name], charset) for name in dtype.names)
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        parts = np.asarray(item, object).reshape(-1) if base.kind not in "c" else [*item]
        return np.array([_from_json(part, base, charset) for part in parts], base).reshape(shape)
    base = h5py.check_vlen_dtype(dtype)
    if isinstance(base, np.dtype):
        parts = item if isinstance(item, list) else [item]
        items = np.empty(len(parts), base)
        for index, part in enumerate(parts):
            items[index] = _from_json(part, base, charset)
        return items
    if dtype.kind in "VmM":
        return np.frombuffer(base64.standard_b64decode(item), dtype)[0]
    if dtype.kind == "c":
        return complex(*item)
    return item.encode(*charset) if isinstance(item, str) else item


def _is_usual(kind: _Kind, shape: tuple[int, ...] | None, value: Any) -> bool:
    """Return whether netCDF-4 writes such attributes: numbers along an axis, and one text of its own length.

    Text that is not ASCII is UTF-8, as `set_text` and h5netcdf say, or nothing, as netCDF-C says.
    """
    if kind.is_text:
        if shape != () or not kind.is_fixed_text:
            return False
        if not isinstance(value, (str, bytes)):
            return True
        raw = _raw(value) if isinstance(value, str) else value
        return kind.nbytes == max(len(raw), 1) and not (raw.isascii() and kind.is_utf8)
    return kind.is_number and shape is not None and len(shape) == 1 and shape[0] > 0


def _type_name(kind: h5t.TypeID) -> str:
    """Return the name of a type: of NumPy, texts or lists of them, or as JSON; empty if NumPy has no such values."""
    if kind.detect_class(h5t.REFERENCE):
        return "references"
    if isinstance(kind, h5t.TypeVlenID):
        inner = _type_name(kind.get_super())
        is_plain = inner and not inner.endswith(_LIST) and not inner.startswith(("str", "{"))
        return inner + _LIST if is_plain else _description(kind)
    if isinstance(kind, h5t.TypeStringID):
        size = "str" if kind.is_variable_str() else f"S{kind.get_size()}"
        return f"{size}:{_CHARSETS.get(kind.get_cset(), '')}:{_ENDS.get(kind.get_strpad(), '')}"
    try:
        dtype: np.dtype[Any] = kind.dtype
    except (KeyError, TypeError, ValueError):
        return ""
    if isinstance(kind, h5t.TypeEnumID) and dtype.kind != "b":
        members = ((kind.get_member_name(i), kind.get_member_value(i)) for i in range(kind.get_nmembers()))
        return ",".join((dtype.str, *(f"{quote(member, safe='')}={number}" for member, number in members)))
    numeric = isinstance(kind, (h5t.TypeIntegerID, h5t.TypeFloatID)) and dtype.kind in "iuf"
    if numeric or dtype.kind in "bc":
        return dtype.str
    return _description(kind) if isinstance(kind, _WITH_DESCRIPTION) else ""


_MOST_NBYTES = 1 << 16
"""Limit of the size of a value, which an attribute of HDF5 can have."""

_WITH_DESCRIPTION = (h5t.TypeCompoundID, h5t.TypeArrayID, h5t.TypeOpaqueID, h5t.TypeBitfieldID)

_BITS = {
    kind.dtype.str: kind
    for kind in (getattr(h5t, f"STD_B{count}{order}") for order in ("BE", "LE") for count in (8, 16, 32, 64))
}


def _description(kind: h5t.TypeID) -> str:
    """Return the name of a type with parts: its description as JSON; empty if NumPy has no such values."""
    try:
        _ = kind.dtype
        return json.dumps(_described(kind))
    except (KeyError, TypeError, ValueError):
        return ""


def _described(kind: h5t.TypeID) -> Any:
    """Return the description of a type; ValueError if there is none."""
    if isinstance(kind, h5t.TypeCompoundID) and kind.dtype.kind != "c":
        numbers = range(kind.get_nmembers())
        parts = [(kind.get_member_name(i), kind.get_member_offset(i), kind.get_member_type(i)) for i in numbers]
        members = [[name.decode(), offset, _described(member)] for name, offset, member in parts]
        return {"nbytes": kind.get_size(), "members": members}
    if isinstance(kind, h5t.TypeArrayID):
        return {"of": _described(kind.get_super()), "shape": list(kind.get_array_dims())}
    if isinstance(kind, h5t.TypeVlenID):
        return {"of": _described(kind.get_super())}
    if isinstance(kind, h5t.TypeOpaqueID):
        return {"nbytes": kind.get_size(), "tag": kind.get_tag().decode()}
    if isinstance(kind, h5t.TypeBitfieldID):
        return {"bits": kind.dtype.str}
    if not (name := _type_name(kind)):
        raise ValueError(kind)
    return name


def _text_type(name: str, nbytes: int) -> h5t.TypeID | None:
    """Return the type of texts of at least this many bytes; None if there is no such type."""
    size, *words = name.split(":")
    charsets, ends = ({text: code for code, text in names.items()} for names in (_CHARSETS, _ENDS))
    if words[2:] not in ([], [LATIN_1]) or len(words) < 2 or words[0] not in charsets or words[1] not in ends:
        return None
    if size != "str" and not (size[:1] == "S" and size[1:].isdecimal() and len(size) < 10):
        return None
    kind = h5t.C_S1.copy()
    kind.set_size(h5t.VARIABLE if size == "str" else max(int(size[1:]), nbytes, 1))
    kind.set_cset(charsets[words[0]])
    kind.set_strpad(ends[words[1]])
    return kind


def _number_type(name: str) -> h5t.TypeID | None:
    """Return the type of numbers, booleans or enumerations; None if there is no such type."""
    name, *members = name.split(",")
    try:
        dtype = np.dtype(name)
        kind = h5t.py_create(dtype, logical=True) if dtype.kind in "iufbc" else None
        if kind is not None and members:
            kind = h5t.enum_create(kind)
            for text, _, number in (member.partition("=") for member in members):
                kind.enum_insert(unquote(text).encode(), int(number))
    except (AttributeError, OverflowError, TypeError, ValueError):
        return None
    return kind
