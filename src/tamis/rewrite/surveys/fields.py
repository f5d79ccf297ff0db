"""Measures of whole fields, the last two axes of an array, against its source."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.similarity import dssim
from tamis.accuracy.spectrum import Spectra
from tamis.chunks.boxes import cut, whole
from tamis.chunks.gather import bounded_threads
from tamis.chunks.grid import Region
from tamis.chunks.threads import ordered_map
from tamis.rewrite.plan import Plan
from tamis.store.array import StoredArray

_BLOCK_NBYTES = 32 << 20
_BLOCK_COPIES, _FIELD_COPIES = 8, 30
"""Memory of a block in work, as multiples of its size and of the size of a field, which is compared in float64."""


class FieldMeasures(NamedTuple):
    """Measures of some fields.

    Parameters
    ----------
    similarity
        The smallest DSSIM, in units of the variable; None if no field has one, or it was not asked for.
    spectra
        Power spectra of the rows, if they were asked for.
    """

    similarity: float | None = None
    spectra: Spectra = Spectra()

    def plus(self, other: FieldMeasures) -> FieldMeasures:
        """Return the measures of these fields and of others."""
        similarities = [each for each in (self.similarity, other.similarity) if each is not None]
        return FieldMeasures(min(similarities, default=None), self.spectra.plus(other.spectra))

    @property
    def by_word(self) -> dict[str, float | None]:
        """The measures by their words."""
        return {"dssim": self.similarity, "spectrum": self.spectra.difference}


FIELD_WORDS = FieldMeasures().by_word.keys()
"""Words of the measures of whole fields or rows."""


def measured_fields(
    plan: Plan,
    source: StoredArray,
    target: StoredArray,
    progress: Callable[[int, int], None],
    threads: int = 1,
) -> FieldMeasures:
    """Return those measures of all fields that are required of an array.

    Fields are read in blocks of up to 32 MiB, or one by one if they are larger, so that chunks with several fields are
    decoded as rarely as possible.

    Raises
    ------
    FileError
        If a chunk cannot be read.
    """
    shape, steps = source.shape, _block_shape(plan, source, target)
    blocks = [*cut(whole(shape), steps)]
    total = FieldMeasures()

    def measure(block: Region) -> FieldMeasures:
        first, second = (reader.read(block).astype(plan.dtype, copy=False) for reader in (before, after))
        absent = plan.missing.find(first)
        similarity = _least_similarity(plan, first, second, absent) if "dssim" in plan.measures else None
        spectra = Spectra.of(first, second, absent) if "spectrum" in plan.measures else Spectra()
        return FieldMeasures(similarity, spectra)

    progress(0, len(blocks))
    field_nbytes = math.prod(shape[-2:]) * plan.dtype.itemsize
    nbytes = _BLOCK_COPIES * math.prod(steps[:-2]) * field_nbytes + _FIELD_COPIES * field_nbytes
    with (
        closing(source.open_reader()) as before,
        closing(target.open_reader()) as after,
        closing(ordered_map(measure, blocks, bounded_threads(nbytes, threads))) as found,
    ):
        for done, measures in enumerate(found, start=1):
            total = total.plus(measures)
            progress(done, len(blocks))
    return total


def _least_similarity(
    plan: Plan, first: NDArray[Any], second: NDArray[Any], absent: NDArray[np.bool_] | None
) -> float | None:
    """Return the smallest DSSIM of the fields of a block."""
    found = []
    for index in np.ndindex(first.shape[:-2]):
        one, other = (_in_units(plan, values[index]) for values in (first, second))
        found.append(dssim(one, other, None if absent is None else ~absent[index]))
    return min((value for value in found if value is not None), default=None)


def _in_units(plan: Plan, values: NDArray[Any]) -> NDArray[np.float64]:
    wide = values.astype(np.float64)
    return wide if plan.packing is None else np.asarray(wide * plan.packing.scale + plan.packing.offset)


def _block_shape(plan: Plan, source: StoredArray, target: StoredArray) -> tuple[int, ...]:
    """Return the shape of blocks of whole fields, with as many of them as chunks have, if they are not too large."""
    shape = source.shape
    grids = [grid for grid in (source.chunk_shape, target.chunk_shape) if grid]
    steps = [min(extent, max(steps)) for extent, *steps in zip(shape[:-2], *(grid[:-2] for grid in grids), strict=True)]
    field_nbytes = math.prod(shape[-2:]) * plan.dtype.itemsize
    while math.prod(steps) > 1 and math.prod(steps) * field_nbytes > _BLOCK_NBYTES:
        axis = steps.index(max(steps))
        steps[axis] = -(-steps[axis] // 2)
    return (*steps, *shape[-2:])
