"""Codecs of Zarr 3, for zarr-python: ``zfp``, ``reshape`` and ``tamis.pipeline``."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from zarr.abc.codec import ArrayArrayCodec, ArrayBytesCodec
from zarr.core.array_spec import ArraySpec
from zarr.core.buffer import Buffer, NDBuffer

from tamis import zfp
from tamis.arguments import WHOLES, Kind
from tamis.errors import DataError, ParameterError, located
from tamis.filters import ChunkType, Filter, Zfp
from tamis.formats.zarr.masked import MaskedPipeline
from tamis.notation.zarr import squeezed_axes, zfp_configuration, zfp_of
from tamis.pipeline import Pipeline

SPEC = Kind("an ArraySpec of zarr", lambda value: hasattr(value, "prototype"))
ZARR_TYPE = Kind("a type of zarr such as zarr.dtype.Float32()", lambda value: hasattr(value, "to_native_dtype"))
_NAMES = ("float32", "float64", "float16", "int32", "int64", "uint32", "uint64", "int16", "uint16", "int8", "uint8")


def encoded_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which ZFP encodes values of a type."""
    if dtype.name not in _NAMES:
        raise ParameterError(
            f"expected one of {', '.join(_NAMES)} for the Zarr codec zfp, got {dtype}: use a lossless codec"
        )
    if dtype.itemsize >= 4:
        return np.dtype(dtype.name.removeprefix("u"))
    return np.dtype("f4" if dtype.kind == "f" else "i4")


