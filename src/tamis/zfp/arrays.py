"""Encode arrays to streams, and decode them, wholly or block by block."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from tamis import _native
from tamis.arguments import ARRAY, BYTES, DTYPE_LIKE, WHOLE, WHOLES, Kind
from tamis.distinct import distinct
from tamis.errors import DataError, ParameterError, StreamError
from tamis.zfp.header import (
    BLOCK_SIDE,
    Bytes,
    as_view,
    check_dtype,
    check_encodable,
    check_shape,
    check_threads,
    refuse,
    unpack,
)
from tamis.zfp.modes import Accuracy, Mode, Precision, as_mode

_CALL_NVALUES = 1000
"""Cost of one more call, as a number of decoded values."""


class BlockRun(NamedTuple):
    """Consecutive blocks of the stream that fill a box of the array."""

    first: int  # Number of the first block
    nblocks: int
    where: tuple[slice, ...]


def block_nbits(mode: Mode, dtype: np.dtype[Any], rank: int) -> int | None:
    """Return the bits of each block; None if blocks differ."""
    params = mode.params(dtype, rank)
    return params.maxbits if params.minbits == params.maxbits else None


def block_count(shape: tuple[int, ...]) -> int:
    """Return the number of blocks of an array."""
    return math.prod(_counts(shape))


def touched(index: Sequence[Any], shape: tuple[int, ...]) -> list[BlockRun] | None:
    """Return the blocks that hold selected values of an array."""
    points = len(index) > 1 and not any(isinstance(axis_index, slice) for axis_index in index)
    runs = _runs_of_points(index, shape) if points else _runs_of_axes(index, shape)
    all_nvalues = block_count(shape) * BLOCK_SIDE ** len(shape)
    runs_to_decode, work = [], 0
    for run in runs:
        work += run.nblocks * BLOCK_SIDE ** len(shape) + _CALL_NVALUES
        if work >= all_nvalues + _CALL_NVALUES:
            return None
        runs_to_decode.append(run)
    return None if sum(run.nblocks for run in runs_to_decode) == block_count(shape) else runs_to_decode


def nbytes_of(runs: Sequence[BlockRun], nbits: int) -> tuple[int, int]:
    """Return start and stop, in bytes of the stream, of the blocks of all runs."""
    last = runs[-1]
    return runs[0].first * nbits // 8, -(-(last.first + last.nblocks) * nbits // 8)


def decode_blocks(
    buffer: Bytes, offset: int, runs: Sequence[BlockRun], out: NDArray[Any], mode: Mode, nbits: int
) -> NDArray[Any]:
    """Decode blocks of a fixed-rate stream into an array."""
    params = mode.params(out.dtype, out.ndim)
    for run in runs:
        box = out[run.where]
        end = _native.decode(buffer, box, params, run.first * nbits - 8 * offset)
        if not isinstance(end, int):
            refuse(end, out.dtype, box.shape, mode)
    return out


def _counts(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(-(-extent // BLOCK_SIDE) for extent in shape)


def _box(first: int, last: int, extent: int) -> slice:
    return slice(BLOCK_SIDE * first, min(BLOCK_SIDE * last, extent))


def _runs_of_axes(index: Sequence[Any], shape: tuple[int, ...]) -> Iterator[BlockRun]:
    counts = _counts(shape)
    ranges = [_ranges(axis_index) for axis_index in index]
    axis = len(shape) - 1  # the axis of the runs: all blocks along the faster axes are selected
    while axis and ranges[axis] == [(0, counts[axis])]:
        axis -= 1
    blocks_per_step = math.prod(counts[axis + 1 :])
    rest = tuple(slice(0, extent) for extent in shape[axis + 1 :])
    before = [
        list(itertools.chain.from_iterable(itertools.starmap(range, axis_ranges))) for axis_ranges in ranges[:axis]
    ]
    for coordinates in itertools.product(*before):
        row = 0
        for coordinate, count in zip(coordinates, counts, strict=False):
            row = row * count + coordinate
        boxes = tuple(
            _box(coordinate, coordinate + 1, extent) for coordinate, extent in zip(coordinates, shape, strict=False)
        )
        for first, last in ranges[axis]:
            yield BlockRun(
                (row * counts[axis] + first) * blocks_per_step,
                (last - first) * blocks_per_step,
                (*boxes, _box(first, last, shape[axis]), *rest),
            )


def _ranges(index: Any) -> list[tuple[int, int]]:
    """Return the selected blocks along an axis, as separate ranges."""
    if isinstance(index, slice):
        if index.step <= BLOCK_SIDE:
            return [(index.start // BLOCK_SIDE, (index.stop - 1) // BLOCK_SIDE + 1)]
        index = np.arange(index.start, index.stop, index.step)
    blocks = distinct(index // BLOCK_SIDE)
    ends = np.flatnonzero(np.diff(blocks) != 1)
    firsts, lasts = blocks[np.r_[0, ends + 1]], blocks[np.r_[ends, len(blocks) - 1]]
    return [(int(first), int(last) + 1) for first, last in zip(firsts, lasts, strict=True)]


def _runs_of_points(coordinates: Sequence[NDArray[np.intp]], shape: tuple[int, ...]) -> Iterator[BlockRun]:
    counts = _counts(shape)
    numbers = distinct(np.ravel_multi_index(tuple(axis_values // BLOCK_SIDE for axis_values in coordinates), counts))
    for number in numbers.tolist():
        block = [int(coordinate) for coordinate in np.unravel_index(number, counts)]
        boxes = tuple(_box(first, first + 1, extent) for first, extent in zip(block, shape, strict=True))
        yield BlockRun(number, 1, boxes)


_SHAPE = Kind("a whole number, or several such as (96, 144)", lambda value: WHOLE.fits(value) or WHOLES.fits(value))

_NUMBERS = Kind(
    "an array of int32, int64, float32 or float64 with 1 to 4 axes",
    lambda value: isinstance(value, np.ndarray) and value.dtype.kind in "if" and value.dtype.itemsize in (4, 8),
)


def encode(array: ArrayLike, mode: Mode, *, threads: int = 1) -> bytes:
    """Encode an array without a header, as in a chunk.

    Parameters
    ----------
    array
        1 to 4 axes, slowest first, any strides; not modified and, in native byte order, not copied.
    mode
        A mode of this package, or a `tamis.Zfp`.
    threads
        Largest number of threads; the bytes do not depend on it. Useful for one large array when nothing else runs:
        arrays of fewer than 262,144 values use one thread.

    Returns
    -------
    bytes
        The stream in whole bytes; libzfp with 64-bit words adds up to seven zero bytes.

    Raises
    ------
    DataError
        If a lossy mode gets NaN, an infinity or an integer beyond 2^30 (int32) or 2^62 (int64); names the first.
    ParameterError
        If ZFP does not support the type, number of axes or mode.
    """
    return _encode(array, mode, with_header=False, threads=threads)


def encode_with_header(array: ArrayLike, mode: Mode, *, threads: int = 1) -> bytes:
    """Encode an array with the header that describes it, like ``zfp -h`` and ``zfpy.compress_numpy``.

    See `encode`. The result is a whole number of 64-bit words, as libzfp's default build expects.
    """
    stream = _encode(array, mode, with_header=True, threads=threads)
    return stream + bytes(-len(stream) % 8)


def decode(
    buffer: Bytes,
    shape: int | Iterable[int],
    dtype: DTypeLike,
    mode: Mode,
    out: NDArray[Any] | None = None,
    *,
    threads: int = 1,
) -> NDArray[Any]:
    """Decode a stream that has no header.

    Parameters
    ----------
    buffer
        The stream. Bytes after its end are ignored.
    shape, dtype, mode
        Shape, type and mode of the encoded array.
    out
        Array to fill, of that shape and dtype, any strides. Its contents are undefined after an error. If it shares
        memory with `buffer`, the stream is copied first.
    threads
        Largest number of threads; values and errors do not depend on it. Useful for one large array when nothing else
        runs: arrays of fewer than 262,144 values use one thread. In all modes but rate, where blocks differ in length,
        each further thread needs up to 40 MiB and at least 4,096 blocks; if all blocks of a stream are alike, its work
        may be wasted, and one thread decodes everything.

    Returns
    -------
    numpy.ndarray
        `out`, or a new array in C order.

    Raises
    ------
    StreamError
        If the stream ends before the array does; names the block.
    ParameterError
        If ZFP does not support the shape, dtype or mode, or `out` does not fit.
    """
    _SHAPE.check("shape", shape)
    DTYPE_LIKE.check("dtype", dtype)
    ARRAY.check_optional("out", out)
    extents = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    return _decode(buffer, extents, np.dtype(dtype), mode, out, 0, threads)


def decode_with_header(buffer: Bytes, out: NDArray[Any] | None = None, *, threads: int = 1) -> NDArray[Any]:
    """Decode a stream that begins with a ZFP header, from tamis, zfpy or the ``zfp`` program.

    See `decode`.
    """
    ARRAY.check_optional("out", out)
    header, nbits = unpack(buffer)
    return _decode(buffer, header.shape, header.dtype, header.mode, out, nbits, threads)


def prove(array: NDArray[Any], stream: Bytes, mode: Mode, fill_bits: int | None = None) -> None:
    """Raise DataError unless a stream of `encode` keeps the tolerance of accuracy mode on every value.

    Most arrays are decided by their largest magnitude; only doubtful ones are decoded. Other modes promise no
    tolerance, and nothing is checked.

    Parameters
    ----------
    array
        The encoded values, in C order and native byte order.
    stream, mode
        What `encode` returned, and its mode.
    fill_bits
        Bits of a value that marks missing ones: values equal to it stay equal, and no others become equal.

    Raises
    ------
    DataError
        Names the index of the first value that is not kept.
    """
    if isinstance(array, np.ndarray) and array.dtype.kind == "u":
        return
    _NUMBERS.check("array", array)
    BYTES.check("stream", stream)
    mode = as_mode(mode)
    values = array.view(array.dtype.newbyteorder("="))  # without metadata of other packages, or a spelled-out order
    failure = _native.prove(values, stream, mode.params(array.dtype, array.ndim), fill_bits)
    if failure is not None:
        refuse(failure, array.dtype, array.shape, mode)


class _Setup(NamedTuple):
    """Values derived from type, shape and mode, cached because many arrays share them."""

    params: _native.Params
    signed: np.dtype[Any]
    nblocks: int


@lru_cache(maxsize=1024)
def _encoding_setup(dtype: np.dtype[Any], shape: tuple[int, ...], mode: Mode) -> _Setup:
    check_encodable(dtype, mode)
    return _decoding_setup(dtype, shape, mode)


@lru_cache(maxsize=1024)
def _decoding_setup(dtype: np.dtype[Any], shape: tuple[int, ...], mode: Mode) -> _Setup:
    check_dtype(dtype)
    check_shape(shape)
    native = dtype.newbyteorder("=")
    signed = np.dtype(f"i{dtype.itemsize}") if dtype.kind == "u" else native
    return _Setup(mode.params(dtype, len(shape)), signed, block_count(shape))


def _encode(array: ArrayLike, mode: Mode, *, with_header: bool, threads: int) -> bytes:
    threads, mode = check_threads(threads), as_mode(mode)
    # np.ma is named last, because numpy imports it on first use, which takes long.
    if type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise DataError("expected an array without masked values, got some: fill them first, with array.filled(…)")
    values = np.asarray(array)
    dtype = values.dtype
    setup = _encoding_setup(dtype, values.shape, mode)
    if not (dtype.isnative and values.flags.aligned and all(step % dtype.itemsize == 0 for step in values.strides)):
        values = values.astype(dtype.newbyteorder("="), order="C")  # a copy, aligned
    stream = _native.encode(values.view(setup.signed), setup.params, with_header, threads)
    return stream if isinstance(stream, bytes) else refuse(stream, dtype, values.shape, mode)


def _decode(
    buffer: Bytes,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    mode: Mode,
    out: NDArray[Any] | None,
    start: int,
    threads: int,
) -> NDArray[Any]:
    threads, mode = check_threads(threads), as_mode(mode)
    setup = _decoding_setup(dtype, shape, mode)
    params = setup.params
    data = as_view(buffer)
    # Checked before allocating, so that a short stream cannot demand much memory: a block has at least minbits.
    possible = max(len(data) * 8 - start, 0) // max(params.minbits, 1)
    if possible < setup.nblocks:
        place = "inside" if params.minbits == params.maxbits else "in or before"
        raise StreamError(
            f"stream of {len(data)} bytes is truncated: it ends {place} block {possible} of shape {shape}"
        )
    if out is None:
        out = np.empty(shape, dtype.newbyteorder("="))
    elif out.shape != shape or out.dtype != dtype or not (out.dtype.isnative and out.flags.aligned):
        raise ParameterError(
            f"expected out of shape {shape} and native, aligned {dtype}, got {out.shape} and"
            f" {'' if out.flags.aligned else 'unaligned '}{out.dtype.str}"
        )
    elif any(step == 0 and extent > 1 for step, extent in zip(out.strides, shape, strict=True)):
        raise ParameterError(f"expected out without overlapping values, got strides {out.strides} of shape {shape}")
    elif not out.flags.writeable:
        raise ParameterError("expected out to be writeable, got a read-only array")
    if np.may_share_memory(out, np.frombuffer(data, np.uint8)):
        data = memoryview(bytes(data))  # otherwise decoded values would overwrite the rest of the stream
    end = _native.decode(data, out.view(setup.signed), params, start, threads)
    return out if isinstance(end, int) else refuse(end, dtype, shape, mode)


class Rung(NamedTuple):
    """The result of `tamis.zfp.encode` for an array in one mode."""

    nbytes: int  # Bytes of the stream
    error: float  # Largest absolute error, as in `tamis.accuracy.difference`
    squares: float  # Sum of the squared errors; infinite beyond the range of doubles


def rungs_of(
    values: NDArray[Any], modes: Sequence[Accuracy | Precision], valid: NDArray[np.bool_] | None = None
) -> tuple[Rung, ...]:
    """Return bytes and errors of an array in each of several modes.

    One pass over the blocks gives all: a stream with fewer bit planes is the beginning of one with more.
    """
    check_shape(values.shape)
    native = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    flags = None if valid is None else np.ascontiguousarray(valid, np.bool_)
    ladder = _native.ladder(native, flags, [mode.params(native.dtype, native.ndim) for mode in modes])
    if isinstance(ladder, _native.Failure):
        refuse(ladder, values.dtype, values.shape, modes[0])
    return tuple(Rung(-(-nbits // 8), error, squares) for nbits, error, squares in ladder)
