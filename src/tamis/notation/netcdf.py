"""netCDF filter text, as in CDL's ``_Filter`` and after the names of nccopy's ``-F``: ``32013,3,0,0.1d|1,4``.

::

    chain     : filter { '|' filter }
    filter    : id { ',' parameter }
    parameter : a whole number, or any number with a tag      (netcdf_number says which)

What is taken, by `compat`:

========== ==================================================================================================
None       texts that have one meaning: netcdf-c's, its documentation's and the reader's; blanks may stand around
           each number
"netcdf-c" what netcdf-c takes, giving the words that it gives (netcdf_scanf says how)
"doc"      what its documentation describes, giving the words that it describes
========== ==================================================================================================

Without `compat` these are refused, and the error says what to write:

- ``1.5`` and ``1e3`` without a tag, ``0xff``, ``0x10``, ``5LU``, ``5LL``, numbers that do not fit their tag, and
  ``4294967296`` without one: netcdf-c takes all of them for other numbers, or takes a tag that it does not document;
- ``-17b``, ``-25s``: 239 and 65511 for netcdf-c, -17 and -25 for its documentation;
- ``nan``, ``inf``, and floats that overflow or vanish: no filter means them;
- letters after the id, an id of 0 or above 65535, an empty filter or parameter, also at the end;
- ``[0]`` before the chain, a format that no writer writes and that netcdf-c dies of. ``compat="netcdf-c"`` skips it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import isfinite
from typing import Literal, NamedTuple

from tamis.errors import ParameterError
from tamis.filters.base import Request
from tamis.notation import netcdf_number, netcdf_scanf
from tamis.notation.fix8 import words_double
from tamis.notation.places import malformed

Compat = Literal["netcdf-c", "doc"]


class _Reading(NamedTuple):
    """How ids and parameters are read from a part of a text, and whether a chain may be empty or end with '|'."""

    id: Callable[[str, int, int], int]
    parameter: Callable[[str, int, int], tuple[int, ...]]
    loose: bool


_READINGS: dict[str | None, _Reading] = {
    None: _Reading(netcdf_number.read_id, netcdf_number.read_strict, loose=False),
    "doc": _Reading(netcdf_number.read_id, netcdf_number.read_documented, loose=False),
    "netcdf-c": _Reading(netcdf_scanf.read_id, netcdf_scanf.read_parameter, loose=True),
}


def parse_chain(text: str, *, compat: Compat | None = None, start: int = 0) -> list[Request]:
    """Read filters with ``|`` between them.

    Parameters
    ----------
    text
        Such as ``32013,3,0,0.1d|1,4``.
    compat
        How numbers are read: see the module.
    start
        Index in `text` where the chain begins.

    Raises
    ------
    ParameterError
        If the text is malformed or has several meanings, with the place and what to write.
    """
    reading = _reading(text, compat)
    end = len(text)
    if reading.loose:
        start = netcdf_scanf.after_format(text, start)
        if start == end:
            return []
        end -= text.endswith("|")
    elif text.startswith("[", start):
        raise malformed(text, start, "a filter id (netcdf-c does not survive a format in brackets)")
    return [_filter(text, *bounds, reading) for bounds in _parts(text, start, end, "|")]


def parse_filterspec(text: str, *, compat: Compat | None = None) -> Request:
    """Read one filter, as ``ncaux_h5filterspec_parse`` does: it knows no ``|``.

    Parameters
    ----------
    text
        Such as ``32013,3,0,0.1d``.
    compat
        How numbers are read: see the module.

    Raises
    ------
    ParameterError
        If the text is malformed or has several meanings, with the place and what to write.
    """
    return _filter(text, 0, len(text), _reading(text, compat))


def parse_parameter(text: str, *, compat: Compat | None = None) -> tuple[int, ...]:
    """Read one parameter, as ``ncaux_h5filterspec_parse_parameter`` does.

    Parameters
    ----------
    text
        Such as ``0.1d``.
    compat
        How numbers are read: see the module.

    Returns
    -------
    tuple
        One word of 32 bits, or two with the low one first.

    Raises
    ------
    ParameterError
        If the text is malformed or has several meanings, with the place and what to write.
    """
    return _reading(text, compat).parameter(text, 0, len(text))


def _reading(text: str, compat: str | None) -> _Reading:
    if compat not in _READINGS:
        raise ParameterError(f"expected compat of 'netcdf-c', 'doc' or None, got {compat!r}")
    if "\0" in text:
        raise malformed(text, text.index("\0"), "text without NUL")
    return _READINGS[compat]


def _filter(text: str, start: int, end: int, reading: _Reading) -> Request:
    (first, *rest) = _parts(text, start, end, ",")
    number = reading.id(text, *first)
    return Request(number, tuple(word for bounds in rest for word in reading.parameter(text, *bounds)))


def _parts(text: str, start: int, end: int, separator: str) -> Iterator[tuple[int, int]]:
    """Yield the bounds of what stands between separators in a part of a text."""
    while (found := text.find(separator, start, end)) >= 0:
        yield start, found
        start = found + 1
    yield start, end


def chain_text(requests: Sequence[Request], *, doubles: Mapping[int, Collection[int]] | None = None) -> str:
    """Write filters so that netcdf-c and every way of reading here give them back.

    Parameters
    ----------
    requests
        At least one.
    doubles
        For the place of a filter in the chain, the indices of words that begin a double with its low word: such pairs
        are written as ``0.001d``, the shortest text of that double.

    Raises
    ------
    ParameterError
        If there is no filter, an id is not 1 to 65535, a word does not fit 32 bits, or a pair is not there.
    """
    if not requests:
        raise ParameterError("expected at least one filter, got none: netCDF text has no word for an empty chain")
    marked = doubles or {}
    return "|".join(_filter_text(each, marked.get(place, ())) for place, each in enumerate(requests))


def _filter_text(request: Request, doubles: Collection[int]) -> str:
    if not 1 <= request.id <= netcdf_number.MAX_ID:
        raise ParameterError(f"expected a filter id of 1 to {netcdf_number.MAX_ID}, got {request.id}")
    values = request.values
    if wrong := [value for value in values if not 0 <= value < 1 << 32]:
        raise ParameterError(f"expected words of 0 to {(1 << 32) - 1}, got {wrong[0]} for filter {request.id}")
    written = [str(request.id)]
    taken = 0
    for index in sorted(doubles):
        if not taken <= index < len(values) - 1:
            raise ParameterError(f"expected two words for each double, got {values} and doubles at {sorted(doubles)}")
        written += map(str, values[taken:index])
        written += _double_text(values[index], values[index + 1])
        taken = index + 2
    return ",".join([*written, *map(str, values[taken:])])


def _double_text(low: int, high: int) -> list[str]:
    value = words_double((low, high))
    return [f"{value!r}d"] if isfinite(value) else [str(low), str(high)]
