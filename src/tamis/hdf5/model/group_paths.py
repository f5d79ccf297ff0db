"""The paths of the groups of a file, where several may lead to one group, also from within itself."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator

from tamis.errors import FileError
from tamis.hdf5.model.scanned_group import Place, ScannedGroup

_MOST_LEVELS = 500
"""Limit of groups within groups, which Python can recurse into."""

_MOST_REPEATED = 10_000
"""Limit of paths to groups that have another path: with links upon links their number grows without measure."""

_TOO_MANY = f"expected at most {_MOST_REPEATED:,} paths to groups that have other paths, got more"


class GroupPaths:
    """A walk over groups.

    Parameters
    ----------
    scan
        Returns what is in the group at a path.
    leads_to_group
        Returns whether HDF5 finds a group at a path behind links.
    follow
        Whether a group is at all its paths, except within itself, instead of at the first one.
    own_first
        Whether a group comes before those in it, instead of after them.
    """

    def __init__(
        self, scan: Callable[[str], ScannedGroup], leads_to_group: Callable[[str], bool], follow: bool, own_first: bool
    ) -> None:
        self._scan, self._leads_to_group, self._follow, self._own_first = scan, leads_to_group, follow, own_first
        self._listed: set[Place] = set()
        self._repeated_count = 0

    def inside(self, path: str, around: frozenset[Place] = frozenset(), *, repeated: bool = False) -> Iterator[str]:
        """Yield the paths of a group, which has some around it, and of the groups in it.

        Raises
        ------
        FileError
            If there are too many levels.
        """
        if path.count("/") > _MOST_LEVELS:
            raise FileError(f"expected at most {_MOST_LEVELS} levels of groups, found more in {path[:80]}…")
        scanned = self._scan(path)
        around |= {scanned.place}
        if not repeated:
            self._listed.add(scanned.place)
        if self._own_first:
            yield path
        for name, inner in scanned.groups.items():
            if inner.place in (around if self._follow else self._listed):
                continue
            inner_path = posixpath.join(path, name)
            is_repeated = repeated or inner.is_linked or inner.place in self._listed
            if is_repeated and not self._enters(scanned, name, inner_path):
                continue
            yield from self.inside(inner_path, around, repeated=is_repeated)
        if not self._own_first:
            yield path

    def _enters(self, scanned: ScannedGroup, name: str, path: str) -> bool:
        """Return whether another path to a group is taken; what is not is left out."""
        self._repeated_count += 1
        if self._repeated_count > _MOST_REPEATED:
            scanned.left_out[name] = _TOO_MANY
            return False
        return self._leads_to_group(path)
