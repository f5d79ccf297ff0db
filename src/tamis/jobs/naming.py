"""Find the datasets of a file that match a name or pattern, through any of their paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from tamis import cf
from tamis.errors import FileError
from tamis.jobs.recipe import Match, absolute, has_pattern_signs, matching
from tamis.store.array import Store


class Names:
    """Names and patterns of the datasets of a file.

    An exact name may lead through links of any kind. A pattern is compared with every path of hard links.

    Attributes
    ----------
    unmatched
        Patterns that match nothing, as `match_any` accepts them, with this in words.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.unmatched: dict[str, str] = {}

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

    def match_any(self, name: str) -> Match:
        """Return what `match` returns; a pattern may match nothing, because one recipe is for many files.

        Raises
        ------
        FileError
            If there is no dataset of this exact name.
        """
        try:
            match = self.match(name)
        except FileError:
            if not has_pattern_signs(name):
                raise
            match = Match({}, exact=False)
        if not match.labels:
            self.unmatched[name] = "this pattern matches no dataset"
        return match

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
