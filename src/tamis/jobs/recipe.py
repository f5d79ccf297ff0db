"""Which datasets of a file get which pipeline and chunks: ``TS:zfp(accuracy=0.1)``, ``/grp/*:shuffle|deflate(4)``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from tamis.errors import FileError, ParameterError
from tamis.filters import Filter
from tamis.pipeline import Pipeline

Recipes = Mapping[str, Pipeline | Filter | str]


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
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ParameterError(f"expected a chunk shape such as 4x96x144, got {text!r}")
    return tuple(int(part) for part in parts)


def chunk_shape(value: object) -> tuple[int, ...]:
    """Take a sequence of whole numbers above 0 as a chunk shape.

    Raises
    ------
    ParameterError
        If it is anything else.
    """
    if isinstance(value, Sequence) and all(type(step) is int and step > 0 for step in value):
        return tuple(value)
    raise ParameterError(f"expected a chunk shape of whole numbers above 0 such as (4, 96, 144), got {value!r}")


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
