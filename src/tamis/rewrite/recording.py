"""Do not record filters of an array that none of its chunks goes through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tamis.pipeline import Pipeline
from tamis.rewrite.encode import fallback_types

if TYPE_CHECKING:
    from tamis.filters import ChunkType
    from tamis.rewrite.new_chunk import NewChunk
    from tamis.stores.protocols import EncodedChunk

_KEPT_NBYTES = 16 << 20
"""Up to this size, written chunks stay in memory, to be written again if a later chunk needs the other filters."""

_OBJECT_NBYTES = 256
"""Memory of a chunk beside its bytes."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The filters that an array records, out of those that encode its chunks."""

    requested: Pipeline
    recorded: Pipeline  # The recorded ones, with stored parameters: all, or those of `shorter_pipeline`
    chunk: ChunkType  # Type and shape of the chunks
    pipeline: Pipeline = field(init=False)  # All filters with stored parameters, by which chunks are encoded
    _positions: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Set the fields that follow from the filters."""
        idle = () if len(self.recorded.stages) == len(self.requested.stages) else fallback_types(self.requested)
        stages = [replace(stage, stored=stage.filter.stored(self.chunk)) for stage in self.requested.stages if idle]
        positions = tuple(at for at, item in enumerate(self.requested.filters) if type(item) not in idle)
        for at, stage in zip(positions, self.recorded.stages, strict=True):
            stages[at : at + 1] = [stage]
        object.__setattr__(self, "pipeline", Pipeline(stages, bound=self.recorded.bound))
        object.__setattr__(self, "_positions", positions)

    @property
    def is_short(self) -> bool:
        """Whether filters are left out."""
        return len(self._positions) < len(self.requested.stages)

    def takes(self, chunks: Iterable[EncodedChunk]) -> bool:
        """Return whether no chunk goes through a filter that is not recorded."""
        every = (1 << len(self.requested.stages)) - 1
        missing = every & ~sum(1 << at for at in self._positions)
        return all(chunk.mask & missing == missing for chunk in chunks)

    def mask_of(self, mask: int) -> int:
        """Convert a chunk's filter mask for all filters to that for the recorded ones."""
        return sum((mask >> at & 1) << bit for bit, at in enumerate(self._positions))


class KeptChunks:
    """The chunks written so far, until they are too many for memory."""

    def __init__(self) -> None:
        self.chunks: list[NewChunk] = []
        self.are_all = True
        self._nbytes = 0

    def add(self, chunks: Sequence[NewChunk]) -> None:
        """Keep chunks that are being written, or drop all if they are too many."""
        self._nbytes += sum(len(chunk.data) + _OBJECT_NBYTES for chunk in chunks)
        self.are_all = self._nbytes <= _KEPT_NBYTES
        if self.are_all:
            self.chunks += chunks
        else:
            self.chunks.clear()
