"""Write whole arrays into HDF5, chunks encoded in threads; and chunks that are encoded already."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, overload

import h5py
import numpy as np
from numpy.typing import DTypeLike, NDArray

from tamis import zfp
from tamis.chunks.grid import Origin, Region, origin_of, region
from tamis.chunks.threads import checked_threads, ordered_map
from tamis.errors import FileError, ParameterError, TamisError, located
from tamis.filters import ChunkType, StoredZfp, Zfp
from tamis.formatting import did_you_mean
from tamis.hdf5.lib import calls
from tamis.hdf5.lib.damage import reading
from tamis.hdf5.lib.direct_chunks import check_recorded, first_stored, settle
from tamis.hdf5.writing.creation import check_place, named, new_dataset, new_path
from tamis.hdf5.writing.target import Target, array_like
from tamis.pipeline import Pipeline
from tamis.rewrite.cast import cast
from tamis.rewrite.encode import Encoded, encode_chunk
from tamis.store.disk import disk_text
from tamis.zfp.blocks import block_count

# Values that are read at once from a source that has chunks itself, so that none of them is decoded many times.
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


def write(target: Any, *what: Any, threads: int | None = None, **options: Any) -> h5py.Dataset:
    """Write an array as a chunked dataset, its chunks encoded in threads: ``write(group, name, data, filters=…)``.

    ``write(dataset, data)`` fills a dataset that is there, chunked and still empty. Every chunk is checked: where zfp
    cannot take its values, breaks the bound or changes a missing value, it is stored without zfp, which its mask says,
    so that every reader reads it. Missing values are NaN, infinities, the fill value unless it is 0, and what the
    attributes ``_FillValue`` and ``missing_value`` say; no value crosses a limit of ``valid_min``, ``valid_max`` or
    ``valid_range``. Bounds are about stored values, whatever ``scale_factor`` says. Chunks that reach beyond the end of
    an axis that can grow hold the fill value there; zfp is left out where it cannot keep it. The bytes do not depend on
    the number of threads, and memory is bounded by `threads` × a few chunks beside `data` itself.

    Parameters
    ----------
    target
        A group, or a file for its root group; or a dataset that has no values yet.
    name
        Of the new dataset. It has this name only when it is complete: an error leaves nothing behind.
    data
        Anything with shape, dtype and slices, such as arrays of NumPy, dask, xarray, h5py, Zarr or `tamis.open`: read
        part by part in one thread. Anything else goes through ``numpy.asarray``.
    filters
        A `Pipeline`, a filter, or their text such as ``"zfp(accuracy=0.1)|shuffle|deflate(4)|fletcher32"``.
    chunks
        Shape of a chunk, slowest axis first; by default as `create_dataset` chooses it.
    dtype
        Of the file; that of the data by default. No integer may change and no float become infinite. Floats are
        rounded, which counts towards the bound of the filters where they have one.
    maxshape
        None for an axis without end; by default the shape of the data.
    fillvalue
        What is read where nothing was written; masked values become it.
    attrs
        Attributes.
    overwrite
        Replace a dataset of this name once the new one is complete. HDF5 does not give the space of the old one back.
    threads
        Threads; by default as many as the process may use.

    Returns
    -------
    h5py.Dataset
        The new dataset, or `target`.

    Raises
    ------
    ParameterError
        If there cannot be such a dataset, or a filter cannot take such chunks; says what to use instead.
    DataError
        If a required filter cannot take the values, masked values have no fill value, or values do not fit the type.
    BoundError
        If a required filter does not keep its bound, or a missing value; or values of `dtype` cannot keep the bound.
    MissingFilterError
        If a filter cannot be encoded here, or a required one is not known to HDF5.
    FileError
        If the name is taken, the file not open for writing, the dataset not empty, or HDF5 recorded a chunk otherwise
        than it was written.
    """
    threads = checked_threads(threads)
    if isinstance(target, h5py.Dataset):
        (data,) = _exactly(what, "write(dataset, data)", 1)
        if options:
            raise ParameterError(f"expected no {', '.join(options)} for an existing dataset, which has its own")
        with located(path=target.file.filename, dataset=target.name):
            return _fill(target, array_like(data), threads)
    if not isinstance(target, h5py.Group):
        raise ParameterError(f"expected an h5py group, file or dataset, got {target!r}")
    name, data = _exactly(what, "write(group, name, data)", 2)
    _check_options(options)
    with located(path=target.file.filename, dataset=new_path(target, name)):
        return _write_new(target, name, array_like(data), threads, **options)


def write_stream(
    dataset: h5py.Dataset, origin: Sequence[int], stream: bytes | bytearray | memoryview, mode: zfp.Mode
) -> None:
    """Store a ZFP stream, as `tamis.zfp.encode` or libzfp makes it, as one chunk, without encoding it again.

    Filters behind zfp, such as fletcher32, are applied to it. The stream is decoded once to see that it is whole.

    Parameters
    ----------
    dataset
        Chunked, with zfp as its first filter.
    origin
        Index of the first value of the chunk, which is not stored yet.
    stream
        Without a header, of all values of the chunk, those beyond the array included; unit axes of the chunk make no
        difference.
    mode
        That it was made with. It must be that of the dataset.

    Raises
    ------
    ParameterError
        If the dataset has no zfp or another mode, or there is no such chunk.
    FileError
        If the chunk is stored already, or HDF5 did not record it as written.
    StreamError
        If the stream ends before the chunk does.
    """
    target, mode = Target.of(dataset), zfp.as_mode(mode)
    place, start = tuple(origin), bytes(stream)
    first = target.pipeline.stages[0] if target.pipeline.stages else None
    if first is None or not isinstance(first.filter, Zfp):
        raise ParameterError(f"{target.place}: expected zfp as the first filter, got {target.pipeline}")
    _check_mode(target, StoredZfp.parse(first.stored or ()), mode, len(start))
    steps = zip(place, dataset.shape, target.chunk.shape, strict=False)
    if len(place) != dataset.ndim or any(at % step or not 0 <= at < extent for at, extent, step in steps):
        raise ParameterError(
            f"{target.place}: expected an origin that is a multiple of {target.chunk.shape} inside of {dataset.shape},"
            f" got {place}"
        )
    if calls.stored_nbytes(dataset.id, place):
        raise FileError(f"{target.place}: expected no chunk at {place} yet, found one: write into a new dataset")
    encoded = _behind_zfp(target, start)
    target.pipeline.decode(*encoded, target.chunk)
    with calls.lock:
        target.put(place, encoded)
        settle(dataset, place, encoded.mask)
    if calls.stored_nbytes(dataset.id, place) != len(encoded.data):
        raise FileError(f"{target.place}: HDF5 recorded the chunk at {place} not as it was written")


def _exactly(what: tuple[Any, ...], form: str, count: int) -> tuple[Any, ...]:
    if len(what) != count:
        raise ParameterError(f"expected {form}, got {len(what)} arguments after the first")
    return what


def _check_options(options: Mapping[str, Any]) -> None:
    """Raise ParameterError for a keyword that `write` does not have; h5py's own for filters are in `filters`."""
    known = _write_new.__kwdefaults__ or {}
    for name in options:
        if name not in known:
            hint = " (did you mean filters?)" if name in _H5PY_FILTERS else did_you_mean(name, known)
            raise ParameterError(f"write: expected a keyword of {', '.join(known)} and threads, got {name}{hint}")


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
    made, pipeline = new_dataset(
        parent,
        tuple(data.shape),
        data.dtype if dtype is None else dtype,
        filters=filters,
        chunks=chunks,
        maxshape=maxshape,
        fillvalue=fillvalue,
        attrs=attrs,
    )
    try:
        place = f"{parent.file.filename}: {name}"
        _store(Target.of(made, pipeline, place), data, threads, shared=False)
        return named(made, parent, name)
    except BaseException:
        made.id.close()  # without a name it is gone, and its space is free
        raise


