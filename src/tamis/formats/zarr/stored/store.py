"""A Zarr hierarchy, in a local folder or elsewhere, as a store of arrays; see `tamis.stores.protocols.Store`."""

from __future__ import annotations

import json
import os
from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from tamis import meaning
from tamis.errors import FileError, located
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
    extra_files,
    files_of,
    has_own_codecs,
    hierarchy_of,
    opened,
    quietly,
    store_path,
)
from tamis.formats.zarr.stored.refused import RefusedArray
from tamis.lazy_property import lazy_property
from tamis.optional import optional
from tamis.remote.address import Address
from tamis.remote.file import can_list
from tamis.safety.disk import nbytes_of
from tamis.safety.library_errors import disk_text
from tamis.stores.arrays import ListedStore
from tamis.stores.data_model import Dimension, NamedArray, NamedGroup, Translation, shown
from tamis.stores.header import Header, header_of


def check_installed(label: object, *others: str) -> None:
    """Raise MissingFilterError if zarr, numcodecs or another package cannot be imported; says what to do."""
    for name in ("zarr", "numcodecs", *others):
        extra = name if name in others else "zarr"
        with located(str(label)):
            optional(name, f"needs the package {name}, which is not installed: pip install 'tamis[{extra}]'")


Stored = ZarrArray | RefusedArray
"""An array that zarr-python opens, or one that it does not know."""


