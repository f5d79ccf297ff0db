"""Numbers as netcdf-c reads them: type from the last letters, value by sscanf, which ignores the rest.

::

    id        : sscanf %u
    parameter : { blank | tab } text; its last letter, or last two letters of three or more, decide:
                0-9, u    %u, or %d if it starts with '-'         one word
                b, s      the same, the low 8 or 16 bits of it    one word
                f, '.'    %lf, as a float                         one word
                d         %lf                                     two words, low first
                l, ul     %lld, %llu                              two words, low first

A number that does not fit becomes the largest one or loses its high bits, as in glibc. Taken from the source of
netcdf-c 4.9.0 and 4.10.1; tests/conformance/test_libnetcdf.py compares with it.
"""

from __future__ import annotations

import math
import re
import struct
from typing import Literal

from tamis.errors import ParameterError
from tamis.notation.text import malformed

_ANY_CASE = re.IGNORECASE | re.ASCII  # ASCII: otherwise ſ would match s
_BLANKS = r"[ \t\n\v\f\r]*"
_INTEGER = re.compile(_BLANKS + r"([-+]?)([0-9]+)")
_FLOAT = re.compile(
    _BLANKS + r"(?P<sign>[-+]?)(?:"
    r"(?P<infinite>inf(?:inity|(?!i)))"  # scanf fails at "infi" unless it is "infinity"
    r"|(?P<nan>nan)"
    r"|0x(?:(?=[.0-9a-f])(?P<hex>[0-9a-f]*(?:\.[0-9a-f]*)?)(?:p(?P<power>[-+]?[0-9]+))?)"
    r"|(?!0x)(?P<decimal>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[-+]?[0-9]+)?)"
    r")",
    _ANY_CASE,
)
_FORMAT = re.compile(r"\[" + _BLANKS + r"[-+]?[0-9][^\]]*\]")

_BITS = {"b": 8, "s": 16}


def after_format(text: str, start: int) -> int:
    """Return where the filters begin, after a format number in brackets, at which netcdf-c itself crashes."""
    match = _FORMAT.match(text, start)
    return match.end() if match else start


def read_id(text: str, start: int, end: int) -> int:
    """Read a filter id from a part of a text."""
    return _integer(text, start, end, signed=False, expected="a filter id") & 0xFFFFFFFF


def read_parameter(text: str, start: int, end: int) -> tuple[int, ...]:
    """Read a parameter from a part of a text, as one or two words."""
    while start < end and text[start] in " \t":
        start += 1
    piece = text[start:end]
    # netcdf-c reads beyond its copy of the text for an empty parameter, and nearly always refuses it.
    last = piece[-1:].lower()
    unsigned = piece[-2:-1].lower() == "u"
    if last and last in "0123456789ubs":
        word = _integer(text, start, end, signed=piece[0] == "-", expected="a whole number")
        return (word & (1 << _BITS.get(last, 32)) - 1,)
    if last == "l":
        value = _integer(text, start, end, signed=not unsigned, expected="a whole number")
        return (value & 0xFFFFFFFF, value >> 32)
    if last in ("f", "."):
        return (float_word(_float(text, start, end)),)
    if last == "d":
        return double_words(_float(text, start, end))
    raise malformed(text, start, "a number that ends in a digit, a point or one of b s u l f d")


def _integer(text: str, start: int, end: int, *, signed: bool, expected: str) -> int:
    """Return an integer as 64-bit strtol or strtoul read it, as two's complement.

    Numbers are clamped to the range; a negative unsigned number is taken modulo 2^64.
    """
    match = _INTEGER.match(text, start, end)
    if match is None:
        raise malformed(text, start, expected)
    size, negative = whole(match[2]), match[1] == "-"
    if signed:
        value = max(-size, -1 << 63) if negative else min(size, (1 << 63) - 1)
    elif size >= 1 << 64:
        value = -1
    else:
        value = -size if negative else size
    return value & (1 << 64) - 1


def whole(digits: str) -> int:
    """Return the value of decimal digits, at most 10^20, because Python refuses to convert thousands of digits."""
    digits = digits.lstrip("0")
    return int(digits or "0") if len(digits) <= 20 else 10**20


def _float(text: str, start: int, end: int) -> float:
    """Return a number as strtod reads it."""
    match = _FLOAT.match(text, start, end)
    if match is None:
        raise malformed(text, start, "a number")
    if match["infinite"]:
        size = math.inf
    elif match["nan"]:
        size = math.nan
    elif match["decimal"]:
        size = float(match["decimal"])
    else:
        size = _hexadecimal(match["hex"], match["power"] or "0")
    return math.copysign(size, -1.0 if match["sign"] == "-" else 1.0)


def _hexadecimal(digits: str, power: str) -> float:
    """Return a number in hexadecimal digits with a power of two; infinity if it is too large."""
    if not digits.strip("."):
        return 0.0  # strtod reads "0x." as 0
    try:
        return float.fromhex(f"0x{digits}p{power}")
    except OverflowError:
        return math.inf


def float_word(value: float) -> int:
    """Return the bits of a value as a 32-bit float; infinity if it is too large."""
    try:
        data = struct.pack("<f", value)
    except OverflowError:
        data = struct.pack("<f", math.copysign(math.inf, value))
    word: int = struct.unpack("<I", data)[0]
    return word


ByteOrder = Literal["little", "big"]

_WORD = 0xFFFFFFFF


def _swap4(data: bytes) -> bytes:
    return data[3::-1] + data[:3:-1]


def fix8(data: bytes, *, decode: bool, byteorder: ByteOrder = "little") -> bytes:
    """Return the result of netCDF's ``ncaux_h5filterspec_fix8`` on a machine of this byte order."""
    if len(data) != 8:
        raise ParameterError(f"expected the 8 bytes of a value, got {len(data)}")
    if byteorder == "little":
        return data
    return _swap4(data)[::-1] if decode else _swap4(data[::-1])


def double_words(value: float, byteorder: ByteOrder = "little") -> tuple[int, int]:
    """Return the two words of a double in memory; ``little`` is netCDF's order on every machine."""
    first, second = struct.unpack("<2I", struct.pack("<d", value))
    return (first, second) if byteorder == "little" else (second, first)


def words_double(words: tuple[int, int], byteorder: ByteOrder = "little") -> float:
    """Return the double that two words in memory represent."""
    if not all(0 <= word <= _WORD for word in words):
        raise ParameterError(f"expected two words of 0 to {_WORD}, got {words}")
    low, high = words if byteorder == "little" else words[::-1]
    value: float = struct.unpack("<d", struct.pack("<2I", low, high))[0]
    return value
