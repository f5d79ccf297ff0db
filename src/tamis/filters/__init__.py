"""Registered HDF5 filters, one frozen object each, and the registry of those that tamis knows."""

from __future__ import annotations

from tamis.filters.base import ChunkType, Filter
from tamis.filters.standard import Deflate, Fletcher32, Shuffle
from tamis.filters.zfp import StoredZfp, Zfp

__all__ = ["BY_NAME", "ChunkType", "Deflate", "Filter", "Fletcher32", "Shuffle", "StoredZfp", "Zfp"]

BY_NAME: dict[str, type[Filter]] = {known.name: known for known in (Zfp, Shuffle, Deflate, Fletcher32)}
"""Filters that a pipeline can be written with, by the name that tamis gives them."""
