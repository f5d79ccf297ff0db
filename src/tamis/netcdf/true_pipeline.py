"""The filters of a variable as HDF5 runs them."""

from __future__ import annotations

from typing import Any

from tamis.filters import Stage, from_values
from tamis.netcdf.open_files import stored_stages
from tamis.netcdf.variable import HDF5, NCZARR, variable_handle
from tamis.notation.netcdf_order import in_plugin_order
from tamis.pipeline import Pipeline


def filters(variable: Any) -> Pipeline:
    """Return the pipeline of a variable as stored: order, flags, duplicates, unknown filters, stored parameters.

    netCDF-C itself lists fletcher32 and shuffle first, and each filter once, whatever the file has. The file may be
    open for writing: the list comes from netCDF's own HDF5 library.

    Parameters
    ----------
    variable
        A netCDF4 variable. If it is not in the file yet, because nothing was written or synchronized, its filters are
        those defined so far, without stored parameters.

    Raises
    ------
    FileError
        If the list cannot be read.

    Examples
    --------
    >>> filters(ds["TS"]).stages[0].in_words  # doctest: +SKIP
    'zfp accuracy 0.0625'
    """
    handle = variable_handle(variable)
    kind = handle.group.format
    if kind == HDF5:
        stages = stored_stages(handle.group.path, handle.group.name, handle.name)
        if stages is not None:
            return Pipeline(stages)
    elif kind != NCZARR:
        return Pipeline()
    listed = handle.listed()
    requests = listed if kind == NCZARR else in_plugin_order(listed)
    in_file = {request.id: request.values for request in requests} if kind == NCZARR else {}
    members = [(from_values(request, stored=True), in_file.get(request.id)) for request in requests]
    return Pipeline(Stage(member, member.optional, stored) for member, stored in members)
