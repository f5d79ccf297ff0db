"""Compare elements of attributes and datasets of any type, and show them to people."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from typing import Any

import h5py
import numpy as np
from h5py import h5d
from numpy.typing import NDArray

from tamis.chunks.boxes import block_shape, cut, whole
from tamis.chunks.grid import Region, origin_of
from tamis.chunks.reader import ArrayReader
from tamis.errors import FileError, located
from tamis.formatting import shortened
from tamis.hdf5.compare.followed_values import followed_value, followed_values
from tamis.hdf5.lib.damage import pass_interrupt
from tamis.hdf5.lib.datatypes import memory_type
from tamis.hdf5.lib.references import has_references
from tamis.hdf5.library_reader import read_bytes, selected
from tamis.hdf5.stored_array import Hdf5Array
from tamis.hdf5.tree.objects import FOREIGN, GONE, NOTHING, Objects, TargetText
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
    shape, total, done = source.shape, source.size, 0
    unequal: Unequal | None = None
    progress(0, total)
    if not total:
        return None
    itemsize = max(source.value_nbytes, 1)
    block = block_shape(
        shape, [array.chunk_shape for array in (source, target) if array.chunk_shape], _BLOCK_NBYTES // itemsize
    )
    with ExitStack() as stack:
        read = [
            partial(_elements, dataset, _open_bytes(dataset, stack), own)
            for dataset, own in zip((source, target), objects, strict=True)
        ]
        for part in cut(whole(shape), block):
            before, after = (read_part(part) for read_part in read)
            different, harmless = differing(before, after, before.dtype), False
            if not different.any():
                different, harmless = without_target(before, after), True
            if different.any() and (unequal is None or unequal.harmless >= harmless):
                inside = np.unravel_index(int(different.argmax()), different.shape)
                index = tuple(int(i) + start for i, start in zip(inside, origin_of(part), strict=True))
                change = Unequal(0, index, _change_text(before[inside], after[inside]), harmless)
                unequal = change if unequal is None or unequal.harmless != harmless else unequal
                unequal = replace(unequal, count=unequal.count + int(np.count_nonzero(different)))
            done += before.size
            progress(done, total)
    return unequal


def _open_bytes(array: Hdf5Array, stack: ExitStack) -> ArrayReader | None:
    """Open a dataset's chunks as bytes, without filters of libhdf5; None if libhdf5 has to read it."""
    if array.dtype is None or array.chunk_shape is None:
        return None
    return stack.enter_context(closing(array.open_reader()))


def _change_text(before: Any, after: Any) -> str:
    old, new = element_text(before), element_text(after)
    return f"{old} became {new}" if old != new else f"{old} became a value that differs in a part that is not shown"


def _elements(array: Hdf5Array, values: ArrayReader | None, own: Objects, part: Region) -> Array:
    try:
        dataset, dtype = array.dataset, array.numpy_type
        memory, space = selected(dataset, part)
        if has_references(array.datatype):
            with located(array.label):
                return followed_values(dataset.id, array.datatype, memory, space, own)
        if dtype is None:  # its bytes
            return read_bytes(dataset, part, array.datatype) if values is None else values.read(part)
        # Elements that are arrays become a field of a record, so that they stay elements.
        kind = np.dtype([("element", dtype)]) if dtype.subdtype else dtype
        if array.dtype is not None and kind.itemsize == array.value_nbytes:  # as in the file
            content = read_bytes(dataset, part, array.datatype) if values is None else values.read(part)
            return np.ascontiguousarray(content).view(kind)
        elements = np.zeros(tuple(axis.stop - axis.start for axis in part), kind)
        dataset.id.read(memory, space, elements, memory_type(array.datatype, dtype))
        return elements
    except FileError:
        raise
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        pass_interrupt(error)
        raise FileError(f"{array.label}: values cannot be read: {error}") from error


def changed_fill(source: Hdf5Array, target: Hdf5Array, objects: tuple[Objects, Objects] | None = None) -> str:
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


def _fill(array: Hdf5Array, own: Objects | None) -> Array:
    """Return the fill value of a dataset in native byte order."""
    undefined, dtype = array.fill_state == h5d.FILL_VALUE_UNDEFINED, array.numpy_type
    content = bytes(array.value_nbytes) if undefined else array.fill_bytes()
    if own is not None and has_references(array.datatype):
        values = np.empty((), object)
        values[()] = followed_value(content, array.datatype, own)
        return values
    if dtype is None or not dtype.hasobject:
        kind = np.dtype((np.void, len(content))) if dtype is None else np.dtype([("element", dtype)])
        values = np.frombuffer(content, kind)[0]
        return np.asarray(values if dtype is None else values["element"])
    return np.asarray(array.fill_value)


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
    """Return a Python object from a file in a form that can be compared with one of another file."""
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
