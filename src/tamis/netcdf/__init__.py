"""netCDF-C's filter functions for variables of netCDF4-python, through the libnetcdf inside it.

Names and semantics are those of netCDF-C, with typed filters as arguments and results. Anything that netCDF-C silently
skips is an error. netCDF4 is imported when a function is first used: ``pip install 'tamis[netcdf]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_names import late_names

if TYPE_CHECKING:
    from tamis.netcdf.define import (
        def_var_blosc,
        def_var_bzip2,
        def_var_deflate,
        def_var_filter,
        def_var_fletcher32,
        def_var_quantize,
        def_var_shuffle,
        def_var_szip,
        def_var_zstandard,
    )
    from tamis.netcdf.inquire import (
        Deflation,
        FilterInfo,
        Quantization,
        filters,
        filterspec_fix8,
        filterspec_parse,
        filterspec_parse_parameter,
        filterspec_parselist,
        inq_filter_avail,
        inq_var_blosc,
        inq_var_bzip2,
        inq_var_deflate,
        inq_var_filter,
        inq_var_filter_ids,
        inq_var_filter_info,
        inq_var_fletcher32,
        inq_var_quantize,
        inq_var_shuffle,
        inq_var_szip,
        inq_var_zstandard,
    )
    from tamis.netcdf.library import (
        NetcdfError,
        plugin_path_append,
        plugin_path_get,
        plugin_path_prepend,
        plugin_path_set,
    )
    from tamis.netcdf.new_variable import create_variable

__all__ = [
    "Deflation",
    "FilterInfo",
    "NetcdfError",
    "Quantization",
    "create_variable",
    "def_var_blosc",
    "def_var_bzip2",
    "def_var_deflate",
    "def_var_filter",
    "def_var_fletcher32",
    "def_var_quantize",
    "def_var_shuffle",
    "def_var_szip",
    "def_var_zstandard",
    "filters",
    "filterspec_fix8",
    "filterspec_parse",
    "filterspec_parse_parameter",
    "filterspec_parselist",
    "inq_filter_avail",
    "inq_var_blosc",
    "inq_var_bzip2",
    "inq_var_deflate",
    "inq_var_filter",
    "inq_var_filter_ids",
    "inq_var_filter_info",
    "inq_var_fletcher32",
    "inq_var_quantize",
    "inq_var_shuffle",
    "inq_var_szip",
    "inq_var_zstandard",
    "plugin_path_append",
    "plugin_path_get",
    "plugin_path_prepend",
    "plugin_path_set",
]

_MODULES = {
    "def_var_": "define",
    "filterspec_": "inquire",
    "inq_": "inquire",
    "plugin_path_": "library",
    "create_variable": "new_variable",
    "NetcdfError": "library",
    "filters": "inquire",
}
"""Modules of names by how these begin; the others are results of inquiries. Modules are imported when first used."""


def _module_of(name: str) -> str:
    return next((module for start, module in _MODULES.items() if name.startswith(start)), "inquire")


__getattr__ = late_names(globals(), {name: f"{__name__}.{_module_of(name)}" for name in __all__})
