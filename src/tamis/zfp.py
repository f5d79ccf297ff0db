"""The ZFP codec: arrays to streams and back, byte for byte as libzfp 1.0 writes them.

A stream made by `encode` has no header: shape, type and mode must be known to read it, as they are inside an HDF5 or
Zarr chunk. `encode_with_header` makes the self-describing form that the ``zfp`` program and zfpy exchange.

Arrays have 1 to 4 axes. int32, int64, float32 and float64 are coded; uint32 and uint64 in reversible mode only. All
functions are safe in threads and release the interpreter's lock while bits are coded.

References
----------
P. Lindstrom, "Fixed-Rate Compressed Floating-Point Arrays", IEEE TVCG 20(12), 2014, doi:10.1109/TVCG.2014.2346458.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tamis import _native
from tamis.errors import DataError, ParameterError, StreamError

__all__ = [
    "Accuracy",
    "Expert",
    "Header",
    "Mode",
    "Precision",
    "Rate",
    "Reversible",
    "decode",
    "decode_with_header",
    "encode",
    "encode_with_header",
    "mode",
]

Bytes = bytes | bytearray | memoryview

DTYPES = ("int32", "int64", "float32", "float64", "uint32", "uint64")
MAX_RANK = 4
_MIN_EXP = -1074


@dataclass(frozen=True, slots=True)
class Rate:
    """Fixed size: each value takes `rate` bits on average, each block the same number of bits.

    Parameters
    ----------
    rate
        Bits per value, above 0. Stored to the nearest whole number of bits per block of 4^d values; float blocks take
        9 bits at least, double blocks 12.
    """

    rate: float

    def __post_init__(self) -> None:
        if not (_is_number(self.rate) and 0 < self.rate < math.inf):
            raise ParameterError(f"expected a finite rate above 0 bits per value, got rate={self.rate!r}")

    def params(self, dtype: np.dtype[Any], rank: int) -> _native.Params:
        """Numbers for the native codec."""
        return _made(_native.rate_params(float(self.rate), _native_type(dtype), rank), f"rate={self.rate!r}")

    def __str__(self) -> str:
        return f"rate={self.rate!r}"


@dataclass(frozen=True, slots=True)
class Precision:
    """A number of bit planes: a bound relative to the largest value of each block.

    Parameters
    ----------
    precision
        Bit planes kept per block, 1 to 64.
    """

    precision: int

    def __post_init__(self) -> None:
        if not (_is_integer(self.precision) and 1 <= self.precision <= 64):
            raise ParameterError(f"expected a precision of 1 to 64 bit planes, got precision={self.precision!r}")

    def params(self, dtype: np.dtype[Any], rank: int) -> _native.Params:
        """Numbers for the native codec."""
        return _made(_native.precision_params(int(self.precision)), str(self))

    def __str__(self) -> str:
        return f"precision={self.precision!r}"


@dataclass(frozen=True, slots=True)
class Accuracy:
    """A bound on the absolute error of every value.

    Parameters
    ----------
    tolerance
        Largest absolute error, in units of the data, above 0 and finite; at least 1 for integers. The codec rounds it
        down to a power of two.
    """

    tolerance: float

    def __post_init__(self) -> None:
        if _is_number(self.tolerance) and self.tolerance == 0:
            raise ParameterError("expected an accuracy above 0, got accuracy=0: use reversible=True to keep every bit")
        if not (_is_number(self.tolerance) and 0 < self.tolerance < math.inf):
            raise ParameterError(f"expected a finite accuracy above 0, got accuracy={self.tolerance!r}")

    @property
    def effective(self) -> float:
        """The power of two that is kept to."""
        return math.ldexp(1.0, math.frexp(self.tolerance)[1] - 1)

    def params(self, dtype: np.dtype[Any], rank: int) -> _native.Params:
        """Numbers for the native codec."""
        if dtype.kind in "iu" and self.tolerance < 1:
            raise ParameterError(
                f"expected an accuracy of 1 or more for {dtype}, got {self}: the lossy transform does not make integers"
                " exact; use reversible=True"
            )
        return _made(_native.accuracy_params(float(self.tolerance)), str(self))

    def __str__(self) -> str:
        return f"accuracy={self.tolerance!r}"


@dataclass(frozen=True, slots=True)
class Expert:
    """All four numbers of the codec.

    Parameters
    ----------
    minbits, maxbits
        Bits per block, at least and at most; maxbits must hold the header of a block (9 bits for float32, 12 for
        float64, more where minexp makes the stream reversible).
    maxprec
        Bit planes per block at most, 1 to 64.
    minexp
        Exponent of the lowest bit plane that is kept; below -1074 the stream is reversible.
    """

    minbits: int = 1
    maxbits: int = 16658
    maxprec: int = 64
    minexp: int = _MIN_EXP

    def __post_init__(self) -> None:
        given = (self.minbits, self.maxbits, self.maxprec, self.minexp)
        if not all(_is_integer(number) for number in given):
            raise ParameterError(f"expected whole numbers in expert mode, got {self}")
        if not (
            0 <= self.minbits <= self.maxbits < 1 << 32
            and self.minbits <= 1 << 15
            and self.maxbits > 0
            and 1 <= self.maxprec <= 64
            and -(1 << 31) <= self.minexp < 1 << 31
        ):
            raise ParameterError(
                "expected 0 <= minbits <= maxbits, minbits <= 32768, maxbits >= 1, maxprec 1 to 64 and a 32-bit minexp,"
                f" got {self}"
            )

    def params(self, dtype: np.dtype[Any], rank: int) -> _native.Params:
        """Numbers for the native codec."""
        return _made(_native.expert_params(self.minbits, self.maxbits, self.maxprec, self.minexp), str(self))

    def __str__(self) -> str:
        return f"minbits={self.minbits}, maxbits={self.maxbits}, maxprec={self.maxprec}, minexp={self.minexp}"


@dataclass(frozen=True, slots=True)
class Reversible:
    """Lossless: every bit is kept, NaN, infinities and -0.0 included."""

    def params(self, dtype: np.dtype[Any], rank: int) -> _native.Params:
        """Numbers for the native codec."""
        return _native.reversible_params()

    def __str__(self) -> str:
        return "reversible=True"


Mode = Rate | Precision | Accuracy | Expert | Reversible


def mode(
    *,
    rate: float | None = None,
    precision: int | None = None,
    accuracy: float | None = None,
    reversible: bool = False,
    minbits: int | None = None,
    maxbits: int | None = None,
    maxprec: int | None = None,
    minexp: int | None = None,
) -> Mode:
    """Make the one mode that the arguments name.

    Parameters
    ----------
    rate, precision, accuracy, reversible
        See `Rate`, `Precision`, `Accuracy` and `Reversible`.
    minbits, maxbits, maxprec, minexp
        Any of them: see `Expert`, which gives the defaults of the others.

    Raises
    ------
    ParameterError
        If there is no mode or more than one, or its numbers are out of range.
    """
    expert = {"minbits": minbits, "maxbits": maxbits, "maxprec": maxprec, "minexp": minexp}
    expert_given = {name: value for name, value in expert.items() if value is not None}
    if reversible not in (True, False):
        raise ParameterError(f"expected reversible=True or False, got reversible={reversible!r}")
    modes: list[tuple[str, Any]] = []
    if rate is not None:
        modes.append(("rate", lambda: Rate(rate)))
    if precision is not None:
        modes.append(("precision", lambda: Precision(precision)))
    if accuracy is not None:
        modes.append(("accuracy", lambda: Accuracy(accuracy)))
    if reversible:
        modes.append(("reversible", Reversible))
    if expert_given:
        modes.append((f"expert ({', '.join(expert_given)})", lambda: Expert(**expert_given)))
    if len(modes) != 1:
        got = " and ".join(name for name, _ in modes) or "none"
        raise ParameterError(f"expected exactly one ZFP mode, got {got}")
    made: Mode = modes[0][1]()
    return made


def mode_of(params: _native.Params, rank: int) -> Mode:
    """Name the mode that the codec's four numbers stand for, as libzfp classes them."""
    numbers = Expert(params.minbits, params.maxbits, params.maxprec, params.minexp)
    any_size = params.minbits <= 1 and params.maxbits >= 16658
    if any_size and params.maxprec == 64 and params.minexp < _MIN_EXP:
        return Reversible()
    if numbers == Expert():
        return numbers
    if params.minbits == params.maxbits and params.maxprec == 64 and params.minexp == _MIN_EXP:
        return Rate(params.maxbits / 4**rank)
    if any_size and params.minexp == _MIN_EXP:
        return Precision(params.maxprec)
    if any_size and params.maxprec == 64 and params.minexp <= 1023:
        return Accuracy(math.ldexp(1.0, params.minexp))
    return numbers


