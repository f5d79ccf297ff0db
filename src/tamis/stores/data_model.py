"""The data model of netCDF, for files of any format: variables, dimensions and attributes by name."""

from __future__ import annotations

import binascii
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from json import dumps
from typing import Any, NamedTuple, Protocol

import numpy as np

from tamis.formatting import printable, shortened
from tamis.pipeline import Pipeline


class Dimension(NamedTuple):
    """A dimension of a group."""

    size: int  # Number of elements; of an unlimited dimension, the largest extent of its variables
    is_unlimited: bool | None = False  # Whether it may grow; None if the format does not say

    def __str__(self) -> str:
        return f"{self.size}, unlimited" if self.is_unlimited else str(self.size)


class EnumType(NamedTuple):
    """A named enumeration: name, and numbers by member."""

    name: str
    members: Mapping[str, int]


class AttributeForm(NamedTuple):
    """Storage of an attribute, if it does not follow from the value."""

    # Type of the values: of numbers as NumPy has it, with members of an enumeration; of texts their length, character
    # set and end; of lists of varying length, that of their items and []
    type: str
    shape: tuple[int, ...] | None  # Extents; None for an attribute without a value


JSON_TEXT = "json"
"""Type of an attribute with a value that is text in other formats than JSON."""

LIST_OF_ONE = "list"
"""Type of an attribute with a list of one item, which other formats do not tell from the item."""

JSON_FORMS = (JSON_TEXT, LIST_OF_ONE)

JSON_MARK = "_json_attributes"
"""The attribute of HDF5 that names such attributes of its object: an object of JSON with their types by name."""

LATIN_1 = "latin-1"
"""The character set as which texts are read that are not UTF-8: all bytes are characters of it."""


def decoded(raw: bytes) -> str:
    """Return text in UTF-8, or that before the first zero: C programs store what was in memory after the end."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        end = raw.find(b"\0")
        if end < 0:
            raise
        return raw[:end].decode()


def json_attribute(value: Any) -> Any:
    """Return `json_value`, with texts in Latin-1 if they are not UTF-8."""
    try:
        return json_value(value)
    except UnicodeDecodeError:
        return json_value(value, LATIN_1)


def is_latin_1(value: Any) -> bool:
    """Return whether `json_attribute` reads texts as Latin-1."""
    if isinstance(value, str) or (isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "iufcbU"):
        return False
    try:
        json_value(value)
    except ValueError as error:
        return isinstance(error, UnicodeDecodeError)
    return False


def json_value(value: Any, charset: str = "utf-8") -> Any:
    """Return an attribute in types of JSON: records as objects, complex numbers as pairs, opaque values in base64.

    Texts that are bytes are in a character set. ValueError, which includes Unicode's errors, if there are none.
    """
    if isinstance(value, np.longdouble):  # NumPy has no type of Python for it
        if value == value and float(value) != value:
            raise ValueError(f"expected a value that float64 can hold, got {value} of {value.dtype}")
        return float(value)
    if isinstance(value, (np.ndarray, np.generic)):
        if value.dtype.kind == "c":
            return json_value(np.stack((value.real, value.imag), -1), charset)
        if value.dtype.kind not in "VmM":
            return json_value(value.tolist(), charset)
        if isinstance(value, np.ndarray):
            return [json_value(item, charset) for item in value] if value.ndim else json_value(value[()], charset)
        if isinstance(value, np.void) and value.dtype.names:
            return {json_value(name): json_value(value[name], charset) for name in value.dtype.names}
        return binascii.b2a_base64(value.tobytes(), newline=False).decode()
    if isinstance(value, (list, tuple)):
        return [json_value(item, charset) for item in value]
    if isinstance(value, bytes):
        return value.decode(charset) if charset == LATIN_1 else decoded(value)
    if isinstance(value, str):
        return value.encode().decode()  # h5py gives text in other encodings as lone surrogates
    if value is None or isinstance(value, (bool, int, float)):
        return value
    raise ValueError(f"expected a value that JSON can hold, got {type(value).__name__}")


def text_of_json(value: Any) -> str | None:
    """Return what readers of JSON have for an attribute whose values have no type there; None for any other."""
    if not isinstance(value, (np.ndarray, np.generic)) or value.dtype.kind in "SU" or not value.size:
        return None
    if value.dtype.kind not in "VmMOb" and value.ndim < 2:
        return None
    try:
        content = json_attribute(value)
    except ValueError:
        return None
    return content if isinstance(content, str) else dumps(content)


NUMBERS = frozenset(("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"))
"""The numbers of netCDF, as NumPy calls them without a byte order."""


def recoded_text(name: str, value: Any) -> str:
    """Return the note that the text of an attribute, which is not UTF-8, is Latin-1 in Zarr."""
    text = shortened(dumps(json_attribute(value), ensure_ascii=False))
    return f"attribute {name!r} is not UTF-8: as Latin-1 in Zarr, {text}"


def is_compound(dtype: np.dtype[Any]) -> bool:
    """Return whether values are complex numbers or records of numbers, which are compound types in netCDF-4."""
    if dtype.kind == "c":
        return dtype.itemsize <= 16
    return bool(dtype.names) and all(dtype[name].base.str[1:] in NUMBERS for name in dtype.names or ())


def compound_words(dtype: np.dtype[Any]) -> str:
    """Describe complex numbers or records of numbers in words, as for an HDF5 dataset."""
    if dtype.kind == "c":
        part = f"float{4 * dtype.itemsize}"
        return f"compound {{r: {part}, i: {part}}}"
    members = []
    for name in dtype.names or ():
        shape = f"array {dtype[name].shape} of " if dtype[name].shape else ""
        members.append(f"{name}: {shape}{dtype[name].base.name}")
    return f"compound {{{', '.join(members)}}}"


def shown(attributes: Mapping[str, Any], json: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes, those of JSON as they are there."""
    return {name: json.get(name, value) for name, value in attributes.items()}


