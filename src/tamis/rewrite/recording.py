"""Leave out of an array's recorded filters those that none of its chunks goes through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from tamis.filters import ChunkType, Filter
from tamis.pipeline import Pipeline
from tamis.rewrite.encode import idle_types
from tamis.rewrite.new_chunk import NewChunk
from tamis.store.array import EncodedChunk

_KEPT_NBYTES = 16 << 20
"""Up to this size, written chunks stay in memory, to be written again if a later chunk needs the other filters."""

_OBJECT_NBYTES = 256
"""Memory of a chunk beside its bytes."""


@lru_cache(maxsize=64)  # many arrays have the same pipeline
def shorter_pipeline(pipeline: Pipeline) -> Pipeline | None:
    """Return what `without_fallback` does; None if that is the pipeline itself."""
    shorter = without_fallback(pipeline)
    return None if shorter is pipeline else shorter


def without_fallback(pipeline: Pipeline) -> Pipeline:
    """Return the filters of the chunks that go through the first one, without those that are for other chunks."""
    idle = _fallback_types(pipeline)
    if not idle:
        return pipeline
    return Pipeline((stage for stage in pipeline.stages if type(stage.filter) not in idle), bound=pipeline.bound)


def fallback_mask(pipeline: Pipeline) -> int:
    """Return the filter mask of chunks that go through the first filter, and skip those that are for other chunks."""
    idle = _fallback_types(pipeline)
    return sum(1 << at for at, item in enumerate(pipeline.filters) if type(item) in idle)


def fallback_text(pipeline: Pipeline) -> str:
    """Return the filters for chunks that skip the first one, as text; empty if there are none."""
    idle = _fallback_types(pipeline)
    return str(Pipeline(stage for stage in pipeline.stages if type(stage.filter) in idle)) if idle else ""


def _fallback_types(pipeline: Pipeline) -> tuple[type[Filter], ...]:
    return idle_types(pipeline) if pipeline.stages and pipeline.filters[0].needs_values else ()


@dataclass(frozen=True, slots=True)
class Recording:
    """The filters that an array records, out of those that its chunks are encoded by.

    Parameters
    ----------
    requested
        All filters.
    recorded
        The recorded ones, with stored parameters: all, or those of `without_fallback`.
    chunk
        Type and shape of the chunks.

    Attributes
    ----------
    pipeline
        All filters with stored parameters, by which chunks are encoded.
    """

    requested: Pipeline
    recorded: Pipeline
    chunk: ChunkType
    pipeline: Pipeline = field(init=False)
    _positions: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Set what follows from the filters."""
        idle = () if len(self.recorded.stages) == len(self.requested.stages) else _fallback_types(self.requested)
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
        """Return the filter mask of a chunk in the array from that by all filters."""
        return sum((mask >> at & 1) << bit for bit, at in enumerate(self._positions))


class KeptChunks:
    """The chunks that were written so far, until they are too many for the memory.

    Attributes
    ----------
    chunks
        The chunks; none if they are not all.
    are_all
        Whether they are all that were written.
    """

    def __init__(self) -> None:
        self.chunks: list[NewChunk] = []
        self.are_all = True
        self._nbytes = 0

    def add(self, chunks: Sequence[NewChunk]) -> None:
        """Keep chunks that are written now, or no chunk anymore."""
        self._nbytes += sum(len(chunk.data) + _OBJECT_NBYTES for chunk in chunks)
        self.are_all = self._nbytes <= _KEPT_NBYTES
        if self.are_all:
            self.chunks += chunks
        else:
            self.chunks.clear()
