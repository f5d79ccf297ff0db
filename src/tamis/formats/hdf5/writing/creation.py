"""Create chunked datasets with filters, which get their name when they are complete."""

from __future__ import annotations

import operator
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t
from numpy.typing import DTypeLike

from tamis.errors import FileError, MissingFilterError, ParameterError, located
from tamis.filters import ChunkType, Stage
from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.lib.attributes import name_container, record_rounding
from tamis.formats.hdf5.lib.foreign_filters import is_available
from tamis.formats.hdf5.tree.groups import GROUP
from tamis.kinds import ATTRIBUTES, DTYPE_LIKE, checked
from tamis.pipeline import Pipeline, as_pipeline
from tamis.rewrite.values import growing_chunks
from tamis.rounding import Rounding, still_needed


@checked(parent=GROUP)
def create_dataset(
    parent: h5py.Group,
    name: str,
    shape: int | Sequence[int],
    dtype: DTypeLike,
    *,
    filters: object = "none",
    chunks: int | Sequence[int] | None = None,
    maxshape: int | Sequence[int | None] | None = None,
    fillvalue: Any = None,
    attrs: Mapping[str, Any] | None = None,
) -> h5py.Dataset:
    """Create a chunked dataset without values, for example for an `Appender`.

    h5py's ``create_dataset`` does the same for one filter; this function accepts any number of filters with their
    flags, and refuses filters that HDF5 would silently skip.

    Parameters
    ----------
    parent, name
        Parent and name of the dataset. Missing intermediate groups are also created.
    shape
        Slowest axis first; an axis that steps are appended to may be 0.
    dtype
        Type of the values. ZFP requires native byte order.
    filters
        A `Pipeline`, a filter, or their text such as ``"zfp(accuracy=0.1)|shuffle|deflate(4)|fletcher32"``. A rounding,
        as in ``"bitround(keepbits=7)|shuffle|deflate(4)"``, is recorded in an attribute; tamis and netCDF-C round what
        they write into such a dataset, h5py does not.
    chunks
        Chunk shape; by default at most 1 MiB, in whole blocks of 4 for zfp, and 64 KiB or more if an axis is unlimited.
    maxshape
        Largest shape, None for an unlimited axis; by default `shape`.
    fillvalue
        Value of elements that are never written; by default 0.
    attrs
        Attributes.

    Raises
    ------
    ParameterError
        If such a dataset is impossible, or a filter cannot encode such chunks; names an alternative.
    MissingFilterError
        If a filter cannot be encoded here, or HDF5 does not have a required filter.
    FileError
        If the name is taken, or the file is not open for writing.
    """
    extents = _extents("shape", shape)
    with located(path=parent.file.filename, dataset=new_path(parent, name)):
        check_place(parent, name, overwrite=False)
        dataset, _ = new_dataset(
            parent, extents, dtype, filters=filters, chunks=chunks, maxshape=maxshape, fillvalue=fillvalue, attrs=attrs
        )
        return named(dataset, parent, name, as_pipeline(filters).rounding)


