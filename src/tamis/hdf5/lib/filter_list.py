"""The filters of a property list as a pipeline of tamis."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from h5py import h5z

from tamis.filters import Request, Stage
from tamis.hdf5.lib import calls
from tamis.pipeline import Pipeline


def listed_pipeline(plist: Any) -> Pipeline:
    """Return the filters of creation properties that came from a file: order, flags, duplicates, unknown ones."""
    return _pipeline(tuple(calls.filter_list(plist)))


@lru_cache(maxsize=1024)  # most datasets of a file have the same filters
def _pipeline(listed: tuple[calls.ListedFilter, ...]) -> Pipeline:
    return Pipeline(map(_stage, listed))


def _stage(listed: calls.ListedFilter) -> Stage:
    optional = bool(listed.flags & h5z.FLAG_OPTIONAL)
    return Stage.listed(Request(listed.id, listed.values), listed.label, optional=optional, total=listed.total)
