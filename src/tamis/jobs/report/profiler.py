"""The statistics of two arrays, added up block by block while they are compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from tamis.accuracy import ErrorProfile, FieldProfile, Measured
from tamis.arrays import Grid, ordered_map, origin_of
from tamis.jobs.report.pair import Pair, Values, blocks_of, values_of
from tamis.meaning import NONE_MISSING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tamis.accuracy import Requirement, Tally
    from tamis.arrays import Region
    from tamis.stores import StoredArray

_MOST_FIELD_VALUES = 1 << 25
"""Values whose fields are all examined; of larger variables some are."""

_SHARED_COUNT = 1 << 19
"""Values of blocks whose statistics several threads make at once; of larger ones, one does, and another reads."""

_SAMPLE_COUNT = 1 << 20
_SAMPLES = 8


class Found(NamedTuple):
    """The statistics of some blocks."""

    profile: ErrorProfile
    measured: Measured
    fields: FieldProfile | None

    def plus(self, other: Self) -> Self:
        """Return the statistics of these blocks and of others."""
        both = self.fields.plus(other.fields) if self.fields and other.fields else self.fields or other.fields
        return type(self)(self.profile.plus(other.profile), self.measured.plus(other.measured), both)


class Profiler:
    """The statistics of two arrays so far; see `tamis.accuracy.statistics.Observer`.

    Blocks before the first that changed are left for later, because most arrays have not changed at all.
    """

    def __init__(self, source: StoredArray, target: StoredArray, required: Requirement | None, threads: int) -> None:
        self._arrays = source, target
        self._shape = source.shape or ()
        self.blocks = blocks_of(
            self._shape, [array.storage.chunk_shape for array in self._arrays if array.storage.chunk_shape]
        )
        self.block = self.blocks.shape
        is_large = math.prod(self.block) > _SHARED_COUNT
        self.threads = min(threads, 2) if is_large else threads
        self._turns: AbstractContextManager[Any] = Lock() if is_large else nullcontext()
        self.notes: list[str] = []
        self._found: Found | None = None
        self._grid = Grid(self._shape, self.block)
        self._changed = self._begun = False  # Whether a block changed: of all in work, and of those that were added
        self._done: set[int] = set()  # Numbers of the blocks that need no other look
        self._words = {"corr"} | ({"ks"} if required is not None and required.ks is not None else set())
        self._chosen = self._choose(required) if self.blocks.has_rows and self._shape else range(0)
        self._lock = Lock()  # fields need more memory than anything else

    def look(self, part: Region, source: NDArray[Any], target: NDArray[Any], tally: Tally) -> Found | None:
        """Return the statistics of a block, if any block in work changed."""
        self._changed = self._changed or tally.different > 0
        if not self._changed:
            return None
        with self._turns:
            return self._statistics(values_of(part, self._arrays, (source, target)))

    def add(self, part: Region, tally: Tally, known: Found | None) -> None:
        """Add the statistics of a block, unless it is left for later; so the order does not depend on threads."""
        self._begun = self._begun or tally.different > 0
        if not self._begun:
            return
        if known is None:
            with Pair.open(*self._arrays) as pair:
                known = self._statistics(pair.read(part))
        self._add(part, known)

    def _add(self, part: Region, known: Found) -> None:
        self._done.add(self._grid.number_of(origin_of(part)))
        self._found = known if self._found is None else self._found.plus(known)

    def finish(self, pair: Pair, worst: Sequence[int] | None, progress: Callable[[int, int], None]) -> Found:
        """Return the statistics of all blocks; those that were left for later, and some parts of fields, are read."""
        left = [number for number in range(self._grid.chunk_count) if number not in self._done]

        def look(number: int) -> Found:
            with self._turns:
                return self._statistics(pair.read(self._grid.region_of(number)))

        with closing(ordered_map(look, left, self.threads)) as results:
            for count, (number, known) in enumerate(zip(left, results, strict=True)):
                progress(count, len(left))
                self._add(self._grid.region_of(number), known)
        found = self._found
        assert found is not None
        for part, whole in self._more_fields(worst):
            fields = self._fields(pair.read(part), whole=whole)
            found = found._replace(fields=fields if found.fields is None else found.fields.plus(fields))
        return found

    def _statistics(self, values: Values) -> Found:
        start = values.region[0].start if values.region else 0
        extent = self._shape[0] if self._shape else 1
        fields = None
        if self._grid.number_of(origin_of(values.region)) in self._chosen:
            with self._lock:
                fields = self._fields(values, whole=self.blocks.has_fields)
        before, after, valid = values.before, values.after, values.valid
        profile = ErrorProfile.of(before, after, valid, start, extent)
        if valid is not None:
            before, after = before[valid], after[valid]
        return Found(profile, Measured.of(before.reshape(-1), after.reshape(-1), NONE_MISSING, self._words), fields)

    def _choose(self, required: Requirement | None) -> range | set[int]:
        """Return the numbers of the blocks whose fields are examined: all, or some, spread evenly."""
        count, most = self._grid.chunk_count, max(1, _MOST_FIELD_VALUES // max(math.prod(self.block), 1))
        needs_all = required is not None and (required.dssim is not None or required.spectrum is not None)
        return range(count) if count <= most or needs_all else {*map(int, np.linspace(0, count - 1, most))}

    def _more_fields(self, worst: Sequence[int] | None) -> Iterator[tuple[Region, bool]]:
        """Yield parts whose fields are examined, too, and whether each has whole fields."""
        if not self._shape:
            return
        what = "Spectra, autocorrelation, gradients and DSSIM are from"
        if not self.blocks.has_rows:
            yield from _samples(self._shape)
            self.notes.append(f"{what} {_SAMPLES} parts of some fields.")
            return
        count = len(self._chosen)
        if count == self._grid.chunk_count:
            return
        if worst is not None and (number := self._grid.number_of(worst)) not in self._chosen:
            yield self._grid.region_of(number), self.blocks.has_fields
            count += 1
        self.notes.append(f"{what} {count} of {self._grid.chunk_count} blocks of fields.")

    def _fields(self, values: Values, *, whole: bool) -> FieldProfile:
        return FieldProfile.of(values.before, values.after, values.valid, whole=whole)


def _samples(shape: tuple[int, ...]) -> Iterator[tuple[Region, bool]]:
    """Yield parts of fields of one shape, spread evenly, and whether each is a whole field."""
    width = min(shape[-1], _SAMPLE_COUNT)
    rows = (min(shape[-2], max(1, _SAMPLE_COUNT // width)),) if len(shape) > 1 else ()
    extents = (*(1 for _ in shape[:-2]), *rows, width)
    for number in range(_SAMPLES):
        share = (number + 0.5) / _SAMPLES
        starts = [int((extent - step) * share) for extent, step in zip(shape, extents, strict=True)]
        part = tuple(slice(start, start + step) for start, step in zip(starts, extents, strict=True))
        yield part, extents[-2:] == shape[-2:]
