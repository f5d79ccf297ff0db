"""Text for people that every layer writes."""

from __future__ import annotations

from collections.abc import Iterable


def printable(text: str) -> str:
    """Return text with whatever a terminal would act on, or cannot show, as Python's escapes."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)


def printable_lines(text: str) -> str:
    """Make each line of a text `printable`, and keep the ends of lines."""
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


def plural(count: int, noun: str) -> str:
    """Return ``1 chunk`` or ``2 chunks``."""
    return f"{count} {noun}{'s' * (count != 1)}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a question with the most similar of the known words, in any case; nothing if none is similar."""
    from difflib import get_close_matches  # imported late, since only mistakes need it

    by_folded = {each.casefold(): each for each in known}
    nearest = get_close_matches(word.casefold(), by_folded, 1)
    return f" (did you mean {by_folded[nearest[0]]}?)" if nearest else ""
