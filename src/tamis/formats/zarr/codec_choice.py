"""The Zarr codecs for a pipeline: of a new array, and those that decode the chunks of a stored one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.arguments import DTYPE_LIKE, WHOLE, WHOLES
from tamis.errors import FileError, ParameterError
from tamis.filters import ChunkType, Filter, Shuffle, Stage, StoredZfp, Zfp
from tamis.formats.zarr.masked import MaskedPipeline
from tamis.formats.zarr.stored.codecs import header_of, shuffles_whole_values
from tamis.formats.zarr.zarr2_codecs import H5zZfp, Pipeline2Codec, Zfpy
from tamis.formats.zarr.zarr3_codecs import ReshapeCodec
from tamis.notation.zarr import version_2, version_3, zfpy_configuration
from tamis.pipeline import Pipeline, as_pipeline

if TYPE_CHECKING:
    from tamis.notation.text import Chain


Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Codecs:
    """Codecs of an array in both versions of Zarr."""

    version_2: tuple[Json, ...]  # Configurations in the order of encoding, for chunks with the bytes of HDF5's
    version_3: tuple[Json, ...] | None  # Metadata in the order of encoding; None if this version cannot express it
    # The pipeline with its usual mask, if it is one codec: chunks with other masks are marked. None if all chunks
    # have the same mask.
    masked: MaskedPipeline | None = None
    # Configurations of version 2 for chunks whose zfp streams get this header, which numcodecs' zfpy reads; None if
    # zfp is not the first filter, or zfpy cannot express its mode
    with_header: tuple[bytes, tuple[Json, ...]] | None = None

    def names(self, zarr_format: int) -> tuple[str, ...]:
        """Return the names of the codecs in a version of Zarr, in the order of encoding."""
        if zarr_format == 2:
            return tuple(str(config["id"]) for config in self.version_2)
        names = (str(config["name"]) for config in self.version_3 or ())
        return tuple(name for name in names if name != "bytes")


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
            in_version_3 = tuple(version_3(applied, chunk.dtype))
            if (squeeze := ReshapeCodec.squeezing(chunk.shape)) is not None:
                in_version_3 = (squeeze.to_dict(), *in_version_3)
            first = H5zZfp.of(zfp, chunk.dtype, chunk.shape).get_config()
            rest = _configs(applied[1:], chunk.dtype)
            zfpy, header = zfpy_configuration(zfp.mode), header_of(applied[0])
            with_header = None if zfpy is None or header is None else (header, (zfpy, *rest))
            return Codecs((first, *rest), in_version_3, with_header=with_header)
        return Codecs(_configs(applied, chunk.dtype), tuple(version_3(applied, chunk.dtype)))
    except ParameterError:
        return None


def _configs(chain: Chain, dtype: np.dtype[Any]) -> tuple[Json, ...]:
    """Return the codecs of a chain in Zarr 2, in the order of encoding."""
    both = version_2(chain, dtype)
    configs = tuple(both["filters"] or ())
    return (*configs, both["compressor"]) if both["compressor"] else configs


def _is_plain_zfp(stage: Stage, chunk: ChunkType) -> bool:
    """Return whether stored parameters of zfp follow from the chunk, so that a codec can leave them out."""
    header = None if stage.stored is None else StoredZfp.parse(stage.stored)
    squeezed = tuple(extent for extent in chunk.shape if extent > 1)
    return (
        header is not None
        and not header.swapped
        and header.shape == squeezed
        and header.dtype.name == chunk.dtype.name  # streams have no byte order
    )


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


def codecs(
    filters: Pipeline | Filter | str, dtype: Any, chunk_shape: tuple[int, ...], *, zarr_format: int = 3
) -> dict[str, Any]:
    """Return codecs that store the same as a pipeline, as arguments of ``zarr.create_array``.

    Examples
    --------
    >>> codecs("zfp(accuracy=0.1)", "f4", (1, 192, 288))["serializer"].to_dict()["configuration"]
    {'mode': 'fixed_accuracy', 'tolerance': 0.1}
    """
    DTYPE_LIKE.check("dtype", dtype)
    WHOLES.check("chunk_shape", chunk_shape)
    WHOLE.check("zarr_format", zarr_format)
    pipeline, dtype = as_pipeline(filters), np.dtype(dtype)
    _refuse_shuffled_streams(pipeline)
    if zarr_format == 2:
        return _arguments_2(pipeline, dtype, chunk_shape)
    if zarr_format != 3:
        raise ParameterError(f"expected zarr_format 2 or 3, got {zarr_format!r}")
    serializer, *rest = version_3(pipeline.stages, dtype)
    squeeze = ReshapeCodec.squeezing(tuple(chunk_shape)) if serializer["name"] == "zfp" else None
    from zarr.registry import get_codec_class

    return {
        "filters": [squeeze] if squeeze else [],
        "serializer": get_codec_class(serializer["name"]).from_dict(serializer),
        "compressors": [get_codec_class(codec["name"]).from_dict(codec) for codec in rest],
    }


def _refuse_shuffled_streams(pipeline: Pipeline) -> None:
    """Raise ParameterError for shuffle after zfp: numcodecs takes whole values only, and streams have any size."""
    if pipeline.zfp and any(isinstance(later, Shuffle) for later in pipeline.filters):
        raise ParameterError(
            f"shuffle cannot follow zfp in Zarr ({pipeline}), whose shuffle takes whole values only: leave "
            f"it out, or use serializer=tamis.zarr.PipelineCodec('{pipeline}'), which skips it for chunks of "
            "zfp"
        )


def _arguments_2(pipeline: Pipeline, dtype: np.dtype[Any], chunk_shape: tuple[int, ...]) -> dict[str, Any]:
    import numcodecs

    first = pipeline.stages[:1]
    rest = pipeline.stages[1:] if pipeline.zfp else pipeline.stages
    configs = _configs(rest, dtype)
    members = [numcodecs.get_codec(config) for config in configs]
    if pipeline.zfp and first[0].filter is pipeline.zfp:
        members = [_zfp_2(pipeline.zfp, dtype, chunk_shape), *members]
    return {"filters": members[:-1] or None, "compressors": members[-1:] or None}


def _zfp_2(zfp_filter: Zfp, dtype: np.dtype[Any], chunk_shape: tuple[int, ...]) -> Zfpy | H5zZfp:
    """Return the codec zfpy, which others have, too; ``h5z_zfp`` in the modes that zfpy cannot express."""
    own = H5zZfp.of(zfp_filter, dtype, chunk_shape)
    config = zfpy_configuration(zfp_filter.mode)
    return own if config is None else Zfpy(**{key: value for key, value in config.items() if key != "id"})
