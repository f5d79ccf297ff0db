"""Text for people, for every layer: printable names, plurals, suggestions."""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Iterable, Sequence

from tamis.library_lock import imported


def printable(text: str) -> str:
    """Return text with control characters, and others that a terminal cannot show, as Python's escapes."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def printable_lines(text: str) -> str:
    """Return text with each line `printable`, and line ends kept."""
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


def shell_path(path: str) -> str:
    """Return a path as a word for a shell that no command mistakes for an option."""
    return shell_word(f"./{path}" if path.startswith("-") else path)


def shell_line(words: Iterable[str]) -> str:
    """Return words as a line to paste into a shell."""
    return " ".join(map(shell_word, words))


def shell_word(word: str) -> str:
    """Return text as one word for a shell; control characters and bytes that are not UTF-8 become bash's escapes."""
    if word.isprintable():
        return shlex.quote(word)
    plain = (chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\x{byte:02x}" for byte in os.fsencode(word))
    return f"$'{''.join(plain)}'"


def plural(count: int, noun: str) -> str:
    """Return ``1 chunk`` or ``2 chunks``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a question with the most similar known name, in any case; empty if none is similar."""
    by_folded = {name.casefold(): name for name in known}
    nearest = imported("difflib").get_close_matches(word.casefold(), by_folded, 1)  # late: only mistakes need it
    return f" (did you mean {by_folded[nearest[0]]}?)" if nearest else ""


def shape_text(shape: Sequence[int] | None) -> str:
    """Return a shape as ``4x96x144``, slowest axis first; ``scalar`` without axes, ``null`` without values."""
    return "null" if shape is None else "x".join(map(str, shape)) or "scalar"


def ratio(nbytes: int, stored_nbytes: int) -> float | None:
    """Return bytes of values per stored byte; None if there are no bytes of either."""
    return nbytes / stored_nbytes if nbytes and stored_nbytes else None


def ratio_text(value: float | None) -> str:
    """Return a ratio with two decimals, or none if it is large; empty for None."""
    if value is None:
        return ""
    return f"{value:.2f}" if value < 1000 else f"{value:.0f}"


def size_text(nbytes: float) -> str:
    """Return a number of bytes in three digits and a unit of powers of 1000."""
    number = float(nbytes)
    for unit in ("B", "kB", "MB", "GB"):
        if number < 999.5:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB"


def change_text(before: int, after: int) -> str:
    """Return ``1.2 MB became 800 kB``, in bytes where both would have the same text."""
    texts = size_text(before), size_text(after)
    if texts[0] == texts[1]:
        texts = f"{before} bytes", f"{after} bytes"
    return " became ".join(texts)


def relative_text(bound: float) -> str:
    """Return a bound relative to a value as a percentage, in three digits."""
    return f"{100 * bound:.3g} %"


def bound_text(bound: float | None, relative: float | None) -> str:
    """Return an absolute bound, or a relative one if there is no other; empty if there is none."""
    if bound is not None:
        return f"{bound:g}"
    return "" if relative is None else relative_text(relative)


def percent_text(fraction: float) -> str:
    """Return a fraction as a percentage: whole, or with one decimal below 10 %."""
    percent = 100 * fraction
    return f"{percent:.1f} %" if percent < 9.95 else f"{percent:.0f} %"


_LONGEST = 60


def shortened(text: str) -> str:
    """Return a text, shortened if it is too long for a line."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def with_article(word: str) -> str:
    """Return a word after "a" or "an"."""
    return f"{'an' if word[:1] in 'aeiou' else 'a'} {word}"


def absent_text(names: tuple[str, ...]) -> str:
    """Return a note that other files are absent."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"values are missing, because these files do not exist: {names[0]}{more}"


def kind_of_mode(mode: int) -> str:
    """Return what a path leads to by its mode, in words."""
    kinds = {
        stat.S_IFREG: "a file",
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return kinds.get(stat.S_IFMT(mode), "something else")


_OPTION = re.compile(
    r"(?<![\w-])(?:--(?P<no>no-)?(?P<name>[a-z][a-z-]*)|(?<=\()(?P<chunks>-c(?=\))))"
    r"(?: (?P<value>exact|mask|refuse|unstable|one|each|attributes|codecs|copy|any|hdf5plugin|zfp"
    r"|(?<=--readers )[\w-]+)\b)?(?![\w-])"
)
_FLAGS = frozenset(
    (
        *("allow-outside", "anonymous", "break-hard-links", "consolidated", "follow", "history", "keep-classic"),
        *("keep-originals", "larger", "overwrite", "replace", "resume", "self-contained", "settle"),
    )
)
_COMMAND = re.compile(r"\btamis ([a-z]+(-[a-z]+)? |\d)")
"""A command, or the version of a line in the history of a file."""


def with_keywords(text: str) -> str:
    """Return a message for a caller in Python, who has keywords where the command line has options.

    Lines with whole commands stay as they are, and so do those of the history of a file.
    """
    return "\n".join(line if _COMMAND.search(line) else _OPTION.sub(_keyword, line) for line in text.split("\n"))


def _keyword(option: re.Match[str]) -> str:
    name = "chunks" if option["chunks"] else option["name"]
    keyword, value = name.replace("-", "_"), option["value"]
    if name == "json":
        return "to_json()"
    if option["no"]:
        return f"{keyword}=False"
    if value:
        return f"{keyword}={value!r}"
    return f"{keyword}=True" if name in _FLAGS else f"{keyword}="
