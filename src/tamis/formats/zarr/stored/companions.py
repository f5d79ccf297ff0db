"""Companions of missing values in Zarr hierarchies: docs/missing.md.

JSON would lose the bits of NaN, so the table of a companion has each missing value as the hexadecimal digits of its
bytes, little-endian.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tamis.arrays.reader import put
from tamis.errors import FileError
from tamis.meaning.companions import (
    ANCILLARY,
    MARK,
    TABLE,
    CompanionFlags,
    companion_paths,
    other_ancillary,
    without_companion,
)
from tamis.meaning.missing import MOST_FLAGS, Flags, can_flag
from tamis.stores.protocols import StoredArray

if TYPE_CHECKING:
    from tamis.arrays.grid import Region


class ZarrReader:
    """A Zarr array part by part; see `tamis.arrays.reader.ArrayReader`."""

    def __init__(self, array: Any, label: str, dtype: np.dtype[Any]) -> None:
        self._array, self._label = array, label
        self.shape, self.dtype = tuple(array.shape), dtype
        self.chunk_shape: tuple[int, ...] | None = tuple(array.chunks) if array.shape else None

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read a part; raises FileError if zarr-python cannot."""
        if self._array is None:
            raise FileError(f"{self._label}: expected an open array, got one that was closed")
        try:
            values = np.asarray(self._array[part] if part else self._array[...], self._array.dtype)
        except Exception as error:  # codecs and stores raise many kinds
            raise FileError(f"{self._label}: cannot be read: {error}") from error
        if values.dtype != self.dtype and self.dtype.kind == "V" and not self.dtype.names:
            values = np.array(values, values.dtype.newbyteorder("="), order="C").view(self.dtype)
        return put(values.astype(self.dtype, copy=False), out)

    def close(self) -> None:
        """Release the array; running reads finish first."""
        self._array = None


A = TypeVar("A", bound=StoredArray)


def table_text(flags: Flags) -> list[str]:
    """Return the table of a companion as texts."""
    return [value.tobytes().hex() for value in flags.values.astype(flags.values.dtype.newbyteorder("<"))]


def find_companion(variable: StoredArray, path: str, arrays: Mapping[str, A]) -> A:
    """Return the companion of an array that names one, from its own group first, because groups may have been moved."""
    own_path, other_path = companion_paths(variable.path, path)
    companion = arrays.get(own_path) or arrays.get(other_path)
    if companion is None or companion.has_companion:
        raise FileError(
            f"{variable.label}: its missing values are in the companion {path!r}, which does not exist: restore or"
            " rename it"
        ).at(dataset=variable.path)
    if companion.number_type != np.uint8 or len(companion.shape) != len(variable.shape):
        raise FileError(
            f"{companion.label}: damaged, or not a companion of {variable.path}: expected uint8 with"
            f" {len(variable.shape)} axes, found {companion.type_text} of shape {companion.shape}"
        ).at(dataset=companion.path)
    return companion


def read_flags(variable: StoredArray, companion: StoredArray, table: Any) -> CompanionFlags:
    """Return the flags of a companion, with their meaning."""
    dtype = variable.number_type
    refusal = f"{companion.label}: damaged, or not a companion of {variable.path}: expected"
    if dtype is None or not can_flag(dtype):
        raise FileError(f"{refusal} it to have numbers of 1, 2, 4 or 8 bytes, found {variable.type_text}")
    try:
        data = [bytes.fromhex(item) for item in table] if isinstance(table, list) else []
    except (TypeError, ValueError):
        data = []
    if not 0 < len(data) <= MOST_FLAGS or any(len(item) != dtype.itemsize for item in data):
        raise FileError(f"{refusal} {TABLE!r} to have up to {MOST_FLAGS} values of {dtype}, found {table!r:.80}")
    values = np.frombuffer(b"".join(data), dtype.newbyteorder("<")).astype(dtype)
    return CompanionFlags(Flags(values), companion.label, companion.path, companion.shape)


def own_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of an array without references to its companion."""
    others = other_ancillary(str(attributes.get(ANCILLARY, "")), str(attributes.get(MARK, "")))
    return without_companion(attributes, others)
