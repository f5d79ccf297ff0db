"""Numbers of netCDF filter text with only one meaning, and what to write instead of ambiguous ones.

::

    id        : 1 to 65535
    parameter : [ '+' | '-' ] digits [ tag ]             tags in either case
                (none)   one word                        -2^31 to 2^32 - 1
                u        one word                        0 to 2^32 - 1
                b, s     one word                        0 to 127, 0 to 32767
                ub, us   one word                        0 to 255, 0 to 65535
                l, ul    two words, low word first       -2^63 to 2^63 - 1, 0 to 2^64 - 1
              | [ '+' | '-' ] decimal tag                with or without point and exponent
                f        one word                        finite, and 0 only if the text is 0
                d        two words, low word first       the same
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tamis.notation.netcdf_scanf import double_words, float_word, whole
from tamis.notation.text import malformed

if TYPE_CHECKING:
    from tamis.errors import ParameterError

BLANKS = " \t\r\n"
MAX_ID = 65535
"""Filter ids of HDF5 have 16 bits; 0 is no filter."""

_ANY_CASE = re.IGNORECASE | re.ASCII  # ASCII: otherwise ſ would match s
_WORD = 0xFFFFFFFF
_INTEGER = re.compile(r"(?P<sign>[-+]?)(?P<digits>[0-9]+)(?P<tag>u?[bsl]?)", _ANY_CASE)
_FLOAT = re.compile(
    r"(?P<number>[-+]?(?P<digits>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[-+]?[0-9]+)?)(?P<tag>[fd]?)", _ANY_CASE
)
_HEXADECIMAL = re.compile(r"(-?)\+?0x([0-9a-f]{1,16})", _ANY_CASE)
_OTHER_TAG = re.compile(r"(?P<number>[-+]?[0-9]+)(?:(?P<long>l+u|u?ll+)|(?P<short>[bs])u)", _ANY_CASE)
_NBITS = {"b": 8, "s": 16, "": 32, "l": 64}


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Return start and end of a part of a text without surrounding blanks."""
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip(BLANKS))
    return start, start + len(piece.strip(BLANKS))


def read_id(text: str, start: int, end: int) -> int:
    """Read a filter id from a part of a text."""
    start, end = _trimmed(text, start, end)
    digits = text[start:end].removeprefix("+")
    if not (digits.isascii() and digits.isdigit() and 0 < whole(digits) <= MAX_ID):
        raise malformed(text, start, f"a filter id of 1 to {MAX_ID}")
    return whole(digits)


def read(text: str, start: int, end: int, *, documented: bool) -> tuple[int, ...]:
    """Read a parameter from a part of a text, if netcdf-c, its documentation and a human reader agree on it.

    Or read it as the documentation describes it: tags b, s, ub and us keep the low bits, and b and s then extend the
    sign to 32 bits. A number without a tag takes two words if it does not fit one.
    """
    start, end = _trimmed(text, start, end)
    piece = text[start:end]
    if match := _INTEGER.fullmatch(piece):
        value = whole(match["digits"]) * (-1 if match["sign"] == "-" else 1)
        interpret = _documented if documented else _strict
        return interpret(text, start, value, match["tag"])
    if (match := _FLOAT.fullmatch(piece)) and match["tag"]:
        return _float(text, start, match)
    raise malformed(text, start, _instead(piece))


def _strict(text: str, start: int, value: int, tag: str) -> tuple[int, ...]:
    """Return the words of a number with a tag that has one meaning."""
    kind = tag.lower()
    low, high = _bounds(kind)
    if kind in ("b", "s"):
        if low <= value < 0:
            masked = value & (1 << _NBITS[kind]) - 1
            raise malformed(text, start, f"{masked} (netcdf-c's reading) or {value} (its documentation's)")
        low = 0
    if not low <= value <= high:
        raise _out_of_bounds(text, start, value, tag, low, high)
    return _cd_values(value, two=kind.endswith("l"))


def _documented(text: str, start: int, value: int, tag: str) -> tuple[int, ...]:
    """Return the words of a number with a tag as netcdf-c's documentation describes them."""
    kind = tag.lower()
    low, high = _bounds(kind)
    if (nbits := _NBITS[kind.removeprefix("u")]) < 32:
        value &= (1 << nbits) - 1
        if value > high:
            value -= 1 << nbits
    elif not kind:
        high = (1 << 64) - 1
    if not low <= value <= high:
        raise _out_of_bounds(text, start, value, tag, low, high)
    return _cd_values(value, two=kind.endswith("l") or value > _WORD)


def _bounds(kind: str) -> tuple[int, int]:
    """Return the least and the largest number with a tag; one without a tag may be signed or not."""
    nbits = _NBITS[kind.removeprefix("u")]
    is_unsigned = kind.startswith("u")
    low = 0 if is_unsigned else -(1 << nbits - 1)
    high = (1 << nbits) - 1 if is_unsigned or not kind else (1 << nbits - 1) - 1
    return low, high


def _cd_values(value: int, *, two: bool) -> tuple[int, ...]:
    """Return a number as one word, or as two, the low one first."""
    return (value & _WORD, value >> 32 & _WORD) if two else (value & _WORD,)


def _out_of_bounds(text: str, start: int, value: int, tag: str, low: int, high: int) -> ParameterError:
    """Return the error about a number that does not fit its tag, with a tag that it fits."""
    bounds = f"{low} to {high} with tag {tag}" if tag else f"{low} to {high} without a tag"
    others = ["L" if value < 0 else "UL"]
    if _NBITS[tag.lower().removeprefix("u")] < 64:
        others.insert(0, "")
    for other in others:
        least, most = _bounds(other.lower())
        if least <= value <= most:
            return malformed(text, start, f"{bounds}, or {value}{other}")
    return malformed(text, start, bounds)


def _float(text: str, start: int, match: re.Match[str]) -> tuple[int, ...]:
    """Return the words of a number with a tag of floats."""
    value = float(match["number"])
    single = match["tag"] in "fF"
    cd_values = (float_word(value),) if single else double_words(value)
    kind = "float, or tag d" if single else "double"
    # All exponent bits set mean infinity; no bit set except the sign means 0.
    size = cd_values[-1] & 0x7FFFFFFF
    if size >= (0x7F800000 if single else 0x7FF00000):
        raise malformed(text, start, f"a number that fits a {kind}")
    if not size and not any(cd_values[:-1]) and re.search("[1-9]", match["digits"]):
        raise malformed(text, start, f"0 or a number that fits a {kind}")
    return cd_values


def _instead(piece: str) -> str:
    """Return what to write instead of a text that is not a number."""
    if not piece:
        return "a parameter"
    if match := _FLOAT.fullmatch(piece):
        number = match["number"]
        value = float(number)
        plain = f", or {value:.0f}" if value.is_integer() and abs(value) <= 1e15 else ""
        return f"{number}f (float, one word) or {number}d (double, two words){plain}"
    if match := _HEXADECIMAL.fullmatch(piece):
        return f"{match[1]}{int(match[2], 16)}, in decimal"
    if match := _OTHER_TAG.fullmatch(piece):
        unsigned = "U" if match["short"] or "u" in piece.lower() else ""
        return f"{match['number']}{unsigned}{(match['short'] or 'L').upper()}"
    if re.match("[-+]?(?:nan|inf)", piece, _ANY_CASE):
        return "a finite number"
    return "a number, with a tag of b ub s us u l ul f d or without"
