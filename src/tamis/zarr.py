"""Codecs for Zarr that store the bytes of HDF5 chunks: Zarr 3 through zarr-python, Zarr 2 through numcodecs.

Zarr and numcodecs find the codecs by their names, through entry points: nothing needs to be imported to read an array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.errors import TamisError
from tamis.lazy_names import late_names
from tamis.optional import optional

if TYPE_CHECKING:
    from tamis.formats.zarr.codec_choice import codecs
    from tamis.formats.zarr.zarr2_codecs import H5zZfp, Pipeline2Codec, Zfpy
    from tamis.formats.zarr.zarr3_codecs import PipelineCodec, ReshapeCodec, ZfpCodec

__all__ = ["H5zZfp", "Pipeline2Codec", "PipelineCodec", "ReshapeCodec", "ZfpCodec", "Zfpy", "codecs"]

_MODULES = {
    "H5zZfp": "zarr2_codecs",
    "Pipeline2Codec": "zarr2_codecs",
    "PipelineCodec": "zarr3_codecs",
    "ReshapeCodec": "zarr3_codecs",
    "ZfpCodec": "zarr3_codecs",
    "Zfpy": "zarr2_codecs",
    "codecs": "codec_choice",
}


_late = late_names(globals(), {name: f"tamis.formats.zarr.{module}" for name, module in _MODULES.items()})


def __getattr__(name: str) -> Any:
    try:
        if name in _MODULES:
            for package in ("zarr", "numcodecs"):
                optional(package)
        return _late(name)
    except TamisError:
        raise
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] not in ("zarr", "numcodecs"):
            raise
        raise ImportError(
            f"tamis.zarr.{name} needs {error.name}, which is not installed: pip install 'tamis[zarr]'", name=error.name
        ) from error
