"""8-byte parameters in two 32-bit words, on machines of either byte order.

netCDF expects the low word first on every machine, and provides ``ncaux_h5filterspec_fix8`` to convert. H5Z-ZFP and
other filters copy the bytes in machine order, so that the high word comes first on big-endian machines.
"""

from __future__ import annotations

import struct
from typing import Literal

from tamis.errors import ParameterError

ByteOrder = Literal["little", "big"]

_WORD = 0xFFFFFFFF


def _swap4(data: bytes) -> bytes:
    return data[3::-1] + data[:3:-1]


def fix8(data: bytes, *, decode: bool, byteorder: ByteOrder = "little") -> bytes:
    """Return the result of netCDF's ``ncaux_h5filterspec_fix8`` on a machine of this byte order.

    Parameters
    ----------
    data
        The 8 bytes of a value in memory; with `decode`, those of the two words that a filter gets.
    decode
        True converts words to a value, as inside a filter; False a value to words for nc_def_var_filter.
    byteorder
        Byte order of the machine. On little-endian machines nothing changes.

    Raises
    ------
    ParameterError
        If there are not 8 bytes.
    """
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
    """Return the double that two words stand for in memory.

    Raises
    ------
    ParameterError
        If a word does not fit 32 bits.
    """
    if not all(0 <= word <= _WORD for word in words):
        raise ParameterError(f"expected two words of 0 to {_WORD}, got {words}")
    low, high = words if byteorder == "little" else words[::-1]
    value: float = struct.unpack("<d", struct.pack("<2I", low, high))[0]
    return value
