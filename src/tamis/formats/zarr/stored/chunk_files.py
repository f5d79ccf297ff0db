"""The chunk files of a Zarr array in a folder, here or elsewhere."""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from tamis.errors import FileError
from tamis.lazy_property import lazy_property
from tamis.remote.address import Address
from tamis.remote.file import can_list, list_below
from tamis.remote.references import ends_in, source_of
from tamis.system.files import opened, read_at

if TYPE_CHECKING:
    from tamis.arrays.grid import Grid
    from tamis.remote.file import RemoteObjects
    from tamis.remote.object_store import Part

Json = dict[str, Any]

_ABSENT = np.uint64((1 << 64) - 1)
_ENTRY_NBYTES, _CHECKSUM_NBYTES = 16, 4
_LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


@dataclass(frozen=True, slots=True)
class ShardForm:
    """The layout of files with several chunks."""

    codecs: tuple[Json, ...]  # Metadata of the codecs of a chunk
    at_end: bool  # Whether the index comes after the chunks, not before them
    has_checksum: bool  # Whether the index has a checksum

    @classmethod
    def of(cls, codecs: Sequence[Json]) -> Self | None:
        """Return the form from the codecs of an array; None if these or those of the index are not supported."""
        if len(codecs) != 1 or codecs[0].get("name") != "sharding_indexed":
            return None
        config = codecs[0]["configuration"]
        of_index = list(config["index_codecs"])
        if of_index[:1] != [_LITTLE] or [codec.get("name") for codec in of_index[1:]] not in ([], ["crc32c"]):
            return None
        return cls(tuple(config["codecs"]), config.get("index_location", "end") == "end", len(of_index) > 1)

    def index_nbytes(self, count: int) -> int:
        """Return the size of the index of this many chunks."""
        return count * _ENTRY_NBYTES + (_CHECKSUM_NBYTES if self.has_checksum else 0)

    def place_of_index(self, count: int, begin: int, size: int) -> tuple[int, int]:
        """Return offset and size of the index of this many chunks, in a file that begins at an offset."""
        nbytes = self.index_nbytes(count)
        return begin + (max(size - nbytes, 0) if self.at_end else 0), nbytes

    def entries(self, path: Path | Address, data: bytes, size: int, count: int) -> NDArray[np.uint64]:
        """Return offset and size of each chunk in a file of this size, from the bytes of its index."""
        _, nbytes = self.place_of_index(count, 0, size)
        if nbytes > size:
            raise _damage(path, f"expected an index of {nbytes} bytes for {count} chunks, found a file of {size} bytes")
        if self.has_checksum:
            data, checksum = data[:-_CHECKSUM_NBYTES], int.from_bytes(data[-_CHECKSUM_NBYTES:], "little")
            if (actual := _crc32c(data)) != checksum:
                raise _damage(path, f"expected the checksum {checksum:08x} of the index, found {actual:08x}")
        entries: NDArray[np.uint64] = np.frombuffer(data, "<u8").reshape(count, 2).astype(np.uint64)
        first, last = (0, size - nbytes) if self.at_end else (nbytes, size)
        stored = entries[(entries != _ABSENT).any(axis=1)]
        offsets, sizes = stored.T
        wrong = (offsets < first) | (offsets > last) | (sizes > last - np.minimum(offsets, np.uint64(last)))
        if wrong.any():
            offset, length = stored[wrong][0].tolist()
            raise _damage(path, f"expected chunks from byte {first} to {last}, found {length} bytes at {offset}")
        return entries


Columns = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Numbers and sizes of stored chunks, or shards."""

Places = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Numbers of stored chunks, increasing, their offsets in the concatenated files, and their sizes."""


