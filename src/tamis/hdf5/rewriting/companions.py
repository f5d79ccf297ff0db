"""Companions of datasets that are written anew: made while chunks are, and given name and attributes at the end."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import h5py
import numpy as np
from h5py import h5a, h5s, h5t
from numpy.typing import NDArray

from tamis.cf import FILL_ATTRIBUTES
from tamis.chunks.grid import Origin
from tamis.hdf5.companions import ANCILLARY, MARK, TABLE, has_companion, other_ancillary
from tamis.hdf5.lib.direct_chunks import check_recorded
from tamis.hdf5.rewriting.encoding import FLAGS_PIPELINE
from tamis.hdf5.rewriting.plans import Plan
from tamis.hdf5.storage import fill_value
from tamis.hdf5.tree.create import create_like
from tamis.hdf5.tree.references import copy_attribute
from tamis.hdf5.writing.creation import new_dataset
from tamis.missing.definition import Missing
from tamis.missing.table import MOST_FLAGS, Flags, can_flag

_ENDING = "_missing"
_SHARED = ("coordinates", "grid_mapping", "_Netcdf4Dimid", "_Netcdf4Coordinates")
"""Attributes about the axes of a variable, which its companion shares."""


def flags_for(dataset: h5py.Dataset, dtype: np.dtype[Any], missing: Missing) -> Flags | None:
    """Make the table of missing values that a dataset may have, without reading its values.

    Parameters
    ----------
    dataset
        The source.
    dtype
        Of the target.
    missing
        What stands for missing values in it.

    Returns
    -------
    Flags or None
        None where it can have no missing values, or where their bits cannot be told apart.
    """
    if not can_flag(dtype) or len(missing.values) > MOST_FLAGS // 2:
        return None
    values = [*missing.values, *_nan_values(dataset, dtype)]
    return Flags.of(values, dtype) if values or dtype.kind == "f" else None


def _nan_values(dataset: h5py.Dataset, dtype: np.dtype[Any]) -> list[NDArray[Any]]:
    """NaN that stands for missing values by an attribute or as the fill value, with its bits."""
    if dtype.kind != "f":
        return []
    found = [fill_value(dataset)]
    for name in FILL_ATTRIBUTES:
        with suppress(Exception):  # what cannot be read names no value
            found.append(np.asarray(dataset.attrs[name]))
    return [each for some in found if some.dtype.kind == "f" for each in some.astype(dtype).reshape(-1) if each != each]


def flags_of_rest(plan: Plan, source: h5py.Dataset, count: int) -> Flags | None:
    """Return the flags of a plan what stands for chunks that are not stored, where fewer are than the array has."""
    if plan.flags is None or count == math.prod(
        -(-extent // step) for extent, step in zip(source.shape, plan.chunks, strict=True)
    ):
        return plan.flags
    found = plan.flags.find(fill_value(source).astype(plan.dtype).reshape(1))
    return plan.flags if found is None else replace(plan.flags, fill=int(found[0]))


class CompanionWriter:
    """The companion of a dataset that is being written, which is there from the first chunk with missing values on.

    Parameters
    ----------
    target
        The dataset.
    chunks
        Shape of its chunks, and of those of the companion.
    flags
        What its flags stand for; None if it shall have none.
    """

    def __init__(self, target: h5py.Dataset, chunks: tuple[int, ...], flags: Flags | None) -> None:
        self._target, self._chunks, self._flags = target, chunks, flags
        self._recorded: dict[Origin, tuple[int, int]] = {}
        # Without a name until all names of the file are known; gone if it gets none.
        self.dataset: h5py.Dataset | None = self._made() if flags and flags.fill else None

    def put(self, origin: Origin, encoded: tuple[bytes, int] | None) -> None:
        """Write the flags of a chunk; None where they are what was never written has."""
        if encoded is None:
            return
        self.dataset = self.dataset or self._made()
        data, mask = encoded
        self.dataset.id.write_direct_chunk(origin, data, mask)
        self._recorded[origin] = len(data), mask

    def finish(self) -> None:
        """Check what HDF5 recorded.

        Raises
        ------
        FileError
            If it recorded a chunk not as it was written.
        """
        if self.dataset is not None:
            check_recorded(self.dataset, self._recorded)

    def _made(self) -> h5py.Dataset:
        assert self._flags is not None
        words = self._flags.words()
        made, _ = new_dataset(
            self._target.parent,
            self._target.shape,
            np.uint8,
            filters=FLAGS_PIPELINE,
            chunks=self._chunks,
            maxshape=self._target.maxshape,
            fillvalue=np.uint8(self._flags.fill),
            attrs=None,
        )
        _set_text(made, "long_name", f"where {_name(self._target)} is missing")
        _set_text(made, "standard_name", "status_flag")
        made.attrs["flag_values"] = np.arange(len(words), dtype=np.uint8)
        _set_text(made, "flag_meanings", " ".join(words))
        made.attrs[TABLE] = self._flags.values
        return made


def create_empty(source: h5py.Dataset, parent: h5py.Group, name: str) -> h5py.Dataset:
    """Make a dataset without values in place of a companion that `replace_companions` will remove."""
    return create_like(source, parent, name, chunks=source.chunks, filters=())


def replace_companions(file: h5py.File, old: Iterable[str], new: Mapping[str, h5py.Dataset | None]) -> None:
    """Remove companions that are out of date, and name others in the attributes of their variables.

    Parameters
    ----------
    file
        With all else in its place, attributes included.
    old
        Paths of those to remove.
    new
        By path of a variable that was written anew: its companion without a name, None if it has none any more.
    """
    for path in new:
        if has_companion(file[path]):
            _forget(file[path])
    for path in old:
        for axis, scales in enumerate(_scales(file[path])):
            for each in scales:
                file[path].dims[axis].detach_scale(each)
        del file[path]
    for path, companion in new.items():
        if companion is not None:
            _link(file[path], companion)


def _link(variable: h5py.Dataset, companion: h5py.Dataset) -> None:
    """Give a companion its name and the axes of its variable, and name it in the variable's attributes."""
    parent, name = variable.parent, f"{_name(variable)}{_ENDING}"
    names = itertools.chain([name], (f"{name}{number}" for number in itertools.count(2)))
    free = next(each for each in names if parent.get(each, getlink=True) is None)
    parent[free] = companion
    for shared in _SHARED:
        raw = shared.encode()
        if h5a.exists(variable.id, raw):
            copy_attribute(variable.id, companion.id, raw, h5a.open(variable.id, raw).get_type(), lambda each: each)
    for axis, scales in enumerate(_scales(variable)):
        for each in scales:
            companion.dims[axis].attach_scale(each)
    _set_text(variable, MARK, f"{parent.name.rstrip('/')}/{free}")
    _set_text(variable, ANCILLARY, " ".join([*other_ancillary(variable), free]))


