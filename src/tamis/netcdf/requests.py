"""Filters in any form that callers write, as netCDF-C takes them."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tamis.errors import ParameterError
from tamis.filters import Filter, Request, Stage, requested_filter
from tamis.notation.chain import refuse_other_flags
from tamis.notation.detect import read
from tamis.pipeline import Pipeline
from tamis.rounding import Rounding


@dataclass(frozen=True, slots=True)
class Requested:
    """Filters to define.

    Parameters
    ----------
    requests
        Ids and requested parameters, in the order in which they are to run.
    stages
        The same as stages; None if they are words that tamis does not check.
    rounding
        Rounding before them, by netCDF's own quantization; None if there is none.
    """

    requests: tuple[Request, ...]
    stages: tuple[Stage, ...] | None
    rounding: Rounding | None = None


def requested_filters(filters: object, values: Sequence[int] | None = None) -> Requested:
    """Return the filters of an object, of text in any notation, or of an id and its parameters.

    Raises
    ------
    ParameterError
        If the text is wrong, a filter occurs twice, or a flag is asked for, which netCDF sets itself.
    """
    if isinstance(filters, int) and not isinstance(filters, bool):
        return Requested((Request(filters, _words(values or ())),), None)
    if values is not None:
        raise ParameterError(f"expected the id of a filter with values={values!r}, got {filters!r}")
    steps = _steps(filters)
    rounding = Pipeline(steps).rounding if any(isinstance(step, Rounding) for step in steps) else None
    if rounding is not None and not rounding.quantize_mode:
        raise ParameterError(
            f"expected a rounding that netCDF-C has, got {rounding}: round the values before, tamis.{rounding!r}.round,"
            f" and set the attribute {rounding.attribute}={rounding.number}; tamis repack rounds a saved file"
        ).at(filter=rounding)
    stages = tuple(step for step in steps if isinstance(step, Stage))
    refuse_other_flags(stages, "netCDF")
    counts = Counter(stage.filter.id for stage in stages)
    if twice := [stage.filter.name for stage in stages if counts[stage.filter.id] > 1]:
        raise ParameterError(f"expected each filter once, got {twice[0]} twice: netCDF keeps one of them")
    return Requested(tuple(stage.request for stage in stages), stages, rounding)


def _steps(filters: object) -> tuple[Stage | Rounding, ...]:
    if isinstance(filters, Rounding):
        return (filters,)
    if isinstance(filters, Pipeline):
        return filters.stages if filters.rounding is None else (filters.rounding, *filters.stages)
    if isinstance(filters, Request):
        return (Stage.of(requested_filter(filters)),)
    if isinstance(filters, Stage):
        return (filters,)
    if isinstance(filters, Filter):
        return (Stage.of(filters),)
    if isinstance(filters, str):
        return read(filters).chain
    raise ParameterError(f"expected a filter, a pipeline, their text, or an id with values, got {filters!r}")


def _words(values: Any) -> tuple[int, ...]:
    try:
        words = tuple(map(operator.index, values))
    except TypeError:
        words = (-1 << 32,)
    if isinstance(values, str) or any(not -(1 << 31) <= word < 1 << 32 for word in words):
        raise ParameterError(f"expected 32-bit words, got values={values!r}")
    return tuple(word & 0xFFFFFFFF for word in words)
