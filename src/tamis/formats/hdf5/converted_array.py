"""A dataset whose bytes are not its values, as an array of values for other formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.recfunctions import repack_fields
from numpy.typing import NDArray

from tamis.arrays.reader import ArrayReader, ConvertedReader
from tamis.filters import ChunkType
from tamis.formats.hdf5.stored_array import Hdf5Array

if TYPE_CHECKING:
    from tamis.formats.hdf5.lib.quick_facts import QuickFacts


def converted(array: Hdf5Array) -> Hdf5Array:
    """Return a dataset as an array of values; the dataset itself if its bytes are values without gaps."""
    dtype = array.value_type
    if dtype is None or array.conversion is None:
        return array
    packed: np.dtype[Any] = repack_fields(dtype, recurse=True) if dtype.names else dtype
    return ConvertedArray(array, packed) if array.conversion.is_needed or packed != dtype else array


class ConvertedArray(Hdf5Array):
    """A dataset as an array of values: text padded with zeros, records without gaps. No chunk is stored like this."""

    can_read_chunks = False
    contiguous_offset = None
    likeness = None

    def __init__(self, source: Hdf5Array, dtype: np.dtype[Any]) -> None:
        super().__init__(source.file, source.path, address=source.address)
        self._source, self._value_type, self._surveyed = source, dtype, True

    def take(self, facts: QuickFacts) -> None:
        """Do nothing: facts that are read at once are those of the bytes."""

    @property
    def value_type(self) -> np.dtype[Any]:
        """Type of the values."""
        return self._value_type

    @property
    def dtype(self) -> np.dtype[Any]:
        """Bytes of the size of a value."""
        return np.dtype((np.void, self._value_type.itemsize))

    @property
    def value_nbytes(self) -> int:
        """Bytes of a value."""
        return self._value_type.itemsize

    @property
    def chunk(self) -> ChunkType:
        """Type of the values, and shape of a chunk."""
        return ChunkType(self.dtype, self.chunk_shape or ())

    def as_values(self) -> ConvertedArray:
        """Return the array itself."""
        return self

    def fill_bytes(self) -> bytes:
        """Return the bytes of the fill value."""
        return np.asarray(self.fill_value).astype(self._value_type).tobytes()

    def fill_as(self, dtype: np.dtype[Any]) -> Any:
        """Return the fill value as bytes, or as a value."""
        return np.frombuffer(self.fill_bytes(), dtype)[0]

    def open_reader(self, *, independent: bool = False) -> ArrayReader:
        """Open the values as bytes; `independent` reads by h5py."""
        values = self._source.open_witness() if independent else self._source.open_values()
        return ConvertedReader(values, self.dtype, self._bytes_of)

    def open_values(self) -> ArrayReader:
        """Open the values."""
        return ConvertedReader(self._source.open_values(), self._value_type, self._packed)

    def _packed(self, values: NDArray[Any]) -> NDArray[Any]:
        return values.astype(self._value_type)

    def _bytes_of(self, values: NDArray[Any]) -> NDArray[Any]:
        return np.array(values, self._value_type, order="C").view(self.dtype)
