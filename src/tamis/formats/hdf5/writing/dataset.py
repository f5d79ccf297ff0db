"""Write whole arrays into HDF5, with chunks encoded in threads, encoded chunks, and the first steps of an array."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any, overload

import h5py
import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tamis import zfp
from tamis.arguments import BYTES, WHOLE, WHOLES
from tamis.arrays.gather import cut, whole, within
from tamis.arrays.grid import Grid, Origin, Region, default_chunks, origin_of
from tamis.arrays.index import Parts
from tamis.arrays.threads import checked_threads, ordered_map
from tamis.errors import FileError, ParameterError, TamisError, located
from tamis.filters import ChunkType, StoredZfp, Zfp
from tamis.formats.hdf5.chunk_access import DATASET
from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.lib.attributes import replace_attributes
from tamis.formats.hdf5.lib.chunks import first_stored
from tamis.formats.hdf5.tree.links import GROUP
from tamis.formats.hdf5.writer import Hdf5Writer
from tamis.formats.hdf5.writing.appender import Appender
from tamis.formats.hdf5.writing.creation import OpenDataset, array_like, check_place, named, new_dataset, new_path
from tamis.formats.hdf5.writing.kept import KeptChunks
from tamis.formatting import did_you_mean
from tamis.pipeline import Pipeline, as_pipeline
from tamis.rewrite.encode import Encoded
from tamis.rewrite.new_chunk import NewChunk
from tamis.rewrite.new_packing import NewPacking, of_values
from tamis.rewrite.plan import Checks, Recode
from tamis.rewrite.tolerance import provisional, with_tolerance_of
from tamis.rewrite.values import cast
from tamis.rounding import ERROR_BOUND, Pack
from tamis.safety.library_errors import disk_text, reading
from tamis.zfp.arrays import block_count
from tamis.zfp.header import BLOCK_SIDE


def bounded_dataset(
    parent: h5py.Group, label: str, shape: tuple[int, ...], dtype: DTypeLike, data: Any, options: Mapping[str, Any]
) -> OpenDataset:
    """Create a dataset without a name for values that keep the bound of its filters; see `new_dataset`."""
    asked = as_pipeline(options["filters"])
    filters = provisional(asked)
    dataset, recorded = new_dataset(parent, shape, dtype, **{**options, "filters": filters})
    if filters.bound is None:
        target = OpenDataset.of(dataset, recorded, label)
        packing: NewPacking | None = options.get("packing")
        return target if packing is None else replace(target, codes=packing.codes)
    try:
        target = OpenDataset.of(dataset, recorded, label)
        tolerance = _loosest(target, filters, data)
    except BaseException:
        dataset.id.close()  # without a name it no longer exists, and its space is free
        raise
    if tolerance != filters:
        dataset.id.close()
        dataset, recorded = new_dataset(parent, shape, dtype, **{**options, "filters": tolerance})
    if filters.bound and filters.bounded is not None:
        replace_attributes(dataset, {ERROR_BOUND: np.float64(filters.bound)})
    return OpenDataset.of(dataset, recorded.within(filters.bound), label)


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
        The appender, with these steps; after an error there is no dataset. The file records the bound, which a later
        `Appender` keeps.

    Raises
    ------
    ParameterError, DataError, BoundError, FileError, MissingFilterError
        As `tamis.hdf5.write` and `Appender.append`.
    """
    GROUP.check("parent", parent)
    WHOLE.check("axis", axis)
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
        bound = None if pipeline.bounded is None else pipeline.bounded.open_bound
        appender = Appender(dataset, axis, threads=threads, bound=bound)
        try:
            appender.append(values)
        except BaseException:
            with suppress(TamisError):
                appender.close()
            del parent[name]
            raise
    return appender


def _loosest(target: OpenDataset, filters: Pipeline, data: Any) -> Pipeline:
    """Return filters with the loosest tolerance that keeps their bound on a sample of data."""
    shape, chunk = tuple(data.shape), target.chunk
    grows = [extent < step for extent, step in zip(shape, chunk.shape, strict=True)]
    if filters.zfp is not None and any(few and extent < BLOCK_SIDE for few, extent in zip(grows, shape, strict=True)):
        return filters  # steps that come later have other errors

    def read(sample: Parts) -> list[tuple[Region, NDArray[Any]]]:
        return [(part, _stored(target, data[part])) for part in sample]

    chunk_shape = tuple(map(min, chunk.shape, shape))
    plan = Recode(target.label, filters, chunk.dtype, chunk_shape, checks=Checks(missing=target.missing))
    return with_tolerance_of(plan, shape, Parts, read).pipeline


def _stored(target: OpenDataset, values: Any) -> NDArray[Any]:
    """Return values as they will be stored, before filters."""
    values = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    missing = target.missing_in(values)
    return np.ascontiguousarray(cast(values, target.chunk.dtype, masked=target.masked, missing=missing).values)


