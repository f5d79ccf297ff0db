"""Which datasets of a file get which pipeline and chunks: ``TS:zfp(accuracy=0.1)``, ``/grp/*:shuffle|deflate(4)``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from fnmatch import translate
from typing import Generic, NamedTuple, TypeVar

from tamis.errors import FileError, ParameterError
from tamis.filters import Filter
from tamis.formatting import did_you_mean
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
    """Return a sequence of whole numbers above 0 as a chunk shape.

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


def has_pattern_signs(name: str) -> bool:
    """Return whether a name may be a pattern; what a file has by exactly this name goes before."""
    return any(sign in name for sign in "*?[")


def absolute(name: str) -> str:
    """Return the path that a name is short for: ``TS`` and ``/TS/`` are ``/TS``."""
    return "/" + "/".join(part for part in name.split("/") if part not in ("", "."))


class Match(NamedTuple):
    """Datasets that a name or pattern means.

    Parameters
    ----------
    labels
        By the own path of each dataset, the path that was matched: another link may lead to the dataset.
    exact
        Whether it is the name of one dataset rather than a pattern.
    """

    labels: dict[str, str]
    exact: bool


class Assigned(NamedTuple, Generic[T]):
    """A value for one dataset.

    Parameters
    ----------
    name
        Name or pattern as it was given.
    path, label
        Own path of the dataset, and the path that was matched.
    value
        What was given for it.
    exact
        Whether `name` is no pattern.
    """

    name: str
    path: str
    label: str
    value: T
    exact: bool


def matching(name: str, paths: Mapping[str, str]) -> Match:
    """Return the datasets that a name or pattern means; ``TS`` is ``/TS``, ``*`` stands for any characters.

    Parameters
    ----------
    name
        An exact name goes before a pattern: a dataset named ``st*r`` is meant by ``st*r``.
    paths
        Each path that leads to a dataset, with the dataset's own path.

    Raises
    ------
    FileError
        If it means none; names what is there.
    """
    if (path := absolute(name)) in paths:
        return Match({paths[path]: path}, exact=True)
    labels: dict[str, str] = {}
    if has_pattern_signs(name):
        fits = re.compile(translate(name if name.startswith(("/", "*")) else f"/{name}")).match
        for each, own in paths.items():
            if fits(each) and (each == own or own not in labels):
                labels[own] = each
    if not labels:
        own_paths = list(dict.fromkeys(paths.values()))
        known = ", ".join(own_paths[:12]) + (", …" if len(own_paths) > 12 else "")
        nearest = did_you_mean(name, (word for path in paths for word in (path.rpartition("/")[2], path)))
        text = f"expected a dataset named {name!r}, found only {known or 'no datasets'}{nearest}"
        raise FileError(text).at(dataset=name)
    return Match(labels, exact=False)


def assigned(wanted: Mapping[str, T], meant: Callable[[str], Match]) -> list[Assigned[T]]:
    """List the value for each dataset that a name or pattern means: names first, then patterns as given.

    Raises
    ------
    FileError
        If a name or pattern means none.
    ParameterError
        If two names mean one dataset and want different things of it, such as ``TS`` and ``/TS``.
    """
    found: list[Assigned[T]] = []
    named: dict[str, tuple[str, T]] = {}
    matches = [(name, value, meant(name)) for name, value in wanted.items()]
    for name, value, match in sorted(matches, key=lambda each: not each[2].exact):
        for path, label in match.labels.items():
            other, before = named.setdefault(path, (name, value)) if match.exact else (name, value)
            if before != value:
                raise ParameterError(
                    f"{path}: expected the same for all names of a dataset, got {_shown(before)} for {other!r} and"
                    f" {_shown(value)} for {name!r}: leave one of them out"
                )
            found.append(Assigned(name, path, label, value, match.exact))
    return found


def least_nbytes(value: object) -> int | None:
    """Take a whole number of 0 or more as the least size in bytes; None where none was given.

    Raises
    ------
    ParameterError
        If it is anything else.
    """
    try:
        nbytes = None if value is None else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        nbytes = -1
    if isinstance(value, bool) or (nbytes is not None and nbytes < 0):
        raise ParameterError(f"expected min_size in bytes, 0 or more, got {value!r}")
    return nbytes


def _shown(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
