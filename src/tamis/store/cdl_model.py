"""The header of a file in netCDF's enhanced data model, with user-defined types, as CDL describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tamis.pipeline import Pipeline
from tamis.store.data_model import Dimension

USER_FORMS = ("enum", "opaque", "vlen", "compound")
"""Forms of types that users define."""


@dataclass(frozen=True, slots=True)
class CdlType:
    """A type of values.

    Parameters
    ----------
    form
        ``number``, ``char``, ``string``, or one of `USER_FORMS`.
    name
        Name in CDL, such as ``float``; of a user-defined type its own.
    group
        Path of the group of a user-defined type.
    nbytes
        Bytes of a value.
    base
        Type of the numbers of an enum, or of the elements of a vlen.
    members
        Numbers of an enum by name.
    fields
        Fields of a compound: name, type, and shape if it is an array.
    """

    form: str
    name: str
    group: str = ""
    nbytes: int = 0
    base: CdlType | None = None
    members: tuple[tuple[str, int], ...] = ()
    fields: tuple[tuple[str, CdlType, tuple[int, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class HeaderAttribute:
    """An attribute: its type, and its values in a row; `char` has one text."""

    name: str
    type: CdlType
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class HeaderVariable:
    """A variable.

    Parameters
    ----------
    name, type, attributes
        Name, type of the values, attributes in their order.
    dimensions
        Path of the dimension of each axis.
    storage
        ``chunked``, ``contiguous``, ``compact`` or another word; empty in formats without a choice.
    chunk_shape, pipeline
        Chunks and filters.
    byteorder
        ``little`` or ``big``; empty if there is none.
    has_no_fill
        Whether values that were never written are undefined.
    codecs
        JSON of the codecs of a Zarr array; empty in other formats.
    """

    name: str
    type: CdlType
    attributes: tuple[HeaderAttribute, ...]
    dimensions: tuple[str, ...]
    storage: str = ""
    chunk_shape: tuple[int, ...] | None = None
    pipeline: Pipeline = field(default_factory=lambda: Pipeline(()))
    byteorder: str = ""
    has_no_fill: bool = False
    codecs: str = ""


@dataclass(frozen=True, slots=True)
class HeaderGroup:
    """A group; `left_out` has the names and reasons of what netCDF's data model cannot express."""

    path: str
    types: tuple[CdlType, ...]
    dimensions: Mapping[str, Dimension]
    variables: tuple[HeaderVariable, ...]
    attributes: tuple[HeaderAttribute, ...]
    groups: tuple[HeaderGroup, ...]
    left_out: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Header:
    """A file.

    Parameters
    ----------
    root
        Its root group.
    kind
        Kind of file, as ``ncdump -k`` calls it.
    hidden
        What netCDF hides among the attributes of the root group, such as ``_NCProperties``: text or numbers by name.
    """

    root: HeaderGroup
    kind: str
    hidden: Mapping[str, str | int]