def _fill(dataset: h5py.Dataset, data: Any, threads: int) -> h5py.Dataset:
    target = Target.of(dataset)
    target.pipeline.check_encodable()
    target.pipeline.check(target.chunk)
    if tuple(data.shape) != dataset.shape:
        raise ParameterError(f"{target.place}: expected data of shape {dataset.shape}, got {tuple(data.shape)}")
    with reading(dataset.file.filename, dataset=str(dataset.name)):
        stored = first_stored(dataset)
    if stored is not None:
        raise FileError(
            f"{target.place}: expected a dataset without values, found a chunk at {stored}: write a new one; HDF5 keeps"
            " the old filter mask of a chunk that is overwritten with the same size"
        ).at(chunk=stored)
    _store(target, data, threads, shared=True)
    return dataset


def _store(target: Target, data: Any, threads: int, *, shared: bool) -> None:
    """Write all chunks, each in one step for other threads where they share the dataset, which has a name then."""

    def encode(part: tuple[Region, NDArray[Any]]) -> tuple[Origin, Encoded]:
        place, values = part
        origin = origin_of(place)
        try:
            missing = target.missing_in(values)
            wanted, rounding = cast(
                values, target.chunk.dtype, masked=masked, missing=missing, bound=target.bound, origin=origin
            )
            return origin, encode_chunk(
                target.pipeline, wanted, target.chunk, padding=target.padding, missing=missing, rounding=rounding
            )
        except TamisError as error:
            error.at(f"{target.place}: chunk at {origin}", chunk=origin)
            raise

    masked = target.masked
    recorded: dict[Origin, tuple[int, int]] = {}
    # Closed, so that no thread works on where this one is interrupted.
    with closing(ordered_map(encode, _parts(data, target.chunk), threads)) as encoded:
        for origin, (stored, mask) in encoded:
            try:
                with calls.lock:
                    target.dataset.id.write_direct_chunk(origin, stored, mask)
                    if shared:
                        settle(target.dataset, origin, mask)
            except (OSError, RuntimeError, ValueError) as error:
                text = f"{target.place}: chunk at {origin}: HDF5 cannot write: {disk_text(error)}"
                raise FileError(text).at(chunk=origin) from error
            recorded[origin] = (len(stored), mask)
    if recorded:
        check_recorded(target.dataset, recorded)


