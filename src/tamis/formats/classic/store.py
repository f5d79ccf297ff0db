"""A netCDF classic file as a store of arrays; see `tamis.stores.protocols.Store`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tamis import meaning
from tamis.arrays.source import Descriptor, FileSource
from tamis.errors import FileError
from tamis.formats.classic.array import ClassicArray
from tamis.formats.classic.header import read_header
from tamis.stores.arrays import ListedStore, header_of
from tamis.stores.data_model import Dimension, NamedGroup
from tamis.stores.first_bytes import CLASSIC_KINDS

if TYPE_CHECKING:
    from tamis.stores.header import Header


class ClassicStore(ListedStore[ClassicArray]):
    """A file for reading. Threads share its one descriptor."""

    is_loose = False
    reader_words = "any netCDF"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fsdecode(path)
        try:
            self._source = FileSource(Descriptor(os.open(self.path, os.O_RDONLY)))
            self.classic_header = read_header(self._source, self.path)
        except FileError:
            raise
        except OSError as error:
            raise FileError(f"{self.path}: cannot be read: {error.strerror}").at(path=self.path) from error
        self._arrays = {
            f"/{variable.name}": ClassicArray(self.path, self._source, variable, number, self.classic_header.unlimited)
            for number, variable in enumerate(self.classic_header.variables)
        }

    @property
    def nbytes(self) -> int:
        """Bytes of the file."""
        return self._source.nbytes

    @cached_property
    def roles(self) -> Mapping[str, meaning.Role]:
        """The role of each variable by path."""
        variables = (
            meaning.Variable(
                path,
                array.shape,
                array.number_type,
                tuple(f"/{name}" for name in array.variable.dimensions),
                array.attributes,
                is_scale=array.variable.name in array.variable.dimensions[:1],
            )
            for path, array in self._arrays.items()
        )
        return meaning.roles_of(variables, {"/": self.classic_header.attributes})

    @property
    def kind(self) -> str:
        """The format, as ``ncdump -k`` calls it."""
        return CLASSIC_KINDS[self.classic_header.version]

    def header(self) -> Header:
        """Return variables, dimensions and attributes as CDL describes them."""
        return header_of(self, self._arrays)

    def group(self, path: str) -> NamedGroup:
        """Return the root group; see `tamis.stores.data_model.DataModel`."""
        if path.strip("/"):
            raise FileError(
                f"{self.path}: expected a group at {path!r}, found none: netCDF classic files have no groups"
            )
        dimensions = {
            name: Dimension(size, name == self.classic_header.unlimited)
            for name, size in self.classic_header.dimensions.items()
        }
        variables = {array.variable.name: array.named() for array in self._arrays.values()}
        return NamedGroup("/", dimensions, variables, self.classic_header.attributes, {})

    def group_attributes(self, path: str) -> Mapping[str, Any]:
        """Return the attributes of the file, whose only group is the root."""
        return self.classic_header.attributes

    def group_paths(self, path: str = "/") -> list[str]:
        """Return the path of the only group."""
        self.group(path)
        return ["/"]
