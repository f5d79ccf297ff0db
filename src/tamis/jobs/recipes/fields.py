"""The fields of a recipe file, each checked with its position."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, NoReturn

from tamis.accuracy.requirement import Requirement
from tamis.errors import ParameterError
from tamis.formatting import did_you_mean
from tamis.jobs.recipes.names import STANDARD_NAME, Chunks, as_chunks
from tamis.jobs.recipes.policies import POLICIES, MissingPolicy
from tamis.old_names import current_value
from tamis.pipeline import Pipeline, with_rounding

Key = tuple[str | int, ...]

_SKIP = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_NAME = re.compile(r"""[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*'""")
_DOT = re.compile(r"[ \t]*\.[ \t]*")
_STRING = re.compile(r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'', re.DOTALL)
_BARE = re.compile(r"[^,\]}#\r\n]+")


Place = tuple[int, int]
"""Line and column, from 1."""


class TextPlaces(NamedTuple):
    """Places in a TOML text, by key path, with numbers for elements: ``("variable", 0, "chunks", "time")``."""

    keys: dict[Key, Place]  # Position of each key that has a value
    values: dict[Key, Place]  # Position of each value, and of the header of each table


def places_of(text: str) -> TextPlaces:
    """Return the places of all keys and values."""
    scanner = _Scanner(text.replace("\r\n", "\n"))
    scanner.document()
    return TextPlaces(
        *({key: scanner.place(at) for key, at in places.items()} for places in (scanner.keys, scanner.found))
    )


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.keys, self.found = dict[Key, int](), dict[Key, int]()

    def place(self, at: int) -> Place:
        return self.text.count("\n", 0, at) + 1, at - (self.text.rfind("\n", 0, at) + 1) + 1

    def document(self) -> None:
        table: Key = ()
        counts: Counter[Key] = Counter()
        while self._skip() < len(self.text):
            if not self._take("["):
                self._assignment(table)
                continue
            begin, array = self.at - 1, self._take("[")
            table = self._inside(tuple(self._key()), counts, array=array)
            self.found[table] = begin
            self._skip()
            self.at += 2 if array else 1

    def _inside(self, names: Key, counts: Counter[Key], *, array: bool) -> Key:
        """Return the path of a table, with the number of the last element of each array of tables on the way."""
        path: Key = ()
        for name in names:
            path = (*path, name)
            if array and len(path) - sum(isinstance(part, int) for part in path) == len(names):
                counts[path] += 1
            if counts[path]:
                path = (*path, counts[path] - 1)
        return path

    def _key(self) -> Iterator[str]:
        while True:
            self._skip()
            match = _NAME.match(self.text, self.at)
            if match is None:
                return
            self.at = match.end()
            yield next(iter(tomllib.loads(f"{match[0]} = 0")))
            dot = _DOT.match(self.text, self.at)
            if dot is None:
                return
            self.at = dot.end()

    def _assignment(self, table: Key) -> None:
        begin = self.at
        names = (*table, *self._key())
        if self.at == begin:  # nothing that a key begins with: not TOML
            self.at = len(self.text)
            return
        self.keys[names] = begin
        self._skip()
        self._take("=")
        self._value(names)

    def _value(self, key: Key) -> None:
        self._skip()
        self.found[key] = self.at
        if self._take("["):
            self._elements(key, "]")
        elif self._take("{"):
            self._elements(key, "}")
        elif match := _STRING.match(self.text, self.at) or _BARE.match(self.text, self.at):
            self.at = match.end()

    def _elements(self, key: Key, end: str) -> None:
        number = 0
        while self._skip() < len(self.text) and not self._take(end):
            if end == "]":
                self._value((*key, number))
            else:
                self._assignment(key)
            number += 1
            self._skip()
            self._take(",")

    def _skip(self) -> int:
        match = _SKIP.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.at

    def _take(self, sign: str) -> bool:
        taken = self.text.startswith(sign, self.at)
        self.at += len(sign) * taken
        return taken


_SCHEMA = 1
_TOP = ("schema", "missing", "drop", "variable", "default", "evidence")
_NAMES = ("name", "standard_name")
_DEFAULT = ("round", "filters", "chunks", "require", "evidence")
_ALL_OTHERS = "*"


class RecipeFields(NamedTuple):
    """Filters, chunks and requirements by name, how missing values are treated, and what is left out."""

    filters: dict[str, Pipeline]
    chunks: dict[str, Chunks]
    require: dict[str, Requirement]
    missing: MissingPolicy | None
    drop: tuple[str, ...]


def fields_of(text: str, label: str) -> RecipeFields:
    """Return the fields of the text of a recipe file."""
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ParameterError(f"{label}: expected a recipe in TOML, found an error: {error}") from error
    return _Fields(text, label).read(content)


class _Fields:
    def __init__(self, text: str, label: str) -> None:
        self._places, self._label = places_of(text), label

    def read(self, content: Mapping[str, Any]) -> RecipeFields:
        self._known((), content, _TOP)
        if "schema" not in content:
            self._refuse((), f"schema = {_SCHEMA}", "none")
        if type(content["schema"]) is not int or content["schema"] != _SCHEMA:
            self._refuse(("schema",), f"schema = {_SCHEMA}, the only version so far", repr(content["schema"]))
        missing = current_value("missing", content.get("missing"))
        if missing is not None and missing not in POLICIES:
            self._refuse(("missing",), f"one of {', '.join(POLICIES)}", repr(missing))
        drop = content.get("drop", [])
        if not isinstance(drop, list) or not all(isinstance(name, str) for name in drop):
            self._refuse(("drop",), 'a list of names such as ["/group/x"]', repr(drop))
        variables = content.get("variable", [])
        if not isinstance(variables, list) or not all(isinstance(item, dict) for item in variables):
            self._refuse(("variable",), "tables [[variable]]", _kind(variables))
        fields = RecipeFields({}, {}, {}, missing, tuple(drop))
        names: set[str] = set()
        for number, entry in enumerate(variables):
            self._variable(("variable", number), entry, names, fields)
        if "default" in content:
            self._default(content["default"], names, fields)
        return fields

    def _default(self, entry: object, names: set[str], fields: RecipeFields) -> None:
        """Read the table for all other variables, which becomes the last pattern, ``*``."""
        if not isinstance(entry, dict):
            self._refuse(("default",), "a table [default]", repr(entry))
        self._known(("default",), entry, _DEFAULT)
        if _ALL_OTHERS in names:
            self._refuse(("default",), 'variables that name = "*" does not match', "none: leave one of the two out")
        self._values(("default",), entry, _ALL_OTHERS, fields)

    def _variable(self, at: Key, entry: Mapping[str, Any], names: set[str], fields: RecipeFields) -> None:
        self._known(at, entry, (*_NAMES, *_DEFAULT))
        given = [field for field in _NAMES if field in entry]
        if not given:
            self._refuse(at, "name, the name or pattern of a dataset, or its standard_name", "none")
        field, *others = given
        text = entry[field]
        if others:
            self._refuse((*at, others[0]), "either name or standard_name", "both")
        if not isinstance(text, str) or not text:
            self._refuse((*at, field), f"{field}, text that may be a pattern", repr(text))
        name = text if field == "name" else STANDARD_NAME + text
        if name in names:
            self._refuse((*at, field), "each name once", f"{text!r} again")
        names.add(name)
        self._values(at, entry, name, fields)

    def _values(self, at: Key, entry: Mapping[str, Any], name: str, fields: RecipeFields) -> None:
        if not entry.keys() & {"filters", "chunks", "require"}:
            self._refuse(at, f"filters, chunks or require for {name!r}", "none of them")
        if "filters" in entry:
            fields.filters[name] = self._text(at, entry, "filters", "zfp(bound=0.1)|shuffle|deflate(4)", Pipeline.parse)
        if "round" in entry:
            text = self._text(at, entry, "round", "absolute(0.125)", str)
            if name not in fields.filters:
                self._refuse((*at, "round"), 'filters beside it, such as "shuffle|deflate(4)"', "none")
            after_it = partial(with_rounding, filters=fields.filters[name])
            fields.filters[name] = self._checked((*at, "round"), after_it, text)
        if "chunks" in entry:
            extents = entry["chunks"].values() if isinstance(entry["chunks"], dict) else entry["chunks"]
            if not isinstance(entry["chunks"], (list, dict)) or any(type(extent) is not int for extent in extents):
                self._refuse((*at, "chunks"), "a list such as [4, 96, 144], or {time = 10}", repr(entry["chunks"]))
            fields.chunks[name] = self._checked((*at, "chunks"), as_chunks, entry["chunks"])
        if "require" in entry:
            fields.require[name] = self._text(at, entry, "require", "abs=0.1,limits", Requirement.parse)

    def _text(self, at: Key, entry: Mapping[str, Any], field: str, example: str, parse: Any) -> Any:
        if not isinstance(entry[field], str):
            self._refuse((*at, field), f'text such as "{example}"', repr(entry[field]))
        return self._checked((*at, field), parse, entry[field])

    def _checked(self, at: Key, check: Any, value: object) -> Any:
        try:
            return check(value)
        except ParameterError as error:
            raise ParameterError(f"{self._where(at)}: {error}") from error

    def _known(self, at: Key, entry: Mapping[str, Any], known: Collection[str]) -> None:
        for key in entry:
            if key not in known:
                advice = "; it applies to all variables: put it before the first [[variable]]" if key in _TOP else ""
                where = self._where((*at, key), at_key=True)
                raise ParameterError(
                    f"{where}: expected one of the fields {', '.join(known)}, found {key!r}"
                    f"{advice or did_you_mean(key, known)}"
                )

    def _refuse(self, at: Key, expected: str, found: str) -> NoReturn:
        raise ParameterError(f"{self._where(at)}: expected {expected}, found {found}")

    def _where(self, at: Key, *, at_key: bool = False) -> str:
        """Return file, line and column of a value or its key, or of its first item if its tables are only implied."""
        known = self._places.values if not (at_key and at in self._places.keys) else self._places.keys
        inside = [place for key, place in known.items() if at and key[: len(at)] == at]
        line, column = known.get(at) or min(inside, default=(1, 1))
        return f"{self._label}: line {line}, column {column}"


def _kind(value: object) -> str:
    return "a table" if isinstance(value, dict) else repr(value)
