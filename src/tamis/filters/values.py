"""The filters of HDF5 that code values, not bytes: nbit and scaleoffset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from tamis import _native
from tamis.errors import DataError, ParameterError, StreamError
from tamis.filters.base import ChunkType, Data, Filter, choice, number

_ATOMIC, _ARRAY, _COMPOUND, _OPAQUE = 1, 2, 3, 4
_DECIMAL, _INTEGER = 0, 2
_KINDS = {"decimal": _DECIMAL, "integer": _INTEGER}
_SCALEOFFSET_WORDS = 20
_FILL_AT = 8  # the first word of the fill value


@dataclass(frozen=True, slots=True)
class Nbit(Filter):
    """Filter 5: only the bits that a type of HDF5 uses; no type of numpy leaves any out but the longest floats."""

    id: ClassVar[int] = 5
    name: ClassVar[str] = "nbit"
    registered_name: ClassVar[str] = "nbit"
    about: ClassVar[str] = "drops bits that the type does not use"
    needs_values: ClassVar[bool] = True

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Take any: they describe the type, and HDF5 fills them in."""
        return cls()

    @property
    def requested(self) -> tuple[int, ...]:
        """None: HDF5 fills them in."""
        return ()

    def stored(self, chunk: ChunkType) -> tuple[int, ...]:
        """Return their number, whether no bit is left out, values of a chunk, and the type.

        Raises
        ------
        ParameterError
            If values have no fixed size.
        """
        kind, *rest = _type_words(chunk.dtype)
        # HDF5 says nothing of a type that is opaque as a whole.
        words = () if kind == _OPAQUE else (kind, *rest)
        return (3 + len(words), int(not _leaves_bits_out(chunk.dtype)), chunk.size, *words)

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Pack."""
        return _encoded(self.name, _native.nbit_encode(data, stored))

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Unpack."""
        return _decoded(self.name, _native.nbit_decode(data, stored, chunk.nbytes), stored)

    def in_words(self, stored: tuple[int, ...] = ()) -> str:
        """Say what is left out, where the type is a number."""
        if len(stored) == 8 and stored[3] == _ATOMIC and not stored[1]:
            return f"nbit, {stored[6]} of {8 * stored[4]} bits"
        return "nbit, all bits" if len(stored) > 1 and stored[1] else "nbit"


@dataclass(frozen=True, slots=True)
class Scaleoffset(Filter):
    """Filter 6: differences from the smallest value of a chunk, in as few bits as they take.

    Parameters
    ----------
    kind
        ``integer`` for integers; ``decimal`` for floats, which it rounds.
    factor
        Bits of an integer, 0 for as many as it takes: fewer lose values. Decimal digits behind the point of a float.
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
        """Read requested parameters, kind and factor, or stored ones, which go on."""
        if len(values) not in (2, _SCALEOFFSET_WORDS):
            raise ParameterError(f"expected kind and factor of scaleoffset, or 20 parameters as stored, got {values}")
        names = {word: name for name, word in _KINDS.items()}
        if values[0] not in names:
            raise ParameterError(f"expected 0 (decimal) or 2 (integer) as the kind of scaleoffset, got {values[0]}")
        return cls(names[values[0]], values[1] - (values[1] >> 31 << 32))

    @property
    def requested(self) -> tuple[int, ...]:
        """Kind and factor, a negative one in two's complement."""
        return (_KINDS[self.kind], self.factor & 0xFFFFFFFF)

    @property
    def error_bound(self) -> float | None:
        """One unit of the last decimal digit, which leaves room for rounding; integers keep theirs."""
        return 0.0 if self.kind == "integer" else 10.0 ** -max(self.factor, -300)

    def stored(self, chunk: ChunkType) -> tuple[int, ...]:
        """Return kind, factor, values of a chunk, their class, size, sign and byte order, and the fill value.

        Raises
        ------
        ParameterError
            If the values are none that this kind is for.
        """
        dtype = chunk.dtype
        if dtype.kind not in ("iu" if self.kind == "integer" else "f") or dtype.itemsize not in (1, 2, 4, 8):
            self._refuse(dtype)
        if dtype.kind == "f" and dtype.itemsize < 4:
            self._refuse(dtype)
        if self.kind == "integer" and self.factor > 8 * dtype.itemsize:
            raise ParameterError(f"expected at most {8 * dtype.itemsize} bits of {dtype}, got {self}")
        floats, signed, big = dtype.kind == "f", dtype.kind == "i", dtype.str.startswith(">")
        numbers = (*self.requested, chunk.size, int(floats), dtype.itemsize, int(signed), int(big), 1)
        words = numbers + _fill_words(chunk)
        return words + (0,) * (_SCALEOFFSET_WORDS - len(words))

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Encode. Raises DataError where a value cannot be represented."""
        return _encoded(self.name, _native.scaleoffset_encode(data, stored))

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Decode."""
        return _decoded(self.name, _native.scaleoffset_decode(data, stored, chunk.nbytes), stored)

    def in_words(self, stored: tuple[int, ...] = ()) -> str:
        """Say what is kept."""
        if self.kind == "decimal":
            return f"scaleoffset, {self.factor} decimal digits"
        return f"scaleoffset, integers, {f'{self.factor} bits' if self.factor else 'bits as needed'}"

    def _refuse(self, dtype: np.dtype[Any]) -> None:
        wanted = "integers of 1, 2, 4 or 8 bytes" if self.kind == "integer" else "float32 or float64"
        raise ParameterError(f"expected {wanted} for {self}, got {dtype}")