# Values that are read at once from a chunked source, so that its chunks are not decoded repeatedly.
_MOST_READ_NBYTES = 64 << 20

_H5PY_FILTERS = ("compression", "compression_opts", "shuffle", "fletcher32", "scaleoffset")


@overload
def write(
    target: h5py.Group,
    name: str,
    data: Any,
    /,
    *,
    filters: object = ...,
    chunks: int | Sequence[int] | None = ...,
    dtype: DTypeLike | None = ...,
    maxshape: int | Sequence[int | None] | None = ...,
    fillvalue: Any = ...,
    attrs: Mapping[str, Any] | None = ...,
    overwrite: bool = ...,
    threads: int | None = ...,
) -> h5py.Dataset: ...


@overload
def write(target: h5py.Dataset, data: Any, /, *, threads: int | None = ...) -> h5py.Dataset: ...


def write(target: Any, *arguments: Any, threads: int | None = None, **options: Any) -> h5py.Dataset:
    """Write an array as a chunked dataset, its chunks encoded in threads: ``write(group, name, data, filters=…)``.

    ``write(dataset, data)`` fills an existing dataset, chunked and still empty, and rounds the values if an attribute
    of it records a rounding, as netCDF-C does; floats are packed if the dataset is. Every chunk is checked: if zfp
    cannot encode its values, exceeds the bound or changes a missing value, the chunk is stored without zfp. Its mask
    records that, so every reader can read it. Missing values are NaN, infinities, the fill value unless it is 0, and
    the values of the attributes ``_FillValue`` and ``missing_value``; no value crosses a limit of ``valid_min``,
    ``valid_max`` or ``valid_range``. Bounds apply to stored values, even if there is a ``scale_factor``. Chunks that
    extend beyond the end of an axis that can grow hold the fill value there; they are stored without zfp if it cannot
    keep the fill value. The bytes do not depend on the number of threads. Memory is bounded by `threads` × a few
    chunks, in addition to `data` itself.

    Parameters
    ----------
    target
        A group, or a file for its root group; or a dataset that has no values yet.
    name
        Name of the new dataset, which it gets when it is complete: an error leaves nothing behind.
    data
        Anything with shape, dtype and slices, such as arrays of NumPy, dask, xarray, h5py, Zarr or `tamis.open`, which
        is read part by part in one thread. Anything else is converted by ``numpy.asarray``.
    filters
        A `Pipeline`, a filter, or their text such as ``"zfp(accuracy=0.1)|shuffle|deflate(4)|fletcher32"``, or with a
        rounding ``"bitround(keepbits=7)|shuffle|deflate(4)"``, whose error is proven, and which an attribute records.
        ``zfp(bound=0.1)`` gets the loosest tolerance that keeps the bound on a sample of the data. For
        ``pack(bound=0.1)`` the data are read twice, first for their range; see the page on packing.
    chunks
        Chunk shape, slowest axis first; by default as in `create_dataset`.
    dtype
        Type in the file; by default that of the data. No integer may change and no float may become infinite. Floats
        are rounded, which counts towards the bound of the filters, and of ``absolute``, if they have one.
    maxshape
        Largest shape, None for an unlimited axis; by default the shape of the data.
    fillvalue
        Value of elements that are never written, and of masked elements.
    attrs
        Attributes.
    overwrite
        Replace a dataset of this name once the new one is complete. HDF5 does not free the space of the old one.
    threads
        Number of threads; by default as many as the process may use.

    Returns
    -------
    h5py.Dataset
        The new dataset, or `target`.

    Raises
    ------
    ParameterError
        If such a dataset is impossible, or a filter cannot encode such chunks; names an alternative.
    DataError
        If a required filter cannot encode the values, masked values have no fill value, or values do not fit the type.
    BoundError
        If a required filter does not keep its bound or a missing value, or values of `dtype` cannot keep the bound.
    MissingFilterError
        If a filter cannot be encoded here, or HDF5 does not have a required filter.
    FileError
        If the name is taken, the file is not open for writing, the dataset is not empty, or HDF5's record of a chunk
        differs from what was written.
    """
    threads = checked_threads(threads)
    if isinstance(target, h5py.Dataset):
        (data,) = _exactly(arguments, "write(dataset, data)", 1)
        if options:
            raise ParameterError(f"an existing dataset has its own {', '.join(options)}: leave them out")
        with located(path=target.file.filename, dataset=target.name):
            return _fill(target, array_like(data), threads)
    if not isinstance(target, h5py.Group):
        raise ParameterError(f"expected an h5py group, file or dataset, got {target!r}")
    name, data = _exactly(arguments, "write(group, name, data)", 2)
    _check_options(options)
    with located(path=target.file.filename, dataset=new_path(target, name)):
        return _write_new(target, name, array_like(data), threads, **options)


