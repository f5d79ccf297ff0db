"""Filters 5 and 6, which store only the bits that a type or the values of a chunk use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from tamis import _native
from tamis.arguments import STORED
from tamis.errors import ParameterError
from tamis.filters._framing import decoded, encoded
from tamis.filters.base import CHUNK, ChunkType, Data, Filter, Wordless, check_arguments, choice, is_enum, number

_ATOMIC, _ARRAY, _COMPOUND, _OPAQUE = 1, 2, 3, 4


@dataclass(frozen=True, slots=True)
class Nbit(Wordless):
    """Filter 5: only the bits that an HDF5 type uses; among numpy's types only long doubles have unused bits."""

    id: ClassVar[int] = 5
    name: ClassVar[str] = "nbit"
    registered_name: ClassVar[str] = "nbit"
    about: ClassVar[str] = "drops bits that the type does not use"
    needs_values: ClassVar[bool] = True

    def stored(self, chunk: ChunkType) -> tuple[int, ...]:
        """Return the number of parameters, whether all bits are used, the value count of a chunk, and the type."""
        CHUNK.check("chunk", chunk)
        kind, *rest = _described(chunk.dtype)
        # HDF5 describes no type that is opaque as a whole, such as an enumeration.
        cd_values = () if kind == _OPAQUE else (kind, *rest)
        return (3 + len(cd_values), int(not _leaves_bits_out(chunk.dtype)), chunk.size, *cd_values)

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Pack."""
        check_arguments(data, chunk, stored)
        return encoded(self.name, _native.nbit_encode(data, stored))

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Unpack."""
        check_arguments(data, chunk, stored)
        return decoded(self.name, _native.nbit_decode(data, stored, chunk.nbytes), stored)

    def in_words(self, stored: tuple[int, ...] = ()) -> str:
        """Return how many bits are kept, if the type is a number."""
        STORED.check("stored", stored)
        if len(stored) == 8 and stored[3] == _ATOMIC and not stored[1]:
            return f"nbit, {stored[6]} of {8 * stored[4]} bits"
        return "nbit, all bits" if len(stored) > 1 and stored[1] else "nbit"


def _described(dtype: np.dtype[Any]) -> Iterator[int]:
    """Yield a type as nbit describes it: class and size, then details of the class."""
    if dtype.subdtype is not None:
        yield from (_ARRAY, dtype.itemsize)
        yield from _described(dtype.subdtype[0])
    elif dtype.kind == "O":
        raise ParameterError(f"expected values of a fixed size for nbit, got {dtype}")
    elif _is_number(dtype):
        yield from (_ATOMIC, dtype.itemsize, int(dtype.str.startswith(">")), _precision(dtype), 0)
    elif members := list(_members(dtype)):
        yield from (_COMPOUND, dtype.itemsize, len(members))
        for offset, member in members:
            yield offset
            yield from _described(member)
    else:
        yield from (_OPAQUE, dtype.itemsize)


