"""Attributes that ncgen reads and ncdump -s prints: ``TS:_Filter = "32013,3,0,0.1d" ;``, ``TS:_Shuffle = "true" ;``.

::

    text      : { attribute }
    attribute : [ name ] ':' key '=' value { ',' value } ';'          the last may lack its ';'
    value     : text in double quotes | a number with CDL's tags

These keys describe how values are stored; others, such as ``units``, are ignored: ``_Storage`` ("chunked",
"contiguous", "compact"), ``_ChunkSizes``, ``_Fletcher32`` and ``_Shuffle`` ("true", "false"), ``_DeflateLevel``,
``_Filter`` (netCDF filter text), ``_Endianness`` ("little", "big", "native"), and one of the attributes that record a
rounding. For BitRound, files and ncdump have ``_QuantizeBitRoundNumberOfSignificantBits``, which ncgen copies without
rounding anything; it rounds with ``_QuantizeBitRoundNumberOfSignificantDigits``, which is also a number of bits.

Whatever the order of the attributes, ncgen defines fletcher32, deflate and shuffle, then ``_Filter``. netCDF runs
fletcher32 first and shuffle second.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tamis.errors import ParameterError
from tamis.filters import Request, Stage
from tamis.notation.netcdf import Compat, chain_text, in_netcdf_order, netcdf_requests, parse_chain
from tamis.notation.text import Chain, Reading, as_chunk_shape, malformed, refused
from tamis.rounding import KINDS as ROUNDINGS
from tamis.rounding import BitRound, Rounding

_NCGEN_BITROUND = "_QuantizeBitRoundNumberOfSignificantDigits"
_ROUNDINGS = {kind.attribute: kind for kind in ROUNDINGS} | {_NCGEN_BITROUND: BitRound}

KEYS = ("_Storage", "_ChunkSizes", "_Fletcher32", "_Shuffle", "_DeflateLevel", "_Filter", "_Endianness", *_ROUNDINGS)

Value = str | int | tuple[int, ...]

_FLAGS: dict[object, bool] = {"true": True, "false": False, "1": True, "0": False, 1: True, 0: False}
_CHOICES = {"_Storage": ("chunked", "contiguous", "compact"), "_Endianness": ("little", "big", "native")}
_NAME = r"(?:\\.|[^\s\\:;=,\"'(){}])"
_HEAD = re.compile(rf"(?P<name>{_NAME}*)\s*:\s*(?P<key>{_NAME}+)\s*=\s*", re.DOTALL | re.ASCII)
_VALUE = re.compile(r'"(?P<text>(?:\\.|[^"\\])*)"|(?P<number>[-+.]?[0-9][-+.0-9A-Za-z]*|NaNf?|-?Infinityf?)', re.DOTALL)
_SKIP = re.compile(r"(?:\s|//[^\n]*)*", re.ASCII)
_WHOLE = re.compile(r"\+?(?P<digits>[0-9]{1,19})(?:u|l|ul|ll|ull)?", re.IGNORECASE)


def attributes(
    chain: Chain,
    chunk_shape: Sequence[int] | None = None,
    *,
    doubles: Mapping[int, Sequence[int]] | None = None,
    rounding: Rounding | None = None,
) -> dict[str, Value]:
    """Write a pipeline as attributes."""
    own, rest = _separate(netcdf_requests(chain))
    result: dict[str, Value] = {}
    if chunk_shape:
        result |= {"_Storage": "chunked", "_ChunkSizes": tuple(chunk_shape)}
    result |= own
    if rest:
        pairs = {position: (doubles or {}).get(position + len(own), ()) for position in range(len(rest))}
        result["_Filter"] = chain_text(rest, doubles=pairs)
    if rounding is not None and not rounding.quantize_mode:
        raise ParameterError(f"netCDF-C cannot round by {rounding}: tamis repack rounds a saved file")
    if rounding is not None:
        result[_NCGEN_BITROUND if isinstance(rounding, BitRound) else rounding.attribute] = int(rounding.number)
    return result


def _separate(requests: Sequence[Request]) -> tuple[dict[str, Value], list[Request]]:
    """Return the first filters as attributes of their own, if netCDF has them in this order, and the rest."""
    own, rest = dict[str, Value](), list(requests)
    if rest and rest[0].id == 3:
        own["_Fletcher32"] = "true"
        del rest[0]
    if rest and rest[0].id == 2:
        own["_Shuffle"] = "true"
        del rest[0]
    if rest and rest[0].id == 1 and len(rest[0].values) == 1 and rest[0].values[0]:  # 0 means none
        own["_DeflateLevel"] = rest[0].values[0]
        del rest[0]
    return own, rest


_SZIP_CODINGS = 38  # the bits of szip's options that netCDF shows: entropy coding, nearest neighbour, chip


def filters_as_stored(chain: Chain) -> dict[str, str]:
    """Return filters by keys of CDL: separate ones if netCDF has them in this order, otherwise all in ``_Filter``.

    Parameters are those in a file. A value is followed by the end of a line of CDL, and perhaps by a comment.
    """
    requests = [Request(stage.filter.id, _shown(stage.filter.id, stage.stored)) for stage in chain]
    own, rest = _separate(requests)
    special = {key: f"{_value_text(value)} ;" for key, value in own.items()}
    if not rest:
        return special
    numbers = [request.id for request in rest]
    if not {1, 2, 3} & {*numbers} and len({*numbers}) == len(numbers):
        return special | {"_Filter": f'"{chain_text(rest)}" ;'}
    ordered = in_netcdf_order(requests)
    note = "" if ordered == requests else f" // as stored; ncgen makes it {chain_text(ordered)}"
    return {"_Filter": f'"{chain_text(requests)}" ;{note}'}


def _shown(number: int, stored: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the parameters of a filter as netCDF shows them."""
    values = tuple(stored or ())
    return (values[0] & _SZIP_CODINGS, *values[1:2]) if number == 4 and values else values


