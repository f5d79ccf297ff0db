"""What chunks are written into."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, replace
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5t
from numpy.typing import NDArray

from tamis.chunks.grid import Origin
from tamis.errors import FileError, ParameterError
from tamis.filters import ChunkType
from tamis.hdf5.companions import MARK, has_companion, is_companion
from tamis.hdf5.facts import datatype_of, layout_plist
from tamis.hdf5.lib import calls
from tamis.hdf5.lib.attributes import text_attribute
from tamis.hdf5.lib.damage import reading
from tamis.hdf5.lib.direct_chunks import put_chunk
from tamis.hdf5.meaning import missing_of
from tamis.hdf5.storage import fill_value, pipeline_of
from tamis.missing.definition import Missing
from tamis.pipeline import Pipeline
from tamis.rewrite.encode import Encoded, is_lossy
from tamis.rewrite.padding import Padding


@dataclass(frozen=True, slots=True)
class Target:
    """A chunked dataset of a file that is open for writing, whose chunks are encoded here.

    Parameters
    ----------
    dataset
        Where chunks go.
    pipeline
        With the parameters that the file has.
    chunk
        Type and shape of the chunks.
    place
        File and dataset, for messages.
    missing
        What stands for missing values, where something may be lost: the attributes ``_FillValue`` and
        ``missing_value``, and a fill value other than 0.
    padding
        What chunks hold beyond the array.
    """

    dataset: h5py.Dataset
    pipeline: Pipeline
    chunk: ChunkType
    place: str
    missing: Missing
    padding: Padding

    @classmethod
    def of(cls, dataset: h5py.Dataset, pipeline: Pipeline | None = None, place: str = "") -> Target:
        """Look at a dataset.

        Raises
        ------
        ParameterError
            If it is not chunked, or its values are not in the chunks as NumPy has them in memory.
        FileError
            If its file is not open for writing.
        """
        place = place or f"{dataset.file.filename}: {dataset.name}"
        with reading(dataset.file.filename, dataset=str(dataset.name or "")):
            return cls._of(dataset, pipeline, place)

    @classmethod
    def _of(cls, dataset: h5py.Dataset, pipeline: Pipeline | None, place: str) -> Target:
        if dataset.file.mode == "r":
            raise FileError(f"{place}: expected a file open for writing, got one open for reading")
        if dataset.chunks is None:
            raise ParameterError(f"{place}: expected a chunked dataset, got one without chunks: create it with chunks")
        if has_companion(dataset) or is_companion(dataset):
            raise ParameterError(
                f"{place}: expected a dataset without a companion, got {_one_of_two(dataset)}: writing to one"
                " would leave the other out of date; repack the file without (--missing exact), or write a new dataset"
            )
        dtype = dataset.dtype
        if dtype.hasobject or not h5t.py_create(dtype, logical=True).equal(dataset.id.get_type()):
            raise ParameterError(f"{place}: expected values of fixed size that NumPy has, got {dtype}: write with h5py")
        if not calls.filters_partial_chunks(dataset.id.get_create_plist()):
            raise ParameterError(
                f"{place}: expected edge chunks that are filtered, got a dataset that stores them unfiltered: write"
                " with h5py"
            )
        found = pipeline or pipeline_of(dataset)
        missing = missing_of(dataset) if is_lossy(found) and dtype.kind in "fiu" else Missing()
        return cls(dataset, found, ChunkType(dtype, dataset.chunks), place, missing, padding_of(dataset, dtype))

    @property
    def fill(self) -> NDArray[Any]:
        """The fill value."""
        return fill_value(self.dataset).astype(self.chunk.dtype)

    @property
    def bound(self) -> float | None:
        """Largest error that a value may get, from what was given to what is read; None and 0 promise nothing more."""
        return self.pipeline.error_bound

    @property
    def masked(self) -> NDArray[Any] | None:
        """What masked values become: the fill value, None where nobody chose one."""
        chosen = self.dataset.id.get_create_plist().fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED
        return self.fill if chosen else None

    def missing_in(self, values: NDArray[Any]) -> Missing:
        """Tell what stands for missing values in some of the data; where some are masked, the fill value does."""
        if not np.ma.is_masked(values) or self.masked is None:
            return self.missing
        fill = self.masked[()]
        known = fill in self.missing.values or fill != fill
        return self.missing if known else replace(self.missing, values=(*self.missing.values, fill))

    def put(self, origin: Origin, encoded: Encoded) -> None:
        """Write a chunk, which may be there already; see `put_chunk`."""
        put_chunk(self.dataset, origin, *encoded)


def padding_of(dataset: h5py.Dataset, dtype: np.dtype[Any]) -> Padding:
    """Return what the chunks of a dataset hold beyond its end, for chunks of a type that may be bytes alone."""
    growing = tuple(end is None or end > n for n, end in zip(dataset.shape, dataset.maxshape, strict=True))
    if not any(growing):
        return Padding()
    chosen = layout_plist(dataset).fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED
    if dtype.kind == "V":
        raw = calls.fill_bytes(layout_plist(dataset), datatype_of(dataset)) if chosen else bytes(dtype.itemsize)
        return Padding(growing, np.frombuffer(raw, dtype)[0], chosen)
    return Padding(growing, fill_value(dataset).astype(dtype)[()], chosen)


def _one_of_two(dataset: h5py.Dataset) -> str:
    if is_companion(dataset):
        return "a companion, which marks the missing values of another"
    return f"one whose missing values are in the companion {text_attribute(dataset, MARK)!r}"


def array_like(data: Any) -> Any:
    """Take what has shape, dtype and slices as it is, and make an array of anything else."""
    sliced = all(hasattr(data, name) for name in ("shape", "dtype", "__getitem__"))
    if sliced and isinstance(data.dtype, np.dtype) and len(data.shape):
        return data
    return np.asarray(data)


def growing_axis(target: Target, axis: int) -> int:
    """Return an axis along which there is room for more steps, counted from the start; raise ParameterError."""
    shape, most = target.dataset.shape, target.dataset.maxshape
    try:
        axis = len(shape) if isinstance(axis, bool) else operator.index(axis)
    except TypeError:
        raise ParameterError(f"{target.place}: expected an axis of {shape}, got axis={axis!r}") from None
    if not -len(shape) <= axis < len(shape):
        raise ParameterError(f"{target.place}: expected an axis of {shape}, got axis={axis!r}")
    axis %= len(shape)
    if most[axis] is not None and most[axis] <= shape[axis]:
        raise ParameterError(
            f"{target.place}: expected room along axis {axis}, got shape {shape} and maxshape {most}: create it with"
            " maxshape None there"
        )
    if math.prod(extent for at, extent in enumerate(shape) if at != axis) == 0:
        raise ParameterError(f"{target.place}: expected steps with values, got shape {shape} and axis {axis}")
    return axis
