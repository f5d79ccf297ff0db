"""The filter layer for HDF5, netCDF-4 and Zarr: lossy compression that can be trusted.

Importing tamis lets h5py read and write ZFP (filter 32013) at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tamis import cf, filters, hdf5, zfp
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
    from tamis.jobs.inspection import Inspection
    from tamis.jobs.repack import preview_repack, repack
    from tamis.jobs.repacking import RepackPreview, RepackResult
    from tamis.jobs.spec import Spec, spec
    from tamis.jobs.verification import Verification
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
    "Inspection",
    "Lz4",
    "Lzf",
    "MissingFilterError",
    "Nbit",
    "ParameterError",
    "Pipeline",
    "RepackPreview",
    "RepackResult",
    "Scaleoffset",
    "Shuffle",
    "Spec",
    "Sperr",
    "StreamError",
    "Sz3",
    "Szip",
    "TamisError",
    "UnknownFilter",
    "Verification",
    "Zfp",
    "Zstd",
    "__version__",
    "cf",
    "config",
    "encoding",
    "filters",
    "hdf5",
    "inspect",
    "open",
    "plugin_path",
    "preview_repack",
    "repack",
    "spec",
    "verify",
    "zfp",
]

__version__ = config().version


_LATE = {
    "Inspection": "tamis.jobs.inspection",
    "RepackPreview": "tamis.jobs.repacking",
    "RepackResult": "tamis.jobs.repacking",
    "Spec": "tamis.jobs.spec",
    "Verification": "tamis.jobs.verification",
    "encoding": "tamis.jobs.encoding",
    "inspect": "tamis.jobs.inspect",
    "preview_repack": "tamis.jobs.repack",
    "repack": "tamis.jobs.repack",
    "spec": "tamis.jobs.spec",
    "verify": "tamis.jobs.verify",
}
"""Names that are imported when they are first used: the jobs take half as long as the rest of tamis."""


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_LATE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__]


_warn_unless_as_asked()
_register()
