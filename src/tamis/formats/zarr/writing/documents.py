"""The metadata of a copy, made from those of its source: what nobody asked to change stays as it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from tamis.formats.zarr.array_metadata import Json, encoded_fill, exact_json, hides_fill_value, json_attributes
from tamis.formats.zarr.stored.attributes import (
    DIMENSIONS,
    FILL,
    HIDDEN,
    STAND_IN,
    Types,
    dimension_names,
    stand_in,
    types_of,
    with_hidden_fill,
    with_types_of,
)
from tamis.formats.zarr.stored.attributes import NAME as TYPES
from tamis.formats.zarr.stored.hierarchy import Document, in_usual_spelling
from tamis.stores.data_model import AttributeForm

_OF_CHUNKS = {
    2: ("chunks", "dtype", "order", "filters", "compressor", "dimension_separator"),
    3: ("chunk_grid", "chunk_key_encoding", "codecs"),
}
"""Members of the metadata of an array that say how its chunks are stored, by version of the format."""

_SEPARATOR: dict[int, Json] = {2: {"dimension_separator": "."}, 3: {}}
"""The separator of the numbers in names of new chunks, for documents that have a member for it."""

_OF_VALUES = {2: ("dtype", "fill_value"), 3: ("data_type", "fill_value")}
"""Members about the values, which stay as they are unless the values get another type."""


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """The metadata of an array or a group from which those of its copy are made."""

    zarr_format: int
    content: Json = field(repr=False)  # All but the attributes, with numbers as they are written
    attributes: Json = field(repr=False)
    shape: tuple[int, ...] = ()  # Of an array

    @classmethod
    def of(cls, document: object) -> Self | None:
        """Return the metadata in a document of Zarr; None for anything else."""
        if not isinstance(document, Document):
            return None
        parsed = {name: exact_json(data) for name, data in document.files.items()}
        if document.zarr_format == 3:
            content = parsed.get("zarr.json", document.content)
            attributes = content.get("attributes", document.attributes)
        else:
            name = ".zarray" if document.is_array else ".zgroup"
            content, attributes = parsed.get(name, document.content), parsed.get(".zattrs", document.attributes)
        without = {name: value for name, value in content.items() if name != "consolidated_metadata"}
        return cls(document.zarr_format, without, dict(attributes), document.shape or ())

    @property
    def dimensions(self) -> list[str | None]:
        """The name of each axis; None for one without a name."""
        names = self.content.get("dimension_names") if self.zarr_format == 3 else None
        return [*dimension_names(names, self.attributes, self.shape)]

    def described(self, new: Json, zarr_format: int, *, retyped: bool) -> Json:
        """Return the metadata of an array, from those that it would have without a source.

        Parameters
        ----------
        new
            The metadata without a source.
        zarr_format
            Version of the format.
        retyped
            Whether the values got another type or fill value.
        """
        if zarr_format == self.zarr_format:
            new = _SEPARATOR[zarr_format] | new
            changed = [*_OF_CHUNKS[zarr_format]]
            if retyped:
                changed += _OF_VALUES[zarr_format]
            if in_usual_spelling(self.content).get("dtype") == new.get("dtype"):
                # It stays, because netCDF-C reads characters by its own spelling only.
                changed = [name for name in changed if name != "dtype"]
            content = {name: new[name] if name in changed else value for name, value in self.content.items()}
            return content | {name: new[name] for name in changed if name not in content and name not in _SEPARATOR[2]}
        if zarr_format == 2:
            return new
        without = {name: value for name, value in new.items() if name != "dimension_names"}
        names = self.dimensions  # A scalar has none, and xarray needs the empty list
        return without | ({"dimension_names": names} if any(names) or not names else {})


@dataclass(frozen=True, slots=True)
class Attributes:
    """The attributes of an array or a group of the target."""

    path: str
    values: Mapping[str, Any]  # As readers of netCDF have them
    forms: Mapping[str, AttributeForm]
    source: SourceDocument | None = None
    before: Mapping[str, Any] = field(default_factory=dict)  # Those of the source
    known_types: Collection[str] = ()  # Names of attributes whose types the source records
    dtype: np.dtype[Any] | None = None  # Of the values of an array; of objects for texts

    @property
    def _changed(self) -> list[str]:
        """Names of attributes that are not those of the source, in their order."""
        return [
            name for name, value in self.values.items() if name not in self.before or value is not self.before[name]
        ]

    def types(self) -> Types:
        """Return the types to record: all, or, for a copy, those that its source records, and new ones."""
        types = types_of(self.values, self.forms)
        if self.source is None:
            return types
        recorded = {*self.known_types, *self._changed}
        return {name: kind for name, kind in types.items() if name in recorded}

    def types_of_others(self, zarr_format: int) -> Types:
        """Return the types that a copy must record in addition to those in its source."""
        types = self.types()
        if self.keeps_document(zarr_format):
            changed = self._changed
            return {name: kind for name, kind in types.items() if name in changed}
        if zarr_format == 3 and self.dtype is not None and hides_fill_value(self.values, self.dtype):
            return with_hidden_fill(types, self.values[FILL], has_stand_in=self._stand_in is not None)
        return types

    @property
    def _stand_in(self) -> str | list[str] | None:
        """What stands for the ``_FillValue`` of texts in Zarr 3, where xarray cannot read it."""
        is_text = self.dtype is not None and self.dtype.kind in "OU"
        return stand_in(self.values) if is_text else None

    def keeps_document(self, zarr_format: int) -> bool:
        """Return whether the attributes are those of a document of the same version of the format."""
        return self.source is not None and self.source.zarr_format == zarr_format

    def in_json(self, zarr_format: int) -> Json:
        """Return the attributes as the document has them, without types and names of axes, except those kept."""
        if self.source is None:
            return self._converted(self.values, zarr_format)
        changed = self._converted({name: self.values[name] for name in self._changed}, zarr_format)
        removed = self.before.keys() - self.values.keys()
        kept = {name: value for name, value in self.source.attributes.items() if name not in removed}
        if not self.keeps_document(zarr_format):
            hidden: tuple[str, ...] = (*HIDDEN, DIMENSIONS)
            if STAND_IN not in self.before:
                hidden = (*hidden, STAND_IN)
            kept = {name: value for name, value in kept.items() if name != FILL and not name.startswith(hidden)}
            if FILL in self.values:
                changed |= self._converted({FILL: self.values[FILL]}, zarr_format)
        return kept | changed

    def _converted(self, values: Mapping[str, Any], zarr_format: int) -> Json:
        converted = json_attributes(self.path, values, self.forms)
        if zarr_format == 3 and self.dtype is not None and FILL in values:
            fill = encoded_fill(values[FILL], self.dtype)
            if fill is None:
                del converted[FILL]
            else:
                converted[FILL] = fill
            if (text := self._stand_in) is not None:
                converted[STAND_IN] = text
        return converted


def with_types(attributes: Json, own: Types, arrays: Mapping[str, Types] | None = None) -> Json:
    """Return attributes with types beside those that are recorded among them."""
    new = with_types_of(own, arrays)
    known = attributes.get(TYPES)
    if not new or not isinstance(known, dict):
        return attributes | new
    both = {**known}
    for name, types in new[TYPES].items():
        inner = both.get(name)
        both[name] = {**inner, **types} if isinstance(inner, dict) else types
    return attributes | {TYPES: both}


def with_arrays(attributes: Json, names: Collection[str]) -> Json:
    """Return the attributes of a group, with those of its arrays, where NCZarr lists them, that have these names."""
    about = attributes.get("_nczarr_group")
    listed = about.get("arrays") if isinstance(about, dict) else None
    if not isinstance(about, dict) or not isinstance(listed, list):
        return attributes
    return attributes | {"_nczarr_group": about | {"arrays": [name for name in listed if name in names]}}
