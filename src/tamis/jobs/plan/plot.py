"""A picture of a plan: the ratio of each candidate against its largest error and its speed."""

from __future__ import annotations

import importlib.util
import io
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tamis.errors import MissingFilterError, ParameterError
from tamis.formatting import ratio_text
from tamis.optional import optional
from tamis.rounding import Pack
from tamis.safety import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tamis.jobs.plan.planned import Candidate, PlannedVariable

ENDINGS = (".svg", ".png", ".pdf")
"""Endings of names of pictures."""
_COLORS = {
    "lossless": "#000000",
    "rounded": "#0072b2",
    "packed": "#d55e00",
    "zfp": "#009e73",
    "sperr": "#cc79a7",
    "sz3": "#e69f00",
}
_WIDTH_INCHES, _LEAST_INCHES, _LINE_INCHES = 12.0, 3.0, 0.19
"""Size of the figure, and of a row: as high as its legend."""


def check_picture(path: str | os.PathLike[str]) -> None:
    """Raise ParameterError if a name is not that of a picture, MissingFilterError if matplotlib is not installed."""
    if not os.fspath(path).lower().endswith(ENDINGS):
        raise ParameterError(f"expected a picture whose name ends in {', '.join(ENDINGS)}, got {os.fspath(path)!r}")
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingFilterError(_ABSENT)


_ABSENT = "a picture needs matplotlib, not installed here: pip install 'tamis[plot]'"


def figure_of(planned: Iterable[PlannedVariable]) -> Figure:
    """Return a figure with a row for each variable; see `Plan.plot`."""
    figure_type = optional("matplotlib.figure", _ABSENT).Figure
    if "IPython" in sys.modules:
        importlib.import_module("matplotlib.pyplot")  # a notebook shows figures only then
    variables = [variable for variable in planned if variable.candidates]
    if not variables:
        raise ParameterError("expected a plan with candidates to draw, got one without")
    heights = [max(_LEAST_INCHES, _LINE_INCHES * len(variable.candidates)) for variable in variables]
    figure: Figure = figure_type(figsize=(_WIDTH_INCHES, sum(heights)), layout="constrained")
    rows = figure.subplots(len(variables), 2, squeeze=False, sharey="row", height_ratios=heights)
    for (by_error, by_speed), variable in zip(rows, variables, strict=True):
        _draw(by_error, by_speed, variable)
    return figure


def save(planned: Iterable[PlannedVariable], path: str | os.PathLike[str]) -> None:
    """Write the picture of a plan into a file."""
    check_picture(path)
    picture = io.BytesIO()
    figure_of(planned).savefig(picture, format=Path(os.fsdecode(path)).suffix[1:].lower(), dpi=120)
    write_whole(path, picture.getvalue(), overwrite=True)


def _draw(by_error: Axes, by_speed: Axes, variable: PlannedVariable) -> None:
    """Draw the candidates of a variable, with their numbers in the legend; a ring is the choice, others are offers."""
    from matplotlib.ticker import LogLocator, NullFormatter

    for number, candidate in enumerate(variable.candidates, start=1):
        is_chosen = candidate.filters == variable.filters
        mark = (
            " (chosen)" if is_chosen else " (unstable)" if candidate.is_unstable else " (offer)" * bool(candidate.needs)
        )
        text = f"{number}  {candidate.filters}, {ratio_text(candidate.ratio)}{mark}"
        margins = [[candidate.ratio - candidate.ratio_low], [candidate.ratio_high - candidate.ratio]]
        color = _COLORS[_kind(candidate)]
        for axes, x in ((by_error, candidate.largest_error), (by_speed, candidate.write_mbs)):
            face = "none" if candidate.needs else color
            axes.errorbar([x], [candidate.ratio], yerr=margins, fmt="o", ms=5, color=color, mfc=face, label=text)
            if is_chosen:
                axes.plot([x], [candidate.ratio], "o", ms=13, mfc="none", mec=color, mew=1.5)
        place = candidate.write_mbs, candidate.ratio
        by_speed.annotate(str(number), place, (5, 3), textcoords="offset points", fontsize=7)
    by_error.set_title(f"{variable.path}, {variable.requirement}", loc="left", fontsize=10)
    by_error.set(xlabel="largest error on the sample", ylabel="ratio")
    by_error.margins(x=0.1)
    by_speed.set(xlabel="MB/s written and proven in one thread, measured here", xscale="log")
    by_speed.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    by_speed.xaxis.set_major_formatter("{x:g}")
    by_speed.xaxis.set_minor_formatter(NullFormatter())
    if variable.source_ratio is not None:
        for axes in (by_error, by_speed):
            axes.axhline(variable.source_ratio, color="#999999", lw=1, ls=":")
    by_error.set_ylim(bottom=0)
    by_speed.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7, frameon=False)


def _kind(candidate: Candidate) -> str:
    filters = candidate.pipeline
    if filters.error_bound == 0:
        return "lossless"
    if filters.bounded is not None:
        return filters.bounded.name
    return "packed" if isinstance(filters.rounding, Pack) else "rounded"
