"""Elements of attributes and datasets of any type, references by their targets, compared and shown to people."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from copy import copy
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from h5py import h5d, h5g, h5i, h5o, h5s, h5t
from numpy.typing import NDArray

from tamis.arrays.grid import Region, shape_of
from tamis.arrays.index import ChunkIndex, as_array
from tamis.errors import FileError, located
from tamis.formats.hdf5.lib.datatypes import memory_type
from tamis.formats.hdf5.lib.files import filename_of, is_plain, source_of
from tamis.formats.hdf5.lib.references import Place, has_references, sequence_at, values_in_memory
from tamis.formats.hdf5.library_reader import read_bytes, selected
from tamis.formats.hdf5.tree.scope import info_at, scope_of
from tamis.formatting import shortened
from tamis.safety.library_errors import pass_interrupt, reading
from tamis.stores.comparison import BlockDifference, unequal_elements
from tamis.stores.facts import size_of

if TYPE_CHECKING:
    from tamis.arrays.reader import ArrayReader
    from tamis.arrays.source import ByteSource
    from tamis.formats.hdf5.stored_array import Hdf5Array
    from tamis.formats.hdf5.tree.walk import Contents
    from tamis.stores.protocols import Unequal


_LARGEST_MASK = 1 << 24
"""Largest box, in elements, around a selection that is examined element by element."""


class ObjectPaths:
    """The objects of a file by address, so that references can be compared by the paths of their targets."""

    def __init__(
        self, file: h5py.File, contents: Contents, like: Contents | None = None, left_out: frozenset[int] = frozenset()
    ) -> None:
        self.companions: dict[str, str] = {}
        self._left_out = left_out
        # References to whole objects → their targets in words.
        self._texts: dict[bytes, TargetText] = {}
        self._others: dict[int, ObjectPaths] = {}  # Those for references in each file that was taken in
        self.root, self.scope = h5g.open(file.id, b"/"), scope_of(file)
        addresses = {path: address for address, path in contents.places.items()}
        self._paths: dict[int, str] = {}
        if like is not None:
            number = h5o.get_info(self.root).fileno
            for path, kind in _kinds(like):
                own = path in (contents.groups if kind == h5o.TYPE_GROUP else contents.datasets)
                info = None if own else info_at(file, path)
                if own:
                    self._paths.setdefault(addresses[path], path)
                elif info is not None and info.fileno == number and info.type == kind:
                    self._paths.setdefault(info.addr, path)
        for path in (*contents.groups, *contents.datasets):
            self._paths.setdefault(addresses[path], path)
        for companion, path in contents.datasets.companions():
            self.companions[self.path_at(companion.address)] = path

    def path_at(self, address: int) -> str:
        """Return the path of an object; empty for named types and objects without a path."""
        return self._paths.get(address, "")

    def seen_from(self, item: Any) -> ObjectPaths:
        """Return the objects for references of an object, which may be in a file that was taken in."""
        if not (number := self.scope.number_of(item)):
            return self
        if number not in self._others:
            other = self._others[number] = copy(self)
            other.root, other._texts = h5g.open(self.scope.files[number].id, b"/"), {}
        return self._others[number]

    def named(self, path: str, address: int) -> bool:
        """Return whether a path is the name of the object at an address, rather than another link to it."""
        return self.path_at(address) == path

    def target_text(self, place: Place) -> TargetText:
        """Return the target of a reference in memory, in words."""
        if not place.is_address:
            return self._followed(place)
        content = place.content
        if (known := self._texts.get(content)) is None:
            known = self._texts[content] = self._followed(place)
        return known

    def _followed(self, place: Place) -> TargetText:
        if place.is_null:
            return NOTHING
        try:
            target = place.follow(self.root)
            if target is None:
                return GONE
            if target.item is None:
                return FOREIGN
            address = self.scope.address(target.item)
            if address in self._left_out:
                return GONE
            name = self.path_at(address)
            if not name and self.scope.number_of(target.item):
                return GONE  # in a file that is taken in, where no link leads
            if not name:  # a named type, or an object without links
                name = (h5i.get_name(target.item) or b"an object without a path").decode("utf-8", "replace")
            if target.region is not None:
                return TargetText(f"{name}, {selection_text(target.region)}")
        except (ValueError, RuntimeError, OSError, KeyError, FileError):
            return GONE
        attribute = target.attribute.decode("utf-8", "replace")
        return TargetText(f"{name}, attribute {attribute!r}" if attribute else name)


class TargetText(str):
    """The target of a reference in words."""

    __slots__ = ()


NOTHING, GONE = TargetText("nothing"), TargetText("an object that does not exist")
FOREIGN = TargetText("an object in another file")  # HDF5 writes no such reference that it has read


def _kinds(contents: Contents) -> Iterator[tuple[str, int]]:
    """Yield the path of each group and dataset, and which of the two it is."""
    yield from ((path, h5o.TYPE_GROUP) for path in contents.groups)
    yield from ((path, h5o.TYPE_DATASET) for path in contents.datasets)


def selection_text(space: h5s.SpaceID) -> str:
    """Return the selection of a region reference in words: equal texts mean equal elements, points in equal order."""
    kind, count = space.get_select_type(), space.get_select_npoints()
    if kind == h5s.SEL_NONE or not count:
        return "no values"
    if kind == h5s.SEL_POINTS:
        points = (str(tuple(map(int, item))) for item in space.get_select_elem_pointlist())
        return f"points {', '.join(points)}"
    low, high = (tuple(map(int, item)) for item in space.get_select_bounds())
    extents = tuple(last - first + 1 for first, last in zip(low, high, strict=True))
    if kind == h5s.SEL_ALL or math.prod(extents) == count:
        return f"values {low} to {high}"
    blocks = [tuple(tuple(map(int, corner)) for corner in item) for item in space.get_select_hyper_blocklist()]
    if math.prod(extents) <= _LARGEST_MASK:  # larger selections are equal if HDF5 stores them in equal blocks
        blocks = _runs(blocks, low, extents)
    return f"{count} values: {', '.join(f'{first} to {last}' for first, last in blocks)}"


def _runs(blocks: list[Any], low: tuple[int, ...], extents: tuple[int, ...]) -> list[Any]:
    """Return the longest runs along the last axis, which do not depend on how the selection was built."""
    mask = np.zeros((*extents[:-1], extents[-1] + 2), np.int8)
    for first, last in blocks:
        part = [slice(a - origin, b - origin + 1) for a, b, origin in zip(first, last, low, strict=True)]
        mask[(*part[:-1], slice(part[-1].start + 1, part[-1].stop + 1))] = 1
    edges = np.diff(mask, axis=-1)
    starts, ends = np.argwhere(edges == 1), np.argwhere(edges == -1)
    ends[:, -1] -= 1  # the last element of a run, not the first one after it
    return [
        (tuple(map(int, first + low)), tuple(map(int, last + low))) for first, last in zip(starts, ends, strict=True)
    ]


def followed_values(
    owner: Any, datatype: h5t.TypeID, memory: h5s.SpaceID, file: h5s.SpaceID, own: ObjectPaths
) -> NDArray[Any]:
    """Read an attribute, or a part of a dataset, as objects: texts for references, tuples of members, lists."""
    shape = memory.get_simple_extent_dims()
    values = np.empty(math.prod(shape), object)
    with values_in_memory(owner, datatype, memory, file) as content:
        for index in range(values.size):
            values[index] = _value(content.ctypes.data + index * datatype.get_size(), datatype, own)
    return values.reshape(shape)


def followed_value(content: bytes, datatype: h5t.TypeID, own: ObjectPaths) -> Any:
    """Return one value that is in memory."""
    room = ctypes.create_string_buffer(content, len(content))
    return _value(ctypes.addressof(room), datatype, own)


def _value(address: int, datatype: h5t.TypeID, own: ObjectPaths) -> Any:
    """Return a value in memory."""
    if isinstance(datatype, h5t.TypeReferenceID):
        return own.target_text(Place(address, datatype.get_size()))
    if isinstance(datatype, h5t.TypeCompoundID):
        return tuple(
            _value(address + datatype.get_member_offset(index), datatype.get_member_type(index), own)
            for index in range(datatype.get_nmembers())
        )
    if isinstance(datatype, h5t.TypeArrayID):
        return _values(address, math.prod(datatype.get_array_dims()), datatype.get_super(), own)
    if isinstance(datatype, h5t.TypeVlenID):
        count, elements = sequence_at(address)
        return _values(elements, count, datatype.get_super(), own)
    if isinstance(datatype, h5t.TypeStringID) and datatype.is_variable_str():
        return ctypes.c_char_p.from_address(address).value or b""
    return _plain_value(ctypes.string_at(address, datatype.get_size()), datatype)


def _values(address: int, count: int, datatype: h5t.TypeID, own: ObjectPaths) -> list[Any]:
    return [_value(address + index * datatype.get_size(), datatype, own) for index in range(count)]


def _plain_value(content: bytes, datatype: h5t.TypeID) -> Any:
    """Return a number or text; its bytes where NumPy does not have its type."""
    try:
        return np.frombuffer(content, datatype.dtype)[0]
    except (KeyError, TypeError, ValueError):
        return content


_PART_NBYTES = 1 << 20


def same_stored_chunks(source: Hdf5Array, target: Hdf5Array) -> bool:
    """Return whether two datasets of one shape have the same values because all stored bytes are the same.

    Chunk shapes, types, filters with parameters, filter masks, fill values and encoded bytes must be equal. Returns
    False if these bytes do not determine the values, because of a companion or values elsewhere in the file.
    """
    both = (source, target)
    if not all(array.storage.chunk_shape and array.type.dtype is not None and is_plain(array.file) for array in both):
        return False
    if source.storage.chunk_shape != target.storage.chunk_shape or source.datatype != target.datatype:
        return False
    filters = [[(stage.filter, stage.stored) for stage in array.storage.pipeline.stages] for array in both]
    if filters[0] != filters[1] or source.facts.fill_state != target.facts.fill_state or changed_fill(source, target):
        return False
    if any(array.marks.has_companion for array in both):
        return False
    before, after = map(_index, both)
    tables = [(as_array(index.numbers), index.sizes, index.masks) for index in (before, after)]
    if not all(map(np.array_equal, *tables)):
        return False
    files = [source_of(array.file) for array in both]
    places = zip(before.offsets.tolist(), after.offsets.tolist(), before.sizes.tolist(), strict=True)
    return all(_same_bytes(files, offsets, nbytes) for *offsets, nbytes in places)


def _index(array: Hdf5Array) -> ChunkIndex:
    """Read the chunk index of a dataset; an error names only its own file."""
    with reading(filename_of(array.file), dataset=array.path):
        return array.chunk_index()


def _same_bytes(files: list[ByteSource], offsets: list[int], nbytes: int) -> bool:
    """Compare two chunks part by part: their sizes come from the files, and may be wrong."""
    for at in range(0, nbytes, _PART_NBYTES):
        count = min(_PART_NBYTES, nbytes - at)
        parts = [file.read(offset + at, count) for file, offset in zip(files, offsets, strict=True)]
        if parts[0] != parts[1] or len(parts[0]) != count:
            return False
    return True


Array = NDArray[Any]


def unequal_values(
    source: Hdf5Array, target: Hdf5Array, objects: tuple[ObjectPaths, ObjectPaths], progress: Callable[[int, int], None]
) -> Unequal | None:
    """Compare datasets of one shape and type, in any byte order, bit by bit; references by their targets."""
    progress(0, size_of(source))
    if not size_of(source):
        return None
    source.check_files()
    target.check_files()
    with ExitStack() as stack:
        readers = [_open_bytes(dataset, stack) for dataset in (source, target)]

        def compare(part: Region) -> BlockDifference:
            before = _elements(source, readers[0], objects[0], part)
            after = _elements(target, readers[1], objects[1], part)
            different = differing(before, after, before.dtype)
            harmless = not different.any()
            if harmless:
                different = without_target(before, after)
            return BlockDifference(different, lambda at: _change_text(before[at], after[at]), harmless)

        return unequal_elements(source, target, source.type.nbytes, compare, progress)


def _open_bytes(array: Hdf5Array, stack: ExitStack) -> ArrayReader | None:
    """Open a dataset's chunks as bytes, without filters of libhdf5; None if libhdf5 must read it."""
    if array.type.dtype is None or array.storage.chunk_shape is None:
        return None
    return stack.enter_context(closing(array.open_reader()))


