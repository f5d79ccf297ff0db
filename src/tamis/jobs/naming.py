"""Which datasets of a file a name or pattern means, by whatever path it names them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from tamis.errors import FileError
from tamis.hdf5.store import Hdf5Store
from tamis.jobs.recipe import Match, absolute, matching


class Names:
    """Names and patterns of the datasets of a file.

    An exact name may lead over links of any kind. A pattern is compared with every path of hard links.

    Parameters
    ----------
    store
        The file; must stay open.
    """

    def __init__(self, store: Hdf5Store) -> None:
        self._store, self._contents = store, store.contents

    @property
    def filename(self) -> str:
        """Path of the file."""
        return self._store.path

    def meant(self, name: str) -> Match:
        """Return the datasets that a name or pattern means, by their first paths.

        Raises
        ------
        FileError
            If it means none; names the file and what is there.
        """
        path = absolute(name)
        if path in self._contents.datasets:
            return Match({path: path}, exact=True)
        if first := self._store.first_path(path):
            return Match({first: path}, exact=True)
        try:
            return matching(name, self._paths)
        except FileError as error:
            error.at(self.filename, path=self.filename, dataset=name)
            raise

    def labels(self, names: Iterable[str]) -> dict[str, str]:
        """Return the datasets that any of several names or patterns means: first paths, with the paths that were named.

        Raises
        ------
        FileError
            If one of them means none.
        """
        matches = sorted(map(self.meant, names), key=lambda match: not match.exact)
        return {path: label for match in reversed(matches) for path, label in match.labels.items()}

    @cached_property
    def _paths(self) -> dict[str, str]:
        return self._contents.paths()
