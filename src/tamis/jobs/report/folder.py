"""Report on a folder of files: an index, worst first, from what a run recorded, with reports of some files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tamis.arguments import CALLBACK, FLAG, PATH, WHOLE
from tamis.errors import FileError
from tamis.formatting import plural, printable, ratio, ratio_text, size_text
from tamis.jobs.many import state_of, worst_of
from tamis.jobs.progress import Progress, Step
from tamis.jobs.report.job import report
from tamis.jobs.report.parts import MADE_BY, chart_figure, table_of_rows, text, whole_page
from tamis.jobs.report.reported import Chart, Series
from tamis.jobs.result import SCHEMA, Fields, Part, Result, Table, json_fields
from tamis.safety import disk_text, write_whole

if TYPE_CHECKING:
    from tamis.jobs.many import FileRecord

_MOST_ROWS, _MOST_SHOWN, _MOST_POINTS = 2000, 20, 1000


@dataclass(frozen=True, slots=True)
class FileSummary(Fields):
    """A file of the folder.

    Parameters
    ----------
    path
        Path of the target below the folder.
    source
        Path of the source.
    outcome
        ``repacked``, ``copied`` or ``failed``.
    text
        Why it failed; empty otherwise.
    dataset
        The dataset whose largest error is nearest to its bound; empty without one.
    largest_error, bound
        Of that dataset.
    source_nbytes, target_nbytes
        Bytes of the file, before and after.
    chunks, lossless_chunks
        Chunks of all datasets that were rewritten, and how many of them are stored without loss.
    """

    path: str
    source: str
    outcome: str
    text: str
    dataset: str
    largest_error: float | None
    bound: float | None
    source_nbytes: int
    target_nbytes: int
    chunks: int
    lossless_chunks: int

    @property
    def share(self) -> float | None:
        """The largest error relative to its bound; None without a bound."""
        return self.largest_error / self.bound if self.bound and self.largest_error is not None else None

    @property
    def ratio(self) -> float | None:
        """Bytes before per byte after."""
        return ratio(self.source_nbytes, self.target_nbytes)

    @classmethod
    def of(cls, record: FileRecord, source: str) -> FileSummary:
        """Return the summary of a record."""
        worst = worst_of(record)
        counts = (sum(int(dataset.get(name) or 0) for dataset in record.datasets) for name in _COUNTS)
        outcome = "failed" if record.error else record.action
        message = str((record.error or {}).get("message", ""))
        sizes = record.original_nbytes, record.target_nbytes
        dataset, error, bound = worst[1:] if worst else ("", None, None)
        return cls(record.path, source, outcome, message, dataset, error, bound, *sizes, *counts)


_COUNTS = ("chunks", "lossless_chunks")


@dataclass(frozen=True, slots=True)
class FolderReport(Result):
    """Result of `report_many`.

    Parameters
    ----------
    folder
        Path of the folder of targets.
    files
        Its files: those that failed first, then those whose largest error is nearest to its bound.
    """

    folder: str
    files: tuple[FileSummary, ...]

    @property
    def ok(self) -> bool:
        """Whether no file failed."""
        return not any(file.outcome == "failed" for file in self.files)

    @property
    def verdict(self) -> str:
        """The outcome in one sentence."""
        failed = sum(file.outcome == "failed" for file in self.files)
        done = [file for file in self.files if file.outcome != "failed"]
        before, after = (sum(getattr(file, name) for file in done) for name in ("source_nbytes", "target_nbytes"))
        words = f"{plural(len(done), 'file')}, {size_text(before)} -> {size_text(after)}"
        share = ratio_text(ratio(before, after))
        worst = next((file for file in done if file.share is not None), None)
        near = f"; nearest to its bound is {worst.dataset} of {worst.path}, {_percent(worst)} of it" if worst else ""
        return f"{words}{f', ratio {share}' if share else ''}{near}{f'; {failed} failed' if failed else ''}."

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON: see docs/report.md."""
        return {"schema": SCHEMA, "ok": self.ok, "verdict": self.verdict, **json_fields(self)}

    @property
    def html(self) -> str:
        """The index as a page, without reports of single files."""
        return _page(self, {})

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        each: int = 0,
        overwrite: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """Write the index, and reports of the first files in a folder beside it.

        Parameters
        ----------
        path
            Path of the page.
        each
            Of how many files, from the worst on, a report is written.
        overwrite
            Whether existing pages are replaced.
        progress
            Called with the step, the finished work and the total work.

        Raises
        ------
        FileError
            If a page exists and `overwrite` is False, or cannot be written.
        """
        PATH.check("path", path)
        WHOLE.check("each", each)
        FLAG.check("overwrite", overwrite)
        CALLBACK.check_optional("progress", progress)
        index = Path(os.fsdecode(path))
        folder = index.with_name(f"{index.stem}-files")
        links: dict[str, str] = {}
        chosen = [file for file in self.files if file.outcome != "failed"][:each]
        for number, file in enumerate(chosen, 1):
            page = folder / f"{file.path}.html"
            try:
                page.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise FileError(f"{page.parent}: cannot be created: {disk_text(error)}").at(path=page) from error
            if progress:
                progress(Step(f"reporting {file.path}", number, len(chosen)), 0, 1)
            report(file.source, Path(self.folder, file.path)).save(page, overwrite=overwrite)
            if progress:
                progress(Step(f"reporting {file.path}", number, len(chosen)), 1, 1)
            links[file.path] = quote(f"{folder.name}/{file.path}.html")
        write_whole(index, _page(self, links), overwrite=overwrite)

    def _parts(self) -> Iterator[Part]:
        rows = [tuple(map(printable, _cells(file))) for file in self.files[:_MOST_SHOWN]]
        yield Table([_HEADER, *rows], right=(3, 4, 5, 6, 7), name="Files")
        if len(self.files) > _MOST_SHOWN:
            yield "note", f"and {len(self.files) - _MOST_SHOWN} more: --json lists all"
        yield ("name" if self.ok else "problem"), printable(f"{self.folder}: {self.verdict}")


