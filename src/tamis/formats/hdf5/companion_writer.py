"""Write companions of new datasets: created together with the chunks, named and described at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import h5py
import numpy as np
from h5py import h5a, h5g

from tamis.formats.hdf5.companions import has_companion, other_ancillary
from tamis.formats.hdf5.lib.attributes import set_text
from tamis.formats.hdf5.lib.netcdf_names import NON_COORDINATE
from tamis.formats.hdf5.tree.create import create_like
from tamis.formats.hdf5.tree.references import copy_attribute
from tamis.formats.hdf5.writing.creation import new_dataset
from tamis.meaning.companions import ANCILLARY, MARK, SHARED, TABLE, companion_names, description

if TYPE_CHECKING:
    from tamis.formats.hdf5.tree.walk import Link
    from tamis.meaning.missing import Flags
    from tamis.pipeline import Pipeline

_SHARED = (*SHARED, "_Netcdf4Dimid", "_Netcdf4Coordinates")
"""Attributes about axes that a companion copies from its variable."""


def create_companion(
    variable: h5py.Dataset, chunk_shape: tuple[int, ...], pipeline: Pipeline, flags: Flags
) -> tuple[h5py.Dataset, Pipeline]:
    """Create the companion of a new dataset, without a name until all names of the file are known."""
    companion, recorded = new_dataset(
        variable.parent,
        variable.shape,
        np.uint8,
        filters=pipeline,
        chunks=chunk_shape,
        maxshape=variable.maxshape,
        fillvalue=np.uint8(flags.fill),
        attrs=None,
    )
    for name, value in description(_name(variable), flags).items():
        if isinstance(value, str):
            set_text(companion, name, value)
        else:
            companion.attrs[name] = value
    companion.attrs[TABLE] = flags.values
    return companion, recorded


def create_empty(source: Callable[[], h5py.Dataset], parent: h5g.GroupID, link: Link) -> h5py.Dataset:
    """Create a dataset without values instead of a companion that `replace_companions` will remove."""
    return create_like(source(), h5py.Group(parent), link.text, chunk_shape=source().chunks, filters=())


def replace_companions(file: h5py.File, old: Iterable[str], new: Mapping[str, h5py.Dataset | None]) -> None:
    """Remove outdated companions, and name new ones in the attributes of their variables."""
    for path in new:
        if has_companion(file[path]):
            _forget(file[path])
    for path in old:
        for axis, scales in enumerate(_scales(file[path])):
            for scale in scales:
                file[path].dims[axis].detach_scale(scale)
        del file[path]
    for path, companion in new.items():
        if companion is not None:
            _link(file[path], companion)


def _link(variable: h5py.Dataset, companion: h5py.Dataset) -> None:
    """Name a companion, attach the axes of its variable, and name it in the attributes of the variable."""
    parent = variable.parent
    free = next(name for name in companion_names(_name(variable)) if parent.get(name, getlink=True) is None)
    parent[free] = companion
    for shared in _SHARED:
        raw = shared.encode()
        if h5a.exists(variable.id, raw):
            copy_attribute(variable.id, companion.id, raw, None)
    for axis, scales in enumerate(_scales(variable)):
        for scale in scales:
            companion.dims[axis].attach_scale(scale)
    set_text(variable, MARK, f"{parent.name.rstrip('/')}/{free}")
    set_text(variable, ANCILLARY, " ".join([*other_ancillary(variable), free]))


def _forget(variable: h5py.Dataset) -> None:
    """Remove the name of a companion from the attributes of a variable."""
    others = other_ancillary(variable)
    del variable.attrs[MARK]
    if others:
        set_text(variable, ANCILLARY, " ".join(others))
    elif ANCILLARY in variable.attrs:
        del variable.attrs[ANCILLARY]


def _scales(dataset: h5py.Dataset) -> Sequence[Sequence[h5py.Dataset]]:
    """Return the dimension scales of each axis; a scale is that of its own axis."""
    if dataset.is_scale and "DIMENSION_LIST" not in dataset.attrs:
        return [[dataset]] + [[] for _ in dataset.shape[1:]]
    return [dataset.dims[axis].values() for axis in range(dataset.ndim)]


def _name(dataset: h5py.Dataset) -> str:
    return str(dataset.name).rpartition("/")[2].removeprefix(NON_COORDINATE)
