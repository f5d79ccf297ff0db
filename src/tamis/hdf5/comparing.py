"""What two HDF5 files have besides numbers, compared: attributes, links, and values of other types."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np
from h5py import h5a, h5g, h5l, h5o, h5r, h5s, h5t
from numpy.typing import NDArray

from tamis.chunks.pairing import block_shape
from tamis.errors import FileError
from tamis.hdf5.describing import type_words
from tamis.hdf5.references import attribute_names
from tamis.hdf5.walking import Contents

Array = NDArray[Any]

_BLOCK_NBYTES = 1 << 20
_LONGEST = 60
_NAMED_TYPE = "named type"


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that two files have not alike.

    Parameters
    ----------
    name
        Of the attribute or link.
    text
        What is so in the source, and what in the target.
    added
        Whether only the target has it.
    """

    name: str
    text: str
    added: bool = False


class Objects:
    """The objects of a file, known by address: references are compared by the path of what they lead to.

    Parameters
    ----------
    file
        Must stay open.
    contents
        Of the file.
    like
        Contents of a file that this one is compared with: where several paths lead to an object, the one that leads to
        an object there too is its name.
    """

    def __init__(self, file: h5py.File, contents: Contents, like: Contents | None = None) -> None:
        self.root = h5g.open(file.id, b"/")
        self._paths: dict[int, str] = {}
        if like is not None:
            for path in like.groups:
                self._name(path, group_at(file, path))
            for path in like.datasets:
                self._name(path, dataset_at(file, path))
        for path, each in itertools.chain(contents.groups.items(), contents.datasets.items()):
            self._name(path, each)

    def _name(self, path: str, found: h5py.HLObject | None) -> None:
        if found is not None:
            self._paths.setdefault(h5o.get_info(found.id).addr, path)

    def path_at(self, address: int) -> str:
        """Path of an object; empty where no path leads to it but that of a named type."""
        return self._paths.get(address, "")

    def named(self, path: str, found: h5py.HLObject) -> bool:
        """Whether a path is the name of an object, rather than another link to it."""
        return self.path_at(h5o.get_info(found.id).addr) == path

    def led_to(self, reference: Any) -> str:
        """Say where a reference leads to."""
        if not reference:
            return "nothing"
        try:
            found = h5r.dereference(reference, self.root)
            name = None if found is None else self.path_at(h5o.get_info(found).addr)
            if name == "":  # a named type, or what no link leads to
                name = (h5r.get_name(reference, self.root) or b"an object without a path").decode("utf-8", "replace")
            if name is None:
                return "an object that is not there"
            if isinstance(reference, h5r.RegionReference):
                region = h5r.get_region(reference, self.root)
                return f"{name}, {region.get_select_npoints()} values in {region.get_select_bounds()}"
        except (ValueError, RuntimeError, OSError, KeyError):
            return "an object that is not there"
        return name


def dataset_at(file: h5py.File, path: str) -> h5py.Dataset | None:
    """Find the dataset of this file that a path leads to, by whatever links; None if there is none."""
    return _object_at(file, path, h5py.Dataset)


def group_at(file: h5py.File, path: str) -> h5py.Group | None:
    """Find the group of this file that a path leads to, by whatever links; None if there is none."""
    return _object_at(file, path, h5py.Group)


def _object_at(file: h5py.File, path: str, kind: type) -> Any:
    try:
        found: Any = file.get(path.encode("utf-8", "surrogateescape"))
    except (OSError, RuntimeError, ValueError):
        return None
    return found if isinstance(found, kind) and found.file == file else None  # type: ignore[attr-defined]


def attribute_differences(source: Any, target: Any, objects: tuple[Objects, Objects]) -> Iterator[Difference]:
    """Compare the attributes of two objects: names, types but for their byte order, shapes and values.

    Parameters
    ----------
    source, target
        Low-level identifiers.
    objects
        Of the source's file and the target's.

    Raises
    ------
    FileError
        If one cannot be read.
    """
    names, others = attribute_names(source), attribute_names(target)
    for name in names:
        text = _text(name)
        if name not in others:
            yield Difference(text, f"attribute {text!r} is lost")
            continue
        try:
            said = _attribute_difference(name, (h5a.open(source, name), h5a.open(target, name)), objects)
        except (OSError, RuntimeError, TypeError, ValueError, KeyError) as error:
            raise FileError(f"attribute {text!r} cannot be read: {error}") from error
        if said:
            yield Difference(text, f"attribute {text!r}: {said}")
    for name in others:
        if name not in names:
            yield Difference(_text(name), f"attribute {_text(name)!r} is new", added=True)


