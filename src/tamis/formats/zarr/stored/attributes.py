"""Types and shapes of attributes, which JSON lacks, recorded like netCDF-C's types in its Zarr stores.

netCDF-C records the types of numbers in an attribute of each array and group. xarray hides it, except in arrays of Zarr
3, so their types are in the attribute of their group. The attribute also records forms that netCDF lacks: numbers
without an axis or with several, booleans, texts along axes.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import json
import math
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tamis import meaning
from tamis.stores.data_model import (
    JSON_FORMS,
    JSON_TEXT,
    LATIN_1,
    LIST_OF_ONE,
    AttributeForm,
    is_latin_1,
    json_attribute,
)

NAME = "_nczarr_attr"
"""The attribute of netCDF-C that has them."""

Types = dict[str, Any]
"""For each attribute its type, or a list of type and shape, with all values if its JSON has only one of several."""

FILL = "_FillValue"
"""The attribute of which Zarr 3 has only the first value, for xarray; its type then comes with all values."""

DIMENSIONS = "_ARRAY_DIMENSIONS"
"""The attribute of arrays with which xarray names axes in Zarr 2."""

OF_NCZARR = ("_nczarr", "_NCZARR")
"""Beginnings of the names of netCDF-C's own attributes."""

_OF_ARRAYS = "arrays"
_FORMS = "forms"
_KNOWN = frozenset(("|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f4", "<f8"))


def types_of(attributes: Mapping[str, Any], forms: Mapping[str, AttributeForm]) -> Types:
    """Return the types of number attributes, as netCDF readers have them, and the forms of others."""
    numbers = {
        str(name): value.dtype.newbyteorder("<").str
        for name, value in attributes.items()
        if isinstance(value, (np.generic, np.ndarray)) and value.ndim <= 1
    }
    types: Types = {name: kind.replace("|", "<") for name, kind in numbers.items() if kind in _KNOWN}
    for name, form in forms.items():
        if name in attributes and form.type not in JSON_FORMS:
            types[name] = [form.type, None if form.shape is None else [*form.shape]]
    if (values := np.asarray(attributes.get(FILL, ""))).size > 1 and values.dtype.kind in "iuf":
        kind = forms[FILL].type if FILL in forms and forms[FILL].type not in JSON_FORMS else values.dtype.str
        types[FILL] = [kind, [*values.shape], values.tolist()]
    types |= {name: _in_latin_1(value, types.get(name)) for name, value in attributes.items() if is_latin_1(value)}
    types |= {name: _with_value(value, types.get(name)) for name, value in attributes.items() if _is_reserved(name)}
    return types  # netCDF-C has no "|"


STAND_IN = "missing_value"
"""The attribute by which xarray knows missing texts in Zarr 3, where it cannot read a text in ``_FillValue``."""


def stand_in(attributes: Mapping[str, Any]) -> str | list[str] | None:
    """Return the value of `STAND_IN` that means the same as a text in ``_FillValue``; None if that name is taken."""
    items = np.asarray(attributes.get(FILL, 0)).reshape(-1).tolist()
    if STAND_IN in attributes or not items or not all(isinstance(item, str) for item in items):
        return None
    return items[0] if len(items) == 1 else items


def with_hidden_fill(types: Types, value: Any, *, has_stand_in: bool = False) -> Types:
    """Return types that also have the value of ``_FillValue``, which is then not among the attributes of Zarr 3.

    `has_stand_in` tells that `STAND_IN` is among them instead, which the source does not have.
    """
    known = ["S1:ascii:nullterm", []] if isinstance(value, bytes) and FILL not in types else types.get(FILL)
    kind, shape, content = _with_value(value, known)[:3]
    items = np.asarray(value).reshape(-1)
    if items.dtype.kind == "f":  # NaN is not in JSON
        content = [encoded_float(item) for item in items] if shape else encoded_float(items[0])
    entry = [kind, shape, content]
    if has_stand_in:
        entry.append(STAND_IN)
    return types | {FILL: entry}


def _hidden_fill(types: Types) -> Any:
    """Return the value of ``_FillValue`` that `with_hidden_fill` recorded; None if there is none."""
    kind = types.get(FILL)
    if form_of(kind) is None or not isinstance(kind, list) or len(kind) < 3:
        return None
    value, dtype = kind[2], _number_type(kind[0], any_type=True)
    if dtype is None or dtype.kind != "f":
        return value
    return [_decoded_fill(item) for item in value] if isinstance(value, list) else _decoded_fill(value)


