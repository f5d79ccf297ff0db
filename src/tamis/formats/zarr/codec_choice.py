"""The Zarr codecs that decode the chunks of a stored array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.errors import FileError, ParameterError
from tamis.filters import ChunkType, Stage, StoredZfp, Zfp
from tamis.formats.zarr.masked_chunk import MaskedPipeline
from tamis.formats.zarr.pipeline_codec import Pipeline2Codec
from tamis.formats.zarr.reshape_codec import ReshapeCodec
from tamis.formats.zarr.stored.codecs import shuffles_whole_values
from tamis.formats.zarr.zarr2_codecs import H5zZfp
from tamis.notation.zarr import version_2, version_3
from tamis.pipeline import Pipeline

if TYPE_CHECKING:
    from tamis.notation.text import Chain

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Codecs:
    """Codecs of an array in both versions of Zarr."""

    version_2: tuple[Json, ...]  # Configurations in the order of encoding
    version_3: tuple[Json, ...] | None  # Metadata in the order of encoding; None if this version cannot express it
    # The pipeline with its usual mask, if it is one codec: chunks with other masks are marked. None if all chunks
    # have the same mask.
    masked: MaskedPipeline | None = None


def choose_codecs(pipeline: Pipeline, chunk: ChunkType, masks: Mapping[int, int]) -> Codecs:
    """Return the codecs of an array: those that other programs know, or otherwise ``tamis.pipeline``."""
    if reasons := pipeline.missing():
        raise FileError(f"expected filters that tamis can decode: {reasons[0]}")
    usual = max(masks, key=lambda mask: (masks[mask], -mask), default=0)
    if len(masks) <= 1:
        applied = tuple(stage for i, stage in enumerate(pipeline.stages) if not usual >> i & 1)
        if (known := _known_codecs(applied, chunk)) is not None:
            return known
    return one_codec(pipeline, chunk, usual)


def _known_codecs(applied: Chain, chunk: ChunkType) -> Codecs | None:
    """Return codecs of the registries; None if they do not decode such chunks."""
    if not shuffles_whole_values(applied, chunk):
        return None
    try:
        if applied and isinstance(zfp := applied[0].filter, Zfp):
            if not _is_plain_zfp(applied[0], chunk):
                return None
            squeeze = ReshapeCodec.squeezing(chunk.shape)
            first = H5zZfp.of(zfp, chunk.dtype, chunk.shape).get_config()
            version_3_codecs = (*([squeeze.to_dict()] if squeeze else ()), *version_3(applied, chunk.dtype))
            return Codecs((first, *_configs(applied[1:], chunk.dtype)), version_3_codecs)
        return Codecs(_configs(applied, chunk.dtype), tuple(version_3(applied, chunk.dtype)))
    except ParameterError:
        return None


def _configs(chain: Chain, dtype: np.dtype[Any]) -> tuple[Json, ...]:
    both = version_2(chain, dtype)
    return (*(both["filters"] or ()), *((both["compressor"],) if both["compressor"] else ()))


def _is_plain_zfp(stage: Stage, chunk: ChunkType) -> bool:
    """Return whether stored parameters of zfp follow from the chunk, so that a codec can leave them out."""
    header = None if stage.stored is None else StoredZfp.parse(stage.stored)
    squeezed = tuple(extent for extent in chunk.shape if extent > 1)
    return header is not None and not header.swapped and header.shape == squeezed and header.dtype == chunk.dtype


def one_codec(pipeline: Pipeline, chunk: ChunkType, usual: int) -> Codecs:
    """Return the codec ``tamis.pipeline``; see `choose_codecs`."""
    for stage in pipeline.stages:
        if isinstance(stage.filter, Zfp) and not _is_plain_zfp(stage, chunk):
            raise FileError(
                f"expected zfp parameters of chunks of {chunk.dtype} and shape {chunk.shape}, got those of another"
                " machine or an old version: repack the dataset first"
            ).at(filter=stage.filter)
    requested = Pipeline(stage.filter for stage in pipeline.stages)
    masked = MaskedPipeline.of(requested, usual)
    codec = Pipeline2Codec(requested, chunk.dtype, chunk.shape, usual, chunk.fill.hex())
    in_version_3 = chunk.dtype.newbyteorder("<") == chunk.dtype
    configuration = {"name": "tamis.pipeline", "configuration": masked.to_config()}
    return Codecs((codec.get_config(),), (configuration,) if in_version_3 else None, masked)
