"""An inspection as text: folded to the width of a terminal, and in full through a pipe."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tamis.formatting import printable
from tamis.jobs.inspection.cards import COLUMNS, Card, cards, row, summary, title
from tamis.jobs.inspection.found import Inspection
from tamis.jobs.inspection.rows import aligned

if TYPE_CHECKING:
    from rich.console import Console

_FOLDED = COLUMNS.index("filters")
_RIGHT = (COLUMNS.index("stored"), COLUMNS.index("ratio"))
_STYLES = {"file": "bold", "header": "dim", "name": "bold", "note": "yellow", "problem": "bold red"}
_INDENT = 2 + len("read by  ")

Line = tuple[str, str]
"""What a line is, which decides its colour, and its text."""


def show(found: Inspection, console: Console) -> None:
    """Print for a reader at a terminal, in colours where it has some."""
    from rich.text import Text

    for kind, text in _lines(found, console.width):
        console.print(Text(text, _STYLES.get(kind, "")), soft_wrap=True)


def lines(found: Inspection) -> Iterator[str]:
    """Write for a file or another program: a line for each dataset and for each fact."""
    return (text for _, text in _lines(found, None))


def _lines(found: Inspection, width: int | None) -> Iterator[Line]:
    yield "file", f"{printable(found.path)} ({summary(found)})"
    if found.datasets:
        rows = [COLUMNS, *map(row, found.datasets)]
        kinds = iter(("header",))
        for line in aligned(rows, width, folded=_FOLDED, right=_RIGHT):
            yield next(kinds, "row"), line
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
