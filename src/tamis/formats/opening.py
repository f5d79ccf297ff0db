"""`tamis.open`: any file or store, whatever its format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tamis.arguments import FLAG, LOCATION, MAPPING
from tamis.formats.registry import format_at
from tamis.reading.file import File
from tamis.remote.address import located_path, with_outside


def open(  # noqa: A001 - xarray and gzip also call it open
    path: Any,
    threads: int | None = None,
    *,
    restore: bool = True,
    unpack: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    allow_outside: bool = False,
) -> File:
    """Open an HDF5 or netCDF file, or a Zarr store, whose arrays are read in parallel, without a plugin.

    Parameters
    ----------
    path
        Path of the file, of the folder of a Zarr store, or of references in JSON (kerchunk); or its address such as
        ``s3://bucket/a.nc`` (extra ``tamis[remote]``), an `Address`, or a file of fsspec.
    threads
        Number of threads that decode the chunks of a selection; None for as many as the process may use.
    restore
        Restore missing values if a dataset has a missing-value mask (``tamis repack --missing mask``). False returns
        the stored values, with invented ones instead of missing ones, as other readers see them.
    unpack
        Return packed integers in units of the variable, by ``scale_factor`` and ``add_offset``: floats of the type of
        these attributes, with NaN in place of ``_FillValue`` and ``missing_value``. Other arrays stay as stored.
    storage_options
        Settings and credentials of an address; see `Address`.
    allow_outside
        Whether references in JSON here may lead to files outside their folder, which you may not want to be read.

    Returns
    -------
    File
        A mapping from paths of arrays to arrays; ``file["group"]`` is a group. Use it in a ``with``, or close it.

    Raises
    ------
    FileError
        If there is no such file, or it is of another kind.
    ParameterError
        If `threads` is not 1 or more.

    Examples
    --------
    ::

        with tamis.open("out.nc") as file:
            ts = file["TS"]
            first = ts[0]
    """
    LOCATION.check("path", path)
    FLAG.check("restore", restore)
    FLAG.check("unpack", unpack)
    MAPPING.check_optional("storage_options", storage_options)
    FLAG.check("allow_outside", allow_outside)
    place = located_path(path, with_outside(storage_options, is_allowed=allow_outside))
    return File(format_at(place).open_reader, place, threads, restore, unpack)
