from tamis._of_zarr import H5zZfp as H5zZfp
from tamis._of_zarr import Pipeline2Codec as Pipeline2Codec
from tamis._of_zarr import PipelineCodec as PipelineCodec
from tamis._of_zarr import ReshapeCodec as ReshapeCodec
from tamis._of_zarr import ZfpCodec as ZfpCodec
from tamis._of_zarr import Zfpy as Zfpy
from tamis._of_zarr import codecs as codecs

__all__ = ["H5zZfp", "Pipeline2Codec", "PipelineCodec", "ReshapeCodec", "ZfpCodec", "Zfpy", "codecs"]
