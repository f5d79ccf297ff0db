"""A Zarr hierarchy in a local folder as a store of arrays; see `tamis.stores.protocols.Store`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tamis import meaning
from tamis.errors import FileError, MissingFilterError
from tamis.formats.zarr.stored.array import ZarrArray, check_sizes
from tamis.formats.zarr.stored.attributes import NAME as TYPES
from tamis.formats.zarr.stored.attributes import (
    Types,
    dimension_names,
    json_forms,
    json_values,
    known_forms,
    known_types,
    netcdf_attributes,
    variable_of,
)
from tamis.formats.zarr.stored.hierarchy import (
    Document,
    files_of,
    has_own_codecs,
    hierarchy_of,
    opened,
    quietly,
    store_path,
)
from tamis.formats.zarr.stored.refused import RefusedArray
from tamis.lazy_property import lazy_property
from tamis.library_lock import imported
from tamis.remote.address import Address
from tamis.safety.disk import nbytes_of
from tamis.safety.library_errors import disk_text
from tamis.stores.arrays import ListedStore
from tamis.stores.data_model import Dimension, NamedArray, NamedGroup, shown
from tamis.stores.header import Header, header_of


def check_installed(label: object, *others: str) -> None:
    """Raise MissingFilterError if zarr, numcodecs or another package is not installed; names the extra."""
    for name in ("zarr", "numcodecs", *others):
        try:
            imported(name)
        except ImportError as error:
            extra = name if name in others else "zarr"
            raise MissingFilterError(
                f"{label}: expected the package {name}, found no {error.name}: pip install 'tamis[{extra}]'"
            ) from error


Stored = ZarrArray | RefusedArray
"""An array that zarr-python opens, or one that it does not know."""


class ZarrStore(ListedStore[Stored]):
    """A folder for reading, through zarr-python."""

    is_loose = True
    reader_words = "Zarr"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path if isinstance(path, Address) else os.fsdecode(path).rstrip("/") or "/"
        check_installed(self.path)
        try:
            is_remote = isinstance(self.path, Address)
            documents, consolidated = hierarchy_of(files_of(self.path), prefer_consolidated=is_remote)
            for document in documents.values():
                if not document.is_array:
                    _check_group(document)
        except Exception as error:  # zarr-python's stores raise many kinds
            raise self._refusal(error) from error
        self._groups: dict[str, Document | None] = {
            f"/{path}": document for path, document in documents.items() if not document.is_array
        }
        self._groups = self._groups or {"/": None}
        arrays = {
            f"/{path or Path(self.path).stem}": document for path, document in documents.items() if document.is_array
        }
        self._arrays = self._opened(arrays)
        readable = {path: array for path, array in self._arrays.items() if isinstance(array, ZarrArray)}
        for path, array in readable.items():
            array.arrays, array.is_consolidated = readable, path.strip("/") in consolidated
            group = self._groups.get(path.rpartition("/")[0] or "/")
            array.group_types = None if group is None else group.attributes.get(TYPES)

    def _opened(self, documents: Mapping[str, Document]) -> dict[str, Stored]:
        """Return the arrays by path; one that cannot be opened has a problem, unless it is all there is."""
        place = store_path(self.path)
        known: dict[str, Any] = {}
        with quietly():
            for path, document in documents.items():
                try:
                    known[path] = opened(place, document)
                    check_sizes(known[path], document)
                except Exception as error:  # zarr-python raises many kinds for metadata that it does not know
                    if not document.path:
                        raise self._refusal(error) from error
                    known[path] = error
        names = _named_axes(documents, known)
        stored = {
            path: self._stored(place, path, number, names[path], documents[path], known[path])
            for number, path in enumerate(documents)
        }
        _rename_axes([array for array in stored.values() if isinstance(array, ZarrArray)])
        return stored

    def _stored(
        self, place: Any, path: str, number: int, dimensions: tuple[str, ...], document: Document, known: Any
    ) -> Stored:
        """Return an array, by that of zarr-python or its error."""
        if isinstance(known, Exception):
            return RefusedArray(self.path, path, number, dimensions, document, known)
        folder: Path | Address = self.path if isinstance(self.path, Address) else Path(self.path)
        folder = folder / document.path if document.path else folder
        open_stock = partial(opened, place, document, stock=True) if has_own_codecs(document) else None
        array = ZarrArray(self.path, path, number, dimensions, known, folder, open_stock)
        array.document = document
        return array

    def _refusal(self, error: Exception) -> FileError:
        reason = f"{error.filename}: {disk_text(error)}" if isinstance(error, OSError) and error.filename else error
        text = f"{self.path}: its Zarr metadata cannot be read: {reason}"
        return FileError(text).at(path=self.path)

    @lazy_property
    def nbytes(self) -> int:
        """Bytes of all files."""
        return nbytes_of(self.path)

    @lazy_property
    def roles(self) -> Mapping[str, meaning.Role]:
        """The role of each array by path."""
        variables = (
            variable_of(path, array.shape or (), array.number_type, array.dimensions, array.attributes)
            for path, array in self._arrays.items()
        )
        return meaning.roles_of(variables, {path: self.group_attributes(path) for path in self._groups})

    def group_attributes(self, path: str) -> dict[str, Any]:
        """Return the attributes of a group."""
        group = self._groups[path]
        if group is None:
            return {}
        return netcdf_attributes(group.attributes, None, group.zarr_format, self._attribute_types(path))

    def public_group_attributes(self, path: str) -> dict[str, Any]:
        """Return the attributes of a group as readers of Zarr have them."""
        return shown(self.group_attributes(path), self._json_values(path))

    def _json_values(self, path: str) -> dict[str, Any]:
        group = self._groups[path]
        if group is None:
            return {}
        return json_values(group.attributes, self.group_attributes(path), self._attribute_types(path))

    def _attribute_types(self, path: str) -> Types:
        group = self._groups[path]
        return {} if group is None else known_types(group.attributes.get(TYPES))

    @property
    def kind(self) -> str:
        """The format."""
        return "Zarr"

    def header(self) -> Header:
        """Return variables, dimensions, attributes and codecs as CDL describes them."""
        codecs = {
            path: json.dumps(array.codecs, default=str)
            for path, array in self._arrays.items()
            if isinstance(array, ZarrArray)
        }
        return header_of(self, self._arrays, codecs)

    def group(self, path: str) -> NamedGroup:
        """Return a group with its dimensions, whose sizes are those of the arrays; see `DataModel`."""
        path = f"/{path.strip('/')}"
        if path not in self._groups:
            raise FileError(f"{self.path}: expected a group at {path!r}, found none")
        own = self._arrays_by_group.get(path, {})
        dimensions: dict[str, Dimension] = {}
        variables: dict[str, NamedArray] = {}
        left_out: dict[str, str] = {}
        renamed: dict[str, str] = {}
        for array_path, array in own.items():
            name = array_path.rpartition("/")[2]
            if isinstance(array, RefusedArray):
                left_out[name] = array.problem
                continue
            self._add_dimensions(path, array, dimensions)
            renamed |= array.renamed
            if array.varies and not array.is_text:
                left_out[name] = "expected numbers, characters or text, got objects"
            elif array_path not in self._hidden:
                variables[name] = array.named()
        attributes, types, document = self.group_attributes(path), self._attribute_types(path), self._groups[path]
        stored = {} if document is None else document.attributes
        return NamedGroup(
            path,
            dimensions,
            variables,
            attributes,
            left_out,
            known_forms(types) | json_forms(stored, attributes, types),
            renamed_axes=renamed,
            json=self._json_values(path),
            document=document,
        )

    def _add_dimensions(self, path: str, array: ZarrArray, dimensions: dict[str, Dimension]) -> None:
        """Add the dimensions of an array to those of its group, unless an enclosing group has them in their size."""
        for name, extent in zip(array.dimensions, array.shape, strict=True):
            known = self._dimension_around(path, name)
            if known is None or known.size != extent:
                dimensions[name] = Dimension(extent, is_unlimited=None)

    @lazy_property
    def _arrays_by_group(self) -> Mapping[str, Mapping[str, Stored]]:
        """The arrays of each group, by the paths of both."""
        groups: dict[str, dict[str, Stored]] = {}
        for path, array in self._arrays.items():
            groups.setdefault(path.rpartition("/")[0] or "/", {})[path] = array
        return groups

    @lazy_property
    def _hidden(self) -> frozenset[str]:
        """The paths of companions."""
        return frozenset(companion.path for companion, _ in self.arrays.companions())

    def _dimension_around(self, path: str, name: str) -> Dimension | None:
        """Return the dimension of that name in the enclosing groups: that of the variable with this name."""
        while path != "/":
            path = path.rpartition("/")[0] or "/"
            scale = self._arrays.get(f"{path.rstrip('/')}/{name}")
            if isinstance(scale, ZarrArray) and scale.dimensions == (name,):
                return Dimension(scale.shape[0], is_unlimited=None)
        return None

    def group_paths(self, path: str = "/") -> list[str]:
        """Return the paths of a group and of the groups in it."""
        top = f"/{path.strip('/')}"
        return [known for known in self._groups if known == top or known.startswith(f"{top.rstrip('/')}/")]


def _check_group(document: Document) -> None:
    """Raise an error unless the metadata of a group can be read."""
    if document.problem:
        raise ValueError(f"{document.file}: {document.problem}")
    if not isinstance(document.attributes, dict):
        raise TypeError(f"/{document.path}: expected the attributes to be an object, found {document.attributes!r:.80}")


def _named_axes(documents: Mapping[str, Document], known: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the names of the axes of all arrays; unnamed axes get one from their length, as in netCDF-C.

    `known` has the arrays of zarr-python, or its errors.
    """
    phony: dict[tuple[str, int, int], str] = {}
    names: dict[str, tuple[str, ...]] = {}
    for path, document in documents.items():
        group, counts, array = path.rpartition("/")[0], dict[int, int](), known[path]
        if isinstance(array, Exception):
            names[path] = ()
            continue
        listed = getattr(array.metadata, "dimension_names", None) if document.zarr_format == 3 else None
        axes = []
        for name, extent in zip(dimension_names(listed, dict(array.attrs), array.shape), array.shape, strict=True):
            if name is not None:
                axes.append(name)
                continue
            counts[extent] = counts.get(extent, 0) + 1
            axes.append(phony.setdefault((group, extent, counts[extent]), f"phony_dim_{len(phony)}"))
        names[path] = tuple(axes)
    return names


