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
