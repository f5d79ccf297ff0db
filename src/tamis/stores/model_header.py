"""The CDL header of a store without named types, from netCDF's data model."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.pipeline import Pipeline
from tamis.stores.header import CdlType, Header, HeaderAttribute, HeaderGroup, HeaderVariable

if TYPE_CHECKING:
    from tamis.stores.data_model import DataModel, NamedArray
    from tamis.stores.protocols import StoredArray

_NAMES = {
    "i1": "byte", "i2": "short", "i4": "int", "i8": "int64",
    "u1": "ubyte", "u2": "ushort", "u4": "uint", "u8": "uint64", "f4": "float", "f8": "double",
}  # fmt: skip
_CHAR, _STRING = CdlType("char", "char", nbytes=1), CdlType("string", "string")


def header_of(model: DataModel, arrays: Mapping[str, StoredArray], codecs: Mapping[str, str] | None = None) -> Header:
    """Return a header."""
    return Header(_group(model, "/", arrays, codecs or {}, {}), model.kind, {})


def _group(
    model: DataModel, path: str, arrays: Mapping[str, StoredArray], codecs: Mapping[str, str], around: Mapping[str, str]
) -> HeaderGroup:
    group = model.group(path)
    owners = {**around, **dict.fromkeys(group.dimensions, path)}
    left_out = dict(group.left_out)
    variables = []
    for name, variable in group.variables.items():
        if (kind := _type_of(variable.dtype)) is None:
            left_out[name] = f"CDL has no type {variable.dtype}"
            continue
        variables.append(_variable(name, kind, variable, arrays[variable.path], codecs, owners))
    inner = [other for other in model.group_paths(path) if other != path and posixpath.dirname(other) == path]
    groups = tuple(_group(model, other, arrays, codecs, owners) for other in inner)
    attributes = tuple(_attributes(group.attributes))
    return HeaderGroup(path, (), group.dimensions, tuple(variables), attributes, groups, left_out)


def _variable(
    name: str,
    kind: CdlType,
    variable: NamedArray,
    array: StoredArray,
    codecs: Mapping[str, str],
    owners: Mapping[str, str],
) -> HeaderVariable:
    return HeaderVariable(
        name,
        kind,
        tuple(_attributes(variable.attributes)),
        tuple(posixpath.join(owners[dimension], dimension) for dimension in variable.dimensions),
        array.layout if variable.chunk_shape else "",
        variable.chunk_shape,
        Pipeline(()) if variable.path in codecs else variable.pipeline,
        array.byteorder if variable.path in codecs else "",
        codecs=codecs.get(variable.path, ""),
    )


def _type_of(dtype: np.dtype[Any]) -> CdlType | None:
    if dtype == "S1":
        return _CHAR
    if dtype.kind in "OT":
        return _STRING
    name = _NAMES.get(f"{dtype.kind}{dtype.itemsize}")
    return CdlType("number", name, nbytes=dtype.itemsize) if name else None


def _attributes(attributes: Mapping[str, Any]) -> Iterator[HeaderAttribute]:
    for name, value in attributes.items():
        if isinstance(value, (str, bytes)):
            text = value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
            yield HeaderAttribute(name, _CHAR, (text,))
        elif isinstance(value, list):
            yield HeaderAttribute(name, _STRING, tuple(value))
        else:
            numbers = np.atleast_1d(np.asarray(value))
            kind = _type_of(numbers.dtype.newbyteorder("="))
            yield HeaderAttribute(name, kind or _CHAR, tuple(numbers) if kind else (str(value),))