def report_many(target: str | os.PathLike[str], source: str | os.PathLike[str] | None = None) -> FolderReport:
    """Report on all files of a folder that `repack_many` made, from what it recorded: no values are read.

    Parameters
    ----------
    target
        Folder of the targets.
    source
        Folder of the sources, if they are no longer where they were.

    Returns
    -------
    FolderReport
        The files, worst first; `FolderReport.save` writes an index page.

    Raises
    ------
    FileError
        If there is no record in the folder.
    """
    PATH.check("target", target)
    state = state_of(target)
    files = []
    for record in state.records():
        if record.action == "replacing":  # not done yet
            continue
        own = record.source
        if source is not None and (moved := Path(os.fsdecode(source), record.path)).exists():
            own = str(moved)
        files.append(FileSummary.of(record, own))
    if not files:
        raise FileError(
            f"{os.fsdecode(target)}: has no record of what tamis repack did: name the folder of its targets"
        ).at(path=target)
    files.sort(key=lambda file: (file.outcome != "failed", -(file.share or 0.0), file.path))
    return FolderReport(os.fsdecode(target), tuple(files))


_HEADER = ("file", "outcome", "nearest to its bound", "error", "bound", "share", "ratio", "lossless chunks")


def _percent(file: FileSummary) -> str:
    return "" if file.share is None else f"{100 * file.share:.3g} %"


def _cells(file: FileSummary) -> tuple[str, ...]:
    error = "" if file.largest_error is None else f"{file.largest_error:.4g}"
    bound = "" if file.bound is None else f"{file.bound:g}"
    lossless = f"{file.lossless_chunks} of {file.chunks}" if file.chunks else ""
    near = file.text or file.dataset
    return (file.path, file.outcome, near, error, bound, _percent(file), ratio_text(file.ratio), lossless)


def _page(found: FolderReport, links: Mapping[str, str]) -> str:
    name = os.path.basename(found.folder.rstrip("/")) or found.folder
    charts = [*_charts(found.files[:_MOST_POINTS])]
    body = [
        f"<header><h1>{text(name)}: {text(plural(len(found.files), 'file'))}</h1>",
        f'<div class="verdict{"" if found.ok else " bad"}"><p>{text(found.verdict, 2000)}</p></div></header><main>',
        '<h2 id="files">All files, worst first</h2>',
        *table_of_rows("All files", _HEADER, [_row(file, links.get(file.path)) for file in found.files], _MOST_ROWS),
    ]
    body.append('<div class="grid">')
    for number, chart in enumerate(charts):
        body += chart_figure(0, number, chart, None, name)
    first = found.files[0]
    command = f"tamis report {first.source} {os.path.join(found.folder, first.path)}"
    body += [
        f'</div><p class="words">For the report of a file: <code>{text(command, 600)}</code></p></main>',
        f"<footer>{MADE_BY}</footer>",
    ]
    datasets = [{"path": name, "charts": [chart.to_dict() for chart in charts]}]
    return whole_page(f"tamis report: {name}", body, {"datasets": datasets, "folder": found.to_dict()})


def _row(file: FileSummary, link: str | None) -> str:
    path, outcome, *others = (text(cell) for cell in _cells(file))
    shown = path if link is None else f'<a href="{text(link, 4000)}">{path}</a>'
    kind = "missed" if file.outcome == "failed" else "met"
    return f'<tr><td>{shown}</td><td class="{kind}">{outcome}</td>{"".join(f"<td>{cell}</td>" for cell in others)}</tr>'


def _charts(files: tuple[FileSummary, ...]) -> Iterator[Chart]:
    """Yield how near files are to their bounds, and their ratios."""
    x = tuple(float(number) for number in range(1, len(files) + 1))
    shares = tuple(None if file.share is None else round(100 * file.share, 4) for file in files)
    ratios = tuple(None if file.ratio is None else round(file.ratio, 4) for file in files)
    label = "files, in the order of the table"
    if any(share is not None for share in shares):
        words = "The largest error of each file relative to its bound."
        yield Chart(
            "share", "Errors against bounds", words, label, x, (Series("share of the bound, %", shares, "bars"),), "%"
        )
    words = "Bytes before per byte after, of each file."
    yield Chart("ratio", "Ratios", words, label, x, (Series("ratio", ratios, "bars"),), "ratio")
