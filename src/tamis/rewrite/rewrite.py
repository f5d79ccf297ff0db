"""The plan of an array to be written, and the result of writing it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.fields import FieldMeasures
from tamis.accuracy.measured import Measured, reached
from tamis.arrays.grid import ChunkNotes, Grid, grid_of
from tamis.filters import ChunkType, Sz3
from tamis.filters.plugin_client import hdf5plugin_version
from tamis.meaning.arrays import missing_nan
from tamis.meaning.missing import MOST_FLAGS, Flags, Missing, can_flag
from tamis.pipeline import Pipeline
from tamis.rewrite.encode import Broken, ChunkEncoder, shorter_pipeline
from tamis.rewrite.packed_array import PackedArray
from tamis.rewrite.values import Padding
from tamis.rounding import ERROR_BOUND
from tamis.stores.protocols import ArrayWriter, StoredArray

if TYPE_CHECKING:
    from tamis.accuracy.requirement import Requirement
    from tamis.accuracy.value_bounds import ArrayRounding, ValueBounds
    from tamis.arrays.index import Parts
    from tamis.meaning import Packing
    from tamis.rounding import Codes, Rounding


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The plan by which one array is written."""

    path: str  # Path in both stores
    pipeline: Pipeline  # Filters of the target, without a rounding
    # Type of the target; in native byte order if zfp is among the filters, or values are rounded
    dtype: np.dtype[Any]
    chunk_shape: tuple[int, ...]  # Chunk shape of the target, slowest axis first
    notes: tuple[str, ...] = ()  # Notes for the user
    missing: Missing = field(default_factory=Missing)  # Definition of missing values, which must not change
    # Whether chunks are copied as stored: pipeline, type and chunk shape are those of the source
    copied: bool = False
    streams_kept: bool = False  # Whether the streams of zfp are kept, and only the filters after zfp change
    # Table of flags for the companion that gets the missing values; None without a companion
    flags: Flags | None = None
    # Conversion of stored values to the units of the variable; None if they are not packed
    packing: Packing | None = None
    padding: Padding = field(default_factory=Padding)  # Values of chunks beyond the array
    may_grow: bool = True  # Whether the array is written even if it becomes larger than in the source
    # Rounding of the values before they are encoded; None if they are not rounded
    rounding: ArrayRounding | None = None
    codes: Codes | None = None  # The codes of the values; None if they are not packed
    # Further limits on each value, and, with a rounding, its largest absolute error; None if nothing was required of
    # values that may change
    bounds: ValueBounds | None = None
    # What was required of the array; None if nothing was
    required: Requirement | None = field(default=None, repr=False)
    # Words of the measures of whole fields or rows that are measured chunk by chunk
    fields: tuple[str, ...] = field(default=(), repr=False)
    # Whether an array records all filters when it is created, also those that are for chunks without the first one
    records_all: bool = field(default=False, repr=False)
    # The plan that `at` was called on; None if this one was made otherwise
    model: Rewrite | None = field(default=None, repr=False, compare=False)

    # Computed once because every chunk needs them several times.
    chunk: ChunkType = field(init=False)  # Type and shape of the target's chunks
    # Whether values are encoded again, in contrast to copied chunks and kept streams
    recoded: bool = field(init=False)
    # Largest allowed absolute error of stored values; 0 if lossless; None if the filters have no bound, or a rounding
    # has a relative one, and no absolute error was required
    bound: float | None = field(init=False)
    lossy: bool = field(init=False)  # Whether values may change

    def __post_init__(self) -> None:
        """Set the attributes that follow from the pipeline."""
        object.__setattr__(self, "chunk", ChunkType(self.dtype, self.chunk_shape))
        object.__setattr__(self, "recoded", not (self.copied or self.streams_kept))
        bound = self.pipeline.error_bound if self.recoded else 0.0
        if self.rounding is not None:
            bounds = self.rounding.rounding.absolute_bound, None if self.bounds is None else self.bounds.absolute
            bound = min((value for value in bounds if value is not None), default=None)
        object.__setattr__(self, "bound", bound)
        object.__setattr__(self, "lossy", self.bound != 0)

    def at(self, path: str) -> Rewrite:
        """Return the same plan for another, similar array."""
        plan = object.__new__(Rewrite)  # nothing is computed again
        for name in _SHARED:
            object.__setattr__(plan, name, getattr(self, name))
        object.__setattr__(plan, "path", path)
        object.__setattr__(plan, "model", self.model or self)
        return plan

    @property
    def measures(self) -> tuple[str, ...]:
        """Words of the requirements on the whole array, if its values may change."""
        return tuple(self.required.measures) if self.required is not None and self.lossy else ()

    def measured(self, before: NDArray[Any], after: NDArray[Any]) -> Measured | None:
        """Return the required measures of a chunk; None if nothing is measured."""
        if not self.measures:
            return None
        measured = Measured.of(before, after, self.missing, self.measures)
        return measured._replace(fields=FieldMeasures.of(before, after, self.missing, self.packing, self.fields))

    def reached(self, measured: Measured, *, all_stored: bool) -> dict[str, float | None]:
        """Return the required measures that follow from the facts of all values."""
        values = reached(measured, self.measures, 1.0 if self.packing is None else self.packing.scale)
        fields = measured.fields.by_word if all_stored else {}
        return values | {word: fields[word] for word in self.fields if word in fields}

    def encoder(self, broken: Broken | None = None) -> ChunkEncoder:
        """Return the encoder of the chunks, whose values must also pass `broken`."""
        return ChunkEncoder(self.pipeline, self.chunk, self.padding, self.missing, broken=broken)

    @property
    def created(self) -> Pipeline:
        """The filters of an array that records them when it is created; `pipeline` itself if they are all."""
        if self.copied or self.records_all:
            return self.pipeline
        return shorter_pipeline(self.pipeline) or self.pipeline

    @property
    def requested(self) -> Pipeline:
        """Rounding or packing, and filters."""
        first: Rounding | None = None if self.codes is None else self.codes.asked
        first = first if self.rounding is None else self.rounding.rounding
        return self.pipeline if first is None else Pipeline((first, *self.pipeline.stages))

    @property
    def changes_values(self) -> bool:
        """True if values may change, by filters, rounding or packing."""
        return self.lossy or self.codes is not None

    def packed(self, source: StoredArray) -> StoredArray:
        """Return the array whose values the target stores: the codes of the source, if it is packed."""
        return source if self.codes is None else cast("StoredArray", PackedArray(source, self.codes))

    @property
    def unpacked(self) -> Rewrite:
        """The plan itself, or, for packed values, the same for values in units of the variable."""
        if (codes := self.codes) is None:
            return self
        marks = tuple(codes.unpacked.type(mark) for mark, _ in codes.missing if mark == mark)
        return replace(self, codes=None, dtype=codes.unpacked, missing=Missing(marks), packing=None)

    def new_attributes(self, source: StoredArray) -> Mapping[str, Any]:
        """Return the attributes of the target that differ from those of the source; None for one to remove."""
        bound = self._bound_attribute(source)
        if self.codes is not None:
            return {**bound, **PackedArray(source, self.codes).new_attributes}
        if isinstance(self.pipeline.bounded, Sz3):
            return {**bound, _SZ3_ATTRIBUTE: f"hdf5plugin {hdf5plugin_version()}"} if self.recoded else {}
        if isinstance(source.storage.pipeline.bounded, Sz3):
            return {**bound, _SZ3_ATTRIBUTE: None}
        return bound if self.rounding is None else {**bound, **self.rounding.rounding.recorded}

    def _bound_attribute(self, source: StoredArray) -> Mapping[str, Any]:
        """Return the attribute with the requested bound, if the filters record another one in its place."""
        if self.recoded and self.pipeline.bound and self.pipeline.bounded is not None:
            return {ERROR_BOUND: np.float64(self.unpacked_bound)}
        return {ERROR_BOUND: None} if self.changes_values and ERROR_BOUND in source.attributes else {}

    @property
    def relative_bound(self) -> float | None:
        """Largest allowed error relative to a stored value; None without a rounding that has such a bound."""
        return None if self.rounding is None else self.rounding.rounding.relative_bound

    @property
    def tolerance(self) -> float | None:
        """The tolerance of the first filter, in units of the variable, if another bound is kept; None otherwise."""
        first = self.pipeline.bounded if self.recoded and self.pipeline.bound is not None else None
        return None if first is None or first.error_bound is None else self.in_units(first.error_bound)

    def in_units(self, error: float) -> float:
        """Return an error of stored values in units of the variable."""
        return error if self.packing is None else self.packing.unpacked_error(error)

    @property
    def unpacked_bound(self) -> float | None:
        """The bound in units of the variable."""
        if self.codes is not None:
            return self.codes.bound
        return None if self.bound is None else self.in_units(self.bound)

    def grid(self, source: StoredArray) -> Grid:
        """Return the chunks of the target."""
        return grid_of(source.shape, self.chunk_shape)

    def parts(self, source: StoredArray) -> Parts:
        """Return the parts of the array to write, one for each chunk."""
        if self.streams_kept:
            return source.chunk_index().parts.touching(self.grid(source))
        return source.parts(self.grid(source))


