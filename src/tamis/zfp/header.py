"""The header of a self-describing stream."""

from __future__ import annotations

import operator
import sys
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from tamis import _native
from tamis.arguments import BYTES, DTYPE, DTYPE_LIKE, RANK, WHOLES
from tamis.errors import DataError, ParameterError, StreamError
from tamis.zfp.modes import Accuracy, Mode, as_mode, is_lossless, mode_of, native_type

DTYPES = ("int32", "int64", "float32", "float64", "uint32", "uint64")
MAX_RANK = _native.max_rank

BLOCK_SIDE = _native.block_side
"""Values of a block along each axis."""


def max_extent(rank: int) -> int:
    """Return the longest extent that the ZFP header can store, with `rank` axes."""
    RANK.check("rank", rank)
    return int(1 << 48 // rank)


def check_dtype(dtype: np.dtype[Any]) -> None:
    """Raise ParameterError unless ZFP supports the type."""
    if dtype.name not in DTYPES:
        raise ParameterError(
            f"expected int32, int64, float32 or float64 values, got {dtype}: convert them, or use a lossless filter"
        )


def check_encodable(dtype: np.dtype[Any], mode: Mode) -> None:
    """Raise ParameterError if ZFP does not support the type, or the mode does not work for it."""
    DTYPE.check("dtype", dtype)
    check_dtype(dtype)
    if dtype.kind == "u" and not is_lossless(mode):
        raise ParameterError(
            f"expected signed integers or floats in a lossy mode, got {dtype} with {mode}: values near 0 would wrap;"
            " use reversible=True or a signed type"
        )
    if dtype.kind == "i" and isinstance(mode, Accuracy) and mode.tolerance < 1:
        raise ParameterError(
            f"expected an accuracy of 1 or more for {dtype}, got {mode}: the lossy transform does not make integers"
            " exact; use reversible=True"
        )


def check_shape(shape: tuple[int, ...]) -> None:
    """Raise ParameterError unless there are 1 to 4 axes with values."""
    if not 1 <= len(shape) <= MAX_RANK:
        raise ParameterError(f"expected 1 to 4 axes, got shape {shape}: reshape or squeeze the array first")
    if any(extent < 1 for extent in shape):
        raise ParameterError(f"expected at least one value along each axis, got shape {shape}")


def check_threads(threads: int) -> int:
    """Return the number of threads, limited to what the codec accepts; raise ParameterError if it is below 1."""
    try:
        count = 0 if isinstance(threads, bool) else operator.index(threads)
    except TypeError:
        count = 0
    if count < 1:
        raise ParameterError(f"expected 1 or more threads, got threads={threads!r}")
    return min(count, sys.maxsize)


def refuse(failure: _native.Failure, dtype: np.dtype[Any], shape: tuple[int, ...], mode: Mode) -> NoReturn:
    """Raise the error for a failure of the native codec."""
    if failure.code in ("non_finite", "integer_range"):
        index = tuple(int(i) for i in np.unravel_index(failure.where, shape))
        limit = 30 if dtype.itemsize == 4 else 62
        expected = "finite values" if failure.code == "non_finite" else f"integers of magnitude below 2^{limit}"
        value = "NaN or infinity" if failure.code == "non_finite" else "a larger one"
        raise DataError(f"expected {expected} with {mode}, found {value} at index {index}: use reversible=True")
    if failure.code in ("beyond_tolerance", "fill_value"):
        index = tuple(int(i) for i in np.unravel_index(failure.where, shape))
        promise = "tolerance" if failure.code == "beyond_tolerance" else "fill value, which stands for missing values,"
        raise DataError(
            f"{mode} cannot keep the {promise} at index {index} next to the other values: use "
            "reversible=True, or an optional filter, which is left out of such a chunk"
        )
    if failure.code == "changed":
        raise DataError("another thread changed values while they were encoded: encode a copy")
    if failure.code == "truncated":
        raise StreamError(f"stream is truncated or damaged: it ends inside block {failure.where} of shape {shape}")
    if failure.code == "maxbits_small":
        raise ParameterError(f"expected maxbits of at least {failure.where} for {dtype}, got {mode}")
    if failure.code == "extent_large":
        raise ParameterError(
            f"expected extents of at most {max_extent(len(shape))} with {len(shape)} axes, which the ZFP header holds,"
            f" got shape {shape}"
        )
    raise ParameterError(f"cannot encode {dtype} of shape {shape} with {mode}: {failure.code}")


Bytes = bytes | bytearray | memoryview


def as_view(buffer: Bytes) -> memoryview:
    """Return the bytes of a buffer; copied only if they are not contiguous."""
    try:
        view = memoryview(buffer)
        return view.cast("B") if view.c_contiguous else memoryview(view.tobytes())
    except (TypeError, ValueError):
        raise BYTES.error("buffer", buffer) from None


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a self-describing stream.

    Parameters
    ----------
    dtype
        int32, int64, float32 or float64.
    shape
        Slowest axis first. Each extent is at most 2^48, 2^24, 65536 or 4096 for 1, 2, 3 or 4 axes.
    mode
        The stored mode, with the tolerance or rate as rounded on writing.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    mode: Mode

    def pack(self) -> bytes:
        """Return the header in whole bytes, 12 or 19.

        Raises
        ------
        ParameterError
            If an extent does not fit, or ZFP does not support the type or number of axes.
        """
        DTYPE_LIKE.check("dtype", self.dtype)
        WHOLES.check("shape", self.shape)
        dtype, mode = np.dtype(self.dtype), as_mode(self.mode)
        check_dtype(dtype)
        check_shape(self.shape)
        params = mode.params(dtype, len(self.shape))
        packed = _native.pack_header(native_type(dtype), list(self.shape), params)
        return packed if isinstance(packed, bytes) else refuse(packed, dtype, self.shape, mode)

    @classmethod
    def unpack(cls, buffer: Bytes) -> Header:
        """Read the header at the start of a buffer.

        Raises
        ------
        StreamError
            If there is no header, or one of another codec version.
        """
        return unpack(buffer)[0]


def unpack(buffer: Bytes) -> tuple[Header, int]:
    """Return the header at the start of a buffer and its bits, 96 or 148; the stream follows directly."""
    fields = _native.unpack_header(bytes(as_view(buffer)[:20]))
    if isinstance(fields, _native.Failure):
        if fields.code == "codec_version":
            raise StreamError(f"expected ZFP codec 5, got a header of codec {fields.where}")
        if fields.code == "not_a_header":
            raise StreamError("expected a ZFP header ('zfp', codec 5) at the start of the stream, found none")
        raise StreamError(f"ZFP header is damaged: no block can have its parameters ({fields.code})")
    native_type, shape, params, nbits = fields
    return Header(np.dtype(native_type.name), tuple(shape), mode_of(params, len(shape))), nbits