def link_differences(source: h5py.Group, target: h5py.Group, objects: tuple[Objects, Objects]) -> Iterator[Difference]:
    """Compare where the links of two groups lead to; leaves datasets and groups that are lost or new to the caller."""
    before, after = (_links(group, own) for group, own in zip((source, target), objects, strict=True))
    for name, (led, is_object) in before.items():
        if name not in after:
            if not is_object:
                yield Difference(_text(name), f"{led} is lost")
        elif after[name][0] != led:
            yield Difference(_text(name), f"{led} became {after[name][0]}")
        elif led.startswith(_NAMED_TYPE):
            types = h5t.open(source.id, name), h5t.open(target.id, name)
            for each in attribute_differences(*types, objects):
                yield Difference(_text(name), each.text, each.added)
    for name, (led, is_object) in after.items():
        if name not in before and not is_object:
            yield Difference(_text(name), f"{led} is new", added=True)


@dataclass(frozen=True, slots=True)
class Unequal:
    """Elements that are not equal.

    Parameters
    ----------
    count
        How many.
    index
        Of the first.
    text
        What it was, and what it is.
    """

    count: int
    index: tuple[int, ...]
    text: str


def unequal_elements(
    source: h5py.Dataset,
    target: h5py.Dataset,
    objects: tuple[Objects, Objects],
    progress: Callable[[int, int], None],
) -> Unequal | None:
    """Compare datasets of one shape and one type, in any byte order, bit by bit; references by what they lead to.

    Raises
    ------
    FileError
        If values cannot be read.
    """
    shape, total, done, count = source.shape, int(source.size), 0, 0
    first: tuple[tuple[int, ...], str] | None = None
    progress(0, total)
    if not total:
        return None
    itemsize = max(source.id.get_type().get_size(), 1)
    block = block_shape(shape, [each.chunks for each in (source, target) if each.chunks], _BLOCK_NBYTES // itemsize)
    for corner in itertools.product(*(range(0, extent, step) for extent, step in zip(shape, block, strict=True))):
        part = tuple(slice(at, min(at + n, extent)) for at, n, extent in zip(corner, block, shape, strict=True))
        before, after = _elements(source, part), _elements(target, part)
        unlike = _unlike(before, after, before.dtype, objects)
        if unlike.any():
            count += int(np.count_nonzero(unlike))
            at = np.unravel_index(int(unlike.argmax()), unlike.shape)
            index = tuple(int(i) + start for i, start in zip(at, corner, strict=True))
            first = first or (index, f"{_shown(before[at], objects[0])} became {_shown(after[at], objects[1])}")
        done += before.size
        progress(done, total)
    return Unequal(count, *first) if first else None


def _elements(dataset: h5py.Dataset, part: tuple[slice, ...]) -> Array:
    try:
        try:
            dtype = dataset.dtype
        except (TypeError, ValueError):  # a type that numpy has not: its bytes
            dtype = None
        if dtype is not None and dtype.subdtype is None:
            return np.asarray(dataset[part], dtype)
        file_type = dataset.id.get_type()
        shape = tuple(each.stop - each.start for each in part)
        space = dataset.id.get_space()
        if shape:
            space.select_hyperslab(tuple(each.start for each in part), shape)
        memory = h5s.create_simple(shape) if shape else h5s.create(h5s.SCALAR)
        if dtype is None:
            values = np.zeros(shape, np.dtype((np.void, file_type.get_size())))
            dataset.id.read(memory, space, values, file_type)
            return values
        # Elements that are arrays: a field of a record, so that they stay elements.
        values = np.zeros(shape, np.dtype([("element", dtype)]))
        dataset.id.read(memory, space, values, h5t.py_create(dtype))
        return values
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise FileError(f"{dataset.file.filename}: {dataset.name}: values cannot be read: {error}") from error


def _attribute_difference(name: bytes, pair: tuple[Any, Any], objects: tuple[Objects, Objects]) -> str:
    words = [type_words(each.get_type()) for each in pair]
    shapes = [None if each.get_space().get_simple_extent_type() == h5s.NULL else each.shape for each in pair]
    empty = [shape is None or 0 in shape for shape in shapes]
    alike = words[0] == words[1] and shapes[0] == shapes[1]
    if any(empty):
        return "" if alike else f"{words[0]} of shape {shapes[0]} became {words[1]} of shape {shapes[1]}"
    before, after = map(_attribute_values, pair)
    if name == b"REFERENCE_LIST" and all(each.dtype.names and each.ndim == 1 for each in (before, after)):
        # Which datasets a dimension scale belongs to: a set, whose integers have several types.
        sets = [sorted(_shown(each, own) for each in v) for v, own in zip((before, after), objects, strict=True)]
        return "" if sets[0] == sets[1] else f"{_cut(', '.join(sets[0]))} became {_cut(', '.join(sets[1]))}"
    if alike and not _unlike(before, after, before.dtype, objects).any():
        return ""
    said = [_shown_all(values, own) for values, own in zip((before, after), objects, strict=True)]
    if said[0] != said[1]:
        return f"{said[0]} became {said[1]}"
    if not alike:
        return f"{words[0]} of shape {shapes[0]} became {words[1]} of shape {shapes[1]}"
    return "values differ"


def _attribute_values(attribute: Any) -> Array:
    file_type = attribute.get_type()
    try:
        dtype = file_type.dtype
    except (TypeError, ValueError):
        dtype = np.dtype((np.void, file_type.get_size()))
        values = np.zeros(attribute.shape, dtype)
        attribute.read(values, mtype=file_type)
        return values
    base, inner = dtype.subdtype or (dtype, ())
    values = np.zeros((*attribute.shape, *inner), base)
    attribute.read(values, mtype=h5t.py_create(dtype))
    return values


def _unlike(before: Array, after: Array, dtype: np.dtype[Any], objects: tuple[Objects, Objects]) -> Array:
    """Tell for each element whether it differs: members and sequences too, references by what they lead to."""
    if dtype.names:
        found = np.zeros(before.shape, bool)
        for name in dtype.names:
            unlike = _unlike(before[name], after[name], dtype[name], objects)
            found |= unlike.any(axis=tuple(range(before.ndim, unlike.ndim)))
        return found
    if dtype.subdtype:
        return _unlike(before, after, dtype.subdtype[0], objects)
    if dtype.kind == "O":
        pairs = zip(before.ravel(), after.ravel(), strict=True)
        said = [_plain(one, dtype, objects[0]) != _plain(other, dtype, objects[1]) for one, other in pairs]
        return np.array(said, bool).reshape(before.shape)
    if dtype.itemsize == 0:
        return np.zeros(before.shape, bool)
    flat = [_bytes(each) for each in (before, after)]
    return np.asarray((flat[0] != flat[1]).any(axis=-1)).reshape(before.shape)


def _bytes(values: Array) -> Array:
    """Give the bytes of each element, in native byte order."""
    native = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="), copy=False))
    return native.reshape(-1).view(np.uint8).reshape(values.size, -1)


def _plain(value: Any, dtype: np.dtype[Any], own: Objects) -> object:
    """Turn a Python object out of a file into what can be compared with that of another file."""
    if h5py.check_ref_dtype(dtype) is not None:
        return own.led_to(value)
    sequence = h5py.check_vlen_dtype(dtype)
    if isinstance(value, np.ndarray):
        return _members(value, sequence if isinstance(sequence, np.dtype) else value.dtype, own)
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    return value or b""  # a null string is read as 0


def _members(values: Array, dtype: np.dtype[Any], own: Objects) -> object:
    if dtype.names:
        return values.shape, tuple(_members(values[name], dtype[name], own) for name in dtype.names)
    if dtype.kind == "O":
        return values.shape, tuple(_plain(each, dtype, own) for each in values.ravel())
    return values.shape, _bytes(values).tobytes() if values.size else b""


def _links(group: h5py.Group, own: Objects) -> dict[bytes, tuple[str, bool]]:
    """Say of each link where it leads to, and whether it is what a walk counts as a dataset or group."""
    found: dict[bytes, tuple[str, bool]] = {}
    names: list[bytes] = []
    group.id.links.iterate(names.append)
    place = own.path_at(h5o.get_info(group.id).addr).rstrip("/")
    for name in names:
        kind = group.id.links.get_info(name).type
        if kind == h5l.TYPE_HARD:
            path = own.path_at(h5o.get_info(group.id, name).addr)
            if not path:
                found[name] = f"{_NAMED_TYPE} {type_words(h5t.open(group.id, name))}", False
            elif path == f"{place}/{name.decode('utf-8', 'surrogateescape')}":
                found[name] = "object", True
            else:
                found[name] = f"hard link to {path}", False
        elif kind == h5l.TYPE_SOFT:
            found[name] = f"soft link to {_text(group.id.links.get_val(name))}", False
        elif kind == h5l.TYPE_EXTERNAL:
            found[name] = f"external link to {' '.join(map(_text, group.id.links.get_val(name)))}", False
        else:
            found[name] = f"link of the type {kind}", False
    return found


def _shown_all(values: Array, own: Objects) -> str:
    if values.ndim == 0:
        return _shown(values[()], own)
    few = values.ravel()[:8]
    return _cut(f"[{', '.join(_shown(each, own) for each in few)}{', …' if values.size > len(few) else ''}]")


def _shown(value: Any, own: Objects) -> str:
    """Write an element for people, references by what they lead to."""
    if isinstance(value, h5r.Reference):
        return own.led_to(value)
    if isinstance(value, np.void) and value.dtype.names:
        return _cut(f"({', '.join(_shown(value[name], own) for name in value.dtype.names)})")
    if isinstance(value, np.ndarray):
        return _shown_all(value, own)
    if isinstance(value, bytes):
        return _cut(repr(value.decode("utf-8", "backslashreplace")))
    return _cut(repr(value.item() if isinstance(value, np.generic) else value))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _text(name: bytes | str) -> str:
    return name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name
