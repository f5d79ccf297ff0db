"""Read attributes of the conventions, whatever library wrote them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import h5py
import numpy as np
from h5py import h5a, h5t
from numpy.typing import NDArray

from tamis import cf
from tamis.hdf5.lib import datatypes
from tamis.hdf5.lib.references import has_references

_BARE_DIMENSION = "This is a netCDF dimension but not a netCDF variable"

_MOST_NBYTES = 1 << 20
"""Size limit: larger attributes are not those of the conventions, and are not read."""


def text_attribute(dataset: h5py.Dataset, name: str) -> str | None:
    """Return an attribute as text; None if it does not exist or is not text."""
    if (value := _value(dataset, name)) is None:
        return None
    attributes = {name: value}
    return cf.text(attributes, name) or ("" if isinstance(value, (str, bytes)) else None)


def all_attributes(owner: h5py.HLObject) -> dict[str, Any]:
    """Return all attributes of an object, as h5py reads them or else as `attribute_content` does."""
    return {name: attribute_content(owner, name) for name in owner.attrs}


def attribute_content(owner: h5py.HLObject, name: str | bytes) -> Any:
    """Return an attribute as h5py reads it, or else, with bitfields and opaque elements, as `stored_values` does."""
    try:
        return owner.attrs[name]
    except (OSError, TypeError):
        attribute = h5a.open(owner.id, name if isinstance(name, bytes) else name.encode("utf-8", "surrogateescape"))
        if attribute.shape is None or has_references(kind := attribute.get_type()) or datatypes.varies(kind):
            raise
        return stored_values(attribute)[()]


def stored_values(attribute: h5a.AttrID) -> NDArray[Any]:
    """Return the elements of an attribute, those that h5py cannot convert as they are in the file."""
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
    return values


def known_attributes(owner: h5py.HLObject, *others: str) -> dict[str, Any]:
    """Return the attributes of an object that `tamis.cf` knows, and others, without unreadable ones."""
    names: list[str] = []
    with suppress(OSError, RuntimeError, ValueError):
        h5a.iterate(owner.id, lambda raw: names.append(raw.decode("utf-8", "surrogateescape")))
    values = ((name, _value(owner, name)) for name in names if cf.is_known(name) or name in others)
    return {name: value for name, value in values if value is not None}


def is_known(name: bytes) -> bool:
    """Return whether a dataset's attribute is one of the conventions."""
    text = name.decode("utf-8", "surrogateescape")
    return cf.is_known(text) or text == "CLASS"


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
    """Return whether the name of a dimension scale says that it stands for a dimension without variable."""
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
