"""A plan as text and in notebooks: a row for each candidate, why one is chosen, and the recipe to paste."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tamis.accuracy.requirement import Requirement
from tamis.formatting import percent_text, plural, printable, ratio_text, shell_line, shell_path, size_text
from tamis.jobs.parts import Part, Table, title
from tamis.jobs.planning.result import Candidate, Compared, Confirmed, Plan, PlannedVariable
from tamis.pipeline import Pipeline

_HEADER = (
    "dataset",
    "chosen",
    "filters",
    "ratio",
    "95 % range",
    "largest error",
    "chunks without zfp",
    "write MB/s",
    "read MB/s",
    "read by",
)
_FOLDED, _RIGHT, _CODE = (2, 9), (3, 4, 5, 6, 7, 8), (2,)


def plan_parts(plan: Plan) -> Iterator[Part]:
    """Yield the parts of a plan."""
    rows = [
        row
        for variable in plan.datasets
        for row in (
            *(_row(variable, candidate) for candidate in variable.candidates),
            *(_compared_row(variable, other) for other in variable.compared),
        )
    ]
    yield Table([_HEADER, *rows], folded=_FOLDED, right=_RIGHT, code=_CODE, name="Candidates")
    for variable in plan.datasets:
        yield "", printable(f"{variable.path} ({variable.want}): {variable.reason}")
        if variable.confirmed is not None:
            yield "note", printable(f"{variable.path}: {_confirmed(variable.confirmed, variable.chosen)}")
        for other in variable.compared:
            if other.problem is not None:
                yield "note", printable(f"{variable.path}: {other.filters}: {other.problem}")
    for path, reason in _shared(plan.kept):
        yield "note", printable(f"{path}: {reason}")
    files = printable(title(plan.files))
    if not plan.filters:
        yield "name", f"{files}: nothing to store otherwise; planned in {plan.seconds:.1f} s"
        return
    sampled, nbytes = (sum(getattr(each, name) for each in plan.datasets) for name in ("sampled_nbytes", "nbytes"))
    planned = f"{plural(len(plan.filters), 'dataset')} planned in {plan.seconds:.1f} s"
    read = f"from {size_text(sampled)} of {size_text(nbytes)}"
    yield "name", f"{files}: {planned}, {read}; repack proves the bounds of the filters"
    yield "code", f"tamis repack {_source(plan)} OUT {plan.options}"
    if (bounds := _bounds(plan)) is not None:
        yield "code", f"tamis verify {_source(plan)} OUT{bounds}"


def _bounds(plan: Plan) -> str | None:
    """Return options of ``tamis verify`` for what is lost; None if a filter records no bound, and none is given."""
    words: list[str] = []
    for path, filters in plan.filters.items():
        bound = Requirement.parse(plan.require[path]).abs if path in plan.require else None
        if bound is not None:
            words += ["--bound", f"{path}:{bound!r}"]
        elif not _has_bound(Pipeline.parse(filters)):
            return None
        elif Pipeline.parse(filters).error_bound != 0 and "recorded" not in words:
            words[:0] = ["--bound", "recorded"]
    return f" {shell_line(words)}" if words else ""


def _has_bound(pipeline: Pipeline) -> bool:
    return pipeline.error_bound is not None or pipeline.rounding is not None


def _confirmed(confirmed: Confirmed, chosen: Candidate | None) -> str:
    predicted = f" ({ratio_text(chosen.ratio)} predicted)" if chosen is not None else ""
    found = [f"ratio {ratio_text(confirmed.ratio)}{predicted}", f"largest error {confirmed.largest_error:.3g}"]
    found += [f"{name} {value:.9g}" for name, value in confirmed.measures if value is not None]
    return f"confirmed on all values: {', '.join(found)}{'' if confirmed.ok else f'; not kept: {confirmed.missed}'}"


def _source(plan: Plan) -> str:
    return shell_path(plan.files[0]) if len(plan.files) == 1 else "IN"


def _row(variable: PlannedVariable, candidate: Candidate) -> tuple[str, ...]:
    return (
        printable(variable.path),
        "*" if candidate.filters == variable.filters else "",
        candidate.filters.replace("|", "\n"),
        ratio_text(candidate.ratio),
        _range(candidate),
        f"{candidate.largest_error:.3g}",
        percent_text(candidate.fallbacks) if candidate.fallbacks else "",
        f"{candidate.write_mbs:.0f}",
        f"{candidate.read_mbs:.0f}",
        candidate.read_by,
    )


def _compared_row(variable: PlannedVariable, other: Compared) -> tuple[str, ...]:
    ranges = "" if other.ratio is None else _range(other)
    return (
        printable(variable.path),
        "compared",
        other.filters,
        "" if other.ratio is None else ratio_text(other.ratio),
        ranges,
        "" if other.largest_error is None else f"{other.largest_error:.3g}",
        "",
        "" if other.write_mbs is None else f"{other.write_mbs:.0f}",
        "" if other.read_mbs is None else f"{other.read_mbs:.0f}",
        "hdf5plugin",
    )


def _range(candidate: Candidate | Compared) -> str:
    low, high = candidate.ratio_low, candidate.ratio_high
    return f"{ratio_text(low)}-{ratio_text(high)}" if high is not None and math.isfinite(high) else "unknown"


def _shared(kept: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, str]]:
    """Yield each reason once, with the datasets that share it."""
    paths: dict[str, list[str]] = {}
    for path, reason in kept:
        paths.setdefault(reason, []).append(path)
    return ((title(names), reason) for reason, names in paths.items())
