"""A pipeline as the codecs of a new Zarr array."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.errors import ParameterError
from tamis.filters import Filter, Shuffle, Stage
from tamis.formats.zarr.reshape_codec import ReshapeCodec
from tamis.formats.zarr.zarr2_codecs import H5zZfp
from tamis.kinds import DTYPE_LIKE, WHOLE, WHOLES, checked
from tamis.notation.zarr import version_2, version_3
from tamis.pipeline import Pipeline, as_pipeline


@checked(dtype=DTYPE_LIKE, chunk_shape=WHOLES, zarr_format=WHOLE)
def codecs(
    filters: Pipeline | Filter | str, dtype: Any, chunk_shape: tuple[int, ...], *, zarr_format: int = 3
) -> dict[str, Any]:
    """Return codecs that store the same as a pipeline, as arguments of ``zarr.create_array``.

    Examples
    --------
    >>> codecs("zfp(accuracy=0.1)", "f4", (1, 192, 288))["serializer"].to_dict()["configuration"]
    {'mode': 'fixed_accuracy', 'tolerance': 0.1}
    """
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
            f"expected no shuffle after zfp, got {pipeline}: Zarr's shuffle takes whole values only; leave it out, or"
            f" use serializer=tamis.zarr.PipelineCodec('{pipeline}'), which skips it for chunks of zfp"
        )


def _arguments_2(pipeline: Pipeline, dtype: np.dtype[Any], chunk_shape: tuple[int, ...]) -> dict[str, Any]:
    import numcodecs

    first = pipeline.stages[:1]
    rest = pipeline.stages[1:] if pipeline.zfp else pipeline.stages
    configs = _configs(rest, dtype)
    members = [numcodecs.get_codec(config) for config in configs]
    if pipeline.zfp and first[0].filter is pipeline.zfp:
        members = [H5zZfp.of(pipeline.zfp, dtype, chunk_shape), *members]
    return {"filters": members[:-1] or None, "compressors": members[-1:] or None}


def _configs(stages: tuple[Stage, ...], dtype: np.dtype[Any]) -> list[dict[str, Any]]:
    both = version_2(stages, dtype)
    return [*(both["filters"] or ()), *([both["compressor"]] if both["compressor"] else ())]
