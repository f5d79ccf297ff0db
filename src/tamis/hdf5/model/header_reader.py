"""The header of an HDF5 file in netCDF's enhanced data model."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import h5py
import numpy as np
from h5py import h5a, h5d, h5t

from tamis.errors import FileError, TamisError
from tamis.hdf5.lib.damage import reading
from tamis.hdf5.model.attribute_values import INTERNAL
from tamis.hdf5.model.cdl_types import NamedTypes, NoTypeError
from tamis.hdf5.model.hdf5_model import Hdf5Model
from tamis.hdf5.stored_array import Hdf5Array
from tamis.hdf5.tree.references import attribute_names
from tamis.store.cdl_model import Header, HeaderAttribute, HeaderGroup, HeaderVariable
from tamis.store.data_model import Dimension, NamedArray, NamedGroup

_STORAGES = {"external": "contiguous"}


def read_header(file: h5py.File, model: Hdf5Model) -> Header:
    """Read the header of a file.

    Parameters
    ----------
    file, model
        The file, open for reading, and its variables and dimensions.

    Raises
    ------
    FileError
        If the file is damaged.
    """
    with reading(str(file.filename)):
        reader = _Reader(file, model)
        root = reader.group("/")
        hidden: dict[str, str | int] = {}
        with suppress(Exception):  # damaged, or of another type
            hidden["_NCProperties"] = _decoded(file.attrs["_NCProperties"])
        hidden["_SuperblockVersion"] = int(file.id.get_create_plist().get_version()[0])
        strict = model.kind != "netCDF-4"
        hidden["_IsNetcdf4"] = int(not strict and reader.has_scales)
        return Header(root, model.kind, hidden)


class _Reader:
    """Reads the groups of a file."""

    def __init__(self, file: h5py.File, model: Hdf5Model) -> None:
        self._file, self._model = file, model
        self._paths = model.group_paths()
        self._types = NamedTypes(file, self._paths)
        self._dimensions: dict[str, Mapping[str, Dimension]] = {}
        self.has_scales = False

    def group(self, path: str) -> HeaderGroup:
        """Return a group and those in it."""
        named = self._model.group(path)
        left_out = dict(named.left_out)
        types, without = self._types.of_group(path)
        left_out |= without
        dimensions = self._in_file_order(path, named)
        self._dimensions[path] = dimensions
        owner = self._file[path.encode("utf-8", "surrogateescape")]
        variables = []
        for name, item in named.variables.items():
            try:
                _check_name(name)
                variables.append(self._variable(path, name, item, left_out))
            except NoTypeError as error:
                left_out[name] = str(error)
        attributes = tuple(self._attributes(owner, left_out, ""))
        depth = path.rstrip("/").count("/") + 1
        inner = [other for other in self._paths if posixpath.dirname(other) == path and other.count("/") == depth]
        groups = tuple(self.group(other) for other in inner if other != path)
        return HeaderGroup(path, types, dimensions, tuple(variables), attributes, groups, left_out)

    def _in_file_order(self, path: str, group: NamedGroup) -> Mapping[str, Dimension]:
        """Return the dimensions of a group in the order of their numbers, which is that of their definition."""
        numbers: dict[str, int] = {}
        for name in group.dimensions:
            with suppress(Exception):  # no dataset, or no such attribute
                item = self._file[posixpath.join(path, name).encode("utf-8", "surrogateescape")]
                self.has_scales |= "CLASS" in item.attrs
                numbers[name] = int(item.attrs["_Netcdf4Dimid"])
        order = sorted(group.dimensions, key=lambda name: (numbers.get(name, len(numbers)), name not in numbers))
        return {name: group.dimensions[name] for name in order}

    def _variable(self, path: str, name: str, item: NamedArray, left_out: dict[str, str]) -> HeaderVariable:
        array = Hdf5Array(self._file, item.path)
        kind = self._types.of(array.datatype)
        attributes = tuple(self._attributes(array.dataset, left_out, f"{name}:"))
        plain = kind.form == "number" and kind.nbytes > 1
        return HeaderVariable(
            name,
            kind,
            attributes,
            tuple(self._dimension_path(path, axis) for axis in item.dimensions),
            _STORAGES.get(array.layout, array.layout),
            item.chunk_shape,
            item.pipeline,
            array.byteorder if plain else "",
            array.dataset.id.get_create_plist().get_fill_time() == h5d.FILL_TIME_NEVER,
        )

    def _dimension_path(self, path: str, name: str) -> str:
        while name not in self._dimensions[path] and path != "/":
            path = posixpath.dirname(path)
        return posixpath.join(path, name)

    def _attributes(self, owner: Any, left_out: dict[str, str], prefix: str) -> Iterator[HeaderAttribute]:
        for raw in attribute_names(owner.id):
            name = raw.decode("utf-8", "surrogateescape")
            if name in INTERNAL:
                continue
            try:
                _check_name(name)
                yield self._attribute(owner, raw, name)
            except NoTypeError as error:
                left_out[prefix + name] = str(error)
            except (TamisError, OSError, RuntimeError, TypeError, ValueError) as error:
                raise FileError(f"{owner.name}: {name}: cannot be read: {error}") from error

    def _attribute(self, owner: Any, raw: bytes, name: str) -> HeaderAttribute:
        attribute = h5a.open(owner.id, raw)
        datatype = attribute.get_type()
        fixed = isinstance(datatype, h5t.TypeStringID) and not datatype.is_variable_str()
        is_text = fixed and (attribute.shape is None or attribute.shape == () or int(np.prod(attribute.shape)) == 1)
        kind = self._types.of(datatype, text="char" if is_text else "string")
        if attribute.shape is None or 0 in attribute.shape:
            return HeaderAttribute(name, kind, ())
        if fixed and (is_text or datatype.get_size() == 1):
            texts = np.empty(attribute.shape, f"S{datatype.get_size()}")
            attribute.read(texts, mtype=datatype)
            return HeaderAttribute(name, kind, (_decoded(texts.tobytes()),))
        values = owner.attrs[raw]
        return HeaderAttribute(name, kind, tuple(values.reshape(-1)) if attribute.shape else (values,))


def _check_name(name: str) -> None:
    if not name.isprintable() and any("\udc80" <= letter <= "\udcff" for letter in name):
        raise NoTypeError("its name is not UTF-8")


def _decoded(text: Any) -> str:
    return text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else str(text)
