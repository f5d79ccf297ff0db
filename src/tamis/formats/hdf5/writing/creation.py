"""Create chunked datasets with filters, which get their name when they are complete, and encode chunks for them."""

from __future__ import annotations

import math
import operator
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t
from numpy.typing import DTypeLike, NDArray

from tamis.arguments import ATTRIBUTES, DTYPE_LIKE
from tamis.errors import FileError, MissingFilterError, ParameterError, located
from tamis.filters import ChunkType, Stage
from tamis.filters.registry import is_known, needs_plugin
from tamis.formats.hdf5.dataset import has_companion, is_companion
from tamis.formats.hdf5.lib import calls, new_filters
from tamis.formats.hdf5.lib.attributes import name_containers, record_rounding, replace_attributes, text_attribute
from tamis.formats.hdf5.lib.foreign_filters import is_available
from tamis.formats.hdf5.stored_array import Hdf5Array
from tamis.formats.hdf5.tree.links import GROUP
from tamis.meaning.companions import MARK
from tamis.meaning.missing import Missing
from tamis.meaning.variables import asked_bound
from tamis.pipeline import Pipeline, as_pipeline
from tamis.rewrite.encode import ChunkEncoder, Encoded, is_lossy
from tamis.rewrite.new_packing import NewPacking, codes_of_array, of_range, packed
from tamis.rewrite.steps import RoundStep
from tamis.rewrite.values import Cast, Padding, cast, growing_chunks
from tamis.rounding import BitGroom, Codes, Pack, Rounding, recorded_rounding, still_needed
from tamis.safety.library_errors import reading

if TYPE_CHECKING:
    from tamis.arrays.grid import Origin


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
        Type of the values, unpacked if they are to be packed. ZFP requires native byte order.
    filters
        A `Pipeline`, a filter, or their text such as ``"zfp(accuracy=0.1)|shuffle|deflate(4)|fletcher32"``. A rounding,
        as in ``"bitround(keepbits=7)|shuffle|deflate(4)"``, is recorded in an attribute; tamis and netCDF-C round what
        they write into such a dataset, h5py does not. ``"pack(bound=0.1,range=200:330)"`` creates a dataset of integers
        with the attributes of packing; `write` and `Appender` pack floats into it, with NaN and masked ones as missing.
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
    GROUP.check("parent", parent)
    extents = _extents("shape", shape)
    with located(path=parent.file.filename, dataset=new_path(parent, name)):
        check_place(parent, name, overwrite=False)
        dataset, _ = new_dataset(
            parent, extents, dtype, filters=filters, chunks=chunks, maxshape=maxshape, fillvalue=fillvalue, attrs=attrs
        )
        return named(dataset, parent, name, as_pipeline(filters).rounding)


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
    packing: NewPacking | None = None,
) -> tuple[h5py.Dataset, Pipeline]:
    """Create a dataset without a name in the file of `parent`; see `create_dataset`."""
    DTYPE_LIKE.check("dtype", dtype)
    ATTRIBUTES.check_optional("attrs", attrs)
    pipeline = as_pipeline(filters)
    attrs = attrs or {}
    if isinstance(pipeline.rounding, Pack):
        packing = packing or of_range(pipeline.rounding, dtype, fillvalue, attrs)
        dtype, fillvalue, pipeline = packing.codes.dtype, packing.fill, pipeline.without_rounding
        attrs = {name: value for name, value in attrs.items() if name not in packing.attributes}
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
    if zero := [name for name in attrs if "\0" in name]:
        raise ParameterError(
            f"{parent.file.filename}: expected names of attributes without zero bytes, got {zero[0]!r}"
        )
    dataset = _created(parent, shape, most, chunk, pipeline, fill)
    dataset.attrs.update(attrs)
    if packing is not None:
        replace_attributes(dataset, packing.attributes)
    if pipeline.rounding is not None and still_needed(pipeline.rounding, attrs):
        record_rounding(dataset, pipeline.rounding)
    return dataset, as_recorded(pipeline, dataset)


