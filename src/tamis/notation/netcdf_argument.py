r"""Arguments of nccopy's ``-F``: which variables get which filters.

::

    argument : 'none' | names ',' ( chain | 'none' )     the second 'none' in either case
    names    : '*' | name { '&' name }
    name     : a path; '\' before special characters, and wherever nccopy writes one

nccopy compares a name with the variable's group, ``/`` and the variable's name, in which it escapes special characters
and a first digit. It silently ignores names that match nothing, for example because an escape is absent. Here escapes
are removed, so that `NccopyArgument` has the names of the file, and `argument_text` adds all of them again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tamis.errors import ParameterError
from tamis.notation.netcdf import Compat, chain_text, parse_chain
from tamis.notation.netcdf_number import BLANKS
from tamis.notation.text import malformed

if TYPE_CHECKING:
    from tamis.filters.base import Request

ALL = "*"
"""Means all variables; paths of variables begin with a slash."""

_NONE = "none"
_NAME = re.compile(r"(?:\\.|[^\\&,])*", re.DOTALL)
_ESCAPED = re.compile(r"^[0-9]|[] !\"#$%&'()*,:;<=>?[\\^`{|}~]")


@dataclass(frozen=True, slots=True)
class NccopyArgument:
    """An argument of nccopy's ``-F``, parsed."""

    variables: tuple[str, ...]  # Paths from the root, beginning with a slash; or `ALL`
    chain: tuple[Request, ...] | None  # Filters in their order; None for ``none``, which removes all filters


def parse_argument(text: str, *, compat: Compat | None = None) -> NccopyArgument:
    """Read an argument of nccopy's ``-F``."""
    loose = compat == "netcdf-c"
    if (text if loose else text.strip(BLANKS)) == _NONE:
        return NccopyArgument((ALL,), None)
    if loose and not text:
        return NccopyArgument((), ())
    variables, end = _names(text, loose=loose)
    if end == len(text):
        if not loose:
            raise malformed(text, end, "',' and filters, or none alone")
        return NccopyArgument(variables, ())
    rest = text[end + 1 :]
    if (rest if loose else rest.strip(BLANKS)).lower() == _NONE:
        return NccopyArgument(variables, None)
    return NccopyArgument(variables, tuple(parse_chain(text, compat=compat, start=end + 1)))


def _names(text: str, *, loose: bool) -> tuple[tuple[str, ...], int]:
    """Return the paths before the comma or the end, and its position."""
    variables: list[str] = []
    start = 0
    while True:
        match = _NAME.match(text, start)
        end = match.end() if match else start
        if text[end : end + 1] == "\\":
            raise malformed(text, end, "a character after '\\'")
        variables += _paths(text, start, end, loose=loose)
        if text[end : end + 1] != "&":
            break
        start = end + 1
    if loose and not end:
        raise malformed(text, 0, "a variable's name")
    if ALL in variables and len(variables) > 1 and not loose:
        raise malformed(text, 0, "'*' alone or names without it")
    return tuple(variables), end


def _paths(text: str, start: int, end: int, *, loose: bool) -> list[str]:
    """Return the path in a part of a text; an empty list if there is none and `loose` allows that."""
    name = text[start:end]
    if not loose:
        name = name.lstrip(BLANKS)
        bare = name.rstrip(BLANKS)
        escapes = len(bare) - len(bare.rstrip("\\"))
        name = name[: len(bare) + escapes % 2]
    if name == ALL:
        return [ALL]
    if name.strip("/") or (name and loose):
        path = re.sub(r"\\(.)", r"\1", name, flags=re.DOTALL)
        return [path if path.startswith("/") else f"/{path}"]
    if loose:
        return []
    raise malformed(text, start, "a variable's name")


def argument_text(
    variables: Iterable[str] | str,
    requests: Sequence[Request] | None,
    *,
    doubles: Mapping[int, Collection[int]] | None = None,
) -> str:
    """Write an argument of nccopy's ``-F``, not yet quoted for a shell."""
    paths = [variables] if isinstance(variables, str) else variables
    names = "&".join(ALL if path == ALL else _escaped(path) for path in paths)
    if not names:
        raise ParameterError("expected at least one variable, got none")
    return f"{names},{chain_text(requests, doubles=doubles) if requests else _NONE}"


def _escaped(path: str) -> str:
    group, _, name = path.removeprefix("/").rpartition("/")
    if not name or "\0" in path:
        raise ParameterError(f"expected the path of a variable, got {path!r}")
    if re.search(r"[\\,&]", group):
        raise ParameterError(
            f"expected groups without '\\', ',' and '&', got {path!r}: nccopy has escapes for variables' names only"
        )
    return (f"/{group}/" if group else "") + _ESCAPED.sub(r"\\\g<0>", name)
