"""The page of a report: one HTML file that needs nothing else, and opens from disk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from tamis.formatting import plural, ratio_text, shape_text, size_text
from tamis.jobs.report.maps import CIVIDIS, RED_BLUE
from tamis.jobs.report.parts import (
    MADE_BY,
    bar_of,
    chart_figure,
    items_of,
    lines_of,
    part,
    picture_rule,
    table_of,
    table_of_rows,
    text,
    whole_page,
)
from tamis.jobs.report.reported import COLUMNS, Reported, row

if TYPE_CHECKING:
    from tamis.jobs.report.maps import FieldMap
    from tamis.jobs.verify import Finding

_LEFT_OUT = "Its maps are left out, to keep this page within its budget."
_MOST_ROWS, _MOST_OPEN = 400, 8
_KINDS = {"missed": "missed", "not read": "missed", "met": "met", "same bits": "met"}


class Content(Protocol):
    """What a page shows: a dataclass like `Report`."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def source(self) -> str:
        """Path of the first file."""

    @property
    def target(self) -> str:
        """Path of the second file."""

    @property
    def datasets(self) -> Sequence[Reported]:
        """The variables."""

    @property
    def verdict(self) -> str:
        """The outcome in one sentence."""

    @property
    def ok(self) -> bool:
        """Whether all requirements are met, and all was read."""

    @property
    def others(self) -> Sequence[Finding]:
        """Differences in attributes, links and groups."""

    @property
    def problems(self) -> Sequence[Finding]:
        """What could not be read."""

    @property
    def provenance(self) -> Mapping[str, str]:
        """Versions, commands, sizes and checksums by name."""

    @property
    def budget(self) -> int:
        """Bytes that the page may take."""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON that the page carries."""


def page_of(report: Content) -> str:
    """Return the page, with maps of as many variables as the budget allows."""
    mapped = [number for number, dataset in enumerate(report.datasets) if dataset.maps]
    kept = sorted(mapped, key=lambda number: _interest(report.datasets[number]))
    while True:
        html = _page(report, frozenset(mapped) - frozenset(kept))
        if len(html.encode()) <= report.budget or not kept:
            return html
        kept.pop()


def _interest(dataset: Reported) -> tuple[bool, bool, int]:
    """Return a key that sorts variables with the most to see first."""
    return not dataset.missed, not dataset.findings, -dataset.nbytes


def _page(report: Content, without_maps: frozenset[int]) -> str:
    datasets = [
        replace(dataset, maps=(), notes=(*dataset.notes, _LEFT_OUT)) if number in without_maps else dataset
        for number, dataset in enumerate(report.datasets)
    ]
    report = replace(report, datasets=tuple(datasets))
    has_coast = any(each.box for dataset in datasets for each in dataset.maps)
    body = [_coast() if has_coast else "", *_head(report), "<main>", *_summary(report)]
    for number, dataset in enumerate(datasets):
        if not dataset.compared.equal:
            body += _variable(number, dataset)
    body += [*_others(report), "</main>", *_foot(report)]
    return whole_page(f"tamis report: {_name(report.target)}", body, report.to_dict(), styles=_pictures(datasets))


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path


def _head(report: Content) -> Iterator[str]:
    yield "<header>"
    yield f"<h1>{text(_name(report.target))}, compared with {text(_name(report.source))}</h1>"
    kind, start = ("verdict", "") if report.ok else ("verdict bad", "<strong>Not as asked:</strong> ")
    yield f'<div class="{kind}"><p>{start}{text(report.verdict, 2000)}</p></div></header>'


def _summary(report: Content) -> Iterator[str]:
    """Yield the table of variables that changed, and that of all others, folded if it is long."""
    entries = [*enumerate(report.datasets)]
    changed = [entry for entry in entries if not entry[1].compared.equal]
    same = [entry for entry in entries if entry[1].compared.equal]
    yield '<h2 id="summary">Variables</h2>'
    if changed:
        yield from _rows("Variables that changed", changed)
    if same:
        opened = "" if changed and len(same) > _MOST_OPEN else " open"
        yield f"<details{opened}><summary>{plural(len(same), 'variable')} with the same bits</summary>"
        yield from _rows("Variables with the same bits", same)
        yield "</details>"


def _rows(title: str, entries: Sequence[tuple[int, Reported]]) -> Iterator[str]:
    rows = [row(dataset) for _, dataset in entries]
    kept = [number for number in range(len(COLUMNS)) if number == 0 or any(cells[number] for cells in rows)]
    tags = [
        _row(number, dataset, [cells[column] for column in kept])
        for (number, dataset), cells in zip(entries, rows, strict=True)
    ]
    yield from table_of_rows(title, [COLUMNS[column] for column in kept], tags, _MOST_ROWS)


def _row(number: int, dataset: Reported, cells: Sequence[str]) -> str:
    name, *others, outcome = (text(cell, 80) for cell in cells)
    link = name if dataset.compared.equal else f'<a href="#v{number}">{name}</a>'
    middle = "".join(f"<td>{cell}</td>" for cell in others)
    return f'<tr><td>{link}</td>{middle}<td class="{_KINDS.get(dataset.outcome, "plain")}">{outcome}</td></tr>'


def _variable(number: int, dataset: Reported) -> Iterator[str]:
    title = f"{dataset.path}: {dataset.long_name}" if dataset.long_name else dataset.path
    yield f'<section aria-labelledby="v{number}"><h2 id="v{number}">{text(title)}</h2>'
    dimensions = ", ".join(dataset.dimensions)
    shape = shape_text(dataset.compared.shape) + (f" ({dimensions})" if dimensions else "")
    sizes = f"{size_text(dataset.nbytes)} of values, stored as {size_text(dataset.target_nbytes)}"
    facts = [
        f"{shape}, {dataset.compared.target_type}",
        f"in {dataset.units}" if dataset.units else "",
        f"{sizes}: ratio {ratio_text(dataset.ratio)}" if dataset.ratio else "",
        f"filters {dataset.filters}" if dataset.filters else "no filters",
        f"asked: {dataset.requirement}" if dataset.requirement else "nothing was asked",
    ]
    yield f'<p class="words">{"; ".join(text(fact) for fact in facts if fact)}</p>'
    told = [*(("missed", each) for each in dataset.missed), *(("plain", each.text) for each in dataset.findings)]
    if told:
        yield "<ul>" + "".join(f'<li class="{kind}">{text(each)}</li>' for kind, each in told) + "</ul>"
    if dataset.notes:
        yield f'<p class="words">{" ".join(map(text, dataset.notes))}</p>'
    yield '<div class="grid">'
    for place, field_map in enumerate(dataset.maps):
        yield from _maps(f"m{number}-{place}", field_map, dataset.units)
    tables = {table.key: table for table in dataset.tables}
    for place, chart in enumerate(dataset.charts):
        yield from chart_figure(number, place, chart, tables.pop(chart.key, None), dataset.path)
    for table in tables.values():
        yield f'<div class="card"><h3>{text(table.title)}</h3>{table_of(table, dataset.path)}</div>'
    yield "</div></section>"


def _maps(name: str, drawn: FieldMap, units: str) -> Iterator[str]:
    ratio = f"aspect-ratio:{drawn.width}/{drawn.height}"
    overlay = _overlay(drawn)
    label = f"{drawn.title}, original and compressed"
    yield f'<figure class="map"><h3>{text(drawn.title)}: original | compressed</h3>'
    yield f'<div class="view pair {name}p" role="img" aria-label="{text(label)}" style="{ratio}">'
    yield f'<div class="layer {name}"></div><div class="layer second {name}"></div>{overlay}</div>'
    yield f'<div class="controls"><label for="s{name}">swipe</label><input id="s{name}" type="range" min="0" max="100"'
    yield ' value="50"><button type="button" aria-pressed="false">blink</button><output></output></div>'
    yield bar_of(CIVIDIS, f"{drawn.low:.5g}", f"{drawn.high:.5g}", units) + "</figure>"
    yield f"<figure><h3>{text(drawn.title)}: error</h3>"
    yield f'<div class="view error" role="img" aria-label="{text(drawn.title)}, error" style="{ratio}">'
    yield f'<div class="layer {name}e"></div>{overlay}</div>'
    yield bar_of(RED_BLUE, f"−{drawn.reach:.3g}", f"+{drawn.reach:.3g}", units)
    coast = " Coastlines: Natural Earth." if drawn.box else ""
    words = f"Target minus source; the circle marks the largest error. {drawn.directions}.{coast}"
    yield f"<figcaption>{text(words)}</figcaption></figure>"


def _overlay(drawn: FieldMap) -> str:
    """Return coastlines and the mark of the worst value."""
    parts = []
    if drawn.box:
        box = drawn.box
        size = box.east - box.west, box.north - box.south
        uses = "".join(
            f'<use href="#coast" transform="translate({turn} 0) scale(.25)"/>'
            for turn in (-360, 0, 360)
            if box.west < 180 + turn and box.east > -180 + turn
        )
        view = f"{box.west:.6g} {-box.north:.6g} {size[0]:.6g} {size[1]:.6g}"
        parts.append(f'<svg viewBox="{view}" preserveAspectRatio="none" aria-hidden="true">{uses}</svg>')
    if drawn.worst:
        x, y = (100 * share for share in drawn.worst)
        circles = "".join(f'<circle class="worst{kind}" cx="{x:.4g}%" cy="{y:.4g}%" r="7"/>' for kind in (" halo", ""))
        parts.append(f'<svg aria-hidden="true">{circles}</svg>')
    return "".join(parts)


def _pictures(datasets: Sequence[Reported]) -> str:
    """Return styles with the pictures, each once."""
    rules = []
    for number, dataset in enumerate(datasets):
        for place, drawn in enumerate(dataset.maps):
            for suffix, data in (("", drawn.pair), ("e", drawn.error)):
                rules.append(picture_rule(f"m{number}-{place}{suffix}", data))
    return "".join(rules)


def _coast() -> str:
    path = f'<path id="coast" class="coast" vector-effect="non-scaling-stroke" d="{part("coast.txt")}"/>'
    return f'<svg width="0" height="0" style="position:absolute" aria-hidden="true"><defs>{path}</defs></svg>'


def _others(report: Content) -> Iterator[str]:
    for title, items in (("Not read", report.problems), ("Other differences", report.others)):
        if items:
            yield f"<h2>{title}</h2>{items_of(str(item) for item in items[:_MOST_ROWS])}"


def _foot(report: Content) -> Iterator[str]:
    rows = "".join(
        f"<tr><td>{text(name)}</td><td><pre>{lines_of(value)}</pre></td></tr>"
        for name, value in report.provenance.items()
    )
    yield '<footer><h2 id="provenance">Provenance</h2>'
    yield '<div class="wide" tabindex="0" role="region" aria-label="Provenance"><table class="facts">'
    yield f"<tbody>{rows}</tbody></table></div>"
    yield f"{MADE_BY}</footer>"
