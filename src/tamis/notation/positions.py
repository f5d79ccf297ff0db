"""Error messages that mark the position of an error in a text."""

from __future__ import annotations

from tamis.errors import ParameterError
from tamis.formatting import printable

_SHOWN = 200  # characters of a long line


def malformed(text: str, start: int, expected: str) -> ParameterError:
    """Return the error for a malformed text: what is expected, what is there, and the marked position."""
    line, column, _ = _line(text, start)
    rest = line[column:]
    actual = repr(rest.split("|")[0][:20] or "|") if rest else "the end"
    return refused(text, start, f"expected {expected} at position {column + 1}, got {actual}")


def refused(text: str, start: int, why: str) -> ParameterError:
    """Return the error for a refused part of a text, with its position marked."""
    line, column, prefix = _line(text, start)
    if len(line) > _SHOWN:
        begin = max(column - _SHOWN // 2, 0)
        line, column = f"…{line[begin : begin + _SHOWN]}…", column - begin + 1
    return ParameterError(f"{prefix}{why}:\n  {printable(line)}\n  {' ' * len(printable(line[:column]))}^")


def _line(text: str, start: int) -> tuple[str, int, str]:
    """Return the line of a position, the column, and a prefix with the line number if the text has several lines."""
    before = text.rfind("\n", 0, start) + 1
    line = text[before:].partition("\n")[0]
    return line, start - before, f"line {text[:before].count(chr(10)) + 1}: " if "\n" in text else ""
