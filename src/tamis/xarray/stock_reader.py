"""What xarray's own engines read of a file or store: metadata of all variables, and samples of their values.

This module imports nothing of tamis.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
import xarray

SMALL_NBYTES = 64 << 10
"""Bytes of arrays of which all values are read."""

Regions = dict[tuple[str, str], list[tuple[slice, ...]]]
"""By path of the group and name of the variable, the parts to be read."""


class Read(NamedTuple):
    """A variable as xarray reads it."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    samples: list[tuple[tuple[slice, ...], Any]]  # Parts and their values
    reason: str  # Why values cannot be read, such as a filter whose plugin is not installed; empty if they can


def read(path: str, engine: str, regions: Regions | None = None) -> dict[tuple[str, str], Read]:
    """Return all variables of all groups; of each its first and last chunk, or the given parts."""
    found: dict[tuple[str, str], Read] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        groups = xarray.open_groups(path, engine=engine)
        try:
            for group, ds in groups.items():
                for name, variable in ds.variables.items():
                    key = (group, str(name))
                    parts = _parts(variable) if regions is None else regions.get(key, [])
                    samples, reason = [], ""
                    try:
                        samples = [(part, np.asarray(variable[part].values)) for part in parts]
                    except Exception as error:
                        reason = f"{type(error).__name__}: {error}"
                    found[key] = Read(tuple(map(str, variable.dims)), variable.shape, samples, reason)
        finally:
            for ds in groups.values():
                ds.close()
    return found


def _parts(variable: xarray.Variable) -> list[tuple[slice, ...]]:
    """Return the first and the last chunk, or all of a small variable."""
    if not variable.size:
        return []
    whole = tuple(slice(0, extent) for extent in variable.shape)
    if variable.nbytes <= SMALL_NBYTES:
        return [whole]
    sizes = variable.encoding.get("chunksizes") or variable.encoding.get("chunks") or ()
    if len(sizes) != variable.ndim:  # contiguous, or characters with an axis of their own
        sizes = (1, *variable.shape[1:])
    pairs = [(min(step, extent), extent) for step, extent in zip(sizes, variable.shape, strict=True)]
    first = tuple(slice(0, step) for step, _ in pairs)
    last = tuple(slice((extent - 1) // step * step, extent) for step, extent in pairs)
    return [first] if first == last else [first, last]
