"""Filters of plugins that were built for another libhdf5, in the form in which tamis gives them to this one.

The functions of a plugin for chunks call no HDF5, and work for every libhdf5. The function for new datasets does: it
asks the libhdf5 that the plugin was built for about a dataset of another one. Here tamis answers in its place.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from h5py import h5t

from tamis.errors import StreamError
from tamis.filters import ChunkType, Request
from tamis.filters._plugin_worker import CLASS_VERSION, DECODE, LIBC, Callback, FilterClass, SetLocal, load_class
from tamis.filters.registry import is_group_safe, is_known, is_safe, requested_filter
from tamis.formats.hdf5.lib import calls

if TYPE_CHECKING:
    from tamis.filters.plugin_client import Plugin

_MOST_VALUES, _MOST_AXES = 256, 32

AskDataset = Callable[[int, int, int], None]
"""Replaces the parameters of a filter in the creation properties of a dataset of a type, by their identifiers."""


def class_of(plugin: Plugin, library: ctypes.CDLL, ask: AskDataset | None = None) -> FilterClass:
    """Return the H5Z_class2_t of a filter for a libhdf5; it must stay in memory.

    Its function is that of the plugin; if that may end the process, a separate process calls it. Parameters of filters
    that tamis knows are those of tamis, others are what `ask` makes of them.
    """
    if is_known(plugin.id):
        ask = partial(_complete, library, plugin.id)
    asks = SetLocal(partial(_asked, library, ask)) if ask is not None else SetLocal()
    run = load_class(plugin.path).filter if is_safe(plugin.id) else Callback(partial(_run, plugin, library))
    numbers = CLASS_VERSION, plugin.id, plugin.encodes, plugin.decodes
    return FilterClass(*numbers, plugin.label.encode(), None, asks, run)


def _asked(library: ctypes.CDLL, ask: AskDataset, plist: int, datatype: int, space: int) -> int:
    try:
        ask(plist, datatype, space)
    except BaseException as error:  # an interrupt, too: no exception passes through HDF5
        return calls.failure(error, -1, library)
    return 0


def _run(
    plugin: Plugin, library: ctypes.CDLL, flags: int, count: int, cd_values: Any, nbytes: int, room: Any, buffer: Any
) -> int:
    """Filter a chunk in the separate process."""
    try:
        data = ctypes.string_at(buffer[0], nbytes)
        result = plugin.filtered(data, tuple(cd_values[:count]), encodes=not flags & DECODE)
    except BaseException as error:  # as above
        return calls.failure(error, 0, library)
    # The buffer never shrinks: H5Ocopy of HDF5 2.0 copies cached chunks unchecked into the previous one's buffer.
    if len(result) > room[0]:
        if not (address := LIBC.malloc(len(result))):
            return 0
        LIBC.free(buffer[0])
        buffer[0], room[0] = address, len(result)
    ctypes.memmove(buffer[0], result, len(result))
    return len(result)


def _complete(library: ctypes.CDLL, code: int, plist: int, datatype: int, _: int) -> None:
    """Replace the parameters of a filter that tamis knows by those that the file records."""
    if plist < 0:
        if not is_group_safe(code):
            raise StreamError(f"filter {code}: cannot filter the links of a group, which have no type and no chunks")
        return
    shape = (ctypes.c_uint64 * _MOST_AXES)()
    rank = library.H5Pget_chunk(ctypes.c_int64(plist), _MOST_AXES, shape)
    _check(rank, "H5Pget_chunk")
    chunk = ChunkType(h5t.decode(_encoded(library, datatype)).dtype, tuple(shape[:rank]))
    flags, count, values = ctypes.c_uint(), ctypes.c_size_t(_MOST_VALUES), (ctypes.c_uint * _MOST_VALUES)()
    out = ctypes.byref(flags), ctypes.byref(count), values, ctypes.c_size_t(0), None, ctypes.byref(ctypes.c_uint())
    _check(library.H5Pget_filter_by_id2(ctypes.c_int64(plist), code, *out), "H5Pget_filter_by_id2")
    stored = requested_filter(Request(code, tuple(values[: count.value]))).stored(chunk)
    words = ctypes.c_size_t(len(stored)), (ctypes.c_uint * len(stored))(*stored)
    _check(library.H5Pmodify_filter(ctypes.c_int64(plist), code, flags, *words), "H5Pmodify_filter")


def _encoded(library: ctypes.CDLL, datatype: int) -> bytes:
    """Return a type as all libraries describe it in a file."""
    nbytes = ctypes.c_size_t()
    _check(library.H5Tencode(ctypes.c_int64(datatype), None, ctypes.byref(nbytes)), "H5Tencode")
    code = ctypes.create_string_buffer(nbytes.value)
    _check(library.H5Tencode(ctypes.c_int64(datatype), code, ctypes.byref(nbytes)), "H5Tencode")
    return code.raw


def _check(status: int, name: str) -> None:
    if status < 0:
        raise StreamError(f"{name} of libhdf5 failed")
