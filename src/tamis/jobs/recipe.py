"""Which datasets of a file get which pipeline and chunks: ``TS:zfp(accuracy=0.1)``, ``/grp/*:shuffle|deflate(4)``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from tamis.errors import FileError, ParameterError
from tamis.filters import Filter
from tamis.pipeline import Pipeline

Recipes = Mapping[str, Pipeline | Filter | str]


def split_recipe(text: str) -> tuple[str, str]:
    """Split ``NAME:VALUE`` at the last colon of the name.

    Raises
    ------
    ParameterError
        If there is no colon, or nothing before or after it.
    """
    name, colon, value = text.partition("(")[0].rpartition(":")
    value = text[len(name) + 1 :] if colon else ""
    if not name or not value:
        raise ParameterError(f"expected NAME:FILTERS such as 'TS:zfp(accuracy=0.1)', got {text!r}")
    return name, value


def parse_chunks(text: str) -> tuple[int, ...]:
    """Read a chunk shape written as ``4x96x144``.

    Raises
    ------
    ParameterError
        If it is not whole numbers above 0 with x between them.
    """
    parts = text.lower().split("x")
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ParameterError(f"expected a chunk shape such as 4x96x144, got {text!r}")
    return tuple(int(part) for part in parts)


def as_pipeline(value: Pipeline | Filter | str) -> Pipeline:
    """Take a pipeline as it is, a filter as a pipeline of one, and text as tamis text."""
    if isinstance(value, Pipeline):
        return value
    return Pipeline((value,)) if isinstance(value, Filter) else Pipeline.parse(value)


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
    found = [path for path in paths if path == wanted or (is_pattern(name) and fnmatchcase(path, wanted))]
    if not found:
        known = ", ".join(paths[:12]) + (", …" if len(paths) > 12 else "")
        raise FileError(f"expected a dataset named {name!r}, found only {known or 'no datasets'}")
    return found
