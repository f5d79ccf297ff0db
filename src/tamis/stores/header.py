"""The header of a file in netCDF's enhanced data model, with user-defined types, as CDL describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tamis.pipeline import Pipeline

if TYPE_CHECKING:
    from tamis.stores.data_model import Dimension

USER_FORMS = ("enum", "opaque", "vlen", "compound")
"""Forms of types that users define."""


@dataclass(frozen=True, slots=True)
class CdlType:
    """A type of values."""

    form: str  # ``number``, ``char``, ``string``, or one of `USER_FORMS`
    name: str  # Name in CDL, such as ``float``; of a user-defined type its own
    group: str = ""  # Path of the group of a user-defined type
    nbytes: int = 0  # Bytes of a value
    base: CdlType | None = None  # Type of the numbers of an enum, or of the elements of a vlen
    members: tuple[tuple[str, int], ...] = ()  # Numbers of an enum by name
    # Fields of a compound: name, type, and shape if it is an array
    fields: tuple[tuple[str, CdlType, tuple[int, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class HeaderAttribute:
    """An attribute: its type, and its values in a row; `char` has one text."""

    name: str
    type: CdlType
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class HeaderVariable:
    """A variable."""

    # Name, type of the values, attributes in their order
    name: str
    type: CdlType
    attributes: tuple[HeaderAttribute, ...]
    dimensions: tuple[str, ...]  # Path of the dimension of each axis
    storage: str = ""  # ``chunked``, ``contiguous``, ``compact`` or another word; empty in formats without a choice
    chunk_shape: tuple[int, ...] | None = None
    pipeline: Pipeline = field(default_factory=lambda: Pipeline(()))
    byteorder: str = ""  # ``little`` or ``big``; empty if there is none
    has_no_fill: bool = False  # Whether values that were never written are undefined
    codecs: str = ""  # JSON of the codecs of a Zarr array; empty in other formats


@dataclass(frozen=True, slots=True)
class HeaderGroup:
    """A group; `left_out` has names and reasons of items that netCDF's data model cannot express."""

    path: str
    types: tuple[CdlType, ...]
    dimensions: Mapping[str, Dimension]
    variables: tuple[HeaderVariable, ...]
    attributes: tuple[HeaderAttribute, ...]
    groups: tuple[HeaderGroup, ...]
    left_out: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Header:
    """A file."""

    root: HeaderGroup
    kind: str  # Kind of file, as ``ncdump -k`` calls it
    # Hidden attributes of netCDF's root group, such as ``_NCProperties``: text or numbers by name
    hidden: Mapping[str, str | int]