_SZ3_ATTRIBUTE = "sz3_plugin"
"""The attribute that says what wrote chunks of sz3, which other versions of it may not read."""

_SHARED = tuple(entry.name for entry in fields(Rewrite) if entry.name not in ("path", "model"))


Create = Callable[[Rewrite], ArrayWriter]
"""Creates the array of a plan in the target, in place of one that it created before."""


class WrittenAtOnce(NamedTuple):
    """An array that was written and checked at once."""

    pipeline: Pipeline  # Filters as the store recorded them
    # Offset, size, checksum, number of missing values and largest error of each chunk, in the order of their numbers
    chunks: Sequence[tuple[int, int, int, int, float]]
    mask: int  # Filter mask of all chunks
    unrounded: int = 0  # As in `Written`


class CreateAtOnce(ABC):
    """A `Create` that also writes small arrays at once, if the format can."""

    @abstractmethod
    def __call__(self, plan: Rewrite) -> ArrayWriter:
        """Create the array of a plan."""

    @abstractmethod
    def at_once(self, plan: Rewrite, most_nbytes: int | None) -> WrittenAtOnce | None:
        """Create the array of a simple plan (`is_simple`) with all of its chunks, in a limited number of bytes.

        Encoded chunks are decoded and compared, and the store's records match the chunks. None, without writing
        anything, if the array must be written chunk by chunk.
        """


