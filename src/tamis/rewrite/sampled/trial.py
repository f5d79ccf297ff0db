"""Parts of an array encoded by zfp with one tolerance after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from tamis.chunks.grid import Region
from tamis.filters import Zfp
from tamis.pipeline import Pipeline
from tamis.rewrite.new_chunk import make_chunk
from tamis.rewrite.plan import Plan
from tamis.rewrite.sampled.ladder_part import LadderPart
from tamis.zfp import Accuracy
from tamis.zfp.rungs import Rung

_AT_ONCE = 4
"""Tolerances that are measured together: in most arrays the loosest one that keeps a bound is the second or third."""

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
        self._parts = [_climbed(plan, values) or _Encoded(plan, part, values) for part, values in parts]

    def missed(self, tolerance: float) -> int:
        """Return how many parts are stored without zfp, with a tolerance that is a power of two."""
        return sum(part.misses(tolerance) for part in self._parts)

    def nbytes(self, tolerance: float) -> int:
        """Return the bytes of the parts."""
        return sum(part.nbytes(tolerance) for part in self._parts)


def _climbed(plan: Plan, values: NDArray[Any]) -> _Climbed | None:
    """Return a part that needs not be encoded for each tolerance; None if it must be."""
    bound = plan.pipeline.error_bound or 0.0
    part = LadderPart.of(plan, values)
    return _Climbed(part, bound) if part is not None and part.stays_valid(bound) else None


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
    """A part that is measured with several tolerances together.

    Parameters
    ----------
    part
        The part.
    bound
        Largest error with which zfp is applied.
    """

    def __init__(self, part: LadderPart, bound: float) -> None:
        self._part, self._bound = part, bound
        self._rungs: dict[float, Rung] = {}

    def misses(self, tolerance: float) -> bool:
        return not self._rung(tolerance).error <= self._bound

    def nbytes(self, tolerance: float) -> int:
        if self.misses(tolerance):
            return self._lossless_nbytes
        return self._rung(tolerance).nbytes + self._part.checksums_nbytes

    def _rung(self, tolerance: float) -> Rung:
        if tolerance not in self._rungs:
            tolerances = [each for i in range(_AT_ONCE) if math.isfinite(each := tolerance * 2**i)]
            rungs = self._part.rungs([Accuracy(each) for each in tolerances[::-1]])
            self._rungs |= zip(tolerances[::-1], rungs, strict=True)
        return self._rungs[tolerance]

    @cached_property
    def _lossless_nbytes(self) -> int:
        return self._part.lossless_nbytes()
