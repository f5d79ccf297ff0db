"""Read attributes of the conventions, whatever library wrote them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import h5py
import numpy as np
from h5py import h5a, h5d, h5g, h5p, h5s, h5t
from numpy.typing import NDArray

from tamis import meaning
from tamis.caller import warn_caller
from tamis.formats.hdf5.lib import datatypes
from tamis.formats.hdf5.lib.references import has_references
from tamis.rounding import CONTAINER, Rounding, container_attributes, container_names

_BARE_DIMENSION = "This is a netCDF dimension but not a netCDF variable"

_MOST_NBYTES = 1 << 20
"""Size limit: larger attributes are not those of the conventions, and are not read."""


def text_attribute(dataset: h5py.Dataset, name: str) -> str | None:
    """Return an attribute as text; None if it does not exist or is not text."""
    if (value := _value(dataset, name)) is None:
        return None
    attributes = {name: value}
    return meaning.text(attributes, name) or ("" if isinstance(value, (str, bytes)) else None)


def all_attributes(owner: h5py.HLObject) -> dict[str, Any]:
    """Return all attributes of an object, as h5py reads them or else like `attribute_content`.

    Those of types that h5py does not have, such as references of HDF5 1.12, are left out with a warning.
    """
    known = {}
    for name in owner.attrs:
        try:
            known[name] = attribute_content(owner, name)
        except TypeError as error:
            warn_caller(f"{owner.name}: attribute {name!r} is left out: {error}")
    return known


def attribute_content(owner: h5py.HLObject, name: str | bytes) -> Any:
    """Return an attribute as h5py reads it, lists in native byte order; bitfields and opaque ones as in the file."""
    try:
        value = owner.attrs[name]
        is_array = isinstance(value, (np.ndarray, np.void))
        return datatypes.in_native_order(value, owner.attrs.get_id(name).dtype) if is_array else value
    except (OSError, TypeError):
        attribute = h5a.open(owner.id, name if isinstance(name, bytes) else name.encode("utf-8", "surrogateescape"))
        if attribute.shape is None or has_references(kind := attribute.get_type()) or datatypes.varies(kind):
            raise
        return stored_values(attribute)[()]


def stored_values(attribute: h5a.AttrID) -> NDArray[Any]:
    """Return the elements of an attribute; those that h5py cannot convert stay as in the file."""
    file_type = attribute.get_type()
    try:
        dtype = file_type.dtype
    except (KeyError, TypeError, ValueError):
        values = np.zeros(attribute.shape, np.dtype((np.void, file_type.get_size())))
        attribute.read(values, mtype=file_type)
        return values
    base, inner = dtype.subdtype or (dtype, ())
    values = np.zeros((*attribute.shape, *inner), base)
    attribute.read(values, mtype=datatypes.memory_type(file_type, dtype))
    datatypes.in_native_order(values, base)
    return values


def known_attributes(owner: h5py.HLObject, *others: str) -> dict[str, Any]:
    """Return the attributes of an object that `tamis.cf` knows, and others, without unreadable ones."""
    names: list[str] = []
    with suppress(OSError, RuntimeError, ValueError):
        h5a.iterate(owner.id, lambda raw: names.append(raw.decode("utf-8", "surrogateescape")))
    values = ((name, _value(owner, name)) for name in names if meaning.is_known(name) or name in others)
    return {name: value for name, value in values if value is not None}


def is_known(name: bytes) -> bool:
    """Return whether a dataset's attribute is one of the conventions."""
    text = name.decode("utf-8", "surrogateescape")
    return meaning.is_known(text) or text == "CLASS"


def known_values(owner: Callable[[], h5py.HLObject], contents: Iterable[tuple[bytes, object]]) -> dict[str, Any]:
    """Return what `known_attributes` does, without reading texts again; `owner` opens the object."""
    known = {}
    for raw, content in contents:
        name = raw.decode("utf-8", "surrogateescape")
        value = content.decode("utf-8", "surrogateescape") if isinstance(content, bytes) else _value(owner(), name)
        if value is not None:
            known[name] = value
    return known


def is_bare_dimension(dataset: h5py.Dataset) -> bool:
    """Return whether a dataset only stands for a netCDF-4 dimension without variable, and has no values."""
    return is_bare_name(text_attribute(dataset, "NAME"))


def is_bare_name(name: Any) -> bool:
    """Return whether the name of a dimension scale marks a dimension without a variable."""
    return isinstance(name, str) and name.startswith(_BARE_DIMENSION)


def _value(owner: h5py.HLObject, name: str) -> Any:
    """Return the value of an attribute; None if it does not exist, is too large, or cannot be read."""
    with suppress(Exception):  # HDF5 and h5py raise many kinds
        attribute = h5a.open(owner.id, name.encode("utf-8", "surrogateescape"))
        kind, shape = attribute.get_type(), attribute.shape
        if math.prod(shape or (0,)) * kind.get_size() > _MOST_NBYTES:
            return None
        if shape != () or not isinstance(kind, h5t.TypeStringID) or kind.is_variable_str():
            return owner.attrs[name]
        text = np.empty((), f"S{kind.get_size()}")  # the usual kind of text, in a third of h5py's time
        attribute.read(text, mtype=kind)
        return text.item().decode("utf-8", "surrogateescape")
    return None


