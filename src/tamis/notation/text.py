"""tamis text: ``zfp(accuracy=0.1)|shuffle|deflate(4)|fletcher32``, ``bitround(keepbits=7)|shuffle|deflate(4)``.

::

    pipeline : 'none' | step { '|' step }
    step     : stage | rounding                            a rounding is the first step
    rounding : name '(' argument ')' | name ':' argument   of `tamis.rounding`
    stage    : filter [ '!' | '?' ]                         '!' required, '?' optional; otherwise HDF5's default
    filter   : name [ '(' [ argument { ',' argument } ] ')' ]
             | name ':' argument { ',' argument }           the form of the HDF Group's RFC
             | 'filter' '(' id { ',' value } ')'            any filter by its number
    argument : [ parameter '=' ] value
    value    : a number, two numbers with ':' between them, true, false, a name, or text in quotes
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import Parameter, signature
from typing import NoReturn, TypeAlias, TypeVar

from tamis.errors import ParameterError, located
from tamis.filters import Filter, Request, Stage, UnknownFilter, by_name, filter_named, requested_filter
from tamis.filters.registry import NONE
from tamis.formatting import did_you_mean, printable
from tamis.old_names import KEYWORDS
from tamis.rounding import BY_NAME as ROUNDINGS
from tamis.rounding import Rounding

_SHOWN = 200  # characters of a long line


def malformed(text: str, start: int, expected: str) -> ParameterError:
    """Return the error for a malformed text: what was expected, what was found, and the marked position."""
    line, column, _ = _line(text, start)
    rest = line[column:]
    actual = repr(rest.split("|")[0][:20] or "|") if rest else "the end"
    return refused(text, start, f"expected {expected} at position {column + 1}, got {actual}")


def refused(text: str, start: int, why: str) -> ParameterError:
    """Return the error for a refused part of a text, with its position marked."""
    line, column, prefix = _line(text, start)
    if len(line) > _SHOWN:
        begin = max(column - _SHOWN // 2, 0)
        line, column = f"…{line[begin : begin + _SHOWN]}…", column - begin + 1
    return ParameterError(f"{prefix}{why}:\n  {printable(line)}\n  {' ' * len(printable(line[:column]))}^")


def _line(text: str, start: int) -> tuple[str, int, str]:
    """Return the line of a position, the column, and a prefix with the line number if the text has several lines."""
    begin = text.rfind("\n", 0, start) + 1
    line = text[begin:].partition("\n")[0]
    number = text.count("\n", 0, begin) + 1
    return line, start - begin, f"line {number}: " if "\n" in text else ""


@dataclass(frozen=True, slots=True)
class Reading:
    """A text, parsed."""

    notation: str  # The notation of the text
    chain: tuple[Stage | Rounding, ...]  # Filters in the order in which they run, possibly after a rounding
    names: tuple[str, ...] = ()  # Datasets that the text names
    chunk_shape: tuple[int, ...] | None = None  # Chunk shape; None if the text has none


def as_chunk_shape(value: object) -> tuple[int, ...] | None:
    """Return a chunk shape from a whole number or several; None for anything else."""
    shape = (value,) if isinstance(value, int) else value
    if isinstance(shape, (tuple, list)) and shape and all(type(step) is int and step > 0 for step in shape):
        return tuple(shape)
    return None


Chain: TypeAlias = Sequence[Stage]
"""Filters in the order in which they run on writing."""


def refuse_other_flags(chain: Chain, notation: str) -> None:
    """Raise ParameterError if a filter's flag differs from that of HDF5's own calls."""
    for stage in chain:
        if stage.optional != stage.filter.optional:
            usual = Stage.of(stage.filter).flag
            raise ParameterError(
                f"expected {stage.filter} to be {usual}, got {stage.flag}: {notation} cannot express flags"
            )


_TOKEN = re.compile(
    r"\s*(?:(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>[-+]?[0-9.][0-9A-Za-z.]*(?:(?<=[eE])[-+][0-9]+)?)"
    r"""|"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<sign>[|(),=:!?])|(?P<end>$))"""
)
Step = TypeVar("Step", Filter, Rounding)

