"""The groups of a file and of its copy, found again without their paths."""

from __future__ import annotations

from typing import Any

from h5py import h5g, h5r

_MOST_OPEN = 8192
"""Pairs that stay open: each takes 3 KiB."""

Pair = tuple[h5g.GroupID, h5g.GroupID]
"""A group of the source, and its copy."""


class GroupPairs:
    """Pairs of groups by the address in the source.

    Opening a group by its path takes time for each group on the way. The first pairs stay open; references lead to the
    others.
    """

    def __init__(self, roots: Pair) -> None:
        self._roots = roots
        self._open: dict[int, Pair] = {}
        self._references: dict[int, tuple[Any, Any]] = {}

    def add(self, address: int, pair: Pair) -> None:
        """Add a pair."""
        if len(self._open) < _MOST_OPEN:
            self._open[address] = pair
        else:
            source, target = (h5r.create(group, b".", h5r.OBJECT) for group in pair)
            self._references[address] = source, target

    def __getitem__(self, address: int) -> Pair:
        if address in self._open:
            return self._open[address]
        source, target = self._references[address]
        return h5r.dereference(source, self._roots[0]), h5r.dereference(target, self._roots[1])