class ZarrStore(ListedStore[Stored]):
    """A hierarchy for reading, through zarr-python."""

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
        self._metadata_nbytes = sum(len(data) for known in documents.values() for data in known.files.values())
        arrays = {
            f"/{path or Path(self.path).stem}": document for path, document in documents.items() if document.is_array
        }
        self._arrays = self._opened(arrays)
        self._array_folders = {document.path or "." for document in documents.values() if document.is_array}
        self._floats: dict[str, str] = {}  # Why packed arrays stay arrays of floats, by path: see `take_codes`
        # By path of a group: its dimensions, and those of the groups around it.
        self._dimensions: dict[str, dict[str, Dimension]] = {}
        self._around: dict[str, ChainMap[str, Dimension]] = {}
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
        return {
            path: self._stored(place, path, number, names[path], documents[path], known[path])
            for number, path in enumerate(documents)
        }

    def _stored(
        self, place: Any, path: str, number: int, dimensions: tuple[str, ...], document: Document, known: Any
    ) -> Stored:
        """Return an array, made from that of zarr-python, or from its error."""
        if isinstance(known, Exception):
            return RefusedArray(self.path, path, number, dimensions, document, known)
        folder: Path | Address = self.path if isinstance(self.path, Address) else Path(self.path)
        folder = folder / document.path if document.path else folder
        differs = document.is_odd or has_own_codecs(document)  # from what zarr-python makes of the stored metadata
        open_stock = partial(opened, place, document, stock=True) if differs else None
        array = ZarrArray(self.path, path, number, dimensions, known, folder, open_stock)
        array.document = document
        array.open_integers = partial(_opened_quietly, place)
        return array

    def take_codes(self) -> None:
        """Treat arrays that codecs pack as the integers that they store; see `Store.take_codes`."""
        packed = {
            path: (array, array.packed.codecs)
            for path, array in self._arrays.items()
            if isinstance(array, ZarrArray) and array.packed is not None
        }
        if not packed:
            return
        from tamis.formats.zarr.stored.packed_view import packed_view  # late: most stores have none

        arrays = dict(self._arrays)
        for path, (array, codecs) in packed.items():
            view = packed_view(array, codecs)
            if isinstance(view, str):
                self._floats[path] = view
            else:
                arrays[path] = view
        self._arrays = arrays

    def _refusal(self, error: Exception) -> FileError:
        reason = f"{error.filename}: {disk_text(error)}" if isinstance(error, OSError) and error.filename else error
        text = f"{self.path}: its Zarr metadata cannot be read: {reason}"
        return FileError(text).at(path=self.path)

    @lazy_property
    def nbytes(self) -> int:
        """Bytes of all files; where a web server does not list them, of the metadata, and of the chunks it tells."""
        if not isinstance(self.path, Address) or can_list(self.path):
            return nbytes_of(self.path)
        total = self._metadata_nbytes
        for array in self._arrays.values():
            with suppress(FileError):  # it has too many chunks to ask for each
                total += array.stored_nbytes
        return total

    @lazy_property
    def roles(self) -> Mapping[str, meaning.Role]:
        """The role of each array by path."""
        variables = (
            variable_of(path, array.shape or (), array.type.numbers, array.dimensions, array.attributes)
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
        own, dimensions = self._arrays_by_group.get(path, {}), self._dimensions_of(path)
        variables: dict[str, NamedArray] = {}
        left_out: dict[str, str] = {}
        for array_path, array in own.items():
            name = array_path.rpartition("/")[2]
            if isinstance(array, RefusedArray):
                left_out[name] = array.storage.problem
                continue
            if array.type.varies and not array.is_text:
                left_out[name] = "expected numbers, characters or text, got objects"
            elif array_path not in self._hidden:
                variables[name] = array.named()
        attributes, types = self.group_attributes(path), self._attribute_types(path)
        document = self._groups[path]
        stored = {} if document is None else document.attributes
        return NamedGroup(
            path=path,
            dimensions=dimensions,
            variables=variables,
            attributes=attributes,
            left_out=left_out,
            lost=tuple(
                Translation(array_path, "packed codecs", text, is_lost=False)
                for array_path, array in own.items()
                if (text := self._packed_text(array_path, array))
            ),
            forms=known_forms(types) | json_forms(stored, attributes, types),
            json=self._json_values(path),
            document=document,
        )

    def _packed_text(self, path: str, array: Stored) -> str:
        """Return what becomes in other formats of an array that codecs pack; empty for others."""
        if array.storage.codec_marks is not None:
            return f"its codecs pack {array.type.text}, which is stored with scale_factor and add_offset in their place"
        return self._floats.get(path, "")

    def _dimensions_of(self, path: str) -> dict[str, Dimension]:
        """Return the dimensions of a group, without those that are arrays of enclosing groups.

        In Zarr, the name of an axis means nothing for other arrays, which may have other lengths along it. A group gets
        the length of its coordinate, or else of its first array; see `tamis.stores.data_model.own_name`.
        """
        if path in self._dimensions:
            return self._dimensions[path]
        around = ChainMap[str, Dimension]()
        if path != "/":
            parent = path.rpartition("/")[0] or "/"
            self._dimensions_of(parent)
            around = ChainMap(self._coordinates_of(parent), *self._around[parent].maps)
        own = self._coordinates_of(path)
        for array in self._arrays_by_group.get(path, {}).values():
            if not isinstance(array, ZarrArray):
                continue
            for name, extent in zip(array.dimensions, array.shape, strict=True):
                if name not in own and (name not in around or around[name].size != extent):
                    own[name] = Dimension(extent, is_unlimited=None)
        self._dimensions[path], self._around[path] = own, around
        return own

    def _coordinates_of(self, path: str) -> dict[str, Dimension]:
        """Return the dimensions that are arrays of a group."""
        return {
            array.dimensions[0]: Dimension(array.shape[0], is_unlimited=None)
            for array in self._arrays_by_group.get(path, {}).values()
            if isinstance(array, ZarrArray) and array.dimensions == (array.path.rpartition("/")[2],)
        }

    def extras(self) -> Iterator[Translation]:
        """Yield the files in a local folder that are not of Zarr."""
        for name in self._extra_files:
            yield Translation(f"/{name}", "other files", "a file that is not of Zarr")

    @lazy_property
    def _extra_files(self) -> list[str]:
        """The paths of the files that are not of Zarr, from the folder; none of a store that is elsewhere."""
        return [*extra_files(Path(self.path), self._array_folders)] if os.path.isdir(self.path) else []

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

    def group_paths(self, path: str = "/") -> list[str]:
        """Return the paths of a group and of the groups in it."""
        top = f"/{path.strip('/')}"
        return [known for known in self._groups if known == top or known.startswith(f"{top.rstrip('/')}/")]


def _opened_quietly(place: Any, document: Document) -> Any:
    """Return the array of zarr-python for a document."""
    with quietly():
        return opened(place, document)


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
        group = path.rpartition("/")[0]
        counts: dict[int, int] = {}
        array = known[path]
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
