"""Read stored chunks from a source of bytes and decode them, whatever the file format."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis import _native, zfp
from tamis.arrays.gather import intersection, within
from tamis.arrays.grid import Origin, Region, inner_count, origin_of, shape_of
from tamis.arrays.index import ChunkIndex, ChunkRecord, Parts, as_array
from tamis.arrays.read_many import ManyChunks, goes_over_many, native_pipeline_of_large
from tamis.arrays.reader import put
from tamis.arrays.source import ByteSource, FileSource, SlowSource
from tamis.errors import FileError, TamisError
from tamis.filters import ChunkType, Stage, StoredZfp, Zfp
from tamis.filters.zfp import is_stored
from tamis.lazy_property import lazy_property
from tamis.zfp.arrays import block_count, block_nbits, decode_blocks, nbytes_of, touched

if TYPE_CHECKING:
    from tamis.arrays.selection import Piece
    from tamis.pipeline import Pipeline
    from tamis.zfp.arrays import BlockRun

# A block of three axes touches 16 lines of an array, far from each other, which compete for the same cache set if
# extents are powers of two: 512 MiB in chunks of 64³ take 0.80 s directly, and 0.60 s through memory that stays cached.
_SCATTERED_AXES = 3
_MOST_ASIDE_NBYTES = 4 << 20

_WINDOWS = 2
"""Windows of pieces whose bytes a slow source fetches ahead."""

_WINDOW_NBYTES = 16 << 20
_WINDOW_PIECES = 1024
"""Stored bytes after which a window ends, and most pieces in it."""

_MOST_SHARE = 0.5  # of a chunk without filters that is read alone


class ChunkPart(NamedTuple):
    """A part of a stored chunk."""

    # Its bytes in the chunk
    start: int
    stop: int
    share: float  # Its size, as a fraction of the chunk's blocks or bytes
    runs: Sequence[BlockRun] = ()  # Blocks of zfp; none if the bytes are values


class ZfpChunks:
    """Decodes zfp chunks of the shape of the stored parameters directly into the result."""

    def __init__(self, header: StoredZfp, chunk: ChunkType) -> None:
        self._header = header
        self._mode = header.filter.mode
        self._chunk = chunk
        self._squeeze = tuple(0 if extent == 1 else slice(None) for extent in chunk.shape)
        self.is_aside = len(header.shape) >= _SCATTERED_AXES and chunk.nbytes <= _MOST_ASIDE_NBYTES
        self._local = threading.local()
        self.nbits = block_nbits(self._mode, header.dtype, len(header.shape))

    @classmethod
    def of(cls, stage: Stage, chunk: ChunkType) -> ZfpChunks | None:
        """Return a decoder for such chunks; None if the first filter is not zfp, or its shape is not the chunk's."""
        if not isinstance(stage.filter, Zfp) or not is_stored(stage.stored or ()):
            return None
        header = StoredZfp.parse(stage.stored or ())
        squeezed = tuple(extent for extent in chunk.shape if extent > 1)
        if header.shape != squeezed or header.dtype.itemsize != chunk.dtype.itemsize:
            return None
        return cls(header, chunk)

    def fits(self, out: NDArray[Any]) -> bool:
        """Return whether the codec can decode directly into an array."""
        return out.shape == self._chunk.shape and out.dtype == self._chunk.dtype and out.flags.aligned

    def decode(self, data: Any, out: NDArray[Any]) -> NDArray[Any]:
        """Decode a chunk into `out`; raise StreamError if it is damaged."""
        if self.is_aside and not out.flags.c_contiguous:
            out[...] = self.decode(data, self._room())
            return out
        view = self._view(out)
        zfp.decode(data, view.shape, view.dtype, self._mode, out=view)
        return self._swapped(out)

    def _room(self) -> NDArray[Any]:
        """Return memory for a chunk, which each thread reuses."""
        if not hasattr(self._local, "room"):
            self._local.room = np.empty(self._chunk.shape, self._chunk.dtype)
        room: NDArray[Any] = self._local.room
        return room

    def touched(self, inside: Sequence[Any]) -> list[BlockRun] | None:
        """Return the blocks that a selection needs; None if decoding the whole chunk is as fast."""
        longer = [index for index, extent in zip(inside, self._chunk.shape, strict=True) if extent > 1]
        return touched(longer, self._header.shape)

    def decode_blocks(self, data: bytes, offset: int, runs: Sequence[BlockRun], out: NDArray[Any]) -> NDArray[Any]:
        """Decode runs of blocks from a part of a chunk's stream that begins at `offset` in bytes."""
        decode_blocks(data, offset, runs, self._view(out), self._mode, self.nbits or 0)
        return self._swapped(out)

    def _view(self, out: NDArray[Any]) -> NDArray[Any]:
        """Return an array as the codec needs it: signed, in native byte order, without unit axes."""
        return out[self._squeeze].view(self._header.dtype)

    def _swapped(self, out: NDArray[Any]) -> NDArray[Any]:
        if self._header.swapped:
            # The file's type has the byte order of the machine that wrote it.
            out.byteswap(inplace=True)
        return out


