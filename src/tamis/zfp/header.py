"""The header of a self-describing stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis import _native
from tamis.errors import StreamError
from tamis.zfp.checks import check_dtype, check_shape, refuse
from tamis.zfp.modes import Mode, as_mode, mode_of, native_type

Bytes = bytes | bytearray | memoryview


def as_view(buffer: Bytes) -> memoryview:
    """Return the bytes of a buffer; copied only if they are not contiguous."""
    view = memoryview(buffer)
    return view.cast("B") if view.c_contiguous else memoryview(view.tobytes())


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
