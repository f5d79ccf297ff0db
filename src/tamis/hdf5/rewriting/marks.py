"""What stands for a missing value in a dataset, and how often."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np
from h5py import h5d
from numpy.typing import NDArray

from tamis.chunks.difference import Missing
from tamis.chunks.grid import Region, touched
from tamis.hdf5.rewriting.gathering import over_chunks
from tamis.hdf5.rewriting.plans import Plan
from tamis.hdf5.rewriting.sources import open_values
from tamis.hdf5.storage import check_readable, stored_regions

_ATTRIBUTES = ("_FillValue", "missing_value")


@dataclass(frozen=True, slots=True)
class MissingCount:
    """Missing values of a dataset.

    Parameters
    ----------
    nan, infinite
        How many are NaN, and how many an infinity.
    marked
        How many are each of the values that stand for missing ones, in words.
    """

    nan: int = 0
    infinite: int = 0
    marked: tuple[tuple[str, int], ...] = ()

    @property
    def total(self) -> int:
        """All of them."""
        return self.nan + self.infinite + sum(count for _, count in self.marked)

    def __add__(self, other: MissingCount) -> MissingCount:
        marked = dict(self.marked)
        for name, count in other.marked:
            marked[name] = marked.get(name, 0) + count
        return MissingCount(self.nan + other.nan, self.infinite + other.infinite, tuple(marked.items()))

    def __str__(self) -> str:
        counts = (("NaN", self.nan), ("infinite", self.infinite), *self.marked)
        return ", ".join(f"{count} {name}" for name, count in counts if count) or "none"


def missing_of(dataset: h5py.Dataset, dtype: np.dtype[Any]) -> Missing:
    """Find what stands for missing values: the attributes ``_FillValue`` and ``missing_value``, and the fill value.

    A fill value of 0 that no attribute names is not taken for one: it is what HDF5 has where nobody asked.

    Parameters
    ----------
    dataset
        Of numbers.
    dtype
        Its type in native byte order.
    """
    found: list[Any] = []
    for name in _ATTRIBUTES:
        # What cannot be read, or is no number of this type, names no value.
        with suppress(Exception):
            found.extend(_exact(np.asarray(dataset.attrs[name]), dtype))
    if dataset.id.get_create_plist().fill_value_defined() == h5d.FILL_VALUE_USER_DEFINED:
        with suppress(Exception):
            found.extend(each for each in _exact(np.asarray(dataset.fillvalue), dtype) if each != 0)
    unique: list[Any] = []
    for each in found:
        if np.isfinite(each) and each not in unique:
            unique.append(each)
    return Missing(tuple(unique))


def _exact(given: NDArray[Any], dtype: np.dtype[Any]) -> list[Any]:
    """Values of an attribute as the data would hold them."""
    if given.dtype.kind not in "fiu":
        return []
    with np.errstate(over="ignore", invalid="ignore"):
        values = given.astype(dtype).reshape(-1)
    # A missing_value of double type, such as 1e20, stands for the float next to it; an integer has to be exact.
    same = dtype.kind == "f" or (values == given.reshape(-1))
    return list(values[np.broadcast_to(same, values.shape)])


def count_missing(
    plan: Plan, source: h5py.Dataset, progress: Callable[[int, int], None], jobs: int = 1
) -> MissingCount:
    """Count the missing values of a dataset that is to be written, in threads; parts that are not stored are left out.

    Raises
    ------
    FileError
        If it cannot be read.
    """
    check_readable(source)
    parts = touched(stored_regions(source), source.shape, plan.chunks)
    found = MissingCount()
    progress(0, len(parts))

    def count(part: Region, values: NDArray[Any]) -> MissingCount:
        nan = infinite = 0
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            nan = int(np.count_nonzero(np.isnan(values)))
            infinite = int(np.count_nonzero(np.isinf(values)))
        marked = ((f"{each:g}", int(np.count_nonzero(values == each))) for each in plan.missing.values)
        return MissingCount(nan, infinite, tuple(marked))

    with (
        closing(open_values(source)) as values,
        closing(over_chunks(values, parts, source.shape, plan.chunks, plan.dtype, count, jobs)) as counts,
    ):
        for done, each in enumerate(counts, start=1):
            found += each
            progress(done, len(parts))
    return found
