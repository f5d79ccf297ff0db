"""The protocols of stores of any format, of stored arrays and of writers of chunks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar

from numpy.typing import NDArray

from tamis.arrays.reader import ArrayReader
from tamis.errors import FileError
from tamis.rounding import ERROR_BOUND, ROUNDING_ATTRIBUTES
from tamis.stores.facts import ArrayFacts

if TYPE_CHECKING:
    from tamis.arrays.chunk_reader import ChunkReader
    from tamis.arrays.grid import Grid
    from tamis.arrays.index import ChunkIndex, Parts
    from tamis.arrays.selection import Selection
    from tamis.arrays.source import Placed
    from tamis.filters import Filter
    from tamis.meaning import Role
    from tamis.meaning.companions import CompanionFlags
    from tamis.meaning.missing import Flags
    from tamis.pipeline import Pipeline
    from tamis.stores.data_model import DataModel
    from tamis.stores.header import Header
    from tamis.stores.other_files import OtherFiles, Places
    from tamis.stores.readers import Readers


class Alike(NamedTuple):
    """Two small arrays of the same type, extents and fill value, without companions.

    Parameters
    ----------
    values, others
        The values of both; the same object if these have the same bits.
    new_attributes
        The attributes that only the second one has, where all others are certainly the same; None if that is not known.
    """

    values: NDArray[Any]
    others: NDArray[Any]
    new_attributes: tuple[str, ...] | None


class NotFoundError(FileError, KeyError):
    """A name that does not exist in a file; also a KeyError, as in any mapping."""


class Linked(NamedTuple):
    """Where a link of two stores leads, by the same name, to different files."""

    before: str  # Path of the file that the first store leads to
    after: str | None  # That of the second store; None if there is none
    inner: str  # Path of the object in both


class Change(NamedTuple):
    """A difference of two stores."""

    path: str  # Path of the array, group or link
    code: str  # Kind of difference, in a word
    text: str  # The difference in words
    harmless: bool = True  # Whether the second store still has everything in the first one
    attribute: str = ""  # Name of the attribute, if it is the difference of one
    linked: Linked | None = None  # Where a link leads; whether these objects differ is not known yet

    @classmethod
    def of_new_attribute(cls, path: str, name: str) -> Change:
        """Return the note that only the second store has an attribute."""
        about = ": it records a rounding of the values" if name in ROUNDING_ATTRIBUTES else ""
        about = ": it records the bound that was asked for" if name == ERROR_BOUND else about
        return cls(path, "attribute", f"attribute {name!r} is new{about}", attribute=name)

    @classmethod
    def of_companion(cls, path: str, variable: str) -> Change:
        """Return the note that a companion is not compared itself: its missing values are restored to their array."""
        return cls(path, "companion", f"the missing-value mask of {variable}: compared as its missing values")


@dataclass(frozen=True, slots=True)
class Unequal:
    """Elements that differ."""

    count: int  # Number of elements that differ
    index: tuple[int, ...]  # Index of the first
    text: str  # The first element in source and target
    harmless: bool = False  # Whether they differ only in things that no copy can keep


class StoreComparison(Protocol):
    """Two stores, source and target, of the same or different formats. Any method may raise FileError for damage."""

    @property
    def same_format(self) -> bool:
        """True if byte order and arrays that only represent dimensions are also compared."""
        ...

    @property
    def companions(self) -> Mapping[str, str]:
        """Companions of the source, with the paths of their variables."""

    def counterpart(self, path: str) -> StoredArray | None:
        """Return the array of the target for a path of the source; None if there is none."""

    def as_read(self, path: str, source: Any, target: Any) -> tuple[StoredArray, StoredArray]:
        """Return two arrays as readers of their formats have them; `path` is that in the source."""

    def repeated(self) -> Mapping[str, str]:
        """Return the first path of each array by all its paths, if the target has a copy at each; empty otherwise."""
        ...

    def attribute_changes(self, path: str, source: Any, target: Any) -> Iterable[Change]:
        """Yield changes of the attributes of an array."""

    def type_note(self, source: Any, target: Any) -> str:
        """Return how a named type changed; empty if it did not."""

    def same_value_type(self, source: Any, target: Any) -> bool:
        """Return whether arrays with different type names have the same type of values, if both formats have it."""

    def fill_note(self, source: Any, target: Any) -> str:
        """Return how the fill value of arrays of the same type changed; empty if it did not."""

    def unequal_elements(self, source: Any, target: Any, progress: Callable[[int, int], None]) -> Unequal | None:
        """Compare the elements of arrays of the same shape and type that are not numbers."""

    def same_stored_chunks(self, source: Any, target: Any) -> bool:
        """Return whether arrays have the same values because all stored bytes are the same."""

    def same_elsewhere(self, source: Any, target: Any) -> bool:
        """Return whether arrays have the same values because both refer to the same parts of the same other files."""

    def unlisted(self) -> Iterable[tuple[str, str]]:
        """Yield the groups that cannot be listed, with the reason."""

    def groups(self) -> Iterable[tuple[str, list[Callable[[], Iterator[Change]]]]]:
        """Yield the path of each group of the source, and functions that yield its changes."""

    def new_objects(self) -> Iterable[Change]:
        """Yield the objects that only the target has."""


class Store(Protocol):
    """A file or folder of arrays for reading. Use it in a ``with``, or close it."""

    @property
    def path(self) -> str:
        """Path of the file or folder."""

    @property
    def nbytes(self) -> int:
        """Bytes of the whole store."""

    @property
    def has_objects(self) -> bool:
        """True for HDF5: two such stores are compared object by object."""

    def take_in(self) -> None:
        """Treat what links into other files lead to as parts of the store.

        Raises
        ------
        FileError
            Here or when the store is listed, if a link leads nowhere, or its file cannot be read.
        """

    def take_codes(self) -> None:
        """Treat arrays that codecs of Zarr pack as the integers that they store, with CF's attributes for the rest.

        An array stays one of floats where CF's attributes would give other values. It is called before any array or
        group is looked at.
        """

    def linked_files(self) -> Mapping[str, Sequence[str]]:
        """Return the files that are taken in, with the paths of the arrays that each has."""
        ...

    def links_elsewhere(self) -> Iterable[str]:
        """Yield the paths of links into other files."""
        ...

    def linked(self, path: str) -> tuple[str, str] | None:
        """Return the other file to which a link on a path leads, and the path in it; None if there is none."""

    def has(self, path: str) -> bool:
        """Return whether there is an array or a group at a path."""
        ...

    def read_ahead(self) -> None:
        """Prepare to read all values: small arrays may be read with the facts about them, once, in a few megabytes."""

    @property
    def arrays(self) -> Arrays[StoredArray]:
        """All arrays by their first paths."""

    @property
    def roles(self) -> Mapping[str, Role]:
        """The role of each array, by path; no values are read."""

    @property
    def model(self) -> DataModel:
        """The variables and their dimensions by name, in groups."""
        ...

    def header(self) -> Header:
        """Return variables, dimensions, attributes and types as CDL describes them."""
        ...

    def array(self, path: str) -> StoredArray:
        """Return the array at a path."""

    def first_path(self, path: str) -> str:
        """Return the canonical path of an array, for any path that leads to it; empty if none does."""

    def paths(self) -> Mapping[str, str]:
        """Return the first path of each array by all its paths."""

    def check_finished(self) -> None:
        """Raise FileError if another program is still writing the store."""

    def check_listed(self) -> None:
        """Raise FileError if not all arrays are known because some groups cannot be listed."""

    def filtered_groups(self) -> Iterable[tuple[str, Pipeline, str]]:
        """Yield groups whose links are filtered or cannot be listed: path, filters, and why they cannot."""

    def readers_of(self, filters: Iterable[Filter]) -> Readers:
        """Return which readers can read data with these filters in such a store."""

    def survey_other_files(self, target: str, places: Places, rewritten: Collection[str] = ()) -> OtherFiles:
        """Return which other files a copy at `target` would lead to, in a run with these places.

        `rewritten` are the arrays whose values are stored anew.
        """
        ...

    def close(self) -> None:
        """Close the store."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class StoredArray(ArrayFacts, Protocol):
    """An array in a store: what its format knows about it, and its values."""

    @property
    def stored_nbytes(self) -> int:
        """Bytes of the values in the store."""

    @property
    def companion(self) -> StoredArray | None:
        """The array of flags of missing values; None if there is none."""

    @property
    def companion_flags(self) -> CompanionFlags | None:
        """The flags of the companion, with their meaning; None if there is no companion."""

    def chunk_index(self) -> ChunkIndex:
        """Return the chunk index."""

    def parts(self, grid: Grid) -> Parts:
        """Return the parts of a grid that have values in the store; all others read as the fill value."""

    @property
    def contiguous_offset(self) -> int | None:
        """Offset of values that are contiguous in an ordinary file; None if they are not."""
        ...

    def check_readable(self) -> None:
        """Raise FileError if a reader would silently get wrong values."""

    def as_values(self) -> StoredArray:
        """Return the array in a form for other formats: its bytes are the values, in the type of the values."""

    def open_reader(self, *, independent: bool = False) -> ArrayReader:
        """Open the values, with missing ones restored; `independent` reads with the format's own library."""

    def open_values(self) -> ArrayReader:
        """Open the values in their type; the same as `open_reader` if they have none."""

    @property
    def can_read_independently(self) -> bool:
        """True if the library of the format can read the array here."""

    def open_witness(self) -> ArrayReader:
        """Open the values through the library of the format, in its own types, without our code."""

    @property
    def can_read_chunks(self) -> bool:
        """True if `open_chunks` works: tamis can decode all filters."""

    def open_chunks(self) -> ChunkReader:
        """Open the stored chunks."""

    def open_few(self, selection: Selection) -> ChunkReader | None:
        """Open the chunks of a selection if they are few and can be looked up; None otherwise."""

    @property
    def has_slow_library(self) -> bool:
        """True if the library of the format is many times slower than tamis for small arrays."""

    @property
    def at_once(self) -> AtOnce | None:
        """The same array, if its format reads all of a small one in one call; None otherwise."""
        ...


