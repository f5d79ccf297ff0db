"""The fields of a recipe file, each checked where it stands."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, NamedTuple, NoReturn

from tamis.accuracy.requirement import Requirement
from tamis.errors import ParameterError
from tamis.formatting import did_you_mean
from tamis.jobs.recipe import STANDARD_NAME
from tamis.jobs.recipes.dimension_chunks import Chunks, as_chunks
from tamis.jobs.recipes.saved_recipe import POLICIES, MissingPolicy, rounded
from tamis.jobs.recipes.toml_places import Key, places_of
from tamis.pipeline import Pipeline

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
    """Return the fields of the text of a recipe file.

    Parameters
    ----------
    text
        The content of the file.
    label
        Name of the file, for messages.

    Raises
    ------
    ParameterError
        If it is no TOML, or a field is missing, unknown or wrong; names line and column.
    """
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
            self._refuse(("schema",), f"schema = {_SCHEMA}, the only one so far", repr(content["schema"]))
        missing = content.get("missing")
        if missing is not None and missing not in POLICIES:
            self._refuse(("missing",), f"one of {', '.join(POLICIES)}", repr(missing))
        drop = content.get("drop", [])
        if not isinstance(drop, list) or not all(isinstance(name, str) for name in drop):
            self._refuse(("drop",), 'a list of names such as ["/group/x"]', repr(drop))
        variables = content.get("variable", [])
        if not isinstance(variables, list) or not all(isinstance(each, dict) for each in variables):
            self._refuse(("variable",), "tables [[variable]]", _kind(variables))
        fields = RecipeFields({}, {}, {}, missing, tuple(drop))
        names: set[str] = set()
        for number, entry in enumerate(variables):
            self._variable(("variable", number), entry, names, fields)
        if "default" in content:
            self._default(content["default"], names, fields)
        return fields

    def _default(self, entry: object, names: set[str], fields: RecipeFields) -> None:
        """Read the table for all other variables, which is a pattern for all in the last place."""
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
            self._refuse((*at, field), f"{field}, a text that may be a pattern", repr(text))
        name = text if field == "name" else STANDARD_NAME + text
        if name in names:
            self._refuse((*at, field), "each name once", f"{text!r} again")
        names.add(name)
        self._values(at, entry, name, fields)

    def _values(self, at: Key, entry: Mapping[str, Any], name: str, fields: RecipeFields) -> None:
        if not entry.keys() & {"filters", "chunks", "require"}:
            self._refuse(at, f"filters, chunks or require for {name!r}", "none of them")
        if "filters" in entry:
            if not isinstance(entry["filters"], str):
                self._refuse(
                    (*at, "filters"), 'text such as "zfp(bound=0.1)|shuffle|deflate(4)"', repr(entry["filters"])
                )
            fields.filters[name] = self._checked((*at, "filters"), Pipeline.parse, entry["filters"])
        if "round" in entry:
            if not isinstance(entry["round"], str):
                self._refuse((*at, "round"), 'text such as "absolute(0.125)"', repr(entry["round"]))
            if name not in fields.filters:
                self._refuse((*at, "round"), 'filters beside it, such as "shuffle|deflate(4)"', "none")
            after_it = partial(rounded, filters=fields.filters[name])
            fields.filters[name] = self._checked((*at, "round"), after_it, entry["round"])
        if "chunks" in entry:
            extents = entry["chunks"].values() if isinstance(entry["chunks"], dict) else entry["chunks"]
            if not isinstance(entry["chunks"], (list, dict)) or any(type(extent) is not int for extent in extents):
                self._refuse((*at, "chunks"), "a list such as [4, 96, 144], or {time = 10}", repr(entry["chunks"]))
            fields.chunks[name] = self._checked((*at, "chunks"), as_chunks, entry["chunks"])
        if "require" in entry:
            if not isinstance(entry["require"], str):
                self._refuse((*at, "require"), 'text such as "abs=0.1,limits"', repr(entry["require"]))
            fields.require[name] = self._checked((*at, "require"), Requirement.parse, entry["require"])

    def _checked(self, at: Key, check: Any, value: object) -> Any:
        try:
            return check(value)
        except ParameterError as error:
            raise ParameterError(f"{self._where(at)}: {error}") from error

    def _known(self, at: Key, entry: Mapping[str, Any], known: Collection[str]) -> None:
        for key in entry:
            if key not in known:
                advice = "; it is for all variables: put it before the first [[variable]]" if key in _TOP else ""
                where = self._where((*at, key), at_key=True)
                raise ParameterError(
                    f"{where}: expected one of the fields {', '.join(known)}, found {key!r}"
                    f"{advice or did_you_mean(key, known)}"
                )

    def _refuse(self, at: Key, expected: str, found: str) -> NoReturn:
        raise ParameterError(f"{self._where(at)}: expected {expected}, found {found}")

    def _where(self, at: Key, *, at_key: bool = False) -> str:
        """Return file, line and column of a value or its key, or of the first in it if its tables are only implied."""
        known = self._places.values if not (at_key and at in self._places.keys) else self._places.keys
        inside = [place for key, place in known.items() if at and key[: len(at)] == at]
        line, column = known.get(at) or min(inside, default=(1, 1))
        return f"{self._label}: line {line}, column {column}"


def _kind(value: object) -> str:
    return "a table" if isinstance(value, dict) else repr(value)
