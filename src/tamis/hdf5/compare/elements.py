"""Elements of attributes and datasets compared, whatever their type, and written for people."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import h5py
import numpy as np
from h5py import h5r, h5t
from numpy.typing import NDArray

from tamis.chunks.blocks import block_shape
from tamis.chunks.grid import Region
from tamis.chunks.reader import Values
from tamis.errors import FileError
from tamis.hdf5.chunked import read_bytes, selected
from tamis.hdf5.storage import stored_type
from tamis.hdf5.tree.objects import Objects
from tamis.hdf5.values import open_values

Array = NDArray[Any]

_BLOCK_NBYTES = 1 << 20
_LONGEST = 60


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
    with ExitStack() as stack:
        read = [partial(_elements, each, _past_hdf5(each, stack)) for each in (source, target)]
        for corner in itertools.product(*(range(0, extent, step) for extent, step in zip(shape, block, strict=True))):
            part = tuple(slice(at, min(at + n, extent)) for at, n, extent in zip(corner, block, shape, strict=True))
            before, after = (each(part) for each in read)
            different = unlike(before, after, before.dtype, objects)
            if different.any():
                count += int(np.count_nonzero(different))
                at = np.unravel_index(int(different.argmax()), different.shape)
                index = tuple(int(i) + start for i, start in zip(at, corner, strict=True))
                first = first or (index, _became(before[at], after[at], objects))
            done += before.size
            progress(done, total)
    return Unequal(count, *first) if first else None


def _past_hdf5(dataset: h5py.Dataset, stack: ExitStack) -> Values | None:
    """Open chunks of bytes, which need no filter of libhdf5; None where it reads them."""
    if stored_type(dataset) is None or dataset.chunks is None:
        return None
    return stack.enter_context(closing(open_values(dataset)))


def _became(before: Any, after: Any, objects: tuple[Objects, Objects]) -> str:
    was, now = shown(before, objects[0]), shown(after, objects[1])
    return f"{was} became {now}" if was != now else f"{was} became one that differs in what is not shown here"


def _elements(dataset: h5py.Dataset, values: Values | None, part: Region) -> Array:
    try:
        try:
            dtype = dataset.dtype
        except (TypeError, ValueError):  # a type that numpy does not have: its bytes
            dtype = None
        if dtype is None:
            return read_bytes(dataset, part) if values is None else values.read(part)
        # Elements that are arrays: a field of a record, so that they stay elements.
        kind = np.dtype([("element", dtype)]) if dtype.subdtype else dtype
        if values is not None and kind.itemsize == values.dtype.itemsize:
            return np.ascontiguousarray(values.read(part)).view(kind)
        if dtype.subdtype is None:
            return np.asarray(dataset[part], dtype)
        found = np.zeros(tuple(each.stop - each.start for each in part), kind)
        memory, space = selected(dataset, part)
        dataset.id.read(memory, space, found, h5t.py_create(dtype))
        return found
    except FileError:
        raise
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise FileError(f"{dataset.file.filename}: {dataset.name}: values cannot be read: {error}") from error


def unlike(before: Array, after: Array, dtype: np.dtype[Any], objects: tuple[Objects, Objects]) -> Array:
    """Tell for each element whether it differs: members and sequences too, references by what they lead to."""
    if dtype.names:
        found = np.zeros(before.shape, bool)
        for name in dtype.names:
            member = unlike(before[name], after[name], dtype[name], objects)
            found |= member.any(axis=tuple(range(before.ndim, member.ndim)))
        return found
    if dtype.subdtype:
        return unlike(before, after, dtype.subdtype[0], objects)
    if dtype.kind == "O":
        pairs = zip(before.ravel(), after.ravel(), strict=True)
        said = [_plain(one, dtype, objects[0]) != _plain(other, dtype, objects[1]) for one, other in pairs]
        return np.array(said, bool).reshape(before.shape)
    if dtype.itemsize == 0:
        return np.zeros(before.shape, bool)
    flat = [_bytes(each) for each in (before, after)]
    return np.asarray((flat[0] != flat[1]).any(axis=-1)).reshape(before.shape)


def _bytes(values: Array) -> Array:
    """Return the bytes of each element, in native byte order."""
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


def shown_all(values: Array, own: Objects) -> str:
    """Write the first elements for people."""
    if values.ndim == 0:
        return shown(values[()], own)
    few = values.ravel()[:8]
    return cut(f"[{', '.join(shown(each, own) for each in few)}{', …' if values.size > len(few) else ''}]")


def shown(value: Any, own: Objects) -> str:
    """Write an element for people, references by what they lead to."""
    if isinstance(value, h5r.Reference):
        return own.led_to(value)
    if isinstance(value, np.void) and value.dtype.names:
        return cut(f"({', '.join(shown(value[name], own) for name in value.dtype.names)})")
    if isinstance(value, np.ndarray):
        return shown_all(value, own)
    if isinstance(value, bytes):
        return cut(repr(value.decode("utf-8", "backslashreplace")))
    return cut(repr(value.item() if isinstance(value, np.generic) else value))


def cut(text: str) -> str:
    """Cut a text that is too long for its line."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
