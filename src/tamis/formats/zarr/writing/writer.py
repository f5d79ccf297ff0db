"""Write encoded chunks into the files of a new Zarr array."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numcodecs
import numpy as np

from tamis.access import NEW_FILE
from tamis.arrays.grid import ChunkNotes
from tamis.arrays.threads import ordered_map
from tamis.filters import ChunkType, Zfp
from tamis.formats.zarr.codec_choice import Codecs, choose_codecs, one_codec
from tamis.formats.zarr.stored.readers import package_for
from tamis.pipeline import Pipeline
from tamis.system.files import close_handle, open_file, write_all

if TYPE_CHECKING:
    from tamis.arrays.grid import Grid
    from tamis.arrays.source import Placed
    from tamis.formats.zarr.writing.layout import ZarrLayout
    from tamis.meaning.missing import Flags
    from tamis.stores.protocols import EncodedChunk

_MOST_FILLED, _MOST_FILLED_NBYTES = 1 << 16, 64 << 20
"""Limits of the chunks, and their bytes, that are written although the source does not store them."""


@dataclass(frozen=True, slots=True)
class NewChunks:
    """The chunks of a new array."""

    path: str  # Path of the array in the hierarchy
    grid: Grid  # The grid of its chunks
    chunk: ChunkType  # Type, shape and fill value of a chunk
    pipeline: Pipeline  # Filters; stored parameters are those for such chunks
    # Whether all chunks are stored, even those that the source does not store: xarray treats the fill value of Zarr 2
    # as missing, so an array may have none
    is_full: bool = False

    @property
    def recorded(self) -> Pipeline:
        """The filters with stored parameters."""
        stages = self.pipeline.stages
        return Pipeline(replace(stage, stored=stage.filter.stored(self.chunk)) for stage in stages)

    @property
    def stored(self) -> ChunkType:
        """The chunk as the metadata describe it.

        Filter zfp takes values in the byte order of this machine, but codecs of Zarr little-endian ones. Streams have
        none.
        """
        chunk, little = self.chunk, self.chunk.dtype.newbyteorder("<")
        if self.pipeline.zfp is None or chunk.dtype == little:
            return chunk
        return ChunkType(little, chunk.shape, np.frombuffer(chunk.fill, chunk.dtype).astype(little).tobytes())


class NewHierarchy(Protocol):
    """The hierarchy of a new array, as its writer needs it."""

    folder: Path
    form: ZarrLayout

    def create_companion(self, writer: ZarrWriter, pipeline: Pipeline, flags: Flags) -> ZarrWriter:
        """Create the companion of an array, which has a writer."""
        ...


class ZarrWriter:
    """A writer of a new array; see `tamis.stores.protocols.ArrayWriter`.

    The first chunk decides which filter mask is the usual one. A chunk with another mask begins with a mark, and the
    array then has the codec ``tamis.pipeline``; otherwise it has codecs that other programs know, if there are any.
    """

    has_whole_chunks = True

    def __init__(self, target: NewHierarchy, new: NewChunks) -> None:
        self._target, self._new = target, new
        self.grid, self.recorded, self.stored = new.grid, new.recorded, new.stored
        self.stored_nbytes = 0
        self._numbers: set[int] = set()
        self._form: ZarrLayout = target.form
        self._usual: int | None = None
        self._is_marked = False
        self._shards: dict[str, ChunkNotes] = {}
        self._folder = self.path.strip("/").rpartition("/")[0]

    @property
    def path(self) -> str:
        """Path of the array in the hierarchy."""
        return self._new.path

    @property
    def is_full(self) -> bool:
        """Whether all chunks should be stored."""
        return self._new.is_full

    @property
    def absent_count(self) -> int:
        """Number of chunks that were not written."""
        return self.grid.chunk_count - self.count

    @property
    def count(self) -> int:
        """Number of chunks that were written."""
        return len(self._numbers)

    @property
    def codecs(self) -> Codecs:
        """The codecs of the chunks that were written."""
        usual = self._usual or 0
        if self._is_marked:
            return one_codec(self.recorded, self.stored, usual)
        masks = {} if self._usual is None else {usual: 1}
        chosen = choose_codecs(self.recorded, self.stored, masks)
        if chosen.with_header is None or self._form.zarr_format != 2:
            return chosen
        return replace(chosen, version_2=chosen.with_header[1])

    @property
    def reader_package(self) -> str:
        """The package that zarr-python needs to read the array; see `tamis.formats.zarr.stored.readers`."""
        codecs = self.codecs.version_2 if self._form.zarr_format == 2 else self.codecs.version_3
        return package_for(codecs or (), self._form.zarr_format)

    def put(self, chunks: Sequence[EncodedChunk]) -> Sequence[int | None]:
        """Write encoded chunks, unless another process has, and return the offset of each in its file."""
        return [self._put(chunk.number, chunk.data, chunk.mask, chunk.placed) for chunk in chunks]

    def _put(self, number: int, data: bytes, mask: int, placed: Placed | None = None) -> int:
        if placed is None and mask & 1 and self.stored.dtype != self._new.chunk.dtype:
            values = self.recorded.decode(data, mask, self._new.chunk).astype(self.stored.dtype)
            data, mask = self.recorded.encode(values, skip=(Zfp,))
        self._usual = mask if self._usual is None else self._usual
        self._numbers.add(number)
        if placed is not None:
            self.stored_nbytes += placed.nbytes
            self._is_marked |= placed.is_marked
            return placed.offset
        mark = self._form.mark_of(data, mask, self._usual)
        self.stored_nbytes += len(data)
        self._is_marked |= bool(mark)
        name = self._form.file_of(self.path, self.grid, number)
        offset = self._write(name, mark + data if mark else data)
        if self._form.shards is not None:
            self._shards.setdefault(name, ChunkNotes("QQ")).add(number, offset, len(mark) + len(data))
        return offset + len(mark)

    def create_companion(self, pipeline: Pipeline, flags: Flags) -> ZarrWriter:
        """Create the companion of the array."""
        return self._target.create_companion(self, pipeline, flags)

    def finish(self) -> None:
        """Complete the files with several chunks: an index with a checksum follows the chunks."""
        if self._new.is_full and self.absent_count:
            self._fill()
        for name, places in self._shards.items():
            self._write(name, self._form.ending_of(self.grid, places))

    def add_headers(self, threads: int) -> None:
        """Put the header of zfp before the stream of each chunk, if the array gets numcodecs' codec zfpy.

        Only now is it known that all chunks went through the same filters. libzfp reads words of 8 bytes, so the stream
        is filled up to them.
        """
        codecs = self.codecs
        if codecs.with_header is None or self._form.zarr_format != 2:
            return
        header, (_, *others) = codecs.with_header
        rest = [numcodecs.get_codec(config) for config in others]

        def add(number: int) -> None:
            path = self._target.folder / self._form.file_of(self.path, self.grid, number)
            data = path.read_bytes()
            for codec in reversed(rest):
                data = bytes(codec.decode(data))
            data = header + data + bytes(-(len(header) + len(data)) % 8)
            for codec in rest:
                data = bytes(codec.encode(data))
            path.write_bytes(data)

        with closing(ordered_map(add, sorted(self._numbers), threads)) as done:
            for _ in done:
                pass

    def _fill(self) -> None:
        """Write the fill value into all unwritten chunks, without zfp, which might change it, unless there are many."""
        chunk = self._new.chunk
        values = np.full(chunk.shape, np.frombuffer(chunk.fill or bytes(chunk.dtype.itemsize), chunk.dtype))
        data, mask = self.recorded.encode(values, skip=(Zfp,))
        nbytes = len(data) * self.absent_count
        if self.absent_count > _MOST_FILLED or nbytes > max(_MOST_FILLED_NBYTES, self.stored_nbytes):
            return
        for number in sorted(set(range(self.grid.chunk_count)) - self._numbers):
            self._put(number, data, mask)

    def _write(self, name: str, data: bytes) -> int:
        """Append bytes to a file; return their offset."""
        if (folder := os.path.dirname(name)) != self._folder:
            self._make_folders(folder)
            self._folder = folder
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        handle = open_file(f"{self._target.folder}/{name}", flags, NEW_FILE)
        try:
            offset = os.lseek(handle, 0, os.SEEK_END)
            write_all(handle, data)
        finally:
            close_handle(handle)
        return offset

    def _make_folders(self, folder: str) -> None:
        """Create a folder and its parents, below the one that it shares with the last file or the array's group."""
        around = f"{self._folder}/"
        ends = [at for at, letter in enumerate(f"{folder}/") if letter == "/"]
        for end in ends:
            if not around.startswith(f"{folder[:end]}/"):
                with suppress(FileExistsError):
                    os.mkdir(f"{self._target.folder}/{folder[:end]}")
