"""Codecs of Zarr 2, for numcodecs: ZFP with a header, ``zfpy``, or without one, ``h5z_zfp``, and ``tamis.pipeline``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numcodecs.abc import Codec
from numpy.typing import NDArray

from tamis import zfp
from tamis.arguments import ARRAY, DTYPE_LIKE, MAPPING, WHOLES, instance
from tamis.errors import DataError, ParameterError, StreamError, located
from tamis.filters import ChunkType, Filter, Zfp
from tamis.formats.zarr.masked import MaskedPipeline
from tamis.notation.zarr import zfp_configuration, zfp_of
from tamis.pipeline import Pipeline

_ZFPY_MODES = {2: "rate", 3: "precision", 4: "tolerance"}
_DTYPES = ("int32", "int64", "float32", "float64")
_ZFP = instance("a tamis.Zfp", Zfp)


class Zfpy(Codec):  # type: ignore[misc]  # numcodecs has no type information
    """Self-describing ZFP streams, as ``numcodecs.zfpy`` writes and reads them, without the package zfpy.

    Values are little-endian, as Zarr has them: a stream has no byte order.

    It reads any stream with a full header, and writes the modes of numcodecs (2 rate, 3 precision, 4 accuracy) and 5,
    reversible, with the same bytes as zfpy. It leaves out axes of one value, which zfpy keeps and which cost up to
    three times the space: the header has the shape without them, and zarr-python gives chunks their own shape.

    Parameters
    ----------
    mode
        zfpy's number of the mode.
    tolerance, rate, precision
        The parameter of the mode; the others are -1, as in numcodecs.

    Raises
    ------
    ParameterError
        When an array is encoded, if mode and parameter do not fit each other.
    """

    codec_id = "zfpy"

    def __init__(
        self,
        mode: int = 4,
        tolerance: float = -1,
        rate: float = -1,
        precision: int = -1,
        compression_kwargs: object = None,
    ) -> None:
        self.mode, self.tolerance, self.rate, self.precision = mode, tolerance, rate, precision

    def encode(self, buf: Any) -> bytes:
        """Encode an array with 1 to 4 axes longer than 1.

        Raises
        ------
        DataError
            If a value cannot be kept within the tolerance.
        """
        values, mode = _array(buf), self._mode()
        values = values.reshape([extent for extent in values.shape if extent != 1] or 1)
        with located(filter=self.codec_id):
            try:
                stream = zfp.encode_with_header(values, mode)
                header = len(zfp.Header(values.dtype, values.shape, mode).pack())
                if header == 12:  # in whole bytes: the stream after it is that of a chunk
                    zfp.prove(values, stream[header:], mode)
            except DataError as error:
                raise DataError(f"{error}; tamis.zarr.H5zZfp stores such chunks without zfp") from error
        return stream

    def decode(self, buf: Any, out: Any = None) -> NDArray[Any]:
        """Decode a stream; raises StreamError if it is damaged or has no header."""
        with located(filter=self.codec_id):
            values = zfp.decode_with_header(as_bytes(buf))
        return into(_little(values), out)

    def _mode(self) -> zfp.Mode:
        if not isinstance(self.mode, int) or self.mode not in {*_ZFPY_MODES, 5}:
            raise ParameterError(f"expected zfpy mode 2 rate, 3 precision, 4 accuracy or 5 reversible, got {self.mode}")
        if self.mode == 5:
            return zfp.Reversible()
        key = _ZFPY_MODES[self.mode]
        value = getattr(self, key)
        return zfp.mode(**{"accuracy" if key == "tolerance" else key: value})


class H5zZfp(Codec):  # type: ignore[misc]  # numcodecs has no type information
    """ZFP streams without a header, the chunks of HDF5 filter 32013, in Zarr 2.

    Zarr 2 gives a codec neither type nor shape of a chunk: these are in the metadata. Values are little-endian. A chunk
    that ZFP cannot keep within its tolerance is stored raw; its size identifies it, because no stream has that size.

    Parameters
    ----------
    dtype
        int32, int64, float32 or float64.
    shape
        Shape of the chunks without unit axes, slowest first, 1 to 4 axes.
    mode
        Name of the mode in Zarr's registry, such as ``"fixed_accuracy"``.
    **parameters
        The mode's parameters by their registered names, such as ``tolerance``.

    Raises
    ------
    ParameterError
        If a parameter is wrong or missing.
    """

    codec_id = "h5z_zfp"

    def __init__(self, mode: str, dtype: str, shape: Any, **parameters: Any) -> None:
        with located("numcodecs codec h5z_zfp"):
            self._filter = zfp_of({"mode": mode, **parameters})
            if not isinstance(dtype, str) or dtype not in _DTYPES:
                raise ParameterError(f"expected dtype to be one of {', '.join(_DTYPES)}, got {dtype!r}")
            is_list = isinstance(shape, (list, tuple)) and all(type(extent) is int and extent > 1 for extent in shape)
            if not is_list or not 1 <= len(shape) <= zfp.MAX_RANK:
                raise ParameterError(f"expected the shape of a chunk without unit axes, 1 to 4 of them, got {shape!r}")
            self._dtype, self._shape = np.dtype(dtype), tuple(shape)
            zfp.check_encodable(self._dtype, self._filter.mode)

    @classmethod
    def of(cls, zfp_filter: Zfp, dtype: Any, chunk_shape: tuple[int, ...]) -> Self:
        """Return the codec of a filter for chunks of a type and shape, unit axes included."""
        _ZFP.check("zfp_filter", zfp_filter)
        DTYPE_LIKE.check("dtype", dtype)
        WHOLES.check("chunk_shape", chunk_shape)
        shape = [extent for extent in chunk_shape if extent > 1]
        return cls(dtype=np.dtype(dtype).name, shape=shape, **zfp_configuration(zfp_filter.mode))

    def get_config(self) -> dict[str, Any]:
        """Return the codec's metadata."""
        configuration = zfp_configuration(self._filter.mode)
        return {"id": self.codec_id, **configuration, "dtype": self._dtype.name, "shape": [*self._shape]}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Read the codec's metadata; raises ParameterError if something is missing."""
        MAPPING.check("config", config)
        if missing := sorted({"mode", "dtype", "shape"} - config.keys()):
            raise ParameterError(f"numcodecs codec h5z_zfp: expected {missing[0]}, got {dict(config)!r}")
        return cls(**config)

    def encode(self, buf: Any) -> bytes:
        """Encode the values of a chunk, or return them unchanged if ZFP cannot keep them."""
        values = _array(buf)
        if values.dtype.name != self._dtype.name or values.size != math.prod(self._shape):
            raise ParameterError(
                f"numcodecs codec h5z_zfp: expected {self._dtype} of shape {self._shape}, got {values.dtype} of"
                f" {values.shape}"
            )
        values = values.reshape(self._shape)
        try:
            stream = zfp.encode(values, self._filter.mode)
            zfp.prove(values, stream, self._filter.mode)
        except DataError:
            if not self.may_be_raw:
                raise
            return values.tobytes()
        # An extra byte distinguishes a stream from raw values; decoders ignore it.
        return stream + b"\0" if self.may_be_raw and len(stream) == values.nbytes else stream

    def decode(self, buf: Any, out: Any = None) -> NDArray[Any]:
        """Decode a chunk; raises StreamError if it is damaged."""
        data = as_bytes(buf)
        with located(filter=self.codec_id):
            if self.may_be_raw and len(data) == math.prod(self._shape) * self._dtype.itemsize:
                values = np.frombuffer(data, self._dtype.newbyteorder("<")).reshape(self._shape)
            else:
                values = _little(zfp.decode(data, self._shape, self._dtype, self._filter.mode))
        return into(values, out)

    @property
    def may_be_raw(self) -> bool:
        """True if raw values can be distinguished from a stream by their size."""
        mode = self._filter.mode
        if zfp.is_lossless(mode):
            return False
        params = mode.params(self._dtype, len(self._shape))
        blocks = math.prod(-(-extent // 4) for extent in self._shape)
        nbytes = math.prod(self._shape) * self._dtype.itemsize
        return params.minbits != params.maxbits or -(-blocks * params.maxbits // 8) != nbytes

    def __repr__(self) -> str:
        return f"H5zZfp({', '.join(f'{key}={value!r}' for key, value in self.get_config().items() if key != 'id')})"


class Pipeline2Codec(Codec):  # type: ignore[misc]  # numcodecs has no type information
    """HDF5 filters as one codec of Zarr 2; see `tamis.zarr.PipelineCodec`.

    Parameters
    ----------
    filters
        A pipeline, a filter, or their text.
    dtype
        Type of the values as stored, such as ``"<f4"``; Zarr 2 gives codecs neither type nor shape.
    shape
        Shape of the chunks.
    mask
        The usual filter mask.
    fill
        Bytes of the fill value in hexadecimal digits, which some filters set apart; empty for zeros.

    Raises
    ------
    ParameterError
        If a parameter is malformed.
    """

    codec_id = "tamis.pipeline"

    def __init__(self, filters: Pipeline | Filter | str, dtype: Any, shape: Any, mask: int = 0, fill: str = "") -> None:
        with located("numcodecs codec tamis.pipeline"):
            self._masked = MaskedPipeline.of(filters, mask)
            try:
                self._chunk = ChunkType(np.dtype(dtype), tuple(shape), bytes.fromhex(fill))
            except (TypeError, ValueError) as error:
                raise ParameterError(
                    f"expected type, shape and fill of chunks, got {dtype!r}, {shape!r}, {fill!r}"
                ) from error
            if self._chunk.dtype.hasobject:
                raise ParameterError(f"expected values of a fixed size, got {self._chunk.dtype}")

    def get_config(self) -> dict[str, Any]:
        """Return the codec's metadata."""
        fill = {"fill": self._chunk.fill.hex()} if self._chunk.fill else {}
        config = {"id": self.codec_id, **self._masked.to_config()}
        return {**config, "dtype": self._chunk.dtype.str, "shape": [*self._chunk.shape], **fill}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Read the codec's metadata; raises ParameterError if something is missing or unknown."""
        MAPPING.check("config", config)
        known = {"filters", "dtype", "shape"}
        if not known <= config.keys() <= {*known, "mask", "fill"}:
            raise ParameterError(
                f"numcodecs codec tamis.pipeline: expected filters, dtype and shape, got {dict(config)!r}"
            )
        return cls(**config)

    def encode(self, buf: Any) -> bytes:
        """Encode the values of a chunk; raises the errors of `tamis.Pipeline.encode`."""
        data = as_bytes(buf)
        if data.nbytes != self._chunk.nbytes:
            raise ParameterError(
                f"expected the {self._chunk.nbytes} bytes of {self._chunk.size} values of {self._chunk.dtype}, got"
                f" {data.nbytes}"
            )
        return self._masked.encode(np.frombuffer(data, self._chunk.dtype).reshape(self._chunk.shape), self._chunk)

    def decode(self, buf: Any, out: Any = None) -> NDArray[Any]:
        """Decode a chunk; raises StreamError if it is damaged."""
        with located("numcodecs codec tamis.pipeline"):
            return into(self._masked.decode(as_bytes(buf), self._chunk), out)

    def __repr__(self) -> str:
        arguments = [f"{key}={value!r}" for key, value in self.get_config().items() if key != "id"]
        return f"Pipeline2Codec({', '.join(arguments)})"


def _array(buf: Any) -> NDArray[Any]:
    if not isinstance(buf, np.ndarray):
        raise ParameterError(f"expected an array for ZFP, got {type(buf).__name__}: put it first among the codecs")
    if not buf.flags.c_contiguous:
        raise ParameterError(f"expected an array in C order for ZFP, got strides {buf.strides} of shape {buf.shape}")
    if buf.dtype != (little := buf.dtype.newbyteorder("<")):
        raise ParameterError(
            f"expected little-endian values for ZFP, got {buf.dtype.str!r}: Zarr 2 does not tell its codecs the byte"
            f" order; use {little.str!r}, or tamis.zarr.Pipeline2Codec"
        )
    return buf


def _little(values: NDArray[Any]) -> NDArray[Any]:
    """Return decoded values as they were encoded: little-endian."""
    return values.astype(values.dtype.newbyteorder("<"), copy=False)


def as_bytes(buf: Any) -> memoryview:
    """Return the bytes of a buffer from numcodecs."""
    try:
        return memoryview(buf).cast("B")
    except TypeError as error:
        raise StreamError(f"expected the bytes of a chunk, got {type(buf).__name__}") from error


def into(values: NDArray[Any], out: Any) -> NDArray[Any]:
    """Return decoded values, in the memory that numcodecs gives, if any."""
    ARRAY.check_optional("out", out)
    if out is None:
        return values
    target = np.frombuffer(out, np.uint8)
    if target.size != values.nbytes:
        raise ParameterError(f"expected room for {values.nbytes} bytes, got {target.size}")
    target[:] = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    result: NDArray[Any] = out
    return result