class Translation(NamedTuple):
    """A thing that a file of another format does not have, or has in another form."""

    path: str
    kind: str  # Its row in a table of `tamis.stores.translation`
    text: str  # The thing in words
    is_lost: bool = True  # Whether it is left out; otherwise the text also says what it becomes

    def as_plan(self) -> str:
        """Return what a copy does to it."""
        loss = ": left out" if self.is_lost else ""
        return printable(f"{self.path}: {self.text}{loss}")

    def as_finding(self) -> str:
        """Return what a comparison found about it, without its path."""
        return f"{self.text} is left out" if self.is_lost else self.text


def is_fixed_text(dtype: np.dtype[Any] | None) -> bool:
    """Return whether values are texts of a fixed length of more than one byte, which netCDF lacks."""
    return dtype is not None and dtype.kind == "S" and dtype.itemsize > 1


@dataclass(frozen=True, slots=True)
class NamedArray:
    """A variable of a group."""

    path: str  # Absolute path of its array in the file, with which the file gives the values
    dimensions: tuple[str, ...]  # Name of the dimension of each axis, slowest first
    shape: tuple[int, ...]  # Sizes of the dimensions
    # Shape of the array, smaller than `shape` where an unlimited dimension grew without it
    stored_shape: tuple[int, ...]
    dtype: np.dtype[Any]  # Type of the values; ``str`` values are objects
    fill_value: Any  # The value of elements that were never written
    # Attributes as readers of netCDF have them: text as `str`, one number without an axis, no internal ones
    attributes: Mapping[str, Any]
    chunk_shape: tuple[int, ...] | None  # Chunk shape; None if there are no chunks
    pipeline: Pipeline  # Filters with stored parameters
    enum: EnumType | None = None  # The enumeration of the values, if it has a name
    # Forms of the attributes that do not follow from their values, by name
    forms: Mapping[str, AttributeForm] = field(default_factory=dict)
    # Attributes that differ for readers of the format from those for readers of netCDF: values of JSON
    json: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shown(self) -> dict[str, Any]:
        """The attributes as readers of the format have them."""
        return shown(self.attributes, self.json)

    @property
    def is_text(self) -> bool:
        """True if the values are texts of varying length, or of NumPy's characters."""
        metadata = self.dtype.metadata
        is_varying = self.dtype.kind == "O" and metadata is not None and metadata.get("vlen") in (str, bytes)
        return self.dtype.kind == "U" or is_varying

    def with_attributes(self, new: Mapping[str, Any]) -> NamedArray:
        """Return the variable with other attributes, whose forms follow from their values; without those of None."""
        attributes = {name: value for name, value in {**self.attributes, **new}.items() if value is not None}
        return replace(
            self,
            attributes=attributes,
            forms={name: form for name, form in self.forms.items() if name not in new},
            json={name: value for name, value in self.json.items() if name not in new},
        )


@dataclass(frozen=True, slots=True)
class NamedGroup:
    """A group of a file."""

    path: str
    dimensions: Mapping[str, Dimension]  # Its own dimensions by name, without those of enclosing groups
    variables: Mapping[str, NamedArray]  # Variables by name, in the order of the file
    attributes: Mapping[str, Any]  # As those of a variable
    left_out: Mapping[str, str]  # Arrays that are not variables, by name, with the reason
    # As those of a variable; a form without an attribute belongs to one that has no meaning in other formats
    forms: Mapping[str, AttributeForm] = field(default_factory=dict)
    lost: Sequence[Translation] = ()  # What has no form in netCDF's data model
    json: Mapping[str, Any] = field(default_factory=dict)  # As those of a variable
    # The metadata of the group in the format, for a target of the same format; None if it has none to copy
    document: object = None

    @property
    def shown(self) -> dict[str, Any]:
        """The attributes as readers of the format have them."""
        return shown(self.attributes, self.json)


def own_name(name: str, extent: int) -> str:
    """Return the name of a dimension of its own for an axis of Zarr, where others with its name have other lengths."""
    return f"{name}_{extent}"


def is_own_name(other: str, name: str, extent: int) -> bool:
    """Return whether a dimension has that name, or one that differs because it was taken."""
    return other.rstrip("_") == own_name(name, extent)


class DataModel(Protocol):
    """A file in netCDF's data model."""

    @property
    def kind(self) -> str:
        """The kind of netCDF file, as ``ncdump -k`` calls it."""
        ...

    @property
    def is_loose(self) -> bool:
        """True if numbers of attributes have no types, and dimensions exist only as names of axes."""
        ...

    def group(self, path: str) -> NamedGroup:
        """Return the group at a path."""

    def group_paths(self, path: str = "/") -> list[str]:
        """Return the paths of a group and of the groups in it, each once."""

    def extras(self) -> Iterable[Translation]:
        """Yield parts of the file that belong to no group and have no form in other formats."""
        ...


def groups_by_parent(paths: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Return the paths of groups by the path of the group that they are in."""
    inner: dict[str, list[str]] = {}
    for path in paths:
        if path != "/":
            inner.setdefault(posixpath.dirname(path), []).append(path)
    return inner