@checked(dtype=DTYPE_LIKE, attrs=ATTRIBUTES.or_none())
def new_dataset(
    parent: h5py.Group,
    shape: tuple[int, ...],
    dtype: DTypeLike,
    *,
    filters: object,
    chunks: int | Sequence[int] | None,
    maxshape: int | Sequence[int | None] | None,
    fillvalue: Any,
    attrs: Mapping[str, Any] | None,
) -> tuple[h5py.Dataset, Pipeline]:
    """Create a dataset without a name in the file of `parent`; see `create_dataset`."""
    pipeline = as_pipeline(filters)
    if pipeline.rounding is not None:
        pipeline.rounding.refuse_packing("whose integers depend on the range of all values")
    kind = np.dtype(dtype)
    most = shape if maxshape is None else _extents("maxshape", maxshape, unlimited=True)
    fill = None if fillvalue is None else _fill_value(fillvalue, kind)
    if chunks is None or chunks is True:  # h5py accepts True, too
        sizes = growing_chunks(shape, most, kind.itemsize, pipeline, fill)
    else:
        sizes = _extents("chunks", chunks)
    _check_shapes(shape, sizes, most)
    chunk = ChunkType(kind, sizes)
    pipeline.check_encodable()
    pipeline.check(chunk)
    place = parent.file.filename
    if zero := [name for name in attrs or {} if "\0" in name]:
        raise ParameterError(f"{place}: expected names of attributes without zero bytes, got {zero[0]!r}")
    try:
        space = h5s.create_simple(shape, _unlimited(most))
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_chunk(sizes)
        plist.set_obj_track_times(False)  # otherwise bytes would differ from run to run
        if fill is not None:
            plist.set_fill_value(fill)
        for stage in pipeline.stages:
            plist.set_filter(stage.filter.id, int(stage.optional), filter_parameters(stage, chunk))
        dataset = h5py.Dataset(h5d.create(parent.id, None, h5t.py_create(kind, logical=True), space, plist))
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(f"{place}: HDF5 cannot create a dataset of {kind} with {pipeline}: {error}") from error
    except (OSError, RuntimeError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{place}: HDF5 cannot create the dataset: {error}") from error
    dataset.attrs.update(attrs or {})
    if pipeline.rounding is not None and still_needed(pipeline.rounding, attrs or {}):
        record_rounding(dataset, pipeline.rounding)
    return dataset, as_recorded(pipeline, dataset)


def new_path(parent: h5py.Group, name: object) -> str:
    """Return the path that a new dataset will have."""
    return posixpath.join(str(parent.name), str(name))


def check_place(parent: h5py.Group, name: str, *, overwrite: bool) -> None:
    """Raise FileError if nothing can be created, or the name is taken and may not be replaced."""
    place = parent.file.filename
    if not isinstance(name, str) or not name.strip("/") or "\0" in name:
        # HDF5 would end the name at the zero byte.
        raise ParameterError(f"{place}: expected a name, text without zero bytes, got {name!r}")
    if parent.file.mode == "r":
        raise FileError(f"{place}: expected a file open for writing, got one open for reading")
    if parent.get(name, getlink=True) is None:
        return
    if not overwrite:
        raise FileError(
            f"{place}: expected a new name, got {name!r}, which already exists: pass overwrite=True to replace it"
        )
    if not isinstance(parent.get(name), h5py.Dataset):
        raise FileError(f"{place}: expected a dataset to replace, got {name!r}, which is something else")


def named(dataset: h5py.Dataset, parent: h5py.Group, name: str, rounding: Rounding | None = None) -> h5py.Dataset:
    """Give a new dataset its name, replacing another, and describe its rounding; return the dataset, opened again."""
    try:
        if parent.get(name, getlink=True) is not None:
            del parent[name]
        parent[name] = dataset
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        raise FileError(f"{parent.file.filename}: cannot create dataset {name!r}: {error}") from error
    dataset.id.close()  # otherwise HDF5 ignores the masks of its chunks
    result = parent[name]
    if rounding is not None and rounding.attribute in result.attrs:
        name_container(result, result.parent, rounding)
    return result


def _extents(name: str, value: Any, *, unlimited: bool = False) -> tuple[Any, ...]:
    """Return extents, from a number or a sequence; None is an unlimited axis if `unlimited` allows that."""
    try:
        extents = value if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
        if any(isinstance(extent, bool) for extent in extents):
            raise TypeError
        return tuple(None if extent is None and unlimited else operator.index(extent) for extent in extents)
    except TypeError:
        raise ParameterError(f"expected whole numbers, one for each axis, got {name}={value!r}") from None


def filter_parameters(stage: Stage, chunk: ChunkType) -> tuple[int, ...]:
    """Return the parameters for H5Pset_filter: requested ones, or stored ones if libhdf5 does not have the filter."""
    if is_available(stage.filter.id):
        return stage.filter.requested
    if not stage.optional:
        raise MissingFilterError(
            f"expected {stage.filter} to be available in HDF5, which creates no dataset with a required filter that it"
            f" lacks: set HDF5_PLUGIN_PATH to the folder of its plugin, import hdf5plugin first in Python, or write"
            f" {stage.filter.name} as optional"
        )
    return stage.filter.stored(chunk)


def as_recorded(pipeline: Pipeline, dataset: h5py.Dataset) -> Pipeline:
    """Return a pipeline with the parameters in the file, by which readers decode."""
    cd_values = [entry.values for entry in calls.filter_list(dataset.id.get_create_plist())]
    return Pipeline(replace(stage, stored=stored) for stage, stored in zip(pipeline.stages, cd_values, strict=True))


def _check_shapes(shape: tuple[int, ...], chunk_shape: tuple[int, ...], most: tuple[int | None, ...]) -> None:
    if not shape:
        raise ParameterError("expected an array with axes, which can have chunks, got a scalar")
    if len(chunk_shape) != len(shape) or any(step < 1 for step in chunk_shape):
        raise ParameterError(f"expected a chunk shape of {len(shape)} axes of 1 or more, got chunks={chunk_shape}")
    ends = [end for end in most if end is not None]
    if len(most) != len(shape) or any(
        end is not None and end < extent for end, extent in zip(most, shape, strict=True)
    ):
        raise ParameterError(f"expected a maxshape that {shape} fits in, got maxshape={most}")
    if 0 in ends:
        raise ParameterError(f"expected axes with values, or that can grow, got shape {shape} and maxshape={most}")
    if any(end is not None and end < step for end, step in zip(most, chunk_shape, strict=True)):
        fitting = tuple(step if end is None else min(step, end) for end, step in zip(most, chunk_shape, strict=True))
        raise ParameterError(f"expected chunks that fit in {most}, got chunks={chunk_shape}: use {fitting}")


def _unlimited(maxshape: Sequence[int | None]) -> tuple[int, ...]:
    return tuple(h5s.UNLIMITED if end is None else end for end in maxshape)


def _fill_value(value: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    array = np.asarray(value)
    if array.shape:
        raise ParameterError(f"expected one fill value, got shape {array.shape}")
    try:
        stored = array.astype(dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise ParameterError(f"expected a fill value that {dtype} can hold, got {value!r}: {error}") from error
    if array.dtype.kind in "biuf" and dtype.kind in "iu" and stored.item() != array.item():
        raise ParameterError(f"expected a fill value that {dtype} can hold, got {value!r}")
    return stored
