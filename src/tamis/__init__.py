"""The filter layer for HDF5, netCDF-4 and Zarr: lossy compression that can be trusted.

Importing tamis lets h5py read and write ZFP (filter 32013) at once.
"""

from __future__ import annotations

from importlib.metadata import version as _version

from tamis import zfp
from tamis.errors import (
    BoundError,
    DataError,
    FileError,
    MissingFilterError,
    ParameterError,
    StreamError,
    TamisError,
)
from tamis.filters import Zfp
from tamis.hdf5.plugin import plugin_path
from tamis.hdf5.plugin import register as _register
from tamis.jobs import inspect, repack, spec
from tamis.pipeline import Pipeline

__all__ = [
    "BoundError",
    "DataError",
    "FileError",
    "MissingFilterError",
    "ParameterError",
    "Pipeline",
    "StreamError",
    "TamisError",
    "Zfp",
    "__version__",
    "inspect",
    "plugin_path",
    "repack",
    "spec",
    "zfp",
]

__version__ = _version("tamis")

_register()
