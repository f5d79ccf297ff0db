"""What all pages are made of: the whole file around a body, text, tables, charts."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from tamis.formatting import printable
from tamis.jobs.result import json_value

if TYPE_CHECKING:
    from tamis.jobs.report.reported import Chart, Facts

MADE_BY = '<p class="words">Made by tamis. Charts: uPlot, © Leon Sorokin, MIT licence.</p>'
"""HTML that says who made a page, for its foot."""
_LONGEST = 300
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def whole_page(title: str, body: Iterable[str], document: Mapping[str, Any], *, styles: str = "") -> str:
    """Return one self-contained file; the script draws the charts of the document, whose JSON is in the page."""
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{text(title)}</title><style>{part('uplot.css')}{part('report.css')}{styles}</style></head><body>",
        *body,
        f'<script type="application/json" id="tamis-report">{script_json(document)}</script>',
        f"<script>{part('uplot.js')}</script><script>{part('report.js')}</script></body></html>",
    ]
    return "\n".join(filter(None, lines))


def script_json(document: Mapping[str, Any]) -> str:
    """Return JSON for a script element: no character ends the element."""
    plain = json.dumps(json_value(document), separators=(",", ":"), allow_nan=False)
    return plain.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def part(name: str) -> str:
    """Return one of the files of the page."""
    return (files("tamis.jobs.report") / "page" / name).read_text(encoding="utf-8").strip()


def text(plain: str, most: int = _LONGEST) -> str:
    """Return text for HTML: escaped, without control characters and marks of direction, and not too long."""
    shown = plain if len(plain) <= most else f"{plain[:most]}… ({len(plain)} characters)"
    return escape(printable(shown), quote=True)


def chart_figure(number: int, place: int, chart: Chart, table: Facts | None, path: str) -> Iterator[str]:
    """Yield a chart, which the script draws, with its words, its numbers and a table."""
    where = f'data-variable="{number}" data-chart="{place}"'
    yield f"<figure><h3>{text(chart.title)}</h3>"
    yield f'<div class="plot" role="img" aria-label="{text(chart.title)}: {text(chart.words)}" {where}></div>'
    yield f"<figcaption>{text(chart.words)}</figcaption>"
    yield f'<details class="numbers" {where}><summary>Numbers of {text(chart.title.lower())}</summary></details>'
    if table is not None:
        yield table_of(table, path)
    yield "</figure>"


def table_of(table: Facts, path: str) -> str:
    """Return a table that scrolls if it is too wide."""
    head = "".join(f'<th scope="col">{text(name)}</th>' if name else "<td></td>" for name in table.header)
    body = "".join(f"<tr>{''.join(f'<td>{text(cell)}</td>' for cell in cells)}</tr>" for cells in table.rows)
    label = text(f"{path}: {table.title}")
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{label}, table"><table><caption>{text(table.words)}'
        f"</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def table_of_rows(label: str, header: Sequence[str], rows: Sequence[str], most: int) -> Iterator[str]:
    """Yield a table of rows that are HTML already, and how many there are beyond some number."""
    head = "".join(f'<th scope="col">{name}</th>' for name in header)
    yield f'<div class="wide" tabindex="0" role="region" aria-label="{label}"><table><thead><tr>{head}</tr></thead>'
    yield f"<tbody>{''.join(rows[:most])}</tbody></table></div>"
    if len(rows) > most:
        yield f'<p class="words">and {len(rows) - most} more, in the JSON of this page</p>'


def items_of(items: Iterable[str]) -> str:
    """Return texts as a list."""
    return "<ul>" + "".join(f"<li>{text(item)}</li>" for item in items) + "</ul>"


def lines_of(plain: str) -> str:
    """Return text with its line ends."""
    return "\n".join(text(line, 4000) for line in plain.split("\n"))


def bar_of(colours: str, low: str, high: str, units: str) -> str:
    """Return a scale of colours with its ends."""
    stops = ",".join(f"#{colour}" for colour in colours.split())
    unit = f" {text(units, 40)}" if units else ""
    scale = f'<i style="background:linear-gradient(90deg,{stops})"></i>'
    return f'<div class="bar"><span>{low}</span>{scale}<span>{high}{unit}</span></div>'


def picture_rule(name: str, data: bytes) -> str:
    """Return the style that gives a class a picture as its background."""
    url = base64.b64encode(data).decode()
    return f".{name}{{background-image:url(data:image/png;base64,{url})}}"