def _without_stand_in(attributes: dict[str, Any], types: Types) -> dict[str, Any]:
    """Return attributes without the one that only stands for a hidden ``_FillValue``, unless it was changed since."""
    fill, kind = _hidden_fill(types), types.get(FILL)
    if fill is None or not isinstance(kind, list) or kind[3:] != [STAND_IN]:
        return attributes
    if attributes.get(STAND_IN) != stand_in({FILL: fill}):
        return attributes
    return {name: value for name, value in attributes.items() if name != STAND_IN}


def encoded_float(value: Any) -> str:
    """Return a number as xarray writes it in ``_FillValue`` of Zarr 3."""
    return base64.standard_b64encode(struct.pack("<d", float(value))).decode()


def _is_reserved(name: str) -> bool:
    """Return whether an attribute of that name belongs to the format, so that one of a source is only among types."""
    return name == DIMENSIONS or name.startswith(OF_NCZARR)


_END = re.compile(":(nullterm|nullpad|spacepad)")
"""The end of the type of texts."""


def _in_latin_1(value: Any, known: Any) -> list[Any]:
    """Return type and shape of an attribute, with the character set of its JSON after each type of texts."""
    kind, shape, *more = known or ["str:utf-8:nullterm" if np.ndim(value) else "S1:ascii:nullterm", [*np.shape(value)]]
    return [_END.sub(rf":\1:{LATIN_1}", kind), shape, *more]


def _with_value(value: Any, known: Any) -> list[Any]:
    """Return type, shape and value of an attribute."""
    if not isinstance(known, list):
        known = ["str:utf-8:nullterm" if isinstance(value, (str, list)) else value.dtype.str, [*np.shape(value)]]
    return [*known, json_attribute(value)]


def with_types_of(own: Types, arrays: Mapping[str, Types] | None = None) -> dict[str, Any]:
    """Return the attribute with the types of an array or group; nothing if there are none."""
    inner = {name: types for name, types in (arrays or {}).items() if types}
    if not own and not inner:
        return {}
    known = {"types": {name: text for name, kind in own.items() if (text := _netcdf_type(kind))}}
    if forms := {name: kind for name, kind in own.items() if not isinstance(kind, str)}:
        known[_FORMS] = forms
    return {NAME: known | ({_OF_ARRAYS: inner} if inner else {})}


def _netcdf_type(kind: Any) -> str:
    """Return netCDF-C's type for an attribute; empty for attributes that it does not support."""
    if isinstance(kind, str):
        return kind
    name, shape, *_ = kind
    name = name.partition(",")[0][1:]  # without the members of an enumeration
    little = f"<{name}"
    has_type = little in _KNOWN or f"|{name}" in _KNOWN
    return little if has_type and shape is not None and len(shape) <= 1 else ""


def known_types(own: object, of_group: object = None, name: str = "") -> Types:
    """Return the types of the attributes of an array or group."""
    types = own.get("types") if isinstance(own, dict) else None
    if types is None and isinstance(of_group, dict) and isinstance(arrays := of_group.get(_OF_ARRAYS), dict):
        types = arrays.get(name)
    forms = own.get(_FORMS) if isinstance(own, dict) else None
    known: Types = {}
    for recorded in (types, forms):
        if isinstance(recorded, dict):
            known |= recorded
    return known


def known_forms(types: Types) -> dict[str, AttributeForm]:
    """Return the forms among types."""
    forms = {name: form_of(kind) for name, kind in types.items()}
    return {name: form for name, form in forms.items() if form is not None}


def form_of(kind: object) -> AttributeForm | None:
    """Return the form of a type and shape in a list; None for anything else."""
    if not isinstance(kind, list) or len(kind) not in (2, 3, 4) or not isinstance(kind[0], str):
        return None
    shape = kind[1]
    if shape is not None and not (isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)):
        return None
    return AttributeForm(kind[0], None if shape is None else tuple(shape))


