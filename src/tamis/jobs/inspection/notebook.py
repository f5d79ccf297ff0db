"""An inspection in a notebook: a table that opens, in the style of xarray, for light and dark themes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from tamis.formatting import printable
from tamis.jobs.inspection.cards import COLUMNS, cards, row, summary, title
from tamis.jobs.inspection.found import DatasetInfo, Inspection

_MOST_ROWS = 500

# Colours come from the notebook's theme, and where it has none from the text around.
_STYLE = """
.tamis-inspection { color: var(--jp-content-font-color1, inherit); font-size: 0.9em; line-height: 1.5 }
.tamis-inspection table { border-collapse: collapse; margin: 0.3em 0 }
.tamis-inspection th, .tamis-inspection td { text-align: left; vertical-align: top; padding: 0.1em 1em 0.1em 0;
  background: transparent; color: inherit; border: 0 }
.tamis-inspection thead th { border-bottom: 1px solid currentColor; font-weight: normal; opacity: 0.7 }
.tamis-inspection td.number { text-align: right; font-variant-numeric: tabular-nums }
.tamis-inspection summary { cursor: pointer }
.tamis-inspection .label { opacity: 0.7; white-space: nowrap }
.tamis-inspection .problem { font-weight: bold; text-decoration: underline }
.tamis-inspection code { background: transparent; color: inherit; overflow-wrap: anywhere }
"""


def html_of(found: Inspection) -> str:
    """Return HTML that stands for itself; everything that comes from the file is escaped."""
    return "\n".join(_parts(found))


def _parts(found: Inspection) -> Iterator[str]:
    yield f'<div class="tamis-inspection"><style>{_STYLE}</style>'
    yield f"<div><strong>{_text(found.path)}</strong> <span class='label'>{_text(summary(found))}</span></div>"
    yield from _table(found.datasets)
    for card in cards(found):
        # What cannot be read right is open from the start.
        opened = " open" if any(name == "problem" for name, _ in card.facts) else ""
        yield f"<details{opened}><summary>{_text(title(card.paths))}</summary><table><tbody>"
        for name, text in card.facts:
            kind = " class='problem'" if name == "problem" else ""
            yield f"<tr><td class='label'>{_text(name)}</td><td{kind}>{_text(text)}</td></tr>"
        yield "</tbody></table></details>"
    yield "</div>"


def _table(datasets: tuple[DatasetInfo, ...]) -> Iterator[str]:
    if not datasets:
        return
    shown = datasets[:_MOST_ROWS]
    opened = " open" if len(datasets) <= 40 else ""
    yield f"<details{opened}><summary>Datasets ({len(datasets)})</summary><table><thead><tr>"
    yield "".join(f"<th>{_text(name)}</th>" for name in COLUMNS)
    yield "</tr></thead><tbody>"
    yield from (_row(row(each)) for each in shown)
    yield "</tbody></table>"
    if len(shown) < len(datasets):
        yield f"<div class='label'>and {len(datasets) - len(shown)} more, in <code>.datasets</code></div>"
    yield "</details>"


def _row(cells: Iterable[str]) -> str:
    tags = []
    for name, cell in zip(COLUMNS, cells, strict=True):
        kind = " class='number'" if name in ("stored", "ratio") else ""
        text = (
            "<br>".join(f"<code>{_text(line)}</code>" for line in cell.split("\n"))
            if name == "filters"
            else _text(cell)
        )
        tags.append(f"<td{kind}>{text}</td>")
    return f"<tr>{''.join(tags)}</tr>"


def _text(text: str) -> str:
    return escape(printable(text), quote=True)
