"""Filter 5: only the bits that a type uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tamis import _native
from tamis.errors import ParameterError
from tamis.filters._framing import decoded, encoded
from tamis.filters.base import ChunkType, Data, Wordless, is_enum

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
        kind, *rest = _described(chunk.dtype)
        # HDF5 describes no type that is opaque as a whole, such as an enumeration.
        cd_values = () if kind == _OPAQUE else (kind, *rest)
        return (3 + len(cd_values), int(not _leaves_bits_out(chunk.dtype)), chunk.size, *cd_values)

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Pack."""
        return encoded(self.name, _native.nbit_encode(data, stored))

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Unpack."""
        return decoded(self.name, _native.nbit_decode(data, stored, chunk.nbytes), stored)

    def in_words(self, stored: tuple[int, ...] = ()) -> str:
        """Return how many bits are kept, if the type is a number."""
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