def as_declared(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the values of a chunk in the type that its array has at this point, like zarr-python's codec ``bytes``.

    An earlier codec may pass on another type of the same size: BitRound of numcodecs gives the bits of floats.
    """
    if values.dtype.kind == dtype.kind and values.dtype.itemsize == dtype.itemsize:
        return values
    if values.dtype.itemsize != dtype.itemsize:
        raise ParameterError(
            f"expected values of {dtype} from the codec before it, got {values.dtype}: put it after, or leave it out"
        )
    return values.view(dtype.newbyteorder("=" if values.dtype.isnative else "S"))


def promote(values: NDArray[Any]) -> NDArray[Any]:
    """Return values in the type that ZFP encodes."""
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


@dataclass(frozen=True, init=False)
class ZfpCodec(ArrayBytesCodec):
    """ZFP as an array-to-bytes codec of Zarr 3, registered under the name ``zfp``.

    The bytes are those of an HDF5 chunk of the same shape without unit axes. ZFP encodes at most 4 axes, and unit axes
    are costly: `tamis.zarr.codecs` puts a `ReshapeCodec` first if needed.

    Parameters
    ----------
    zfp_filter
        The mode as a `tamis.Zfp`; or give its parameters as keywords, such as ``accuracy=0.1``.

    Raises
    ------
    ParameterError
        If there is not exactly one mode.

    Notes
    -----
    In accuracy mode every chunk is proven to keep its tolerance; a chunk that does not, or holds NaN or infinity in a
    lossy mode, is refused with the index of the value. int8, int16, uint8 and uint16 are promoted to int32, and their
    tolerance is in promoted units (2^23 or 2^15 per unit); float16 is promoted to float32.

    References
    ----------
    https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/zfp
    """

    filter: Zfp

    def __init__(self, zfp_filter: Zfp | None = None, /, **mode: Any) -> None:
        if zfp_filter is not None and (mode or not isinstance(zfp_filter, Zfp)):
            raise ParameterError(f"expected a tamis.Zfp, or the parameters of a mode, got {zfp_filter!r} and {mode}")
        of_mode = Zfp(**mode) if zfp_filter is None else zfp_filter
        object.__setattr__(self, "filter", Zfp.of(of_mode.mode))  # raises for a bound

    @property
    def is_fixed_size(self) -> bool:  # type: ignore[override]  # depends on the mode
        """True in rate mode."""
        return isinstance(self.filter.mode, zfp.Rate)

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read the codec's metadata.

        Raises
        ------
        ParameterError
            If the configuration has no mode, or not exactly its parameters.
        """
        with located("Zarr codec zfp"):
            return cls(zfp_of(configuration_of(data)))

    def to_dict(self) -> dict[str, Any]:
        """Return the codec's metadata."""
        return {"name": "zfp", "configuration": zfp_configuration(self.filter.mode)}

    def validate(self, *, shape: tuple[int, ...], dtype: Any, chunk_grid: Any) -> None:
        """Raise ParameterError if no chunk of this type could be encoded; shapes are known later."""
        ZARR_TYPE.check("dtype", dtype)
        with located(filter=self.filter):
            zfp.check_encodable(encoded_type(dtype.to_native_dtype()), self.filter.mode)

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        """Return the bytes of any chunk in rate mode.

        Raises
        ------
        NotImplementedError
            In other modes, where the size depends on the values.
        """
        SPEC.check("chunk_spec", chunk_spec)
        if not self.is_fixed_size:
            raise NotImplementedError(f"{self.filter} has no fixed size")
        shape = _field_shape(chunk_spec)
        params = self.filter.mode.params(encoded_type(chunk_spec.dtype.to_native_dtype()), len(shape))
        blocks = int(np.prod([-(-extent // 4) for extent in shape]))
        return -(-blocks * params.maxbits // 8)

    async def _encode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> Buffer | None:
        return await asyncio.to_thread(self._encode_sync, chunk_data, chunk_spec)

    async def _decode_single(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        return await asyncio.to_thread(self._decode_sync, chunk_data, chunk_spec)

    def _encode_sync(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> Buffer:
        with located(filter=self.filter):
            values = as_declared(chunk_data.as_numpy_array(), chunk_spec.dtype.to_native_dtype())
            stream = self._encode(values.reshape(_field_shape(chunk_spec)), chunk_spec.fill_value)
        return chunk_spec.prototype.buffer.from_bytes(stream)

    def _decode_sync(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        dtype, shape, mode = chunk_spec.dtype.to_native_dtype(), _field_shape(chunk_spec), self.filter.mode
        with located(filter=self.filter):
            values = zfp.decode(chunk_data.as_numpy_array().data, shape, encoded_type(dtype), mode)
        native = dtype.newbyteorder("=")
        return chunk_spec.prototype.nd_buffer.from_numpy_array(
            demote(values, native, mode).astype(dtype, copy=False).reshape(chunk_spec.shape)
        )

    def _encode(self, values: NDArray[Any], fill: object) -> bytes:
        native, mode = values.astype(values.dtype.newbyteorder("="), copy=False), self.filter.mode
        promoted = np.ascontiguousarray(promote(native))
        try:
            stream = zfp.encode(promoted, mode)
            zfp.prove(promoted, stream, mode, fill_bits(fill, promoted.dtype, native.dtype))
            if native.dtype.name == "float16" and isinstance(mode, zfp.Accuracy):
                _check_rounded(native, zfp.decode(stream, promoted.shape, promoted.dtype, mode), mode)
        except DataError as error:
            raise DataError(f"{error}; tamis.zarr.PipelineCodec stores such chunks without zfp") from error
        return stream


def configuration_of(data: object) -> dict[str, Any]:
    """Return the configuration in a codec's metadata."""
    configuration = data.get("configuration") if isinstance(data, dict) else None
    if not isinstance(configuration, dict):
        raise ParameterError(f"expected an object with name and configuration, got {data!r}")
    return configuration


def fill_bits(fill: object, encoded: np.dtype[Any], stored: np.dtype[Any]) -> int | None:
    """Return the bits of a fill value that marks missing values; None for zeros and for promoted types."""
    value = np.zeros((), stored) if fill is None else np.asarray(fill).astype(stored)
    if encoded != stored or not value.any():
        return None
    return int(value.view(f"u{stored.itemsize}"))


def _check_rounded(values: NDArray[Any], decoded: NDArray[Any], mode: zfp.Accuracy) -> None:
    """Raise DataError if decoded values break the tolerance when float16 rounds them."""
    beyond = np.abs(demote(decoded, values.dtype, mode).astype("f8") - values) > mode.tolerance
    if beyond.any():
        index = tuple(int(i) for i in np.argwhere(beyond)[0])
        raise DataError(f"{mode} cannot keep the tolerance at index {index}, because float16 cannot hold the value")


def _field_shape(chunk_spec: ArraySpec) -> tuple[int, ...]:
    """Return the shape that ZFP encodes: that of the chunk; one value for an array without axes."""
    shape = tuple(chunk_spec.shape) or (1,)
    if len(shape) > zfp.MAX_RANK:
        raise ParameterError(
            f"expected chunks of at most 4 axes for the Zarr codec zfp, got {shape}: put a ReshapeCodec before it,"
            " as tamis.zarr.codecs(…) does for chunks with at most 4 axes longer than 1"
        )
    return shape


Axis = int | tuple[int, ...]


@dataclass(frozen=True, init=False)
class ReshapeCodec(ArrayArrayCodec):
    """The axes of a chunk joined or split, registered under the name ``reshape``.

    A chunk with unit axes, or with more than 4 axes, needs this codec before ZFP.

    Parameters
    ----------
    shape
        For each axis of the result, an extent, a list of the input axes that are joined, or once -1 for the rest.

    Raises
    ------
    ParameterError
        If an item is none of these, or input axes are not in increasing order.

    References
    ----------
    https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/reshape
    """

    is_fixed_size = True

    shape: tuple[Axis, ...]

    def __init__(self, shape: Iterable[int | Iterable[int]]) -> None:
        with located("Zarr codec reshape"):
            object.__setattr__(self, "shape", _parse(shape))

    @classmethod
    def squeezing(cls, chunk_shape: tuple[int, ...]) -> Self | None:
        """Return the codec that joins unit axes with others; None if there are none, or no others."""
        WHOLES.check("chunk_shape", chunk_shape)
        axes = squeezed_axes(chunk_shape)
        return None if axes is None else cls(axes)

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read the codec's metadata; raises ParameterError if it is malformed."""
        with located("Zarr codec reshape"):
            configuration = configuration_of(data)
            if configuration.keys() != {"shape"}:
                raise ParameterError(f"expected a configuration of shape alone, got {sorted(configuration)}")
        return cls(configuration["shape"])

    def to_dict(self) -> dict[str, Any]:
        """Return the codec's metadata."""
        shape = [axis if isinstance(axis, int) else [*axis] for axis in self.shape]
        return {"name": "reshape", "configuration": {"shape": shape}}

    def resolve_metadata(self, chunk_spec: ArraySpec) -> ArraySpec:
        """Return the specification of reshaped chunks."""
        SPEC.check("chunk_spec", chunk_spec)
        return replace(chunk_spec, shape=self.reshaped(chunk_spec.shape))

    def compute_encoded_size(self, input_byte_length: int, _chunk_spec: ArraySpec) -> int:
        """Return the same number of bytes."""
        return input_byte_length

    def reshaped(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the result for a shape of the input.

        Raises
        ------
        ParameterError
            If the values do not fit, or joined axes are not those of the input.
        """
        WHOLES.check("shape", shape)
        with located("Zarr codec reshape"):
            joined = [axis for axis in self.shape if isinstance(axis, tuple)]
            if any(member >= len(shape) for axis in joined for member in axis):
                raise ParameterError(f"expected input axes below {len(shape)}, got {self.shape} for chunks of {shape}")
            sizes = [axis if isinstance(axis, int) else math.prod(shape[i] for i in axis) for axis in self.shape]
            known = math.prod(size for size in sizes if size != -1)
            result = tuple(math.prod(shape) // max(known, 1) if size == -1 else size for size in sizes)
            if math.prod(result) != math.prod(shape):
                raise ParameterError(f"expected as many values as chunks of {shape} have, got {self.shape}")
            for i, axis in enumerate(self.shape):
                if isinstance(axis, tuple) and axis and math.prod(result[:i]) != math.prod(shape[: axis[0]]):
                    raise ParameterError(
                        f"expected axis {i} to begin where the input axis {axis[0]} does, got {self.shape}"
                    )
            return result

    async def _encode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer | None:
        return self._encode_sync(chunk_data, chunk_spec)

    async def _decode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        return self._decode_sync(chunk_data, chunk_spec)

    def _encode_sync(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        return chunk_data.reshape(self.reshaped(chunk_spec.shape))

    def _decode_sync(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        return chunk_data.reshape(chunk_spec.shape)


def _parse(shape: object) -> tuple[Axis, ...]:
    if not isinstance(shape, Iterable) or isinstance(shape, str):
        raise ParameterError(f"expected a list of extents and of lists of input axes, got {shape!r}")
    axes = tuple(tuple(axis) if isinstance(axis, Iterable) and not isinstance(axis, str) else axis for axis in shape)
    for axis in axes:
        numbers = axis if isinstance(axis, tuple) else (axis,)
        least = 0 if isinstance(axis, tuple) else -1
        if any(type(number) is not int or number < least or (number == 0 and least) for number in numbers):
            raise ParameterError(f"expected extents above 0, -1, or lists of input axes, got {axis!r}")
    members = [member for axis in axes if isinstance(axis, tuple) for member in axis]
    if members != sorted(set(members)):
        raise ParameterError(f"expected input axes in increasing order, got {[*axes]}: reshape does not transpose")
    if axes.count(-1) > 1:
        raise ParameterError(f"expected -1 at most once, got {[*axes]}")
    return axes


@dataclass(frozen=True, init=False)
class PipelineCodec(ArrayBytesCodec):
    """HDF5 filters as one array-to-bytes codec of Zarr 3, named ``tamis.pipeline``.

    A chunk has the bytes that HDF5 would store. If it skips other filters than usual, it begins with 16 bytes that
    contain its filter mask. So a chunk that zfp cannot keep within its tolerance, or that holds NaN, is stored through
    the other filters, as in HDF5. Any filter of tamis can be used. Readers need tamis; others refuse the array because
    they do not know the codec.

    Parameters
    ----------
    filters
        A pipeline, a filter, or their text, such as ``"zfp(accuracy=0.1)|shuffle|deflate(4)"``.
    mask
        The usual filter mask: bit i is set if chunks skip filter i. For chunks of existing HDF5 files.

    Raises
    ------
    ParameterError
        If the filters are malformed, or there are fewer of them than bits of the mask.
    """

    is_fixed_size = False

    masked: MaskedPipeline

    def __init__(self, filters: Pipeline | Filter | str, mask: int = 0) -> None:
        object.__setattr__(self, "masked", MaskedPipeline.of(filters, mask))

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read the codec's metadata; raises ParameterError if it is malformed."""
        with located("Zarr codec tamis.pipeline"):
            masked = MaskedPipeline.from_config(configuration_of(data))
            return cls(masked.pipeline, masked.mask)

    def to_dict(self) -> dict[str, Any]:
        """Return the codec's metadata."""
        return {"name": "tamis.pipeline", "configuration": self.masked.to_config()}

    def validate(self, *, shape: tuple[int, ...], dtype: Any, chunk_grid: Any) -> None:
        """Raise ParameterError if values of this type are not bytes, MissingFilterError if a filter is missing."""
        ZARR_TYPE.check("dtype", dtype)
        native = dtype.to_native_dtype()
        if native.hasobject:
            raise ParameterError(f"expected values of a fixed size for tamis.pipeline, got {native}")
        self.masked.pipeline.check_encodable()

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        """Raise NotImplementedError: the size depends on the values."""
        raise NotImplementedError("the size of a filtered chunk depends on its values")

    async def _encode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> Buffer | None:
        return await asyncio.to_thread(self._encode_sync, chunk_data, chunk_spec)

    async def _decode_single(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        return await asyncio.to_thread(self._decode_sync, chunk_data, chunk_spec)

    def _encode_sync(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> Buffer:
        values = as_declared(chunk_data.as_numpy_array(), chunk_spec.dtype.to_native_dtype())
        data = self.masked.encode(values, _chunk_type(chunk_spec))
        return chunk_spec.prototype.buffer.from_bytes(data)

    def _decode_sync(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        values = self.masked.decode(chunk_data.as_numpy_array().data, _chunk_type(chunk_spec))
        native = values.astype(chunk_spec.dtype.to_native_dtype(), copy=not values.flags.writeable)
        return chunk_spec.prototype.nd_buffer.from_numpy_array(native)


def _chunk_type(chunk_spec: ArraySpec) -> ChunkType:
    """Return type and shape of a chunk as they are stored: little-endian."""
    dtype = chunk_spec.dtype.to_native_dtype().newbyteorder("<")
    fill = b"" if chunk_spec.fill_value is None else np.asarray(chunk_spec.fill_value).astype(dtype).tobytes()
    return ChunkType(dtype, tuple(chunk_spec.shape), fill if any(fill) else b"")
