"""Registered HDF5 filters, one frozen object each, and the registry of those that tamis knows."""

from __future__ import annotations

from tamis.filters.base import ChunkType, Data, Filter, Parameter, Request, choice, number
from tamis.filters.registry import by_id, by_name, from_values, requested_filter
from tamis.filters.standard import Deflate, Fletcher32, Shuffle
from tamis.filters.unknown import UnknownFilter
from tamis.filters.zfp import StoredZfp, Zfp

__all__ = [
    "ChunkType",
    "Data",
    "Deflate",
    "Filter",
    "Fletcher32",
    "Parameter",
    "Request",
    "Shuffle",
    "StoredZfp",
    "UnknownFilter",
    "Zfp",
    "by_id",
    "by_name",
    "choice",
    "from_values",
    "number",
    "requested_filter",
]
