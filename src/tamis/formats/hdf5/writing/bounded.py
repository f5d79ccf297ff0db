"""Create datasets through a zfp with a bound, whose tolerance follows from their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tamis.arrays.index import Parts
from tamis.errors import ParameterError, TamisError, located
from tamis.formats.hdf5.tree.groups import GROUP
from tamis.formats.hdf5.writing.appender import Appender
from tamis.formats.hdf5.writing.creation import check_place, named, new_dataset, new_path
from tamis.formats.hdf5.writing.target import Target
from tamis.kinds import WHOLE, checked
from tamis.pipeline import Pipeline, as_pipeline
from tamis.rewrite.rewrite import Rewrite
from tamis.rewrite.tolerance import provisional, with_tolerance_of
from tamis.rewrite.values import Padding, cast
from tamis.zfp.header import BLOCK_SIDE

if TYPE_CHECKING:
    from tamis.arrays.grid import Region

_NO_PADDING = Padding()


def bounded_dataset(
    parent: h5py.Group, label: str, shape: tuple[int, ...], dtype: DTypeLike, data: Any, options: Mapping[str, Any]
) -> Target:
    """Create a dataset without a name for values that keep the bound of its filters; see `new_dataset`."""
    asked = as_pipeline(options["filters"])
    filters = provisional(asked)
    dataset, recorded = new_dataset(parent, shape, dtype, **{**options, "filters": filters})
    if filters.bound is None:
        return Target.of(dataset, recorded, label)
    try:
        target = Target.of(dataset, recorded, label)
        tolerance = _loosest(target, filters, data)
    except BaseException:
        dataset.id.close()  # without a name it no longer exists, and its space is free
        raise
    if tolerance != filters:
        dataset.id.close()
        dataset, recorded = new_dataset(parent, shape, dtype, **{**options, "filters": tolerance})
    return Target.of(dataset, recorded.within(filters.bound), label)


@checked(parent=GROUP, axis=WHOLE)
def create_appender(
    parent: h5py.Group,
    name: str,
    steps: ArrayLike,
    *,
    axis: int = 0,
    filters: object = "none",
    chunks: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    fillvalue: Any = None,
    attrs: Mapping[str, Any] | None = None,
    threads: int | None = None,
) -> Appender:
    """Create a dataset from its first steps, and append these and later ones, for ``zfp(bound=…)``.

    The tolerance of zfp is found on these steps: give at least one chunk length. Every value of later steps is also
    proven to keep the bound, and chunks that do not are stored without loss.

    Parameters
    ----------
    parent, name
        Parent and name of the dataset.
    steps
        The first steps, with the axis.
    axis
        The axis of the steps, which becomes unlimited; negative from the end.
    filters, chunks, dtype, fillvalue, attrs
        As for `tamis.hdf5.write`.
    threads
        Number of threads that encode; by default as many as the process may use.

    Returns
    -------
    Appender
        The appender, with these steps; after an error there is no dataset. A later run must be given the bound:
        ``Appender(dataset, bound=…)``.

    Raises
    ------
    ParameterError, DataError, BoundError, FileError, MissingFilterError
        As `tamis.hdf5.write` and `Appender.append`.
    """
    values = steps if isinstance(steps, np.ma.MaskedArray) else np.asarray(steps)
    if not -values.ndim <= axis < values.ndim:
        raise ParameterError(f"expected steps with axis {axis}, got the shape {values.shape}")
    axis %= values.ndim
    shape = tuple(0 if number == axis else extent for number, extent in enumerate(values.shape))
    most = tuple(None if number == axis else extent for number, extent in enumerate(values.shape))
    pipeline = as_pipeline(filters)
    with located(path=parent.file.filename, dataset=new_path(parent, name)):
        check_place(parent, name, overwrite=False)
        options = {"filters": filters, "chunks": chunks, "maxshape": most, "fillvalue": fillvalue, "attrs": attrs}
        label = f"{parent.file.filename}: {name}"
        target = bounded_dataset(parent, label, shape, values.dtype if dtype is None else dtype, values, options)
        dataset = named(target.dataset, parent, name, pipeline.rounding)
        bound = None if pipeline.zfp is None else pipeline.zfp.bound
        appender = Appender(dataset, axis, threads=threads, bound=bound)
        try:
            appender.append(values)
        except BaseException:
            with suppress(TamisError):
                appender.close()
            del parent[name]
            raise
    return appender


def _loosest(target: Target, filters: Pipeline, data: Any) -> Pipeline:
    """Return filters with the loosest tolerance that keeps their bound on a sample of data."""
    shape, chunk = tuple(data.shape), target.chunk
    grows = [extent < step for extent, step in zip(shape, chunk.shape, strict=True)]
    if any(few and extent < BLOCK_SIDE for few, extent in zip(grows, shape, strict=True)):
        return filters  # steps that come later have other errors

    def read(sample: Parts) -> list[tuple[Region, NDArray[Any]]]:
        return [(part, _stored(target, data[part])) for part in sample]

    chunk_shape = tuple(map(min, chunk.shape, shape))
    plan = Rewrite(target.label, filters, chunk.dtype, chunk_shape, missing=target.missing, padding=_NO_PADDING)
    return with_tolerance_of(plan, shape, Parts, read).pipeline


def _stored(target: Target, values: Any) -> NDArray[Any]:
    """Return values as they will be stored, before filters."""
    values = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    missing = target.missing_in(values)
    return np.ascontiguousarray(cast(values, target.chunk.dtype, masked=target.masked, missing=missing).values)
