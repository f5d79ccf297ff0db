"""The registered Zarr 3 codec ``zfp``: an array to a ZFP stream without a header, as in HDF5 chunks."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from zarr.abc.codec import ArrayBytesCodec

from tamis import zfp
from tamis.errors import DataError, ParameterError, located
from tamis.filters import Zfp
from tamis.kinds import Kind, explained
from tamis.notation.zarr import zfp_configuration, zfp_of

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer, NDBuffer

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

    @explained(dtype=ZARR_TYPE)
    def validate(self, *, shape: tuple[int, ...], dtype: Any, chunk_grid: Any) -> None:
        """Raise ParameterError if no chunk of this type could be encoded; shapes are known later."""
        with located(filter=self.filter):
            zfp.check_encodable(encoded_type(dtype.to_native_dtype()), self.filter.mode)

    @explained(chunk_spec=SPEC)
    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        """Return the bytes of any chunk in rate mode.

        Raises
        ------
        NotImplementedError
            In other modes, where the size depends on the values.
        """
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
        raise DataError(f"expected {mode} to keep the tolerance at index {index}, which float16 cannot hold")


def _field_shape(chunk_spec: ArraySpec) -> tuple[int, ...]:
    """Return the shape that ZFP encodes: that of the chunk; one value for an array without axes."""
    shape = tuple(chunk_spec.shape) or (1,)
    if len(shape) > zfp.MAX_RANK:
        raise ParameterError(
            f"expected chunks of at most 4 axes for the Zarr codec zfp, got {shape}: put a ReshapeCodec before it,"
            " as tamis.zarr.codecs(…) does for chunks with at most 4 axes longer than 1"
        )
    return shape
