"""The protocol of a file or store that gets more values and variables; each format that is extended has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from tamis.pipeline import Pipeline

if TYPE_CHECKING:
    from tamis.stores.data_model import AttributeForm
    from tamis.stores.protocols import Store


class Piece(NamedTuple):
    """An array of another file of the same format, whose values an array gets."""

    path: Path  # Path of the file or store
    array: str  # Path of the array in it
    start: int  # Where its values begin along the axis that grows


class Extension(Protocol):
    """A file or store that is open for writing."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def set_length(self, dimension: str, length: int) -> None:
        """Set the length of a dimension, given by its path."""

    def extend(self, path: str, shape: tuple[int, ...], axis: int, pieces: Sequence[Piece]) -> str:
        """Give an array a shape, and the values of pieces along an axis; their chunks move if they are stored alike.

        Return what changes for readers of the array; empty if nothing does.
        """

    def set_attributes(
        self, path: str, attributes: Mapping[str, Any], forms: Mapping[str, AttributeForm] | None = None
    ) -> None:
        """Set attributes of a group or an array; `forms` has those of attributes that are values of JSON."""

    def add(self, new: Path, group_attributes: Mapping[str, Mapping[str, Any]]) -> None:
        """Add the variables of another file or store, with the groups and dimensions that they need.

        Parameters
        ----------
        new
            Path of the other file or store.
        group_attributes
            Attributes of the groups that are saved together: a new group shares dimensions only with these.
        """

    def finish(self) -> None:
        """Write what is left to write, and close it."""

    def check_kept(self, before: Store, after: Store, rewritten: Mapping[str, tuple[int, int]]) -> None:
        """Compare the chunks of all arrays with those before, as they are stored.

        Parameters
        ----------
        before, after
            The store, and the copy that was extended.
        rewritten
            Axis, and first step along it, from which on chunks are new, by path of the array.

        Raises
        ------
        BoundError
            If any differ.
        """


def filter_places(moved: Pipeline, own: Pipeline) -> list[int] | None:
    """Return the place of each filter of an array among those of another one, in order; None if one is not there."""
    places: list[int] = []
    for stage in moved.stages:
        later = range(places[-1] + 1 if places else 0, len(own.filters))
        place = next((number for number in later if own.filters[number] == stage.filter), None)
        if place is None:
            return None
        places.append(place)
    return places


def moved_mask(mask: int, places: Sequence[int], count: int) -> int:
    """Return the filter mask of a chunk that moves to an array with more filters, which it skips.

    Parameters
    ----------
    mask
        Its mask where it is now.
    places
        The places of the filters there among those of the new array; see `filter_places`.
    count
        Number of filters of the new array.
    """
    through = sum(1 << place for number, place in enumerate(places) if not mask >> number & 1)
    return ((1 << count) - 1) & ~through
