"""Arguments of h5repack's ``-f`` and ``-l``: ``TS:UD=32013,0,4,3,0,2576980378,1069128089``, ``TS:CHUNK=4x96x144``.

::

    filter  : [ objects ':' ] kind                      one filter in each -f, in the order in which they run
    kind    : 'GZIP=' level | 'SHUF' | 'FLET' | 'NBIT' | 'NONE'
            | 'SZIP=' pixels ',' ( 'NN' | 'EC' )
            | 'SOFF=' factor ',' ( 'IN' | 'DS' )
            | 'UD=' id ',' flag ',' count { ',' word }   flag 0: required, 1: optional
    layout  : [ objects ':' ] ( 'CHUNK=' extent { 'x' extent } | 'CONTI' | 'COMPA' )
    objects : name { ',' name }                         names hold neither ':' nor ','

Texts that h5repack silently misreads are refused: ``UD=307``, ``UD=307,0`` and ``:GZIP=4``, which do nothing; numbers
such as ``010`` (8), ``1.5`` (1) and ``abc`` (0); a flag for HDF5's own filters, which it ignores.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from tamis.errors import ParameterError
from tamis.filters import Request, Stage
from tamis.notation.text import Chain, Reading, malformed, refuse_other_flags, refused

MAX_FILTERS = 6
"""h5repack silently drops further filters of a dataset."""
MAX_WORDS = 20
"""Limit of parameters of a filter: h5repack 1.10.8 accepts 21 and refuses 24."""

_EC, _NN = 4, 32
_INTEGER_OFFSET, _DECIMAL_SCALE = 2, 0
_OWN = range(1, 7)  # h5repack sets these by HDF5's own calls, which ignore the flag in UD
_CODINGS = {"NN": _NN, "EC": _EC}
_SCALES = {"IN": _INTEGER_OFFSET, "DS": _DECIMAL_SCALE}
_BARE = {"SHUF": 2, "FLET": 3, "NBIT": 5}
_KIND = re.compile(r"(?P<kind>[A-Z]+)(?P<equals>=)?")
_WORD = re.compile(r"0[xX][0-9a-fA-F]{1,8}|0|-?[1-9][0-9]{0,9}")
_DIGITS = re.compile(r"0|[1-9][0-9]{0,19}")


Objects = tuple[str, ...]
"""Names of datasets; empty for all datasets of the file."""


class _Reader:
    """A text with the current position."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fail(self, expected: str, at: int | None = None) -> NoReturn:
        raise malformed(self.text, self.at if at is None else at, expected)

    def sign(self, sign: str, expected: str) -> None:
        if not self.text.startswith(sign, self.at):
            self.fail(expected)
        self.at += len(sign)

    def number(self, expected: str, low: int, high: int, pattern: re.Pattern[str] = _DIGITS) -> int:
        match = pattern.match(self.text, self.at)
        value = int(match[0], 0) if match else low - 1
        after = self.text[match.end() :][:1] if match else ""
        if not match or not low <= value <= high or after.isalnum() or after == ".":
            self.fail(expected)
        self.at = match.end()
        return value

    def choice(self, choices: dict[str, int]) -> int:
        for name, value in choices.items():
            if self.text.startswith(name, self.at):
                self.at += len(name)
                return value
        self.fail(" or ".join(choices))

    def end(self) -> None:
        if self.at < len(self.text):
            self.fail("the end")

    def objects(self) -> tuple[str, ...]:
        """Read the names before the colon; none if there is no colon."""
        head, colon, _ = self.text.partition(":")
        if not colon:
            return ()
        names = head.split(",")
        for name in names:
            if not name:
                self.fail("a name of a dataset, or no ':'")
            self.at += len(name) + 1
        return tuple(names)


