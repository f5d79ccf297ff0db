"""Groups of a file, found again without their paths."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from h5py import h5g, h5r

_MOST_NBYTES = 16 << 20
"""Memory for groups that stay open."""

_GROUP_NBYTES, _PATH_COPIES = 1536, 3
"""What HDF5 takes for an open group: for itself, and for its path."""


class OpenGroups:
    """Groups by a key.

    Opening a group by its path takes time for each group on the way. The first groups stay open; references lead to the
    others, which HDF5 then opens without a path. The last one of these also stays open.

    Parameters
    ----------
    root
        The root group of the file.
    key
        Its key.
    """

    def __init__(self, root: h5g.GroupID, key: Hashable) -> None:
        self._root = root
        self._room = _MOST_NBYTES
        self._open: dict[Hashable, h5g.GroupID] = {key: root}
        self._references: dict[Hashable, Any] = {}
        self._last: tuple[Hashable, h5g.GroupID | None] = (None, None)

    def add(self, key: Hashable, group: h5g.GroupID, path: str | bytes) -> None:
        """Add a group, which was opened by its path."""
        self._room -= _GROUP_NBYTES + _PATH_COPIES * len(path)
        if self._room > 0:
            self._open[key] = group
        else:
            self._references[key] = h5r.create(group, b".", h5r.OBJECT)

    def __getitem__(self, key: Hashable) -> h5g.GroupID:
        if key in self._open:
            return self._open[key]
        known, group = self._last
        if known != key or group is None:
            group = h5r.dereference(self._references[key], self._root)
            self._last = key, group
        return group
