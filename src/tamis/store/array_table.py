"""Arrays of a store that are all there already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Self

from tamis.errors import FileError
from tamis.store.array import Arrays, StoredArray


class ArrayTable(Arrays[StoredArray]):
    """Arrays that are there already, in the order of the store.

    Parameters
    ----------
    arrays
        The arrays.
    """

    def __init__(self, arrays: Iterable[StoredArray]) -> None:
        self._arrays = {array.path: array for array in arrays}

    def labelled(self, labels: Mapping[str, str], *, others: bool = True) -> Self:
        """Return arrays by other paths, `labels`; arrays without a label are left out if `others` is False."""
        table = type(self)(())
        table._arrays = {
            labels.get(path, path): array for path, array in self._arrays.items() if others or path in labels
        }
        return table

    def __getitem__(self, path: str) -> StoredArray:
        return self._arrays[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def marked(self) -> list[str]:
        """Return the paths of arrays that name a companion."""
        return [path for path, array in self._arrays.items() if array.has_companion]

    def companions(self) -> Iterator[tuple[StoredArray, str]]:
        """Yield each companion and the path of its variable; damaged ones are left out."""
        for path in self.marked():
            with suppress(FileError):
                if (companion := self._arrays[path].companion) is not None:
                    yield companion, path