def _fill_words(chunk: ChunkType) -> tuple[int, ...]:
    """Bytes of the fill value, the lowest first whatever the order of the file, in words."""
    little = chunk.dtype.newbyteorder("<")
    fill = np.frombuffer(chunk.fill or bytes(chunk.dtype.itemsize), chunk.dtype).astype(little).tobytes()
    return tuple(np.frombuffer(fill + bytes(-len(fill) % 4), "<u4").tolist())


def _type_words(dtype: np.dtype[Any]) -> Iterator[int]:
    """Type as nbit describes it: class and size, then what the class needs."""
    if dtype.subdtype is not None:
        yield from (_ARRAY, dtype.itemsize)
        yield from _type_words(dtype.subdtype[0])
    elif dtype.kind == "O":
        raise ParameterError(f"expected values of a fixed size for nbit, got {dtype}")
    elif dtype.kind in "iuf":
        yield from (_ATOMIC, dtype.itemsize, int(dtype.str.startswith(">")), _precision(dtype), 0)
    elif members := list(_members(dtype)):
        yield from (_COMPOUND, dtype.itemsize, len(members))
        for offset, member in members:
            yield offset
            yield from _type_words(member)
    else:
        yield from (_OPAQUE, dtype.itemsize)


def _members(dtype: np.dtype[Any]) -> Iterator[tuple[int, np.dtype[Any]]]:
    """Offsets and types of the members of a compound, which HDF5 makes of complex numbers too."""
    if dtype.kind == "c":
        half = np.dtype(f"{dtype.str[0]}f{dtype.itemsize // 2}")
        yield from ((0, half), (half.itemsize, half))
    for name in dtype.names or ():
        member, offset = dtype.fields[name][:2]  # type: ignore[index]
        yield offset, member


def _precision(dtype: np.dtype[Any]) -> int:
    """Bits that a number takes: long floats of x86 leave some of their bytes unused."""
    if dtype.kind == "f" and dtype.itemsize > 8:
        info = np.finfo(dtype)
        return 80 if info.nmant == 63 else 8 * dtype.itemsize
    return 8 * dtype.itemsize


def _leaves_bits_out(dtype: np.dtype[Any]) -> bool:
    if dtype.subdtype is not None:
        return _leaves_bits_out(dtype.subdtype[0])
    if dtype.kind in "iuf":
        return _precision(dtype) < 8 * dtype.itemsize
    return any(_leaves_bits_out(member) for _, member in _members(dtype))


def _encoded(name: str, made: bytes | _native.Failure) -> bytes:
    if isinstance(made, _native.Failure):
        raise DataError(f"{name} cannot take these values: {made.code.replace('_', ' ')}, at {made.where}")
    return made


def _decoded(name: str, made: bytes | _native.Failure, stored: tuple[int, ...]) -> bytes:
    if isinstance(made, _native.Failure):
        raise StreamError(
            f"{name} chunk or its parameters are damaged: {made.code.replace('_', ' ')}, at {made.where}, parameters"
            f" {','.join(map(str, stored))}"
        )
    return made
