"""Show results as HTML in notebooks: text and tables in the style of xarray, for light and dark themes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from tamis.formatting import printable
from tamis.jobs.parts import Card, Part, Table, title

MOST_ROWS = 500

_CLASSES = {"file": "file", "problem": "problem", "violation": "problem"}
"""HTML class for each kind of line."""

# Colours come from the notebook's theme; without a theme, from the surrounding text.
_STYLE = """
.tamis { color: var(--jp-content-font-color1, inherit); font-size: 0.9em; line-height: 1.5 }
.tamis table { border-collapse: collapse; margin: 0.3em 0 }
.tamis th, .tamis td { text-align: left; vertical-align: top; padding: 0.1em 1em 0.1em 0;
  background: transparent; color: inherit; border: 0 }
.tamis thead th { border-bottom: 1px solid currentColor; font-weight: normal; opacity: 0.7 }
.tamis td.number { text-align: right; font-variant-numeric: tabular-nums }
.tamis summary { cursor: pointer }
.tamis .file { font-weight: bold }
.tamis .label { opacity: 0.7; white-space: nowrap }
.tamis .problem { font-weight: bold; text-decoration: underline }
.tamis code { background: transparent; color: inherit; overflow-wrap: anywhere }
"""


def page(parts: Iterable[Part]) -> str:
    """Return self-contained HTML; all text from files is escaped."""
    return "\n".join(
        [f'<div class="tamis"><style>{_STYLE}</style>', *(html for part in parts for html in _html(part)), "</div>"]
    )


def _html(part: Part) -> Iterator[str]:
    if isinstance(part, Table):
        yield from _table(part)
    elif isinstance(part, Card):
        # Problems are visible without a click.
        opened = " open" if any(name == "problem" for name, _ in part.facts) else ""
        yield f"<details{opened}><summary>{text(title(part.paths))}</summary><table><tbody>"
        for name, fact in part.facts:
            attribute = " class='problem'" if name == "problem" else ""
            yield f"<tr><td class='label'>{text(name)}</td><td{attribute}>{text(fact)}</td></tr>"
        yield "</tbody></table></details>"
    else:
        yield _line(*part)


def text(plain: str) -> str:
    """Return plain text as HTML."""
    return escape(printable(plain), quote=True)


def _line(kind: str, plain: str) -> str:
    attribute = f" class='{_CLASSES[kind]}'" if kind in _CLASSES else ""
    return f"<div{attribute}>{text(plain)}</div>"


def _table(table: Table) -> Iterator[str]:
    """Yield a table that can be folded; it is open if it is short."""
    header, *rest = table.rows
    if not rest:
        return
    kept = [i for i in range(len(header)) if i == 0 or any(cells[i] for cells in rest)]
    opened = " open" if len(rest) <= 40 else ""
    yield f"<details{opened}><summary>{text(table.name)} ({len(rest)})</summary><table><thead><tr>"
    yield "".join(f"<th>{text(header[i])}</th>" for i in kept)
    yield "</tr></thead><tbody>"
    for cells in rest[:MOST_ROWS]:
        tags = (_cell(cells[i], code=i in table.code, right=i in table.right) for i in kept)
        yield f"<tr>{''.join(tags)}</tr>"
    yield "</tbody></table>"
    if len(rest) > MOST_ROWS:
        yield f"<div class='label'>and {len(rest) - MOST_ROWS} more, in <code>.datasets</code></div>"
    yield "</details>"


def _cell(cell: str, *, code: bool, right: bool) -> str:
    shown = "<br>".join(f"<code>{text(part)}</code>" for part in cell.split("\n")) if code else text(cell)
    return f"<td{' class=' + repr('number') if right else ''}>{shown}</td>"
