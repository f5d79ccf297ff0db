"""Metadata of referenced arrays and of groups, in both versions of Zarr, as xarray reads them, and their JSON."""

from __future__ import annotations

import base64
import json
import math
import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from json.encoder import encode_basestring, encode_basestring_ascii
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tamis.errors import FileError
from tamis.formats.zarr.stored.attributes import DIMENSIONS, FILL, OF_NCZARR, STAND_IN, encoded_float, stand_in
from tamis.rewrite.transfer import UnstorableError
from tamis.stores.data_model import JSON_FORMS, LIST_OF_ONE, json_attribute, json_value

if TYPE_CHECKING:
    from tamis.formats.zarr.codec_choice import Codecs
    from tamis.stores.data_model import AttributeForm

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Described:
    """An array as described by Zarr metadata."""

    path: str  # Path in the hierarchy
    # Of the array; slowest axis first
    shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    dtype: np.dtype[Any]  # Type of the values in the chunks
    fill_value: Any  # Value of chunks that are not stored
    dimensions: tuple[str, ...]  # Name of each axis
    attributes: Mapping[str, Any]  # As readers of netCDF have them
    codecs: Codecs  # What decodes the chunks


_NUMBERS_3 = {"b": "bool", "i": "int{}", "u": "uint{}", "f": "float{}", "c": "complex{}"}
_TEXTS_3 = {"S": "null_terminated_bytes", "U": "fixed_length_utf32"}
_TYPES_3 = _NUMBERS_3 | _TEXTS_3


def has_type(dtype: np.dtype[Any], zarr_format: int) -> bool:
    """Return whether a version of Zarr supports a type: floats of at most 8 bytes, records of plain members."""
    if dtype.names is not None:
        members = [dtype[name] for name in dtype.names]
        plain = all(
            member.names is None and member.kind != "U" and not member.shape and has_type(member, 2)
            for member in members
        )
        return zarr_format == 2 and plain
    known = dtype.kind in _TYPES_3 or (zarr_format == 2 and dtype.kind == "V")
    return known and dtype.itemsize <= {"f": 8, "c": 16}.get(dtype.kind, dtype.itemsize)


def metadata_2(array: Described, absent: int) -> Json:
    """Return the content of ``.zarray``.

    xarray masks values that equal the fill value. So it is null if all chunks are stored, and no attribute marks it as
    missing. Where chunks are absent, null would leave their values undefined: zarr-python 2 returns what was in memory.
    """
    configs = array.codecs.version_2
    is_missing = FILL in array.attributes and _same(array.attributes[FILL], array.fill_value)
    needed = is_missing or absent
    return {
        "zarr_format": 2,
        "shape": [*array.shape],
        "chunks": [*array.chunk_shape],
        "dtype": _type_2(array.dtype),
        "order": "C",
        "fill_value": json_fill(array.fill_value, array.dtype) if needed else None,
        "filters": [*configs[:-1]] or None,
        "compressor": configs[-1] if configs else None,
    }


def attributes_2(array: Described) -> Json:
    """Return the content of ``.zattrs`` of an array."""
    return {**json_attributes(array.path, array.attributes), DIMENSIONS: [*array.dimensions]}


def metadata_3(array: Described) -> Json:
    """Return the content of ``zarr.json`` of an array."""
    if not has_type(array.dtype, 3):
        raise FileError(f"{array.path}: tamis does not write the type {array.dtype} to Zarr 3").at(dataset=array.path)
    if (codecs := array.codecs.version_3) is None:
        raise FileError(f"{array.path}: no codecs of Zarr 3 decode its filters for {array.dtype}").at(
            dataset=array.path
        )
    attributes = json_attributes(array.path, array.attributes)
    attributes.pop(FILL, None)
    if (fill := encoded_fill(array.attributes.get(FILL), array.dtype)) is not None:
        attributes[FILL] = fill
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [*array.shape],
        "data_type": _data_type(array.dtype),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [*array.chunk_shape]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": json_fill(array.fill_value, array.dtype),
        "codecs": [*codecs],
        "attributes": attributes,
        "dimension_names": [*array.dimensions],
        "storage_transformers": [],
    }