def places_in_shards(
    form: ShardForm,
    grids: tuple[Grid, Grid],
    files: tuple[NDArray[np.int64], NDArray[np.int64]],
    source: FolderSource | RemoteObjects,
    path_of: Callable[[int], Path | Address],
) -> Places:
    """Return the places of all chunks inside the array; `files` has numbers and sizes of the files of a source."""
    chunks, shards = grids
    counts = tuple(step // chunk for step, chunk in zip(shards.chunk_shape, chunks.chunk_shape, strict=True))
    numbers, starts, sizes = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    count, begins = math.prod(counts), source.starts().tolist()
    indexes = source.read_many(
        (at, min(nbytes, size))  # a damaged file may claim any number of chunks
        for begin, size in zip(begins, files[1].tolist(), strict=True)
        for at, nbytes in [form.place_of_index(count, begin, size)]
    )
    rows = zip(files[0].tolist(), begins, files[1].tolist(), indexes, strict=True)
    for row, (number, begin, size, data) in enumerate(rows):
        entries = form.entries(path_of(row), data, size, count)
        inner = np.flatnonzero((entries != _ABSENT).any(axis=1))
        first = np.array(np.unravel_index(number, shards.counts)) * counts
        index = np.array(np.unravel_index(inner, counts)) + first[:, None]
        inside = (index < np.array(chunks.counts)[:, None]).all(axis=0)
        numbers.append(np.ravel_multi_index(tuple(index[:, inside]), chunks.counts))
        starts.append(entries[inner[inside], 0].astype(np.int64) + begin)
        sizes.append(entries[inner[inside], 1].astype(np.int64))
    order = np.argsort(known := np.concatenate(numbers))
    return known[order], np.concatenate(starts)[order], np.concatenate(sizes)[order]


def _crc32c(data: bytes) -> int:
    import google_crc32c  # late: zarr brings it, and is optional

    return int(google_crc32c.value(data))


def _damage(path: Path | Address, text: str) -> FileError:
    return FileError(f"{path}: {text}: the file is truncated or damaged").at(path=path)


MOST_ASKED = 256
"""Most chunks for which a server that cannot list is asked one by one."""

_FEW = 16
"""Limit of chunks whose files are looked for by name."""

_MOST_ENDS_NBYTES = 64 << 20
"""Limit of the files that are fetched without knowing their sizes."""

_NUMBERS = re.compile(r"\d+")


class StoredChunkFiles:
    """The files of an array's chunks, or of its shards: which are there, how large they are, and their bytes.

    Parameters
    ----------
    folder
        Folder of the array.
    key_of
        Returns the key of a chunk, or shard, by its index along each axis: its path in the folder.
    chunks, files
        The grids of the chunks and of the files.
    counts
        Number of files along each axis; that of the grid, unless chunks have several shapes.
    shard_form
        The layout of shards; None if each chunk has its own file, or the layout is not supported.
    chunk_nbytes
        Bytes of the values of a chunk.
    """

    def __init__(
        self,
        folder: Path | Address,
        key_of: Callable[[tuple[int, ...]], str],
        chunks: Grid,
        files: Grid,
        counts: tuple[int, ...],
        shard_form: ShardForm | None,
        chunk_nbytes: int,
    ) -> None:
        self.folder = folder
        self.key_of = key_of
        self.grid = files
        self._chunks = chunks
        self._counts = counts
        self._shard_form = shard_form
        self._chunk_nbytes = chunk_nbytes

    def path_of(self, number: int) -> Path | Address:
        """Return the path of a file by its number."""
        return self.folder / self.key_of_number(number)

    def key_of_number(self, number: int) -> str:
        """Return the key of a file by its number."""
        return self.key_of(tuple(map(int, np.unravel_index(number, self._counts))))

    @property
    def numbers(self) -> NDArray[np.int64]:
        """Numbers of the files that are there, increasing."""
        return self._listing[0][0]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Bytes of each of these files."""
        return self._listing[0][1]

    def paths(self) -> list[Path | Address]:
        """Return the paths of these files."""
        return [self.path_of(number) for number in self.numbers.tolist()]

    def _path_of_row(self, row: int) -> Path | Address:
        return self.path_of(int(self.numbers[row]))

    @lazy_property
    def source(self) -> FolderSource | RemoteObjects:
        """The bytes of these files, one after the other."""
        if isinstance(self.folder, Address):
            return source_of(self.folder, *self._listing, self.key_of_number)
        return FolderSource(self.sizes, self._path_of_row)  # type: ignore[arg-type]  # paths

    def places(self) -> Places:
        """Return where the chunks are in `source`."""
        if self._shard_form is None:
            return self.numbers, self.source.starts().copy(), self.sizes.copy()
        grids = self._chunks, self.grid
        return places_in_shards(self._shard_form, grids, self._listing[0], self.source, self._path_of_row)

    @lazy_property
    def can_be_listed(self) -> bool:
        """True unless the many files are on a server that cannot list them."""
        if not isinstance(self.folder, Address):
            return True
        return self.grid.chunk_count <= MOST_ASKED or can_list(self.folder)

    def only(self, numbers: Sequence[int]) -> StoredChunkFiles:
        """Return some of the files by their numbers; a server is asked for their sizes, once for each."""
        few = copy(self)
        vars(few).pop("source", None)
        vars(few)["_listing"] = _columns_and_ends(self._ends_of(numbers))
        return few

    def _ends_of(self, numbers: Sequence[int]) -> dict[int, Part | None]:
        """Return the sizes of files, with the index of a shard, or all of a chunk that is asked for the first time."""
        known, asked = self._known_ends, [number for number in numbers if number not in self._known_ends]
        nbytes = self._index_nbytes or self._chunk_nbytes + (self._chunk_nbytes >> 6) + 1024  # a whole file, as a rule
        ends = self._ends(asked, nbytes if len(asked) * nbytes <= _MOST_ENDS_NBYTES else self._index_nbytes)
        for number, end in ends.items():
            known[number] = end if self._index_nbytes or end is None else end._replace(data=b"")
        return {number: ends.get(number, known[number]) for number in numbers}

    @lazy_property
    def _known_ends(self) -> dict[int, Part | None]:
        """The same of all files that were asked for, without the bytes of chunks."""
        return {}

    def _ends(self, numbers: Sequence[int], nbytes: int) -> dict[int, Part | None]:
        """Return sizes and so many last bytes of files that are elsewhere, by number; None for those that are not."""
        return dict(zip(numbers, ends_in(self.folder, map(self.key_of_number, numbers), nbytes), strict=True))

    @lazy_property
    def _index_nbytes(self) -> int:
        """Bytes of an index at the end of each file; 0 if there is none."""
        form = self._shard_form
        if form is None or not form.at_end:
            return 0
        steps = zip(self.grid.chunk_shape, self._chunks.chunk_shape, strict=True)
        return form.index_nbytes(math.prod(shard // chunk for shard, chunk in steps))

    @lazy_property
    def _listing(self) -> tuple[Columns, list[Part]]:
        """Numbers and sizes of the files that are there, and last bytes of those that a server was asked for.

        The time depends on the files, not on the grid. From a server that cannot list, each file is requested by its
        name, and its last bytes.
        """
        if not math.prod(self._chunks.shape):
            return _columns(()), []
        if isinstance(self.folder, Address) and not can_list(self.folder):
            if (count := math.prod(self._counts)) > MOST_ASKED:
                wanted = f"a store that lists objects, or at most {MOST_ASKED} chunks"
                raise FileError(f"{self.folder}: expected {wanted}, found {count}").at(path=self.folder)
            return _columns_and_ends(self._ends(range(count), self._index_nbytes))
        try:
            found = [*self._asked()] if math.prod(self._counts) <= _FEW else []
            found = found or sorted(self._found())  # none may be due to a folder that cannot be listed
        except FileError:
            raise
        except OSError as error:
            raise FileError(f"{self.folder}: cannot be listed: {error.strerror}").at(path=self.folder) from error
        return _columns(found), []

    def _asked(self) -> Iterator[tuple[int, int]]:
        """Yield number and size of the stored chunks of a small grid, without listing folders."""
        if isinstance(self.folder, Address):
            return
        for number in range(math.prod(self._counts)):
            with suppress(FileNotFoundError, NotADirectoryError):
                status = os.stat(self.path_of(number))
                if not stat.S_ISDIR(status.st_mode):
                    yield number, status.st_size

    def _found(self) -> Iterator[tuple[int, int]]:
        """Yield number and size of the stored chunks."""
        if isinstance(self.folder, Address):
            yield from self._found_remote(self.folder)
            return
        for key, entry in _files_in(self.folder, ""):
            if (number := self._number_of(key)) is not None:
                yield number, entry.stat().st_size

    def _found_remote(self, folder: Address) -> Iterator[tuple[int, int]]:
        """Yield the same of a remote folder."""
        for key, size in list_below(folder):
            if not key.rpartition("/")[2].startswith(".") and (number := self._number_of(key)) is not None:
                yield number, size

    def _number_of(self, key: str) -> int | None:
        """Return the number of the chunk with a key; None if it is not the key of a chunk of the grid."""
        index = tuple(map(int, _NUMBERS.findall(key)))
        if not self._counts:
            return 0 if key == self.key_of(()) else None
        if len(index) != len(self._counts) or self.key_of(index) != key:
            return None
        number = 0
        for at, count in zip(index, self._counts, strict=True):
            if at >= count:
                return None  # left behind when the array was made smaller
            number = number * count + at
        return number


def _columns_and_ends(ends: Mapping[int, Part | None]) -> tuple[Columns, list[Part]]:
    """Return numbers and sizes of those files that are there, and their last bytes."""
    found = {number: end for number, end in ends.items() if end is not None}
    return _columns((number, end.size) for number, end in found.items()), [*found.values()]


def _columns(rows: Iterable[tuple[int, int]]) -> Columns:
    table = np.array([*rows], np.int64).reshape(-1, 2)
    return table[:, 0].copy(), table[:, 1].copy()


def read_part(path: Path, nbytes: int, offset: int = 0) -> tuple[bytes, int]:
    """Return a number of bytes of a file, fewer only at its end, and the size of the file."""
    try:
        with opened(path) as handle:
            return read_at(handle, nbytes, offset), os.fstat(handle).st_size
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}").at(path=path) from error


def _files_in(folder: str | Path, prefix: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield the files in a folder and the folders in it, with their paths from the first."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                yield from _files_in(entry.path, f"{prefix}{entry.name}/")
            else:
                yield f"{prefix}{entry.name}", entry


class FolderSource:
    """Chunk files one after the other; see `tamis.arrays.source.ByteSource`. Files are opened when they are read."""

    def __init__(self, sizes: NDArray[np.int64], path_of: Callable[[int], Path]) -> None:
        self._ends = np.cumsum(sizes)
        self._path_of = path_of

    @property
    def nbytes(self) -> int:
        """Number of all bytes."""
        return int(self._ends[-1]) if len(self._ends) else 0

    def starts(self) -> NDArray[np.int64]:
        """Return the offset of each file."""
        return np.concatenate([np.zeros(1, np.int64), self._ends[:-1]]) if len(self._ends) else self._ends

    def read(self, offset: int, nbytes: int) -> bytes:
        """Return bytes of one file."""
        number = int(self._ends.searchsorted(offset, "right"))
        if not nbytes or number >= len(self._ends):
            return b""
        start = int(self._ends[number - 1]) if number else 0
        path = self._path_of(number)
        data, size = read_part(path, nbytes, offset - start)
        if size != int(self._ends[number]) - start:
            raise FileError(f"{path}: the file changed while it was read").at(path=path)
        return data

    def read_into(self, offset: int, room: memoryview) -> int:
        """Fill memory as `read` does, and return the count of bytes."""
        data = self.read(offset, len(room))
        room[: len(data)] = data
        return len(data)

    def read_many(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of several ranges of offset and size."""
        return [self.read(*span) for span in ranges]
