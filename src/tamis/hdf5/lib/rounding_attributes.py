"""Record the rounding of a dataset in its attributes, as netCDF-C and the CF conventions do."""

from __future__ import annotations

from collections.abc import Mapping

import h5py
from h5py import h5d, h5g, h5p, h5s, h5t

from tamis.hdf5.lib.attributes import text_attribute
from tamis.hdf5.lib.netcdf_attributes import set_text
from tamis.rounding import CONTAINER, Rounding, container_attributes, container_names


def record_rounding(dataset: h5py.Dataset, rounding: Rounding) -> None:
    """Write the attributes with the number of bits or digits, or the step."""
    for name, values in rounding.recorded.items():
        dataset.attrs.create(name, values)


def name_container(dataset: h5py.Dataset, group: h5py.Group, rounding: Rounding) -> None:
    """Let a dataset name the variable of its group that describes the algorithm, which is created if it is not there.

    Parameters
    ----------
    dataset, group
        The dataset and its group, which has all of its other variables already, so that no name is taken.
    rounding
        The rounding of its values.
    """
    expected = container_attributes(rounding)
    if not expected:
        return
    for name in container_names(rounding):
        if group.get(name, getlink=True) is None:
            _create(group, name, expected)
        elif not _has(group.get(name), expected):
            continue
        set_text(dataset, CONTAINER, name)
        return


def name_containers(file: h5py.File, roundings: Mapping[str, Rounding]) -> None:
    """Let datasets, by path, name the variables that describe their rounding; see `name_container`."""
    for path, rounding in roundings.items():
        raw = path.encode("utf-8", "surrogateescape")
        group = h5py.Group(h5g.open(file.id, raw.rpartition(b"/")[0] or b"/"))
        name_container(h5py.Dataset(h5d.open(file.id, raw)), group, rounding)


def _create(group: h5py.Group, name: str, attributes: dict[str, str]) -> None:
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_attr_creation_order(h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED)
    plist.set_obj_track_times(False)
    container = h5py.Dataset(h5d.create(group.id, name.encode(), h5t.NATIVE_INT8, h5s.create(h5s.SCALAR), plist))
    for key, text in attributes.items():
        set_text(container, key, text)


def _has(item: object, attributes: dict[str, str]) -> bool:
    is_scalar = isinstance(item, h5py.Dataset) and item.shape == ()
    return is_scalar and all(text_attribute(item, name) == text for name, text in attributes.items())
