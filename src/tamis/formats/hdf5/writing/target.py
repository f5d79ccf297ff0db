"""The dataset that chunks are written into."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from h5py import h5d, h5t
from numpy.typing import NDArray

from tamis.accuracy.value_bounds import ArrayRounding
from tamis.errors import FileError, ParameterError
from tamis.filters import ChunkType
from tamis.formats.hdf5.companions import has_companion, is_companion
from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.lib.attributes import text_attribute
from tamis.formats.hdf5.stored_array import Hdf5Array
from tamis.meaning.companions import MARK
from tamis.meaning.missing import Missing
from tamis.rewrite.encode import ChunkEncoder, Encoded, is_lossy
from tamis.rewrite.values import Padding
from tamis.rounding import BitGroom, recorded_rounding
from tamis.safety.library_errors import reading

if TYPE_CHECKING:
    from tamis.arrays.grid import Origin
    from tamis.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class Target:
    """A chunked dataset of a file that is open for writing, whose chunks are encoded here."""

    dataset: h5py.Dataset
    pipeline: Pipeline  # Its filters, with the parameters in the file
    chunk: ChunkType  # Type and shape of the chunks
    label: str  # File and dataset, for messages
    # Markers of missing values, if the filters are lossy or values are rounded: the attributes ``_FillValue`` and
    # ``missing_value``, and a fill value other than 0
    missing: Missing
    padding: Padding  # Values of chunks beyond the array
    # Rounding that an attribute of the dataset records, which new values get; None without one
    rounding: ArrayRounding | None = None

    @classmethod
    def of(cls, dataset: h5py.Dataset, pipeline: Pipeline | None = None, label: str = "") -> Target:
        """Return the target for a dataset."""
        label = label or f"{dataset.file.filename}: {dataset.name}"
        with reading(dataset.file.filename, dataset=str(dataset.name or "")):
            return cls._of(dataset, pipeline, label)

    @classmethod
    def _of(cls, dataset: h5py.Dataset, pipeline: Pipeline | None, label: str) -> Target:
        if dataset.file.mode == "r":
            raise FileError(f"{label}: expected a file open for writing, got one open for reading")
        if dataset.chunks is None:
            raise ParameterError(f"{label}: expected a chunked dataset, got one without chunks: create it with chunks")
        if has_companion(dataset) or is_companion(dataset):
            raise ParameterError(
                f"{label}: expected a dataset without a companion, got {_role_text(dataset)}: writing to one"
                " would leave the other out of date; repack the file without (--missing exact), or write a new dataset"
            )
        dtype = dataset.dtype
        if dtype.hasobject or not h5t.py_create(dtype, logical=True).equal(dataset.id.get_type()):
            raise ParameterError(f"{label}: expected values of fixed size that NumPy has, got {dtype}: write with h5py")
        if not calls.filters_partial_chunks(dataset.id.get_create_plist()):
            raise ParameterError(
                f"{label}: expected edge chunks that are filtered, got a dataset that stores them unfiltered: write"
                " with h5py"
            )
        array = Hdf5Array.of(dataset)
        recorded = pipeline or array.pipeline
        noted = recorded_rounding(array.attributes, array.number_type)
        rounding = ArrayRounding(noted, dataset.shape) if noted is not None and noted.in_place else None
        may_change = rounding is not None or is_lossy(recorded)
        missing = array.missing if may_change and dtype.kind in "fiu" else Missing()
        padding = Padding.of(array, dtype)
        return cls(dataset, recorded, ChunkType(dtype, dataset.chunks), label, missing, padding, rounding)

    @property
    def fill(self) -> NDArray[Any]:
        """The fill value."""
        return Hdf5Array.of(self.dataset).fill_value.astype(self.chunk.dtype)

    @property
    def bound(self) -> float | None:
        """Largest error of a value, from the given data to the values that are read; None and 0 add no promise."""
        return self.pipeline.error_bound if self.rounding is None else self.rounding.rounding.absolute_bound

    @property
    def masked(self) -> NDArray[Any] | None:
        """The value of masked elements: the fill value, None if the user did not set one."""
        is_set = self.dataset.id.get_create_plist().fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED
        return self.fill if is_set else None

    def within(self, bound: float | None) -> Target:
        """Return the target with another allowed error; None for that of the filters."""
        if bound is None:
            return self
        if not (isinstance(bound, (int, float)) and 0 < bound < math.inf):
            raise ParameterError(f"{self.label}: expected a finite bound above 0, got bound={bound!r}")
        if not is_lossy(self.pipeline):
            raise ParameterError(f"{self.label}: expected lossy filters for a bound, got {self.pipeline}")
        return replace(self, pipeline=self.pipeline.within(bound))

    def missing_in(self, values: NDArray[Any]) -> Missing:
        """Return the markers of missing values in data; if some values are masked, including the fill value."""
        if not np.ma.is_masked(values) or self.masked is None:
            return self.missing
        fill = self.masked[()]
        has_fill = fill in self.missing.values or fill != fill
        return self.missing if has_fill else replace(self.missing, values=(*self.missing.values, fill))

    def rounded(self, values: NDArray[Any], origin: Origin, missing: Missing, given: NDArray[Any]) -> NDArray[Any]:
        """Return values as the rounding of the dataset leaves them."""
        if self.rounding is None:
            return values
        rounded = self.rounding.apply(values, origin, missing).values
        return self.rounding.within_bound(np.ma.getdata(given), values, rounded, missing)

    def encode(self, values: NDArray[Any], missing: Missing, rounding: float, *, lossless: bool = False) -> Encoded:
        """Encode the values of a chunk, rounded to the type of the file; see `ChunkEncoder`."""
        encoder = ChunkEncoder(self.pipeline, self.chunk, self.padding, missing, rounding)
        return encoder.encode_lossless(values) if lossless else encoder.encode(values)


def _role_text(dataset: h5py.Dataset) -> str:
    if is_companion(dataset):
        return "a companion, which marks the missing values of another"
    return f"one whose missing values are in the companion {text_attribute(dataset, MARK)!r}"


def array_like(data: Any) -> Any:
    """Return data with shape, dtype and slices unchanged, and anything else as an array."""
    sliced = all(hasattr(data, name) for name in ("shape", "dtype", "__getitem__"))
    if sliced and isinstance(data.dtype, np.dtype) and len(data.shape):
        return data
    return np.asarray(data)


def growing_axis(target: Target, axis: int) -> int:
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
            f"{target.label}: expected room along axis {axis}, got shape {shape} and maxshape {most}: create it with"
            " maxshape None there"
        )
    if math.prod(extent for other, extent in enumerate(shape) if other != axis) == 0:
        raise ParameterError(f"{target.label}: expected steps with values, got shape {shape} and axis {axis}")
    if axis and target.rounding is not None and isinstance(target.rounding.rounding, BitGroom):
        raise ParameterError(
            f"{target.label}: expected steps along axis 0 for {target.rounding.rounding}, which rounds values of even"
            f" index down and others up, got axis {axis}, where a step changes the indices before it: use granular"
        )
    return axis
