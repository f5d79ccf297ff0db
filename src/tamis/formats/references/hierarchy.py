"""Arrays of references to the chunks of one file, or of several files joined along a dimension, in groups."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

import numcodecs
import numpy as np
from numpy.typing import NDArray

from tamis.arrays.gather import several_chunks, whole
from tamis.arrays.grid import Grid
from tamis.arrays.index import Parts
from tamis.errors import FileError, ParameterError, TamisError, located
from tamis.filters import ChunkType
from tamis.formats.zarr.array_metadata import Described, fill_note
from tamis.formats.zarr.codec_choice import Codecs, choose_codecs
from tamis.formats.zarr.masked import MASK_MARK
from tamis.formatting import absent_text, printable, with_article
from tamis.notation.zarr import version_3
from tamis.stores.facts import ELSEWHERE, ArrayFacts, array_nbytes, fill_as, size_of
from tamis.stores.protocols import StoredArray
from tamis.stores.translation import translations

if TYPE_CHECKING:
    from tamis.stores.data_model import DataModel, NamedArray
    from tamis.stores.protocols import Store


Index = tuple[int, ...]
"""Position of a chunk in the grid of chunks."""

_MOST_INLINED_NBYTES = 1 << 20
"""Limit of an array whose values are copied, because they have no place in the file of their own."""

_MOST_PIECE_NBYTES = 16 << 20
"""Limit of a piece of an array that is stored in one run."""


class Reference(NamedTuple):
    """The place of a chunk: the address of a file, and the offset and size in it."""

    url: str
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class ReferencedArray(Described):
    """A Zarr array whose chunks are bytes of other files."""

    chunks: Mapping[Index, Reference]
    inlined: Mapping[Index, bytes]  # Bytes of chunks that references cannot express, by index
    read: Callable[[], NDArray[Any]]  # Returns all values as stored

    @property
    def nbytes(self) -> int:
        """Bytes of all values."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def absent(self) -> int:
        """Number of chunks that are not stored."""
        steps = zip(self.shape, self.chunk_shape, strict=True)
        return math.prod(-(-extent // step) for extent, step in steps) - len(self.chunks) - len(self.inlined)


def reference(array: StoredArray, named: NamedArray, path: str, url: str) -> ReferencedArray:
    """Return an array of a file as an array of references."""
    if array.type.dtype is None or array.type.varies:
        raise _refusal(array, f"values of a fixed size, found {array.type.text}")
    if array.storage.layout in ELSEWHERE:
        absent = f", whose {absent_text(array.elsewhere.absent_files)}" if array.elsewhere.absent_files else ""
        raise _refusal(
            array, f"values in this file, found those of {with_article(array.storage.layout)} dataset{absent}"
        )
    if named.shape != tuple(array.shape):
        raise _refusal(array, f"as many values as its dimensions have, {named.shape}, found {array.shape}")
    values = array.as_values()
    if values is not array and not _same_bytes(array, values):
        array, dtype = values, values.type.values or values.storage.chunk.dtype
        stored = _copied(array, dtype)
    else:
        dtype = array.storage.chunk.dtype
        stored = _chunked(array, url) if array.storage.chunk_shape else _in_one_run(array, dtype, url)

    def read() -> NDArray[Any]:
        with closing(array.open_reader()) as reader:
            values = reader.read(whole(array.shape))
        return values if values.dtype == dtype else values.view(dtype)

    codecs, chunk_shape, chunks, inlined = stored
    return ReferencedArray(
        path=path,
        shape=tuple(array.shape),
        chunk_shape=chunk_shape,
        dtype=dtype,
        fill_value=fill_as(array.fill, dtype),
        dimensions=named.dimensions,
        attributes=named.attributes,
        codecs=codecs,
        chunks=chunks,
        inlined=inlined,
        read=read,
    )


_Stored = tuple[Codecs, tuple[int, ...], dict[Index, Reference], dict[Index, bytes]]


def _chunked(array: StoredArray, url: str) -> _Stored:
    shape = array.storage.chunk_shape or ()
    chunks: dict[Index, Reference] = {}
    inlined: dict[Index, bytes] = {}
    if not array.can_read_chunks:
        raise _refusal(array, f"chunks that tamis can decode, found filters {array.storage.pipeline}")
    with closing(array.open_chunks()) as reader:
        records = list(reader.true_records())
        with located(array.label, dataset=array.path):
            codecs = choose_codecs(
                array.storage.pipeline, filled_chunk(array), Counter(record.mask for _, record in records)
            )
        for origin, record in records:
            key = tuple(start // step for start, step in zip(origin, shape, strict=True))
            masked = codecs.masked
            if (complete := reader.completed(origin)) is not None:
                inlined[key] = complete if masked is None else masked.marked(complete, record.mask)
            elif masked is None or not masked.needs_mark(reader.stored_head(origin, len(MASK_MARK)), record.mask):
                chunks[key] = Reference(url, record.offset, record.nbytes)
            else:
                inlined[key] = masked.marked(reader.stored(origin)[0], record.mask)
    return codecs, tuple(shape), chunks, inlined


def filled_chunk(array: ArrayFacts) -> ChunkType:
    """Return type and shape of the chunks, with the fill value, which some filters set apart."""
    fill = fill_as(array.fill, array.storage.chunk.dtype).tobytes()
    return ChunkType(array.storage.chunk.dtype, array.storage.chunk.shape, fill if any(fill) else b"")


def _in_one_run(array: StoredArray, dtype: np.dtype[Any], url: str) -> _Stored:
    """Return pieces of values that are not in chunks: references if they are contiguous, otherwise the values."""
    shape = tuple(array.shape)
    codecs = Codecs((), tuple(version_3((), dtype)))
    offset = array.contiguous_offset if size_of(array) else None
    if not size_of(array) or not array.stored_nbytes:
        return codecs, tuple(max(extent, 1) for extent in shape), {}, {}
    if offset is None:
        return _copied(array, dtype)
    if not shape:
        return codecs, (), {(): Reference(url, offset, dtype.itemsize)}, {}
    rows = _rows_of_pieces(shape, dtype.itemsize)
    nbytes = array_nbytes(array) // shape[0] * rows
    pieces = {
        (i, *(0,) * (len(shape) - 1)): Reference(url, offset + i * nbytes, nbytes) for i in range(shape[0] // rows)
    }
    return codecs, (rows, *shape[1:]), pieces, {}


def _copied(array: StoredArray, dtype: np.dtype[Any]) -> _Stored:
    """Return all values as one copied chunk."""
    shape = tuple(array.shape)
    if array_nbytes(array) > _MOST_INLINED_NBYTES:
        raise _refusal(
            array,
            f"values that are bytes of a file, in chunks or in one run, found {array_nbytes(array)} bytes of"
            f" {array.type.text} in a {array.storage.layout} dataset",
        )
    with closing(array.open_reader()) as reader:
        values = reader.read(whole(shape))
    codecs = Codecs((), tuple(version_3((), dtype)))
    chunk_shape = tuple(max(extent, 1) for extent in shape)
    inlined = {(0,) * len(shape): np.ascontiguousarray(values).tobytes()} if size_of(array) else {}
    return codecs, chunk_shape, {}, inlined


def _same_bytes(array: StoredArray, values: StoredArray) -> bool:
    """Return whether readers get the bytes of all values as they are in the file."""
    if array.type.dtype != values.type.dtype:
        return False
    steps = several_chunks(array.shape, array.storage.chunk_shape or (1,) * len(array.shape), _MOST_INLINED_NBYTES)
    with closing(array.open_reader()) as stored, closing(values.open_reader()) as converted:
        parts = Parts(Grid(array.shape, steps)) if size_of(array) else ()
        return all(stored.read(part).tobytes() == converted.read(part).tobytes() for part in parts)


def _rows_of_pieces(shape: tuple[int, ...], itemsize: int) -> int:
    """Return the largest divisor of the first extent that gives pieces of a moderate size; Zarr's have equal sizes."""
    most = max(_MOST_PIECE_NBYTES // max(math.prod(shape[1:]) * itemsize, 1), 1)
    return max(rows for rows in range(1, shape[0] + 1) if shape[0] % rows == 0 and rows <= most)


def _refusal(array: ArrayFacts, text: str) -> FileError:
    return FileError(f"{array.label}: expected {text}: leave it out, or repack the file first").at(dataset=array.path)


def check_codecs(referenced: ReferencedArray, array: StoredArray) -> None:
    """Raise FileError if the codecs of an array decode a referenced or inlined chunk differently than tamis."""
    if array.storage.chunk_shape is None or not referenced.codecs.version_2:
        return
    codecs = [numcodecs.get_codec(config) for config in referenced.codecs.version_2]
    with closing(array.open_chunks()) as reader:
        for index in _samples(referenced):
            origin = tuple(i * step for i, step in zip(index, referenced.chunk_shape, strict=True))
            data = referenced.inlined[index] if index in referenced.inlined else reader.stored(origin)[0]
            try:
                for codec in reversed(codecs):
                    data = codec.decode(data)
                decoded = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
            except Exception as error:  # codecs of other packages raise many kinds
                raise _failure(array, origin, str(error)) from error
            expected = np.frombuffer(np.ascontiguousarray(reader.values(origin)).tobytes(), np.uint8)
            if not np.array_equal(decoded, expected):
                raise _failure(array, origin, f"the codecs {referenced.codecs.version_2} give other values")


def _samples(referenced: ReferencedArray) -> list[Index]:
    """Return the first and last referenced chunk, and the first inlined one, if they exist."""
    places, copies = list(referenced.chunks), list(referenced.inlined)
    return list(dict.fromkeys([*places[:1], *places[-1:], *copies[:1]]))


def _failure(array: ArrayFacts, origin: Index, reason: str) -> FileError:
    return FileError(
        f"{array.label}: Zarr's codecs do not decode the chunk at {origin}: {reason}: leave the dataset "
        "out, or repack it with other filters"
    ).at(dataset=array.path, chunk=origin)


_MOST_COPIED_NBYTES = 1 << 20
"""Limit of an array along the joined dimension whose values are copied if its chunks do not fit together."""


@dataclass(frozen=True, slots=True)
class References:
    """A Zarr hierarchy of references."""

    label: str  # Name of the file, or of several
    groups: Mapping[str, Mapping[str, Any]]  # Attributes by path, ``/`` first
    arrays: Mapping[str, ReferencedArray]
    notes: tuple[str, ...] = ()  # What is left out

    def notes_in(self, zarr_format: int) -> tuple[str, ...]:
        """Return what is left out, also fill values that this version of Zarr cannot have for xarray."""
        if zarr_format == 2:
            return self.notes
        found = ((path, fill_note(array.attributes, array.dtype)) for path, array in self.arrays.items())
        return (*self.notes, *(printable(f"{path}: {note}") for path, note in found if note))


def references_of(store: Store, model: DataModel, url: str, drop: Collection[str] = ()) -> References:
    """Return references to all arrays of a file, each checked to be decoded by its codecs."""
    groups: dict[str, Mapping[str, Any]] = {}
    arrays: dict[str, ReferencedArray] = {}
    problems: list[TamisError] = []
    notes = [item.as_plan() for item in translations(store, to_zarr=True) if not _matches(item.path, drop)]
    for group_path in model.group_paths():
        group = model.group(group_path)
        groups[group_path] = group.attributes
        prefix = group_path.rstrip("/")
        for name, reason in group.left_out.items():
            if not _matches(f"{prefix}/{name}", drop):
                problems.append(FileError(f"{store.path}: {prefix}/{name}: {reason}").at(dataset=f"{prefix}/{name}"))
        for name, named in group.variables.items():
            path = f"{prefix}/{name}"
            if _matches(path, drop):
                continue
            try:
                arrays[path] = reference(store.array(named.path), named, path, url)
                check_codecs(arrays[path], store.array(named.path))
            except TamisError as error:
                problems.append(error)
    if problems:
        raise _problem(store.path, problems)
    return References(store.path, groups, arrays, tuple(notes))


def _matches(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(path, pattern if pattern.startswith("/") else f"/{pattern}") for pattern in patterns)


def _problem(label: str, problems: Sequence[TamisError]) -> TamisError:
    if len(problems) == 1:
        return problems[0]
    lines = sorted(printable(str(problem).removeprefix(f"{label}: ")) for problem in problems)
    return FileError("\n  ".join((f"{label}: {len(lines)} arrays cannot be referenced:", *lines))).at(path=label)


def joined(parts: Sequence[References], dimension: str) -> References:
    """Return one hierarchy of several files joined along a dimension.

    Arrays without this dimension, and attributes of groups, are those of the first file.
    """
    first = parts[0]
    if not any(dimension in array.dimensions for array in first.arrays.values()):
        known = sorted({name for array in first.arrays.values() for name in array.dimensions})
        raise ParameterError(f"expected a dimension of {first.label}, one of {', '.join(known)}, got {dimension!r}")
    for part in parts[1:]:
        if part.arrays.keys() != first.arrays.keys():
            name = min(part.arrays.keys() ^ first.arrays.keys())
            raise FileError(
                f"{part.label}: must have the same arrays as {first.label}, but only one of them has {name}"
            )
    arrays = {path: _joined_array([part.arrays[path] for part in parts], parts, dimension) for path in first.arrays}
    notes = dict.fromkeys(note for part in parts for note in part.notes)
    return References(f"{first.label} and {len(parts) - 1} others", first.groups, arrays, tuple(notes))


def _joined_array(arrays: list[ReferencedArray], parts: Sequence[References], dimension: str) -> ReferencedArray:
    first = arrays[0]
    along = dimension in first.dimensions
    for array, part in zip(arrays[1:], parts[1:], strict=True):
        if difference := _difference(first, array, dimension if along else None):
            raise FileError(f"{part.label}: {array.path}: must have the same {difference} as in {parts[0].label}").at(
                dataset=array.path
            )
        if not along and not _equal(first.read(), array.read()):
            raise FileError(
                f"{part.label}: {array.path}: has no dimension {dimension}, and other values than in "
                f"{parts[0].label}: leave it out"
            ).at(dataset=array.path)
    if not along:
        return first
    axis = first.dimensions.index(dimension)
    shape = tuple(sum(array.shape[axis] for array in arrays) if i == axis else n for i, n in enumerate(first.shape))
    if _fit(arrays, axis):
        return _chained(arrays, axis, shape)
    if sum(array.nbytes for array in arrays) <= _MOST_COPIED_NBYTES:
        values = np.ascontiguousarray(np.concatenate([array.read() for array in arrays], axis))
        in_version_3: tuple[dict[str, Any], ...] | None = None
        if first.codecs.version_3 is not None:
            in_version_3 = ({"name": "bytes", "configuration": {"endian": _order(first)}},)
        codecs = Codecs((), in_version_3)
        inlined = {(0,) * len(shape): values.tobytes()}
        return replace(first, shape=shape, chunk_shape=shape, codecs=codecs, chunks={}, inlined=inlined)
    wrong = next(
        i
        for i, array in enumerate(arrays)
        if array.shape[axis] % array.chunk_shape[axis] or not _fit(arrays[: i + 1], axis)
    )
    raise FileError(
        f"{parts[wrong].label}: {first.path}: expected chunks of {first.chunk_shape} that fill {arrays[wrong].shape}"
        f" along {dimension}, and the same filters in all files: repack the files with other chunks (tamis repack -c)"
    ).at(dataset=first.path)


def _order(array: ReferencedArray) -> str:
    """Return the byte order of the values, as Zarr calls it."""
    return "little" if array.dtype.newbyteorder("<") == array.dtype else "big"


def _difference(first: ReferencedArray, other: ReferencedArray, dimension: str | None) -> str:
    """Return a property in which two arrays must not differ but do; empty if there is none."""
    if first.dimensions != other.dimensions:
        return "dimensions"
    if first.dtype != other.dtype:
        return "type"
    if any(a != b for a, b, name in zip(first.shape, other.shape, first.dimensions, strict=True) if name != dimension):
        return "shape"
    for name in ("units", "calendar", "scale_factor", "add_offset", "_FillValue", "missing_value"):
        ours, theirs = first.attributes.get(name), other.attributes.get(name)
        if ours is None and theirs is None:
            continue
        if ours is None or theirs is None or not _equal(np.asarray(ours), np.asarray(theirs)):
            return f"attribute {name}"
    return ""


def _equal(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> bool:
    """Return whether arrays are equal bit by bit."""
    return ours.shape == theirs.shape and ours.dtype == theirs.dtype and ours.tobytes() == theirs.tobytes()


def _fit(arrays: Sequence[ReferencedArray], axis: int) -> bool:
    """Return whether arrays have the same chunks and codecs, and all but the last one end with a whole chunk."""
    first = arrays[0]
    same = all(array.chunk_shape == first.chunk_shape and array.codecs == first.codecs for array in arrays)
    return same and all(array.shape[axis] % first.chunk_shape[axis] == 0 for array in arrays[:-1])


def _chained(arrays: Sequence[ReferencedArray], axis: int, shape: tuple[int, ...]) -> ReferencedArray:
    """Return an array of a shape with the chunks of arrays one after the other along an axis."""
    first = arrays[0]
    chunks: dict[Index, Reference] = {}
    inlined: dict[Index, bytes] = {}
    before = 0  # Chunks along the axis that earlier arrays have
    for array in arrays:
        chunks |= {_moved(index, axis, before): place for index, place in array.chunks.items()}
        inlined |= {_moved(index, axis, before): data for index, data in array.inlined.items()}
        before += array.shape[axis] // first.chunk_shape[axis]
    return replace(first, shape=shape, chunks=chunks, inlined=inlined)


def _moved(index: Index, axis: int, count: int) -> Index:
    """Return the position of a chunk this many chunks further along an axis."""
    return (*index[:axis], index[axis] + count, *index[axis + 1 :])
