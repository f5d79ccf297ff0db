"""The last witness of a saved dataset: xarray's own engine reads a sample, which is compared with the dataset."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tamis.errors import BoundError
from tamis.xarray.encoding_loss import Loss, loss_between
from tamis.xarray.stock_reader import Read, read

if TYPE_CHECKING:
    from tamis.jobs.repack.result import Repacked
    from tamis.xarray.dataset_store import EncodedGroup


_ENGINES = {"h5netcdf": "h5netcdf", "netcdf4": "netCDF4"}
"""Engines of xarray for files, and the packages that they need; h5netcdf has the filters of tamis in this process."""


def check_saved(
    path: Path, groups: Mapping[str, EncodedGroup], results: Mapping[str, Repacked], losses: Mapping[str, Loss]
) -> None:
    """Raise BoundError unless xarray opens a file or store, and reads what the datasets have.

    Blocks of dask arrays are not computed again for this: of such variables, the sample is only read.
    """
    if not (found := _opened(path)):
        return
    for group, encoded in groups.items():
        for name in encoded.variables:
            place, given = posixpath.join(group, name), encoded.dataset.variables.get(name)
            if (item := found.get((group, name)) or found.get((group, str(None)))) is None:
                raise BoundError(f"{place}: is not in what xarray opens").at(path=path)
            result = results.get(place)
            is_filled = result is not None and bool(result.missing_mask)  # stock readers see the filling
            if given is None or given.dims != item.dims or given.dtype.kind not in "biufM" or is_filled:
                continue
            if item.shape != given.shape:
                raise BoundError(f"{place}: expected the shape {given.shape}, xarray reads {item.shape}").at(path=path)
            if hasattr(given._data, "dask") or set(given.attrs) & {"scale_factor", "add_offset", "_FillValue", "units"}:
                continue
            loss = losses[place].largest if place in losses else 0.0
            allowed = loss if result is None else result.largest_error
            for part, values in item.samples:
                _compare(place, path, np.asarray(given[part].values), values, allowed)


def _opened(path: Path) -> dict[tuple[str, str], Read]:
    """Return what xarray reads by the first engine that opens a target; nothing if no engine is installed."""
    names = ["zarr"] if path.is_dir() else [name for name in _ENGINES if find_spec(_ENGINES[name])]
    failure: Exception | None = None
    for engine in names:
        try:
            return read(str(path), engine)
        except Exception as error:
            failure = failure or error
    if failure is None:
        return {}
    text = f"xarray cannot open the target: {type(failure).__name__}: {failure}"
    raise BoundError(text).at(path=path) from failure


def _compare(place: str, path: Path, given: NDArray[Any], found: NDArray[Any], allowed: float) -> None:
    noise = 0.0
    if found.dtype.kind == "f":
        # Zarr's attributes are float64, so packed values may differ by the last bits of float32.
        with np.errstate(all="ignore"):
            before = np.abs(given.astype(np.float64))
            noise = 1e-5 * float(before.max(initial=0, where=np.isfinite(before)))
    if (wrong := loss_between(given, found, allowed + noise, (0,) * given.ndim).beyond) is not None:
        raise BoundError(f"{place}: expected {wrong.given!s}, xarray reads {wrong.found!s}").at(path=path)