def _change_text(before: Any, after: Any) -> str:
    old, new = element_text(before), element_text(after)
    return f"{old} became {new}" if old != new else f"{old} became a value that differs in a part that is not shown"


def _elements(array: Hdf5Array, values: ArrayReader | None, own: ObjectPaths, part: Region) -> Array:
    try:
        dataset, dtype = array.dataset, array.numpy_type
        memory, space = selected(dataset, part)
        if has_references(array.datatype):
            with located(array.label):
                return followed_values(dataset.id, array.datatype, memory, space, own.seen_from(dataset.id))
        if dtype is None:  # its bytes
            return read_bytes(dataset, part, array.datatype) if values is None else values.read(part)
        # Elements that are arrays become a field of a record, so that they stay elements.
        kind = np.dtype([("element", dtype)]) if dtype.subdtype else dtype
        if array.type.dtype is not None and kind.itemsize == array.type.nbytes:  # as in the file
            content = read_bytes(dataset, part, array.datatype) if values is None else values.read(part)
            return np.ascontiguousarray(content).view(kind)
        elements = np.zeros(shape_of(part), kind)
        dataset.id.read(memory, space, elements, memory_type(array.datatype, dtype))
        return elements
    except FileError:
        raise
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        pass_interrupt(error)
        raise FileError(f"{array.label}: values cannot be read: {error}") from error


