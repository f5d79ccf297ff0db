"""A Zarr 3 codec for any HDF5 pipeline, with filter masks."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from zarr.abc.codec import ArrayBytesCodec

from tamis.errors import ParameterError, located
from tamis.filters import ChunkType, Filter
from tamis.pipeline import Pipeline
from tamis.zarr.masked_chunk import MaskedPipeline
from tamis.zarr.promotion import as_declared
from tamis.zarr.zfp_codec import configuration_of

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer, NDBuffer


@dataclass(frozen=True, init=False)
class PipelineCodec(ArrayBytesCodec):
    """HDF5 filters as one array-to-bytes codec of Zarr 3, named ``tamis.pipeline``.

    A chunk has the bytes that HDF5 would store. One that skips other filters than usual begins with 16 bytes that have
    its filter mask. So a chunk that zfp cannot keep within its tolerance, or that holds NaN, is stored by the other
    filters, as in HDF5. Any filter that tamis has can be used. Readers need tamis; others refuse the array by the name
    of the codec.

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
        """Raise ParameterError if values of this type are no bytes, MissingFilterError if a filter is not here."""
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
