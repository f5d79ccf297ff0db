"""Whether it was the source that could not be read."""

from __future__ import annotations

from contextlib import closing

import h5py

from tamis.chunks.grid import touched
from tamis.errors import TamisError
from tamis.hdf5.companions import regions_of
from tamis.hdf5.rewriting.plans import Plan
from tamis.hdf5.storage import check_readable
from tamis.hdf5.values import open_values


def unreadable(plan: Plan, source: h5py.Dataset) -> str:
    """Read the values of a dataset, and say why they cannot be read; empty where they can."""
    try:
        check_readable(source)
        with closing(open_values(source)) as values:
            for part in touched(regions_of(source), source.shape, plan.chunks):
                values.read(part)
    except (TamisError, OSError, RuntimeError) as error:
        return str(error)
    return ""
