"""A copy of a Zarr store that gets more values and variables, which other stores have already, encoded and proven.

Chunk files of the copy are links to those of the store, except those that change.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast

import google_crc32c
import numpy as np
import zarr
from numpy.typing import NDArray

from tamis.access import NEW_FOLDER
from tamis.arrays.gather import intersection
from tamis.arrays.grid import Grid, Origin, Region
from tamis.errors import FileError, ParameterError
from tamis.formats.zarr.array_metadata import (
    Json,
    consolidate,
    consolidate_2,
    exact_json,
    json_attributes,
    write_json,
)
from tamis.formats.zarr.codec_choice import one_codec
from tamis.formats.zarr.masked import recorded
from tamis.formats.zarr.stored.array import ZarrArray
from tamis.formats.zarr.stored.store import ZarrStore
from tamis.pipeline import Pipeline
from tamis.safety.library_errors import disk_text
from tamis.stores.extension import Piece, filter_places, moved_mask
from tamis.stores.first_bytes import zarr_format_of

if TYPE_CHECKING:
    from tamis.stores.data_model import AttributeForm
    from tamis.stores.protocols import Store

_DOCUMENTS = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")
_ABSENT = (1 << 64) - 1
"""Offset and size of a chunk that a shard does not have."""

_OF_NETCDF_C = ("_nczarr_group", "_nczarr_superblock", "_NCZARR_GROUP", "_NCZARR_SUPERBLOCK")
"""What netCDF-C adds to the metadata of a store, with lengths of its dimensions."""


class ZarrExtension:
    """A Zarr store that is open for writing; see `tamis.stores.extension.Extension`."""

    def __init__(self, path: Path) -> None:
        self._path, self._version = path, zarr_format_of(path)
        self._grown: dict[str, tuple[tuple[int, ...], int, tuple[Piece, ...]]] = {}

    @classmethod
    def of_copy(cls, source: Path, copy: Path, mode: int) -> Self:
        """Make a folder with links to all files of a store, and open it."""
        try:
            _link_tree(source, copy, mode)
        except OSError as error:
            raise FileError(f"{copy}: cannot be written: {disk_text(error)}").at(path=copy) from error
        extension = cls(copy)
        extension._refuse_nczarr(source)
        return extension

    def _refuse_nczarr(self, source: Path) -> None:
        name = "zarr.json" if self._version == 3 else ".zgroup"
        root = self._read("/", name) | self._read("/", ".zattrs")
        if any(key in {**root, **root.get("attributes", {})} for key in _OF_NETCDF_C):
            raise FileError(
                f"{source}: netCDF-C wrote it, with the lengths of dimensions in metadata of its own, which tamis does"
                " not change: repack it to a new store first (tamis repack)"
            ).at(path=source)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: no file stays open."""

    def set_length(self, dimension: str, length: int) -> None:
        """Do nothing: Zarr has no dimensions but those of arrays."""

    def extend(self, path: str, shape: tuple[int, ...], axis: int, pieces: Sequence[Piece]) -> str:
        """Give an array a shape, and the values of pieces along an axis."""
        notes = ""
        name = "zarr.json" if self._version == 3 else ".zarray"
        document = self._read(path, name)
        if tuple(document["shape"]) != shape:
            self._write(path, name, document | {"shape": [*shape]})
        for piece in pieces:
            # Opened for each piece: an array knows its files as they were when it was first asked.
            with self._opened(path, piece) as (array, source):
                is_lossy = array.filters is not None and array.storage.pipeline.error_bound != 0
                if not is_lossy or _moved(array, source) is not None:
                    self._put(array, source, axis, piece.start)
                    continue
                self._give_masks(array, source)
                notes = (
                    f"its codecs are now tamis.pipeline instead of {array.codec_text}, because a new chunk is"
                    " stored without loss: readers need zarr-python with tamis"
                )
            with self._opened(path, piece) as (array, source):  # with its new codecs
                self._put(array, source, axis, piece.start)
        return notes

    @contextmanager
    def _opened(self, path: str, piece: Piece) -> Iterator[tuple[ZarrArray, ZarrArray]]:
        """Open an array, and the one that a piece is of."""
        with ZarrStore(os.fspath(self._path)) as store, ZarrStore(os.fspath(piece.path)) as other:
            yield cast("ZarrArray", store.array(path)), cast("ZarrArray", other.array(piece.array))

    def _give_masks(self, array: ZarrArray, piece: ZarrArray) -> None:
        """Write other metadata of an array: with the codec that has filter masks, for which its chunks may stay.

        Raises
        ------
        ParameterError
            If its chunks have what that codec does not read, as headers of zfpy.
        """
        before, pipeline = _of(array.storage.pipeline), _with_filters_of(piece, array)
        places = filter_places(before, pipeline)
        usual = 0 if places is None else moved_mask(0, places, len(pipeline.filters))
        codecs = one_codec(recorded(pipeline, array.storage.chunk), array.storage.chunk, usual)
        if any(config.get("id") == "zfpy" for config in array.chunk_codecs):
            raise ParameterError(
                f"{array.path}: its codecs, {array.codec_text}, cannot hold a chunk without loss, as values with gaps"
                " and partial chunks need: repack the store to Zarr 3 first, whose codecs can,"
                " tamis.repack(store, new, {}, zarr_format=3)"
            ).at(dataset=array.path)
        if places is None or (self._version == 3 and codecs.version_3 is None):
            raise ParameterError(
                f"{array.path}: its codecs, {array.codec_text}, cannot hold a chunk without loss, as values with gaps"
                " and partial chunks need: write its values and the new ones to a new store, mode='w'"
            ).at(dataset=array.path)
        if self._version == 2:
            document = self._read(array.path, ".zarray")
            self._write(array.path, ".zarray", document | {"filters": None, "compressor": codecs.version_2[0]})
            return
        document, new = self._read(array.path, "zarr.json"), [*(codecs.version_3 or ())]
        first = document["codecs"][0]
        if first["name"] == "sharding_indexed":
            new = [first | {"configuration": first["configuration"] | {"codecs": new}}]
        self._write(array.path, "zarr.json", document | {"codecs": new})

    def set_attributes(
        self, path: str, attributes: Mapping[str, Any], forms: Mapping[str, AttributeForm] | None = None
    ) -> None:
        """Set attributes of a group or an array."""
        values = json_attributes(path, attributes, forms or {})
        if self._version == 2:
            self._write(path, ".zattrs", self._read(path, ".zattrs") | values)
            return
        document = self._read(path, "zarr.json")
        self._write(path, "zarr.json", document | {"attributes": {**document.get("attributes", {}), **values}})

    def add(self, new: Path, group_attributes: Mapping[str, Mapping[str, Any]]) -> None:
        """Link the arrays of another store here, with the groups that they need."""
        del group_attributes  # which the groups of the other store have
        for place, is_array in _nodes(new):
            target = self._path / place
            if is_array and target.exists():
                if not _is_array(target):
                    raise FileError(f"/{place}: the store has a group of this name: choose another name").at(
                        dataset=f"/{place}"
                    )
            elif is_array:
                _link_tree(new / place, target, NEW_FOLDER)
            elif not _has_documents(target):
                target.mkdir(parents=True, exist_ok=True)
                for name in _DOCUMENTS:
                    if (new / place / name).is_file():
                        shutil.copyfile(new / place / name, target / name)

    def finish(self) -> None:
        """Write the metadata of all arrays and groups into the root's, if the store had them there."""
        nodes = [place for place, _ in _nodes(self._path)]
        if self._version == 2:
            if (self._path / ".zmetadata").is_file():
                documents = {
                    f"{place}/{name}".strip("/"): self._read(place, name)
                    for place in nodes
                    for name in (".zarray", ".zgroup", ".zattrs")
                    if (self._path / place / name).is_file()
                }
                consolidate_2(self._path, documents)
            return
        if self._read("/", "zarr.json").get("consolidated_metadata"):
            content = {f"/{place}".rstrip("/") or "/": self._read(place, "zarr.json") for place in nodes}
            for document in content.values():
                document.pop("consolidated_metadata", None)
            consolidate(self._path, content, ())

    def check_kept(self, before: Store, after: Store, rewritten: Mapping[str, tuple[int, int]]) -> None:
        """Do nothing: files that are not new are those that the store had."""

    def _read(self, path: str, name: str) -> Json:
        place = self._path / path.strip("/") / name
        return cast("Json", exact_json(place.read_bytes())) if place.is_file() else {}

    def _write(self, path: str, name: str, content: Json) -> None:
        write_json(self._path / path.strip("/") / name, content)

    def _put(self, array: ZarrArray, piece: ZarrArray, axis: int, start: int) -> None:
        """Give an array the values of another one: its chunks, if they are the same in both, or its values."""
        moved = _moved(array, piece)
        if moved is not None:
            _put_chunks(array, piece, axis, start, moved)
            return
        _put_values(self._path, array, piece, axis, start)


