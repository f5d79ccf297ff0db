"""Write encoded chunks into the files of a new Zarr array."""

from __future__ import annotations

import math
import os
import posixpath
import shutil
from collections.abc import Collection, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import google_crc32c
import numcodecs
import numpy as np
from numpy.typing import NDArray

from tamis.access import NEW_FILE
from tamis.arrays.grid import ChunkNotes
from tamis.arrays.source import close_handle
from tamis.arrays.threads import ordered_map
from tamis.errors import ParameterError
from tamis.filters import ChunkType, Zfp
from tamis.formats.zarr.codec_choice import Codecs, choose_codecs, one_codec
from tamis.formats.zarr.masked import MASK_MARK, mark_of
from tamis.formats.zarr.stored.readers import package_for
from tamis.pipeline import Pipeline
from tamis.rewrite.transfer import Changes, check_storable, transfer
from tamis.safety.disk import write_all
from tamis.safety.transaction import FolderTransaction, Transaction
from tamis.stores.first_bytes import is_zarr
from tamis.stores.other_files import OtherFiles
from tamis.stores.translation import translations

if TYPE_CHECKING:
    from tamis.arrays.grid import Grid
    from tamis.arrays.source import Placed
    from tamis.meaning.missing import Flags
    from tamis.stores.data_model import Translation
    from tamis.stores.protocols import EncodedChunk, Store

_VERSIONS = (2, 3)


