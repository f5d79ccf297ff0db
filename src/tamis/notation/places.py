"""Where in a text an error is."""

from __future__ import annotations

from tamis.errors import ParameterError


def malformed(text: str, start: int, expected: str) -> ParameterError:
    """Make the error for a text: what was expected at a place, what is there, and the place marked.

    Parameters
    ----------
    text
        All of it.
    start
        Index of the first wrong character.
    expected
        In words.
    """
    rest = text[start:]
    found = repr(rest.split("|")[0][:20] or "|") if rest else "the end"
    return refused(text, start, f"expected {expected} at position {start + 1}, got {found}")


def refused(text: str, start: int, why: str) -> ParameterError:
    """Make the error for a part of a text, with the place marked.

    Parameters
    ----------
    text
        All of it.
    start
        Index of the first character of the part.
    why
        The message.
    """
    return ParameterError(f"{why}:\n  {text}\n  {' ' * start}^")
