"""HTML for notebooks: text and tables in the style of xarray, for light and dark themes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from html import escape

from tamis.formatting import printable

MOST_ROWS = 500

# Colours come from the notebook's theme, and where it has none from the text around.
_STYLE = """
.tamis { color: var(--jp-content-font-color1, inherit); font-size: 0.9em; line-height: 1.5 }
.tamis table { border-collapse: collapse; margin: 0.3em 0 }
.tamis th, .tamis td { text-align: left; vertical-align: top; padding: 0.1em 1em 0.1em 0;
  background: transparent; color: inherit; border: 0 }
.tamis thead th { border-bottom: 1px solid currentColor; font-weight: normal; opacity: 0.7 }
.tamis td.number { text-align: right; font-variant-numeric: tabular-nums }
.tamis summary { cursor: pointer }
.tamis .label { opacity: 0.7; white-space: nowrap }
.tamis .problem { font-weight: bold; text-decoration: underline }
.tamis code { background: transparent; color: inherit; overflow-wrap: anywhere }
"""


def page(parts: Iterable[str]) -> str:
    """Return HTML that needs nothing else; everything in it that comes from a file must be escaped (`text`)."""
    return "\n".join([f'<div class="tamis"><style>{_STYLE}</style>', *parts, "</div>"])


def text(line: str) -> str:
    """Return text as HTML."""
    return escape(printable(line), quote=True)


def line(words: str, kind: str = "") -> str:
    """Return a line of text; kind ``problem`` or ``violation`` makes it stand out."""
    marked = " class='problem'" if kind in ("problem", "violation") else ""
    return f"<div{marked}>{text(words)}</div>"


def datasets_table(
    rows: Sequence[Sequence[str]], *, code: Collection[int] = (), right: Collection[int] = ()
) -> Iterator[str]:
    """Yield a table of datasets that opens. Columns without a value in any row are left out.

    Parameters
    ----------
    rows
        Cells, the header first.
    code
        Columns whose cells are code, with parts on a line each.
    right
        Columns that stand at the right.
    """
    header, *rest = rows
    if not rest:
        return
    kept = [i for i in range(len(header)) if i == 0 or any(cells[i] for cells in rest)]
    opened = " open" if len(rest) <= 40 else ""
    yield f"<details{opened}><summary>Datasets ({len(rest)})</summary><table><thead><tr>"
    yield "".join(f"<th>{text(header[i])}</th>" for i in kept)
    yield "</tr></thead><tbody>"
    for cells in rest[:MOST_ROWS]:
        tags = (_cell(cells[i], code=i in code, right=i in right) for i in kept)
        yield f"<tr>{''.join(tags)}</tr>"
    yield "</tbody></table>"
    if len(rest) > MOST_ROWS:
        yield f"<div class='label'>and {len(rest) - MOST_ROWS} more, in <code>.datasets</code></div>"
    yield "</details>"


def _cell(cell: str, *, code: bool, right: bool) -> str:
    shown = "<br>".join(f"<code>{text(part)}</code>" for part in cell.split("\n")) if code else text(cell)
    return f"<td{' class=' + repr('number') if right else ''}>{shown}</td>"