def _rename_axes(arrays: Sequence[ZarrArray]) -> None:
    """Give axes of one name and several lengths in a group names of their own: in netCDF, a name has one length.

    The axis of the variable with that name keeps it, or that of an enclosing group's, or else the first one. The
    others get their length behind the name, such as ``y_32``.
    """
    scales = {array.path: array.shape[0] for array in arrays if array.dimensions == (array.path.rpartition("/")[2],)}
    groups: dict[str, list[ZarrArray]] = {}
    for array in arrays:
        groups.setdefault(array.path.rpartition("/")[0], []).append(array)
    for group, own in groups.items():
        lengths: dict[str, dict[int, None]] = {}
        for array in own:
            for name, extent in zip(array.dimensions, array.shape, strict=True):
                lengths.setdefault(name, {})[extent] = None
        taken = {*lengths, *(array.path.rpartition("/")[2] for array in own)}
        others = {name: _other_names(group, name, [*known], scales, taken) for name, known in lengths.items()}
        for array in own:
            array.rename_axes(others)


def _other_names(
    group: str, name: str, lengths: list[int], scales: Mapping[str, int], taken: set[str]
) -> dict[int, str]:
    """Return the names of the axes of a name in a group that must get another one, by length."""
    kept = _length_around(group, name, lengths, scales)
    names = {}
    for length in lengths:
        if length == kept:
            continue
        other = f"{name}_{length}"
        while other in taken:
            other += "_"
        taken.add(other)
        names[length] = other
    return names


def _length_around(group: str, name: str, lengths: list[int], scales: Mapping[str, int]) -> int:
    """Return that length of an axis, of several in a group, which the nearest variable of its name has."""
    while True:
        if (known := scales.get(f"{group}/{name}")) in lengths:
            return known
        if not group:
            return lengths[0]
        group = group.rpartition("/")[0]
