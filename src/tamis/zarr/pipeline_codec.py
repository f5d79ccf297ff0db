"""A Zarr 3 codec for any HDF5 pipeline: the bytes of HDF5 chunks behind their filter masks."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from zarr.abc.codec import ArrayBytesCodec

from tamis.errors import ParameterError, StreamError, located
from tamis.filters import ChunkType, Filter, Stage
from tamis.pipeline import Pipeline, as_pipeline
from tamis.zarr.zfp_codec import configuration_of

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import Buffer, NDBuffer

_MASK_NBYTES = 4


@dataclass(frozen=True, init=False)
class PipelineCodec(ArrayBytesCodec):
    """HDF5 filters as one array-to-bytes codec of Zarr 3, named ``tamis.pipeline``.

    A chunk is its HDF5 filter mask, as a little-endian 32-bit number, and then the bytes that HDF5 would store. So a
    chunk that zfp cannot keep within its tolerance, or that holds NaN, is stored by the other filters, as in HDF5. Any
    filter that tamis has can be used. Readers need tamis; others refuse the array by the name of the codec.

    Parameters
    ----------
    filters
        A pipeline, a filter, or their text, such as ``"zfp(accuracy=0.1)|shuffle|deflate(4)"``.

    Raises
    ------
    ParameterError
        If the filters are malformed.
    """

    is_fixed_size = False

    pipeline: Pipeline

    def __init__(self, filters: Pipeline | Filter | str) -> None:
        object.__setattr__(self, "pipeline", as_pipeline(filters))

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read the codec's metadata; raises ParameterError if it is malformed."""
        with located("Zarr codec tamis.pipeline"):
            configuration = configuration_of(data)
            filters = configuration.get("filters")
            if configuration.keys() != {"filters"} or not isinstance(filters, str):
                raise ParameterError(f"expected a configuration with the text of filters, got {configuration!r}")
            return cls(filters)

    def to_dict(self) -> dict[str, Any]:
        """Return the codec's metadata."""
        return {"name": "tamis.pipeline", "configuration": {"filters": str(self.pipeline)}}

    def validate(self, *, shape: tuple[int, ...], dtype: Any, chunk_grid: Any) -> None:
        """Raise ParameterError if values of this type are no bytes, MissingFilterError if a filter is not here."""
        native = dtype.to_native_dtype()
        if native.hasobject:
            raise ParameterError(f"expected values of a fixed size for tamis.pipeline, got {native}")
        self.pipeline.check_encodable()

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        """Raise NotImplementedError: the size depends on the values."""
        raise NotImplementedError("the size of a filtered chunk depends on its values")

    async def _encode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> Buffer | None:
        return await asyncio.to_thread(self._encode_sync, chunk_data, chunk_spec)

    async def _decode_single(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        return await asyncio.to_thread(self._decode_sync, chunk_data, chunk_spec)

    def _encode_sync(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> Buffer:
        chunk = _chunk_type(chunk_spec)
        values = np.ascontiguousarray(chunk_data.as_numpy_array(), chunk.dtype).reshape(chunk.shape)
        data, mask = _recorded(self.pipeline, chunk).encode(values)
        return chunk_spec.prototype.buffer.from_bytes(mask.to_bytes(_MASK_NBYTES, "little") + data)

    def _decode_sync(self, chunk_data: Buffer, chunk_spec: ArraySpec) -> NDBuffer:
        stored, chunk = chunk_data.as_numpy_array().data, _chunk_type(chunk_spec)
        nbits = len(self.pipeline.stages)
        mask = int.from_bytes(stored[:_MASK_NBYTES], "little")
        if len(stored) < _MASK_NBYTES or mask >> nbits:
            raise StreamError(
                f"expected a filter mask of {nbits} bits in the first {_MASK_NBYTES} bytes of a chunk, got"
                f" {bytes(stored[:_MASK_NBYTES])!r}"
            )
        values = _recorded(self.pipeline, chunk).decode(stored[_MASK_NBYTES:], mask, chunk)
        native = values.astype(chunk_spec.dtype.to_native_dtype(), copy=not values.flags.writeable)
        return chunk_spec.prototype.nd_buffer.from_numpy_array(native)


def _chunk_type(chunk_spec: ArraySpec) -> ChunkType:
    """Return type and shape of a chunk as they are stored: little-endian."""
    dtype = chunk_spec.dtype.to_native_dtype().newbyteorder("<")
    fill = b"" if chunk_spec.fill_value is None else np.asarray(chunk_spec.fill_value).astype(dtype).tobytes()
    return ChunkType(dtype, tuple(chunk_spec.shape), fill if any(fill) else b"")


@lru_cache(maxsize=256)
def _recorded(pipeline: Pipeline, chunk: ChunkType) -> Pipeline:
    """Return the pipeline with the parameters that HDF5 would store for such chunks."""
    return Pipeline(
        Stage(stage.filter, stage.optional, stage.filter.stored(chunk)) if stage.stored is None else stage
        for stage in pipeline.stages
    )
