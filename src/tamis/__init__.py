"""The filter layer for HDF5, netCDF-4 and Zarr: lossy compression that can be trusted.

Importing tamis lets h5py read and write ZFP (filter 32013) at once.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from tamis import _native
from tamis.errors import BoundError, DataError, FileError, MissingFilterError, ParameterError, StreamError, TamisError
from tamis.import_hook import after_import
from tamis.lazy_names import late_names

if TYPE_CHECKING:
    from tamis import cf, filters, hdf5, netcdf, zarr, zfp
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
        Pcodec,
        Scaleoffset,
        Shuffle,
        Sperr,
        Sz3,
        Szip,
        UnknownFilter,
        Zfp,
        Zstd,
    )
    from tamis.filters.zfp import plugin_path
    from tamis.formats.opening import open  # noqa: A004 - other packages also call it open
    from tamis.jobs.combine import combine
    from tamis.jobs.copy import copy
    from tamis.jobs.export import ExportResult, ReferenceParser, export
    from tamis.jobs.inspect.job import inspect
    from tamis.jobs.inspect.result import Inspection
    from tamis.jobs.many.job import preview_repack_many, repack_many, status
    from tamis.jobs.many.manifest import Manifest, ManifestCheck, check_manifest, manifest
    from tamis.jobs.many.result import FolderPreview, FolderStatus
    from tamis.jobs.many.verify import FolderVerification, verify_many
    from tamis.jobs.plan.job import plan
    from tamis.jobs.plan.result import Plan
    from tamis.jobs.recipes.saved_recipe import Recipe
    from tamis.jobs.repack.job import preview_repack, repack
    from tamis.jobs.repack.result import RepackPreview, RepackResult
    from tamis.jobs.repair import RepairResult, repair
    from tamis.jobs.report.folder import FolderReport, report_many
    from tamis.jobs.report.job import report
    from tamis.jobs.report.result import Report
    from tamis.jobs.spec import Spec, spec
    from tamis.jobs.verify.job import verify
    from tamis.jobs.verify.result import Verification
    from tamis.pipeline import Pipeline
    from tamis.remote.address import Address
    from tamis.rounding import Absolute, BitGroom, BitRound, Granular, Pack
    from tamis.xarray.encoding import Encoding, encoding
    from tamis.zfp.configuration import Config, config

__all__ = [
    "Absolute",
    "Address",
    "BitGroom",
    "BitRound",
    "Bitshuffle",
    "Blosc",
    "Blosc2",
    "BoundError",
    "Bzip2",
    "Config",
    "DataError",
    "Deflate",
    "Encoding",
    "ExportResult",
    "FileError",
    "Fletcher32",
    "FolderPreview",
    "FolderReport",
    "FolderStatus",
    "FolderVerification",
    "Granular",
    "Inspection",
    "Lz4",
    "Lzf",
    "Manifest",
    "ManifestCheck",
    "MissingFilterError",
    "Nbit",
    "Pack",
    "ParameterError",
    "Pcodec",
    "Pipeline",
    "Plan",
    "Recipe",
    "ReferenceParser",
    "RepackPreview",
    "RepackResult",
    "RepairResult",
    "Report",
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
    "check_manifest",
    "combine",
    "config",
    "copy",
    "encoding",
    "export",
    "filters",
    "hdf5",
    "inspect",
    "manifest",
    "netcdf",
    "open",
    "plan",
    "plugin_path",
    "preview_repack",
    "preview_repack_many",
    "repack",
    "repack_many",
    "repair",
    "report",
    "report_many",
    "spec",
    "status",
    "verify",
    "verify_many",
    "zarr",
    "zfp",
]

__version__ = _native.version


_LATE = {
    "tamis": "cf filters hdf5 netcdf zarr zfp",
    "tamis.filters": "Bitshuffle Blosc Blosc2 Bzip2 Deflate Fletcher32 Lz4 Lzf Nbit Pcodec Scaleoffset Shuffle Sperr"
    " Sz3 Szip UnknownFilter Zfp Zstd",
    "tamis.formats.opening": "open",
    "tamis.remote.address": "Address",
    "tamis.filters.zfp": "plugin_path",
    "tamis.xarray.encoding": "Encoding encoding",
    "tamis.jobs.combine": "combine",
    "tamis.jobs.copy": "copy",
    "tamis.jobs.export": "ExportResult ReferenceParser export",
    "tamis.jobs.inspect.job": "inspect",
    "tamis.jobs.inspect.result": "Inspection",
    "tamis.jobs.many.job": "preview_repack_many repack_many status",
    "tamis.jobs.many.manifest": "Manifest ManifestCheck check_manifest manifest",
    "tamis.jobs.many.result": "FolderPreview FolderStatus",
    "tamis.jobs.many.verify": "FolderVerification verify_many",
    "tamis.jobs.plan.job": "plan",
    "tamis.jobs.plan.result": "Plan",
    "tamis.jobs.recipes.saved_recipe": "Recipe",
    "tamis.jobs.repack.job": "preview_repack repack",
    "tamis.jobs.repack.result": "RepackPreview RepackResult",
    "tamis.jobs.repair": "RepairResult repair",
    "tamis.jobs.report.folder": "FolderReport report_many",
    "tamis.jobs.report.job": "report",
    "tamis.jobs.report.result": "Report",
    "tamis.jobs.spec": "Spec spec",
    "tamis.jobs.verify.result": "Verification",
    "tamis.jobs.verify.job": "verify",
    "tamis.pipeline": "Pipeline",
    "tamis.rounding": "Absolute BitGroom BitRound Granular Pack",
    "tamis.zfp.configuration": "Config config",
}
"""Names that are imported when they are first used, by module: imports are most of the time of a short command."""

__getattr__ = late_names(globals(), {name: module for module, names in _LATE.items() for name in names.split()})


def _add_accessors(_: ModuleType) -> None:
    """Give xarray's datasets and trees the accessor ``tamis``, which imports little."""
    with suppress(ImportError):  # an xarray without trees, or one that imports tamis before it has them
        import_module("tamis_xarray")


def _add_plugin(extension: ModuleType) -> None:
    """Give filter 32013 to netCDF4's libhdf5, which needs no environment variable then."""
    import_module("tamis.netcdf.library").register(extension)


if not _native.kernel_as_asked():
    import_module("tamis.zfp.configuration").warn_unless_as_asked()
if "tamis_command" not in sys.modules:  # each command imports what it needs itself
    # All that `open` and reading HDF5 need, with the filter for h5py. Later, a thread with h5py's lock could wait for
    # one that imports and waits for that lock, and a process that is forked while a thread imports would wait forever.
    for _module in ("tamis.formats.hdf5.reader", "tamis.formats.opening", "encodings.ascii"):
        import_module(_module)
    after_import("netCDF4._netCDF4", _add_plugin)
    after_import("xarray", _add_accessors)
