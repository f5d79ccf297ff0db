"""Numbers as netcdf-c reads them: the type from the last letters, the value by sscanf, whatever comes after it ignored.

::

    id        : sscanf %u
    parameter : { blank | tab } text; its last letter decides, with the one before it if there are three or more:
                0-9, u    %u, or %d if it starts with '-'         one word
                b, s      the same, the low 8 or 16 bits of it    one word
                f, '.'    %lf, as a float                         one word
                d         %lf                                     two words, low first
                l, ul     %lld, %llu                              two words, low first

What does not fit becomes the largest number or loses its high bits, as glibc has it. Read in netcdf-c 4.9.0 and 4.10.1
and compared with it by tests/conformance/test_libnetcdf.py.
"""

from __future__ import annotations

import math
import re
import struct

from tamis.notation.fix8 import double_words
from tamis.notation.places import malformed

_ANY_CASE = re.IGNORECASE | re.ASCII  # else ſ would pass for s
_BLANKS = r"[ \t\n\v\f\r]*"
_INTEGER = re.compile(_BLANKS + r"([-+]?)([0-9]+)")
_FLOAT = re.compile(
    _BLANKS + r"(?P<sign>[-+]?)(?:"
    r"(?P<infinite>inf(?:inity|(?!i)))"  # scanf gives up at "infi" where no "infinity" follows
    r"|(?P<nan>nan)"
    r"|0x(?:(?=[.0-9a-f])(?P<hex>[0-9a-f]*(?:\.[0-9a-f]*)?)(?:p(?P<power>[-+]?[0-9]+))?)"
    r"|(?!0x)(?P<decimal>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[-+]?[0-9]+)?)"
    r")",
    _ANY_CASE,
)
_FORMAT = re.compile(r"\[" + _BLANKS + r"[-+]?[0-9][^\]]*\]")

_BITS = {"b": 8, "s": 16}


def after_format(text: str, start: int) -> int:
    """Return where the filters begin: netcdf-c reads a format number in brackets, and then dies of it; we go on."""
    found = _FORMAT.match(text, start)
    return found.end() if found else start


def read_id(text: str, start: int, end: int) -> int:
    """Read a filter id from a part of a text."""
    return _integer(text, start, end, signed=False, expected="a filter id") & 0xFFFFFFFF


def read_parameter(text: str, start: int, end: int) -> tuple[int, ...]:
    """Read a parameter from a part of a text, as one or two words."""
    while start < end and text[start] in " \t":
        start += 1
    piece = text[start:end]
    # An empty one makes netcdf-c read on beyond its copy of the text: what it finds there is refused nearly always.
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
    """Read as strtol or strtoul of 64 bits do, with the sign in the highest bit.

    Numbers beyond the range become its end; a minus before an unsigned one is taken modulo 2^64.
    """
    found = _INTEGER.match(text, start, end)
    if found is None:
        raise malformed(text, start, expected)
    size, negative = whole(found[2]), found[1] == "-"
    if signed:
        value = max(-size, -1 << 63) if negative else min(size, (1 << 63) - 1)
    elif size >= 1 << 64:
        value = -1
    else:
        value = -size if negative else size
    return value & (1 << 64) - 1


def whole(digits: str) -> int:
    """Return the value of decimal digits, or 10^20 where it is more: Python refuses to read thousands of them."""
    digits = digits.lstrip("0")
    return int(digits or "0") if len(digits) <= 20 else 10**20


def _float(text: str, start: int, end: int) -> float:
    found = _FLOAT.match(text, start, end)
    if found is None:
        raise malformed(text, start, "a number")
    if found["infinite"]:
        size = math.inf
    elif found["nan"]:
        size = math.nan
    elif found["decimal"]:
        size = float(found["decimal"])
    else:
        size = _hexadecimal(found["hex"], found["power"] or "0")
    return math.copysign(size, -1.0 if found["sign"] == "-" else 1.0)


def _hexadecimal(digits: str, power: str) -> float:
    if not digits.strip("."):
        return 0.0  # strtod reads "0x." as 0
    try:
        return float.fromhex(f"0x{digits}p{power}")
    except OverflowError:
        return math.inf


def float_word(value: float) -> int:
    """Return the bits of a value rounded to 32 bits, infinity where it is too large."""
    try:
        data = struct.pack("<f", value)
    except OverflowError:
        data = struct.pack("<f", math.copysign(math.inf, value))
    word: int = struct.unpack("<I", data)[0]
    return word
