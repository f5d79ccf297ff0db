"""What chunks are written into, and values in the type that it has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5t
from numpy.typing import NDArray

from tamis.chunks.difference import Missing
from tamis.chunks.encoding import Encoded, is_lossy
from tamis.chunks.grid import Origin
from tamis.errors import DataError, FileError, ParameterError
from tamis.filters import ChunkType
from tamis.hdf5 import library
from tamis.hdf5.attributes import text_attribute
from tamis.hdf5.companions import MARK, has_companion, is_companion
from tamis.hdf5.direct import put_chunk
from tamis.hdf5.missing import missing_of
from tamis.hdf5.storage import fill_value, pipeline_of
from tamis.pipeline import Pipeline


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
    """

    dataset: h5py.Dataset
    pipeline: Pipeline
    chunk: ChunkType
    place: str
    missing: Missing

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
        if dataset.file.mode == "r":
            raise FileError(f"{place}: expected a file that is open for writing, got it open for reading")
        if dataset.chunks is None:
            raise ParameterError(f"{place}: expected a chunked dataset, got one without chunks: create it with chunks")
        if has_companion(dataset) or is_companion(dataset):
            raise ParameterError(
                f"{place}: expected a dataset that stands for itself, got {_one_of_two(dataset)}: writing to one"
                " would leave the other out of date; repack the file without (--missing exact), or write a new dataset"
            )
        dtype = dataset.dtype
        if dtype.hasobject or not h5t.py_create(dtype, logical=True).equal(dataset.id.get_type()):
            raise ParameterError(f"{place}: expected values of fixed size that NumPy has, got {dtype}: write by h5py")
        if not library.filters_partial_chunks(dataset.id.get_create_plist()):
            raise ParameterError(
                f"{place}: expected chunks at the edge to be filtered as others are, got a dataset that stores them"
                " raw: write by h5py"
            )
        found = pipeline or pipeline_of(dataset)
        missing = missing_of(dataset) if is_lossy(found) and dtype.kind in "fiu" else Missing()
        return cls(dataset, found, ChunkType(dtype, dataset.chunks), place, missing)

    @property
    def fill(self) -> NDArray[Any]:
        """The fill value."""
        return fill_value(self.dataset).astype(self.chunk.dtype)

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


def _one_of_two(dataset: h5py.Dataset) -> str:
    if is_companion(dataset):
        return "a companion, which says where another one has missing values"
    return f"one whose missing values are in the companion {text_attribute(dataset, MARK)!r}"


def array_like(data: Any) -> Any:
    """Take what has shape, dtype and slices as it is, and make an array of anything else."""
    sliced = all(hasattr(data, name) for name in ("shape", "dtype", "__getitem__"))
    if sliced and isinstance(data.dtype, np.dtype) and len(data.shape):
        return data
    return np.asarray(data)


def converted(values: NDArray[Any], dtype: np.dtype[Any], masked: Any = None) -> NDArray[Any]:
    """Return values in a type, without a change that is more than the rounding of floats.

    Parameters
    ----------
    values
        Of any type.
    dtype
        Of the file.
    masked
        What masked values become; None refuses them.

    Raises
    ------
    DataError
        If an integer would change, a float become infinite or an integer, or a masked value has no fill value.
    """
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.is_masked(values) and masked is None:
            raise DataError("expected values without a mask, got masked ones: give a fillvalue, or fill them first")
        values = values.filled(masked) if np.ma.is_masked(values) else values.data
    if values.dtype == dtype:
        return values
    if not (np.can_cast(values.dtype, dtype, "safe") or (values.dtype.kind + dtype.kind in _CHECKED)):
        raise DataError(f"expected values of {dtype}, got {values.dtype}: convert them first")
    with np.errstate(over="ignore", invalid="ignore"):
        made = values.astype(dtype)
    if dtype.kind in "iu" and not np.array_equal(made, values):
        raise DataError(f"expected values that {dtype} can hold, got {values.dtype} ones that it cannot")
    if dtype.kind == "f" and values.dtype.kind == "f" and not np.array_equal(np.isinf(made), np.isinf(values)):
        raise DataError(f"expected values that {dtype} can hold, got {values.dtype} ones beyond its largest")
    return made


# Kinds of types between which values may be converted where they fit.
_CHECKED = ("ii", "iu", "ui", "uu", "ff", "if", "uf")
