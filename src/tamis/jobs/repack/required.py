"""What is required of the values of an array, made a part of its plan."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from tamis.accuracy.fields import SHORTEST, WINDOW, has_windows, words_within
from tamis.accuracy.value_bounds import ValueBounds
from tamis.errors import FileError, ParameterError
from tamis.formatting import shape_text
from tamis.jobs.repack.refusals import Refusal, refuse
from tamis.jobs.repack.stored_units import stored_bound
from tamis.rewrite.plan import ArrayPlan, Recode
from tamis.rewrite.tolerance import within_bound

if TYPE_CHECKING:
    from tamis.accuracy.requirement import Requirement
    from tamis.jobs.recipes.names import Assigned
    from tamis.jobs.repack.survey import Survey
    from tamis.stores.protocols import StoredArray

_FIELDS_NBYTES = 8 << 20
"""Largest chunk whose fields are measured while it is in work: that takes up to 20 times the memory of a field."""


_FIELDS: tuple[Refusal[tuple[Requirement, tuple[int, ...]]], ...] = (
    Refusal(
        lambda case: "dssim" in case[0].measures and not has_windows(case[1]),
        lambda case: (
            f"expected at least {WINDOW} x {WINDOW} values along the last two axes for dssim, got the shape"
            f" {shape_text(case[1])}: require corr or rmse, or filters without loss"
        ),
    ),
    Refusal(
        lambda case: "spectrum" in case[0].measures and case[1][-1] < SHORTEST,
        lambda case: (
            f"expected at least {SHORTEST} values along the last axis for spectrum, got the shape"
            f" {shape_text(case[1])}: require corr or rmse, or filters without loss"
        ),
    ),
)
"""Measures of whole fields or rows that are required of an array whose fields or rows are too small for them."""


def requirements(entries: Iterable[Assigned[Requirement]], recipes: Container[str]) -> dict[str, Requirement]:
    """Return the requirements on each dataset by path: exact names first, then patterns in their order."""
    required: dict[str, Requirement] = {}
    for entry in entries:
        if entry.exact and entry.path not in recipes:
            raise ParameterError(
                f"{entry.label}: expected filters or chunks for a dataset of which {entry.value} is required, got "
                f"none: a requirement alone saves no bytes; add filters (-f), or let tamis plan choose them"
            ).at(dataset=entry.path)
        required.setdefault(entry.path, entry.value)
    return required


def with_requirement(plan: ArrayPlan, source: StoredArray, required: Requirement | None, read: Survey) -> ArrayPlan:
    """Return a plan that meets the requirements on each value, in stored units, and is measured for the rest.

    Nothing changes if no filter or rounding changes values.
    """
    if required is None:
        return plan
    plan = replace(plan, required=required)
    if not plan.lossy or not isinstance(plan, Recode):
        return plan
    refuse(_FIELDS, (required, source.shape))
    packing = plan.packing
    absolute = absolute_bound(plan, source, required, read)
    bounds = ValueBounds(
        absolute,
        required.relative,
        required.sign,
        required.zeros,
        0.0 if packing is None else packing.stored_zero,
        falling=packing is not None and packing.scale < 0,
    )
    fields = words_within(required.measures, source.shape, plan.chunk_shape)
    plan = plan.checking(bounds=bounds, fields=fields if plan.chunk.nbytes <= _FIELDS_NBYTES else ())
    return plan if absolute is None or plan.rounding is not None else within_bound(plan, absolute)


def absolute_bound(plan: ArrayPlan, source: StoredArray, required: Requirement, read: Survey) -> float | None:
    """Return the largest absolute error of stored values; None if none is required."""
    bounds = []
    if required.abs is not None:
        stored = (
            required.abs if plan.packing is None else stored_bound(plan.packing, required.abs, f"abs={required.abs!r}")
        )
        bounds.append(stored)
    if required.range is not None or required.std is not None:
        try:
            measured = read.measured(plan, source, moments=required.std is not None)
        except FileError:
            return 0.0  # writing reports why it cannot be read
        for share, size in ((required.range, measured.span), (required.std, measured.deviation)):
            if share is not None and size is not None:
                bounds.append(share * size)
    return min(bounds, default=None)
