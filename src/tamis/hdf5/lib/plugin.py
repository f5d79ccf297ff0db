"""The plugin ``libh5ztamis.so`` in h5py's libhdf5."""

from __future__ import annotations

from functools import cache

import h5py

from tamis.filters._plugin_file import filter_class


@cache
def register() -> None:
    """Register tamis with h5py's libhdf5 for filter 32013, replacing any other.

    Importing tamis does this; no environment variable is needed.
    """
    h5py.h5z.register_filter(filter_class())


def writes(filter_id: int) -> bool:
    """Return whether h5py's libhdf5 has a filter, and can encode with it."""
    h5z = h5py.h5z
    return bool(h5z.filter_avail(filter_id)) and bool(h5z.get_filter_info(filter_id) & h5z.FILTER_CONFIG_ENCODE_ENABLED)
