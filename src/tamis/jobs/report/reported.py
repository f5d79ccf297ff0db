"""What a report says of a variable: statistics, charts as numbers, maps, findings, and the row of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tamis.formatting import printable, ratio_text
from tamis.jobs.result import Fields, json_fields
from tamis.jobs.verify import Compared, Finding, number

if TYPE_CHECKING:
    from tamis.jobs.report.maps import FieldMap


@dataclass(frozen=True, slots=True)
class Series(Fields):
    """One line, or set of bars or points, of a chart."""

    name: str
    values: tuple[float | None, ...]
    style: str = "line"  # ``line``, ``dashes``, ``dots``, ``bars`` or ``points``


@dataclass(frozen=True, slots=True)
class Chart(Fields):
    """A chart as numbers, which the page draws, and shows as a table.

    Parameters
    ----------
    key
        The section, in a word.
    title
        Title of the chart.
    words
        What it shows, in a sentence.
    x_label, x
        Name and values of the horizontal axis.
    series
        Lines, bars or points.
    y_label
        Name of the vertical axis.
    log_x, log_y
        Whether an axis is logarithmic.
    marks
        Vertical lines: place and label of each.
    """

    key: str
    title: str
    words: str
    x_label: str
    x: tuple[float, ...]
    series: tuple[Series, ...]
    y_label: str = ""
    log_x: bool = False
    log_y: bool = False
    marks: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Facts(Fields):
    """A table of a section."""

    key: str
    title: str
    words: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Reported:
    """One variable of the report.

    Parameters
    ----------
    path
        Path in the source.
    compared
        The comparison, as of `tamis.verify`.
    units, long_name
        From its attributes.
    dimensions
        Names of its dimensions.
    role
        Its role, as of `tamis.inspect`.
    filters
        Filters of the target, as text.
    nbytes, source_nbytes, target_nbytes
        Bytes of the values, and stored bytes in source and target.
    requirement
        What was asked for, as text.
    missed
        What was asked for and is not met, in sentences.
    findings
        What a reader has to know: code and sentence.
    statistics
        Numbers by name.
    charts, tables, maps
        The sections.
    notes
        How the numbers were found, where that is not from all values.
    """

    path: str
    compared: Compared
    units: str = ""
    long_name: str = ""
    dimensions: tuple[str, ...] = ()
    role: str = ""
    filters: str = ""
    nbytes: int = 0
    source_nbytes: int = 0
    target_nbytes: int = 0
    requirement: str = ""
    missed: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    statistics: Mapping[str, Any] = field(default_factory=dict)
    charts: tuple[Chart, ...] = ()
    tables: tuple[Facts, ...] = ()
    maps: tuple[FieldMap, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ratio(self) -> float | None:
        """Bytes of values per stored byte of the target."""
        return self.nbytes / self.target_nbytes if self.nbytes and self.target_nbytes else None

    @property
    def outcome(self) -> str:
        """Whether the requirement is met, in a word or two."""
        if self.compared.problem:
            return "not read"
        if self.missed:
            return "missed"
        if self.compared.equal:
            return "same bits"
        return "met" if self.requirement else "nothing asked"

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON."""
        document = json_fields(self)
        document["compared"] = self.compared.to_dict()
        return document | {"ratio": self.ratio, "outcome": self.outcome}

    def __str__(self) -> str:
        return printable(f"{self.path} {self.outcome}")


COLUMNS = ("variable", "ratio", "bound", "largest error", "RMSE", "PSNR", "r", "DSSIM", "missing kept", "outcome")


def row(dataset: Reported) -> tuple[str, ...]:
    """Return the cells of a variable's row, one for each of `COLUMNS`."""
    tally, compared, statistics = dataset.compared.tally, dataset.compared, dataset.statistics
    bound = "" if compared.bound is None else f"{compared.bound:g}"
    if compared.relative_bound is not None:
        bound = f"{100 * compared.relative_bound:.3g} %"
    ratio = ratio_text(dataset.ratio)
    if tally is None:
        return (dataset.path, ratio, bound, "", "", "", "", "", "", dataset.outcome)
    missing = "" if not (tally.missing or tally.gained) else "no" if tally.lost or tally.gained else "yes"
    correlation, similarity = statistics.get("correlation"), statistics.get("dssim_least")
    return (
        dataset.path,
        ratio,
        bound,
        number(tally.error),
        "" if tally.rmse is None else number(tally.rmse),
        "" if tally.psnr is None else "∞" if math.isinf(tally.psnr) else f"{tally.psnr:.1f} dB",
        "" if correlation is None else f"{math.floor(correlation * 1e9) / 1e9:.9f}",
        "" if similarity is None else f"{similarity:.5f}",
        missing,
        dataset.outcome,
    )
