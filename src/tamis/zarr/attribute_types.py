"""Types and shapes of attributes, which JSON does not have: as netCDF-C keeps types in its Zarr stores.

netCDF-C has the types of numbers in an attribute of each array and group. xarray hides that, but not in arrays of Zarr
3: their types are in the attribute of their group. Beside the types are the forms of attributes that netCDF does not
have: numbers without an axis or with several, booleans, texts along axes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tamis.store.data_model import AttributeForm

NAME = "_nczarr_attr"
"""The attribute of netCDF-C that has them."""

Types = dict[str, Any]
"""By name of an attribute its type, or its type and shape in a list, with its values if its JSON has one of several."""

_FILL = "_FillValue"
"""The attribute of which Zarr 3 has the first value alone, as xarray reads it: types have all of them then."""

_OF_ARRAYS = "arrays"
_FORMS = "forms"
_KNOWN = frozenset(("|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f4", "<f8"))


def types_of(attributes: Mapping[str, Any], forms: Mapping[str, AttributeForm]) -> Types:
    """Return the types of the attributes that are numbers, as readers of netCDF have them, and the forms of others."""
    numbers = {
        str(name): value.dtype.newbyteorder("<").str
        for name, value in attributes.items()
        if isinstance(value, (np.generic, np.ndarray)) and value.ndim <= 1
    }
    types: Types = {name: kind.replace("|", "<") for name, kind in numbers.items() if kind in _KNOWN}
    for name, form in forms.items():
        if name in attributes:
            types[name] = [form.type, None if form.shape is None else [*form.shape]]
    if (values := np.asarray(attributes.get(_FILL, ""))).size > 1 and values.dtype.kind in "iuf":
        kind = forms[_FILL].type if _FILL in forms else values.dtype.str
        types[_FILL] = [kind, [*values.shape], values.tolist()]
    return types  # netCDF-C has no "|"


def with_types_of(own: Types, arrays: Mapping[str, Types] | None = None) -> dict[str, Any]:
    """Return the attribute that has the types of an array or group; nothing if there are none.

    Parameters
    ----------
    own
        The types of its own attributes.
    arrays
        Those of the arrays of a group, by name.
    """
    inner = {name: types for name, types in (arrays or {}).items() if types}
    if not own and not inner:
        return {}
    known = {"types": {name: text for name, kind in own.items() if (text := _netcdf_type(kind))}}
    if forms := {name: kind for name, kind in own.items() if not isinstance(kind, str)}:
        known[_FORMS] = forms
    return {NAME: known | ({_OF_ARRAYS: inner} if inner else {})}


def _netcdf_type(kind: Any) -> str:
    """Return the type that netCDF-C takes for an attribute; empty for attributes that it does not have."""
    if isinstance(kind, str):
        return kind
    name, shape, *_ = kind
    little = f"<{name[1:]}"
    has_type = little in _KNOWN or f"|{name[1:]}" in _KNOWN
    return little if has_type and shape is not None and len(shape) <= 1 else ""


def known_types(own: object, of_group: object = None, name: str = "") -> Types:
    """Return the types of the attributes of an array or group.

    Parameters
    ----------
    own
        Its attribute with types, or whatever there is in its place.
    of_group
        The same of the group of an array.
    name
        Name of the array in the group.
    """
    types = own.get("types") if isinstance(own, dict) else None
    if types is None and isinstance(of_group, dict) and isinstance(arrays := of_group.get(_OF_ARRAYS), dict):
        types = arrays.get(name)
    forms = own.get(_FORMS) if isinstance(own, dict) else None
    return {**(types if isinstance(types, dict) else {}), **(forms if isinstance(forms, dict) else {})}


def known_forms(types: Types) -> dict[str, AttributeForm]:
    """Return the forms among types."""
    forms = {name: form_of(kind) for name, kind in types.items()}
    return {name: form for name, form in forms.items() if form is not None}


def form_of(kind: object) -> AttributeForm | None:
    """Return the form of a type and shape in a list; None for anything else."""
    if not isinstance(kind, list) or len(kind) not in (2, 3) or not isinstance(kind[0], str):
        return None
    shape = kind[1]
    if shape is not None and not (isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)):
        return None
    return AttributeForm(kind[0], None if shape is None else tuple(shape))


def in_type(value: Any, kind: object) -> Any:
    """Return the numbers of a value of JSON in a type; None if that is no type, or does not hold them."""
    form = form_of(kind)
    if form is not None and isinstance(kind, list):
        value = _all_values(value, *kind[2:])
    dtype = _number_type(kind if form is None else form.type, any_type=form is not None)
    if dtype is None:
        return None
    items = [*_flat(value)]
    if any(type(item) not in ((bool,) if dtype.kind == "b" else (int, float)) for item in items):
        return None
    if dtype.kind != "f" and any(isinstance(item, float) for item in items):
        return None
    try:
        with np.errstate(all="ignore"):
            values = np.array(items, dtype)
    except (OverflowError, ValueError):
        return None
    pairs = zip(values.tolist(), items, strict=True)
    if any(known != item and (known == known or item == item) for known, item in pairs):
        return None
    if form is None:
        return values if isinstance(value, list) else values[0]
    if form.shape is None or math.prod(form.shape) != values.size:
        return values[:0] if form.shape is None and not items else None
    shaped = values.reshape(form.shape)
    return shaped.reshape(-1)[0] if shaped.size == 1 else shaped


def _all_values(value: Any, values: Any = None) -> Any:
    """Return all values of an attribute, unless its JSON has another one than the first of them."""
    first = next(_flat(values), None) if isinstance(values, list) else None
    return values if first is not None and (value == first or (value != value and first != first)) else value


def _number_type(name: object, *, any_type: bool) -> np.dtype[Any] | None:
    """Return the type of a name: one that netCDF-C has, or any of numbers and booleans; None if there is none."""
    if not isinstance(name, str) or ":" in name:
        return None
    known = name.replace(">", "<", 1)
    known = f"|{known[1:]}" if known.endswith("1") else known
    if known in _KNOWN:
        return np.dtype(known).newbyteorder("=")
    if not any_type:
        return None
    try:
        dtype = np.dtype(name)
    except (TypeError, ValueError):
        return None
    return dtype.newbyteorder("=") if dtype.kind in "iufb" else None


def _flat(value: Any) -> Iterator[Any]:
    """Yield the items of lists in lists."""
    return itertools.chain.from_iterable(map(_flat, value)) if isinstance(value, list) else iter((value,))
