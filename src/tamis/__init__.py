"""The filter layer for HDF5, netCDF-4 and Zarr: lossy compression that can be trusted.

Importing tamis lets h5py read and write ZFP (filter 32013) at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
from tamis.filters import (
    Bitshuffle,
    Blosc,
    Blosc2,
    Bzip2,
    Deflate,
    Fletcher32,
    Lz4,
    Lzf,
    Nbit,
    Scaleoffset,
    Shuffle,
    Sperr,
    Sz3,
    Szip,
    UnknownFilter,
    Zfp,
    Zstd,
)
from tamis.hdf5.file import open  # noqa: A004 - named as the function of other packages that opens a file
from tamis.hdf5.lib.plugin import plugin_path
from tamis.hdf5.lib.plugin import register as _register
from tamis.pipeline import Pipeline
from tamis.zfp.configuration import Config, config
from tamis.zfp.configuration import warn_unless_as_asked as _warn_unless_as_asked

if TYPE_CHECKING:
    from tamis.jobs.encoding import encoding
    from tamis.jobs.inspect import inspect
    from tamis.jobs.repack import repack
    from tamis.jobs.spec import spec
    from tamis.jobs.verify import verify

__all__ = [
    "Bitshuffle",
    "Blosc",
    "Blosc2",
    "BoundError",
    "Bzip2",
    "Config",
    "DataError",
    "Deflate",
    "FileError",
    "Fletcher32",
    "Lz4",
    "Lzf",
    "MissingFilterError",
    "Nbit",
    "ParameterError",
    "Pipeline",
    "Scaleoffset",
    "Shuffle",
    "Sperr",
    "StreamError",
    "Sz3",
    "Szip",
    "TamisError",
    "UnknownFilter",
    "Zfp",
    "Zstd",
    "__version__",
    "config",
    "encoding",
    "inspect",
    "open",
    "plugin_path",
    "repack",
    "spec",
    "verify",
    "zfp",
]

__version__ = config().version


def __getattr__(name: str) -> Any:
    """Import a job when it is first used: all of them take half of what the rest of tamis takes."""
    if name not in ("encoding", "inspect", "repack", "spec", "verify"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"tamis.jobs.{name}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


_warn_unless_as_asked()
_register()
