"""Assign pipelines and chunk shapes to datasets: ``TS:zfp(accuracy=0.1)``, ``/grp/*:shuffle|deflate(4)``."""

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

STANDARD_NAME = "standard_name="
"""Beginning of a name that means datasets by this attribute; what follows may be a pattern."""

_DIGITS = 18  # limit of the digits of an extent, so that it fits 64 bits

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
    """Split a text at the last colon: names may contain colons, values do not.

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
    """Parse a chunk shape written as ``4x96x144``.

    Raises
    ------
    ParameterError
        If the text is not whole numbers above 0 with x between them.
    """
    parts = text.lower().split("x")
    if not all(part.isascii() and part.isdecimal() and len(part) <= _DIGITS and int(part) for part in parts):
        raise ParameterError(f"expected a chunk shape such as 4x96x144, got {text[:80]!r}")
    return tuple(map(int, parts))


def chunk_shape(value: object) -> tuple[int, ...]:
    """Check that a value is a sequence of whole numbers above 0, and return it as a chunk shape.

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
    """Return whether a name may be a pattern; a dataset with exactly this name takes precedence."""
    return re.search(r"[*?]|\[.+\]", name) is not None  # a bracket alone is one of the name


def absolute(name: str) -> str:
    """Return the whole path of a name: ``TS`` and ``/TS/`` are ``/TS``."""
    return "/" + "/".join(part for part in name.split("/") if part not in ("", "."))


class Match(NamedTuple):
    """Datasets that match a name or pattern.

    Parameters
    ----------
    labels
        For the own path of each dataset, the path that matched, which may be another link to it.
    exact
        Whether an exact name matched, not a pattern.
    """

    labels: dict[str, str]
    exact: bool


class Assigned(NamedTuple, Generic[T]):
    """A value for one dataset.

    Parameters
    ----------
    name
        Name or pattern as given.
    path, label
        Own path of the dataset, and the path that matched.
    value
        The value for the dataset.
    exact
        Whether `name` is an exact name, not a pattern.
    """

    name: str
    path: str
    label: str
    value: T
    exact: bool


def matching(
    name: str, paths: Mapping[str, str], standard_names: Callable[[], Mapping[str, str]] = dict[str, str]
) -> Match:
    """Return the datasets that match a name or pattern; ``TS`` means ``/TS``, ``*`` matches any characters.

    Parameters
    ----------
    name
        The name or pattern, or ``standard_name=`` and one. An exact name takes precedence: ``st*r`` matches only
        ``/st*r`` if that exists.
    paths
        For each path to a dataset, the dataset's own path.
    standard_names
        Returns the standard names of datasets by their own paths.

    Raises
    ------
    FileError
        If none matches; names the datasets. A pattern matches nothing where there are no datasets at all.
    """
    if (path := absolute(name)) in paths:
        return Match({paths[path]: path}, exact=True)
    labels: dict[str, str] = {}
    if name.startswith(STANDARD_NAME):
        return _by_standard_name(name, standard_names())
    if has_pattern_signs(name):
        fits = re.compile(translate(name if name.startswith(("/", "*")) else f"/{name}")).match
        for path, own in paths.items():
            if fits(path) and (path == own or own not in labels):
                labels[own] = path
    if not labels and (paths or not has_pattern_signs(name)):
        own_paths = list(dict.fromkeys(paths.values()))
        listed = ", ".join(own_paths[:12]) + (", …" if len(own_paths) > 12 else "")
        nearest = did_you_mean(name, (word for path in paths for word in (path.rpartition("/")[2], path)))
        found = f"only {listed}{nearest}" if own_paths else "no datasets"
        text = f"expected a dataset named {name!r}, found {found}"
        raise FileError(text).at(dataset=name)
    return Match(labels, exact=False)


def _by_standard_name(name: str, standard_names: Mapping[str, str]) -> Match:
    fits = re.compile(translate(name.removeprefix(STANDARD_NAME))).match
    labels = {path: path for path, text in standard_names.items() if text and fits(text)}
    if not labels:
        known = sorted({text for text in standard_names.values() if text})
        nearest = did_you_mean(name.removeprefix(STANDARD_NAME), known)
        text = f"expected a dataset with {name}, found only {', '.join(known[:12]) or 'datasets without one'}{nearest}"
        raise FileError(text).at(dataset=name)
    return Match(labels, exact=False)


def assigned(values: Mapping[str, T], match: Callable[[str], Match]) -> list[Assigned[T]]:
    """Return the value of each matched dataset: exact names first, then patterns in the given order.

    Parameters
    ----------
    values
        Values by name or pattern.
    match
        Returns the datasets that match a name or pattern.

    Raises
    ------
    FileError
        If a name or pattern matches none.
    ParameterError
        If two names of one dataset, such as ``TS`` and ``/TS``, have different values.
    """
    assignments: list[Assigned[T]] = []
    named: dict[str, tuple[str, T]] = {}
    entries = [(name, value, match(name)) for name, value in values.items()]
    for name, value, datasets in sorted(entries, key=lambda entry: not entry[2].exact):
        for path, label in datasets.labels.items():
            other, before = named.setdefault(path, (name, value)) if datasets.exact else (name, value)
            if before != value:
                raise ParameterError(
                    f"{path}: expected the same for all names of a dataset, got {_value_text(before)} for {other!r} and"
                    f" {_value_text(value)} for {name!r}: leave one of them out"
                )
            assignments.append(Assigned(name, path, label, value, datasets.exact))
    return assignments


def least_nbytes(value: object) -> int | None:
    """Check that a least size is a whole number of bytes, 0 or more, or None; return it.

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


def _value_text(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
