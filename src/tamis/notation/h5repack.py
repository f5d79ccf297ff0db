"""Arguments of h5repack's ``-f`` and ``-l``: ``TS:UD=32013,0,4,3,0,2576980378,1069128089``, ``TS:CHUNK=4x96x144``.

::

    filter  : [ objects ':' ] kind                      one filter in each -f, in the order in which they run
    kind    : 'GZIP=' level | 'SHUF' | 'FLET' | 'NBIT' | 'NONE'
            | 'SZIP=' pixels ',' ( 'NN' | 'EC' )
            | 'SOFF=' factor ',' ( 'IN' | 'DS' )
            | 'UD=' id ',' flag ',' count { ',' word }   flag 0: required, 1: optional
    layout  : [ objects ':' ] ( 'CHUNK=' extent { 'x' extent } | 'CONTI' | 'COMPA' )
    objects : name { ',' name }                         names hold neither ':' nor ','

Refused are texts that h5repack takes for something else without a word: ``UD=307``, ``UD=307,0`` and ``:GZIP=4``, which
do nothing; words such as ``010`` (8), ``1.5`` (1) and ``abc`` (0); a flag for HDF5's own filters, which it leaves out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from tamis.errors import ParameterError
from tamis.filters import Request, Stage
from tamis.notation.chain import Chain, refuse_other_flags
from tamis.notation.places import malformed, refused

MAX_FILTERS = 6
"""h5repack drops further filters of a dataset without a word."""
MAX_WORDS = 20
"""Parameters of a filter: h5repack 1.10.8 takes 21 and refuses 24, whose count it takes for wrong."""

_EC, _NN = 4, 32
_INTEGER_OFFSET, _DECIMAL_SCALE = 2, 0
_OWN = range(1, 7)  # for which h5repack makes HDF5's own calls, so that the flag in UD is lost
_CODINGS = {"NN": _NN, "EC": _EC}
_SCALES = {"IN": _INTEGER_OFFSET, "DS": _DECIMAL_SCALE}
_BARE = {"SHUF": 2, "FLET": 3, "NBIT": 5}
_KIND = re.compile(r"(?P<kind>[A-Z]+)(?P<given>=)?")
_WORD = re.compile(r"0[xX][0-9a-fA-F]{1,8}|0|-?[1-9][0-9]{0,9}")
_DIGITS = re.compile(r"0|[1-9][0-9]{0,19}")


@dataclass(frozen=True, slots=True)
class FilterArgument:
    """The content of an argument of ``-f``.

    Parameters
    ----------
    objects
        Names of datasets or groups; none for all datasets of the file.
    filter
        None where it says NONE, so that the datasets lose their filters.
    """

    objects: tuple[str, ...]
    filter: Stage | None


@dataclass(frozen=True, slots=True)
class LayoutArgument:
    """The content of an argument of ``-l``.

    Parameters
    ----------
    objects
        Names of datasets; none for all of the file.
    layout
        CHUNK, CONTI or COMPA.
    chunks
        Shape of a chunk, where it is CHUNK.
    """

    objects: tuple[str, ...]
    layout: str
    chunks: tuple[int, ...] | None = None


class _Reader:
    """What is left of a text, with its place for messages."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def fail(self, expected: str, at: int | None = None) -> NoReturn:
        raise malformed(self.text, self.at if at is None else at, expected)

    def sign(self, sign: str, expected: str) -> None:
        if not self.text.startswith(sign, self.at):
            self.fail(expected)
        self.at += len(sign)

    def number(self, expected: str, low: int, high: int, pattern: re.Pattern[str] = _DIGITS) -> int:
        found = pattern.match(self.text, self.at)
        value = int(found[0], 0) if found else low - 1
        after = self.text[found.end() :][:1] if found else ""
        if not found or not low <= value <= high or after.isalnum() or after == ".":
            self.fail(expected)
        self.at = found.end()
        return value

    def choice(self, choices: dict[str, int]) -> int:
        for word, value in choices.items():
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return value
        self.fail(" or ".join(choices))

    def end(self) -> None:
        if self.at < len(self.text):
            self.fail("the end")

    def objects(self) -> tuple[str, ...]:
        """Read names up to the colon, if there is one."""
        head, colon, _ = self.text.partition(":")
        if not colon:
            return ()
        names = head.split(",")
        for name in names:
            if not name:
                self.fail("a name of a dataset, or no ':'")
            self.at += len(name) + 1
        return tuple(names)


