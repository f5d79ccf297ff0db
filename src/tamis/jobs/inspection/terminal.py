"""An inspection as text: folded to the width of a terminal, and in full through a pipe."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from tamis.formatting import printable
from tamis.jobs.inspection.cards import COLUMNS, Card, cards, row, summary
from tamis.jobs.inspection.found import Inspection
from tamis.jobs.table import Line, table, title

_FOLDED = (COLUMNS.index("filters"),)
_RIGHT = (COLUMNS.index("stored"), COLUMNS.index("ratio"))
_INDENT = 2 + len("read by  ")


def lines(found: Inspection, width: int | None) -> Iterator[Line]:
    """Yield lines within a width; without one, a line for each dataset and for each fact."""
    yield "file", f"{printable(found.path)} ({summary(found)})"
    if found.datasets:
        yield from table([COLUMNS, *map(row, found.datasets)], width, folded=_FOLDED, right=_RIGHT)
    for card in cards(found):
        yield "", ""
        yield from _card(card, width)


def _card(card: Card, width: int | None) -> Iterator[Line]:
    yield "name", title(card.paths)
    for name, text in card.facts:
        start = f"  {name:<{_INDENT - 2}}"
        if width is None:
            yield name, start + text
            continue
        for line in textwrap.wrap(text, max(width - _INDENT, 20), break_on_hyphens=False) or [""]:
            yield name, start + line
            start = " " * _INDENT