Recreate = Callable[[StoredArray, Create], object]
"""Fills the copy of an array, which the second argument creates; may raise `CopyInsteadError`."""


@dataclass(frozen=True, slots=True)
class Written:
    """Result of `write`."""

    chunk_count: int  # Number of chunks written. Chunks that the source does not store are not.
    lossless_chunks: int  # How many of them are stored without zfp because it cannot keep their values or the bound
    missing_values: int = 0  # Number of missing values in these chunks; not counted if nothing is lossy
    lossless_for_missing: int = 0  # Number of chunks stored without zfp that have missing values
    # Number of other chunks stored without zfp because it would move values across a limit of the valid range
    lossless_for_range: int = 0
    # For each filter other than zfp, by its text, the number of chunks for which it failed
    skipped: Mapping[str, int] = field(default_factory=dict)
    reused: int = 0  # Number of chunks reused from an earlier run
    # The companion with the missing values, without a name yet; None if none was needed
    companion: ArrayWriter | None = None
    # Filters as the store recorded them, which decode the proven chunks
    pipeline: Pipeline = field(default_factory=lambda: Pipeline(()))
    # Numbers and seals (see `seal_of`) of the chunks that were decoded and compared with the source before they were
    # written. It remains to be shown that the store holds them.
    proven: ChunkNotes = field(default_factory=lambda: ChunkNotes("I"))
    largest_error: float = 0.0  # Largest error of the proven chunks
    worst: int | None = None  # Number of the chunk with that error; None if they have none
    # Number of values that are not rounded, because rounding would make them missing or let them cross a limit
    unrounded: int = 0
    # Number of chunks stored without loss because zfp or a rounding does not meet the requirements on each value
    missed: int = 0
    measured: Measured = field(default_factory=Measured)  # Measures of the proven chunks
    packing_error: float = 0.0  # Largest error of the packed values, in units of the variable


def flags_for(array: StoredArray, dtype: np.dtype[Any]) -> Flags | None:
    """Return the table of flags for the possible missing values of an array, without reading its values."""
    missing = array.meaning.missing
    if not can_flag(dtype) or len(missing.values) > MOST_FLAGS // 2:
        return None
    values = [
        *missing.values,
        *(value.astype(dtype) for value in missing_nan(array.attributes, array.fill.value) if dtype.kind == "f"),
    ]
    return Flags.of(values, dtype) if values or dtype.kind == "f" else None