def write_stream(
    dataset: h5py.Dataset, origin: Sequence[int], stream: bytes | bytearray | memoryview, mode: zfp.Mode
) -> None:
    """Store a ZFP stream of `tamis.zfp.encode` or libzfp as one chunk, without encoding it again.

    Filters after zfp, such as fletcher32, are applied to it. The stream is decoded once to check that it is complete.

    Parameters
    ----------
    dataset
        Chunked, with zfp as its first filter.
    origin
        Index of the first value of the chunk, which is not stored yet.
    stream
        The stream, without a header, of all values of the chunk, including those beyond the array; unit axes of the
        chunk make no difference.
    mode
        Mode of the stream, which must be that of the dataset.

    Raises
    ------
    ParameterError
        If the dataset has no zfp or another mode, or there is no chunk at `origin`.
    FileError
        If the chunk is stored already, or HDF5's record of it differs.
    StreamError
        If the stream ends before the last value.
    """
    DATASET.check("dataset", dataset)
    BYTES.check("stream", stream)
    WHOLES.check("origin", origin)
    with located(path=dataset.file.filename, dataset=dataset.name, chunk=tuple(origin)):
        _store_stream(OpenDataset.of(dataset), tuple(origin), bytes(stream), zfp.as_mode(mode))


def _store_stream(target: OpenDataset, chunk_origin: Origin, stream_bytes: bytes, mode: zfp.Mode) -> None:
    dataset = target.dataset
    first_stage = target.pipeline.stages[0] if target.pipeline.stages else None
    if first_stage is None or not isinstance(first_stage.filter, Zfp):
        raise ParameterError(f"{target.label}: expected zfp as the first filter, got {target.pipeline}")
    _check_mode(target, StoredZfp.parse(first_stage.stored or ()), mode, len(stream_bytes))
    steps = zip(chunk_origin, dataset.shape, target.chunk.shape, strict=False)
    if len(chunk_origin) != dataset.ndim or any(
        start % step or not 0 <= start < extent for start, extent, step in steps
    ):
        raise ParameterError(
            f"{target.label}: expected an origin that is a multiple of {target.chunk.shape} inside of {dataset.shape},"
            f" got {chunk_origin}"
        )
    if calls.stored_nbytes(dataset.id, chunk_origin):
        raise FileError(f"{target.label}: has a chunk at {chunk_origin} already: write into a new dataset")
    encoded = Encoded(*target.pipeline.encode_rest(stream_bytes, target.chunk))
    target.pipeline.decode(*encoded, target.chunk)
    grid = Grid(dataset.shape, target.chunk.shape)
    chunk = NewChunk(grid.number_of(chunk_origin), *encoded)
    Hdf5Writer(dataset, grid, target.pipeline, shared=True).put([chunk])
    if calls.stored_nbytes(dataset.id, chunk_origin) != len(encoded.data):
        raise FileError(f"{target.label}: HDF5's record of the chunk at {chunk_origin} differs from what was written")


def _exactly(arguments: tuple[Any, ...], form: str, count: int) -> tuple[Any, ...]:
    if len(arguments) != count:
        raise ParameterError(f"expected {form}, got {len(arguments)} arguments after the first")
    return arguments


def _check_options(options: Mapping[str, Any]) -> None:
    """Raise ParameterError for an unknown keyword of `write`, with a hint for h5py's filter keywords."""
    keywords = _write_new.__kwdefaults__ or {}
    for name in options:
        if name not in keywords:
            hint = " (did you mean filters?)" if name in _H5PY_FILTERS else did_you_mean(name, keywords)
            raise ParameterError(f"write: expected a keyword of {', '.join(keywords)} and threads, got {name}{hint}")