@dataclass(frozen=True, slots=True)
class ZarrForm:
    """The form of a new hierarchy: a `tamis.rewrite.transfer.TargetForm`, and a `FolderForm` of its transaction."""

    zarr_format: Literal[2, 3] = 3
    shards: int | None = None  # Largest number of chunks in a file, in Zarr 3; None for a file for each chunk
    consolidated: bool = True  # Whether the root also has the metadata of all arrays, as xarray looks for them

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.zarr_format not in _VERSIONS or isinstance(self.zarr_format, bool):
            raise ParameterError(f"expected zarr_format to be 2 or 3, got {self.zarr_format!r}")
        if self.shards is None:
            return
        if not isinstance(self.shards, int) or isinstance(self.shards, bool) or self.shards < 1:
            raise ParameterError(f"expected 1 or more chunks per shard, got {self.shards!r}")
        if self.zarr_format == 2:
            raise ParameterError("Zarr 2 has no shards: leave out zarr_format=2, or shards")

    def begin(self, target: Path, *, overwrite: bool = True, private: bool = False) -> FolderTransaction:
        """Return the transaction of a folder."""
        return FolderTransaction(target, self, overwrite=overwrite, private=private)

    def check_copy(self, source: Store, dropped: Collection[str] = ()) -> None:
        """Raise an error if such a hierarchy cannot hold an array of the source that is not left out."""
        from tamis.formats.zarr.writing.target import check_array  # late, as below: these modules need the form

        check_storable(source, partial(check_array, self), dropped)

    def kept_as_stored(self, source: Store) -> Collection[str]:
        """Return the paths of arrays that are only copied as they are, because of their type."""
        from tamis.formats.zarr.writing.target import kept_as_stored  # late, as above

        return kept_as_stored(self, source)

    @property
    def files(self) -> ZarrForm:
        """The form, which knows the files of chunks."""
        return self

    def translations(self, source: Store) -> Iterable[Translation]:
        """See `TargetForm.translations`."""
        yield from translations(source, to_zarr=True)
        if source.model.is_loose:
            yield from (item for item in source.model.extras() if not _is_carried(source, item))

    def copies_objects_of(self, source: Store) -> bool:
        """Return False: all arrays are written again."""
        return False

    def copy(self, source: Store, target: Transaction, changes: Changes, threads: int = 1) -> OtherFiles:
        """Copy a store to a new hierarchy."""
        from tamis.formats.zarr.writing.target import ZarrTarget

        hierarchy = ZarrTarget(target.path, self, threads, target.mode)
        transfer(source, hierarchy, changes)
        for item in source.model.extras() if source.model.is_loose else ():
            if _is_carried(source, item):
                place = target.path / item.path[1:]
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(f"{source.path}{item.path}", place)
        return OtherFiles(hierarchy.notes, [])

    def is_store(self, path: Path) -> bool:
        """Return whether a folder is a hierarchy."""
        return is_zarr(path)

    def shard_counts(self, grid: Grid) -> tuple[int, ...] | None:
        """Return the number of chunks of a shard along each axis: full rows of the fastest axes; None without shards.

        An array of one chunk has no shards.
        """
        if self.shards is None or grid.chunk_count <= 1:
            return None
        counts, left = [], self.shards
        for count in reversed(grid.counts):
            counts.append(max(min(count, left), 1))
            left //= counts[-1]
        return tuple(counts[::-1])

    def file_of(self, path: str, grid: Grid, number: int) -> str:
        """Return the file of a chunk, relative to the hierarchy, by the number of the chunk."""
        index = tuple(map(int, np.unravel_index(number, grid.counts)))
        if (counts := self.shard_counts(grid)) is not None:
            index = tuple(i // count for i, count in zip(index, counts, strict=True))
        folder = path.strip("/")
        if self.zarr_format == 2:
            return f"{folder}/{'.'.join(map(str, index)) or '0'}"
        return "/".join([folder, "c", *map(str, index)])

    @property
    def has_shards(self) -> bool:
        """Whether a file has several chunks."""
        return self.shards is not None

    def shards_of(self, grid: Grid, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the file of each chunk."""
        if (sizes := self.shard_counts(grid)) is None:
            return numbers
        places = np.unravel_index(numbers, grid.counts)
        counts = [-(-count // size) for count, size in zip(grid.counts, sizes, strict=True)]
        return np.ravel_multi_index([at // size for at, size in zip(places, sizes, strict=True)], counts)

    def mark_of(self, data: bytes, mask: int, usual: int) -> bytes:
        """Return the bytes before a chunk."""
        return mark_of(mask) if mask != usual or data.startswith(MASK_MARK) else b""

    def ending_of(self, grid: Grid, places: ChunkNotes) -> bytes:
        """Return the index of a shard, with its checksum; nothing for the file of one chunk."""
        if (sizes := self.shard_counts(grid)) is None:
            return b""
        numbers, *own = places.columns()
        within = [at % size for at, size in zip(np.unravel_index(numbers, grid.counts), sizes, strict=True)]
        index = np.full((math.prod(sizes), 2), _ABSENT, "<u8")
        index[np.ravel_multi_index(within, sizes)] = np.stack(own, axis=1)
        data: bytes = index.tobytes()
        return data + int(google_crc32c.value(data)).to_bytes(4, "little")


def _is_carried(source: Store, item: Translation) -> bool:
    """Return whether a file of a store of Zarr that is not of Zarr itself is copied to another one.

    Links are not, which may lead to any file of this machine, nor what netCDF-C 4.8 says about dimensions and arrays.
    """
    place = f"{source.path}{item.path}"
    is_nczarr = posixpath.basename(item.path).startswith(".ncz")
    return not is_nczarr and os.path.isfile(place) and not os.path.islink(place)


_ABSENT = (1 << 64) - 1
"""Offset and size of a chunk that a shard does not have."""


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


class Hierarchy(Protocol):
    """The hierarchy of a new array."""

    folder: Path
    form: ZarrForm

    def create_companion(self, writer: ZarrWriter, pipeline: Pipeline, flags: Flags) -> ZarrWriter:
        """Create the companion of an array, which has a writer."""
        ...


class ZarrWriter:
    """A writer of a new array; see `tamis.stores.protocols.ArrayWriter`.

    The first chunk decides which filter mask is the usual one. A chunk with another mask begins with a mark, and the
    array then has the codec ``tamis.pipeline``; otherwise it has codecs that other programs know, if there are any.
    """

    has_whole_chunks = True

    def __init__(self, target: Hierarchy, new: NewChunks) -> None:
        self._target, self._new = target, new
        self.grid, self.recorded = new.grid, new.recorded
        self.stored_nbytes = 0
        self._numbers: set[int] = set()
        self._form: ZarrForm = target.form
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
            return one_codec(self.recorded, self._new.chunk, usual)
        masks = {} if self._usual is None else {usual: 1}
        chosen = choose_codecs(self.recorded, self._new.chunk, masks)
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
        for number in set(range(self.grid.chunk_count)) - self._numbers:
            self._put(number, data, mask)

    def _write(self, name: str, data: bytes) -> int:
        """Append bytes to a file; return their offset."""
        if (folder := os.path.dirname(name)) != self._folder:
            self._make_folders(folder)
            self._folder = folder
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        handle = os.open(f"{self._target.folder}/{name}", flags, NEW_FILE)
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
