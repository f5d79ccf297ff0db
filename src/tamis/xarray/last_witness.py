"""The last witness of a saved dataset: what xarray reads of it in another process is compared with the dataset."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from xarray import Variable

from tamis.errors import BoundError
from tamis.formats.registry import open_store
from tamis.jobs.repack.witnessing import needs_of
from tamis.jobs.witness.look import Unread, Witnessed, key_of, needs_codecs, reader_of, refuse_unread, unopened
from tamis.jobs.witness.loss import Loss, loss_between
from tamis.jobs.witness.process import Key, Read, Region, UnopenedError, read
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


class Grown(NamedTuple):
    """A variable of a file that was extended: its old values as xarray reads them, and those of the dataset."""

    old: Variable | None  # None if no old values are left
    new: Variable | None  # None if there are no new ones
    axis: int = 0  # Axis along which new values follow old ones
    length: int = 0  # Number of old steps

    def parts(self, region: Region) -> Iterator[tuple[Variable, Region, Region]]:
        """Yield each variable that has values of a region: with their place in it, and in the region."""
        if self.old is None or self.new is None:
            variable = self.new if self.old is None else self.old
            if variable is not None:
                yield variable, region, tuple(slice(None) for _ in region)
            return
        own = region[self.axis]
        middle = min(max(self.length, own.start), own.stop)
        for variable, start, stop, shift in (
            (self.old, own.start, middle, 0),
            (self.new, middle, own.stop, self.length),
        ):
            if start < stop:
                inside = slice(start - own.start, stop - own.start)
                steps = slice(start - shift, stop - shift)
                yield variable, self._along(region, steps), self._along(tuple(slice(None) for _ in region), inside)

    def _along(self, region: Region, steps: slice) -> Region:
        return tuple(steps if number == self.axis else part for number, part in enumerate(region))


def check_extended(
    path: Path,
    expected: Mapping[Key, Grown],
    results: Mapping[str, Repacked],
    losses: Mapping[str, Loss],
    boundaries: Mapping[Key, list[Region]],
) -> Witnessed | None:
    """Return what xarray, in another process, reads of an extended file as the datasets and the old file have it.

    None if it has no engine. `boundaries` are parts that it reads besides the first, the last and the worst chunk of
    each variable. Blocks of dask arrays are not computed again.

    Raises
    ------
    BoundError
        If xarray does not open the file, or reads something else.
    """
    if path.is_file() and not any(map(find_spec, ("netCDF4", "h5netcdf"))):
        return None
    with open_store(path) as store:
        needs = needs_of(store)
    also = {key: [*parts] for key, parts in boundaries.items()}
    for place, item in results.items():
        if item.worst is not None:
            also.setdefault(key_of(place), []).append(item.worst)
    try:
        opened = read(path, also=also, with_codecs=needs_codecs(needs))
    except UnopenedError as error:
        raise unopened(path, error, needs) from error
    chunks, unread = dict[str, int](), list[Unread]()
    for (group, name), grown in expected.items():
        place = posixpath.join(group, name)
        found = opened.variables.get((group, name))
        if found is None:
            raise BoundError(f"{place}: is not in what xarray opens").at(path=path)
        if found.reason:
            refuse_unread(path, place, found.reason, needs)
            unread.append(Unread(place, found.reason))
            continue
        result = results.get(place)
        loss = losses[place].largest if place in losses else 0.0
        for region, values in found.samples:
            for given, part, inside in grown.parts(region):
                if given.dims == found.dims and _is_comparable(given, found):
                    allowed = 0.0 if given is grown.old else loss if result is None else result.largest_error
                    _compare(place, path, np.asarray(given[part].values), np.asarray(values)[inside], allowed)
        if found.samples:
            chunks[place] = len(found.samples)
    texts = {place: need.text for place, need in needs.items()}
    return Witnessed(reader_of(opened), len(opened.variables), chunks, texts, tuple(unread))


def _is_comparable(given: Variable, found: Read) -> bool:
    """Return whether values of a variable are those that xarray reads, in one type, and need not be computed again."""
    if given.dtype.kind not in "biufmMOSTU" or hasattr(given._data, "dask") or set(given.attrs) & _UNDECODED:
        return False
    return not ((given.dtype.kind in "biuf") != (found.kind in "biuf") and given.dtype.kind in "biufm")


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