def attributes_text(values: Mapping[str, Value], variable: str) -> str:
    """Write attributes as lines of CDL."""
    if not variable or "/" in variable or "\n" in variable:
        raise ParameterError(f"expected the name of a variable of the group that the CDL describes, got {variable!r}")
    name = re.sub(r"^[0-9]|[] !\"#$%&'()*,:;<=>?[\\^`{|}~]", r"\\\g<0>", variable)
    return "\n".join(f"{name}:{key} = {_value_text(value)} ;" for key, value in values.items())


def _value_text(value: Value) -> str:
    """Return the value of an attribute."""
    if isinstance(value, str):
        return f'"{value}"'
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def parse_attributes(mapping: Mapping[str, object], *, variable: str = "", compat: Compat | None = None) -> Reading:
    """Read attributes from a mapping, such as ``{"_Shuffle": "true", "_DeflateLevel": 4}``."""
    requests = []
    if _flag(mapping, "_Fletcher32"):
        requests.append(Request(3, ()))
    level = mapping.get("_DeflateLevel", 0)
    if isinstance(level, bool) or not isinstance(level, int) or not 0 <= level <= 9:
        raise ParameterError(f"expected _DeflateLevel of 0 to 9, got {level!r}")
    if _flag(mapping, "_Shuffle"):
        requests.append(Request(2, ()))
    if level:
        requests.append(Request(1, (level,)))
    if (text := mapping.get("_Filter")) is not None:
        if not isinstance(text, str):
            raise ParameterError(f"expected text as _Filter, got {text!r}")
        requests += parse_chain(text, compat=compat)
    chain: list[Stage | Rounding] = [*_rounding(mapping), *map(Stage.of, in_netcdf_order(requests))]
    for key, choices in _CHOICES.items():
        if mapping.get(key, "") not in ("", *choices):
            raise ParameterError(f"expected {key} to be one of {', '.join(choices)}, got {mapping[key]!r}")
    names = (variable,) if variable else ()
    return Reading("cdl", tuple(chain), names, _chunk_shape(mapping.get("_ChunkSizes")))


def _rounding(mapping: Mapping[str, object]) -> list[Rounding]:
    """Return the roundings that attributes name."""
    roundings = []
    for key, kind in _ROUNDINGS.items():
        if (value := mapping.get(key)) is not None:
            if isinstance(value, bool) or not isinstance(value, int):
                raise ParameterError(f"expected a whole number as {key}, got {value!r}")
            roundings.append(kind(value))  # type: ignore[call-arg]
    return roundings


def _flag(mapping: Mapping[str, object], key: str) -> bool:
    """Return an attribute that is true or false."""
    value = mapping.get(key, "false")
    if not isinstance(value, (str, int)) or value not in _FLAGS:
        raise ParameterError(f'expected {key} of "true" or "false", got {value!r}')
    return _FLAGS[value]


def _chunk_shape(value: object) -> tuple[int, ...] | None:
    """Return the chunk shape; None if there is none."""
    if value is None:
        return None
    shape = as_chunk_shape(value)
    if shape is not None:
        return shape
    raise ParameterError(f"expected _ChunkSizes of whole numbers above 0, got {value!r}")


def parse_text(text: str, *, compat: Compat | None = None) -> Reading:
    """Read lines of CDL with the attributes of one variable."""
    mapping: dict[str, object] = {}
    variable: str | None = None
    first_start = 0
    position = _after_blanks(text, 0)
    while position < len(text):
        start, name, key, value, position = _attribute(text, position)
        if key in KEYS:
            if variable not in (None, name):
                raise malformed(text, start, f"attributes of {variable} only")
            if key in mapping:
                raise malformed(text, start, f"{key} once")
            if not mapping:
                first_start = start
            variable = name
            mapping[key] = value
    if not mapping:
        raise malformed(text, len(text), f"one of the attributes {', '.join(KEYS)}")
    try:
        return parse_attributes(mapping, variable=_unescaped(variable or ""), compat=compat)
    except ParameterError as error:
        raise refused(text, first_start, str(error)) from error


def _after_blanks(text: str, position: int) -> int:
    match = _SKIP.match(text, position)
    return match.end() if match else position


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def _attribute(text: str, start: int) -> tuple[int, str, str, object, int]:
    """Return where an attribute begins, its variable, key and value, and where the next one begins."""
    head = _HEAD.match(text, start)
    if head is None:
        raise malformed(text, start, "an attribute such as TS:_DeflateLevel = 4 ;")
    key, position = head["key"], head.end()
    values: list[str | int] = []
    while True:
        match = _VALUE.match(text, position)
        if match is None:
            raise malformed(text, position, "a number or text in double quotes")
        values.append(_read(text, position, match, key))
        position = _after_blanks(text, match.end())
        if not text.startswith(",", position):
            break
        position = _after_blanks(text, position + 1)
    if not text.startswith(";", position) and position < len(text):
        raise malformed(text, position, "',' or ';'")
    value: object = values[0] if len(values) == 1 else tuple(values)
    return start, head["name"], key, value, _after_blanks(text, position + 1)


def _read(text: str, position: int, match: re.Match[str], key: str) -> str | int:
    """Return one of the values of a key."""
    if match["text"] is not None:
        return _unescaped(match["text"])
    whole = _WHOLE.fullmatch(match["number"])
    if whole is None and key in KEYS:
        raise malformed(text, position, f"a whole number or text as {key}")
    return int(whole["digits"]) if whole else match["number"]
