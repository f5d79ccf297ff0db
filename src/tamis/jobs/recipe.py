"""Which datasets of a file get which pipeline and chunks: ``TS:zfp(accuracy=0.1)``, ``/grp/*:shuffle|deflate(4)``."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from tamis.errors import FileError, ParameterError
from tamis.filters import Filter
from tamis.notation.text import parse_named
from tamis.pipeline import Pipeline

T = TypeVar("T")

_DIGITS = 18  # of an extent, which fits 64 bits then

Recipes = Mapping[str, Pipeline | Filter | str]


def split_filters(text: str) -> tuple[str, Pipeline]:
    """Split ``NAME:FILTERS``: see `tamis.notation.text.parse_named`.

    Raises
    ------
    ParameterError
        If there is no name, or no filters.
    """
    split_recipe(text)
    name, stages = parse_named(text)
    return name, Pipeline(stages)


def split_recipe(text: str, form: str = "NAME:FILTERS", example: str = "TS:zfp(accuracy=0.1)") -> tuple[str, str]:
    """Split a text of this form at the last colon: names may hold some, values do not.

    Raises
    ------
    ParameterError
        If there is no colon, or nothing before or after it.
    """
    name, _, value = text.rpartition(":")
    if not name or not value:
        raise ParameterError(f"expected {form} such as {example!r}, got {text!r}")
    return name, value


def parse_chunks(text: str) -> tuple[int, ...]:
    """Read a chunk shape written as ``4x96x144``.

    Raises
    ------
    ParameterError
        If it is not whole numbers above 0 with x between them.
    """
    parts = text.lower().split("x")
    if not all(part.isascii() and part.isdecimal() and len(part) <= _DIGITS and int(part) for part in parts):
        raise ParameterError(f"expected a chunk shape such as 4x96x144, got {text[:80]!r}")
    return tuple(map(int, parts))


def chunk_shape(value: object) -> tuple[int, ...]:
    """Take a sequence of whole numbers above 0 as a chunk shape.

    Raises
    ------
    ParameterError
        If it is anything else.
    """
    try:
        shape = tuple(operator.index(step) for step in value)  # type: ignore[attr-defined]
    except TypeError:
        shape = (0,)
    if not all(0 < step < 10**_DIGITS for step in shape):
        raise ParameterError(f"expected a chunk shape of whole numbers above 0 such as (4, 96, 144), got {value!r}")
    return shape


def is_pattern(name: str) -> bool:
    """Tell a pattern from the name of one dataset."""
    return any(sign in name for sign in "*?[")


def matching(name: str, paths: Sequence[str]) -> list[str]:
    """Paths that a name or pattern means; ``TS`` is ``/TS``, ``*`` stands for any characters.

    Raises
    ------
    FileError
        If it means none; names what is there.
    """
    wanted = name if name.startswith(("/", "*")) else f"/{name}"
    found = [wanted] if wanted in paths else []
    if not found and is_pattern(name):
        found = [path for path in paths if fnmatchcase(path, wanted)]
    if not found:
        known = ", ".join(paths[:12]) + (", …" if len(paths) > 12 else "")
        raise FileError(f"expected a dataset named {name!r}, found only {known or 'no datasets'}")
    return found


def assigned(wanted: Mapping[str, T], meant: Callable[[str], list[str]]) -> list[tuple[str, str, T]]:
    """List name, path and value for each dataset that a name or pattern means: names first, then patterns as given.

    Raises
    ------
    FileError
        If a name or pattern means none.
    ParameterError
        If two names mean one dataset and want different things of it, such as ``TS`` and ``/TS``.
    """
    found: list[tuple[str, str, T]] = []
    named: dict[str, tuple[str, T]] = {}
    for name, value in sorted(wanted.items(), key=lambda item: is_pattern(item[0])):
        for path in meant(name):
            other, before = (name, value) if is_pattern(name) else named.setdefault(path, (name, value))
            if before != value:
                raise ParameterError(
                    f"{path}: expected the same for all names of a dataset, got {_shown(before)} for {other!r} and"
                    f" {_shown(value)} for {name!r}: leave one of them out"
                )
            found.append((name, path, value))
    return found


def _shown(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