def _is_number(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "iuf" and not is_enum(dtype)


def _members(dtype: np.dtype[Any]) -> Iterator[tuple[int, np.dtype[Any]]]:
    """Yield offsets and types of the members of a compound; HDF5 stores complex numbers as one, too."""
    if dtype.kind == "c":
        half = np.dtype(f"{dtype.str[0]}f{dtype.itemsize // 2}")
        yield from ((0, half), (half.itemsize, half))
    for name in dtype.names or ():
        member, offset = dtype.fields[name][:2]  # type: ignore[index]
        yield offset, member


def _precision(dtype: np.dtype[Any]) -> int:
    """Return the bits that a number uses: long doubles of x86 have unused bytes."""
    if dtype.kind == "f" and dtype.itemsize > 8:
        info = np.finfo(dtype)
        return 80 if info.nmant == 63 else 8 * dtype.itemsize
    return 8 * dtype.itemsize


def _leaves_bits_out(dtype: np.dtype[Any]) -> bool:
    if dtype.subdtype is not None:
        return _leaves_bits_out(dtype.subdtype[0])
    if _is_number(dtype):
        return _precision(dtype) < 8 * dtype.itemsize
    return any(_leaves_bits_out(member) for _, member in _members(dtype))


_DECIMAL, _INTEGER = 0, 2
_KINDS = {"decimal": _DECIMAL, "integer": _INTEGER}
_WORDS = 20


@dataclass(frozen=True, slots=True)
class Scaleoffset(Filter):
    """Filter 6: differences from the smallest value of a chunk, in as few bits as possible.

    Parameters
    ----------
    kind
        ``integer`` for integers; ``decimal`` for floats, which it rounds.
    factor
        Bits of an integer, 0 for as many as needed; too few bits lose values. For floats, digits after the decimal
        point.
    """

    kind: str = choice("integer: lossless at factor 0, decimal: floats, rounded", ("integer", "decimal"), "integer")
    factor: int = number("bits of an integer, 0 as needed, or decimal digits of a float", -(1 << 31), (1 << 31) - 1, 0)
    id: ClassVar[int] = 6
    name: ClassVar[str] = "scaleoffset"
    registered_name: ClassVar[str] = "scaleoffset"
    about: ClassVar[str] = "offsets from the smallest value of a chunk, in few bits"
    needs_values: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the numbers."""
        Filter.__post_init__(self)
        if self.kind == "integer" and not 0 <= self.factor <= 64:
            raise ParameterError(f"expected 0 to 64 bits of an integer in scaleoffset, got factor={self.factor}")

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Read requested parameters, kind and factor, or stored ones, which start with these two."""
        STORED.check("values", values)
        if len(values) not in (2, _WORDS):
            raise ParameterError(f"expected kind and factor of scaleoffset, or 20 parameters as stored, got {values}")
        names = {number: name for name, number in _KINDS.items()}
        if values[0] not in names:
            raise ParameterError(f"expected 0 (decimal) or 2 (integer) as the kind of scaleoffset, got {values[0]}")
        return cls(names[values[0]], values[1] - (values[1] >> 31 << 32))

    @property
    def requested(self) -> tuple[int, ...]:
        """Kind and factor, a negative one in two's complement."""
        return (_KINDS[self.kind], self.factor & 0xFFFFFFFF)

    @property
    def error_bound(self) -> float | None:
        """One unit of the last decimal digit, which leaves room for rounding; 0 for integers.

        Integers that do not fit into the requested bits come back as unrelated values: a comparison must find them.
        """
        return 0.0 if self.kind == "integer" else 10.0 ** -max(self.factor, -300)

    def stored(self, chunk: ChunkType) -> tuple[int, ...]:
        """Return kind, factor, value count of a chunk, class, size, sign and byte order, and the fill value."""
        CHUNK.check("chunk", chunk)
        dtype = chunk.dtype
        kinds, sizes = ("iu", (1, 2, 4, 8)) if self.kind == "integer" else ("f", (4, 8))
        if dtype.kind not in kinds or dtype.itemsize not in sizes or is_enum(dtype):
            self._refuse(dtype)
        if self.kind == "integer" and self.factor > 8 * dtype.itemsize:
            raise ParameterError(f"expected at most {8 * dtype.itemsize} bits of {dtype}, got {self}")
        floats, signed, big = dtype.kind == "f", dtype.kind == "i", dtype.str.startswith(">")
        numbers = (*self.requested, chunk.size, int(floats), dtype.itemsize, int(signed), int(big), 1)
        cd_values = numbers + _fill_cd_values(chunk)
        return cd_values + (0,) * (_WORDS - len(cd_values))

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Encode. Raises DataError if a value cannot be represented."""
        check_arguments(data, chunk, stored)
        return encoded(self.name, _native.scaleoffset_encode(data, stored))

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Decode."""
        check_arguments(data, chunk, stored)
        return decoded(self.name, _native.scaleoffset_decode(data, stored, chunk.nbytes), stored)

    def in_words(self, stored: tuple[int, ...] = ()) -> str:
        """Return the precision that is kept."""
        if self.kind == "decimal":
            return f"scaleoffset, {self.factor} decimal digits"
        return f"scaleoffset, integers, {f'{self.factor} bits' if self.factor else 'bits as needed'}"

    def _refuse(self, dtype: np.dtype[Any]) -> None:
        accepted = "integers of 1, 2, 4 or 8 bytes" if self.kind == "integer" else "float32 or float64"
        got = f"an enumeration of {dtype}" if is_enum(dtype) else str(dtype)
        other = {"f": "scaleoffset(decimal,N), of N digits", "i": "scaleoffset", "u": "scaleoffset"}.get(dtype.kind)
        advice = f": use {other}" if other and dtype.kind not in ("iu" if self.kind == "integer" else "f") else ""
        raise ParameterError(f"expected {accepted} for {self}, got {got}{advice}")


def _fill_cd_values(chunk: ChunkType) -> tuple[int, ...]:
    """Return the fill value as 32-bit words, little-endian whatever the byte order of the file."""
    little = chunk.dtype.newbyteorder("<")
    fill = np.frombuffer(chunk.fill or bytes(chunk.dtype.itemsize), chunk.dtype).astype(little).tobytes()
    return tuple(np.frombuffer(fill + bytes(-len(fill) % 4), "<u4").tolist())
