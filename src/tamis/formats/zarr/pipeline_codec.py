"""A Zarr 3 codec for any HDF5 pipeline, with filter masks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numcodecs.abc import Codec
from numpy.typing import NDArray
from zarr.abc.codec import ArrayBytesCodec

from tamis.errors import ParameterError, located
from tamis.filters import ChunkType, Filter
from tamis.formats.zarr.masked_chunk import MaskedPipeline
from tamis.formats.zarr.zarr2_codecs import as_bytes, into
from tamis.formats.zarr.zfp_codec import ZARR_TYPE, as_declared, configuration_of
from tamis.kinds import MAPPING, explained

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer, NDBuffer

    from tamis.pipeline import Pipeline


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

    @explained(dtype=ZARR_TYPE)
    def validate(self, *, shape: tuple[int, ...], dtype: Any, chunk_grid: Any) -> None:
        """Raise ParameterError if values of this type are not bytes, MissingFilterError if a filter is missing."""
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
    @explained(config=MAPPING)
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Read the codec's metadata; raises ParameterError if something is missing or unknown."""
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
