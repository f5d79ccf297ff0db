r"""netCDF filter text, as in CDL's ``_Filter`` and after the names of nccopy's ``-F``: ``32013,3,0,0.1d|1,4``.

::

    chain     : filter { '|' filter }
    filter    : id { ',' parameter }
    parameter : a whole number, or any number with a tag      (see netcdf_number)

Accepted texts, by `compat`:

========== ==================================================================================================
None       texts with one meaning for netcdf-c, its documentation and a human reader; blanks around numbers are allowed
"netcdf-c" texts that netcdf-c accepts, with its results (see netcdf_scanf)
"doc"      texts that netcdf-c's documentation describes, with the results that it describes
========== ==================================================================================================

Without `compat` these texts are refused, and the error says what to write instead:

- ``1.5`` and ``1e3`` without a tag, ``0xff``, ``0x10``, ``5LU``, ``5LL``, numbers that do not fit their tag, and
  ``4294967296`` without one: netcdf-c reads all of them as other numbers, or accepts an undocumented tag;
- ``-17b``, ``-25s``: 239 and 65511 for netcdf-c, -17 and -25 for its documentation;
- ``nan``, ``inf``, and floats that overflow or underflow to zero: no filter uses them;
- letters after the id, an id of 0 or above 65535, an empty filter or parameter, also at the end;
- ``[0]`` before the chain, a format number that no writer writes and that crashes netcdf-c. ``compat="netcdf-c"``
  skips it.

An argument of nccopy's ``-F`` says which variables get which filters::

    argument : 'none' | names ',' ( chain | 'none' )     the second 'none' in either case
    names    : '*' | name { '&' name }
    name     : a path; '\' before special characters, and wherever nccopy writes one

nccopy compares a name with the variable's group, ``/`` and the variable's name, in which it escapes special characters
and a first digit. It silently ignores names that match nothing, for example because an escape is absent. Here escapes
are removed, so that `NccopyArgument` has the names of the file, and `argument_text` adds all of them again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from typing import Literal, NamedTuple

from tamis.errors import ParameterError
from tamis.filters import Request
from tamis.notation import netcdf_number, netcdf_scanf
from tamis.notation.netcdf_number import BLANKS
from tamis.notation.netcdf_scanf import words_double
from tamis.notation.text import Chain, malformed

Compat = Literal["netcdf-c", "doc"]
"""How ambiguous numbers in texts of netCDF are read: as netcdf-c reads them, or as its documentation says."""


class _Rules(NamedTuple):
    """How a text is read."""

    read_id: Callable[[str, int, int], int]
    read_parameter: Callable[[str, int, int], tuple[int, ...]]
    loose: bool  # Whether a chain may be empty or end with '|'


_RULES: dict[str | None, _Rules] = {
    None: _Rules(netcdf_number.read_id, partial(netcdf_number.read, documented=False), loose=False),
    "doc": _Rules(netcdf_number.read_id, partial(netcdf_number.read, documented=True), loose=False),
    "netcdf-c": _Rules(netcdf_scanf.read_id, netcdf_scanf.read_parameter, loose=True),
}
"""Rules by `compat`."""


def parse_chain(text: str, *, compat: Compat | None = None, start: int = 0) -> list[Request]:
    """Read filters with ``|`` between them."""
    rules = _rules_for(text, compat)
    end = len(text)
    if rules.loose:
        start = netcdf_scanf.after_format(text, start)
        if start == end:
            return []
        if text.endswith("|"):
            end -= 1
    elif text.startswith("[", start):
        raise malformed(text, start, "a filter id (netcdf-c crashes at a format number in brackets)")
    return [_filter(text, first, last, rules) for first, last in _parts(text, start, end, "|")]


def parse_filterspec(text: str, *, compat: Compat | None = None) -> Request:
    """Read one filter, as ``ncaux_h5filterspec_parse`` does, without ``|``."""
    return _filter(text, 0, len(text), _rules_for(text, compat))


def parse_parameter(text: str, *, compat: Compat | None = None) -> tuple[int, ...]:
    """Read one parameter, as ``ncaux_h5filterspec_parse_parameter`` does."""
    return _rules_for(text, compat).read_parameter(text, 0, len(text))


def _rules_for(text: str, compat: str | None) -> _Rules:
    if compat not in _RULES:
        raise ParameterError(f"expected compat of 'netcdf-c', 'doc' or None, got {compat!r}")
    if "\0" in text:
        raise malformed(text, text.index("\0"), "text without NUL")
    return _RULES[compat]


def _filter(text: str, start: int, end: int, rules: _Rules) -> Request:
    """Read a filter from a part of a text."""
    first, *rest = _parts(text, start, end, ",")
    number = rules.read_id(text, *first)
    cd_values: list[int] = []
    for bounds in rest:
        cd_values += rules.read_parameter(text, *bounds)
    return Request(number, tuple(cd_values))


def _parts(text: str, start: int, end: int, separator: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of the pieces between separators in a part of a text."""
    while (position := text.find(separator, start, end)) >= 0:
        yield start, position
        start = position + 1
    yield start, end


