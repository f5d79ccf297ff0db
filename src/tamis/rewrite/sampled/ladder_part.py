"""A part of an array that is measured in several modes of zfp together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.filters import Fletcher32, Zfp
from tamis.missing.definition import has_native
from tamis.missing.fill import fill_gaps
from tamis.rewrite.encode import encode_chunk, idle_types
from tamis.rewrite.plan import Plan
from tamis.zfp import MAX_RANK, Accuracy, Precision
from tamis.zfp.rungs import Rung, rungs_of

_CHECKSUM_NBYTES = 4


class LadderPart:
    """A part whose error alone decides whether zfp is applied, unless values become missing or cross a limit.

    Parameters
    ----------
    plan
        The plan.
    values
        The values as they are, which are stored without zfp.
    encoded
        The values that zfp gets.
    largest
        Their largest magnitude.
    """

    def __init__(self, plan: Plan, values: NDArray[Any], encoded: NDArray[Any], largest: float) -> None:
        self._plan, self._values, self._encoded, self._largest = plan, values, encoded, largest

    @classmethod
    def of(cls, plan: Plan, values: NDArray[Any]) -> LadderPart | None:
        """Return a part; None if other filters, missing values or padding decide, too."""
        if not _has_ladder(plan) or plan.padding.is_read(values.shape, plan.chunk_shape):
            return None
        encoded = values
        if plan.flags is not None and (flags := plan.flags.find(values)) is not None:
            if plan.flags.stored_flag and (flags == plan.flags.stored_flag).any():
                return None
            encoded = fill_gaps(values, flags != 0, plan.chunk_shape)
        survey = plan.missing.survey(encoded)
        return None if survey.missing or not survey.finite else cls(plan, values, encoded, survey.largest)

    @property
    def is_filled(self) -> bool:
        """True if gaps were filled, whose errors count like those of values."""
        return self._encoded is not self._values

    def stays_valid(self, error: float) -> bool:
        """Return whether no value that errs by so much becomes missing, or crosses a limit of the valid range."""
        missing = self._plan.missing
        limits = [limit for limit in (missing.low, missing.high) if limit is not None]
        return all(abs(float(value)) > self._largest + error for value in (*missing.values, *limits))

    def rungs(self, modes: Sequence[Accuracy | Precision]) -> Sequence[Rung]:
        """Return bytes and errors in several modes of zfp; see `tamis.zfp.rungs`."""
        shape = self._plan.chunk_shape
        whole = self._plan.padding.pad(self._encoded, shape)
        inside = None
        if whole.shape != self._encoded.shape:
            inside = np.zeros(shape, bool)
            inside[tuple(map(slice, self._encoded.shape))] = True
        axes = _axes(shape)
        return rungs_of(whole.reshape(axes), modes, None if inside is None else inside.reshape(axes))

    @property
    def checksums_nbytes(self) -> int:
        """Bytes that the filters after zfp add."""
        return _CHECKSUM_NBYTES * sum(isinstance(item, Fletcher32) for item in self._plan.pipeline.filters)

    def lossless_nbytes(self) -> int:
        """Return the bytes of the part without zfp."""
        plan = self._plan
        return len(encode_chunk(plan.pipeline, self._values, plan.chunk, lossless=True, padding=plan.padding).data)


def _axes(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without axes of 1, as zfp encodes chunks."""
    return tuple(extent for extent in shape if extent > 1)


def _has_ladder(plan: Plan) -> bool:
    """Return whether the error of a part without missing values alone decides how it is stored."""
    if not plan.pipeline.stages:
        return False
    first, *others = plan.pipeline.stages
    idle = idle_types(plan.pipeline)
    return (
        has_native(plan.dtype)
        and first.optional
        and isinstance(first.filter, Zfp)
        and isinstance(first.filter.mode, Accuracy | Precision)
        and plan.bounds is None
        and plan.rounding is None
        and 1 <= len(_axes(plan.chunk_shape)) <= MAX_RANK
        and all(each.filter.error_bound == 0 and isinstance(each.filter, (*idle, Fletcher32)) for each in others)
    )
