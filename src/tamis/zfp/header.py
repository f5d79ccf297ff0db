"""The header of a self-describing stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis import _native
from tamis.errors import StreamError
from tamis.zfp.checks import check_dtype, refuse
from tamis.zfp.modes import Mode, mode_of, native_type

Bytes = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Header:
    """What opens a self-describing stream.

    Parameters
    ----------
    dtype
        int32, int64, float32 or float64.
    shape
        Slowest axis first. Each extent is at most 2^48, 2^24, 65536 or 4096 for 1, 2, 3 or 4 axes.
    mode
        The mode as stored: a tolerance or rate that was rounded when it was written is given as rounded.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    mode: Mode

    @property
    def nbits(self) -> int:
        """Bits of the header, 96 or 148; the stream follows at once."""
        return 96 if len(self.pack()) == 12 else 148

    def pack(self) -> bytes:
        """Return the header in whole bytes, 12 or 19.

        Raises
        ------
        ParameterError
            If an extent does not fit.
        """
        dtype = np.dtype(self.dtype)
        check_dtype(dtype)
        params = self.mode.params(dtype, len(self.shape))
        packed = _native.pack_header(native_type(dtype), list(self.shape), params)
        return packed if isinstance(packed, bytes) else refuse(packed, dtype, self.shape, self.mode)

    @classmethod
    def unpack(cls, buffer: Bytes) -> Header:
        """Read the header at the start of a buffer.

        Raises
        ------
        StreamError
            If there is none, or it is one of another codec.
        """
        fields = _native.unpack_header(bytes(memoryview(buffer).cast("B")[:20]))
        if isinstance(fields, _native.Failure):
            if fields.code == "codec_version":
                raise StreamError(f"expected ZFP codec 5, got a header of codec {fields.where}")
            raise StreamError("expected a ZFP header ('zfp', codec 5) at the start of the stream, found none")
        native_type, shape, params, _ = fields
        return cls(np.dtype(native_type.name), tuple(shape), mode_of(params, len(shape)))