_ALIASES = {"gzip": "deflate", "zlib": "deflate", "bz2": "bzip2", "zstandard": "zstd"}


class _Reader:
    """Tokens of a text, with their positions for messages."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.kind = self.token = ""
        self.start = 0
        self.advance()

    def advance(self) -> None:
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            self.start = self.at + len(self.text[self.at :]) - len(self.text[self.at :].lstrip())
            self.fail("a filter name, a number or one of | ( ) , = : ! ?")
        self.kind = match.lastgroup or "end"
        self.token = match[self.kind]
        self.start = match.start(self.kind)
        self.at = match.end()

    def take(self, *signs: str) -> str:
        """Consume the next token if it is one of these signs; return it, or an empty string."""
        token = self.token
        if token not in signs or self.kind != "sign":
            return ""
        self.advance()
        return token

    def fail(self, expected: str, start: int | None = None) -> NoReturn:
        raise malformed(self.text, self.start if start is None else start, expected)


def parse_filters(text: str) -> list[Stage | Rounding]:
    """Read a chain of filters, possibly with a rounding."""
    if text.strip() == NONE:
        return []
    reader = _Reader(text)
    steps = [_step(reader)]
    while reader.take("|"):
        steps.append(_step(reader))
    if reader.kind != "end":
        reader.fail("'|' or the end")
    return steps


def parse_named(text: str) -> tuple[str, list[Stage | Rounding]]:
    """Read ``NAME:FILTERS``, split at the last colon with valid filters after it; both may contain colons."""
    positions = [position for position, sign in enumerate(text) if sign == ":" and position]
    for position in reversed(positions):
        try:
            return text[:position], parse_filters(text[position + 1 :])
        except ParameterError:
            continue
    if not positions:
        raise malformed(text, len(text), "':' and filters after a name")
    return text[: positions[-1]], parse_filters(text[positions[-1] + 1 :])


def names_filter(text: str) -> bool:
    """Return whether a text begins with the name of a filter or rounding, and is therefore meant as tamis text."""
    match = _TOKEN.match(text)
    word = (match["word"] if match else None) or ""
    name = _ALIASES.get(word, word)
    return word in ROUNDINGS or name == UnknownFilter.name or filter_named(name) is not None


def _step(reader: _Reader) -> Stage | Rounding:
    """Read a filter, or a rounding."""
    if reader.kind != "word" or reader.token not in ROUNDINGS:
        return _stage(reader)
    kind = ROUNDINGS[reader.token]
    start = reader.start
    reader.advance()
    with located(filter=kind.name):
        rounding = _with_arguments(reader, kind, start)
    if reader.token in ("!", "?") and reader.kind == "sign":
        reader.fail(f"no flag, since {kind.name} is no filter that a chunk can leave out: '|' or the end")
    return rounding


def _stage(reader: _Reader) -> Stage:
    """Read a filter with its flag."""
    stage_filter = _filter(reader)
    flag = reader.take("!", "?")
    return Stage(stage_filter, flag == "?") if flag else Stage.of(stage_filter)


def _filter(reader: _Reader) -> Filter:
    """Read a filter by its name, or by its number."""
    name = _ALIASES.get(reader.token, reader.token) if reader.kind == "word" else ""
    kind = UnknownFilter if name == UnknownFilter.name else filter_named(name)
    if kind is None:
        _refuse_other_notation(reader.text[reader.start :])
        names = {**by_name(), **ROUNDINGS}
        reader.fail(
            f"a filter ({', '.join(sorted(by_name()))}) or rounding ({', '.join(sorted(ROUNDINGS))})"
            f"{did_you_mean(reader.token, names)}"
        )
    start = reader.start
    reader.advance()
    if kind is UnknownFilter:
        return _numbered(reader, start)
    with located(filter=kind.name):
        return _with_arguments(reader, kind, start)


def _refuse_other_notation(text: str) -> None:
    """Raise ParameterError for a text that looks like an argument of h5repack or of nccopy."""
    if re.match(r"(UD|GZIP|SZIP|SOFF)=|[0-9]+,", text):
        raise ParameterError(
            f"expected filters such as zfp(accuracy=0.1), got {printable(text)}, as other programs write them:"
            f" tamis spec {shlex.quote(text)} translates them"
        )


@cache  # inspection takes longer than all else here
def _parameters(kind: type[Filter | Rounding]) -> Mapping[str, Parameter]:
    return signature(kind).parameters


def _with_arguments(reader: _Reader, kind: type[Step], start: int) -> Step:
    """Read the arguments behind a name, and return the filter or rounding."""
    arguments: dict[str, object] = {}
    if reader.take(":"):
        _read_argument(reader, kind, arguments)
        while reader.take(","):
            _read_argument(reader, kind, arguments)
    elif reader.take("("):
        while not reader.take(")"):
            _read_argument(reader, kind, arguments)
            if reader.take(","):
                if reader.token == ")":
                    reader.fail("another parameter after ','")
            elif reader.token != ")":
                reader.fail("',' or ')'")
    required = [argument.name for argument in _parameters(kind).values() if argument.default is argument.empty]
    if absent := [argument for argument in required if argument not in arguments]:
        reader.fail(f"{kind.name} with {' and '.join(absent)}", start)
    try:
        return kind(**arguments)
    except ParameterError as error:
        raise refused(reader.text, start, str(error)) from error


def _read_argument(reader: _Reader, kind: type[Filter | Rounding], arguments: dict[str, object]) -> None:
    """Read one argument into those by name."""
    parameters = _parameters(kind)
    positional = [parameter.name for parameter in parameters.values() if parameter.kind is not parameter.KEYWORD_ONLY]
    start = reader.start
    name, value = _argument(reader, positional[len(arguments) :], list(parameters))
    name = KEYWORDS.get(kind.name, {}).get(name, name)
    if name in arguments:
        reader.fail(f"parameters of {kind.name} once each", start)
    if name not in parameters:
        names = f"one of the parameters {', '.join(parameters)}" if parameters else "no parameters"
        reader.fail(f"{names} of {kind.name}{did_you_mean(name, parameters)}", start)
    arguments[name] = value


def _argument(reader: _Reader, positional: list[str], parameters: list[str]) -> tuple[str, object]:
    """Read one argument; return its name, from those by position if it has none, and its value."""
    name = positional[0] if positional else ""
    if reader.kind == "word" and reader.token.lower() not in ("true", "false"):
        token = reader.token
        reader.advance()
        if reader.take("="):
            return token, _value(reader)
        if not name:
            reader.fail(f"'=' and a value after {token}")
        return name, token
    if not name:
        choices = f" ({', '.join(parameters)})" if parameters else ""
        reader.fail(f"the name of a parameter{choices} and '='")
    return name, _value(reader)


def _value(reader: _Reader) -> object:
    """Read a value."""
    token = reader.token
    value: object = token
    if reader.kind == "word" and token.lower() in ("true", "false"):
        value = token.lower() == "true"
    elif reader.kind == "number":
        value = _number(reader)
        reader.advance()
        if not reader.take(":"):
            return value
        if reader.kind != "number":
            reader.fail("a number after ':'")
        value = (value, _number(reader))
    elif reader.kind not in ("word", "single", "double"):
        reader.fail("a number, a word, true or false")
    reader.advance()
    return value


def _number(reader: _Reader) -> int | float:
    """Return the number that the current token is."""
    for kind in (int, float):
        try:
            return kind(reader.token)
        except ValueError:
            continue
    reader.fail("a number")


def _numbered(reader: _Reader, start: int) -> Filter:
    """Read the id and parameters after 'filter'."""
    if not reader.take("("):
        reader.fail("'(' and the number of a filter")
    cd_values = [_cd_value(reader)]
    while reader.take(","):
        cd_values.append(_cd_value(reader))
    if not reader.take(")"):
        reader.fail("',' or ')'")
    try:
        return requested_filter(Request(cd_values[0], tuple(cd_values[1:])))
    except ParameterError as error:
        raise refused(reader.text, start, str(error)) from error


def _cd_value(reader: _Reader) -> int:
    """Read a parameter of 32 bits."""
    value = _number(reader) if reader.kind == "number" else None
    if not isinstance(value, int) or not -(1 << 31) <= value < 1 << 32:
        reader.fail("a whole number of 32 bits")
    reader.advance()
    return value & 0xFFFFFFFF
