"""The header of an HDF5 file in netCDF's enhanced data model."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from h5py import h5a, h5d, h5g, h5l, h5o, h5t

from tamis.errors import FileError, TamisError
from tamis.formats.hdf5.lib.references import attribute_names
from tamis.formats.hdf5.model.attributes import INTERNAL
from tamis.formats.hdf5.stored_array import Hdf5Array
from tamis.formats.hdf5.tree.links import in_order, links_of
from tamis.safety.library_errors import reading
from tamis.stores.data_model import groups_by_parent
from tamis.stores.header import CdlType, Header, HeaderAttribute, HeaderGroup, HeaderVariable

if TYPE_CHECKING:
    from tamis.formats.hdf5.model.hdf5_model import Hdf5Model
    from tamis.stores.data_model import Dimension, NamedArray, NamedGroup

_INTEGERS = {1: "byte", 2: "short", 4: "int", 8: "int64"}
_FLOATS = {4: "float", 8: "double"}
_MOST_LEVELS = 100
"""Limit of types within types."""


class NoTypeError(Exception):
    """Raised for a type that netCDF's data model lacks."""


class NamedTypes:
    """The named types of a file."""

    def __init__(self, file: h5py.File, groups: list[str]) -> None:
        # Address → type, group and name; types of a file are few.
        self._named: dict[int, tuple[Any, str, str]] = {}
        self._known: dict[int, CdlType] = {}
        self._groups: dict[str, list[int]] = {}
        for path in groups:
            group = h5g.open(file.id, path.encode("utf-8", "surrogateescape"))
            for link in in_order(links_of(group)):
                if link.kind == h5l.TYPE_HARD and link.address not in self._named:
                    if h5o.get_info(group, link.name).type != h5o.TYPE_NAMED_DATATYPE:
                        continue
                    name = link.name.decode("utf-8", "surrogateescape")
                    self._named[link.address] = h5t.open(group, link.name), path, name
                    self._groups.setdefault(path, []).append(link.address)

    def of_group(self, path: str) -> tuple[tuple[CdlType, ...], Mapping[str, str]]:
        """Return the types of a group, and those that netCDF lacks, with the reason."""
        types, left_out = [], {}
        for address in self._groups.get(path, ()):
            try:
                cdl_type = self._of_address(address, 0)
            except NoTypeError as error:
                left_out[self._named[address][2]] = str(error)
            else:
                if cdl_type.group:
                    types.append(cdl_type)
        return tuple(types), left_out

    def of(self, datatype: Any, *, text: str = "string", level: int = 0) -> CdlType:
        """Return a type."""
        nbytes = int(datatype.get_size())
        if level > _MOST_LEVELS:
            raise NoTypeError(f"types within more than {_MOST_LEVELS} types")
        match datatype.get_class():
            case h5t.INTEGER if nbytes in _INTEGERS:
                sign = "u" if datatype.get_sign() == h5t.SGN_NONE else ""
                return CdlType("number", f"{sign}{_INTEGERS[nbytes]}", nbytes=nbytes)
            case h5t.FLOAT if nbytes in _FLOATS:
                return CdlType("number", _FLOATS[nbytes], nbytes=nbytes)
            case h5t.STRING:
                long = datatype.is_variable_str() or nbytes > 1
                return CdlType(text, text) if long else CdlType("char", "char", nbytes=1)
            case h5t.ENUM | h5t.OPAQUE | h5t.VLEN | h5t.COMPOUND:
                return self._of_address(self._address(datatype), level)
        raise NoTypeError("netCDF has no such type")

    def _address(self, datatype: Any) -> int:
        """Return the address of a named type, or of one that equals an unnamed type."""
        if datatype.committed():
            address = int(h5o.get_info(datatype).addr)
            if address in self._named:
                return address
        for address, (named, _, _) in self._named.items():
            if named.get_class() == datatype.get_class() and named.equal(datatype):
                return address
        raise NoTypeError("its type has no name in the file, which netCDF needs")

    def _of_address(self, address: int, level: int) -> CdlType:
        if address not in self._known:
            datatype, group, name = self._named[address]
            self._known[address] = self._definition(datatype, group, name, level + 1)
        return self._known[address]

    def _definition(self, datatype: Any, group: str, name: str, level: int) -> CdlType:
        nbytes = int(datatype.get_size())
        match datatype.get_class():
            case h5t.ENUM:
                members = tuple(
                    (_text(datatype.get_member_name(index)), int(datatype.get_member_value(index)))
                    for index in range(datatype.get_nmembers())
                )
                return CdlType("enum", name, group, nbytes, self.of(datatype.get_super(), level=level), members)
            case h5t.OPAQUE:
                return CdlType("opaque", name, group, nbytes)
            case h5t.VLEN:
                return CdlType("vlen", name, group, nbytes, self.of(datatype.get_super(), level=level))
            case h5t.COMPOUND:
                fields = []
                for index in range(datatype.get_nmembers()):
                    member = datatype.get_member_type(index)
                    shape: tuple[int, ...] = ()
                    if member.get_class() == h5t.ARRAY:
                        shape, member = tuple(map(int, member.get_array_dims())), member.get_super()
                    field = _text(datatype.get_member_name(index))
                    fields.append((field, self.of(member, level=level), shape))
                return CdlType("compound", name, group, nbytes, fields=tuple(fields))
        return self.of(datatype, level=level)


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def read_header(file: h5py.File, model: Hdf5Model) -> Header:
    """Read the header of a file."""
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
        paths = model.group_paths()
        self._inner = groups_by_parent(paths)
        self._types = NamedTypes(file, paths)
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
        groups = tuple(map(self.group, self._inner.get(path, ())))
        return HeaderGroup(path, types, dimensions, tuple(variables), attributes, groups, left_out)

    def _in_file_order(self, path: str, group: NamedGroup) -> Mapping[str, Dimension]:
        """Return the dimensions of a group in the order of their numbers, that is, of their definition."""
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
            name=name,
            type=kind,
            attributes=attributes,
            dimensions=tuple(self._dimension_path(path, axis) for axis in item.dimensions),
            storage="contiguous" if array.storage.layout == "external" else array.storage.layout,
            chunk_shape=item.chunk_shape,
            pipeline=item.pipeline,
            byteorder=array.type.byteorder if plain else "",
            has_no_fill=array.dataset.id.get_create_plist().get_fill_time() == h5d.FILL_TIME_NEVER,
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
