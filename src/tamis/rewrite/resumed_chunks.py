"""Reuse the chunks of one dataset that an earlier, killed run encoded, and record those that this run writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tamis.meaning.companions import COMPANION_ENDING
from tamis.rewrite.placed_chunks import Recorder, left_chunks

if TYPE_CHECKING:
    from tamis.arrays.grid import Grid
    from tamis.arrays.index import Parts
    from tamis.meaning.missing import Flags
    from tamis.rewrite.new_chunk import NewChunk
    from tamis.rewrite.plan import ArrayPlan
    from tamis.safety.journal import Journal, Leftover


class ResumedChunks(Recorder):
    """Chunks that `write` reuses from an earlier run, and records of its own chunks for a later run."""

    def __init__(
        self,
        plan: ArrayPlan,
        journal: Journal,
        numbers: tuple[int, int],
        leftover: Leftover | None,
        taken: Callable[[], None],
        file_of: Callable[[str, Grid, int], str],
    ) -> None:
        super().__init__(journal, plan, numbers)
        self.reused: list[tuple[int, int]] = []  # Number and mask of each chunk, in the order of writing
        self._plan = plan
        self._leftover = leftover
        self._taken = taken
        self._file_of = file_of

    @property
    def is_resumed(self) -> bool:
        """True if an earlier run left chunks."""
        return self._leftover is not None

    def encoded(self, parts: Parts, flags: Flags | None = None) -> Iterator[NewChunk]:
        """Yield the chunks that an earlier run wrote, in its order, up to the first that differs from its record."""
        self.reused.clear()  # an array that is created anew reuses them again
        if self._leftover is None:
            return
        path = self._plan.path
        for placed in left_chunks(self._leftover, self._plan, parts, flags):
            files = [self._file_of(name, parts.grid, placed.chunk.number) for name in (path, path + COMPANION_ENDING)]
            chunk = placed.loaded(self._leftover.read, *files)
            if chunk is None:
                break
            self.reuse(chunk)
            yield chunk
        self._taken()

    def reuse(self, chunk: NewChunk) -> None:
        """Count a chunk of an earlier run."""
        self.reused.append((chunk.number, chunk.mask))
