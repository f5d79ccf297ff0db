"""New stores: what their formats offer, and how everything in a store of another format is written into one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from tamis.errors import DataError, FileError, TamisError, located
from tamis.formatting import plural, printable, printable_lines
from tamis.meaning.variables import with_line
from tamis.rewrite.create import Slot
from tamis.rewrite.plan import ArrayPlan
from tamis.stores.data_model import NamedArray, NamedGroup
from tamis.stores.extended import extended
from tamis.stores.other_files import OtherFiles, Places
from tamis.stores.protocols import ArrayWriter, Store, StoredArray

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from tamis.arrays.grid import ChunkNotes, Grid
    from tamis.safety.transaction import Transaction
    from tamis.stores.data_model import Translation

Companions = Mapping[str, ArrayWriter | None]
"""New companions by the path of their variables, None for variables that lose theirs."""

Check = Callable[[NamedArray, StoredArray], None]
"""Raises an error if a target of another format does not support an array."""


class UnstorableError(FileError):
    """Arrays that a target of another format does not support, and the paths to leave out."""

    def __init__(self, text: str, paths: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.paths = paths
        self.command = ""  # What leaves them out, to paste: it is never shortened

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text}\nleave them out:\n{printable_lines(self.command)}" if self.command else text


def unstorable_text(path: str, error: UnicodeEncodeError) -> DataError:
    """Return the error about a text that UTF-8, in which files have texts, cannot have: half of a pair of UTF-16."""
    text = f"{path}: expected texts that UTF-8 has, got {error.object!r}: remove what is no character"
    return DataError(text).at(dataset=path)


@dataclass(frozen=True, slots=True)
class Changes:
    """The parts of a copy that differ from its source."""

    anew: Collection[str] = ()  # Paths of arrays that are written anew
    outdated: Collection[str] = ()  # Paths of outdated companions
    dropped: Collection[str] = ()  # First paths of arrays that are left out
    places: Places = field(default_factory=Places)  # Where the files of the run go


class ChunkFiles(Protocol):
    """The files of a target that is a folder, each with one chunk, or several: a shard."""

    @property
    def has_shards(self) -> bool:
        """Whether a file has several chunks."""
        ...

    def file_of(self, path: str, grid: Grid, number: int) -> str:
        """Return the file of a chunk, relative to the folder, by the path of its array and its number."""

    def shards_of(self, grid: Grid, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the file of each chunk."""
        ...

    def mark_of(self, data: bytes, mask: int, usual: int) -> bytes:
        """Return the bytes before a chunk: a mark, mostly none, by its mask and that of the array's first chunk."""
        ...

    def ending_of(self, grid: Grid, places: ChunkNotes) -> bytes:
        """Return the bytes after the chunks of a file, by the offset and size, with mark, of each."""
        ...


class TargetForm(Protocol):
    """The form of a new file or folder; its text, if any, distinguishes it from others of the format."""

    def begin(self, target: Path, *, overwrite: bool = True, private: bool = False) -> Transaction:
        """Return the transaction of a target; `overwrite` allows it to replace an existing one.

        A private target is for its owner alone.

        Raises
        ------
        FileError
            If there cannot be a file or folder of that name.
        """

    def check_copy(self, source: Store, dropped: Collection[str] = ()) -> None:
        """Raise an error if the format cannot hold an array of the source that is not left out."""

    def kept_as_stored(self, source: Store) -> Collection[str]:
        """Return the paths of arrays that can only be copied as they are, because the format lacks their type."""
        ...

    @property
    def files(self) -> ChunkFiles | None:
        """The files of chunks, if other processes can write them."""
        ...

    def translations(self, source: Store) -> Iterable[Translation]:
        """Yield what the format does not have of a source, or has in another form."""
        ...

    def copies_objects_of(self, source: Store) -> bool:
        """Return whether `copying` copies objects as stored; objects of other formats are written again."""

    def copying(
        self, source: Store, target: Transaction, changes: Changes, threads: int = 1
    ) -> AbstractContextManager[NewStore]:
        """Create the file or folder that gets a store, which `check_copy` accepts.

        Raises
        ------
        FileError
            If something cannot be copied.
        """
        ...


class NewStore(Protocol):
    """A new file or folder, which gets what a store has.

    Whoever writes one says what happens at each place::

        with form.copying(source, transaction, changes) as new:
            for slot in new.slots():
                ...  # write the array with `slot.create`, or let it be copied as stored, with `slot.keep`
            new.finish(companions, line)
        new.others
    """

    others: OtherFiles  # Which other files it leads to, once it is closed; the notes also say what a copy cannot have

    def slots(self) -> Iterator[Slot]:
        """Copy everything in its order, and yield the place of each array that is written anew, when it is its turn."""

    def finish(self, companions: Companions, line: str) -> None:
        """Complete what needs all arrays: companions, attributes, and the history with a further line, if any."""