def parse_filter(text: str) -> tuple[Objects, Stage | None]:
    """Read an argument of ``-f``; a filter of None is NONE, which removes all filters."""
    reader = _Reader(text)
    objects = reader.objects()
    start = reader.at
    match = _KIND.match(text, start)
    kind, equals = (match["kind"], match["equals"]) if match else ("", None)
    readers = {"GZIP": _deflate, "SZIP": _szip, "SOFF": _scaleoffset, "UD": _user_defined}
    if kind in readers:
        reader.at = start + len(kind)
        reader.sign("=", "'=' and parameters")
        request, flag = readers[kind](reader)
        reader.end()
        return objects, _flagged(reader, start, request, flag)
    if kind not in (*_BARE, "NONE"):
        reader.fail("a filter (GZIP=…, SHUF, FLET, SZIP=…, NBIT, SOFF=…, UD=…, NONE)")
    reader.at = start + len(kind)
    if equals:
        reader.fail(f"no parameters of {kind}")
    reader.end()
    return objects, None if kind == "NONE" else _flagged(reader, start, Request(_BARE[kind], ()), None)


def _flagged(reader: _Reader, start: int, request: Request, flag: int | None) -> Stage:
    """Return a filter with the flag of the text; with the usual one for None."""
    try:
        stage = Stage.of(request)
    except ParameterError as error:
        raise refused(reader.text, start, str(error)) from error
    if flag is None:
        return stage
    if request.id in _OWN and bool(flag) != stage.filter.optional:
        usual = int(stage.filter.optional)
        reader.fail(f"flag {usual} ({request.id} is HDF5's own: h5repack ignores other flags)", start)
    return replace(stage, optional=bool(flag))


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
    """Read a filter by its id, with its flag."""
    start = reader.at
    number = reader.number("a filter id of 1 to 65535", 1, 65535)
    flag_at = reader.at + 1
    comma_count = reader.text[start:].count(",")
    reader.sign(",", "',' and a flag, 0 required or 1 optional")
    flag = reader.number("a flag, 0 required or 1 optional" + _form_hint(reader, number), 0, 1)
    reader.sign(",", "',' and the number of parameters" + _form_hint(reader, number, flag_at))
    count = reader.number("the number of parameters", 0, MAX_WORDS)
    if count != comma_count - 2:
        reader.fail(
            f"{comma_count - 2} as the number of parameters" + _form_hint(reader, number, flag_at), reader.at - 1
        )
    cd_values = []
    for _ in range(count):
        reader.sign(",", "',' and a parameter")
        cd_values.append(reader.number("a whole number of 32 bits", -(1 << 31), (1 << 32) - 1, _WORD) & 0xFFFFFFFF)
    return Request(number, tuple(cd_values)), flag


def _form_hint(reader: _Reader, number: int, position: int | None = None) -> str:
    """Return a hint if a text has the form of h5repack 1.8: id, count, parameters; else an empty string."""
    start = reader.at if position is None else position
    count, *cd_values = reader.text[start:].split(",")
    if count != str(len(cd_values)):
        return ""
    return f" (the form of h5repack 1.8: write UD={','.join([str(number), '0', count, *cd_values])})"


def parse_layout(text: str) -> tuple[Objects, tuple[int, ...] | None]:
    """Read an argument of ``-l``; a chunk shape of None is another layout."""
    reader = _Reader(text)
    objects = reader.objects()
    match = _KIND.match(text, reader.at)
    kind = match["kind"] if match else ""
    if kind not in ("CHUNK", "CONTI", "COMPA"):
        reader.fail("a layout (CHUNK=…, CONTI, COMPA)")
    reader.at += len(kind)
    if kind != "CHUNK":
        reader.end()
        return objects, None
    reader.sign("=", "'=' and a chunk shape such as 4x96x144")
    extents = [_extent(reader)]
    while reader.at < len(text):
        reader.sign("x", "'x' or the end")
        extents.append(_extent(reader))
    return objects, tuple(extents)


_EXTENT = re.compile(r"[1-9][0-9]{0,9}")


def _extent(reader: _Reader) -> int:
    """Read one extent of a chunk."""
    match = _EXTENT.match(reader.text, reader.at)
    if not match or int(match[0]) >= 1 << 32:
        reader.fail("an extent of 1 to 4294967295")
    reader.at = match.end()
    return int(match[0])


def filter_arguments(chain: Chain, objects: Sequence[str] = ()) -> list[str]:
    """Write the arguments of ``-f``, one for each filter."""
    if len(chain) > MAX_FILTERS:
        raise ParameterError(f"expected at most {MAX_FILTERS} filters, the limit of h5repack, got {len(chain)}")
    refuse_other_flags([stage for stage in chain if stage.filter.id in _OWN], "h5repack, for HDF5's own filters,")
    head = _objects_text(objects)
    return [head + _filter_text(stage) for stage in chain] or [f"{head}NONE"]


