"""Attributes that say what a dataset is for, read whatever wrote them."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import h5py
import numpy as np
from h5py import h5a, h5t

from tamis import cf

_BARE_DIMENSION = "This is a netCDF dimension but not a netCDF variable"

_MOST_NBYTES = 1 << 20
"""Attributes that claim to be larger are no text or numbers of the conventions, and are not read."""


def text_attribute(dataset: h5py.Dataset, name: str) -> str | None:
    """Read an attribute as text; None where there is none, or none of text."""
    if (value := _value(dataset, name)) is None:
        return None
    found = {name: value}
    return cf.text(found, name) or ("" if isinstance(value, (str, bytes)) else None)


def known_attributes(found: h5py.HLObject, *others: str) -> dict[str, Any]:
    """Read the attributes of an object that `tamis.cf` knows, and others; those that cannot be read are left out."""
    names: list[str] = []
    with suppress(OSError, RuntimeError, ValueError):
        h5a.iterate(found.id, lambda raw: names.append(raw.decode("utf-8", "surrogateescape")))
    values = ((name, _value(found, name)) for name in names if cf.is_known(name) or name in others)
    return {name: value for name, value in values if value is not None}


def is_bare_dimension(dataset: h5py.Dataset) -> bool:
    """Tell what only stands for a dimension of netCDF-4 that has no variable, and so no values."""
    return (text_attribute(dataset, "NAME") or "").startswith(_BARE_DIMENSION)


def _value(found: h5py.HLObject, name: str) -> Any:
    """Read an attribute; None where there is none, or it is too large, or cannot be read."""
    with suppress(Exception):  # of HDF5 and h5py, many kinds
        attribute = h5a.open(found.id, name.encode("utf-8", "surrogateescape"))
        kind, shape = attribute.get_type(), attribute.shape
        if math.prod(shape or (0,)) * kind.get_size() > _MOST_NBYTES:
            return None
        if shape != () or not isinstance(kind, h5t.TypeStringID) or kind.is_variable_str():
            return found.attrs[name]
        text = np.empty((), f"S{kind.get_size()}")  # most of them: a third of the time of h5py's way
        attribute.read(text, mtype=kind)
        return text.item().decode("utf-8", "surrogateescape")
    return None