class AtOnce(Protocol):
    """An array of a format that reads all of a small one in one call."""

    @property
    def likeness(self) -> object:
        """See `likeness_of`."""
        ...

    def small_values(self) -> NDArray[Any] | None:
        """See `small_values_of`."""
        ...

    def alike(self, other: Any, *, independent: bool = False) -> Alike | None:
        """See `read_alike`."""
        ...


def likeness_of(array: StoredArray) -> object:
    """Return a key that is equal for arrays that differ only in path, values and location; None if unknown.

    It is hashable, and such arrays have the same plan.
    """
    return None if array.at_once is None else array.at_once.likeness


def small_values_of(array: StoredArray) -> NDArray[Any] | None:
    """Return all values if they are few and the format can read them at once; None otherwise."""
    return None if array.at_once is None else array.at_once.small_values()


def read_alike(array: StoredArray, other: StoredArray, *, independent: bool = False) -> Alike | None:
    """Read all of two arrays of the same path in two stores at once, if they are alike and the format can.

    Parameters
    ----------
    array, other
        The arrays.
    independent
        Whether the library of the format must read the same values, too.

    Returns
    -------
    Alike or None
        The values if both arrays certainly have the same type, extents and fill value, and no companions. None if they
        do not, or must be compared part by part.
    """
    return None if array.at_once is None else array.at_once.alike(other, independent=independent)