def chain_text(requests: Sequence[Request], *, doubles: Mapping[int, Collection[int]] | None = None) -> str:
    """Write filters so that netcdf-c, and all values of `compat` here, read the same filters."""
    if not requests:
        raise ParameterError("expected at least one filter, got none: netCDF text cannot express an empty chain")
    pairs = doubles or {}
    return "|".join(_filter_text(request, pairs.get(index, ())) for index, request in enumerate(requests))


def _filter_text(request: Request, doubles: Collection[int]) -> str:
    """Write a filter, whose parameters are doubles from some positions on."""
    if not 1 <= request.id <= netcdf_number.MAX_ID:
        raise ParameterError(f"expected a filter id of 1 to {netcdf_number.MAX_ID}, got {request.id}")
    cd_values = request.values
    if wrong := [value for value in cd_values if not 0 <= value < 1 << 32]:
        raise ParameterError(f"expected words of 0 to {(1 << 32) - 1}, got {wrong[0]} for filter {request.id}")
    parts = [str(request.id)]
    start = 0
    for index in sorted(doubles):
        if not start <= index < len(cd_values) - 1:
            raise ParameterError(
                f"expected two words for each double, got {cd_values} and doubles at {sorted(doubles)}"
            )
        parts += map(str, cd_values[start:index])
        parts += _double_text(cd_values[index], cd_values[index + 1])
        start = index + 2
    return ",".join([*parts, *map(str, cd_values[start:])])


def _double_text(low: int, high: int) -> list[str]:
    """Write a double of two words; as words if it is infinite or no number."""
    value = words_double((low, high))
    return [f"{value!r}d"] if isfinite(value) else [str(low), str(high)]


_FIRST = {3: 0, 2: 1}
_ZFP = 32013
_PLAIN = frozenset({1, 3, 307, 32004, 32015})
"""Filters without set_local, as in `native/hdf5/order.cpp`."""


def in_netcdf_order(requests: Iterable[Request]) -> list[Request]:
    """Return filters in the order in which netCDF runs them, each once."""
    by_id = {request.id: request for request in requests}
    return sorted(by_id.values(), key=lambda request: _FIRST.get(request.id, 2))


def in_plugin_order(requests: Iterable[Request]) -> list[Request]:
    """Return filters in the order in which they run if tamis' plugin is filter 32013.

    The plugin moves shuffle and fletcher32, which netCDF puts first, back after zfp, if the parameters of zfp are
    stored ones and only filters without preparation follow.
    """
    listed = list(requests)
    ids = [request.id for request in listed]
    if _ZFP not in ids:
        return listed
    place = ids.index(_ZFP)
    if not place or not set(ids[:place]) <= _FIRST.keys() or not set(ids[place + 1 :]) <= _PLAIN:
        return listed
    before = {request.id: request for request in listed[:place]}
    ordered = [listed[place]]
    if 2 in before:
        ordered.append(before[2])
    ordered += listed[place + 1 :]
    if 3 in before:
        ordered.append(before[3])
    return ordered


def netcdf_requests(chain: Chain) -> list[Request]:
    """Return the filters to define so that netCDF runs a pipeline; netCDF sets the flags itself."""
    requests = [stage.request for stage in chain]
    ordered = in_netcdf_order(requests)
    if ordered != requests:
        names = {stage.filter.id: str(stage.filter) for stage in chain}
        raise ParameterError(
            f"expected fletcher32 first, then shuffle, then others once each, which is how netCDF runs filters, got"
            f" {'|'.join(str(stage.filter) for stage in chain)}: netCDF would make it"
            f" {'|'.join(names[request.id] for request in ordered)}"
        )
    return requests


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
    """Return a path with the escapes of nccopy in the variable's name."""
    group, _, name = path.removeprefix("/").rpartition("/")
    if not name or "\0" in path:
        raise ParameterError(f"expected the path of a variable, got {path!r}")
    if re.search(r"[\\,&]", group):
        raise ParameterError(
            f"expected groups without '\\', ',' and '&', got {path!r}: nccopy has escapes for variables' names only"
        )
    return (f"/{group}/" if group else "") + _ESCAPED.sub(r"\\\g<0>", name)
