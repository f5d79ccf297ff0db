"""Chunk shapes that suit how an array is read: ranked by a model, the best ones measured, one chosen."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tamis.formatting import ratio_text, shape_text
from tamis.jobs.planning.access import Access, Axes, Storage, read_seconds
from tamis.jobs.planning.candidates import Variable
from tamis.jobs.planning.result import PlannedVariable
from tamis.zfp.checks import BLOCK_SIDE

Shape = tuple[int, ...]

_LEAST_NBYTES, _MOST_NBYTES = 16 << 10, 4 << 20
_MEASURED = 4
"""Shapes that are measured, beside that of the source."""
_USUAL_RATIO, _USUAL_MBS = 4.0, 800.0
_NEAR = 1.5
"""Of shapes whose reads take at most so many times as long as the fastest, the best ratio is chosen."""
_SAME = 0.97
"""Ratios that differ by less do not make up for other chunks."""
_SHARES = range(2, 9)


class Reads(NamedTuple):
    """How an array is read, and where it is stored.

    Parameters
    ----------
    access
        The reads.
    axes
        The axes of the array.
    storage
        What storage costs.
    """

    access: Access
    axes: Axes
    storage: Storage

    def seconds(self, shape: Shape, chunk_shape: Shape, itemsize: int, ratio: float, mbs: float) -> dict[str, float]:
        """Return the seconds of each kind of read by the model."""
        nbytes = math.prod(chunk_shape) * itemsize
        return {
            kind: read_seconds(selection, shape, chunk_shape, nbytes, self.storage, ratio=ratio, read_mbs=mbs)
            for kind, _, selection in self.access.selections(shape, self.axes)
        }

    def mean(self, seconds: dict[str, float]) -> float:
        """Return the mean duration of a read."""
        return sum(share * seconds[kind] for kind, share in self.access.reads)


class _Measured(NamedTuple):
    """A chunk shape, what is planned in it, and the seconds of each read."""

    shape: Shape
    planned: PlannedVariable
    seconds: dict[str, float]


def with_best_shape(
    variable: Variable, reads: Reads, plan: Callable[[Variable, bool], PlannedVariable]
) -> PlannedVariable:
    """Return what is planned for a variable in the chunk shape that suits its reads best.

    Parameters
    ----------
    variable
        The variable, with the chunk shape of the source.
    reads
        How it is read.
    plan
        Measures the candidates of a variable in its chunk shape, if asked for on less than the whole sample, and
        chooses.
    """
    extents = tuple(min(lengths) for lengths in zip(*(array.shape for array in variable.arrays), strict=True))
    itemsize = np.dtype(variable.arrays[0].dtype).itemsize

    def measured(shape: Shape, *, little: bool = True) -> _Measured:
        planned = plan(variable._replace(chunk_shape=shape), little)
        mbs = _USUAL_MBS if planned.chosen is None else planned.chosen.read_mbs
        found = _Measured(shape, planned, {})
        return found._replace(seconds=reads.seconds(extents, shape, itemsize, _ratio(found), mbs))

    own, *others = map(measured, dict.fromkeys((variable.chunk_shape, *_best(extents, itemsize, reads))))
    best = _chosen(own, [each for each in others if each.planned.chosen is not None], reads)
    whole = measured(best.shape, little=False)
    return whole.planned if best is own else whole.planned.with_note(_note(whole, own))


def _chosen(own: _Measured, others: Sequence[_Measured], reads: Reads) -> _Measured:
    """Return the shape with the best ratio of those whose reads are fast; that of the source, if it is as good."""
    measured = (own, *others)
    fastest = min(reads.mean(each.seconds) for each in measured)
    near = [each for each in measured if reads.mean(each.seconds) <= _NEAR * fastest]
    best = max(near, key=_ratio)
    return own if own in near and _ratio(own) >= _SAME * _ratio(best) else best


def _ratio(measured: _Measured) -> float:
    chosen = measured.planned.chosen
    return chosen.ratio if chosen is not None else measured.planned.source_ratio or 1.0


def _note(best: _Measured, own: _Measured) -> str:
    reads = ", ".join(
        f"{_article(kind)} in {_time(seconds)} ({_time(own.seconds[kind])})" for kind, seconds in best.seconds.items()
    )
    return (
        f"; its chunks are {shape_text(best.shape)} instead of {shape_text(own.shape)}, where the ratio is"
        f" {ratio_text(_ratio(own))}: by the model, readers get {reads}"
    )


def _article(kind: str) -> str:
    return "all values" if kind == "whole" else f"a {kind}"


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def _best(extents: Shape, itemsize: int, reads: Reads) -> list[Shape]:
    """Return the best shapes by the model, none of them much like another."""

    def cost(shape: Shape) -> float:
        padded = math.prod(-(-step // BLOCK_SIDE) * BLOCK_SIDE / step for step in shape if step > 1)
        return reads.mean(reads.seconds(extents, shape, itemsize, _USUAL_RATIO / padded, _USUAL_MBS))

    best: list[Shape] = []
    for shape in sorted(_shapes(extents, itemsize), key=cost):
        if not any(_alike(shape, other) for other in best):
            best.append(shape)
        if len(best) == _MEASURED:
            break
    return best


def _alike(shape: Shape, other: Shape) -> bool:
    return all(step < 2 * other_step and other_step < 2 * step for step, other_step in zip(shape, other, strict=True))


def _shapes(extents: Shape, itemsize: int) -> Iterator[Shape]:
    """Yield shapes of a sensible size, of whole blocks of zfp where extents allow that."""
    least = min(_LEAST_NBYTES, math.prod(extents) * itemsize)
    for shape in itertools.product(*map(_steps, extents)):
        if least <= math.prod(shape) * itemsize <= _MOST_NBYTES:
            yield shape


def _steps(extent: int) -> list[int]:
    """Return extents of chunks along an axis: single values, powers of two, equal shares, all."""
    doubled = itertools.takewhile(lambda step: step < extent, (BLOCK_SIDE << power for power in range(40)))
    shares = (-(-extent // (count * BLOCK_SIDE)) * BLOCK_SIDE for count in _SHARES)
    return sorted({1, extent, *doubled, *(step for step in shares if step < extent)})