def in_type(value: Any, kind: object) -> Any:
    """Return the numbers of a value of JSON in a type; None if it is not a type, or cannot hold them."""
    form = form_of(kind)
    if form is not None and isinstance(kind, list):
        value = _all_values(value, *kind[2:3])
    dtype = _number_type(kind if form is None else form.type, any_type=form is not None)
    if dtype is None:
        return None
    items = [*_flat(value)]
    # Complex numbers are pairs in JSON
    part = dtype if dtype.kind != "c" else np.empty(0, dtype).real.dtype
    halves = len(items) * part.itemsize % dtype.itemsize
    kinds: tuple[type, ...] = (bool,) if dtype.kind == "b" else (int, float)
    if halves or any(type(item) not in kinds for item in items):
        return None
    if part.kind != "f" and any(isinstance(item, float) for item in items):
        return None
    try:
        with np.errstate(all="ignore"):
            values = np.array(items, part)
    except (OverflowError, ValueError):
        return None
    pairs = zip(values.tolist(), items, strict=True)
    if any(known != item and (known == known or item == item) for known, item in pairs):
        return None
    values = values.view(dtype)
    if form is None:
        return values if isinstance(value, list) else values[0]
    if form.shape is None or math.prod(form.shape) != values.size:
        return values[:0] if form.shape is None and not items else None
    shaped = values.reshape(form.shape)
    return shaped.reshape(-1)[0] if shaped.size == 1 else shaped


def _all_values(value: Any, values: Any = None) -> Any:
    """Return all values of an attribute, unless its JSON value differs from the first of them."""
    first = next(_flat(values), None) if isinstance(values, list) else None
    if first is None:
        return value
    is_first = value == first or (value != value and first != first)
    return values if is_first else value


def _number_type(name: object, *, any_type: bool) -> np.dtype[Any] | None:
    """Return the type with a name: one of netCDF-C, or any number or boolean type; None if there is none."""
    try:
        dtype = np.dtype(name.partition(",")[0] if isinstance(name, str) else "V")
    except (TypeError, ValueError):
        return None
    is_known = dtype.kind in "iufbc" if any_type else dtype.newbyteorder("<").str in _KNOWN
    return dtype.newbyteorder("=") if is_known else None


def _flat(value: Any) -> Iterator[Any]:
    """Yield the items of lists in lists."""
    return itertools.chain.from_iterable(map(_flat, value)) if isinstance(value, list) else iter((value,))


HIDDEN = (*OF_NCZARR, "_NCProperties", "_Netcdf4")
"""Beginnings of the names of attributes that readers of netCDF do not see."""

_OF_VALUES = ("_FillValue", "missing_value", "valid_min", "valid_max", "valid_range", "flag_values", "flag_masks")
"""Attributes that have the type of the values, unless their own is known."""


def netcdf_attributes(
    attributes: Mapping[str, Any],
    dtype: np.dtype[Any] | None,
    zarr_format: int,
    types: Mapping[str, Any],
    *,
    names_axes: bool = False,
) -> dict[str, Any]:
    """Return attributes without internal ones: text as `str`, numbers in types of NumPy, anything else as JSON.

    `names_axes` tells that the names of axes are an attribute.
    """
    hidden = (*HIDDEN, DIMENSIONS) if names_axes else HIDDEN
    known = {name: value for name, value in attributes.items() if not name.startswith(hidden)}
    known = _without_stand_in(known, dict(types))
    reserved = {name: kind for name, kind in types.items() if name.startswith(hidden) and form_of(kind)}
    known |= {name: kind[2] for name, kind in reserved.items() if len(kind) == 3}
    is_number = dtype is not None and dtype.kind in "iuf"
    if FILL not in known and (hidden_fill := _hidden_fill(dict(types))) is not None:
        known[FILL] = hidden_fill
    elif zarr_format == 3 and is_number and isinstance(fill := known.get("_FillValue"), str):
        known["_FillValue"] = _decoded_fill(fill)
    result = {name: _value(value) for name, value in known.items()}
    typed = {name: in_type(value, types.get(name)) for name, value in known.items()}
    typed = {name: value for name, value in typed.items() if value is not None}
    result |= typed
    if dtype is None or not is_number:
        return result
    for name in _OF_VALUES:
        value = result.get(name)
        if isinstance(value, (np.generic, np.ndarray)) and name not in typed:
            result[name] = _as_values(value, dtype, is_fill=name in meaning.FILL_ATTRIBUTES)
    return result


