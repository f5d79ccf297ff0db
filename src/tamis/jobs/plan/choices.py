"""The words that options of a plan may be, for Python, for the checks and for the command line.

Nothing is imported here that takes long, because the command line shows them in its help.
"""

from __future__ import annotations

from typing import Literal, get_args

Readers = Literal["any", "netcdf", "netcdf-plugins", "zfp", "hdf5plugin", "zarr", "all"]
"""Who must be able to read what is chosen; see `tamis.jobs.plan.readers`."""

Preference = Literal["size", "speed", "archive"]
Risk = Literal["unstable"]
ChunkChoice = Literal["auto", "keep"]
StorageName = Literal["disk", "lustre", "s3"]

READERS, PREFERENCES, RISKS = get_args(Readers), get_args(Preference), get_args(Risk)
CHUNK_CHOICES, STORAGES = get_args(ChunkChoice), get_args(StorageName)

MISSING = ("exact", "mask")
"""Policies for missing values that a plan can predict."""
