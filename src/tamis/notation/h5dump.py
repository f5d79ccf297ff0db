"""Filters of a dataset as ``h5dump -p`` and ``h5ls -v`` print them, with the parameters that the file stores.

::

    h5dump  : [ 'FILTERS' '{' ] entry { entry } [ '}' ]
    entry   : ( 'USER_DEFINED_FILTER' | 'UNKNOWN_FILTER' ) '{' 'FILTER_ID' id [ 'COMMENT' text ] words '}'
            | 'COMPRESSION' 'DEFLATE' '{' 'LEVEL' level '}' | 'COMPRESSION' 'SZIP' '{' … '}'
            | 'PREPROCESSING' ( 'SHUFFLE' | 'NBIT' | 'SCALEOFFSET' '{' 'MIN BITS' number '}' ) | 'CHECKSUM' 'FLETCHER32'
    h5ls    : line { line }
    line    : [ 'Filter-' number ':' name '-' ] id [ 'OPT' ] words
    words   : [ 'PARAMS' ] '{' [ 'PARAMS' ] { word [ ',' ] } '}'

h5dump prints words as signed numbers, and no flags: HDF5's default is assumed. It prints only a part of the parameters
of scaleoffset, which is refused. Of szip it prints pixels per block and coding, from which the rest follows.
"""

from __future__ import annotations

import re

from tamis.errors import ParameterError
from tamis.filters import Request, Stage, UnknownFilter, from_values
from tamis.notation.text import Reading, malformed, refused

RULE = re.compile(
    r"\s*(FILTERS\s*\{|(USER_DEFINED|UNKNOWN)_FILTER\b|(COMPRESSION|PREPROCESSING|CHECKSUM)\s+[A-Z]"
    r"|Filter-\d+:|\d+\s*(OPT\s*)?(PARAMS\s*)?\{)"
)
"""How such texts begin."""

_WORDS = r"(?:PARAMS\s*)?\{(?:\s*PARAMS\b)?(?P<words>[^}]*)\}"
_FILTER = re.compile(
    rf"(?:USER_DEFINED|UNKNOWN)_FILTER\s*\{{\s*FILTER_ID\s+(?P<id>\d+)\s+(?:COMMENT\s[^{{]*?)?{_WORDS}\s*\}}",
    re.IGNORECASE,
)
_LINE = re.compile(rf"(?:Filter-\d+:[^\n]*-)?(?P<id>\d+)\s*(?P<flag>OPT)?\s*{_WORDS}", re.IGNORECASE)
_OWN = re.compile(
    r"(?:COMPRESSION|PREPROCESSING|CHECKSUM)\s+(?P<name>DEFLATE|SZIP|SHUFFLE|NBIT|SCALEOFFSET|FLETCHER32)"
    r"(?:\s*\{(?P<inside>[^}]*)\})?"
)
_WORD = re.compile(r"[-+]?\d+")
_EC, _NN = 4, 32
_EXPECTED = "a filter as h5dump -p or h5ls -v prints it, such as 32013 { 269504785 91252346 … }"


def parse_text(text: str) -> Reading:
    """Read filters in the order in which they run."""
    chain: list[Stage] = []
    begun = re.match(r"\s*FILTERS\s*\{", text)
    at, end = (begun.end(), text.rfind("}")) if begun else (0, len(text))
    if end < at:
        raise malformed(text, len(text), "'}' at the end of FILTERS")
    while at < end and text[at:end].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        match = _FILTER.match(text, at) or _LINE.match(text, at) or _OWN.match(text, at)
        if match is None:
            raise malformed(text, at, _EXPECTED)
        chain.append(_own(text, match) if match.re is _OWN else _numbered(text, match))
        at = match.end()
    if not chain:
        raise malformed(text, at, _EXPECTED)
    return Reading("h5dump", tuple(chain))


def _numbered(text: str, match: re.Match[str]) -> Stage:
    """Return the filter of an id and words."""
    words, start = match["words"].replace(",", " ").split(), match.start("words")
    for word in words:
        if not _WORD.fullmatch(word) or not -(1 << 31) <= int(word) < 1 << 32:
            raise malformed(text, text.index(word, start), "whole numbers of 32 bits, all that the file stores")
    stage = _stage(text, match.start(), Request(int(match["id"]), tuple(int(word) & 0xFFFFFFFF for word in words)))
    if match.re is not _LINE or text[match.start()].isdigit():
        return stage
    return Stage(stage.filter, match["flag"] is not None)  # h5ls prints flags


def _own(text: str, match: re.Match[str]) -> Stage:
    """Return a filter of HDF5 itself, which h5dump prints by name."""
    inside = match["inside"] or ""
    numbers = [int(number) for number in _WORD.findall(inside)]
    match match["name"]:
        case "SHUFFLE":
            request = Request(2, ())
        case "FLETCHER32":
            request = Request(3, ())
        case "NBIT":
            request = Request(5, ())
        case "DEFLATE" if len(numbers) == 1:
            request = Request(1, (numbers[0],))
        case "SZIP" if numbers:
            request = Request(4, (_EC if "ENTROPY" in inside else _NN, numbers[0]))
        case "SCALEOFFSET":
            raise refused(
                text, match.start(), "h5dump prints only a part of the parameters of scaleoffset: see tamis inspect"
            )
        case _:
            raise malformed(text, match.start(), f"the parameters of {match['name']} between {{ and }}")
    return Stage.of(request)


def _stage(text: str, start: int, request: Request) -> Stage:
    """Return a filter with the default flag; refuse words that its file cannot have."""
    stored = from_values(request, stored=True)
    if isinstance(stored, UnknownFilter) and stored.reason:
        raise refused(text, start, f"filter {request.id}: {stored.reason}")
    try:
        return Stage.of(stored)
    except ParameterError as error:
        raise refused(text, start, str(error)) from error
