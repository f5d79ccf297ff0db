r"""Arguments of nccopy's ``-F``: which variables get which filters.

::

    argument : 'none' | names ',' ( chain | 'none' )     the second 'none' in either case
    names    : '*' | name { '&' name }
    name     : a path; '\' before a character that means something else, and where nccopy has one

nccopy compares a name with the variable's group, ``/`` and the variable's name, in which it escapes special characters
and a first digit. It ignores without a word names that match nothing: those that lack an escape are such. Here escapes
are removed, so that `NccopyArgument` has the names as they stand in the file, and `argument_text` puts them all back.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tamis.errors import ParameterError
from tamis.filters.base import Request
from tamis.notation.netcdf import Compat, chain_text, parse_chain
from tamis.notation.netcdf_number import BLANKS
from tamis.notation.places import malformed

ALL = "*"
"""In place of the variables' paths, which begin with a slash: all variables."""

_NONE = "none"
_NAME = re.compile(r"(?:\\.|[^\\&,])*", re.DOTALL)
_ESCAPED = re.compile(r"^[0-9]|[] !\"#$%&'()*,:;<=>?[\\^`{|}~]")


@dataclass(frozen=True, slots=True)
class NccopyArgument:
    """The content of an argument of nccopy's ``-F``.

    Parameters
    ----------
    variables
        Paths from the root, beginning with a slash; or `ALL`.
    chain
        Filters in their order; None where it says ``none``, so that the variables lose theirs.
    """

    variables: tuple[str, ...]
    chain: tuple[Request, ...] | None


def parse_argument(text: str, *, compat: Compat | None = None) -> NccopyArgument:
    """Read an argument of nccopy's ``-F``.

    Parameters
    ----------
    text
        Such as ``TS&/grp/PS,32013,3,0,0.1d|1,4``.
    compat
        How numbers are read: see `tamis.notation.netcdf`. With ``netcdf-c`` also arguments that do nothing are taken:
        an empty one, names without filters, empty names.

    Raises
    ------
    ParameterError
        If the text is malformed or has several meanings, with the place and what to write.
    """
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
    """Read names up to the comma or the end; return their paths and that place."""
    variables: list[str] = []
    at = 0
    while True:
        found = _NAME.match(text, at)
        end = found.end() if found else at
        if text[end : end + 1] == "\\":
            raise malformed(text, end, "a character after '\\'")
        variables += _paths(text, at, end, loose=loose)
        if text[end : end + 1] != "&":
            break
        at = end + 1
    if loose and not end:
        raise malformed(text, 0, "a variable's name")
    if ALL in variables and len(variables) > 1 and not loose:
        raise malformed(text, 0, "'*' alone or names without it")
    return tuple(variables), end


def _paths(text: str, start: int, end: int, *, loose: bool) -> list[str]:
    """Read the one name that stands in a part of a text; or none, where that is allowed."""
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
    """Write an argument of nccopy's ``-F``, to be quoted for the shell.

    Parameters
    ----------
    variables
        One path from the root or several; or `ALL`.
    requests
        Filters in their order; where there are none, the variables lose theirs.
    doubles
        Pairs of words to be written as a double: see `tamis.notation.netcdf.chain_text`.

    Raises
    ------
    ParameterError
        If nccopy has no way to name a variable, or if `chain_text` refuses the filters.
    """
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