def _untyped(attributes: Mapping[str, Any], types: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes other than texts whose types are not recorded."""
    others = {name: value for name, value in attributes.items() if not isinstance(value, str)}
    return {name: value for name, value in others.items() if not _is_typed(value, types.get(name))}


def _is_typed(value: Any, kind: object) -> bool:
    """Return whether a recorded type is a form, or one that can hold the numbers of a value."""
    return form_of(kind) is not None or in_type(value, kind) is not None


def json_forms(
    attributes: Mapping[str, Any], known: Mapping[str, Any], types: Mapping[str, Any]
) -> dict[str, AttributeForm]:
    """Return the forms of attributes that are otherwise in JSON than `known` has them, unless their type is recorded.

    Parameters
    ----------
    attributes
        As in JSON.
    known
        The result of `netcdf_attributes`.
    types
        Recorded types.
    """
    forms = {}
    untyped = _untyped(attributes, types)
    for name, value in untyped.items():
        if name not in known:
            continue
        if isinstance(value, list) and len(value) == 1 and not isinstance(known[name], str):
            forms[name] = AttributeForm(LIST_OF_ONE, ())
        elif isinstance(known[name], str) and not isinstance(value, str):
            forms[name] = AttributeForm(JSON_TEXT, ())
    return forms


def json_values(attributes: Mapping[str, Any], known: Mapping[str, Any], types: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that differ from `known` for readers of Zarr, except those whose type is recorded.

    Those about the values themselves, such as ``_FillValue``, have the type of the values.
    """
    untyped = _untyped(attributes, types)
    return {name: untyped[name] for name in known if name in untyped and name not in _OF_VALUES}


def _value(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None or isinstance(value, dict):
        return json.dumps(value)
    if isinstance(value, int):
        if -(1 << 63) <= value < 1 << 63:
            return np.int64(value)
        return np.uint64(value) if 0 <= value < 1 << 64 else json.dumps(value)
    if isinstance(value, float):
        return np.float64(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value  # an empty list of unknown type has texts
    if isinstance(value, list) and all(type(item) is int for item in value):
        for dtype in (np.int64, np.uint64):
            if np.iinfo(dtype).min <= min(value) and max(value) <= np.iinfo(dtype).max:
                return np.array(value, dtype)
    elif isinstance(value, list) and all(type(item) in (int, float) and _is_float(item) for item in value):
        return np.array(value, np.float64)
    return json.dumps(value)


def _is_float(item: float) -> bool:
    """Return whether a number of JSON is one of float64."""
    try:
        return float(item) == item or item != item
    except OverflowError:
        return False


def _decoded_fill(text: Any) -> Any:
    """Return the number of ``_FillValue`` as xarray writes it for Zarr 3; the value itself if it is not a number."""
    if not isinstance(text, str):
        return text
    try:
        return float(struct.unpack("<d", base64.standard_b64decode(text))[0])
    except (binascii.Error, struct.error, ValueError):
        return text


def _as_values(value: Any, dtype: np.dtype[Any], *, is_fill: bool) -> Any:
    """Return numbers in the type of the values if they stay equal, others as they are.

    A float that marks missing values means the nearest one of their type: 1e20 in JSON is the text of float32's.
    """
    native = dtype.newbyteorder("=")
    with np.errstate(all="ignore"):
        converted = np.asarray(value).astype(native)
    numbers = converted.reshape(-1).tolist()
    given = np.asarray(value).reshape(-1).tolist()
    # Python compares integers and floats exactly.
    same = [number == item or (item != item and number != number) for number, item in zip(numbers, given, strict=True)]
    if is_fill and native.kind == "f":
        texts = [float(str(number)) for number in converted.reshape(-1)]
        same = [equal or text == item for equal, text, item in zip(same, texts, given, strict=True)]
    if not all(same):
        return value
    return converted if converted.ndim else converted[()]


def dimension_names(
    names: Sequence[str | None] | None, attributes: Mapping[str, Any], shape: tuple[int, ...]
) -> tuple[str | None, ...]:
    """Return the name of each axis: of Zarr 3, of xarray, or of NCZarr; None where there is none."""
    listed: Any = names if names is not None else attributes.get(DIMENSIONS)
    if listed is None:
        inner = attributes.get("_nczarr_array")
        references = inner.get("dimension_references", inner.get("dimrefs")) if isinstance(inner, dict) else None
        listed = [str(name).rpartition("/")[2] for name in references] if isinstance(references, list) else None
    if not isinstance(listed, Sequence) or isinstance(listed, str) or len(listed) != len(shape):
        return (None,) * len(shape)
    return tuple(name if isinstance(name, str) and name else None for name in listed)


def variable_of(
    path: str,
    shape: tuple[int, ...],
    dtype: np.dtype[Any] | None,
    dimensions: tuple[str, ...],
    attributes: Mapping[str, Any],
) -> meaning.Variable:
    """Return an array as a variable of the CF conventions."""
    folder, _, name = path.rpartition("/")
    paths = tuple(f"{folder}/{dimension}" for dimension in dimensions)
    return meaning.Variable(
        path, shape, dtype, paths, dict(attributes), is_scale=dimensions[:1] == (name,) and len(shape) == 1
    )
