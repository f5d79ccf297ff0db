"""Parts of an array encoded by zfp with one tolerance after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.chunks.grid import Region
from tamis.filters import Fletcher32, Zfp
from tamis.missing.definition import has_native
from tamis.missing.fill import fill_gaps
from tamis.pipeline import Pipeline
from tamis.rewrite.encode import encode_chunk, idle_types
from tamis.rewrite.new_chunk import make_chunk
from tamis.rewrite.plan import Plan
from tamis.zfp import MAX_RANK, Accuracy
from tamis.zfp.rungs import Rung, rungs_of

_AT_ONCE = 4
"""Tolerances that are measured together: in most arrays the loosest one that keeps a bound is the second or third."""

_MOST_EXPONENT = 1023
_CHECKSUM_NBYTES = 4

Part = tuple[Region, NDArray[Any]]


def with_tolerance(pipeline: Pipeline, tolerance: float) -> Pipeline:
    """Return a pipeline with zfp in accuracy mode in place of a zfp with a bound, whose bound it keeps.

    A pipeline with another zfp, or none, is returned as it is.
    """
    bound = pipeline.bound if pipeline.zfp is None or pipeline.zfp.bound is None else pipeline.zfp.bound
    if bound is None:
        return pipeline
    stages = (
        replace(stage, filter=Zfp(accuracy=tolerance)) if isinstance(stage.filter, Zfp) else stage
        for stage in pipeline.stages
    )
    return Pipeline(stages, bound=bound)


class Trial:
    """Parts of an array to be encoded with several tolerances, each twice the one before.

    What zfp makes of a part is known of several tolerances after one pass over its values, if nothing but the error
    decides whether zfp is applied. Other parts are encoded and decoded for each tolerance.

    Parameters
    ----------
    plan
        The plan; its pipeline has a bound, and an optional zfp first. Its chunks have the shape of the parts.
    parts
        The parts, with their values.
    """

    def __init__(self, plan: Plan, parts: Sequence[Part]) -> None:
        self._plan = plan
        climbs = _has_ladder(plan)
        self._parts = [(climbs and _climbed(plan, values)) or _Encoded(plan, part, values) for part, values in parts]

    def missed(self, tolerance: float) -> int:
        """Return how many parts are stored without zfp, with a tolerance that is a power of two."""
        return sum(part.misses(tolerance) for part in self._parts)

    def nbytes(self, tolerance: float) -> int:
        """Return the bytes of the parts."""
        return sum(part.nbytes(tolerance) for part in self._parts)


class _Encoded:
    """A part that is encoded and decoded."""

    def __init__(self, plan: Plan, part: Region, values: NDArray[Any]) -> None:
        self._plan, self._part, self._values = plan, part, values
        self._sizes: dict[float, tuple[bool, int]] = {}

    def misses(self, tolerance: float) -> bool:
        return self._encoded(tolerance)[0]

    def nbytes(self, tolerance: float) -> int:
        return self._encoded(tolerance)[1]

    def _encoded(self, tolerance: float) -> tuple[bool, int]:
        if tolerance not in self._sizes:
            plan = replace(self._plan, pipeline=with_tolerance(self._plan.pipeline, tolerance))
            chunk = make_chunk(plan, self._part, self._values)
            self._sizes[tolerance] = bool(chunk.mask & 1), len(chunk.data)
        return self._sizes[tolerance]


class _Climbed:
    """A part whose rungs are measured together.

    Parameters
    ----------
    plan
        The plan.
    values
        The values as they are, which are stored if the error is too large.
    encoded
        The values that zfp gets.
    """

    def __init__(self, plan: Plan, values: NDArray[Any], encoded: NDArray[Any]) -> None:
        self._plan, self._values, self._encoded = plan, values, encoded
        self._rungs: dict[float, Rung] = {}

    def misses(self, tolerance: float) -> bool:
        return not self._rung(tolerance).error <= (self._plan.pipeline.error_bound or 0.0)

    def nbytes(self, tolerance: float) -> int:
        if self.misses(tolerance):
            return self._lossless_nbytes
        checksums = sum(isinstance(item, Fletcher32) for item in self._plan.pipeline.filters)
        return self._rung(tolerance).nbytes + checksums * _CHECKSUM_NBYTES

    def _rung(self, tolerance: float) -> Rung:
        if tolerance not in self._rungs:
            exponent = math.frexp(tolerance)[1] - 1
            high = min(exponent + _AT_ONCE - 1, _MOST_EXPONENT)
            self._rungs |= {rung.tolerance: rung for rung in self._climbed(high, exponent)}
        return self._rungs[tolerance]

    def _climbed(self, high: int, low: int) -> Sequence[Rung]:
        shape = self._plan.chunk_shape
        whole = self._plan.padding.pad(self._encoded, shape)
        inside = None
        if whole.shape != self._encoded.shape:
            inside = np.zeros(shape, bool)
            inside[tuple(map(slice, self._encoded.shape))] = True
        axes = _axes(shape)
        return rungs_of(whole.reshape(axes), high, low, None if inside is None else inside.reshape(axes))

    @cached_property
    def _lossless_nbytes(self) -> int:
        plan = self._plan
        chunk = encode_chunk(plan.pipeline, self._values, plan.chunk, lossless=True, padding=plan.padding)
        return len(chunk.data)


def _axes(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without axes of 1, as zfp encodes chunks."""
    return tuple(extent for extent in shape if extent > 1)


def _has_ladder(plan: Plan) -> bool:
    """Return whether the error of a part without missing values alone decides how it is stored."""
    first, *others = plan.pipeline.filters
    idle = idle_types(plan.pipeline)
    return (
        has_native(plan.dtype)
        and isinstance(first, Zfp)
        and isinstance(first.mode, Accuracy)
        and first.mode.tolerance > 0
        and plan.bounds is None
        and plan.rounding is None
        and 1 <= len(_axes(plan.chunk_shape)) <= MAX_RANK
        and all(item.error_bound == 0 and isinstance(item, (*idle, Fletcher32)) for item in others)
    )


def _climbed(plan: Plan, values: NDArray[Any]) -> _Climbed | None:
    """Return a part whose rungs tell how it is stored; None if missing values, limits or padding matter, too."""
    encoded = values
    if plan.padding.is_read(values.shape, plan.chunk_shape):
        return None
    if plan.flags is not None and (flags := plan.flags.find(values)) is not None:
        if plan.flags.stored_flag and (flags == plan.flags.stored_flag).any():
            return None
        encoded = fill_gaps(values, flags != 0, plan.chunk_shape)
    survey = plan.missing.survey(encoded)
    limits = [limit for limit in (plan.missing.low, plan.missing.high) if limit is not None]
    reach = survey.largest + (plan.pipeline.error_bound or 0.0)
    near = any(not abs(float(value)) > reach for value in (*plan.missing.values, *limits))
    return None if survey.missing or not survey.finite or near else _Climbed(plan, values, encoded)