def _parts(data: Any, chunk: ChunkType) -> Iterator[tuple[Region, NDArray[Any]]]:
    """Cut an array along chunks; what has chunks itself is read in pieces that hold whole ones of both."""
    shape = tuple(data.shape)
    whole = tuple(slice(0, extent) for extent in shape)
    if isinstance(data, np.ndarray):
        yield from ((part, data[part]) for part in _regions(whole, shape, chunk.shape))
        return
    for piece in _regions(whole, shape, _read_shape(data, chunk)):
        values = data[piece]
        values = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
        for part in _regions(piece, shape, chunk.shape):
            inside = zip(part, piece, strict=True)
            yield part, values[tuple(slice(one.start - all_.start, one.stop - all_.start) for one, all_ in inside)]


def _regions(part: Region, shape: tuple[int, ...], chunks: tuple[int, ...]) -> Iterator[Region]:
    """Yield the regions of the chunks in a part that begins and ends with chunks, last axis fastest."""
    starts = (range(each.start, each.stop, step) for each, step in zip(part, chunks, strict=True))
    return (region(origin, shape, chunks) for origin in itertools.product(*starts))


def _read_shape(data: Any, chunk: ChunkType) -> tuple[int, ...]:
    theirs = getattr(data, "chunks", None)
    if not isinstance(theirs, tuple) or len(theirs) != len(chunk.shape):
        return chunk.shape
    longest = [max(each, default=1) if isinstance(each, tuple) else each for each in theirs]
    shape = tuple(-(-max(n, 1) // step) * step for n, step in zip(longest, chunk.shape, strict=True))
    return shape if math.prod(shape) * chunk.dtype.itemsize <= _MOST_READ_NBYTES else chunk.shape


def _check_mode(target: Target, stored: StoredZfp, mode: zfp.Mode, nbytes: int) -> None:
    rank = len(stored.shape)
    theirs, ours = (each.params(stored.dtype, rank) for each in (mode, stored.filter.mode))
    numbers = [(each.minbits, each.maxbits, each.maxprec, each.minexp) for each in (theirs, ours)]
    if numbers[0] != numbers[1]:
        raise ParameterError(f"{target.place}: expected a stream of {stored.filter.mode}, got one of {mode}")
    if ours.minbits == ours.maxbits:
        whole = -(-block_count(stored.shape) * ours.maxbits // 8)
        # libzfp fills the last of its words, of up to 64 bits.
        if not whole <= nbytes < whole + 8:
            raise ParameterError(
                f"{target.place}: expected a stream of {whole} bytes for a chunk of {target.chunk.shape} with {mode},"
                f" got {nbytes}"
            )


def _behind_zfp(target: Target, stream: bytes) -> Encoded:
    """Run the filters behind zfp over its stream."""
    raw = ChunkType(np.dtype("u1"), (len(stream),))
    rest = Pipeline(target.pipeline.stages[1:])
    data, mask = rest.encode(np.frombuffer(stream, raw.dtype))
    return Encoded(data, mask << 1)