def _link_tree(source: Path, copy: Path, mode: int) -> None:
    """Make a folder with the same files as another one: links where that is possible, copies of metadata."""
    os.mkdir(copy, mode)
    with os.scandir(source) as entries:
        for entry in entries:
            target = copy / entry.name
            if entry.is_dir():  # also one behind a symbolic link, through which the store itself would be changed
                _link_tree(Path(entry.path), target, mode)
            elif entry.name in _DOCUMENTS:
                shutil.copyfile(entry.path, target)
            else:
                try:
                    os.link(os.path.realpath(entry.path), target)
                except OSError:  # a file system without links
                    shutil.copyfile(entry.path, target)


def _nodes(root: Path) -> Iterator[tuple[str, bool]]:
    """Yield the places of all groups and arrays, and whether each is an array; what is in an array is not looked at."""
    for folder, folders, _ in os.walk(root):
        place = Path(folder)
        if _is_array(place):
            folders.clear()
        if _has_documents(place):
            name = place.relative_to(root).as_posix()
            yield "" if name == "." else name, _is_array(place)


def _has_documents(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("zarr.json", ".zarray", ".zgroup"))


def _is_array(folder: Path) -> bool:
    if (folder / "zarr.json").is_file():
        return bool(exact_json((folder / "zarr.json").read_bytes()).get("node_type") == "array")
    return (folder / ".zarray").is_file()


