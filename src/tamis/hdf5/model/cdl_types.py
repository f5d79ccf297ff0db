"""HDF5 types as the types of netCDF's data model."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

import h5py
from h5py import h5g, h5l, h5o, h5t

from tamis.hdf5.tree.links import in_order, links_of
from tamis.store.cdl_model import CdlType

_INTEGERS = {1: "byte", 2: "short", 4: "int", 8: "int64"}
_FLOATS = {4: "float", 8: "double"}
_MOST_LEVELS = 100
"""Limit of types within types."""


class NoTypeError(Exception):
    """Raised for a type that netCDF's data model does not have."""


class NamedTypes:
    """The named types of a file.

    Parameters
    ----------
    file
        The file, open for reading.
    groups
        Paths of all groups.
    """

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
        """Return the types of a group, and those that netCDF does not have, with the reason."""
        types, left_out = [], {}
        for address in self._groups.get(path, ()):
            try:
                found = self._of_address(address, 0)
            except NoTypeError as error:
                left_out[self._named[address][2]] = str(error)
            else:
                types += [found] if found.group else []
        return tuple(types), left_out

    def of(self, datatype: Any, *, text: str = "string", level: int = 0) -> CdlType:
        """Return a type.

        Parameters
        ----------
        datatype
            An `h5py.h5t.TypeID`.
        text
            What text of a fixed length of several bytes is.
        level
            Number of types around it.

        Raises
        ------
        NoTypeError
            If netCDF does not have it, with the reason.
        """
        nbytes = int(datatype.get_size())
        if level > _MOST_LEVELS:
            raise NoTypeError(f"types within more than {_MOST_LEVELS} types")
        match datatype.get_class():
            case h5t.INTEGER if nbytes in _INTEGERS:
                unsigned = datatype.get_sign() == h5t.SGN_NONE
                return CdlType("number", "u" * unsigned + _INTEGERS[nbytes], nbytes=nbytes)
            case h5t.FLOAT if nbytes in _FLOATS:
                return CdlType("number", _FLOATS[nbytes], nbytes=nbytes)
            case h5t.STRING:
                long = datatype.is_variable_str() or nbytes > 1
                return CdlType(text, text) if long else CdlType("char", "char", nbytes=1)
            case h5t.ENUM | h5t.OPAQUE | h5t.VLEN | h5t.COMPOUND:
                return self._of_address(self._address(datatype), level)
        raise NoTypeError("netCDF has no such type")

    def _address(self, datatype: Any) -> int:
        """Return the address of a named type, or of one that is equal to a type without a name."""
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


def type_path(kind: CdlType) -> str:
    """Return the path of a user-defined type."""
    return posixpath.join(kind.group, kind.name)


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
