"""The protocol of two stores that are compared except for the numbers in their arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tamis.cf.history_attribute import HISTORY, added_line
from tamis.rounding import ROUNDING_ATTRIBUTES, is_container
from tamis.store.array import StoredArray


@dataclass(frozen=True, slots=True)
class Change:
    """A difference of two stores.

    Parameters
    ----------
    path
        Path of the array, group or link.
    code
        Kind of difference, in a word.
    text
        The difference in words.
    harmless
        Whether the second store still has everything that the first one has.
    """

    path: str
    code: str
    text: str
    harmless: bool = True


@dataclass(frozen=True, slots=True)
class Unequal:
    """Elements that differ.

    Parameters
    ----------
    count
        Number of elements that differ.
    index
        Index of the first.
    text
        The first element in source and target.
    harmless
        Whether they only differ in what no copy can have.
    """

    count: int
    index: tuple[int, ...]
    text: str
    harmless: bool = False


class Pair(Protocol):
    """Two stores, source and target, of one format or of two. Any method may raise FileError for a damaged one."""

    @property
    def same_format(self) -> bool:
        """True if byte order and arrays that only stand for dimensions are compared, too."""
        ...

    @property
    def companions(self) -> Mapping[str, str]:
        """Companions of the source, with the paths of their variables."""

    def counterpart(self, path: str) -> StoredArray | None:
        """Return the array of the target for a path of the source; None if there is none."""

    def attribute_changes(self, path: str, source: Any, target: Any) -> Iterable[Change]:
        """Yield changes of the attributes of an array."""

    def type_note(self, source: Any, target: Any) -> str:
        """Return how a named type changed; empty if it did not."""

    def same_value_type(self, source: Any, target: Any) -> bool:
        """Return whether arrays of types with other names have values of one type, as both formats can have it."""

    def fill_note(self, source: Any, target: Any) -> str:
        """Return how the fill value of arrays of one type changed; empty if it did not."""

    def unequal_elements(self, source: Any, target: Any, progress: Callable[[int, int], None]) -> Unequal | None:
        """Compare the elements of arrays of one shape and type, which are no numbers."""

    def same_stored_chunks(self, source: Any, target: Any) -> bool:
        """Return whether arrays have the same values because all stored bytes are the same."""

    def same_elsewhere(self, source: Any, target: Any) -> bool:
        """Return whether arrays have the same values because both name the same parts of the same other files."""

    def unlisted(self) -> Iterable[tuple[str, str]]:
        """Yield the groups that cannot be listed, with the reason."""

    def groups(self) -> Iterable[tuple[str, list[Callable[[], Iterator[Change]]]]]:
        """Yield the path of each group of the source, and functions that yield its changes."""

    def new_objects(self) -> Iterable[Change]:
        """Yield the objects that only the target has."""


def history_change(path: str, name: str, before: str, after: str) -> Change | None:
    """Return the note that tamis added a line to the history of the root group; None for any other change."""
    line = added_line(before, after) if (path, name) == ("/", HISTORY) else ""
    return Change(path, "attribute", f"attribute {name!r} has a new line: {line}") if line else None


def new_attribute(path: str, name: str) -> Change:
    """Return the note that only the target has an attribute."""
    about = ": it records a rounding of the values" if name in ROUNDING_ATTRIBUTES else ""
    return Change(path, "attribute", f"attribute {name!r} is new{about}")


def absent_text(names: tuple[str, ...]) -> str:
    """Return that other files are absent, as a note."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"values are missing, because these files do not exist: {names[0]}{more}"


def new_dataset(path: str, shape: tuple[int, ...] | None, attributes: Mapping[str, Any]) -> Change:
    """Return the note that only the target has an array."""
    about = ": it describes how values were rounded" if is_container(shape, attributes) else ""
    return Change(path, "new-dataset", f"only in the target{about}")


def companion_note(path: str, variable: str) -> Change:
    """Return the note that a companion is not compared itself: its missing values are restored to their array."""
    return Change(path, "companion", f"the companion of {variable}: compared as its missing values")
