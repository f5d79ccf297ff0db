"""Datasets as a store of arrays, from which a file is written; see `tamis.store.array.Store`."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Self

from tamis import cf
from tamis.errors import FileError
from tamis.filters import Filter
from tamis.pipeline import Pipeline
from tamis.store.array_table import ArrayTable
from tamis.store.cdl_model import Header
from tamis.store.data_model import Dimension, NamedGroup
from tamis.store.model_header import header_of
from tamis.store.readability import Readers
from tamis.xarray.encoded_group import EncodedGroup
from tamis.xarray.variable_array import VariableArray


class DatasetStore:
    """Encoded datasets by the path of their group.

    Parameters
    ----------
    groups
        The datasets.
    pipelines
        Filters of variables by path.
    """

    path = "xarray"
    kind = "netCDF-4"
    is_loose = False

    def __init__(self, groups: Mapping[str, EncodedGroup], pipelines: Mapping[str, Pipeline]) -> None:
        self._groups = groups
        self._arrays: dict[str, VariableArray] = {}
        for group, encoded in groups.items():
            for name, variable in encoded.variables.items():
                path = posixpath.join(group, name)
                pipeline = pipelines.get(path, Pipeline())
                self._arrays[path] = VariableArray(path, variable, len(self._arrays), self._unlimited(group), pipeline)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing: the datasets belong to the caller."""

    @property
    def nbytes(self) -> int:
        """Bytes of all values."""
        return sum(array.nbytes for array in self._arrays.values())

    @cached_property
    def arrays(self) -> ArrayTable:
        """All variables, in the order of the datasets."""
        return ArrayTable(self._arrays.values())

    @cached_property
    def roles(self) -> Mapping[str, cf.Role]:
        """The role of each variable by path; coordinates of a dataset count as coordinates."""
        variables = [
            cf.Variable(
                path,
                array.shape,
                array.number_type,
                tuple(posixpath.join(posixpath.dirname(path), str(name)) for name in array.variable.dims),
                array.attributes,
                posixpath.basename(path) in array.variable.dims,
            )
            for path, array in self._arrays.items()
        ]
        roles = dict(cf.roles_of(variables, {path: group.attributes for path, group in self._groups.items()}))
        for path, group in self._groups.items():
            for name in map(str, group.dataset.coords):
                own = posixpath.join(path, name)
                if own in roles and not roles[own].is_exact:
                    roles[own] = cf.Role("auxiliary coordinate", "coordinate of the dataset")
        return roles

    @property
    def model(self) -> Self:
        """The datasets in netCDF's data model."""
        return self

    def header(self) -> Header:
        """Return variables, dimensions and attributes as CDL describes them."""
        return header_of(self, self._arrays)

    def group(self, path: str) -> NamedGroup:
        """Return a group; see `tamis.store.data_model.DataModel`."""
        if path not in self.group_paths():
            raise FileError(f"expected a group among {', '.join(self.group_paths())}, got {path!r}")
        if path not in self._groups:
            return NamedGroup(path, {}, {}, {}, {})
        group = self._groups[path]
        around = self._sizes_around(path)
        sizes: dict[str, int] = {}
        for variable in group.variables.values():
            sizes |= {str(name): size for name, size in variable.sizes.items()}
        dimensions = {
            name: Dimension(size, name in group.unlimited) for name, size in sizes.items() if around.get(name) != size
        }
        variables = {name: self._arrays[posixpath.join(path, name)].named() for name in group.variables}
        return NamedGroup(path, dimensions, variables, group.attributes, {})

    def group_paths(self, path: str = "/") -> list[str]:
        """Return the paths of all groups, each after those around it."""
        paths: dict[str, None] = {}
        for group in self._groups:
            parts = [part for part in group.split("/") if part]
            paths |= dict.fromkeys("/" + "/".join(parts[:count]) for count in range(len(parts) + 1))
        return list(paths)

    def array(self, path: str) -> VariableArray:
        """Return the variable at a path."""
        return self._arrays[path]

    def first_path(self, path: str) -> str:
        """Return the path of a variable; empty if there is none."""
        return path if path in self._arrays else ""

    def paths(self) -> dict[str, str]:
        """Return the path of each variable, by itself."""
        return {path: path for path in self._arrays}

    def check_listed(self) -> None:
        """Do nothing: everything is known."""

    def filtered_groups(self) -> Iterable[tuple[str, Pipeline, str]]:
        """Yield nothing: there are no filters on groups."""
        return ()

    def readers_of(self, filters: Iterable[Filter]) -> Readers:
        """Return that xarray has the values."""
        return Readers((), szip=False, h5py=False, tamis=True, hint="", words="xarray")

    def survey_other_files(self, target: str) -> list[str]:
        """Return no notes: datasets name no other files."""
        return []

    def _around(self, path: str) -> list[EncodedGroup]:
        """Return the groups around a group, the outermost first."""
        parts = [part for part in path.split("/") if part]
        paths = ("/" + "/".join(parts[:count]) for count in range(len(parts)))
        return [self._groups[outer] for outer in paths if outer in self._groups]

    def _sizes_around(self, path: str) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for group in self._around(path):
            for variable in group.variables.values():
                sizes |= {str(name): size for name, size in variable.sizes.items()}
        return sizes

    def _unlimited(self, path: str) -> frozenset[str]:
        """Return the unlimited dimensions that the variables of a group may have."""
        return frozenset().union(*(group.unlimited for group in (*self._around(path), self._groups[path])))
