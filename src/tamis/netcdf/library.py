"""The libnetcdf that netCDF4-python carries, and the libhdf5 below it, through ctypes.

Symbols are searched in the extension module of netCDF4 and in the libraries that it needs, so that there is no second
copy of either. Calls keep the GIL: netCDF-C may not be called by two threads at once.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint, c_void_p
from functools import cache
from typing import Any

import numpy as np

from tamis.errors import FileError, MissingFilterError, ParameterError

Unsigned = c_uint
_int_p, _unsigned_p, _size_p = POINTER(c_int), POINTER(c_uint), POINTER(c_size_t)
_VARIABLE = (c_int, c_int)

_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "nc_inq_format_extended": (c_int, _int_p, _int_p),
    "nc_inq_var_chunking": (*_VARIABLE, _int_p, _size_p),
    "nc_def_var_chunking": (*_VARIABLE, c_int, _size_p),
    "nc_def_var_filter": (*_VARIABLE, c_uint, c_size_t, _unsigned_p),
    "nc_inq_var_filter_ids": (*_VARIABLE, _size_p, _unsigned_p),
    "nc_inq_var_filter_info": (*_VARIABLE, c_uint, _size_p, _unsigned_p),
    "nc_inq_var_filter": (*_VARIABLE, _unsigned_p, _size_p, _unsigned_p),
    "nc_inq_filter_avail": (c_int, c_uint),
    "nc_def_var_deflate": (*_VARIABLE, c_int, c_int, c_int),
    "nc_inq_var_deflate": (*_VARIABLE, _int_p, _int_p, _int_p),
    "nc_def_var_fletcher32": (*_VARIABLE, c_int),
    "nc_inq_var_fletcher32": (*_VARIABLE, _int_p),
    "nc_def_var_szip": (*_VARIABLE, c_int, c_int),
    "nc_inq_var_szip": (*_VARIABLE, _int_p, _int_p),
    "nc_def_var_bzip2": (*_VARIABLE, c_int),
    "nc_inq_var_bzip2": (*_VARIABLE, _int_p, _int_p),
    "nc_def_var_zstandard": (*_VARIABLE, c_int),
    "nc_inq_var_zstandard": (*_VARIABLE, _int_p, _int_p),
    "nc_def_var_blosc": (*_VARIABLE, c_uint, c_uint, c_uint, c_uint),
    "nc_inq_var_blosc": (*_VARIABLE, _int_p, _unsigned_p, _unsigned_p, _unsigned_p, _unsigned_p),
    "nc_def_var_quantize": (*_VARIABLE, c_int, c_int),
    "nc_inq_var_quantize": (*_VARIABLE, _int_p, _int_p),
    "nc_plugin_path_ndirs": (_size_p,),
    "nc_plugin_path_get": (c_void_p,),
    "nc_plugin_path_set": (c_void_p,),
    "ncaux_h5filterspec_parse": (c_char_p, _unsigned_p, _size_p, POINTER(_unsigned_p)),
    "ncaux_h5filterspec_parselist": (c_char_p, _int_p, _size_p, c_void_p),
    "ncaux_h5filterspec_parse_parameter": (c_char_p, _size_p, _unsigned_p),
    "ncaux_h5filterspec_fix8": (c_void_p, c_int),
    "H5Fget_obj_count": (c_int64, c_uint),
    "H5Fget_obj_ids": (c_int64, c_uint, c_size_t, POINTER(c_int64)),
    "H5Fget_name": (c_int64, c_char_p, c_size_t),
    "H5Fget_intent": (c_int64, _unsigned_p),
    "H5Lexists": (c_int64, c_char_p, c_int64),
    "H5Dopen2": (c_int64, c_char_p, c_int64),
    "H5Dget_create_plist": (c_int64,),
    "H5Dclose": (c_int64,),
    "H5Pclose": (c_int64,),
    "H5Pget_nfilters": (c_int64,),
    "H5Pget_filter2": (c_int64, c_uint, _unsigned_p, _size_p, _unsigned_p, c_size_t, c_char_p, _unsigned_p),
}
_WIDE = {"H5Fget_obj_count", "H5Fget_obj_ids", "H5Fget_name", "H5Dopen2", "H5Dget_create_plist"}
"""Calls that return 64 bits."""

_LIMITS = {c_int: (-(1 << 31), (1 << 31) - 1), c_uint: (0, (1 << 32) - 1)}

_SINCE = {
    "nc_inq_filter_avail": "4.9.0",
    "nc_def_var_quantize": "4.9.0",
    "nc_inq_var_quantize": "4.9.0",
    "nc_def_var_bzip2": "4.9.0",
    "nc_inq_var_bzip2": "4.9.0",
    "nc_def_var_zstandard": "4.9.0",
    "nc_inq_var_zstandard": "4.9.0",
    "nc_def_var_blosc": "4.9.0",
    "nc_inq_var_blosc": "4.9.0",
    "nc_inq_var_filter_ids": "4.8.0",
    "nc_inq_var_filter_info": "4.8.0",
    "nc_plugin_path_ndirs": "4.9.3",
    "nc_plugin_path_get": "4.9.3",
    "nc_plugin_path_set": "4.9.3",
}
"""The first netcdf-c that has a call, where that is newer than 4.7."""


def netcdf4() -> Any:
    """Return the module netCDF4.

    Raises
    ------
    MissingFilterError
        If it is not installed; names the extra.
    """
    try:
        import netCDF4
    except ImportError as error:
        raise MissingFilterError(
            f"tamis.netcdf works through netCDF4, which cannot be imported here ({error}): pip install 'tamis[netcdf]'"
        ) from error
    return netCDF4


def version() -> str:
    """Return the version of netcdf-c."""
    return str(netcdf4().__netcdf4libversion__)


def has(name: str) -> bool:
    """Return whether libnetcdf, or its libhdf5, has a call."""
    return hasattr(_loaded(), name)


def call(name: str, *arguments: Any) -> int:
    """Call a function and return its result, a status for those of netCDF-C.

    Raises
    ------
    FileError
        If the libraries do not have it; names the first netcdf-c that has it.
    ParameterError
        If an argument is no whole number, or does not fit: ctypes would cut it.
    """
    function = _function(name)
    for kind, argument in zip(_ARGUMENTS[name], arguments, strict=True):
        low, high = _LIMITS.get(kind, (0, 0))
        if high and not (isinstance(argument, (int, np.integer)) and low <= argument <= high):
            raise ParameterError(f"expected whole numbers of {low} to {high} for {name}, got {argument!r}")
    return int(function(*arguments))


@cache
def _loaded() -> ctypes.PyDLL:
    netcdf4()
    import netCDF4._netCDF4 as extension

    return ctypes.PyDLL(extension.__file__)


@cache
def _function(name: str) -> Any:
    try:
        function = getattr(_loaded(), name)
    except AttributeError:
        since = _SINCE.get(name)
        advice = f": upgrade netCDF4 to one with netcdf-c {since}" if since else ""
        raise FileError(
            f"expected netcdf-c {since or 'with HDF5'}, which has {name}, got {version()} in netCDF4"
            f" {netcdf4().__version__}{advice}"
        ) from None
    function.argtypes = _ARGUMENTS[name]
    function.restype = None if name.endswith("fix8") else c_int64 if name in _WIDE else c_int
    return function
