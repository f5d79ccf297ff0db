"""What a result shows to people, for terminals and notebooks alike: lines, tables and cards."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from tamis.jobs.table import Line, Table, title

_INDENT = 2 + len("read by  ")


@dataclass(frozen=True, slots=True)
class Card:
    """Facts that hold for some datasets or groups.

    Parameters
    ----------
    paths
        Of these; printable.
    facts
        Name and text of each.
    """

    paths: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]

    def lines(self, width: int | None) -> Iterator[Line]:
        """Yield an empty line, the paths, and the facts, folded to `width` characters."""
        yield "", ""
        yield "name", title(self.paths)
        for name, text in self.facts:
            start = f"  {name:<{_INDENT - 2}}"
            if width is None:
                yield name, start + text
                continue
            for line in textwrap.wrap(text, max(width - _INDENT, 20), break_on_hyphens=False) or [""]:
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
