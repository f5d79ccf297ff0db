"""The ways to write filters down: one module for each notation, with its parser and printer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lazy_names import face_names

if TYPE_CHECKING:
    from tamis.notation import cdl, h5py_keywords, zarr
    from tamis.notation.cdl import filters_as_stored
    from tamis.notation.detect import read
    from tamis.notation.h5repack import command_text
    from tamis.notation.netcdf import (
        ALL,
        Compat,
        NccopyArgument,
        argument_text,
        chain_text,
        in_netcdf_order,
        netcdf_requests,
        parse_argument,
    )
    from tamis.notation.text import Chain, Reading, malformed

__all__ = [
    "ALL",
    "Chain",
    "Compat",
    "NccopyArgument",
    "Reading",
    "argument_text",
    "cdl",
    "chain_text",
    "command_text",
    "filters_as_stored",
    "h5py_keywords",
    "in_netcdf_order",
    "malformed",
    "netcdf_requests",
    "parse_argument",
    "read",
    "zarr",
]

__getattr__ = face_names(
    globals(),
    {
        "cdl": "cdl filters_as_stored",
        "detect": "read",
        "h5py_keywords": "h5py_keywords",
        "h5repack": "command_text",
        "netcdf": "ALL Compat NccopyArgument argument_text chain_text in_netcdf_order netcdf_requests parse_argument",
        "text": "Chain Reading malformed",
        "zarr": "zarr",
    },
)