def _write_new(
    parent: h5py.Group,
    name: str,
    data: Any,
    threads: int,
    *,
    filters: object = "none",
    chunks: int | Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    maxshape: int | Sequence[int | None] | None = None,
    fillvalue: Any = None,
    attrs: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> h5py.Dataset:
    check_place(parent, name, overwrite=overwrite)
    label, kind = f"{parent.file.filename}: {name}", data.dtype if dtype is None else dtype
    options = {"filters": filters, "chunks": chunks, "maxshape": maxshape, "fillvalue": fillvalue, "attrs": attrs}
    if isinstance(pack := as_pipeline(filters).rounding, Pack):
        grows = maxshape is not None and maxshape != data.shape
        chunk = ChunkType(np.dtype(data.dtype), default_chunks(data.shape, data.dtype.itemsize, zfp=False))
        parts = (values for _, values in _parts(data, chunk))
        options["packing"] = of_values(pack, kind, fillvalue, attrs or {}, parts, grows=grows)
    target = bounded_dataset(parent, label, tuple(data.shape), kind, data, options)
    dataset = target.dataset
    try:
        _store(target, data, threads, shared=False)
        return named(dataset, parent, name, as_pipeline(filters).rounding)
    except BaseException:
        dataset.id.close()  # without a name it no longer exists, and its space is free
        raise


def _fill(dataset: h5py.Dataset, data: Any, threads: int) -> h5py.Dataset:
    target = OpenDataset.of(dataset)
    target.pipeline.check_encodable()
    target.pipeline.check(target.chunk)
    if tuple(data.shape) != dataset.shape:
        raise ParameterError(f"{target.label}: expected data of shape {dataset.shape}, got {tuple(data.shape)}")
    with reading(dataset.file.filename, dataset=str(dataset.name)):
        stored = first_stored(dataset)
    if stored is not None:
        raise FileError(
            f"{target.label}: has values already, in a chunk at {stored}: write a new dataset, because HDF5 "
            "keeps the old filter mask of a chunk that is overwritten with the same size"
        ).at(chunk=stored)
    _store(target, data, threads, shared=True)
    return dataset


def _store(target: OpenDataset, data: Any, threads: int, *, shared: bool) -> None:
    """Write all chunks; if other threads share the dataset, each chunk in one step for them."""

    def encode(item: tuple[Region, NDArray[Any]]) -> tuple[Origin, Encoded]:
        part, values = item
        origin = origin_of(part)
        missing = target.missing_in(values)
        try:
            converted, rounding = target.stored(values, origin, missing)
            return origin, target.encode(converted, missing, rounding)
        except TamisError as error:  # cheaper than `located` for many small chunks
            raise error.at(f"{target.label}: chunk at {origin}", chunk=origin)  # noqa: B904 - the same error

    grid = Grid(target.dataset.shape, target.chunk.shape)
    writer = Hdf5Writer(target.dataset, grid, target.pipeline, shared=shared)
    kept = KeptChunks(target.pipeline, target.label)
    # Closed, so that no thread continues if this one is interrupted.
    with closing(ordered_map(encode, _parts(data, target.chunk), threads)) as chunks:
        for origin, encoded in chunks:
            try:
                writer.put([NewChunk(grid.number_of(origin), *encoded)])
                kept.count([encoded.mask])
            except (OSError, RuntimeError, ValueError) as error:
                text = f"{target.label}: chunk at {origin}: HDF5 cannot write: {disk_text(error)}"
                raise FileError(text).at(chunk=origin) from error
    writer.finish()
    kept.warn()


def _parts(data: Any, chunk: ChunkType) -> Iterator[tuple[Region, NDArray[Any]]]:
    """Yield the part of each chunk and its values; chunked sources are read in pieces of whole chunks of both."""
    everything = whole(tuple(data.shape))
    if isinstance(data, np.ndarray):
        yield from ((part, data[part]) for part in cut(everything, chunk.shape))
        return
    for piece in cut(everything, _read_shape(data, chunk)):
        values = data[piece]
        values = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
        yield from ((part, values[within(part, piece)]) for part in cut(piece, chunk.shape))


def _read_shape(data: Any, chunk: ChunkType) -> tuple[int, ...]:
    source_chunks = getattr(data, "chunks", None)
    if not isinstance(source_chunks, tuple) or len(source_chunks) != len(chunk.shape):
        return chunk.shape
    longest = [max(extents, default=1) if isinstance(extents, tuple) else extents for extents in source_chunks]
    shape = tuple(-(-max(n, 1) // step) * step for n, step in zip(longest, chunk.shape, strict=True))
    return shape if math.prod(shape) * chunk.dtype.itemsize <= _MOST_READ_NBYTES else chunk.shape


def _check_mode(target: OpenDataset, stored: StoredZfp, mode: zfp.Mode, nbytes: int) -> None:
    rank = len(stored.shape)
    stream_params, params = (zfp_mode.params(stored.dtype, rank) for zfp_mode in (mode, stored.filter.mode))
    numbers = [
        (numbers.minbits, numbers.maxbits, numbers.maxprec, numbers.minexp) for numbers in (stream_params, params)
    ]
    if numbers[0] != numbers[1]:
        raise ParameterError(f"{target.label}: expected a stream of {stored.filter.mode}, got one of {mode}")
    if params.minbits == params.maxbits:
        whole = -(-block_count(stored.shape) * params.maxbits // 8)
        # libzfp pads to whole words of up to 64 bits.
        if not whole <= nbytes < whole + 8:
            raise ParameterError(
                f"{target.label}: expected a stream of {whole} bytes for a chunk of {target.chunk.shape} with {mode},"
                f" got {nbytes}"
            )