def _forget(variable: h5py.Dataset) -> None:
    """Take what names a companion out of the attributes of a variable."""
    said = other_ancillary(variable)
    del variable.attrs[MARK]
    if said:
        _set_text(variable, ANCILLARY, " ".join(said))
    elif ANCILLARY in variable.attrs:
        del variable.attrs[ANCILLARY]


def _scales(dataset: h5py.Dataset) -> Sequence[Sequence[h5py.Dataset]]:
    """Dimension scales of each axis; a variable that is one belongs to its own axis."""
    if dataset.is_scale and "DIMENSION_LIST" not in dataset.attrs:
        return [[dataset]] + [[] for _ in dataset.shape[1:]]
    return [dataset.dims[axis].values() for axis in range(dataset.ndim)]


def _name(dataset: h5py.Dataset) -> str:
    return str(dataset.name).rpartition("/")[2]


def _set_text(dataset: h5py.Dataset, name: str, text: str) -> None:
    """Set an attribute as the netCDF library writes text: characters of a fixed number."""
    raw = text.encode("utf-8", "surrogateescape")
    kind = h5t.C_S1.copy()
    kind.set_size(max(len(raw), 1))
    kind.set_cset(h5t.CSET_ASCII if raw.isascii() else h5t.CSET_UTF8)
    if name in dataset.attrs:
        del dataset.attrs[name]
    attribute = h5a.create(dataset.id, name.encode(), kind, h5s.create(h5s.SCALAR))
    attribute.write(np.array(raw, f"S{kind.get_size()}"), mtype=kind)
