"""Attributes that ncgen reads and ncdump -s prints: ``TS:_Filter = "32013,3,0,0.1d" ;``, ``TS:_Shuffle = "true" ;``.

::

    text      : { attribute }
    attribute : [ name ] ':' key '=' value { ',' value } ';'          the last may lack its ';'
    value     : text in double quotes | a number with CDL's tags

Of the keys, these say how values are stored; others, such as ``units``, are passed over: ``_Storage`` ("chunked",
"contiguous", "compact"), ``_ChunkSizes``, ``_Fletcher32`` and ``_Shuffle`` ("true", "false"), ``_DeflateLevel``,
``_Filter`` (netCDF filter text), ``_Endianness`` ("little", "big", "native").

Whatever the order of the attributes, ncgen defines fletcher32, deflate and shuffle, then ``_Filter``; and netCDF runs
fletcher32 first and shuffle next.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tamis.errors import ParameterError
from tamis.filters import Request, Stage
from tamis.notation.chain import Chain
from tamis.notation.netcdf import Compat, chain_text, parse_chain
from tamis.notation.netcdf_order import in_netcdf_order, netcdf_requests
from tamis.notation.places import malformed, refused

KEYS = ("_Storage", "_ChunkSizes", "_Fletcher32", "_Shuffle", "_DeflateLevel", "_Filter", "_Endianness")

Value = str | int | tuple[int, ...]

_FLAGS: dict[object, bool] = {"true": True, "false": False, "1": True, "0": False, 1: True, 0: False}
_STORAGES = ("chunked", "contiguous", "compact")
_ORDERS = ("little", "big", "native")
_NAME = r"(?:\\.|[^\s\\:;=,\"'(){}])"
_HEAD = re.compile(rf"(?P<name>{_NAME}*)\s*:\s*(?P<key>{_NAME}+)\s*=\s*", re.DOTALL | re.ASCII)
_VALUE = re.compile(r'"(?P<text>(?:\\.|[^"\\])*)"|(?P<number>[-+.]?[0-9][-+.0-9A-Za-z]*|NaNf?|-?Infinityf?)', re.DOTALL)
_SKIP = re.compile(r"(?:\s|//[^\n]*)*", re.ASCII)
_WHOLE = re.compile(r"\+?(?P<digits>[0-9]{1,19})(?:u|l|ul|ll|ull)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CdlAttributes:
    """The content of the attributes of a variable.

    Parameters
    ----------
    chain
        Filters in the order in which netCDF runs them.
    variable
        Its name; empty where the text has none.
    chunks
        Shape of a chunk; None where the attributes do not say.
    storage
        chunked, contiguous or compact; empty where they do not say. netCDF stores filtered variables chunked anyway.
    byte_order
        little, big or native; empty where they do not say.
    """

    chain: tuple[Stage, ...]
    variable: str = ""
    chunks: tuple[int, ...] | None = None
    storage: str = ""
    byte_order: str = ""


def attributes(
    chain: Chain, chunks: Sequence[int] | None = None, *, doubles: Mapping[int, Sequence[int]] | None = None
) -> dict[str, Value]:
    """Write a pipeline as attributes.

    Parameters
    ----------
    chain
        Filters in the order in which they run.
    chunks
        Shape of a chunk.
    doubles
        Pairs of words of ``_Filter`` to be written as a double, by the place of the filter in the chain.

    Raises
    ------
    ParameterError
        If netCDF cannot run such a pipeline; says why.
    """
    rest = list(enumerate(netcdf_requests(chain)))
    made: dict[str, Value] = {}
    if chunks:
        made = {"_Storage": "chunked", "_ChunkSizes": tuple(chunks)}
    if rest and rest[0][1].id == 3:
        made["_Fletcher32"] = "true"
        del rest[0]
    if rest and rest[0][1].id == 2:
        made["_Shuffle"] = "true"
        del rest[0]
    if rest and rest[0][1].id == 1 and len(rest[0][1].values) == 1 and rest[0][1].values != (0,):  # 0 means none
        (made["_DeflateLevel"],) = rest[0][1].values
        del rest[0]
    if rest:
        pairs = {at: (doubles or {}).get(place, ()) for at, (place, _) in enumerate(rest)}
        made["_Filter"] = chain_text([each for _, each in rest], doubles=pairs)
    return made


def attributes_text(made: Mapping[str, Value], variable: str) -> str:
    """Write attributes as lines of CDL.

    Parameters
    ----------
    made
        As `attributes` gives them.
    variable
        Its name, as in the file; escapes are added.

    Raises
    ------
    ParameterError
        If it is no name of a variable.
    """
    if not variable or "/" in variable or "\n" in variable:
        raise ParameterError(f"expected the name of a variable of the group that the CDL describes, got {variable!r}")
    name = re.sub(r"^[0-9]|[] !\"#$%&'()*,:;<=>?[\\^`{|}~]", r"\\\g<0>", variable)
    return "\n".join(f"{name}:{key} = {_value_text(value)} ;" for key, value in made.items())


def _value_text(value: Value) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def parse_attributes(given: Mapping[str, object], *, variable: str = "", compat: Compat | None = None) -> CdlAttributes:
    """Read attributes from a mapping, such as ``{"_Shuffle": "true", "_DeflateLevel": 4}``.

    Parameters
    ----------
    given
        Values by key; keys that do not say how values are stored are passed over.
    variable
        Its name.
    compat
        How numbers of ``_Filter`` are read: see `tamis.notation.netcdf`.

    Raises
    ------
    ParameterError
        If ncgen refuses a value, or a filter its parameters.
    """
    requests = [Request(3, ())] if _flag(given, "_Fletcher32") else []
    level = given.get("_DeflateLevel", 0)
    if isinstance(level, bool) or not isinstance(level, int) or not 0 <= level <= 9:
        raise ParameterError(f"expected _DeflateLevel of 0 to 9, got {level!r}")
    requests += [Request(2, ())] if _flag(given, "_Shuffle") else []
    requests += [Request(1, (level,))] if level else []
    if (text := given.get("_Filter")) is not None:
        if not isinstance(text, str):
            raise ParameterError(f"expected text as _Filter, got {text!r}")
        requests += parse_chain(text, compat=compat)
    chain = tuple(map(Stage.of, in_netcdf_order(requests)))
    storage, order = _word(given, "_Storage", _STORAGES), _word(given, "_Endianness", _ORDERS)
    return CdlAttributes(chain, variable, _chunks(given.get("_ChunkSizes")), storage, order)


def _flag(given: Mapping[str, object], key: str) -> bool:
    value = given.get(key, "false")
    if not isinstance(value, (str, int)) or value not in _FLAGS:
        raise ParameterError(f'expected {key} of "true" or "false", got {value!r}')
    return _FLAGS[value]


def _word(given: Mapping[str, object], key: str, words: Sequence[str]) -> str:
    value = given.get(key, "")
    if value != "" and value not in words:
        raise ParameterError(f"expected {key} to be one of {', '.join(words)}, got {value!r}")
    return str(value)


def _chunks(value: object) -> tuple[int, ...] | None:
    if value is None:
        return None
    shape = (value,) if isinstance(value, int) else value
    if isinstance(shape, (tuple, list)) and shape and all(type(step) is int and step > 0 for step in shape):
        return tuple(shape)
    raise ParameterError(f"expected _ChunkSizes of whole numbers above 0, got {value!r}")


def parse_text(text: str, *, compat: Compat | None = None) -> CdlAttributes:
    """Read lines of CDL with the attributes of one variable.

    Parameters
    ----------
    text
        Such as ``TS:_Shuffle = "true" ; TS:_DeflateLevel = 4 ;``.
    compat
        How numbers of ``_Filter`` are read: see `tamis.notation.netcdf`.

    Raises
    ------
    ParameterError
        If it is malformed, with the place; or if ncgen refuses a value, or a filter its parameters.
    """
    given: dict[str, object] = {}
    variable: str | None = None
    first = 0
    at = _skipped(text, 0)
    while at < len(text):
        start, name, key, value, at = _attribute(text, at)
        if key in KEYS:
            if variable not in (None, name):
                raise malformed(text, start, f"attributes of {variable} only")
            if key in given:
                raise malformed(text, start, f"{key} once")
            first = first if given else start
            variable, given[key] = name, value
    if not given:
        raise malformed(text, len(text), f"one of the attributes {', '.join(KEYS)}")
    try:
        return parse_attributes(given, variable=re.sub(r"\\(.)", r"\1", variable or "", flags=re.DOTALL), compat=compat)
    except ParameterError as error:
        raise refused(text, first, str(error)) from error


def _skipped(text: str, at: int) -> int:
    found = _SKIP.match(text, at)
    return found.end() if found else at


def _attribute(text: str, start: int) -> tuple[int, str, str, object, int]:
    head = _HEAD.match(text, start)
    if head is None:
        raise malformed(text, start, "an attribute such as TS:_DeflateLevel = 4 ;")
    key, at = head["key"], head.end()
    values: list[str | int] = []
    while True:
        found = _VALUE.match(text, at)
        if found is None:
            raise malformed(text, at, "a number or text in double quotes")
        values.append(_read(text, at, found, key))
        at = _skipped(text, found.end())
        if not text.startswith(",", at):
            break
        at = _skipped(text, at + 1)
    if not text.startswith(";", at) and at < len(text):
        raise malformed(text, at, "',' or ';'")
    value: object = values[0] if len(values) == 1 else tuple(values)
    return start, head["name"], key, value, _skipped(text, at + 1)


def _read(text: str, at: int, found: re.Match[str], key: str) -> str | int:
    if found["text"] is not None:
        return re.sub(r"\\(.)", r"\1", found["text"], flags=re.DOTALL)
    whole = _WHOLE.fullmatch(found["number"])
    if whole is None and key in KEYS:
        raise malformed(text, at, f"a whole number or text as {key}")
    return int(whole["digits"]) if whole else found["number"]