_Stored = Callable[[Origin], bytes]
"""Returns the bytes of a chunk for its new array, by its origin."""


def _moved(array: ZarrArray, piece: ZarrArray) -> _Stored | None:
    """Return what gives the chunks of an array the form that they have in another one; None if they cannot have it."""
    if array.filters is None or piece.filters is None or not (array.can_read_chunks and piece.can_read_chunks):
        return None
    if array.storage.chunk_shape != piece.storage.chunk_shape or array.storage.chunk.dtype != piece.storage.chunk.dtype:
        return None
    marked = array.filters.marked
    if marked is None:
        index, source = piece.chunk_index(), piece._files.source

        def as_it_is(origin: Origin) -> bytes:
            position = index.position_of(origin)
            return source.read(int(index.offsets[position]), int(index.sizes[position]))

        has_marks = piece.filters.marked is not None
        return as_it_is if not has_marks and [*array.chunk_codecs] == [*piece.chunk_codecs] else None
    chunks, count = piece.open_chunks(), len(marked.pipeline.stages)
    if (places := filter_places(piece.storage.pipeline, _of(marked.pipeline))) is None:
        return None

    def with_mark(origin: Origin) -> bytes:
        data, mask = chunks.stored(origin)
        return marked.marked(data, moved_mask(mask, places, count))

    return with_mark


def _of(pipeline: Pipeline) -> Pipeline:
    return Pipeline(stage.filter for stage in pipeline.stages)


def _with_filters_of(piece: ZarrArray, array: ZarrArray) -> Pipeline:
    """Return the lossy filters of an array before lossless ones: those of a piece if they include its own."""
    lossy = [item for item in array.storage.pipeline.filters if item.error_bound != 0]
    own, new = (
        Pipeline(item for item in each.storage.pipeline.filters if item.error_bound == 0) for each in (array, piece)
    )
    return Pipeline((*lossy, *(own if filter_places(own, new) is None else new).filters))


def _put_chunks(array: ZarrArray, piece: ZarrArray, axis: int, start: int, moved: _Stored) -> None:
    """Write the chunks of an array into another one, further along an axis."""
    grid, index = piece.grid, piece.chunk_index()
    by_file: dict[int, dict[int, bytes | None]] = {}
    files = array._files
    for number in range(grid.chunk_count):
        origin = grid.origin_of(number)
        place = tuple(n + start * (own == axis) for own, n in enumerate(origin))
        chunks = by_file.setdefault(files.grid.number_of(_aligned(place, files.grid.chunk_shape)), {})
        chunks[array.grid.number_of(place)] = moved(origin) if origin in index else None
    if array._shard_form is None:
        for number, own in by_file.items():
            _replace(cast("Path", files.path_of(number)), next(iter(own.values())))
        return
    numbers, starts, sizes = files.places()
    known = dict(zip(numbers.tolist(), zip(starts.tolist(), sizes.tolist(), strict=True), strict=True))
    # All is read before anything is written: the places are those of the files as they were.
    shards = {number: _shard(array, number, own, known) for number, own in by_file.items()}
    for number, data in shards.items():
        _replace(cast("Path", files.path_of(number)), data)