class ChunkReader:
    """The stored chunks of an array of numbers, or of elements of bytes. Threads may share it.

    Parameters
    ----------
    path, name
        Path of the file, and name of the array in it.
    index
        The places of its chunks in the source.
    pipeline
        The filters, with stored parameters.
    chunk
        Type and shape of a chunk.
    fill
        Value of chunks that are not stored.
    source
        The bytes.
    partial_filtered
        Whether chunks that extend beyond the array are filtered; HDF5 can skip that without setting a mask.
    """

    def __init__(
        self,
        path: str,
        name: str,
        index: ChunkIndex,
        pipeline: Pipeline,
        chunk: ChunkType,
        fill: NDArray[Any],
        source: ByteSource,
        *,
        partial_filtered: bool = True,
    ) -> None:
        self.label = f"{path}: {name}"
        self.index = index
        self.pipeline = pipeline
        self.chunk = chunk
        self.fill = fill
        self.shape = index.grid.shape
        self._path = path
        self._name = name
        self._partial_filtered = partial_filtered
        self._nbytes = source.nbytes
        self._all_skipped = (1 << len(pipeline.stages)) - 1  # Mask of chunks that no filter changed
        self._source: ByteSource | None = source
        self._zfp = ZfpChunks.of(pipeline.stages[0], chunk) if pipeline.stages else None
        if (stop_at := getattr(source, "stop_at", None)) and len(index.offsets):
            stop_at(int((index.offsets + index.sizes).max()))

    def stored(self, origin: Origin) -> tuple[bytes, int]:
        """Return the bytes and the filter mask of a stored chunk."""
        record = self._record(origin)
        return self._read(origin, record, 0, record.nbytes), record.mask

    def completed(self, origin: Origin) -> bytes | None:
        """Return a stored chunk with all its elements, if the file ends it after the last one inside the array.

        The elements outside are zeros, and the filters and mask are those of the chunk. None for any other chunk.
        """
        if self.extents(origin) == self.chunk.shape:
            return None
        data, mask = self.stored(origin)
        mask = self._true_mask(origin, mask)
        try:
            if self.pipeline.decoded_nbytes(data, mask, self.chunk) >= self.chunk.nbytes:
                return None
            return self.pipeline.encode_with(self.values(origin), mask)
        except TamisError as error:
            raise self._failure(origin, f" cannot be decoded: {error}") from error

    def stored_head(self, origin: Origin, nbytes: int) -> bytes:
        """Return the first bytes of a stored chunk; raises the errors of `stored`."""
        record = self._record(origin)
        return bytes(self._read(origin, record, 0, min(nbytes, record.nbytes)))

    def true_records(self) -> Iterator[tuple[Origin, ChunkRecord]]:
        """Yield origins and records of all stored chunks, with the masks of partial ones that HDF5 left unfiltered."""
        for origin, record in self.index.records():
            yield origin, record._replace(mask=self._true_mask(origin, record.mask) & self._all_skipped)

    def stored_many(self, parts: Parts) -> Iterator[tuple[bytes, int] | None]:
        """Yield bytes and filter mask of each chunk, None if it is not stored; all are read in one call if possible."""
        index, source = self.index, self._source
        rows = index.positions_of(as_array(parts.numbers))
        offsets, sizes = index.offsets[rows], index.sizes[rows]
        is_complete = (rows >= 0) & (sizes <= self._nbytes) & (offsets <= self._nbytes - sizes)
        if source is None or not is_complete.all() or sizes.sum() > self._nbytes:
            for origin in parts.origins():
                yield self.stored(origin) if origin in index else None
            return
        data = source.read_many(zip(offsets.tolist(), sizes.tolist(), strict=True))
        yield from zip(data, index.masks[rows].tolist(), strict=True)

    def values(self, origin: Origin, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read and decode a whole chunk, including the part beyond the array; fill values if it is not stored.

        `out` and the result are as in `ArrayReader.read`; the FileError of a damaged chunk names the filter that
        failed.
        """
        record = self.index.record_of(origin)
        if record is None:
            return put(np.broadcast_to(self.fill, self.chunk.shape), out)
        mask = self._true_mask(origin, record.mask)
        direct = out is not None and out.dtype == self.chunk.dtype and out.flags.c_contiguous
        if out is not None and direct and self._is_plain(record, mask):
            self._read(origin, record, 0, self.chunk.nbytes, out.reshape(-1).view(np.uint8).data)
            return out
        if (values := self._read_native(record, mask, out)) is not None:
            return values
        data = self._read(origin, record, 0, record.nbytes)
        try:
            if out is not None and self._zfp is not None and not mask & 1 and self._zfp.fits(out):
                return self._decode(self.pipeline.decode_rest(data, mask, self.chunk), out)
            return put(self.pipeline.decode(data, mask, self.chunk, self._inner_nbytes(origin)), out)
        except TamisError as error:
            raise self._failure(origin, f" cannot be decoded: {error}") from error

    def _read_native(self, record: ChunkRecord, mask: int, out: NDArray[Any] | None) -> NDArray[Any] | None:
        """Return a large chunk, read and decoded by one native call; None if that is impossible or it is damaged."""
        source, native = self._source, self._native_pipeline
        if native is None or not isinstance(source, FileSource) or (out is not None and out.dtype != self.chunk.dtype):
            return None
        if out is not None and not out.flags.c_contiguous and self._zfp is not None and not self._zfp.is_aside:
            return None  # decoded into place value by value, see `ZfpChunks`
        if out is None:
            out = np.empty(self.chunk.shape, self.chunk.dtype)
        read = native.read_one(source.descriptor.number, record.offset, record.nbytes, mask & 0xFFFFFFFF, out)
        return out if read else None

    @lazy_property
    def _native_pipeline(self) -> _native.ChunkPipeline | None:
        return native_pipeline_of_large(self.pipeline, self.chunk)

    def read_many(self, part: Region, out: NDArray[Any], threads: int = 1, *, fetches: bool = False) -> bool:
        """Read a part of the array in one native call, if it covers many small chunks and `out` has their type.

        Chunks of a slow source are fetched on request, and only if all of their values are used.
        """
        source = self._source
        if out.dtype != self.chunk.dtype or not goes_over_many(part, self.chunk) or self._many is None:
            return False
        can_fetch = fetches and self.whole_of(part) == part
        if not isinstance(source, FileSource) and not (can_fetch and isinstance(source, SlowSource)):
            return False
        for origin in self._many.read(source, part, out, threads):
            chunk = tuple([slice(start, start + step) for start, step in zip(origin, self.chunk.shape, strict=True)])
            shared = intersection(part, chunk)
            out[within(shared, part)] = self.values(origin)[within(shared, chunk)]
        return True

    def whole_of(self, part: Region) -> Region | None:
        """Return a part with whole chunks, if a slow source has many small ones that native code decodes whole."""
        if not isinstance(self._source, SlowSource) or not goes_over_many(part, self.chunk) or self._many is None:
            return None
        axes = zip(part, self.chunk.shape, self.shape, strict=True)
        whole = tuple(
            [slice(at.start // step * step, min(-(-at.stop // step) * step, extent)) for at, step, extent in axes]
        )
        if whole != part and self._zfp is not None and self._zfp.nbits:
            return None  # blocks of a fixed rate are fetched alone
        return whole

    @lazy_property
    def _many(self) -> ManyChunks | None:
        try:
            return ManyChunks(self.index, self.chunk, self.pipeline, self.fill, partial_filtered=self._partial_filtered)
        except ValueError:
            return None

    def first_output(self, origin: Origin) -> bytes | None:
        """Return the output of the first filter for a stored chunk; None if the chunk skipped that filter."""
        data, mask = self.stored(origin)
        mask = self._true_mask(origin, mask)
        try:
            return None if mask & 1 else bytes(self.pipeline.decode_rest(data, mask, self.chunk))
        except TamisError as error:
            raise self._failure(origin, f" cannot be decoded: {error}") from error

    def part_for(self, piece: Piece) -> ChunkPart | None:
        """Return the part of a chunk that a piece needs; None if it needs the whole chunk, or nothing is stored."""
        has_parts = not self.pipeline.stages or (self._zfp is not None and self._zfp.nbits is not None)
        record = self.index.record_of(piece.origin) if has_parts else None
        if record is None or piece.covers(self.extents(piece.origin)):
            return None
        find = self._part_of_blocks if self.pipeline.stages else self._part_of_values
        return find(record._replace(mask=self._true_mask(piece.origin, record.mask)), piece.inside)

    def _part_of_blocks(self, record: ChunkRecord, inside: Sequence[Any]) -> ChunkPart | None:
        """Return the blocks of fixed-rate ZFP that hold a selection, if no other filter was applied."""
        is_zfp_alone = record.mask & self._all_skipped == self._all_skipped - 1
        if self._zfp is None or self._zfp.nbits is None or not is_zfp_alone:
            return None
        runs = self._zfp.touched(inside)
        if not runs:
            return None
        start, stop = nbytes_of(runs, self._zfp.nbits)
        count = block_count(tuple(extent for extent in self.chunk.shape if extent > 1))
        share = sum(run.nblocks for run in runs) / count
        return ChunkPart(start, max(start, min(stop, record.nbytes)), share, runs)

    def _part_of_values(self, record: ChunkRecord, inside: Sequence[Any]) -> ChunkPart | None:
        """Return the first to the last value of a selection of a chunk without filters."""
        if record.offset + record.nbytes > self._nbytes or not self._is_plain(record, record.mask):
            return None  # reading the whole chunk reports what is wrong
        first = last = 0
        for index, extent in zip(inside, self.chunk.shape, strict=True):
            if isinstance(index, slice):
                places: Sequence[int] = range(extent)[index]
            else:
                places = (int(index.min()), int(index.max()))
            first = first * extent + places[0]
            last = last * extent + places[-1]
        start, stop = first * self.chunk.dtype.itemsize, (last + 1) * self.chunk.dtype.itemsize
        share = (stop - start) / max(self.chunk.nbytes, 1)
        return ChunkPart(start, stop, share) if 0 < share <= _MOST_SHARE else None

    def part_values(self, origin: Origin, part: ChunkPart) -> NDArray[Any]:
        """Read and decode a part of a chunk; other values of the returned chunk are undefined."""
        data = self._read(origin, self._record(origin), part.start, part.stop)
        values = np.empty(self.chunk.shape, self.chunk.dtype)
        if self._zfp is None or not part.runs:
            values.reshape(-1).view(np.uint8)[part.start : part.stop] = np.frombuffer(data, np.uint8)
            return values
        try:
            return self._zfp.decode_blocks(data, part.start, part.runs, values)
        except TamisError as error:
            self.pipeline.name_filter(0, error)
            raise self._failure(origin, f" cannot be decoded: {error}") from error

    @contextmanager
    def fetched(self, pieces: Iterable[Piece], is_known: Callable[[Piece], bool]) -> Iterator[Iterator[Piece]]:
        """Yield an iterator of pieces whose bytes a slow source fetches meanwhile, some megabytes ahead.

        Pieces that are known are not fetched. The last bytes are kept until the end of the context.
        """
        source = self._source
        if not isinstance(source, SlowSource):
            yield iter(pieces)
            return
        entered: deque[ExitStack] = deque()
        try:
            yield self._fetch(source, iter(pieces), is_known, entered)
        finally:
            for stack in entered:
                stack.close()

    def _fetch(
        self, source: SlowSource, pieces: Iterator[Piece], is_known: Callable[[Piece], bool], entered: deque[ExitStack]
    ) -> Iterator[Piece]:
        """Yield pieces, and begin to fetch those of the window after the next."""
        waiting: deque[list[Piece]] = deque()
        while True:
            while len(waiting) < _WINDOWS and (window := self._window(pieces, is_known)):
                entered.append(ExitStack())
                entered[-1].enter_context(source.ahead([span for _, span in window if span[1]]))
                waiting.append([piece for piece, _ in window])
            if not waiting:
                return
            while len(entered) > _WINDOWS + 1:  # threads may still decode the pieces of the window before
                entered.popleft().close()
            yield from waiting.popleft()

    def _window(
        self, pieces: Iterator[Piece], is_known: Callable[[Piece], bool]
    ) -> list[tuple[Piece, tuple[int, int]]]:
        """Return the next pieces, with offset and size of the bytes that each needs."""
        window: list[tuple[Piece, tuple[int, int]]] = []
        nbytes = 0
        for piece in pieces:
            span = (0, 0) if is_known(piece) else self._needed(piece)
            window.append((piece, span))
            nbytes += span[1]
            if nbytes >= _WINDOW_NBYTES or len(window) == _WINDOW_PIECES:
                break
        return window

    def _needed(self, piece: Piece) -> tuple[int, int]:
        """Return offset and size of the bytes that a piece needs."""
        record = self.index.record_of(piece.origin)
        if record is None:
            return 0, 0
        if part := self.part_for(piece):
            return record.offset + part.start, part.stop - part.start
        return record.offset, record.nbytes

    def extents(self, origin: Origin) -> tuple[int, ...]:
        """Return the shape of the part of a chunk that is inside the array."""
        steps = zip(origin, self.chunk.shape, self.shape, strict=True)
        return tuple([min(step, extent - start) for start, step, extent in steps])

    def _inner_nbytes(self, origin: Origin) -> int:
        """Return the bytes of a chunk up to its last element inside the array: some programs store no more."""
        return inner_count(origin, self.chunk.shape, self.shape) * self.chunk.dtype.itemsize

    def close(self) -> None:
        """Release the source; running reads finish first."""
        self._source = None

    def _record(self, origin: Origin) -> ChunkRecord:
        record = self.index.record_of(origin)
        if record is None:
            raise KeyError(origin)
        return record

    def _is_plain(self, record: ChunkRecord, mask: int) -> bool:
        """Return whether the bytes of a stored chunk are its values."""
        is_unfiltered = mask & self._all_skipped == self._all_skipped
        return is_unfiltered and record.nbytes == self.chunk.nbytes

    def _read(self, origin: Origin, record: ChunkRecord, start: int, stop: int, room: memoryview | None = None) -> Any:
        """Read part of a stored chunk, into `room` if it is given."""
        source, offset = self._source, record.offset
        if source is None:
            raise FileError(f"{self.label}: the file is closed: open it again").at(path=self._path, dataset=self._name)
        # A damaged index may claim any size: memory is only allocated after a check of the file's length.
        if offset + stop > self._nbytes:
            self._nbytes = source.nbytes
        available = self._nbytes - offset
        try:
            if stop > available:
                data: Any = b""
            elif room is None:
                data = source.read(offset + start, stop - start)
            else:
                data = room[: source.read_into(offset + start, room)]
        except FileError as error:
            raise error.at(path=self._path, dataset=self._name, chunk=origin)  # noqa: B904 - the same error
        except OSError as error:
            raise self._failure(origin, f" cannot be read: {error.strerror}") from error
        if len(data) != stop - start:
            text = f": expected {stop} bytes at {offset}, got {max(available, 0)}: the file is truncated or damaged"
            raise self._failure(origin, text)
        return data

    def _true_mask(self, origin: Origin, mask: int) -> int:
        """Return the filter mask, with all bits set for partial chunks that HDF5 left unfiltered without a mask."""
        if not self._partial_filtered and self.extents(origin) != self.chunk.shape:
            return -1
        return mask

    def _decode(self, data: Any, out: NDArray[Any]) -> NDArray[Any]:
        try:
            return self._zfp.decode(data, out)  # type: ignore[union-attr]
        except TamisError as error:
            self.pipeline.name_filter(0, error)
            raise

    def _failure(self, origin: Origin, text: str) -> FileError:
        return FileError(f"{self.label}: chunk at {origin}{text}").at(path=self._path, dataset=self._name, chunk=origin)


class ChunkedReader:
    """An array whose chunks are read raw and decoded by tamis."""

    def __init__(self, chunks: ChunkReader) -> None:
        self._reader = chunks
        self.shape = chunks.shape
        self.dtype = chunks.chunk.dtype
        self.chunk_shape: tuple[int, ...] | None = chunks.chunk.shape

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Decode the chunks that overlap the part."""
        steps = self._reader.chunk.shape
        # Lists are faster than generators here, and this runs for each chunk.
        origin = tuple([axis.start // step * step for axis, step in zip(part, steps, strict=True)])
        if all(axis.stop <= at + step for axis, at, step in zip(part, origin, steps, strict=True)):
            return self._read_one(origin, part, out)
        firsts = [range(at, axis.stop, step) for axis, at, step in zip(part, origin, steps, strict=True)]
        if out is None:
            out = np.empty(shape_of(part), self.dtype)
        if self._reader.read_many(part, out):
            return out
        begin = origin_of(part)
        for origin in itertools.product(*firsts):
            shared = intersection(part, tuple([slice(at, at + step) for at, step in zip(origin, steps, strict=True)]))
            self._read_one(origin, shared, out[_inside(shared, begin)])
        return out

    def _read_one(self, origin: Origin, part: Region, out: NDArray[Any] | None) -> NDArray[Any]:
        """Decode a part of one chunk; a whole chunk directly into `out`."""
        if shape_of(part) == self._reader.chunk.shape:
            return self._reader.values(origin, out)
        return put(self._reader.values(origin)[_inside(part, origin)], out)

    def close(self) -> None:
        """Close the source of the chunks."""
        self._reader.close()


def _inside(part: Region, origin: tuple[int, ...]) -> Region:
    """Return a part relative to an origin."""
    return tuple([slice(axis.start - at, axis.stop - at) for axis, at in zip(part, origin, strict=True)])
