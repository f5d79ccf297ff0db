"""The header of a file in netCDF's data model, as CDL shows it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tamis.pipeline import Pipeline
from tamis.stores.data_model import groups_by_parent

if TYPE_CHECKING:
    from tamis.stores.data_model import DataModel, Dimension, NamedArray
    from tamis.stores.facts import ArrayFacts


class CdlType(NamedTuple):
    """A type of values."""

    form: str  # ``number``, ``char`` or ``string``; if users define it ``enum``, ``opaque``, ``vlen`` or ``compound``
    name: str  # Name in CDL, such as ``float``; of a user-defined type its own
    group: str = ""  # Path of the group of a user-defined type
    nbytes: int = 0  # Bytes of a value
    base: CdlType | None = None  # Type of the numbers of an enum, or of the elements of a vlen
    members: tuple[tuple[str, int], ...] = ()  # Numbers of an enum by name
    # Fields of a compound: name, type, and shape if it is an array
    fields: tuple[tuple[str, CdlType, tuple[int, ...]], ...] = ()


class HeaderAttribute(NamedTuple):
    """An attribute: its type, and its values in a row; `char` has one text."""

    name: str
    type: CdlType
    values: tuple[Any, ...]


class HeaderVariable(NamedTuple):
    """A variable."""

    # Name, type of the values, attributes in their order
    name: str
    type: CdlType
    attributes: tuple[HeaderAttribute, ...]
    dimensions: tuple[str, ...]  # Path of the dimension of each axis
    storage: str = ""  # ``chunked``, ``contiguous``, ``compact`` or another word; empty in formats without a choice
    chunk_shape: tuple[int, ...] | None = None
    pipeline: Pipeline = Pipeline(())
    byteorder: str = ""  # ``little`` or ``big``; empty if there is none
    has_no_fill: bool = False  # Whether values that were never written are undefined
    codecs: str = ""  # JSON of the codecs of a Zarr array; empty in other formats


class HeaderGroup(NamedTuple):
    """A group; `left_out` has names and reasons of items that netCDF's data model cannot express."""

    path: str
    types: tuple[CdlType, ...]
    dimensions: Mapping[str, Dimension]
    variables: tuple[HeaderVariable, ...]
    attributes: tuple[HeaderAttribute, ...]
    groups: tuple[HeaderGroup, ...]
    left_out: Mapping[str, str]


class Header(NamedTuple):
    """A file."""

    root: HeaderGroup
    kind: str  # Kind of file, as ``ncdump -k`` calls it
    # Hidden attributes of netCDF's root group, such as ``_NCProperties``: text or numbers by name
    hidden: Mapping[str, str | int]


_NAMES = {
    "i1": "byte", "i2": "short", "i4": "int", "i8": "int64",
    "u1": "ubyte", "u2": "ushort", "u4": "uint", "u8": "uint64", "f4": "float", "f8": "double",
}  # fmt: skip
_CHAR = CdlType("char", "char", nbytes=1)
_STRING = CdlType("string", "string")


def header_of(model: DataModel, arrays: Mapping[str, ArrayFacts], codecs: Mapping[str, str] | None = None) -> Header:
    """Return the header of a store without types of its own."""
    inner = groups_by_parent(model.group_paths())
    return Header(_group(model, "/", inner, arrays, codecs or {}, {}), model.kind, {})


def _group(
    model: DataModel,
    path: str,
    inner: Mapping[str, Sequence[str]],
    arrays: Mapping[str, ArrayFacts],
    codecs: Mapping[str, str],
    around: Mapping[str, str],
) -> HeaderGroup:
    """Return a group; `inner` are all groups by their parents, `around` the owners of dimensions of outer groups."""
    group = model.group(path)
    owners = {**around, **dict.fromkeys(group.dimensions, path)}
    left_out = dict(group.left_out)
    variables = []
    for name, variable in group.variables.items():
        kind = _type_of(variable.dtype)
        if kind is None:
            left_out[name] = f"CDL has no type {variable.dtype}"
            continue
        variables.append(_variable(name, kind, variable, arrays[variable.path], codecs, owners))
    groups = tuple(_group(model, other, inner, arrays, codecs, owners) for other in inner.get(path, ()))
    attributes = tuple(_attributes(group.attributes))
    return HeaderGroup(path, (), group.dimensions, tuple(variables), attributes, groups, left_out)


def _variable(
    name: str,
    kind: CdlType,
    variable: NamedArray,
    array: ArrayFacts,
    codecs: Mapping[str, str],
    owners: Mapping[str, str],
) -> HeaderVariable:
    """Return a variable; `owners` are the paths of the groups that have its dimensions, by their names."""
    return HeaderVariable(
        name,
        kind,
        tuple(_attributes(variable.attributes)),
        tuple(posixpath.join(owners[dimension], dimension) for dimension in variable.dimensions),
        array.storage.layout if variable.chunk_shape else "",
        variable.chunk_shape,
        Pipeline(()) if variable.path in codecs else variable.pipeline,
        array.type.byteorder if variable.path in codecs else "",
        codecs=codecs.get(variable.path, ""),
    )


def _type_of(dtype: np.dtype[Any]) -> CdlType | None:
    """Return the type in CDL of values; None if it has none."""
    if dtype == "S1":
        return _CHAR
    if dtype.kind in "OTU":
        return _STRING
    name = _NAMES.get(f"{dtype.kind}{dtype.itemsize}")
    return CdlType("number", name, nbytes=dtype.itemsize) if name else None


def _attributes(attributes: Mapping[str, Any]) -> Iterator[HeaderAttribute]:
    """Yield attributes with their types in CDL."""
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
