"""Rows of cells within so many characters: folded only where they must be, and names never."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from rich.cells import cell_len

_GAP, _NARROW_GAP = 2, 1
_LEAST = 12
_BREAKS = ",=("


def aligned(rows: Sequence[Sequence[str]], width: int | None, *, folded: int, right: Sequence[int]) -> Iterator[str]:
    """Yield the lines of a table.

    Parameters
    ----------
    rows
        Cells, the header first; the first cell of a row is its name.
    width
        Characters of a line; None for any number, and a line for each row.
    folded
        The column whose cells have several parts, a line each; they are joined by ``|`` where there is room.
    right
        Columns that stand at the right.
    """
    joined = [_joined(cells, folded) for cells in rows]
    widths = _widths(joined)
    if width is None or _total(widths, _GAP) <= width:
        yield from _lines(joined, widths, _GAP, right)
        return
    widths = _widths(rows)
    gap = _GAP if _total(widths, _GAP) <= width else _NARROW_GAP
    for column in (0, folded):
        surplus = max(_total(widths, gap) - width, 0)
        widths[column] = max(min(widths[column], _LEAST), widths[column] - surplus)
    yield from _lines([_folded(cells, folded, widths[folded]) for cells in rows], widths, gap, right)


def _joined(cells: Sequence[str], column: int) -> list[str]:
    return [cell.replace("\n", "|") if i == column else cell for i, cell in enumerate(cells)]


def _folded(cells: Sequence[str], column: int, width: int) -> list[str]:
    pieces = [piece for part in cells[column].split("\n") for piece in _pieces(part, width)]
    return [*cells[:column], "\n".join(pieces), *cells[column + 1 :]]


def _pieces(part: str, width: int) -> Iterator[str]:
    """Break a part that is too long, where one of its parameters begins if that can be."""
    while len(part) > width:
        end = max(part.rfind(sign, 0, width) for sign in _BREAKS) + 1 or width
        yield part[:end]
        part = part[end:]
    yield part


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in zip(*rows, strict=True)]


def _total(widths: Sequence[int], gap: int) -> int:
    return sum(widths) + gap * (len(widths) - 1)


def _lines(rows: Sequence[Sequence[str]], widths: Sequence[int], gap: int, right: Sequence[int]) -> Iterator[str]:
    for name, *cells in rows:
        alone = cell_len(name) > widths[0]
        if alone:
            yield name
        for line in zip_longest(*(cell.split("\n") for cell in ("" if alone else name, *cells)), fillvalue=""):
            padded = (
                _padded(cell, width, left=i in right) for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            yield (" " * gap).join(padded).rstrip()


def _padded(cell: str, width: int, *, left: bool) -> str:
    blanks = " " * (width - cell_len(cell))
    return blanks + cell if left else cell + blanks