def _type_2(dtype: np.dtype[Any]) -> Any:
    """Return a type in Zarr 2: text, or for records a list of names and types."""
    return [[name, _type_2(dtype[name])] for name in dtype.names] if dtype.names else dtype.str


def _data_type(dtype: np.dtype[Any]) -> Any:
    """Return the name of a type in Zarr 3, or its JSON object."""
    name = _TYPES_3[dtype.kind].format(8 * dtype.itemsize)
    return {"name": name, "configuration": {"length_bytes": dtype.itemsize}} if dtype.kind in _TEXTS_3 else name


def json_attributes(
    path: str, attributes: Mapping[str, Any], forms: Mapping[str, AttributeForm] = MappingProxyType({})
) -> Json:
    """Return attributes in types of JSON, bytes as text, without those whose names belong to NCZarr."""
    converted = {}
    for name, value in attributes.items():
        try:
            converted[json_value(name)] = _in_json(value, forms.get(name))
        except ValueError as error:
            raise UnstorableError(
                f"{path}: expected the attribute {name!r} to be numbers or text, which Zarr's JSON has, found"
                f" {value!r:.80}: change or remove it in a copy of the source"
            ).at(dataset=path) from error
    return {name: value for name, value in converted.items() if not name.startswith(OF_NCZARR)}


def _in_json(value: Any, form: AttributeForm | None) -> Any:
    """Return an attribute in types of JSON, by its form, if that is one of JSON."""
    if form is None or form.type not in JSON_FORMS:
        return json_attribute(value)
    if form.type == LIST_OF_ONE:
        items = json_attribute(value)
        return items if isinstance(items, list) else [items]
    try:
        return json.loads(value)
    except (TypeError, ValueError):  # changed since
        return json_attribute(value)


def is_first_of(values: Any, raw: bytes, dtype: np.dtype[Any]) -> bool:
    """Return whether the first value of an attribute is one of a type, given as bytes."""
    first = np.asarray(b"" if values is None else values).reshape(-1)[:1]
    if not first.size or first.dtype.kind not in "iuf" or dtype.kind not in "iuf":
        return values is not None and dtype.kind not in "iuf"
    fill = np.frombuffer(raw, dtype)[0]
    return bool(first[0] == fill or (first[0] != first[0] and fill != fill))


def _same(ours: Any, theirs: Any) -> bool:
    return np.asarray(ours).reshape(-1)[:1].tobytes() == np.asarray(theirs).reshape(-1)[:1].tobytes()


