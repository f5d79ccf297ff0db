"""Detect the notation of a text by rules, of which at most one applies, and read the text.

=========== ==================================================================================================
h5dump      begins with an entry of h5dump's FILTERS, with ``Filter-0:``, or with a number and ``{``
cdl         has an attribute such as ``TS:_Filter =``, with one of the keys of `tamis.notation.cdl`
h5repack    begins with ``h5repack``, ``-f``, ``-l``, or with GZIP=, UD= and so on, also after names and a colon
zarr        begins with ``[`` and ``{``, or is an object with id, name, filters, compressor or codecs first
h5py        begins with a keyword of create_dataset and ``=``, with ``dict(`` or another ``{``, or calls set_filter
netcdf      begins with a number or ``[`` and a number; with ``nccopy``, ``-F``, ``-c`` or ``-M``; or with names and a
            comma before a number or ``none``
tamis       begins with a letter otherwise
=========== ==================================================================================================

``none`` is tamis text. If no rule applies, a text is read as tamis text, and the error lists what the other notations
expected.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any

import numpy as np

from tamis.errors import ParameterError
from tamis.filters import Request, Stage
from tamis.notation import cdl, h5dump, zarr
from tamis.notation.h5py_keywords import KEYWORDS, parse_keywords
from tamis.notation.h5repack import parse_command
from tamis.notation.netcdf import ALL, Compat, in_netcdf_order, parse_argument, parse_chain
from tamis.notation.text import Reading, malformed, names_filter, parse_filters, parse_named, refused

_RULES = {
    "h5dump": h5dump.RULE,
    "cdl": re.compile(rf".*?:\s*({'|'.join(cdl.KEYS)})\s*=", re.DOTALL),
    "h5repack": re.compile(
        r"\s*(h5repack\s|-[fl]|--filter|--layout|([^:]*:)?((GZIP|SZIP|SOFF|UD)=|(SHUF|FLET|NBIT|NONE)\s*$))"
    ),
    "zarr": re.compile(r'\s*(\[\s*[{\]]|\{\s*"(id|name|filters|compressor|codecs|configuration)")'),
    "h5py": re.compile(rf"\s*(({'|'.join(KEYWORDS)})\s*=|dict\s*\(|\{{)|.*\.set_(filter|chunk)\b", re.DOTALL),
    "netcdf": re.compile(r"\s*(nccopy\s|-[FcM]|\[?\s*[0-9+]|(\\.|[^\\,(=:|])+,\s*([0-9+]|none\s*$))", re.IGNORECASE),
    "tamis": re.compile(r"\s*[A-Za-z_]"),
}

_RECIPE = re.compile(
    r"""\s*(?:-f|--filter)[\s=]*(?P<quote>['"]?)(?P<filters>([^'"]*:)?[A-Za-z]\w*\([^'"()]*\)[!?]?(\|[^'"]*)?)(?P=quote)\s*"""
)
"""The option ``-f`` of `tamis repack`, as typed in a shell: unlike h5repack's, with parameters in parentheses."""

NOTATIONS = tuple(sorted(_RULES))
"""Names of all notations."""


def notation_of(text: str) -> str | None:
    """Return the notation of a text; None if no rule applies."""
    if _RECIPE.fullmatch(text):
        return "tamis"
    return next((name for name, rule in _RULES.items() if rule.match(text)), None)


def read(
    text: str, *, notation: str | None = None, dtype: np.dtype[Any] | None = None, compat: Compat | None = None
) -> Reading:
    """Read filters in any notation."""
    if notation is not None and notation not in _RULES:
        raise ParameterError(f"expected a notation of {', '.join(NOTATIONS)}, got {notation!r}")
    name = notation or notation_of(text)
    try:
        return _READERS[name or "tamis"](text, dtype, compat)
    except ParameterError as error:
        if notation is None and name in (None, "tamis"):
            if names_filter(text) or "did you mean" in str(error):
                raise
            raise ParameterError(f"{error}\n{_other_errors(text, dtype, compat)}") from error
        raise ParameterError(f"read as {name} text: {error}") from error


def _other_errors(text: str, dtype: np.dtype[Any] | None, compat: Compat | None) -> str:
    """Return what the other notations expected."""
    lines = ["Read as tamis text. Other notations:"]
    for name in NOTATIONS:
        if name == "tamis":
            continue
        try:
            _READERS[name](text, dtype, compat)
        except ParameterError as error:
            lines.append(f"  {name}: {str(error).splitlines()[0].rstrip(':')}")
    return "\n".join(lines)


def _read_tamis(text: str) -> Reading:
    """Read filters, or the name of a dataset and its filters, possibly after ``-f``."""
    if recipe := _RECIPE.fullmatch(text):
        text = recipe["filters"]
    try:
        return Reading("tamis", tuple(parse_filters(text)))
    except ParameterError:
        has_name = ":" in text.partition("(")[0] and not names_filter(text)
        try:
            name, chain = parse_named(text)
        except ParameterError:
            if has_name:
                raise
            name, chain = "", []
        if not name:
            raise
        return Reading("tamis", tuple(chain), (name,))


def _read_netcdf(text: str, compat: Compat | None) -> Reading:
    """Read a chain of filters, or an argument or options of nccopy."""
    if re.match(r"\s*\[?\s*[0-9+]", text):
        return Reading("netcdf", _in_order(text, parse_chain(text, compat=compat)))
    option, shape = _nccopy_options(text)
    argument = parse_argument(option, compat=compat)
    names = tuple(name for name in argument.variables if name != ALL)
    return Reading("netcdf", _in_order(text, argument.chain or ()), names, shape)


def _in_order(text: str, requests: list[Request] | tuple[Request, ...]) -> tuple[Stage, ...]:
    """Return the filters in the order in which netCDF runs them."""
    try:
        return tuple(map(Stage.of, in_netcdf_order(requests)))
    except ParameterError as error:
        raise refused(text, 0, str(error)) from error


def _nccopy_options(text: str) -> tuple[str, tuple[int, ...] | None]:
    """Return the argument of ``-F`` and the shape of ``-c``; a text without options is the argument."""
    if not re.match(r"\s*(nccopy\s|-)", text):
        return text, None
    try:
        tokens = shlex.split(text)
    except ValueError as error:
        raise malformed(text, len(text), f"a closing quote ({error})") from error
    pairs = list(zip(tokens, [*tokens[1:], ""], strict=True))
    filters = [token[2:] or following for token, following in pairs if token.startswith("-F")]
    shapes = {token[2:] or following for token, following in pairs if token.startswith("-c")}
    if len(filters) != 1 or not filters[0]:
        raise malformed(text, max(text.find("-F"), 0), "-F once, with an argument")
    extents = sorted({chunk_option.rpartition(":")[2] for chunk_option in shapes})
    if not extents:
        return filters[0], None
    if len(extents) > 1 or not re.fullmatch(r"[1-9][0-9]{0,9}(,[1-9][0-9]{0,9})*", extents[0]):
        raise malformed(text, max(text.find("-c"), 0), "-c with one chunk shape, such as -c TS:4,96,144")
    return filters[0], tuple(map(int, extents[0].split(",")))


_READERS: dict[str, Callable[[str, np.dtype[Any] | None, Compat | None], Reading]] = {
    "cdl": lambda text, _, compat: cdl.parse_text(text, compat=compat),
    "h5py": lambda text, dtype, _: parse_keywords(text, dtype=dtype),
    "h5dump": lambda text, *_: h5dump.parse_text(text),
    "h5repack": lambda text, *_: parse_command(text),
    "netcdf": lambda text, _, compat: _read_netcdf(text, compat),
    "tamis": lambda text, *_: _read_tamis(text),
    "zarr": lambda text, *_: Reading("zarr", zarr.parse_text(text)),
}
