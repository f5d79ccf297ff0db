"""Small types promoted to those that ZFP encodes, and demoted again, as the registered Zarr codec defines it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis import zfp
from tamis.errors import DataError, ParameterError

_NAMES = ("float32", "float64", "float16", "int32", "int64", "uint32", "uint64", "int16", "uint16", "int8", "uint8")


def encoded_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which ZFP encodes values of a type.

    Raises
    ------
    ParameterError
        If the registered codec does not define one.
    """
    if dtype.name not in _NAMES:
        raise ParameterError(
            f"expected one of {', '.join(_NAMES)} for the Zarr codec zfp, got {dtype}: use a lossless codec"
        )
    if dtype.itemsize >= 4:
        return np.dtype(dtype.name.removeprefix("u"))
    return np.dtype("f4" if dtype.kind == "f" else "i4")


def as_declared(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the values of a chunk in the type that its array has there, as zarr-python's own codec ``bytes`` does.

    A codec in front may hand on another type of the same size: BitRound of numcodecs gives the bits of floats.

    Raises
    ------
    ParameterError
        If the type has another size.
    """
    if values.dtype.kind == dtype.kind and values.dtype.itemsize == dtype.itemsize:
        return values
    if values.dtype.itemsize != dtype.itemsize:
        raise ParameterError(
            f"expected values of {dtype} from the codec in front, got {values.dtype}: put it behind, or leave it out"
        )
    return values.view(dtype.newbyteorder("=" if values.dtype.isnative else "S"))


def promote(values: NDArray[Any]) -> NDArray[Any]:
    """Return values in the type that ZFP encodes.

    Raises
    ------
    DataError
        If a value of uint32 or uint64 is too large for the signed type; names the index of the first.
    """
    target, nbits = encoded_type(values.dtype), 8 * values.dtype.itemsize
    if values.dtype.kind == "f":
        return values.astype(target, copy=False)
    if nbits >= 32:
        largest = np.iinfo(target).max
        if values.dtype.kind == "u" and values.size and values.max() > largest:
            index = tuple(int(i) for i in np.argwhere(values > largest)[0])
            raise DataError(
                f"expected {values.dtype} up to {largest} for the Zarr codec zfp, which stores {target}, found"
                f" {values[index]} at index {index}: use a lossless codec such as bytes|zstd"
            )
        return values.astype(target, copy=False)
    offset = 1 << (nbits - 1) if values.dtype.kind == "u" else 0
    return (values.astype(target) - offset) << (31 - nbits)


def demote(values: NDArray[Any], dtype: np.dtype[Any], mode: zfp.Mode) -> NDArray[Any]:
    """Undo `promote` for decoded values, limited to what the type can hold."""
    nbits = 8 * dtype.itemsize
    if dtype.kind == "f":
        with np.errstate(over="ignore"):  # beyond float16: an infinity
            return values.astype(dtype, copy=False)
    if nbits >= 32:
        if dtype.kind == "u" and not zfp.is_lossless(mode):
            values = np.maximum(values, 0)
        return values.view(dtype)
    offset = 1 << (nbits - 1) if dtype.kind == "u" else 0
    limits = np.iinfo(dtype)
    clipped: NDArray[Any] = np.clip((values >> (31 - nbits)) + offset, limits.min, limits.max)
    return clipped.astype(dtype)
