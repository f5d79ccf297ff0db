"""What is to become of an array, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tamis.cf import Packing
from tamis.chunks.chunk_notes import ChunkNotes
from tamis.chunks.grid import Grid
from tamis.chunks.regions import Parts
from tamis.filters import ChunkType
from tamis.missing.definition import Missing
from tamis.missing.table import MOST_FLAGS, Flags, can_flag
from tamis.pipeline import Pipeline
from tamis.rewrite.padding import Padding
from tamis.store.array import ArrayWriter, StoredArray


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to become of one array.

    Parameters
    ----------
    path
        In both stores.
    pipeline
        Through which it goes.
    dtype
        Of the target; in native byte order where zfp is among the filters.
    chunk_shape
        Of the target, slowest axis first.
    notes
        What the user should know.
    missing
        What stands for missing values, which have to stay what they are.
    copied
        Whether chunks are copied as they are stored: pipeline, type and chunk shape are those of the source.
    streams_kept
        Whether the streams of zfp are kept as they are, and only filters behind it change.
    flags
        What the flags of a companion stand for, to which missing values go; None where they stay among the others.
    packing
        How stored values become those in the units of the variable; None where they are in them.
    padding
        What chunks hold beyond the array.
    may_grow
        Whether it is stored so even if it then takes more room than in the source.

    Attributes
    ----------
    chunk
        Type and shape of the target's chunks.
    recoded
        Whether values are encoded anew, and not taken over with the losses that they have.
    bound
        Largest absolute error of stored values that is allowed; 0 if lossless; None where a filter gives none.
    lossy
        Whether values may change.
    """

    path: str
    pipeline: Pipeline
    dtype: np.dtype[Any]
    chunk_shape: tuple[int, ...]
    notes: tuple[str, ...] = ()
    missing: Missing = field(default_factory=Missing)
    copied: bool = False
    streams_kept: bool = False
    flags: Flags | None = None
    packing: Packing | None = None
    padding: Padding = field(default_factory=Padding)
    may_grow: bool = True

    # Asked for each chunk, several times.
    chunk: ChunkType = field(init=False)
    recoded: bool = field(init=False)
    bound: float | None = field(init=False)
    lossy: bool = field(init=False)

    def __post_init__(self) -> None:
        """Find out what the pipeline allows."""
        object.__setattr__(self, "chunk", ChunkType(self.dtype, self.chunk_shape))
        object.__setattr__(self, "recoded", not (self.copied or self.streams_kept))
        object.__setattr__(self, "bound", self.pipeline.error_bound if self.recoded else 0.0)
        object.__setattr__(self, "lossy", self.bound != 0)

    def in_units(self, error: float) -> float:
        """Return an error of stored values in units of the variable."""
        return error if self.packing is None else self.packing.unpacked_error(error)

    @property
    def unpacked_bound(self) -> float | None:
        """The bound in units of the variable."""
        return None if self.bound is None else self.in_units(self.bound)

    def grid(self, source: StoredArray) -> Grid:
        """Return the chunks of the target."""
        return Grid(source.shape, self.chunk_shape)

    def parts(self, source: StoredArray) -> Parts:
        """Return the parts of the array that are to be written, one for each chunk."""
        if self.streams_kept:
            return source.chunk_index().parts.touching(self.grid(source))
        return source.parts(self.grid(source))


@dataclass(frozen=True, slots=True)
class Written:
    """What `write` did.

    Parameters
    ----------
    chunks
        Chunks written; what was never written to the source is not.
    lossless_chunks
        Those of them stored without zfp, since it could not keep their values or the bound.
    missing_values
        Missing values in these chunks; not counted where nothing is lossy.
    lossless_for_missing
        Chunks stored without zfp that hold missing values.
    lossless_for_range
        Others stored without zfp, which would have moved values across a limit of the valid range.
    skipped
        Chunks that each filter but zfp could not be applied to, by its text.
    reused
        Chunks taken over from an earlier run.
    companion
        Where the missing values are, without a name yet; None where none was needed.
    pipeline
        As the store recorded it: what the chunks that are proven decode by.
    proven
        Numbers and seals (see `seal_of`) of the chunks that were decoded and compared with the source before they were
        written; the store has to be seen to hold them.
    largest_error
        Of these.
    """

    chunks: int
    lossless_chunks: int
    missing_values: int = 0
    lossless_for_missing: int = 0
    lossless_for_range: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    reused: int = 0
    companion: ArrayWriter | None = None
    pipeline: Pipeline = field(default_factory=lambda: Pipeline(()))
    proven: ChunkNotes = field(default_factory=lambda: ChunkNotes("I"))
    largest_error: float = 0.0


def flags_for(array: StoredArray, dtype: np.dtype[Any]) -> Flags | None:
    """Return the table of the missing values that an array may have, without reading its values.

    Parameters
    ----------
    array
        The source.
    dtype
        Of the target.

    Returns
    -------
    Flags or None
        None where it can have no missing values, or where their bits cannot be told apart.
    """
    missing = array.missing
    if not can_flag(dtype) or len(missing.values) > MOST_FLAGS // 2:
        return None
    values = [*missing.values, *(value.astype(dtype) for value in array.missing_nan if dtype.kind == "f")]
    return Flags.of(values, dtype) if values or dtype.kind == "f" else None
