"""Values of attributes as readers of netCDF have them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import h5py
import numpy as np
from h5py import h5a, h5r, h5t

from tamis.cf import FILL_ATTRIBUTES
from tamis.hdf5.lib.attributes import attribute_content
from tamis.hdf5.tree.references import attribute_names

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

    Parameters
    ----------
    owner, names
        The object, and the names of its attributes if they are known.
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
