"""The array of a plan in a target: its place, and what creates it in the format of the target."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tamis.pipeline import Pipeline
from tamis.rewrite.outcome import Outcome
from tamis.rewrite.plan import ArrayPlan, Recode
from tamis.stores.protocols import ArrayWriter, StoredArray


class WrittenAtOnce(NamedTuple):
    """A small array that was written and checked at once."""

    pipeline: Pipeline  # Filters as the store recorded them
    # Offset, size, checksum, number of missing values and largest error of each chunk, in the order of their numbers
    chunks: Sequence[tuple[int, int, int, int, float]]
    mask: int  # Filter mask of all chunks
    unrounded: int = 0  # See `Outcome.unrounded_values`

    def outcome(self, *, lossy: bool) -> Outcome:
        """Return the outcome of its chunks."""
        missing, largest = 0, 0.0
        if lossy:
            missing = sum([chunk[3] for chunk in self.chunks])
            largest = max([chunk[4] for chunk in self.chunks])
        return Outcome(len(self.chunks), missing_values=missing, largest_error=largest, unrounded_values=self.unrounded)


Create = Callable[[ArrayPlan], ArrayWriter]
"""Creates the array of a plan in the target, in place of one that it created before."""


class CreateAtOnce(ABC):
    """A `Create` that also writes small arrays at once, if the format can."""

    @abstractmethod
    def __call__(self, plan: ArrayPlan) -> ArrayWriter:
        """Create the array of a plan."""

    @abstractmethod
    def at_once(self, plan: Recode, most_nbytes: int | None) -> WrittenAtOnce | None:
        """Create the array of a simple plan (`is_simple`) with all of its chunks, in a limited number of bytes.

        Encoded chunks are decoded and compared, and the store's records match the chunks. None, without writing
        anything, if the array must be written chunk by chunk.
        """


class Slot:
    """The place of an array in a new file or folder, when it is the turn of that array to be written."""

    def __init__(self, path: str, array: StoredArray, create: Create) -> None:
        self.path = path  # As `Changes.anew` names it
        self.array = array  # The array of the source, up to the ends of its dimensions
        self.create = create
        self.is_kept = False

    def keep(self) -> None:
        """Let the array be copied as stored, in place of what `create` may have begun."""
        self.is_kept = True