def parse_filter(text: str) -> FilterArgument:
    """Read an argument of ``-f``.

    Raises
    ------
    ParameterError
        If it is malformed, with the place; or if a filter refuses its parameters.
    """
    reader = _Reader(text)
    objects = reader.objects()
    start = reader.at
    found = _KIND.match(text, start)
    kind, given = (found["kind"], found["given"]) if found else ("", None)
    readers = {"GZIP": _deflate, "SZIP": _szip, "SOFF": _scaleoffset, "UD": _user_defined}
    if kind in readers:
        reader.at = start + len(kind)
        reader.sign("=", "'=' and parameters")
        request, flag = readers[kind](reader)
        reader.end()
        return FilterArgument(objects, _flagged(reader, start, request, flag))
    if kind not in (*_BARE, "NONE"):
        reader.fail("a filter (GZIP=…, SHUF, FLET, SZIP=…, NBIT, SOFF=…, UD=…, NONE)")
    reader.at = start + len(kind)
    if given:
        reader.fail(f"no parameters of {kind}")
    reader.end()
    return FilterArgument(objects, None if kind == "NONE" else _flagged(reader, start, Request(_BARE[kind], ()), None))


def _flagged(reader: _Reader, start: int, request: Request, flag: int | None) -> Stage:
    try:
        made = Stage.of(request)
    except ParameterError as error:
        raise refused(reader.text, start, str(error)) from error
    if flag is None:
        return made
    if request.id in _OWN and bool(flag) != made.filter.optional:
        usual = int(made.filter.optional)
        reader.fail(f"flag {usual} ({request.id} is HDF5's own, h5repack leaves others out)", start)
    return replace(made, optional=bool(flag))


def _deflate(reader: _Reader) -> tuple[Request, int | None]:
    return Request(1, (reader.number("a level of 0 to 9", 0, 9),)), None


def _szip(reader: _Reader) -> tuple[Request, int | None]:
    start = reader.at
    pixels = reader.number("an even number of pixels per block, 2 to 32", 2, 32)
    if pixels % 2:
        reader.fail("an even number of pixels per block, 2 to 32", start)
    reader.sign(",", "',' and NN or EC")
    return Request(4, (reader.choice(_CODINGS), pixels)), None


def _scaleoffset(reader: _Reader) -> tuple[Request, int | None]:
    factor = reader.number("a factor of 0 or more", 0, (1 << 31) - 1)
    reader.sign(",", "',' and IN or DS")
    return Request(6, (reader.choice(_SCALES), factor)), None


def _user_defined(reader: _Reader) -> tuple[Request, int]:
    start = reader.at
    number = reader.number("a filter id of 1 to 65535", 1, 65535)
    flag_at, numbers = reader.at + 1, reader.text[start:].count(",")
    reader.sign(",", "',' and a flag, 0 required or 1 optional")
    flag = reader.number("a flag, 0 required or 1 optional" + _older(reader, number), 0, 1)
    reader.sign(",", "',' and the number of parameters" + _older(reader, number, flag_at))
    count = reader.number("the number of parameters", 0, MAX_WORDS)
    if count != numbers - 2:
        reader.fail(f"{numbers - 2} as the number of parameters" + _older(reader, number, flag_at), reader.at - 1)
    words = []
    for _ in range(count):
        reader.sign(",", "',' and a parameter")
        words.append(reader.number("a whole number of 32 bits", -(1 << 31), (1 << 32) - 1, _WORD) & 0xFFFFFFFF)
    return Request(number, tuple(words)), flag