def json_fill(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a fill value as metadata have it."""
    scalar = np.asarray(value, dtype).reshape(())
    if dtype.kind in "SV":
        return base64.standard_b64encode(scalar.tobytes()).decode()
    if dtype.kind in "mM":
        return "NaT" if np.isnat(scalar) else int(scalar.astype("i8"))
    if dtype.kind == "f" and np.isnan(scalar):
        return "NaN"
    if dtype.kind == "f" and np.isinf(scalar):
        return "Infinity" if scalar > 0 else "-Infinity"
    if dtype.kind == "c":
        return [json_fill(part, part.dtype) for part in (scalar.real, scalar.imag)]
    return scalar.item()


def encoded_fill(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return the attribute ``_FillValue`` as xarray writes it for Zarr 3; None if it cannot read it for such values.

    It refuses to open a store with any other: with text for numbers, fractions or NaN for integers, any for characters.
    """
    first = np.asarray(b"" if value is None else value).reshape(-1)[:1]
    if not first.size or first.dtype.kind not in "iufcb":
        return None
    scalar = first[0]
    if dtype.kind == "f" and scalar.dtype.kind in "iuf":
        return encoded_float(scalar)
    if dtype.kind == "c":
        return [encoded_float(part) for part in (scalar.real, scalar.imag)]
    if dtype.kind in "iub" and scalar.dtype.kind in "iufb" and np.isfinite(scalar) and scalar == int(scalar):
        return int(scalar) if -(1 << 63) <= int(scalar) < 1 << 64 else None
    return None


def hides_fill_value(attributes: Mapping[str, Any], dtype: np.dtype[Any]) -> bool:
    """Return whether attributes have a ``_FillValue`` that Zarr 3 cannot have for xarray."""
    return FILL in attributes and encoded_fill(attributes[FILL], dtype) is None


def fill_note(attributes: Mapping[str, Any], dtype: np.dtype[Any]) -> str:
    """Return the note that xarray does not know a fill value in Zarr 3; empty if it knows all."""
    value = attributes.get(FILL)
    if hides_fill_value(attributes, dtype):
        other = stand_in(attributes) if dtype.kind in "OU" else None
        shown = json_attribute(value) if other is None else other
        written = f"its _FillValue {shown!r} is not written as an attribute, because xarray could not"
        if other is not None:
            return f"{written} open such a Zarr 3 store: it is written as {STAND_IN}, and tamis gives it back"
        return f"{written} open such a Zarr 3 store: tamis gives it back, xarray shows such values as they are"
    if value is not None and np.size(value) > 1:
        return f"of its _FillValue {json_attribute(value)!r}, xarray knows only the first value in Zarr 3"
    return ""


class WrittenNumber(float):
    """A number of a JSON document with its text: 1e5 and 100000.0 are the same number, but not the same document."""

    text: str

    def __new__(cls, text: str) -> Self:
        """Return the number of a text."""
        number = super().__new__(cls, text)
        number.text = text
        return number


def exact_json(data: bytes) -> Any:
    """Return the content of a document of JSON, from which `json_text` makes the same numbers, names and order."""
    return json.loads(data, parse_float=WrittenNumber, parse_constant=WrittenNumber)


_ORDER = (
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
    "attributes",
    "dimension_names",
    "zarr_format",
    "consolidated_metadata",
    "node_type",
    "storage_transformers",
)
"""Order of members in the root's document."""


def json_text(value: Any, quoted: Callable[[str], str] = encode_basestring, start: str = "\n") -> str:
    """Return the text of `json.dumps` with an indent of 2, in a fraction of its time; `start` begins a line."""
    if isinstance(value, str):
        return quoted(value)
    inner = f"{start}  "
    if isinstance(value, dict) and value:
        members = [f"{quoted(name)}: {json_text(item, quoted, inner)}" for name, item in value.items()]
        return f"{{{inner}{f',{inner}'.join(members)}{start}}}"
    if isinstance(value, (list, tuple)) and value:
        return f"[{inner}{f',{inner}'.join([json_text(item, quoted, inner) for item in value])}{start}]"
    if isinstance(value, WrittenNumber):
        return value.text
    is_plain = type(value) in (int, list, dict) or (type(value) is float and math.isfinite(value))
    return str(value) if is_plain else json.dumps(value)


def write_json(path: Path, content: Json) -> Json:
    """Write a metadata document, and return it."""
    path.write_bytes(json_text(content).encode())
    return content


def consolidate(root: Path, documents: Mapping[str, Json], own: Collection[str]) -> None:
    """Write documents of Zarr 3, by path, into the root's document, as zarr-python does.

    Members of the documents at the paths `own` get the order that they have there; others keep theirs.
    """
    places = sorted(documents, key=lambda path: (path.count("/"), unicodedata.normalize("NFKC", path).casefold()))
    inner = {path.strip("/"): _with_inner(documents[path], {}, path in own) for path in places if path != "/"}
    document = _with_inner(documents["/"], inner, "/" in own)
    (root / "zarr.json").write_bytes(json_text(document, encode_basestring_ascii).encode())


def _with_inner(document: Json, inner: Json, ordered: bool) -> Json:
    """Return a document, on request with its members in order; a group's includes the documents inside it."""
    if document["node_type"] == "group":
        consolidated = {"kind": "inline", "must_understand": False, "metadata": inner}
        document = {**document, "consolidated_metadata": consolidated}
    known = {name: document[name] for name in _ORDER if ordered and name in document}
    return known | document


def consolidate_2(root: Path, documents: Mapping[str, Json]) -> None:
    """Write documents of Zarr 2, by the path of their file, into the file with all of them."""
    content = {"metadata": {key: documents[key] for key in sorted(documents)}, "zarr_consolidated_format": 1}
    write_json(root / ".zmetadata", content)
