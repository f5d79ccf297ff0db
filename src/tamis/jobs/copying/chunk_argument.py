r"""Arguments of nccopy's ``-c``: chunk lengths of dimensions, or the chunk shape of a variable.

::

    argument   : '/' | dimensions | variable
    dimensions : dimension '/' [ length ] { ',' dimension '/' [ length ] }     without a length, the whole dimension
    variable   : name ':' [ length { ',' length } | 'contiguous' | 'compact' ]

A name is a path, from the root group if it does not begin with a slash. ``\`` before a character takes it literally:
``a\,b/4`` is a dimension called ``a,b``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tamis.notation.positions import malformed

_PART = re.compile(r"(?:\\.|[^\\,])*", re.DOTALL)
_COLON = re.compile(r"(?:\\.|[^\\:])*", re.DOTALL)
_LENGTH = re.compile(r"0*[1-9][0-9]{0,17}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ChunkArgument:
    """An argument of nccopy's ``-c``, parsed.

    Parameters
    ----------
    dimensions
        Chunk length by path of a dimension; None for the whole dimension.
    variable
        Path of a variable; empty if the argument names dimensions.
    shape
        Chunk shape of the variable.
    unchunked
        Storage without chunks for the variable, or for all if there is none: ``contiguous`` or ``compact``.
    """

    dimensions: dict[str, int | None]
    variable: str = ""
    shape: tuple[int, ...] = ()
    unchunked: str = ""


def parse_chunk_argument(text: str) -> ChunkArgument:
    """Read an argument of nccopy's ``-c``.

    Parameters
    ----------
    text
        Such as ``time/10,lat/96,lon/`` or ``TS:10,96,144``.

    Raises
    ------
    ParameterError
        If the text is malformed, with the position and what to write.
    """
    if text == "/":
        return ChunkArgument({}, unchunked="contiguous")
    colon = _end(_COLON, text, 0)
    if colon < len(text):
        return _variable(text, colon)
    dimensions: dict[str, int | None] = {}
    for start, end in _parts(text, 0):
        slash = text.rfind("/", start, end)
        if slash < 0:
            raise malformed(text, start, "DIMENSION/LENGTH such as time/10, or VARIABLE:LENGTH,LENGTH")
        path = _path(text, start, slash)
        if path in dimensions:
            raise malformed(text, start, f"each dimension once, got {path.removeprefix('/')} again")
        dimensions[path] = _length(text, slash + 1, end) if slash + 1 < end else None
    return ChunkArgument(dimensions)


def _variable(text: str, colon: int) -> ChunkArgument:
    path, rest = _path(text, 0, colon), text[colon + 1 :]
    if rest in ("", "contiguous", "compact"):
        return ChunkArgument({}, path, unchunked=rest or "contiguous")
    return ChunkArgument({}, path, tuple(_length(text, *bounds) for bounds in _parts(text, colon + 1)))


def _parts(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of the pieces between commas."""
    while True:
        end = _end(_PART, text, start)
        yield start, end
        if end == len(text):
            return
        start = end + 1


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    end = match.end() if match else start
    if text[end : end + 1] == "\\":
        raise malformed(text, end, "a character after '\\'")
    return end


def _length(text: str, start: int, end: int) -> int:
    if not _LENGTH.fullmatch(text[start:end]):
        raise malformed(text, start, "a chunk length of 1 or more")
    return int(text[start:end])


def _path(text: str, start: int, end: int) -> str:
    name = re.sub(r"\\(.)", r"\1", text[start:end], flags=re.DOTALL)
    if not name.strip("/"):
        raise malformed(text, start, "a name")
    return name if name.startswith("/") else f"/{name}"
