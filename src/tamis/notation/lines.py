"""Where in a text of several lines an error is."""

from __future__ import annotations

from tamis.errors import ParameterError
from tamis.notation.places import malformed, refused


def malformed_line(text: str, start: int, expected: str) -> ParameterError:
    """Make the error for a text of lines: what was expected, what is there, the line, and the place marked.

    Parameters
    ----------
    text
        All of it.
    start
        Index of the first wrong character.
    expected
        In words.
    """
    line, at, where = _line(text, start)
    return ParameterError(f"{where}{malformed(line, at, expected)}")


def refused_line(text: str, start: int, why: str) -> ParameterError:
    """Make the error for a part of a text of lines, with the place marked.

    Parameters
    ----------
    text
        All of it.
    start
        Index of the first character of the part.
    why
        The message.
    """
    line, at, where = _line(text, start)
    return refused(line, at, f"{where}{why}")


def _line(text: str, start: int) -> tuple[str, int, str]:
    """Return the line of a place, the place in it, and which line that is, where there are several."""
    before = text.rfind("\n", 0, start) + 1
    line = text[before:].partition("\n")[0]
    return line, start - before, f"line {text[:before].count(chr(10)) + 1}: " if "\n" in text else ""
