"""The variables and dimensions of a file by the names that nccopy's options have for them."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from tamis.errors import FileError
from tamis.formatting import did_you_mean
from tamis.store.array import Store
from tamis.store.data_model import Dimension


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a file.

    Parameters
    ----------
    path
        First path of its array in the file.
    dimensions
        Path of the dimension of each axis.
    """

    path: str
    dimensions: tuple[str, ...]


class Variables:
    """The variables and dimensions of a file by their paths, without patterns.

    Parameters
    ----------
    store
        The file, which must stay open.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    @cached_property
    def _tables(self) -> tuple[dict[str, Variable], dict[str, Dimension]]:
        variables: dict[str, Variable] = {}
        dimensions: dict[str, Dimension] = {}
        model, arrays = self._store.model, self._store.arrays
        for group_path in model.group_paths():
            group = model.group(group_path)
            dimensions |= {posixpath.join(group_path, name): item for name, item in group.dimensions.items()}
            for name, variable in group.variables.items():
                path = variable.path if variable.path in arrays else self._store.first_path(variable.path)
                if path:
                    names = tuple(_dimension_path(group_path, axis, dimensions) for axis in variable.dimensions)
                    variables[posixpath.join(group_path, name)] = Variable(path, names)
        return variables, dimensions

    @property
    def dimensions(self) -> Mapping[str, Dimension]:
        """All dimensions by path."""
        return self._tables[1]

    def __iter__(self) -> Iterator[Variable]:
        return iter({variable.path: variable for variable in self._tables[0].values()}.values())

    def array_path(self, name: str, option: str) -> str:
        """Return the path of the array of a variable.

        Raises
        ------
        FileError
            If there is none; names the option and similar variables.
        """
        path = "/" + posixpath.normpath(name).strip("/")
        if path in self._store.arrays and not self._store.arrays[path].is_bare_dimension:
            return path  # without looking at all variables
        variables = self._tables[0]
        if path in variables:
            return variables[path].path
        if first := self._store.first_path(path):
            return first
        raise self._absent(option, "variable", path, variables)

    def dimension_path(self, name: str, option: str) -> str:
        """Return the path of a dimension.

        Raises
        ------
        FileError
            If there is none; names the option and similar dimensions.
        """
        path = "/" + posixpath.normpath(name).strip("/")
        if path not in self.dimensions:
            raise self._absent(option, "dimension", path, self.dimensions)
        return path

    def _absent(self, option: str, kind: str, path: str, known: Mapping[str, object]) -> FileError:
        """Return the error for a name that leads to nothing."""
        name = posixpath.basename(path)
        elsewhere = [other for other in known if posixpath.basename(other) == name]
        if elsewhere:
            hint = f"; there is {', '.join(elsewhere[:4])}: write the whole path"
        else:
            words = [word for other in known for word in (posixpath.basename(other), other)]
            listed = ", ".join([*known][:8]) + ", …" * (len(known) > 8)
            hint = did_you_mean(path.removeprefix("/"), words) or f"; there are {listed or 'none'}"
        signs = "; there are no patterns, except * alone" if any(sign in name for sign in "*?[") else ""
        text = f"{self._store.path}: expected a {kind} at {path!r} ({option}), found none{hint}{signs}"
        return FileError(text).at(path=self._store.path, dataset=path)


def _dimension_path(group: str, name: str, dimensions: Mapping[str, Dimension]) -> str:
    """Return the path of a dimension by its name in a group: of this group or of one around it."""
    while (path := posixpath.join(group, name)) not in dimensions and group != "/":
        group = posixpath.dirname(group)
    return path
