"""Convert bytes of a file to NumPy values: records, text, booleans and enumerations of a fixed size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from h5py import h5t
from numpy.typing import NDArray

from tamis.formats.hdf5.lib.datatypes import memory_type

if TYPE_CHECKING:
    from tamis.formats.hdf5.dataset_facts import DatasetFacts


@dataclass(frozen=True, slots=True)
class Conversion:
    """A conversion of stored bytes to the values that h5py returns."""

    stored: np.dtype[Any]  # Type in which chunks are decoded: numbers, or bytes
    dtype: np.dtype[Any]  # Type of the values, as in h5py
    # Types between which HDF5 converts, encoded; empty if the bytes are the values
    file_type: bytes = b""
    memory_type: bytes = b""

    @classmethod
    def of(cls, array: DatasetFacts) -> Self | None:
        """Return the conversion of a dataset; None if values are elsewhere in the file, or references to it."""
        stored, dtype = array.dtype, array.numpy_type
        if stored is None or dtype is None:
            return None
        file_type = array.datatype
        if array.number_type is not None or _is_padded_with_zeros(file_type):
            return cls(stored, dtype)
        memory = memory_type(file_type, dtype)
        if memory.equal(file_type):
            return cls(stored, dtype)
        return cls(stored, dtype, file_type.encode(), memory.encode())

    @property
    def is_needed(self) -> bool:
        """True if the bytes of a value change."""
        return bool(self.memory_type)

    @property
    def is_plain(self) -> bool:
        """True if chunks decode to the values themselves."""
        return self.stored == self.dtype

    def __call__(self, raw: NDArray[Any]) -> NDArray[Any]:
        """Convert an array of the stored type; axes of the type itself come last."""
        if self.is_plain:
            return raw
        room = np.ascontiguousarray(raw).reshape(-1).view(np.uint8) if raw.size else np.empty(0, np.uint8)
        if self.memory_type and raw.size:
            # HDF5 converts in place, so that the buffer must fit the larger type.
            wider = np.zeros(raw.size * max(self.stored.itemsize, self.dtype.itemsize), np.uint8)
            wider[: room.size] = room
            h5t.convert(h5t.decode(self.file_type), h5t.decode(self.memory_type), raw.size, wider)
            room = wider
        return np.ndarray(raw.shape, self.dtype, room[: raw.size * self.dtype.itemsize])


def _is_padded_with_zeros(datatype: h5t.TypeID) -> bool:
    """Return whether values are texts of a fixed size, as NumPy has them: single characters, or padded with zeros."""
    if not isinstance(datatype, h5t.TypeStringID) or datatype.is_variable_str():
        return False
    padding = datatype.get_strpad()
    return bool(padding == h5t.STR_NULLPAD or (padding == h5t.STR_NULLTERM and datatype.get_size() == 1))
