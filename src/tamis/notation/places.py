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
    return ParameterError(f"expected {expected} at position {start + 1}, got {found}:\n  {text}\n  {' ' * start}^")
