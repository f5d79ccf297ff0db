"""Compare elements of attributes and datasets of any type, and show them to people."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

import h5py
import numpy as np
from h5py import h5r, h5t
from numpy.typing import NDArray

from tamis.chunks.boxes import block_shape, cut, whole
from tamis.chunks.grid import Region, origin_of
from tamis.chunks.reader import ArrayReader
from tamis.errors import FileError
from tamis.formatting import shortened
from tamis.hdf5.library_reader import read_bytes, selected
from tamis.hdf5.stored_array import Hdf5Array
from tamis.hdf5.tree.objects import Objects
from tamis.store.pair import Unequal

Array = NDArray[Any]

_BLOCK_NBYTES = 1 << 20


def unequal_elements(
    source: Hdf5Array,
    target: Hdf5Array,
    objects: tuple[Objects, Objects],
    progress: Callable[[int, int], None],
) -> Unequal | None:
    """Compare datasets of one shape and type, in any byte order, bit by bit; references by their targets.

    Raises
    ------
    FileError
        If values cannot be read.
    """
    shape, total, done, count = source.shape, source.size, 0, 0
    first: tuple[tuple[int, ...], str] | None = None
    progress(0, total)
    if not total:
        return None
    itemsize = max(source.value_nbytes, 1)
    block = block_shape(
        shape, [array.chunk_shape for array in (source, target) if array.chunk_shape], _BLOCK_NBYTES // itemsize
    )
    with ExitStack() as stack:
        read = [partial(_elements, dataset, _open_bytes(dataset, stack)) for dataset in (source, target)]
        for part in cut(whole(shape), block):
            before, after = (read_part(part) for read_part in read)
            different = differing(before, after, before.dtype, objects)
            if different.any():
                count += int(np.count_nonzero(different))
                inside = np.unravel_index(int(different.argmax()), different.shape)
                index = tuple(int(i) + start for i, start in zip(inside, origin_of(part), strict=True))
                first = first or (index, _change_text(before[inside], after[inside], objects))
            done += before.size
            progress(done, total)
    return Unequal(count, *first) if first else None


def _open_bytes(array: Hdf5Array, stack: ExitStack) -> ArrayReader | None:
    """Open a dataset's chunks as bytes, without filters of libhdf5; None if libhdf5 has to read it."""
    if array.dtype is None or array.chunk_shape is None:
        return None
    return stack.enter_context(closing(array.open_reader()))


def _change_text(before: Any, after: Any, objects: tuple[Objects, Objects]) -> str:
    old, new = element_text(before, objects[0]), element_text(after, objects[1])
    return f"{old} became {new}" if old != new else f"{old} became a value that differs in a part that is not shown"


def _elements(array: Hdf5Array, values: ArrayReader | None, part: Region) -> Array:
    try:
        dataset, dtype = array.dataset, array.numpy_type
        if dtype is None:  # its bytes
            return read_bytes(dataset, part, array.datatype) if values is None else values.read(part)
        # Elements that are arrays become a field of a record, so that they stay elements.
        kind = np.dtype([("element", dtype)]) if dtype.subdtype else dtype
        if values is not None and kind.itemsize == values.dtype.itemsize:
            return np.ascontiguousarray(values.read(part)).view(kind)
        if dtype.subdtype is None:
            return np.asarray(dataset[part], dtype)
        elements = np.zeros(tuple(axis.stop - axis.start for axis in part), kind)
        memory, space = selected(dataset, part)
        dataset.id.read(memory, space, elements, h5t.py_create(dtype))
        return elements
    except FileError:
        raise
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise FileError(f"{array.label}: values cannot be read: {error}") from error


def differing(before: Array, after: Array, dtype: np.dtype[Any], objects: tuple[Objects, Objects]) -> Array:
    """Return for each element whether it differs, including members and sequences; references by their targets."""
    if dtype.names:
        differs = np.zeros(before.shape, bool)
        for name in dtype.names:
            member = differing(before[name], after[name], dtype[name], objects)
            differs |= member.any(axis=tuple(range(before.ndim, member.ndim)))
        return differs
    if dtype.subdtype:
        return differing(before, after, dtype.subdtype[0], objects)
    if dtype.kind == "O":
        pairs = zip(before.ravel(), after.ravel(), strict=True)
        unequal = [
            _plain(value, dtype, objects[0]) != _plain(other_value, dtype, objects[1]) for value, other_value in pairs
        ]
        return np.array(unequal, bool).reshape(before.shape)
    if dtype.itemsize == 0:
        return np.zeros(before.shape, bool)
    flat = [_bytes(values) for values in (before, after)]
    return np.asarray((flat[0] != flat[1]).any(axis=-1)).reshape(before.shape)


def _bytes(values: Array) -> Array:
    """Return the bytes of each element, in native byte order."""
    contiguous = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="), copy=False))
    return contiguous.reshape(-1).view(np.uint8).reshape(values.size, -1)


def _plain(value: Any, dtype: np.dtype[Any], own: Objects) -> object:
    """Return a Python object from a file in a form that can be compared with one of another file."""
    if h5py.check_ref_dtype(dtype) is not None:
        return own.target_text(value)
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
        return values.shape, tuple(_plain(element, dtype, own) for element in values.ravel())
    return values.shape, _bytes(values).tobytes() if values.size else b""


def array_text(values: Array, own: Objects) -> str:
    """Return the first elements as text for people."""
    if values.ndim == 0:
        return element_text(values[()], own)
    first = values.ravel()[:8]
    return shortened(
        f"[{', '.join(element_text(element, own) for element in first)}{', …' if values.size > len(first) else ''}]"
    )


def element_text(value: Any, own: Objects) -> str:
    """Return an element as text for people; references by their targets."""
    if isinstance(value, h5r.Reference):
        return own.target_text(value)
    if isinstance(value, np.void) and value.dtype.names:
        return shortened(f"({', '.join(element_text(value[name], own) for name in value.dtype.names)})")
    if isinstance(value, np.ndarray):
        return array_text(value, own)
    if isinstance(value, bytes):
        return shortened(repr(value.decode("utf-8", "backslashreplace")))
    return shortened(repr(value.item() if isinstance(value, np.generic) else value))
