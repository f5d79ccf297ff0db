"""A target of a format without filters, which gets groups, variables and the history, and is then completed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from tamis.access import create_empty
from tamis.arrays.gather import several_chunks
from tamis.arrays.grid import Grid, Region
from tamis.arrays.index import Parts
from tamis.errors import ParameterError
from tamis.rewrite.transfer import Changes, Companions, NewStore, Transfer, check_storable
from tamis.safety.transaction import FolderTransaction, Transaction
from tamis.stores.facts import ArrayFacts, size_of

if TYPE_CHECKING:
    from tamis.rewrite.plan import ArrayPlan
    from tamis.stores.data_model import NamedArray, NamedGroup, Translation
    from tamis.stores.protocols import ArrayWriter, Store, StoredArray

_PART_NBYTES = 16 << 20


class PlainTarget(ABC):
    """A new file of such a format; see `tamis.rewrite.transfer.Target`."""

    @abstractmethod
    def create_group(self, group: NamedGroup) -> None:
        """Store a group with its dimensions and attributes, before its variables and inner groups."""

    @abstractmethod
    def put_variable(self, variable: NamedArray, values: Iterable[tuple[Region, NDArray[Any]]]) -> None:
        """Store a variable, whose values come in parts: boxes of the array, which need not be contiguous in it.

        Types of attributes are in `NamedArray.forms`: without them, texts and small numbers come back as others.
        """

    @abstractmethod
    def set_history(self, text: str) -> None:
        """Set the history of the root group."""

    @abstractmethod
    def complete(self) -> None:
        """Complete the file."""

    def create_like(self, variable: NamedArray, array: StoredArray, plan: ArrayPlan) -> ArrayWriter:
        """Raise ParameterError: there are no filters."""
        raise ParameterError(
            f"{variable.path}: the format of the target has no filters, got {plan.pipeline}: leave them out, or choose"
            " another format"
        ).at(dataset=variable.path)

    def copy(self, variable: NamedArray, array: StoredArray) -> None:
        """See `Target.copy`."""
        with closing(array.open_values()) as reader:
            self.put_variable(variable, self._parts(variable, array, reader))

    def _parts(self, variable: NamedArray, array: ArrayFacts, reader: Any) -> Iterator[tuple[Region, NDArray[Any]]]:
        if not size_of(array):
            return
        most = max(_PART_NBYTES // max(variable.dtype.itemsize, 1), 1)
        box = several_chunks(array.shape, array.storage.chunk_shape or (1,) * len(array.shape), most)
        for part in Parts(Grid(array.shape, box)):
            yield part, reader.read(part)

    def repeat(self, variable: NamedArray, array: StoredArray, path: str) -> None:
        """Store an array once more: there are no links."""
        self.copy(variable, array)

    def finish(self, companions: Companions) -> None:
        """See `Target.finish`; without filters there are no companions."""
        self.complete()


class PlainForm(ABC):
    """The form of such a file; see `tamis.rewrite.transfer.TargetForm`."""

    files = None

    @abstractmethod
    def target(self, path: Path) -> PlainTarget:
        """Begin a file at a path, where there is an empty one with the mode that it must have; or make a folder."""

    @abstractmethod
    def check(self, variable: NamedArray, array: StoredArray) -> None:
        """Raise FileError if the format does not have the type of a variable, or of one of its attributes.

        What it does not have of a group, `PlainTarget.create_group` refuses.
        """

    def begin(self, target: Path, *, overwrite: bool = True, private: bool = False) -> Transaction:
        """Return the transaction of a file."""
        return Transaction(target, overwrite=overwrite, private=private)

    def check_copy(self, source: Store, dropped: Collection[str] = ()) -> None:
        """See `TargetForm.check_copy`."""
        check_storable(source, self.check, dropped)

    def kept_as_stored(self, source: Store) -> Collection[str]:
        """Return nothing: every array can be read."""
        return ()

    def translations(self, source: Store) -> Iterable[Translation]:
        """Yield nothing; a format that has less than netCDF's data model says what is lost."""
        return ()

    def copies_objects_of(self, source: Store) -> bool:
        """Return False: values are written again."""
        return False

    @contextmanager
    def copying(self, source: Store, target: Transaction, changes: Changes, threads: int = 1) -> Iterator[NewStore]:
        """See `TargetForm.copying`."""
        if not isinstance(target, FolderTransaction):
            create_empty(target.path, target.mode)
        yield Transfer(source, self.target(target.path), changes)

    def __str__(self) -> str:
        return ""
