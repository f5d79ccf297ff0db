"""Find the datasets of a file that match a name or pattern, through any of their paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from tamis import cf
from tamis.errors import FileError
from tamis.jobs.recipe import Match, absolute, matching
from tamis.store.array import Store


class Names:
    """Names and patterns of the datasets of a file.

    An exact name may lead through links of any kind. A pattern is compared with every path of hard links.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def filename(self) -> str:
        """Path of the file."""
        return self._store.path

    def match(self, name: str) -> Match:
        """Return the datasets that match a name or pattern, by their first paths.

        Raises
        ------
        FileError
            If none matches; names the file and its datasets.
        """
        path = absolute(name)
        if path in self._store.arrays:
            return Match({path: path}, exact=True)
        if first := self._store.first_path(path):
            return Match({first: path}, exact=True)
        try:
            return matching(name, self._paths, self._standard_names)
        except FileError as error:
            error.at(self.filename, path=self.filename, dataset=name)
            raise

    def labels(self, names: Iterable[str]) -> dict[str, str]:
        """Return the datasets that match any of several names or patterns: for each first path, the path that matched.

        Raises
        ------
        FileError
            If a name or pattern matches no dataset.
        """
        matches = sorted(map(self.match, names), key=lambda match: not match.exact)
        return {path: label for match in reversed(matches) for path, label in match.labels.items()}

    def _standard_names(self) -> Mapping[str, str]:
        return {path: cf.text(array.attributes, "standard_name") for path, array in self._store.arrays.items()}

    @cached_property
    def _paths(self) -> Mapping[str, str]:
        return self._store.paths()