def changed_fill(source: Hdf5Array, target: Hdf5Array, objects: tuple[ObjectPaths, ObjectPaths] | None = None) -> str:
    """Return how HDF5's fill value changed between datasets of one type; empty where it did not, or there is none."""
    if has_references(source.datatype) and objects is None:
        return ""
    try:
        before, after = map(_fill, (source, target), objects or (None, None))
        if not differing(before, after, before.dtype).any():
            return ""
    except (TypeError, ValueError, RuntimeError, FileError):
        return ""
    return f"HDF5's fill value {element_text(before[()])} became {element_text(after[()])}"


def _fill(array: Hdf5Array, own: ObjectPaths | None) -> Array:
    """Return the fill value of a dataset in native byte order."""
    undefined, dtype = array.facts.fill_state == h5d.FILL_VALUE_UNDEFINED, array.numpy_type
    content = bytes(array.type.nbytes) if undefined else array.fill_bytes()
    if own is not None and has_references(array.datatype):
        values = np.empty((), object)
        values[()] = followed_value(content, array.datatype, own.seen_from(array.dataset.id))
        return values
    if dtype is None or not dtype.hasobject:
        kind = np.dtype((np.void, len(content))) if dtype is None else np.dtype([("element", dtype)])
        values = np.frombuffer(content, kind)[0]
        return np.asarray(values if dtype is None else values["element"])
    return np.asarray(array.fill.value)


