"""Requirements on a dataset, in its plan: bounds of each stored value, and whether it can be measured at all."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tamis.accuracy.fields import SHORTEST, WINDOW, has_windows, words_within
from tamis.accuracy.measured import AT_MOST, Measured, is_missed
from tamis.accuracy.value_bounds import ValueBounds
from tamis.errors import BoundError, FileError, ParameterError
from tamis.formatting import shape_text
from tamis.jobs.progress import Progress, Step
from tamis.jobs.stored_units import stored_bound
from tamis.rewrite.prove import reached_while_writing
from tamis.rewrite.rewrite import Rewrite, Written
from tamis.rewrite.surveys import survey
from tamis.rewrite.tolerance import within_bound
from tamis.stores.protocols import StoredArray

if TYPE_CHECKING:
    from tamis.accuracy.requirement import Requirement
    from tamis.jobs.recipes.names import Assigned
    from tamis.jobs.repack.result import Repacked

_FIELDS_NBYTES = 8 << 20
"""Largest chunk whose fields are measured while it is in work: that takes up to 20 times the memory of a field."""

Survey = Callable[[Rewrite, StoredArray, bool], Measured]
"""Returns what is known of all values of an array by its plan, and of their moments if the last argument is true."""


def survey_alone(plan: Rewrite, source: StoredArray, moments: bool) -> Measured:
    """Return the facts of all values of an array, read in one thread."""
    return survey(plan, source, lambda *_: None, moments=moments)


def survey_reported(report: Progress, threads: int) -> Survey:
    """Return a survey that reads in threads and reports its progress."""

    def read(plan: Rewrite, source: StoredArray, moments: bool) -> Measured:
        step = Step(f"reading {plan.path}, whose range or deviation is needed", 1, 1)
        return survey(plan, source, partial(report, step), threads, moments=moments)

    return read


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


def with_requirement(plan: Rewrite, source: StoredArray, required: Requirement | None, read: Survey) -> Rewrite:
    """Return a plan that meets the requirements on each value, in stored units, and is measured for the rest.

    Nothing changes if no filter or rounding changes values.
    """
    if required is None:
        return plan
    plan = replace(plan, required=required)
    if not plan.lossy:
        return plan
    if "dssim" in required.measures and not has_windows(source.shape):
        raise ParameterError(
            f"expected at least {WINDOW} x {WINDOW} values along the last two axes for dssim, got the shape"
            f" {shape_text(source.shape)}: require corr or rmse, or filters without loss"
        )
    if "spectrum" in required.measures and source.shape[-1] < SHORTEST:
        raise ParameterError(
            f"expected at least {SHORTEST} values along the last axis for spectrum, got the shape "
            f"{shape_text(source.shape)}:"
            " require corr or rmse, or filters without loss"
        )
    packing = plan.packing
    absolute = _absolute(plan, source, required, read)
    bounds = ValueBounds(
        absolute,
        required.relative,
        required.sign,
        required.zeros,
        0.0 if packing is None else packing.stored_zero,
        falling=packing is not None and packing.scale < 0,
    )
    fields = words_within(required.measures, source.shape, plan.chunk_shape)
    plan = replace(plan, bounds=bounds, fields=fields if plan.chunk.nbytes <= _FIELDS_NBYTES else ())
    return plan if absolute is None or plan.rounding is not None else within_bound(plan, absolute)


def _absolute(plan: Rewrite, source: StoredArray, required: Requirement, read: Survey) -> float | None:
    """Return the largest absolute error of stored values; None if none is required."""
    bounds = []
    if required.abs is not None:
        stored = (
            required.abs if plan.packing is None else stored_bound(plan.packing, required.abs, f"abs={required.abs!r}")
        )
        bounds.append(stored)
    if required.range is not None or required.std is not None:
        try:
            measured = read(plan, source, required.std is not None)
        except FileError:
            return 0.0  # writing reports why it cannot be read
        for share, size in ((required.range, measured.span), (required.std, measured.deviation)):
            if share is not None and size is not None:
                bounds.append(share * size)
    return min(bounds, default=None)


def refuse_missed(plans: Mapping[str, Rewrite], results: Iterable[Repacked]) -> None:
    """Raise BoundError for missed measures of whole datasets, with the requested and the reached value of each."""
    changed = (result for result in results if result.largest_error and result.path in plans)
    missed = {result.path: _missed(plans[result.path], result.measures) for result in changed}
    _refuse({path: texts for path, texts in missed.items() if texts})


def refuse_missed_early(plan: Rewrite, source: StoredArray, written: Written) -> None:
    """Raise the same error for a dataset that is written but not yet read again, if already known."""
    measures = reached_while_writing(plan, source, written) if written.largest_error else {}
    if texts := _missed(plan, measures):
        _refuse({plan.path: texts})


def _missed(plan: Rewrite, measures: Mapping[str, float | None]) -> list[str]:
    """Return a text for each measure of changed values that is missed."""
    asked = {} if plan.required is None else plan.required.measures
    return [
        f"{plan.path}: expected {word} of at {'most' if word in AT_MOST else 'least'} {asked[word]!r}, reached"
        f" {_text(value)} with {plan.requested}"
        for word, value in measures.items()
        if word in asked and is_missed(word, asked[word], value)
    ]


def _refuse(missed: Mapping[str, Sequence[str]]) -> None:
    if missed:
        raise BoundError(
            f"{'; '.join(text for texts in missed.values() for text in texts)}: nothing was kept: take filters that"
            " lose less, such as a smaller accuracy of zfp or a rounding to more bits, or require less"
        ).at(dataset=next(iter(missed)))


def _text(value: float | None) -> str:
    return "none, since it is not defined for such values" if value is None else f"{value:.9g}"
