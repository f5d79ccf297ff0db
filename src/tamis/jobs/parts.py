"""The building blocks of results on terminals and in notebooks: lines, tables and cards.

Cells of a table fold only if they must; numbers and names never do.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeAlias

_GAP, _NARROW_GAP = 2, 1
_LEAST = 12
_BREAKS = " ,=("
_INDENT = 2 + len("read by  ")

Line = tuple[str, str]
"""Kind of a line, which decides its colour, and its text."""

STYLES = {"file": "bold", "header": "dim", "name": "bold", "note": "yellow"} | dict.fromkeys(
    ("problem", "violation"), "bold red"
)
"""Colour for each kind of line."""


@dataclass(frozen=True, slots=True)
class Table:
    """A row for each dataset; columns without a value in any row are left out."""

    rows: Sequence[Sequence[str]]  # Cells, the header first; the first cell of a row is its name
    # Columns that may fold. Lines of their cells are joined by ``|``, and broken there first.
    folded: Sequence[int] = ()
    right: Sequence[int] = ()  # Columns that are aligned right
    code: Sequence[int] = ()  # Columns of code, whose lines are below each other in notebooks
    name: str = "Datasets"  # What the rows are, for notebooks

    def lines(self, width: int | None) -> Iterator[Line]:
        """Yield the lines, header first, folded to `width` characters; one line for each row if None."""
        if len(self.rows) > 1:
            for is_header, line in _lines_of(self.rows, width, self.folded, self.right):
                yield "header" if is_header else "row", line


@dataclass(frozen=True, slots=True)
class Card:
    """Facts that several datasets or groups share."""

    paths: tuple[str, ...]  # Printable paths of the datasets or groups
    facts: tuple[tuple[str, str], ...]  # Name and text of each fact

    def lines(self, width: int | None) -> Iterator[Line]:
        """Yield an empty line, the paths, and the facts, folded to `width` characters."""
        yield "", ""
        yield "name", title(self.paths)
        for name, text in self.facts:
            start = f"  {name:<{_INDENT - 2}}"
            if width is None:
                yield name, start + text
                continue
            lines = textwrap.wrap(text, max(width - _INDENT, 20), break_long_words=False, break_on_hyphens=False)
            for line in lines or [""]:
                yield name, start + line
                start = " " * _INDENT


Part: TypeAlias = Line | Table | Card


def lines_of(parts: Iterable[Part], width: int | None) -> Iterator[Line]:
    """Yield the lines of all parts, folded to `width` characters; in full if None."""
    for part in parts:
        if isinstance(part, (Table, Card)):
            yield from part.lines(width)
        else:
            yield part


def title(paths: Sequence[str], most: int = 4) -> str:
    """Return the first paths as text, and how many more there are."""
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    return ", ".join(paths[:most]) + more


def _lines_of(
    rows: Sequence[Sequence[str]], width: int | None, folded: Sequence[int], right: Sequence[int]
) -> Iterator[tuple[bool, str]]:
    kept = [i for i, column in enumerate(zip(*rows, strict=True)) if i == 0 or len(rows) == 1 or any(column[1:])]
    rows = [[cells[i] for i in kept] for cells in rows]
    folded, right = ([kept.index(i) for i in columns if i in kept] for columns in (folded, right))
    joined = [_joined(cells, folded) for cells in rows]
    widths, gap = _widths(joined), _GAP
    if width is not None and _total(widths, gap) > width:
        rows = [[cell.replace(" ", "\n") for cell in rows[0]], *rows[1:]]
        widths, gap = _narrowed(rows, widths, width, folded)
        joined = [[*rows[0]], *(_folded(cells, folded, widths) for cells in rows[1:])]
        widths = [widths[0], *_widths(joined)[1:]]
    for i, cells in enumerate(joined):
        for line in _lines(cells, widths, gap, right):
            yield i == 0, line


def _narrowed(
    rows: Sequence[Sequence[str]], natural: Sequence[int], width: int, folded: Sequence[int]
) -> tuple[list[int], int]:
    """Return column widths, and the gap between them, that exceed `width` as little as possible."""
    widths = _widths([rows[0], *([cell.replace("\n", "|\n") for cell in cells] for cells in rows[1:])])
    gap = _GAP if _total(widths, _GAP) <= width else _NARROW_GAP
    widths[0] = max(min(widths[0], _LEAST), widths[0] - max(_total(widths, gap) - width, 0))
    # Longer names get lines of their own.
    widths[0] = max(n for n in (_cell_len(part) for row in rows for part in row[0].split("\n")) if n <= widths[0])
    for _ in range(max(_total(widths, gap) - width, 0)):
        widest = max(folded, key=lambda column: widths[column], default=0)
        if widths[widest] > _LEAST:
            widths[widest] -= 1
    for column in folded:  # distribute the remaining width
        widths[column] += max(min(natural[column] - widths[column], width - _total(widths, gap)), 0)
    return widths, gap


def _joined(cells: Sequence[str], columns: Sequence[int]) -> list[str]:
    return [cell.replace("\n", "|") if i in columns else cell for i, cell in enumerate(cells)]


def _folded(cells: Sequence[str], columns: Sequence[int], widths: Sequence[int]) -> list[str]:
    return [_fold(cell, widths[i]) if i in columns else cell for i, cell in enumerate(cells)]


def _fold(cell: str, width: int) -> str:
    """Break a cell between its parts, and a part that is too long between words or parameters."""
    lines = [""]
    parts = cell.split("\n")
    for part in (*(f"{part}|" for part in parts[:-1]), parts[-1]):
        if len(lines[-1]) + len(part) <= width:
            lines[-1] += part
            continue
        rest = part
        while len(rest) > width:
            end = max(rest.rfind(sign, 0, width) for sign in _BREAKS) + 1 or width
            lines.append(rest[:end].rstrip())
            rest = rest[end:]
        lines.append(rest)
    return "\n".join(line for line in lines if line)


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(_cell_len(line) for cell in column for line in cell.split("\n")) for column in zip(*rows, strict=True)]


def _total(widths: Sequence[int], gap: int) -> int:
    return sum(widths) + gap * (len(widths) - 1)


def _lines(cells: Sequence[str], widths: Sequence[int], gap: int, right: Sequence[int]) -> Iterator[str]:
    name, *others = cells
    alone = _cell_len(name) > widths[0]
    if alone:
        yield name
    for line in zip_longest(*(cell.split("\n") for cell in ("" if alone else name, *others)), fillvalue=""):
        padded = (
            _padded(cell, width, left=i in right) for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        yield (" " * gap).join(padded).rstrip()


def _padded(cell: str, width: int, *, left: bool) -> str:
    blanks = " " * (width - _cell_len(cell))
    return blanks + cell if left else cell + blanks


def _cell_len(text: str) -> int:
    """Return the number of terminal columns that a text takes."""
    from rich.cells import cell_len  # late: a result that is not printed needs no terminal

    return cell_len(text)
