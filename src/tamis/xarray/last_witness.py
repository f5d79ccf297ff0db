"""The last witness of a saved dataset: what xarray reads of it in another process is compared with the dataset."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from xarray import Variable

from tamis.errors import BoundError
from tamis.formats.registry import open_store
from tamis.jobs.repack.witnessing import needs_of
from tamis.jobs.witness.look import Unread, Witnessed, key_of, needs_codecs, reader_of, refuse_unread, unopened
from tamis.jobs.witness.loss import Loss, loss_between
from tamis.jobs.witness.process import UnopenedError, read
from tamis.meaning import FILL_ATTRIBUTES
from tamis.rounding import PACKING_ATTRIBUTES

if TYPE_CHECKING:
    from tamis.jobs.repack.result import Repacked
    from tamis.xarray.dataset_store import EncodedGroup


_UNDECODED = {*PACKING_ATTRIBUTES, *FILL_ATTRIBUTES, "_Unsigned"}
"""Attributes of variables that were not decoded when the dataset was opened."""


def check_saved(
    path: Path, groups: Mapping[str, EncodedGroup], results: Mapping[str, Repacked], losses: Mapping[str, Loss]
) -> Witnessed | None:
    """Return what xarray, in another process, reads of a target as the datasets have it; None if it has no engine.

    Blocks of dask arrays are not computed again for this: the sample of such a variable is read, but not compared.

    Raises
    ------
    BoundError
        If xarray does not open the target, or reads something else.
    """
    if path.is_file() and not any(map(find_spec, ("netCDF4", "h5netcdf"))):
        return None
    with open_store(path) as store:
        needs = needs_of(store)
    also = {key_of(place): [item.worst] for place, item in results.items() if item.worst is not None}
    try:
        opened = read(path, also=also, with_codecs=needs_codecs(needs))
    except UnopenedError as error:
        raise unopened(path, error, needs) from error
    chunks, unread = dict[str, int](), list[Unread]()
    for group, encoded in groups.items():
        for name in encoded.variables:
            place, given = posixpath.join(group, name), encoded.dataset.variables.get(name)
            if (item := opened.variables.get((group, name)) or opened.variables.get((group, str(None)))) is None:
                raise BoundError(f"{place}: is not in what xarray opens").at(path=path)
            if item.reason:
                refuse_unread(path, place, item.reason, needs)
                unread.append(Unread(place, item.reason))
                continue
            result = results.get(place)
            if given is None or given.dims != item.dims or given.dtype.kind not in "biufMmOSTU":
                continue
            if (result is not None and result.missing_mask) or _is_hidden(path, encoded.variables[name]):
                continue  # stock readers see the filling
            if item.shape != given.shape:
                raise BoundError(f"{place}: expected the shape {given.shape}, xarray reads {item.shape}").at(path=path)
            # Numbers with units of times, which xarray decodes only when it reads them; durations, which it may not.
            is_other = (given.dtype.kind in "biuf") != (item.kind in "biuf") and given.dtype.kind in "biufm"
            if is_other or hasattr(given._data, "dask") or set(given.attrs) & _UNDECODED:
                continue
            loss = losses[place].largest if place in losses else 0.0
            allowed = loss if result is None else result.largest_error
            for part, values in item.samples:
                _compare(place, path, np.asarray(given[part].values), values, allowed)
            if item.samples:
                chunks[place] = len(item.samples)
    texts = {place: need.text for place, need in needs.items()}
    return Witnessed(reader_of(opened), len(opened.variables), chunks, texts, tuple(unread))


def _is_hidden(path: Path, stored: Variable) -> bool:
    """Return whether a store of Zarr 3 has characters whose fill value xarray cannot read, as a note says."""
    return (path / "zarr.json").is_file() and stored.dtype.kind == "S" and "_FillValue" in stored.attrs


def _compare(place: str, path: Path, given: NDArray[Any], found: NDArray[Any], allowed: float) -> None:
    noise = 0.0
    if found.dtype.kind == "f":
        # Zarr's attributes are float64, so packed values may differ by the last bits of float32.
        with np.errstate(all="ignore"):
            before = np.abs(given.astype(np.float64))
            noise = 1e-5 * float(before.max(initial=0, where=np.isfinite(before)))
    if (wrong := loss_between(given, found, allowed + noise, (0,) * given.ndim).beyond) is not None:
        raise BoundError(f"{place}: expected {wrong.given!s}, xarray reads {wrong.found!s}").at(path=path)