A_co = TypeVar("A_co", bound=StoredArray, covariant=True)


class Arrays(Mapping[str, A_co]):
    """Arrays by path, in the order of the store."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self.entries = entries

    def __getitem__(self, path: str) -> A_co:
        array: A_co = self.entries[path]
        return array

    def __contains__(self, path: object) -> bool:
        return path in self.entries  # without opening it

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def labelled(self, labels: Mapping[str, str], *, others: bool = True) -> Self:
        """Return arrays by other paths, `labels`; arrays without a label are left out if `others` is False."""
        arrays = copy(self)
        arrays.entries = {
            labels.get(path, path): entry for path, entry in self.entries.items() if others or path in labels
        }
        return arrays

    def marked(self) -> list[str]:
        """Return the paths of arrays that have a companion."""
        return [path for path, array in self.items() if array.marks.has_companion]

    def companions(self) -> Iterator[tuple[A_co, str]]:
        """Yield each companion that some arrays have, and the path of its variable; damaged ones are left out."""
        for path in self.marked():
            with suppress(FileError):
                if (companion := self[path].companion) is not None:
                    yield companion, path  # type: ignore[misc]  # of the same kind


class EncodedChunk(Protocol):
    """An encoded chunk."""

    @property
    def number(self) -> int:
        """Its number in the grid."""

    @property
    def data(self) -> bytes:
        """Its bytes."""

    @property
    def mask(self) -> int:
        """Its filter mask."""

    @property
    def placed(self) -> Placed | None:
        """Its place, if it is in its file already; then it has no data."""


class ArrayWriter(Protocol):
    """A new array, written chunk by chunk."""

    @property
    def grid(self) -> Grid:
        """The grid of its chunks."""

    @property
    def recorded(self) -> Pipeline:
        """The filters in the store, by which readers decode."""

    @property
    def has_whole_chunks(self) -> bool:
        """Whether readers need all elements of each chunk, also those outside the array."""
        ...

    @property
    def stored_nbytes(self) -> int:
        """Bytes of all written chunks."""

    def put(self, chunks: Sequence[EncodedChunk]) -> Sequence[int | None]:
        """Write encoded chunks, and return the offset of each in its file; None if unknown."""

    def create_companion(self, pipeline: Pipeline, flags: Flags) -> ArrayWriter:
        """Create the companion of the array, which gets its name after all other arrays."""

    def finish(self) -> None:
        """Raise FileError unless the store's chunk records match exactly what was written."""