def _objects_text(objects: Sequence[str]) -> str:
    for name in objects:
        if not name or re.search("[:,]", name):
            raise ParameterError(f"expected names without ':' and ',', which h5repack cannot take, got {name!r}")
    return f"{','.join(objects)}:" if objects else ""


def _filter_text(stage: Stage) -> str:
    """Write the kind of a filter, as `parse_filter` reads it."""
    number, cd_values = stage.request
    match number, cd_values:
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
        raise ParameterError(f"expected a filter that h5repack can set up, got {stage.filter} with {cd_values}")
    if len(cd_values) > MAX_WORDS:
        raise ParameterError(f"expected at most {MAX_WORDS} parameters, the limit of h5repack, got {len(cd_values)}")
    return f"UD={','.join(map(str, (number, int(stage.optional), len(cd_values), *cd_values)))}"


def layout_argument(chunk_shape: Sequence[int], objects: Sequence[str] = ()) -> str:
    """Write the argument of ``-l`` for a chunk shape."""
    return f"{_objects_text(objects)}CHUNK={'x'.join(map(str, chunk_shape))}"


def parse_command(text: str) -> Reading:
    """Read ``-f`` and ``-l`` of a shell command: ``-f TS:SHUF -f TS:GZIP=4 -l TS:CHUNK=4x96x144``."""
    if not re.match(r"\s*(h5repack\s|-)", text):
        names, single = parse_filter(text.strip())
        return Reading("h5repack", () if single is None else (single,), names)
    filters, layouts = _options(text)
    objects = {names for names, _ in (*filters, *layouts)}
    if len(objects) > 1 or len(layouts) > 1:
        raise ParameterError(f"expected -f and one -l for the same datasets, got {text!r}")
    if len(filters) > 1 and any(item is None for _, item in filters):
        raise ParameterError(f"expected NONE or filters, got both in {text!r}: h5repack ignores NONE")
    chain = tuple(item for _, item in filters if item is not None)
    if len(chain) > MAX_FILTERS:
        raise ParameterError(f"expected at most {MAX_FILTERS} filters for h5repack, got {len(chain)}")
    return Reading("h5repack", chain, objects.pop(), layouts[0][1] if layouts else None)


_OPTION = re.compile(r"(?P<option>-f|-l|--filter|--layout)(?P<value>=.*|(?<=^-[fl]).+)?", re.DOTALL)


def _options(text: str) -> tuple[list[tuple[Objects, Stage | None]], list[tuple[Objects, tuple[int, ...] | None]]]:
    """Read the arguments of all ``-f`` and ``-l`` of a command."""
    try:
        tokens = shlex.split(text)
    except ValueError as error:
        raise malformed(text, len(text), f"a closing quote ({error})") from error
    remaining = iter(tokens[1:] if tokens[0] == "h5repack" else tokens)
    filters, layouts = [], []
    for token in remaining:
        match = _OPTION.fullmatch(token)
        if match is None:
            if token.startswith("-"):
                raise malformed(text, max(text.find(token), 0), "-f or -l, the options that tamis reads")
            continue  # a file name
        value = (match["value"] or "").removeprefix("=") or next(remaining, None)
        if value is None:
            raise malformed(text, len(text), f"an argument after {token}")
        if match["option"] in ("-f", "--filter"):
            filters.append(parse_filter(value))
        else:
            layouts.append(parse_layout(value))
    if not filters and not layouts:
        raise malformed(text, len(text), "-f or -l and an argument")
    return filters, layouts


def command_text(chain: Chain, objects: Sequence[str] = (), chunk_shape: Sequence[int] | None = None) -> str:
    """Write options of a shell command, as `parse_command` reads them."""
    options = [("-f", argument) for argument in filter_arguments(chain, objects)]
    if chunk_shape:
        options.append(("-l", layout_argument(chunk_shape, objects)))
    return " ".join(f"{option} {shlex.quote(argument)}" for option, argument in options)
