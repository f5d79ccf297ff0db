"""The loosest tolerance of zfp that keeps a bound, found on a sample of chunks.

ZFP's largest error is a fraction of its tolerance: 0.22 to 0.28 with three axes. A tolerance above the bound therefore
keeps most chunks within it, in fewer bytes. That every value keeps the bound is proven when chunks are written, and a
chunk that does not is stored without zfp. So the sample decides about bytes only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import numpy as np

from tamis.chunks.gather import one_by_one, over_chunks
from tamis.chunks.grid import Grid, grid_of
from tamis.chunks.regions import Parts
from tamis.errors import TamisError
from tamis.formatting import plural
from tamis.pipeline import Pipeline
from tamis.rewrite.plan import Plan
from tamis.rewrite.sampled.trial import Part, Trial, with_tolerance
from tamis.store.array import StoredArray
from tamis.zfp import Accuracy

_SAMPLE_NBYTES = 8 << 20
_PART_NBYTES = 256 << 10
_MOST_PARTS = 256
_LEAST_PARTS = 16

_MARGIN = 0.9
"""The sample must keep this fraction of the bound, because other chunks have larger errors."""

_MISSES = 32
"""One in so many chunks of the sample may be stored without zfp for a looser tolerance."""

_GOLDEN = (5**0.5 - 1) / 2


def provisional(pipeline: Pipeline) -> Pipeline:
    """Return a pipeline whose zfp with a bound has the largest tolerance that certainly keeps it."""
    zfp = pipeline.zfp
    return pipeline if zfp is None or zfp.bound is None else with_tolerance(pipeline, Accuracy(zfp.bound).effective)


def within_bound(plan: Plan, bound: float) -> Plan:
    """Return a plan whose values keep a bound, in stored units, unless they keep a smaller one already.

    The tolerance of a zfp with a bound follows it; that of others stays, and chunks that it does not keep within the
    bound are stored without zfp.
    """
    own = plan.pipeline.error_bound
    if own is not None and own <= bound:
        return plan
    if plan.pipeline.bound is None or bound == 0:
        return replace(plan, pipeline=plan.pipeline.within(bound))
    tolerance = Accuracy(bound).effective
    if plan.dtype.kind == "i":
        tolerance = max(tolerance, 1.0)  # zfp takes none below, and keeps all bits of integers anyway
    return replace(plan, pipeline=with_tolerance(plan.pipeline.within(bound), tolerance))


def as_stored_already(pipeline: Pipeline, stored: Pipeline) -> Pipeline:
    """Return a pipeline with the tolerance that an array has already, if that is not below the bound."""
    zfp = stored.zfp
    if zfp is None or pipeline.bound is None or zfp.error_bound is None or pipeline.zfp is None:
        return pipeline
    enough = zfp.error_bound >= (pipeline.zfp.error_bound or 0.0)
    return with_tolerance(pipeline, zfp.error_bound) if enough else pipeline


def with_loosest_tolerance(plan: Plan, source: StoredArray) -> Plan:
    """Return a plan with the loosest tolerance, a power of two, that keeps its bound on a sample of the source.

    The result depends on the values alone. If zfp is required in every chunk, which must not miss the bound then, the
    tolerance is not above the bound.

    Parameters
    ----------
    plan
        A plan of `provisional` filters. Any other plan is returned as it is.
    source
        The array. If it cannot be read, the plan stays as it is, and writing reports why.
    """

    def read(sample: Parts) -> list[Part]:
        source.check_readable()
        keep = one_by_one(lambda part, values: (part, values.copy()))
        with (
            closing(source.open_reader()) as reader,
            closing(over_chunks(reader, sample, plan.dtype, keep, 1)) as parts_read,
        ):
            return [*parts_read]

    return with_tolerance_of(plan, source.shape, source.parts, read)


def with_tolerance_of(
    plan: Plan, shape: tuple[int, ...], parts: Callable[[Grid], Parts], read: Callable[[Parts], list[Part]]
) -> Plan:
    """Return a plan as `with_loosest_tolerance` does, for an array of any kind.

    Parameters
    ----------
    plan
        The plan.
    shape
        Shape of the array.
    parts
        Returns the chunks of a grid that have values.
    read
        Returns parts of the array with their values, in the type of the plan.
    """
    zfp = plan.pipeline.zfp
    if plan.pipeline.bound is None or zfp is None or not plan.recoded:
        return plan
    if not plan.pipeline.stages[0].optional:
        note = "its tolerance is not above the bound, since zfp is required in every chunk, whatever its error"
        return replace(plan, notes=(*plan.notes, f"{note}; as an optional filter, zfp? takes fewer bytes"))
    tolerance = Accuracy(zfp.error_bound or 0.0).effective
    try:
        sample = _sample(plan, parts(grid_of(shape, _part_shape(plan))))
        values = read(sample)
        near = plan.pipeline.within(_MARGIN * plan.pipeline.bound)
        trial = Trial(replace(plan, pipeline=near, chunk_shape=sample.grid.chunk_shape), values)
        nbytes = trial.nbytes(tolerance)
        allowed = len(values) // _MISSES if sample.grid.chunk_shape == plan.chunk_shape else 0
        allowed += trial.missed(tolerance)
        while math.isfinite(looser := 2 * tolerance):
            if trial.missed(looser) > allowed or (looser_nbytes := trial.nbytes(looser)) >= nbytes:
                break
            tolerance, nbytes = looser, looser_nbytes
    except TamisError:
        return plan
    return replace(
        plan, pipeline=with_tolerance(plan.pipeline, tolerance), notes=(*plan.notes, _note(plan, tolerance, sample))
    )


def _note(plan: Plan, tolerance: float, sample: Parts) -> str:
    what = "chunk" if sample.grid.chunk_shape == plan.chunk_shape else "part"
    of_its = f"{plural(len(sample), what)} of {sample.grid.chunk_count}"
    return (
        f"zfp's tolerance is {plan.in_units(tolerance):g}, found on {of_its}; every value is proven to keep the bound"
        f" of {plan.unpacked_bound:g}"
    )


def _sample(plan: Plan, parts: Parts) -> Parts:
    """Return chunks of the target, or parts of large ones, spread over the array."""
    nbytes = math.prod(parts.grid.chunk_shape) * plan.dtype.itemsize
    count = min(len(parts), max(_LEAST_PARTS, min(_MOST_PARTS, _SAMPLE_NBYTES // nbytes)))
    # Steps of equal length would meet the same place of each row of chunks.
    places = [int((i + i * _GOLDEN % 1) * len(parts) / count) for i in range(count)]
    return Parts(parts.grid, np.array([parts.numbers[place] for place in places], np.int64))


def _part_shape(plan: Plan) -> tuple[int, ...]:
    """Return the chunk shape, halved along its longest axes, to whole blocks, until a part is small."""
    shape = [*plan.chunk_shape]
    while math.prod(shape) * plan.dtype.itemsize > _PART_NBYTES:
        axis = max(range(len(shape)), key=lambda axis: shape[axis])
        half = -(-shape[axis] // 8) * 4
        if half >= shape[axis]:
            break
        shape[axis] = half
    return tuple(shape)
