"""Which variable the name in an attribute means, seen from the group of the variable that has the attribute."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator

_RENAMED = "_nc4_non_coord_"
"""netCDF-4 puts this before the name of a variable that is called as a dimension and is no coordinate of it."""

_MOST_GROUPS = 256
_MOST_NAMES = 1024
"""Names of one attribute that are looked up: a hostile file may have any number."""


class Lookup:
    """Paths of variables by their names in attributes.

    Parameters
    ----------
    paths
        Of all variables of a file.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths: dict[str, str] = {}
        for path in paths:
            group, _, name = path.rpartition("/")
            self._paths[f"{group}/{name.removeprefix(_RENAMED)}"] = path
            self._paths.setdefault(path, path)

    def find(self, name: str, group: str) -> str | None:
        """Find a variable from a group: an absolute or relative path, or a name here or in a group above."""
        if "/" in name:
            return self._paths.get(posixpath.normpath(posixpath.join(group, name)))
        here = group.rstrip("/")
        for _ in range(_MOST_GROUPS):
            if (found := self._paths.get(f"{here}/{name}")) is not None or not here:
                return found
            here = here.rpartition("/")[0]
        return None

    def find_all(self, names: str, group: str) -> Iterator[str]:
        """Find the variables of names with blanks between them; keys such as ``area:`` are left out."""
        for name in names.split(maxsplit=_MOST_NAMES)[:_MOST_NAMES]:
            if not name.endswith(":") and (found := self.find(name, group)) is not None:
                yield found
