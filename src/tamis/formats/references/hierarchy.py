"""Groups and arrays of references: of one file, or of several files joined along a dimension."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numcodecs
import numpy as np

from tamis.errors import FileError, ParameterError, TamisError
from tamis.formats.references.referenced_array import Index, Reference, ReferencedArray, reference
from tamis.formats.zarr.codec_choice import Codecs
from tamis.formatting import printable

if TYPE_CHECKING:
    from tamis.stores.data_model import DataModel
    from tamis.stores.protocols import Store, StoredArray


def check_codecs(referenced: ReferencedArray, array: StoredArray) -> None:
    """Raise FileError if the codecs of an array decode a referenced or inlined chunk differently than tamis."""
    if array.chunk_shape is None or not referenced.codecs.version_2:
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


def _failure(array: StoredArray, origin: Index, reason: str) -> FileError:
    return FileError(
        f"{array.label}: expected Zarr's codecs to decode the chunk at {origin}, but {reason}: leave the dataset out,"
        " or repack it with other filters"
    ).at(dataset=array.path, chunk=origin)


_MOST_COPIED_NBYTES = 1 << 20
"""Limit of an array along the joined dimension whose values are copied if its chunks do not fit together."""


@dataclass(frozen=True, slots=True)
class References:
    """A Zarr hierarchy of references."""

    label: str  # Name of the file, or of several
    groups: Mapping[str, Mapping[str, Any]]  # Attributes by path, ``/`` first
    arrays: Mapping[str, ReferencedArray]

    @property
    def chunk_count(self) -> int:
        """Number of chunks that are referenced."""
        return sum(len(array.chunks) for array in self.arrays.values())


def references_of(store: Store, model: DataModel, url: str, drop: Collection[str] = ()) -> References:
    """Return references to all arrays of a file, each checked to be decoded by its codecs."""
    groups: dict[str, Mapping[str, Any]] = {}
    arrays: dict[str, ReferencedArray] = {}
    problems: list[TamisError] = []
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
    return References(store.path, groups, arrays)


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
            raise FileError(f"{part.label}: expected the arrays of {first.label}, but only one of them has {name}")
    arrays = {path: _joined_array([part.arrays[path] for part in parts], parts, dimension) for path in first.arrays}
    return References(f"{first.label} and {len(parts) - 1} others", first.groups, arrays)


def _joined_array(arrays: list[ReferencedArray], parts: Sequence[References], dimension: str) -> ReferencedArray:
    first = arrays[0]
    along = dimension in first.dimensions
    for array, part in zip(arrays[1:], parts[1:], strict=True):
        if difference := _difference(first, array, dimension if along else None):
            raise FileError(f"{part.label}: {array.path}: expected the {difference} of {parts[0].label}").at(
                dataset=array.path
            )
        if not along and not _equal(first.read(), array.read()):
            raise FileError(
                f"{part.label}: {array.path}: expected the values of {parts[0].label}, because it has no dimension"
                f" {dimension}: leave it out"
            ).at(dataset=array.path)
    if not along:
        return first
    axis = first.dimensions.index(dimension)
    shape = tuple(sum(array.shape[axis] for array in arrays) if i == axis else n for i, n in enumerate(first.shape))
    if _fit(arrays, axis):
        return _chained(arrays, axis, shape)
    if sum(array.nbytes for array in arrays) <= _MOST_COPIED_NBYTES:
        values = np.ascontiguousarray(np.concatenate([array.read() for array in arrays], axis))
        codecs = Codecs((), first.codecs.version_3 and ({"name": "bytes", "configuration": {"endian": _order(first)}},))
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
        if (ours is None) != (theirs is None) or (
            ours is not None and not _equal(np.asarray(ours), np.asarray(theirs))
        ):
            return f"attribute {name}"
    return ""


def _equal(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> bool:
    """Return whether arrays are equal bit by bit."""
    return ours.shape == theirs.shape and ours.dtype == theirs.dtype and ours.tobytes() == theirs.tobytes()


def _fit(arrays: Sequence[ReferencedArray], axis: int) -> bool:
    first = arrays[0]
    same = all(array.chunk_shape == first.chunk_shape and array.codecs == first.codecs for array in arrays)
    return same and all(array.shape[axis] % first.chunk_shape[axis] == 0 for array in arrays[:-1])


def _chained(arrays: Sequence[ReferencedArray], axis: int, shape: tuple[int, ...]) -> ReferencedArray:
    first, before = arrays[0], 0
    chunks: dict[Index, Reference] = {}
    inlined: dict[Index, bytes] = {}

    for array in arrays:

        def moved(index: Index, by: int = before) -> Index:
            return tuple(n + by if i == axis else n for i, n in enumerate(index))

        chunks |= {moved(index): place for index, place in array.chunks.items()}
        inlined |= {moved(index): data for index, data in array.inlined.items()}
        before += array.shape[axis] // first.chunk_shape[axis]
    return replace(first, shape=shape, chunks=chunks, inlined=inlined)