class Target(Protocol):
    """A new file or folder that gets groups, dimensions, attributes and arrays from a store of any format."""

    def create_group(self, group: NamedGroup) -> None:
        """Create a group with its dimensions and attributes, before its variables and inner groups."""

    def create_like(self, variable: NamedArray, array: StoredArray, plan: ArrayPlan) -> ArrayWriter:
        """Create an array with the name, dimensions, attributes and fill value of another, stored as planned."""

    def copy(self, variable: NamedArray, array: StoredArray) -> None:
        """Copy an array, with its filters if the target has them, replacing one that `create_like` may have begun."""

    def repeat(self, variable: NamedArray, array: StoredArray, path: str) -> None:
        """Store an array once more, like the one at a path, because the source has several links to it."""

    def set_history(self, text: str) -> None:
        """Set the history of the root group, in its old place among the attributes if there was one."""

    def finish(self, companions: Companions) -> None:
        """Complete the target: companions by the path of their variables, None for variables that lose theirs."""


class Transfer:
    """A new file or folder of another format than its source; see `NewStore`."""

    def __init__(self, source: Store, target: Target, changes: Changes) -> None:
        self._source, self._target, self._changes = source, target, changes
        self.others = OtherFiles([], [])

    def slots(self) -> Iterator[Slot]:
        """See `NewStore.slots`; groups, dimensions and attributes are created on the way."""
        source, target = self._source, self._target
        anew = {source.first_path(path): path for path in self._changes.anew}
        groups = [_without(source, path, self._changes.dropped) for path in source.model.group_paths()]
        own = {variable.path for group in groups for variable in group.variables.values()}
        for group in groups:
            target.create_group(group)
            for variable in group.variables.values():
                array = extended(source.array(variable.path).as_values(), variable.shape)
                first = source.first_path(variable.path)
                if first != variable.path and first in own:
                    target.repeat(variable, array, first)
                    continue
                if variable.path in anew:
                    slot = Slot(anew[variable.path], array, partial(target.create_like, variable, array))
                    yield slot
                    if not slot.is_kept:
                        continue
                with located(dataset=variable.path):
                    target.copy(variable, array)

    def finish(self, companions: Companions, line: str) -> None:
        """See `NewStore.finish`."""
        if history := with_line(self._source.model.group("/").attributes, line):
            self._target.set_history(history)
        self._target.finish(companions)


_MOST_REASONS = 10
"""Datasets whose reasons an error has; the command that leaves datasets out has them all."""


def check_storable(source: Store, check: Check, dropped: Collection[str]) -> None:
    """Raise UnstorableError, with all their names, if a target of another format does not support some arrays."""
    problems: dict[str, str] = {}
    attributes: set[str] = set()  # Paths of arrays that are refused for an attribute alone
    for group_path in source.model.group_paths():
        group = _without(source, group_path, dropped)
        problems |= {f"{group_path.rstrip('/')}/{name}": reason for name, reason in group.left_out.items()}
        for variable in group.variables.values():
            array = source.array(variable.path)
            try:
                check(variable, extended(array, variable.shape))
            except TamisError as error:
                if isinstance(error, UnstorableError):
                    attributes.add(variable.path)
                problems[variable.path] = str(error).removeprefix(f"{array.label}: ").removeprefix(f"{array.path}: ")
    if problems:
        lines = [printable(f"{path}: {reason}") for path, reason in itertools.islice(problems.items(), _MOST_REASONS)]
        if len(problems) > len(lines):
            lines.append(f"and {len(problems) - len(lines)} more")
        paths = tuple(path for path in problems if path not in attributes)
        what = f"{plural(len(paths), 'dataset')}, which must be left out (drop)" if paths else "these attributes"
        text = f"{source.path}: the target cannot have {what}:"
        raise UnstorableError("\n  ".join((text, *lines)), paths).at(
            path=source.path, dataset=next(iter(problems)) if len(problems) == 1 else None
        )


def _without(source: Store, path: str, dropped: Collection[str]) -> NamedGroup:
    """Return a group without the arrays that are left out."""
    group = source.model.group(path)
    if not dropped:
        return group
    variables = {
        name: variable for name, variable in group.variables.items() if source.first_path(variable.path) not in dropped
    }
    left_out = {
        name: reason
        for name, reason in group.left_out.items()
        if source.first_path(f"{path.rstrip('/')}/{name}") not in dropped
    }
    return replace(group, variables=variables, left_out=left_out)
