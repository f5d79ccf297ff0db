"""tamis text: ``zfp(accuracy=0.1)|shuffle|deflate(4)|fletcher32``.

::

    pipeline : 'none' | filter { '|' filter }
    filter   : name [ '(' [ argument { ',' argument } ] ')' ]
    argument : [ parameter '=' ] value
    value    : a number, true, false
"""

from __future__ import annotations

import re
from inspect import signature
from typing import NoReturn

from tamis.errors import ParameterError
from tamis.filters import BY_NAME, Filter

_TOKEN = re.compile(
    r"\s*(?:(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>[-+]?[0-9.][0-9A-Za-z.]*(?:(?<=[eE])[-+][0-9]+)?)"
    r"|(?P<sign>[|(),=])|(?P<end>$))"
)

NONE = "none"
"""The pipeline without filters."""


class _Reader:
    """Tokens of a text, with their places for messages."""

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
            self.fail("a filter name, a number or one of | ( ) , =")
        self.kind = match.lastgroup or "end"
        self.token = match[self.kind]
        self.start = match.start(self.kind)
        self.at = match.end()

    def take(self, sign: str) -> bool:
        if self.token != sign or self.kind != "sign":
            return False
        self.advance()
        return True

    def fail(self, expected: str) -> NoReturn:
        rest = self.text[self.start :]
        found = repr(rest.split("|")[0][:20]) if rest else "the end"
        raise ParameterError(
            f"expected {expected} at position {self.start + 1}, got {found}:\n  {self.text}\n  {' ' * self.start}^"
        )


def parse_filters(text: str) -> list[Filter]:
    """Read a chain of filters.

    Raises
    ------
    ParameterError
        If the text is malformed, with the place; or if a filter refuses its parameters.
    """
    if text.strip() == NONE:
        return []
    reader = _Reader(text)
    filters = [_filter(reader)]
    while reader.take("|"):
        filters.append(_filter(reader))
    if reader.kind != "end":
        reader.fail("'|' or the end")
    return filters


def _filter(reader: _Reader) -> Filter:
    kind = BY_NAME.get(reader.token) if reader.kind == "word" else None
    if kind is None:
        reader.fail(f"a filter ({', '.join(sorted(BY_NAME))})")
    reader.advance()
    arguments: dict[str, object] = {}
    known = signature(kind).parameters
    positional = [each.name for each in known.values() if each.kind is not each.KEYWORD_ONLY]
    if reader.take("("):
        while not reader.take(")"):
            start = reader.start
            name, value = _argument(reader, positional, len(arguments))
            if name not in known or name in arguments:
                reader.start = start
                if name in arguments:
                    reader.fail(f"parameters of {kind.name} once each")
                names = f"one of the parameters {', '.join(known)}" if known else "no parameters"
                reader.fail(f"{names} of {kind.name}")
            arguments[name] = value
            if reader.take(","):
                if reader.token == ")":
                    reader.fail("another parameter after ','")
            elif reader.token != ")":
                reader.fail("',' or ')'")
    return kind(**arguments)


def _argument(reader: _Reader, positional: list[str], index: int) -> tuple[str, object]:
    name = positional[index] if index < len(positional) else ""
    if reader.kind == "word" and reader.token.lower() not in ("true", "false"):
        name = reader.token
        reader.advance()
        if not reader.take("="):
            reader.fail(f"'=' and a value after {name}")
    if not name:
        reader.fail("the name of a parameter and '='")
    return name, _value(reader)


def _value(reader: _Reader) -> object:
    token = reader.token
    value: object
    if reader.kind == "word" and token.lower() in ("true", "false"):
        value = token.lower() == "true"
    elif reader.kind == "number":
        try:
            value = int(token)
        except ValueError:
            try:
                value = float(token)
            except ValueError:
                reader.fail("a number")
    else:
        reader.fail("a number, true or false")
    reader.advance()
    return value
