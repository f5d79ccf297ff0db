"""The codec ``tamis.pipeline`` for Zarr 2: any HDF5 pipeline, with filter masks, for references to HDF5 files too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numcodecs.abc import Codec
from numpy.typing import NDArray

from tamis.errors import ParameterError, located
from tamis.filters import ChunkType, Filter
from tamis.kinds import MAPPING, explained
from tamis.pipeline import Pipeline
from tamis.zarr.masked_chunk import MaskedPipeline
from tamis.zarr.zarr2_codecs import as_bytes, into


class Pipeline2Codec(Codec):  # type: ignore[misc]  # numcodecs has no type information
    """HDF5 filters as one codec of Zarr 2; see `tamis.zarr.PipelineCodec`.

    Parameters
    ----------
    filters
        A pipeline, a filter, or their text.
    dtype
        Type of the values as stored, such as ``"<f4"``; Zarr 2 tells codecs neither type nor shape.
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
