"""Find the variable that a name in an attribute refers to, from the group of the attribute."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator

_RENAMED = "_nc4_non_coord_"
"""Prefix by netCDF-4 for a variable that has the name of a dimension but is not its coordinate."""

_MOST_GROUPS = 256
_MOST_NAMES = 1024
"""Limit of names of one attribute that are looked up: a hostile file may have any number."""


class Lookup:
    """Paths of variables by their names in attributes."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths: dict[str, str] = {}
        for path in paths:
            group, _, name = path.rpartition("/")
            self._paths[f"{group}/{name.removeprefix(_RENAMED)}"] = path
            self._paths.setdefault(path, path)

    def find(self, name: str, group: str) -> str | None:
        """Return the path of a variable, by an absolute or relative path, or by a name in this group or one above."""
        if "/" in name:
            return self._paths.get(posixpath.normpath(posixpath.join(group, name)))
        scope = group.rstrip("/")
        for _ in range(_MOST_GROUPS):
            if (path := self._paths.get(f"{scope}/{name}")) is not None or not scope:
                return path
            scope = scope.rpartition("/")[0]
        return None

    def find_all(self, names: str, group: str) -> Iterator[str]:
        """Yield the paths of variables by names separated by blanks; keys such as ``area:`` are skipped."""
        for name in names.split(maxsplit=_MOST_NAMES)[:_MOST_NAMES]:
            if not name.endswith(":") and (path := self.find(name, group)) is not None:
                yield path
