"""Bits per value against error for alternatives, measured on a sample as plan does, with the point of the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.arrays import default_chunks
from tamis.errors import TamisError
from tamis.filters import Sz3
from tamis.jobs.plan import PlanRequirement, Sample, VariableToPlan, cost_of, loss_of, sample_of
from tamis.jobs.report.reported import Chart, Facts, Series
from tamis.pipeline import Pipeline

if TYPE_CHECKING:
    from tamis.stores import Store, StoredArray

_SAMPLE_NBYTES = 1_000_000
_MEASURED_NBYTES = 500_000
_STEPS = (4.0, 2.0, 1.0, 0.5, 0.25)
"""Largest errors that are tried, relative to that of the file."""

_BYTES = "shuffle|deflate(4)"


class Point(NamedTuple):
    """What some filters need for an error."""

    kind: str
    filters: str
    bits: float  # Stored bits per value
    rmse: float
    error: float


def rates(
    store: Store, source: StoredArray, target: StoredArray, file: Point, also: Sequence[str]
) -> Iterator[Chart | Facts]:
    """Yield the chart and its table; nothing for values that cannot be sampled."""
    dtype = source.type.numbers
    if dtype is None or dtype.kind != "f" or source.meaning.packing is not None or not file.error:
        return
    shape = (
        target.storage.chunk_shape
        or source.storage.chunk_shape
        or default_chunks(source.shape, dtype.itemsize, zfp=True)
    )
    variable = VariableToPlan(source.path, PlanRequirement(), [store], [source], tuple(shape), "exact")
    try:
        sample = sample_of([source], variable.chunk_shape, _SAMPLE_NBYTES)
        low, high = _range(sample, source)
    except TamisError:
        return
    points, refused = [file], []
    for kind, text in (*_alternatives(file.error, low, high), *(("also", text) for text in also)):
        try:
            points.append(_measured(variable, sample, kind, text))
        except TamisError as error:  # most arrays are not for all filters
            refused += [(kind, text, "", "", str(error))] if kind == "also" else []
    if len(points) > 1 or refused:
        yield _chart(points)
        rows = tuple(
            (one.kind, one.filters, f"{8 * dtype.itemsize / one.bits:.2f}", f"{one.error:.4g}", f"{one.rmse:.4g}")
            for one in points
        )
        words = "Ratios of the alternatives are predictions from a sample of the source, in the chunks of the target."
        header = ("kind", "filters", "ratio", "largest error", "RMSE")
        yield Facts("rates", "Alternatives", words, header, (*rows, *refused))


def _alternatives(error: float, low: float, high: float) -> Iterator[tuple[str, str]]:
    """Yield kind and text of the filters to measure, with errors around that of the file."""
    for step in _STEPS:
        yield "rounding", f"absolute(bound={error * step:.3g})|{_BYTES}"
    if high > low:
        for step in _STEPS:
            yield "packing", f"pack(bound={error * step:.3g},range={low!r}:{high!r})|{_BYTES}"
    for step in _STEPS:
        yield "zfp", f"zfp(accuracy={4 * error * step:.3g})|{_BYTES}"
    if not Sz3.missing():
        for step in _STEPS:
            yield "sz3", f"sz3(absolute={error * step:.3g})"


def _measured(variable: VariableToPlan, sample: Sample, kind: str, text: str) -> Point:
    """Return the point of some filters; raises TamisError where they cannot store the variable."""
    plans = variable.plans(Pipeline.parse(text))
    tally = loss_of(plans, sample, PlanRequirement()).tally
    cost = cost_of(plans, sample.thinned(_MEASURED_NBYTES), lambda _: None)
    shown = f"{text.partition(',range=')[0]})|{_BYTES}" if kind == "packing" else text
    return Point(kind, shown, 8 * variable.itemsize / cost.ratio, tally.rmse or 0.0, float(tally.error))


def _range(sample: Sample, source: StoredArray) -> tuple[float, float]:
    """Return the range of the sampled values, and a little more."""
    ends = []
    for piece in (piece for pieces in sample.chunks for piece in pieces):
        valid = source.meaning.missing.valid(piece.values)
        ends += [float(valid.min()), float(valid.max())] if valid.size else []
    low, high = min(ends, default=0.0), max(ends, default=0.0)
    margin = (high - low) / 8
    return (low - margin, high + margin) if np.isfinite(margin) else (0.0, 0.0)


def _chart(points: Sequence[Point]) -> Chart:
    """Return the points as lines by kind."""
    ordered = sorted((point for point in points if point.rmse > 0 and point.bits > 0), key=lambda point: point.bits)
    series = []
    for kind in dict.fromkeys(point.kind for point in points):
        values = tuple(float(f"{point.rmse:.6g}") if point.kind == kind else None for point in ordered)
        if any(value is not None for value in values):
            series.append(Series(kind, values, "points" if kind in ("this file", "also") else "joined"))
    bits = tuple(float(f"{point.bits:.6g}") for point in ordered)
    words = "Stored bits per value against RMSE; lower and further left is better. A large point is this file."
    return Chart("rates", "Alternatives", words, "bits per value", bits, tuple(series), "RMSE", log_y=True)