def _older(reader: _Reader, number: int, at: int | None = None) -> str:
    """Return what to write where a text has the form of h5repack 1.8: the id, the count, words."""
    start = reader.at if at is None else at
    count, *words = reader.text[start:].split(",")
    if count != str(len(words)):
        return ""
    return f" (the form of h5repack 1.8: write UD={','.join([str(number), '0', count, *words])})"


def parse_layout(text: str) -> LayoutArgument:
    """Read an argument of ``-l``.

    Raises
    ------
    ParameterError
        If it is malformed, with the place.
    """
    reader = _Reader(text)
    objects = reader.objects()
    found = _KIND.match(text, reader.at)
    kind = found["kind"] if found else ""
    if kind not in ("CHUNK", "CONTI", "COMPA"):
        reader.fail("a layout (CHUNK=…, CONTI, COMPA)")
    reader.at += len(kind)
    if kind != "CHUNK":
        reader.end()
        return LayoutArgument(objects, kind)
    reader.sign("=", "'=' and a chunk shape such as 4x96x144")
    extents = [_extent(reader)]
    while reader.at < len(text):
        reader.sign("x", "'x' or the end")
        extents.append(_extent(reader))
    return LayoutArgument(objects, kind, tuple(extents))


_EXTENT = re.compile(r"[1-9][0-9]{0,9}")


def _extent(reader: _Reader) -> int:
    found = _EXTENT.match(reader.text, reader.at)
    if not found or int(found[0]) >= 1 << 32:
        reader.fail("an extent of 1 to 4294967295")
    reader.at = found.end()
    return int(found[0])


def filter_arguments(chain: Chain, objects: Sequence[str] = ()) -> list[str]:
    """Write the arguments of ``-f``, one for each filter.

    Parameters
    ----------
    chain
        Where it is empty, the argument says NONE.
    objects
        Names of datasets; none for all of the file.

    Raises
    ------
    ParameterError
        If h5repack cannot make such a pipeline, or name the datasets.
    """
    if len(chain) > MAX_FILTERS:
        raise ParameterError(f"expected at most {MAX_FILTERS} filters, which h5repack keeps, got {len(chain)}")
    refuse_other_flags([each for each in chain if each.filter.id in _OWN], "h5repack, for HDF5's own filters,")
    head = _objects_text(objects)
    return [head + _filter_text(each) for each in chain] or [f"{head}NONE"]


def _objects_text(objects: Sequence[str]) -> str:
    for name in objects:
        if not name or re.search("[:,]", name):
            raise ParameterError(f"expected names without ':' and ',', which h5repack cannot take, got {name!r}")
    return f"{','.join(objects)}:" if objects else ""


def _filter_text(each: Stage) -> str:
    number, values = each.request
    match number, values:
        case (1, (level,)) if level < 10:
            return f"GZIP={level}"
        case (2, _):
            return "SHUF"
        case (3, _):
            return "FLET"
        case (4, (mask, pixels, *_)) if mask & (_NN | _EC) and pixels in range(2, 33, 2):
            return f"SZIP={pixels},{'NN' if mask & _NN else 'EC'}"
        case (5, _):
            return "NBIT"
        case (6, (2 | 0 as scale, factor, *_)) if factor < 1 << 31:
            return f"SOFF={factor},{'IN' if scale == _INTEGER_OFFSET else 'DS'}"
    if number in (0, *_OWN):
        raise ParameterError(f"expected a filter that h5repack can set up, got {each.filter} with {values}")
    if len(values) > MAX_WORDS:
        raise ParameterError(f"expected at most {MAX_WORDS} parameters, which h5repack takes, got {len(values)}")
    return f"UD={','.join(map(str, (number, int(each.optional), len(values), *values)))}"


def layout_argument(chunks: Sequence[int], objects: Sequence[str] = ()) -> str:
    """Write the argument of ``-l`` for a chunk shape.

    Raises
    ------
    ParameterError
        If h5repack cannot name the datasets.
    """
    return f"{_objects_text(objects)}CHUNK={'x'.join(map(str, chunks))}"
