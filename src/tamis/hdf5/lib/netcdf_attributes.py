"""Write attributes into HDF5 files as netCDF-C does."""

from __future__ import annotations

from typing import Any

import h5py
import numpy as np
from h5py import h5a, h5s, h5t


def set_text(owner: h5py.HLObject, name: str, text: str | bytes) -> None:
    """Set an attribute to text of a fixed length."""
    raw = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    kind = h5t.C_S1.copy()
    kind.set_size(max(len(raw), 1))
    kind.set_cset(h5t.CSET_ASCII if raw.isascii() or isinstance(text, bytes) else h5t.CSET_UTF8)
    _write(owner, name, kind, h5s.create(h5s.SCALAR), np.array(raw, f"S{kind.get_size()}"))


def set_text_like(source: Any, target: Any, name: bytes, text: str) -> None:
    """Set an attribute of an object to text of the kind that it has in another one: of a fixed or a varying length."""
    if h5a.exists(source, name) and h5a.open(source, name).get_type().is_variable_str():
        raw = text.encode("utf-8", "surrogateescape")  # which may be no UTF-8 in the source
        h5py.Group(target).attrs.create(name.decode(), raw, dtype=h5py.string_dtype())
    else:
        set_text(h5py.Group(target), name.decode(), text)


def set_number(owner: h5py.HLObject, name: str, value: int) -> None:
    """Set an attribute to a 32-bit number without an axis, as those of netCDF-4 for itself."""
    number = np.array(value, np.int32)
    _write(owner, name, h5t.py_create(number.dtype), h5s.create(h5s.SCALAR), number)


def set_attribute(owner: h5py.HLObject, name: str, value: Any) -> None:
    """Set an attribute to text, to several texts, or to numbers, which have an axis in netCDF-4.

    Raises
    ------
    TypeError, ValueError
        If the value is of another kind.
    """
    if isinstance(value, (str, bytes)):
        set_text(owner, name, value)
        return
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        values = np.array(value, object)
        kind = h5t.py_create(h5py.string_dtype(), logical=True)
    else:
        values = np.atleast_1d(np.asarray(value))
        kind = h5t.py_create(values.dtype)
    space = h5s.create_simple(values.shape) if values.size else h5s.create(h5s.NULL)
    memory = h5t.py_create(h5py.string_dtype()) if values.dtype.kind == "O" else kind
    _write(owner, name, kind, space, values, memory)


def _write(owner: h5py.HLObject, name: str, kind: Any, space: Any, values: Any, memory: Any = None) -> None:
    raw = name.encode("utf-8", "surrogateescape")
    if h5a.exists(owner.id, raw):
        h5a.delete(owner.id, raw)
    attribute = h5a.create(owner.id, raw, kind, space)
    if values.size:
        attribute.write(values, mtype=memory or kind)
