"""Text for people."""

from __future__ import annotations


def printable(text: str) -> str:
    """Write what a terminal would act on, or cannot show, as Python's escapes."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)


def printable_lines(text: str) -> str:
    """Make each line of a text `printable`, and keep the ends of lines."""
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))