def _created(
    parent: h5py.Group,
    shape: tuple[int, ...],
    most: tuple[int | None, ...],
    chunk: ChunkType,
    pipeline: Pipeline,
    fill: NDArray[Any] | None,
) -> h5py.Dataset:
    """Create a dataset without a name and without attributes."""
    place = parent.file.filename
    try:
        space = h5s.create_simple(shape, _unlimited(most))
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_chunk(chunk.shape)
        plist.set_obj_track_times(False)  # otherwise bytes would differ from run to run
        if fill is not None:
            plist.set_fill_value(fill)
        new_filters.set_filters(plist, filters_of(pipeline, chunk))
        datatype = h5t.py_create(chunk.dtype, logical=True)
        return h5py.Dataset(new_filters.create_dataset(parent.id, None, datatype, space, plist))
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(
            f"{place}: HDF5 cannot create a dataset of {chunk.dtype} with {pipeline}: {error}"
        ) from error
    except (OSError, RuntimeError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{place}: HDF5 cannot create the dataset: {error}") from error


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
        raise FileError(f"{place}: the file is open for reading only")
    if parent.get(name, getlink=True) is None:
        return
    if not overwrite:
        raise FileError(f"{place}: {name!r} already exists: pass overwrite=True to replace it")
    if not isinstance(parent.get(name), h5py.Dataset):
        raise FileError(f"{place}: {name!r} is not a dataset, and cannot be replaced by one: choose another name")


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
        name_containers(result.file, {result.name: rounding})
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


def filters_of(pipeline: Pipeline, chunk: ChunkType) -> list[new_filters.NewFilter]:
    """Return the filters of datasets that are created for such chunks."""
    return [_new_filter(stage, chunk) for stage in pipeline.stages]


def _new_filter(stage: Stage, chunk: ChunkType) -> new_filters.NewFilter:
    code, flags = stage.filter.hdf5_id, int(stage.optional)
    if _is_asked(code):
        return new_filters.NewFilter(code, flags, stage.filter.requested)
    return new_filters.NewFilter(code, flags, stage.filter.stored(chunk), is_stored=True)


def _is_asked(code: int) -> bool:
    """Return whether HDF5 asks a filter for its parameters: its own ones, that of tamis, and those tamis lacks.

    The first know more about the values than numpy's type of them tells.
    """
    if needs_plugin(code):
        return not is_known(code) and is_available(code)
    return new_filters.is_registered(code)


def as_recorded(pipeline: Pipeline, dataset: h5py.Dataset) -> Pipeline:
    """Return a pipeline with the parameters in the file, by which readers decode."""
    cd_values = [entry.values for entry in calls.filter_list(dataset.id.get_create_plist())]
    return Pipeline(replace(stage, stored=stored) for stage, stored in zip(pipeline.stages, cd_values, strict=True))


def _check_shapes(shape: tuple[int, ...], chunk_shape: tuple[int, ...], most: tuple[int | None, ...]) -> None:
    if not shape:
        raise ParameterError("expected an array with axes, got a scalar, which cannot have chunks")
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


@dataclass(frozen=True, slots=True)
class OpenDataset:
    """A chunked dataset of a file that is open for writing, whose chunks are encoded here."""

    dataset: h5py.Dataset
    pipeline: Pipeline  # Its filters, with the parameters in the file
    chunk: ChunkType  # Type and shape of the chunks
    label: str  # File and dataset, for messages
    # Markers of missing values, if the filters are lossy or values are rounded: the attributes ``_FillValue`` and
    # ``missing_value``, and a fill value other than 0
    missing: Missing
    fill: NDArray[Any]  # The fill value
    padding: Padding  # Values of chunks beyond the array
    # Rounding that an attribute of the dataset records, which new values get; None without one
    rounding: RoundStep | None = None
    codes: Codes | None = None  # What floats are packed to; None if the dataset is not packed by tamis

    @classmethod
    def of(cls, dataset: h5py.Dataset, pipeline: Pipeline | None = None, label: str = "") -> OpenDataset:
        """Return the target for a dataset."""
        label = label or f"{dataset.file.filename}: {dataset.name}"
        with reading(dataset.file.filename, dataset=str(dataset.name or "")):
            return cls._of(dataset, pipeline, label)

    @classmethod
    def _of(cls, dataset: h5py.Dataset, pipeline: Pipeline | None, label: str) -> OpenDataset:
        if dataset.file.mode == "r":
            raise FileError(f"{label}: the file is open for reading only")
        if dataset.chunks is None:
            raise ParameterError(f"{label}: the dataset has no chunks: create it with chunks")
        if has_companion(dataset) or is_companion(dataset):
            raise ParameterError(
                f"{label}: expected a dataset without a missing-value mask, got {_role_text(dataset)}: writing to one"
                " would leave the other out of date: repack the file with missing='exact' (--missing exact), or write a"
                " new dataset"
            )
        dtype = dataset.dtype
        if dtype.hasobject or not h5t.py_create(dtype, logical=True).equal(dataset.id.get_type()):
            raise ParameterError(f"{label}: expected values of fixed size that NumPy has, got {dtype}: write with h5py")
        if not calls.filters_partial_chunks(dataset.id.get_create_plist()):
            raise ParameterError(f"{label}: the dataset stores its edge chunks unfiltered: write it with h5py")
        array = Hdf5Array.of(dataset)
        recorded = pipeline or _with_recorded_bound(array)
        noted = recorded_rounding(array.attributes, array.type.numbers)
        rounding = RoundStep(noted, dataset.shape) if noted is not None and noted.in_place else None
        codes = codes_of_array(array, noted.bound) if isinstance(noted, Pack) else None
        may_change = rounding is not None or is_lossy(recorded)
        missing = array.meaning.missing if may_change and dtype.kind in "fiu" else Missing()
        padding = Padding.of(array, dtype)
        chunk, fill = ChunkType(dtype, dataset.chunks), array.fill.value.astype(dtype)
        return cls(dataset, recorded, chunk, label, missing, fill, padding, rounding, codes)

    @property
    def bound(self) -> float | None:
        """Largest error of a value, from the given data to the values that are read; None and 0 add no promise."""
        return self.pipeline.error_bound if self.rounding is None else self.rounding.rounding.absolute_bound

    @property
    def masked(self) -> NDArray[Any] | None:
        """The value of masked elements: the fill value, None if the user did not set one."""
        is_set = self.dataset.id.get_create_plist().fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED
        return self.fill if is_set else None

    def within(self, bound: float | None) -> OpenDataset:
        """Return the target with another allowed error; None for that of the filters."""
        if bound is None:
            return self
        if not (isinstance(bound, (int, float)) and 0 < bound < math.inf):
            raise ParameterError(f"{self.label}: expected a finite bound above 0, got bound={bound!r}")
        if not is_lossy(self.pipeline):
            raise ParameterError(f"{self.label}: a bound needs lossy filters, got {self.pipeline}")
        if self.pipeline.bound is not None and bound > self.pipeline.bound:
            raise ParameterError(
                f"{self.label}: expected a bound of at most {self.pipeline.bound!r}, which the file records, got"
                f" {bound!r}"
            )
        return replace(self, pipeline=self.pipeline.within(bound))

    def missing_in(self, values: NDArray[Any]) -> Missing:
        """Return the markers of missing values in data; if some values are masked, including the fill value."""
        if not np.ma.is_masked(values) or self.masked is None:
            return self.missing
        fill = self.masked[()]
        has_fill = fill in self.missing.values or fill != fill
        return self.missing if has_fill else replace(self.missing, values=(*self.missing.values, fill))

    def stored(self, given: NDArray[Any], origin: Origin, missing: Missing) -> Cast:
        """Return values as the filters get them: packed, or rounded to the type of the dataset and by its rounding."""
        if self.codes is not None and given.dtype.kind == "f":
            return Cast(packed(self.codes, given).astype(self.chunk.dtype, copy=False), 0.0)
        values, error = cast(
            given, self.chunk.dtype, masked=self.masked, missing=missing, bound=self.bound, origin=origin
        )
        if self.rounding is not None:
            rounded = self.rounding.apply(values, origin, missing).values
            values = self.rounding.within_bound(np.ma.getdata(given), values, rounded, missing)
        return Cast(values, error)

    def encode(self, values: NDArray[Any], missing: Missing, rounding: float, *, lossless: bool = False) -> Encoded:
        """Encode the values of a chunk, rounded to the type of the file; see `ChunkEncoder`."""
        encoder = ChunkEncoder(self.pipeline, self.chunk, self.padding, missing, rounding)
        return encoder.encode_lossless(values) if lossless else encoder.encode(values)


def _role_text(dataset: h5py.Dataset) -> str:
    if is_companion(dataset):
        return "the missing-value mask of another"
    return f"one whose missing values are in the mask {text_attribute(dataset, MARK)!r}"


def array_like(data: Any) -> Any:
    """Return data with shape, dtype and slices unchanged, and anything else as an array."""
    sliced = all(hasattr(data, name) for name in ("shape", "dtype", "__getitem__"))
    if sliced and isinstance(data.dtype, np.dtype) and len(data.shape):
        return data
    return np.asarray(data)


def check_growth(target: OpenDataset) -> None:
    """Raise MissingFilterError if HDF5 would not extend a dataset, because it needs a filter for fill values there."""
    required = [stage.filter for stage in target.pipeline.stages if not stage.optional]
    if target.masked is None:
        return
    if missing := [entry for entry in required if not is_available(entry.id)]:
        raise MissingFilterError(
            f"{target.label}: HDF5 lacks {missing[0]}, and extends no dataset that has a fill value and a "
            "required filter that it lacks: set HDF5_PLUGIN_PATH to the folder of its plugin, or import "
            "hdf5plugin first in Python"
        )


def growing_axis(target: OpenDataset, axis: int) -> int:
    """Return a growing axis, counted from the start; raise ParameterError if there is no room for steps."""
    shape, most = target.dataset.shape, target.dataset.maxshape
    try:
        axis = len(shape) if isinstance(axis, bool) else operator.index(axis)
    except TypeError:
        raise ParameterError(f"{target.label}: expected an axis of {shape}, got axis={axis!r}") from None
    if not -len(shape) <= axis < len(shape):
        raise ParameterError(f"{target.label}: expected an axis of {shape}, got axis={axis!r}")
    axis %= len(shape)
    if most[axis] is not None and most[axis] <= shape[axis]:
        raise ParameterError(
            f"{target.label}: the dataset cannot grow along axis {axis}, got shape {shape} and maxshape "
            f"{most}: create it with maxshape None there"
        )
    if math.prod(extent for other, extent in enumerate(shape) if other != axis) == 0:
        raise ParameterError(f"{target.label}: expected steps with values, got shape {shape} and axis {axis}")
    if axis and target.rounding is not None and isinstance(target.rounding.rounding, BitGroom):
        raise ParameterError(
            f"{target.label}: expected steps along axis 0 for {target.rounding.rounding}, which rounds values of even"
            f" index down and others up, got axis {axis}, where a step changes the indices before it: use granular"
        )
    return axis


def _with_recorded_bound(array: Hdf5Array) -> Pipeline:
    """Return the filters of an array with the bound that its attributes record, which new values keep, too."""
    pipeline, bound = array.storage.pipeline, asked_bound(array.attributes)
    return pipeline.within(bound) if is_lossy(pipeline) and bound and array.meaning.packing is None else pipeline