def set_text(owner: h5py.HLObject, name: str, text: str | bytes) -> None:
    """Set an attribute to text of a fixed length."""
    raw = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    kind = h5t.C_S1.copy()
    kind.set_size(max(len(raw), 1))
    kind.set_cset(h5t.CSET_ASCII if raw.isascii() or isinstance(text, bytes) else h5t.CSET_UTF8)
    if b"\0" in raw:  # which would end the text for readers other than netCDF's library
        kind.set_strpad(h5t.STR_NULLPAD)
    _write(owner, name, kind, h5s.create(h5s.SCALAR), np.array(raw, f"S{kind.get_size()}"))


def set_text_like(source: Any, target: Any, name: bytes, text: str) -> None:
    """Set an attribute of an object to text of the kind that it has in another one: of a fixed or a varying length."""
    if h5a.exists(source, name) and h5a.open(source, name).get_type().is_variable_str():
        raw = text.encode("utf-8", "surrogateescape")  # which may not be UTF-8 in the source
        h5py.Group(target).attrs.create(name.decode(), raw, dtype=h5py.string_dtype())
    else:
        set_text(h5py.Group(target), name.decode(), text)


def set_number(owner: h5py.HLObject, name: str, value: int) -> None:
    """Set an attribute to a 32-bit number without an axis, like netCDF-4's internal ones."""
    number = np.array(value, np.int32)
    _write(owner, name, h5t.py_create(number.dtype), h5s.create(h5s.SCALAR), number)


def set_attribute(owner: h5py.HLObject, name: str, value: Any) -> None:
    """Set an attribute to text, to several texts, or to numbers, which have an axis in netCDF-4."""
    if isinstance(value, (str, bytes)):
        set_text(owner, name, value)
        return
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        values = np.array(value, object)
        kind = h5t.py_create(h5py.string_dtype(), logical=True)
    else:
        values = np.atleast_1d(np.asarray(value))
        kind = h5t.py_create(values.dtype)
    # No texts stay a list: an attribute without a value reads as a text.
    space = h5s.create_simple(values.shape) if values.size or values.dtype.kind == "O" else h5s.create(h5s.NULL)
    memory = h5t.py_create(h5py.string_dtype()) if values.dtype.kind == "O" else kind
    _write(owner, name, kind, space, values, memory)


def created(owner: h5py.HLObject, name: str, kind: h5t.TypeID, space: h5s.SpaceID) -> h5a.AttrID:
    """Create an attribute, in place of one of its name."""
    raw = name.encode("utf-8", "surrogateescape")
    if h5a.exists(owner.id, raw):
        h5a.delete(owner.id, raw)
    return h5a.create(owner.id, raw, kind, space)


def _write(owner: h5py.HLObject, name: str, kind: Any, space: Any, values: Any, memory: Any = None) -> None:
    attribute = created(owner, name, kind, space)
    if values.size:
        attribute.write(values, mtype=memory or kind)


def record_rounding(dataset: h5py.Dataset, rounding: Rounding) -> None:
    """Write the attributes with the number of bits or digits, or the step."""
    for name, values in rounding.recorded.items():
        dataset.attrs.create(name, values)


def replace_attributes(dataset: h5py.Dataset, attributes: Mapping[str, Any]) -> None:
    """Write attributes, texts and numbers, the latter as 1-D arrays as in netCDF; remove those that are None."""
    for name, value in attributes.items():
        if name in dataset.attrs:
            del dataset.attrs[name]
        if isinstance(value, str):
            set_text(dataset, name, value)
        elif value is not None:
            dataset.attrs.create(name, np.atleast_1d(value))


def name_containers(file: h5py.File, roundings: Mapping[str, Rounding]) -> None:
    """Let datasets, by path, name the variables that describe their rounding; create these if needed."""
    containers: dict[tuple[bytes, str], str] = {}
    for path, rounding in roundings.items():
        raw = path.encode("utf-8", "surrogateescape")
        place = raw.rpartition(b"/")[0] or b"/", rounding.algorithm
        if place not in containers:
            containers[place] = _container(h5py.Group(h5g.open(file.id, place[0])), rounding)
        if containers[place]:
            set_text(h5py.Dataset(h5d.open(file.id, raw)), CONTAINER, containers[place])


def _container(group: h5py.Group, rounding: Rounding) -> str:
    """Return the name of the variable of a group that describes an algorithm; empty if none is needed."""
    expected = container_attributes(rounding)
    if not expected:
        return ""
    for name in container_names(rounding):
        if group.get(name, getlink=True) is None:
            _create(group, name, expected)
            return name
        if _has(group.get(name), expected):
            return name
    return ""


def _create(group: h5py.Group, name: str, attributes: dict[str, str]) -> None:
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_attr_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
    plist.set_obj_track_times(False)
    container = h5py.Dataset(h5d.create(group.id, name.encode(), h5t.NATIVE_INT8, h5s.create(h5s.SCALAR), plist))
    for key, text in attributes.items():
        set_text(container, key, text)


def _has(item: object, attributes: dict[str, str]) -> bool:
    is_scalar = isinstance(item, h5py.Dataset) and item.shape == ()
    return is_scalar and all(text_attribute(item, name) == text for name, text in attributes.items())
