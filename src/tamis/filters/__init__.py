"""Registered HDF5 filters, one frozen object each, and the registry of those that tamis knows.

Filters of hdf5plugin may crash, so they run in separate processes: `tamis.filters.plugin_client` starts
`tamis.filters._plugin_worker`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.filters.base import ChunkType, Data, Filter, Parameter, Request, choice, number, real
from tamis.filters.registry import Stage, by_id, by_name, filter_named, from_values, requested_filter
from tamis.filters.standard import Deflate, Fletcher32, Shuffle
from tamis.filters.unknown import UnknownFilter
from tamis.filters.zfp import StoredZfp, Zfp, plugin_path
from tamis.lazy_names import late_names

if TYPE_CHECKING:
    from tamis.filters.bitshuffle import Bitshuffle
    from tamis.filters.blosc import Blosc, Blosc2
    from tamis.filters.foreign import Sperr, Sz3
    from tamis.filters.nbit import Nbit, Scaleoffset
    from tamis.filters.pcodec import Pcodec
    from tamis.filters.plain import Bzip2, Lz4, Lzf, Zstd
    from tamis.filters.szip import Szip

__all__ = [
    "Bitshuffle",
    "Blosc",
    "Blosc2",
    "Bzip2",
    "ChunkType",
    "Data",
    "Deflate",
    "Filter",
    "Fletcher32",
    "Lz4",
    "Lzf",
    "Nbit",
    "Parameter",
    "Pcodec",
    "Request",
    "Scaleoffset",
    "Shuffle",
    "Sperr",
    "Stage",
    "StoredZfp",
    "Sz3",
    "Szip",
    "UnknownFilter",
    "Zfp",
    "Zstd",
    "by_id",
    "by_name",
    "choice",
    "filter_named",
    "from_values",
    "number",
    "plugin_path",
    "real",
    "requested_filter",
]


_LATE = {
    "Bitshuffle": "bitshuffle",
    "Blosc": "blosc",
    "Blosc2": "blosc",
    "Bzip2": "plain",
    "Lz4": "plain",
    "Lzf": "plain",
    "Nbit": "nbit",
    "Pcodec": "pcodec",
    "Scaleoffset": "nbit",
    "Sperr": "foreign",
    "Sz3": "foreign",
    "Szip": "szip",
    "Zstd": "plain",
}
"""Modules of filters that few files have, imported when they are first used."""


__getattr__ = late_names(globals(), {name: f"{__name__}.{module}" for name, module in _LATE.items()})