def encode(array: ArrayLike, mode: Mode) -> bytes:
    """Encode an array without a header, as a chunk holds it.

    Parameters
    ----------
    array
        1 to 4 axes, slowest first, any strides; not changed and, in native byte order, not copied.
    mode
        How to encode.

    Returns
    -------
    bytes
        The stream in whole bytes; libzfp with 64-bit words adds up to seven zero bytes.

    Raises
    ------
    DataError
        If a lossy mode meets NaN, an infinity or an integer beyond 2^30 (int32) or 2^62 (int64); names the first.
    ParameterError
        If the type, number of axes or mode is not one that ZFP can take.
    """
    return _encode(array, mode, with_header=False)


def encode_with_header(array: ArrayLike, mode: Mode) -> bytes:
    """Encode an array with the header that describes it, as ``zfp -h`` and ``zfpy.compress_numpy`` do.

    See `encode`. The result is a whole number of 64-bit words long, as libzfp's default build reads them.
    """
    stream = _encode(array, mode, with_header=True)
    return stream + bytes(-len(stream) % 8)


def decode(
    buffer: Bytes,
    shape: tuple[int, ...],
    dtype: DTypeLike,
    mode: Mode,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Decode a stream that has no header.

    Parameters
    ----------
    buffer
        The stream. Bytes after its end are not looked at.
    shape, dtype, mode
        Those of the encoded array.
    out
        Array to fill, of that shape and dtype, any strides. Its contents are undefined after an error.

    Returns
    -------
    numpy.ndarray
        `out`, or a new array in C order.

    Raises
    ------
    StreamError
        If the stream ends before the array does; names the block.
    ParameterError
        If shape, dtype or mode is not one that ZFP can take, or `out` does not fit.
    """
    return _decode(buffer, tuple(shape), _checked_dtype(np.dtype(dtype), mode), mode, out, start=0)


def decode_with_header(buffer: Bytes, out: NDArray[Any] | None = None) -> NDArray[Any]:
    """Decode a stream that begins with a ZFP header, from tamis, zfpy or the ``zfp`` program.

    See `decode`.
    """
    header = Header.unpack(buffer)
    return _decode(buffer, header.shape, header.dtype, header.mode, out, start=header.nbits)


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
        dtype = _checked_dtype(np.dtype(self.dtype), self.mode)
        params = self.mode.params(dtype, len(self.shape))
        packed = _native.pack_header(_native_type(dtype), list(self.shape), params)
        return packed if isinstance(packed, bytes) else _refuse(packed, dtype, self.shape, self.mode)

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


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _is_integer(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _native_type(dtype: np.dtype[Any]) -> _native.Type:
    return _native.Type[dtype.name.removeprefix("u")]


def _checked_dtype(dtype: np.dtype[Any], mode: Mode) -> np.dtype[Any]:
    if dtype.name not in DTYPES:
        raise ParameterError(
            f"expected int32, int64, float32 or float64 values, got {dtype}: convert them, or use a lossless filter"
        )
    if dtype.kind == "u" and not _is_reversible(mode):
        raise ParameterError(
            f"expected signed integers or floats in a lossy mode, got {dtype} with {mode}: values near 0 would wrap;"
            " use reversible=True or a signed type"
        )
    return dtype


def _is_reversible(mode: Mode) -> bool:
    return isinstance(mode, Reversible) or (isinstance(mode, Expert) and mode.minexp < _MIN_EXP)


def _check_shape(shape: tuple[int, ...]) -> None:
    if not 1 <= len(shape) <= MAX_RANK:
        raise ParameterError(f"expected 1 to 4 axes, got shape {shape}: reshape or squeeze the array first")
    if any(extent < 1 for extent in shape):
        raise ParameterError(f"expected at least one value along each axis, got shape {shape}")


def _signed(array: NDArray[Any]) -> NDArray[Any]:
    return array.view(array.dtype.name.removeprefix("u"))


def _encode(array: ArrayLike, mode: Mode, *, with_header: bool) -> bytes:
    values = np.asarray(array)
    dtype = _checked_dtype(values.dtype, mode)
    _check_shape(values.shape)
    if not (dtype.isnative and values.flags.aligned and all(step % dtype.itemsize == 0 for step in values.strides)):
        values = np.ascontiguousarray(values, dtype.newbyteorder("="))
    params = mode.params(dtype, values.ndim)
    stream = _native.encode(_signed(values), params, with_header)
    return stream if isinstance(stream, bytes) else _refuse(stream, dtype, values.shape, mode)


def _decode(
    buffer: Bytes, shape: tuple[int, ...], dtype: np.dtype[Any], mode: Mode, out: NDArray[Any] | None, start: int
) -> NDArray[Any]:
    _check_shape(shape)
    params = mode.params(dtype, len(shape))
    data = memoryview(buffer).cast("B")
    # A block takes minbits at least: a short stream must not ask for much memory.
    possible = max(len(data) * 8 - start, 0) // params.minbits
    if possible < math.prod(-(-extent // 4) for extent in shape):
        raise StreamError(f"stream of {len(data)} bytes is truncated: it ends inside block {possible} of shape {shape}")
    if out is None:
        out = np.empty(shape, dtype.newbyteorder("="))
    elif out.shape != shape or out.dtype != dtype or not (out.dtype.isnative and out.flags.aligned):
        raise ParameterError(f"expected out of shape {shape} and native {dtype}, got {out.shape} and {out.dtype}")
    elif not out.flags.writeable:
        raise ParameterError("expected out to be writeable, got a read-only array")
    end = _native.decode(data, _signed(out), params, start)
    return out if isinstance(end, int) else _refuse(end, dtype, shape, mode)


def _made(params: _native.Params | _native.Failure, text: str) -> _native.Params:
    if isinstance(params, _native.Failure):
        raise ParameterError(f"expected parameters that give 1 to 32768 bits per block, got {text}")
    return params


def _refuse(failure: _native.Failure, dtype: np.dtype[Any], shape: tuple[int, ...], mode: Mode) -> NoReturn:
    if failure.code in ("non_finite", "integer_range"):
        index = tuple(int(i) for i in np.unravel_index(failure.where, shape))
        limit = 30 if dtype.itemsize == 4 else 62
        expected = "finite values" if failure.code == "non_finite" else f"integers of magnitude below 2^{limit}"
        found = "NaN or infinity" if failure.code == "non_finite" else "a larger one"
        raise DataError(f"expected {expected} with {mode}, found {found} at index {index}: use reversible=True")
    if failure.code == "truncated":
        raise StreamError(f"stream is truncated or damaged: it ends inside block {failure.where} of shape {shape}")
    if failure.code == "maxbits_small":
        raise ParameterError(f"expected maxbits of at least {failure.where} for {dtype}, got {mode}")
    if failure.code == "extent_large":
        raise ParameterError(
            f"expected extents of at most {1 << 48 // len(shape)} with {len(shape)} axes, which the ZFP header holds,"
            f" got shape {shape}"
        )
    raise ParameterError(f"cannot encode {dtype} of shape {shape} with {mode}: {failure.code}")
