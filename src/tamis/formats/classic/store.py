"""A netCDF classic file as a store of arrays; see `tamis.stores.protocols.Store`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from tamis import meaning
from tamis.arrays.source import Descriptor, FileSource
from tamis.errors import FileError
from tamis.formats.classic.array import ClassicArray
from tamis.formats.classic.header import read_header
from tamis.stores.arrays import ArrayTable
from tamis.stores.data_model import Dimension, NamedGroup
from tamis.stores.first_bytes import CLASSIC_KINDS
from tamis.stores.model_header import header_of
from tamis.stores.protocols import Readers

if TYPE_CHECKING:
    from tamis.filters import Filter
    from tamis.pipeline import Pipeline
    from tamis.stores.header import Header


class ClassicStore:
    """A file for reading. It is opened by one descriptor, which threads share."""

    is_loose = False

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing: the descriptor is closed with its last user."""

    @property
    def nbytes(self) -> int:
        """Bytes of the file."""
        return self._source.nbytes

    @cached_property
    def arrays(self) -> ArrayTable:
        """All variables, in the order of the file."""
        return ArrayTable(self._arrays.values())

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
    def model(self) -> ClassicStore:
        """The file in netCDF's data model."""
        return self

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

    def array(self, path: str) -> ClassicArray:
        """Return the variable at a path."""
        return self._arrays[path]

    def first_path(self, path: str) -> str:
        """Return the path of a variable; empty if there is none."""
        return path if path in self._arrays else ""

    def paths(self) -> dict[str, str]:
        """Return the path of each variable, by itself."""
        return {path: path for path in self._arrays}

    def check_listed(self) -> None:
        """Do nothing: the header lists everything."""

    def filtered_groups(self) -> Iterable[tuple[str, Pipeline, str]]:
        """Yield nothing: there are no filters."""
        return ()

    def readers_of(self, filters: Iterable[Filter]) -> Readers:
        """Return that any netCDF library reads the file."""
        return Readers((), szip=False, h5py=False, tamis=True, hint="", words="any netCDF")

    def survey_other_files(self, target: str) -> list[str]:
        """Return no notes: classic files name no other files."""
        return []