def differing(before: Array, after: Array, dtype: np.dtype[Any]) -> Array:
    """Return for each element whether it differs, including members and sequences; references by their targets."""
    if dtype.names:
        differs = np.zeros(before.shape, bool)
        for name in dtype.names:
            member = differing(before[name], after[name], dtype[name])
            differs |= member.any(axis=tuple(range(before.ndim, member.ndim)))
        return differs
    if dtype.subdtype:
        return differing(before, after, dtype.subdtype[0])
    if dtype.kind == "O":
        pairs = zip(before.ravel(), after.ravel(), strict=True)
        unequal = [_plain(value, dtype) != _plain(other_value, dtype) for value, other_value in pairs]
        return np.array(unequal, bool).reshape(before.shape)
    if dtype.itemsize == 0:
        return np.zeros(before.shape, bool)
    flat = [_bytes(values) for values in (before, after)]
    return np.asarray((flat[0] != flat[1]).any(axis=-1)).reshape(before.shape)


def without_target(before: Array, after: Array) -> Array:
    """Return for each element whether its references lead to no object, and are null in the copy."""
    if before.dtype.kind != "O":
        return np.zeros(before.shape, bool)
    pairs = zip(before.ravel(), after.ravel(), strict=True)
    return np.array([_is_gone(value) and not _is_gone(other) for value, other in pairs], bool).reshape(before.shape)


def _is_gone(value: object) -> bool:
    return any(map(_is_gone, value)) if isinstance(value, (tuple, list)) else value is GONE or value is FOREIGN


def _bytes(values: Array) -> Array:
    """Return the bytes of each element, in native byte order."""
    contiguous = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="), copy=False))
    return contiguous.reshape(-1).view(np.uint8).reshape(values.size, -1)


def _plain(value: Any, dtype: np.dtype[Any]) -> object:
    """Return a Python object from a file in a form that can be compared with one from another file."""
    sequence = h5py.check_vlen_dtype(dtype)
    if isinstance(value, np.ndarray):
        return _members(value, sequence if isinstance(sequence, np.dtype) else value.dtype)
    if isinstance(value, (tuple, list)):
        return tuple(_plain(part, dtype) for part in value)
    if isinstance(value, np.generic):
        return _bytes(np.asarray(value)).tobytes()
    if _is_gone(value):  # what a copy cannot have
        return NOTHING
    if isinstance(value, str) and not isinstance(value, TargetText):
        return value.encode("utf-8", "surrogateescape")
    return value or b""  # a null string is read as 0


def _members(values: Array, dtype: np.dtype[Any]) -> object:
    if dtype.names:
        return values.shape, tuple(_members(values[name], dtype[name]) for name in dtype.names)
    if dtype.kind == "O":
        return values.shape, tuple(_plain(element, dtype) for element in values.ravel())
    return values.shape, _bytes(values).tobytes() if values.size else b""


def array_text(values: Array) -> str:
    """Return the first elements as text for people."""
    if values.ndim == 0:
        return element_text(values[()])
    first = values.ravel()[:8]
    return shortened(
        f"[{', '.join(element_text(element) for element in first)}{', …' if values.size > len(first) else ''}]"
    )


def element_text(value: Any) -> str:
    """Return an element as text for people; references by their targets."""
    if isinstance(value, TargetText):
        return shortened(value)
    if isinstance(value, (tuple, list)):
        text = ", ".join(map(element_text, value))
        return shortened(f"[{text}]" if isinstance(value, list) else f"({text})")
    if isinstance(value, np.void) and value.dtype.names:
        return shortened(f"({', '.join(element_text(value[name]) for name in value.dtype.names)})")
    if isinstance(value, np.ndarray):
        return array_text(value)
    if isinstance(value, bytes):
        return shortened(repr(value.decode("utf-8", "backslashreplace")))
    return shortened(repr(value.item() if isinstance(value, np.generic) else value))
