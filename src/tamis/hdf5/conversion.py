"""Convert bytes of a file to NumPy values: records, text, booleans and enumerations of a fixed size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from h5py import h5t
from numpy.typing import NDArray

from tamis.hdf5.stored_array import Hdf5Array


@dataclass(frozen=True, slots=True)
class Conversion:
    """A conversion of stored bytes to the values that h5py returns.

    Parameters
    ----------
    stored
        Type in which chunks are decoded: numbers, or bytes.
    dtype
        Type of the values, as in h5py.
    file_type, memory_type
        Types between which HDF5 converts, encoded; empty if the bytes are the values.
    """

    stored: np.dtype[Any]
    dtype: np.dtype[Any]
    file_type: bytes = b""
    memory_type: bytes = b""

    @classmethod
    def of(cls, array: Hdf5Array) -> Self | None:
        """Return the conversion of a dataset; None if values are elsewhere in the file, or references to it."""
        stored, dtype = array.dtype, array.numpy_type
        if stored is None or dtype is None:
            return None
        file_type, memory_type = array.datatype, h5t.py_create(dtype)
        if array.number_type is not None or memory_type.equal(file_type):
            return cls(stored, dtype)
        return cls(stored, dtype, file_type.encode(), memory_type.encode())

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
