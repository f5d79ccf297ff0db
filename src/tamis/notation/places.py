"""Where in a text an error is."""

from __future__ import annotations

from tamis.errors import ParameterError
from tamis.formatting import printable

_SHOWN = 200  # characters of a line


def malformed(text: str, start: int, expected: str) -> ParameterError:
    """Return the error for a text: what was expected at a place, what is there, and the place marked.

    Parameters
    ----------
    text
        All of it.
    start
        Index of the first wrong character.
    expected
        In words.
    """
    line, at, _ = _line(text, start)
    rest = line[at:]
    found = repr(rest.split("|")[0][:20] or "|") if rest else "the end"
    return refused(text, start, f"expected {expected} at position {at + 1}, got {found}")


def refused(text: str, start: int, why: str) -> ParameterError:
    """Return the error for a part of a text, with the place marked.

    Parameters
    ----------
    text
        All of it; of several lines the one is shown that has the place.
    start
        Index of the first character of the part.
    why
        The message.
    """
    line, at, where = _line(text, start)
    if len(line) > _SHOWN:
        begin = max(at - _SHOWN // 2, 0)
        line, at = f"…{line[begin : begin + _SHOWN]}…", at - begin + 1
    return ParameterError(f"{where}{why}:\n  {printable(line)}\n  {' ' * len(printable(line[:at]))}^")


def _line(text: str, start: int) -> tuple[str, int, str]:
    """Return the line of a place, the place in it, and which line that is, where there are several."""
    before = text.rfind("\n", 0, start) + 1
    line = text[before:].partition("\n")[0]
    return line, start - before, f"line {text[:before].count(chr(10)) + 1}: " if "\n" in text else ""
