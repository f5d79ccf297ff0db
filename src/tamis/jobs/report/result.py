"""The result of `tamis.report`: what it says of each variable and of the files, as text, JSON and a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape

from tamis.formatting import printable
from tamis.jobs.report.page import page_of
from tamis.jobs.report.reported import COLUMNS, Reported, row
from tamis.jobs.result import PageResult, Part, Table
from tamis.jobs.verify import Finding


@dataclass(frozen=True, slots=True)
class Report(PageResult[Reported]):
    """Result of `report`.

    Parameters
    ----------
    source, target
        Paths of the files.
    datasets
        Variables, in the order of their paths.
    verdict
        The outcome in one sentence.
    ok
        Whether all requirements are met, and all was read.
    others
        Differences in attributes, links and groups.
    problems
        What could not be read.
    provenance
        Versions, commands, sizes and checksums by name.
    budget
        Bytes that the page may take.
    """

    source: str
    target: str
    datasets: tuple[Reported, ...]
    verdict: str
    ok: bool
    others: tuple[Finding, ...] = ()
    problems: tuple[Finding, ...] = ()
    provenance: Mapping[str, str] = field(default_factory=dict)
    budget: int = 2_000_000

    @property
    def differs(self) -> bool:
        """Whether a requirement is missed, or a dataset is missing."""
        is_absent = any(finding.code == "missing-dataset" for finding in self.others)
        return is_absent or any(dataset.missed for dataset in self.datasets)

    @property
    def html(self) -> str:
        """The page: one self-contained file."""
        return page_of(self)

    def _repr_html_(self) -> str:
        frame = f'<iframe srcdoc="{escape(self.html, quote=True)}" sandbox="allow-scripts" title="tamis report"'
        return f'<div class="tamis">{frame} style="width:100%;height:80vh;border:1px solid #888"></iframe></div>'

    def _parts(self) -> Iterator[Part]:
        yield "file", f"{printable(self.source)} -> {printable(self.target)}"
        changed = [dataset for dataset in self.datasets if not dataset.compared.equal]
        yield Table([COLUMNS, *map(row, changed)], folded=(len(COLUMNS) - 1,), right=tuple(range(1, 8)))
        for dataset in changed:
            for finding in dataset.findings:
                yield "note", f"note: {printable(str(finding))}"
        if "ratio" in self.provenance:
            yield "note", f"ratio: {printable(self.provenance['ratio'])}"
        for problem in self.problems:
            yield "problem", f"problem: {printable(str(problem))}"
        yield ("name" if self.ok else "problem"), printable(self.verdict)
