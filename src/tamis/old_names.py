"""Old names that keep working, each with the name that took its place: the one table of them.

Options of commands, keywords and parameters of filters, values of options and recipes, and keys of results. Files keep
the old names, so that what is in them, and what is compared with it, stays the same.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, ParamSpec, TypeVar

from tamis.errors import ParameterError

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class OldOption(NamedTuple):
    """Names that an option of a command had before."""

    command: str
    old: tuple[str, ...]
    new: str


OPTIONS = (OldOption("plan", ("-w", "--want"), "--require"),)

KEYWORDS: Mapping[str, Mapping[str, str]] = {"plan": {"wants": "require"}, "sperr": {"gaps": "missing_values"}}
"""Keywords of functions, and parameters of filters, by the name of the function or filter."""

VALUES: Mapping[str, Mapping[str, str]] = {"missing": {"companion": "mask"}}
"""Values by option, keyword and field of recipes."""

KEYS: Mapping[str, Mapping[str, str]] = {
    "PlannedVariable": {"want": "requirement"},
    "Rung": {"want": "requirement"},
    "Repacked": {"companion": "missing_mask", "companion_nbytes": "missing_mask_nbytes"},
}
"""Attributes and JSON keys of results, by class."""

_RECORDED = (
    (re.compile(r'^missing = "mask"$', re.MULTILINE), 'missing = "companion"'),
    (re.compile(r"(\b[Ss]perr\([^()]*)\bmissing_values="), r"\1gaps="),
)


def current_value(name: str, value: T) -> T:
    """Return the value of an option or keyword, an old one as its new name."""
    known: Any = VALUES.get(name, {})
    return known.get(value, value) if isinstance(value, str) else value


def recorded_value(name: str, value: str) -> str:
    """Return the value of an option as files record it."""
    return {new: old for old, new in VALUES[name].items()}.get(value, value)


def recorded_text(text: str) -> str:
    """Return the text of filters or of a recipe as files record it."""
    for pattern, old in _RECORDED:
        text = pattern.sub(old, text)
    return text


def takes_old_keywords(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of a function that also takes the old names of its keywords."""
    names = KEYWORDS[name]

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for old in names.keys() & kwargs.keys():
                new = names[old]
                if new in kwargs:
                    raise ParameterError(f"expected {new} or its old name {old}, got both")
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate


def takes_old_parameters(kind: type[T]) -> type[T]:
    """Return the class of a filter, which also takes and has the old names of its parameters."""
    name: str = vars(kind)["name"]
    type.__setattr__(kind, "__init__", takes_old_keywords(name)(vars(kind)["__init__"]))
    return _with_attributes(kind, KEYWORDS[name])


def has_old_keys(kind: type[T]) -> type[T]:
    """Return the class of a result, which also has the old names of its fields as attributes."""
    return _with_attributes(kind, KEYS[kind.__name__])


def _with_attributes(kind: type[T], names: Mapping[str, str]) -> type[T]:
    for old, new in names.items():
        setattr(kind, old, property(_getter_of(new), doc=f"The old name of `{new}`."))
    return kind


def _getter_of(name: str) -> Callable[[Any], Any]:
    """Return a function that gets an attribute; unlike `operator.attrgetter`, it has annotations."""

    def get(self: Any) -> Any:
        return getattr(self, name)

    return get


def with_old_keys(kind: type, document: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON of a result, which also has the old names of its keys."""
    return document | {old: document[new] for old, new in KEYS.get(kind.__name__, {}).items()}