def _aligned(place: tuple[int, ...], steps: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n // step * step for n, step in zip(place, steps, strict=True))


def _shard(
    array: ZarrArray, number: int, new: Mapping[int, bytes | None], known: Mapping[int, tuple[int, int]]
) -> bytes | None:
    """Return the bytes of a shard with new chunks beside those that it has; None if it has none."""
    form, files, grid = array._shard_form, array._files, array.grid
    assert form is not None
    counts = tuple(step // inner for step, inner in zip(files.grid.chunk_shape, grid.chunk_shape, strict=True))
    first = np.array(files.grid.origin_of(number)) // grid.chunk_shape
    entries = np.full((math.prod(counts), 2), _ABSENT, "<u8")
    parts: list[bytes] = []
    begin = 0 if form.at_end else form.index_nbytes(len(entries))
    for at in range(len(entries)):
        index = first + np.unravel_index(at, counts)
        if (index >= grid.counts).any():
            continue
        chunk = int(np.ravel_multi_index(tuple(index), grid.counts))
        data = new[chunk] if chunk in new else files.source.read(*known[chunk]) if chunk in known else None
        if data is not None:
            entries[at] = begin, len(data)
            begin += len(data)
            parts.append(data)
    if not parts:
        return None
    data = entries.tobytes()
    if form.has_checksum:
        data += int(google_crc32c.value(data)).to_bytes(4, "little")
    return b"".join([*parts, data] if form.at_end else [data, *parts])


def _replace(path: Path, data: bytes | None) -> None:
    """Write a file in place of a link to one of the store, which must not change; remove it for no content."""
    try:
        path.unlink(missing_ok=True)
        if data is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {disk_text(error)}").at(path=path) from error


def _put_values(root: Path, array: ZarrArray, piece: ZarrArray, axis: int, start: int) -> None:
    """Let zarr-python write the values of an array into another one, further along an axis."""
    target = zarr.open_array(
        os.fspath(root / array.path.strip("/")), mode="r+", zarr_format=cast("Literal[2, 3]", zarr_format_of(root))
    )
    region = tuple(
        slice(start, start + extent) if number == axis else slice(0, extent)
        for number, extent in enumerate(piece.shape)
    )
    with closing(piece.open_reader()) as reader:
        if not region:
            _detach(root / array.path.strip("/") / target.metadata.encode_chunk_key(()))
            target[...] = _as(target.dtype, reader.read(()))
            return
        files = Grid(tuple(array.shape), tuple(target.shards or target.chunks))
        for number in _touching(files, region):
            place = intersection(files.region_of(number), region)
            index = tuple(map(int, np.unravel_index(number, files.counts)))
            _detach(root / array.path.strip("/") / target.metadata.encode_chunk_key(index))
            part = tuple(
                slice(own.start - start, own.stop - start) if number == axis else own
                for number, own in enumerate(place)
            )
            target[place] = _as(target.dtype, reader.read(part))


def _touching(files: Grid, region: Region) -> Iterator[int]:
    """Yield the numbers of the files with parts of a region."""
    axes = [range(own.start // step, -(-own.stop // step)) for own, step in zip(region, files.chunk_shape, strict=True)]
    for index in np.ndindex(*map(len, axes)):
        yield int(np.ravel_multi_index([axis[at] for axis, at in zip(axes, index, strict=True)], files.counts))


def _as(dtype: np.dtype[Any], values: NDArray[Any]) -> NDArray[Any]:
    """Return values in the type that zarr-python has for an array."""
    return values.view(dtype) if values.dtype.kind == "V" else values.astype(dtype, copy=False)


def _detach(path: Path) -> None:
    """Put a copy in the place of a link, so that writing does not change the file of the store."""
    if path.is_file():
        _replace(path, path.read_bytes())
