"""A process that runs hdf5plugin's HDF5 filters on chunks, which may end it: ``python _plugin_worker.py FOLDER``.

FOLDER holds the plugins. `tamis.filters._plugin_client` runs this file as a script, which imports nothing of tamis. It
calls the plugins directly, so that they get the parameters exactly as they stand in a file.

::

    ready   : READY, once, before the first request
    request : DECODE or ENCODE, u32 | parameter count, u32 | size of the result, at most if it is encoded, u64
              | size of the chunk, u64 | size of the name, u32 | name | parameters | chunk
    answer  : size, u64 | result; size 0 if there is none, UNLOADABLE if the plugin could not be loaded

All numbers are little-endian.
"""

import ctypes
import os
import resource
import struct
import sys
import threading
import time
from typing import Any, BinaryIO

REQUEST = struct.Struct("<IIQQI")
ANSWER = struct.Struct("<Q")
READY = b"\1"
UNLOADABLE = (1 << 64) - 1
"""The size in an answer if the plugin cannot be loaded."""

ENCODE, DECODE = 0, 0x100
"""Flags that HDF5 passes to a filter."""
# Bytes of address space: for byte-swapped values SZ3 allocates 9 GiB and touches little of it.
_ADDRESSES = 1 << 34
_RESIDENT = 1 << 30  # bytes of resident memory, in addition to _TIMES the size of the chunk
_TIMES = 64
_EVERY = 0.05  # seconds between two checks of resident memory


Callback = ctypes.CFUNCTYPE(
    ctypes.c_size_t,
    ctypes.c_uint,
    ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_uint),
    ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_size_t),
    ctypes.POINTER(ctypes.c_void_p),
)


class _Class(ctypes.Structure):
    """H5Z_class2_t of H5Zpublic.h, which a plugin returns."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("id", ctypes.c_int),
        ("encodes", ctypes.c_uint),
        ("decodes", ctypes.c_uint),
        ("name", ctypes.c_char_p),
        ("can_apply", ctypes.c_void_p),
        ("set_local", ctypes.c_void_p),
        ("filter", Callback),
    )


LIBC = ctypes.CDLL(None)
LIBC.malloc.restype = ctypes.c_void_p
LIBC.malloc.argtypes = (ctypes.c_size_t,)
LIBC.free.argtypes = (ctypes.c_void_p,)


def load_filter(path: str) -> Any:
    """Return the callback of a plugin."""
    plugin = ctypes.CDLL(path)
    plugin.H5PLget_plugin_info.restype = ctypes.POINTER(_Class)
    return plugin.H5PLget_plugin_info().contents.filter


def _filtered(call: Any, flags: int, cd_values: tuple[int, ...], data: bytes, expected: int) -> bytes:
    """Call a filter as HDF5 does: it may replace the buffer with another."""
    buffer = ctypes.c_void_p(LIBC.malloc(max(1, len(data))))
    ctypes.memmove(buffer, data, len(data))
    size = ctypes.c_size_t(len(data))
    c_values = (ctypes.c_uint * len(cd_values))(*cd_values)
    nbytes = call(flags, len(cd_values), c_values, len(data), ctypes.byref(size), ctypes.byref(buffer))
    # in bounds: a filter returns the bytes of the buffer that it leaves.
    is_result = nbytes <= expected if flags == ENCODE else nbytes == expected
    result = ctypes.string_at(buffer, nbytes) if is_result and buffer else b""
    LIBC.free(buffer)
    return result


class _Limits:
    """Ends the process when it takes more memory than a chunk can need, which damaged chunks make decoders do."""

    def __init__(self) -> None:
        self._most = _RESIDENT
        threading.Thread(target=self._watch, daemon=True).start()

    def set(self, nbytes: int) -> None:
        """Allow the memory that a chunk of this size may take."""
        self._most = _RESIDENT + _TIMES * nbytes
        addresses = _ADDRESSES + _TIMES * nbytes
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(
            resource.RLIMIT_AS, (addresses if hard == resource.RLIM_INFINITY else min(addresses, hard), hard)
        )

    def _watch(self) -> None:
        with open("/proc/self/statm", "rb", buffering=0) as statm:
            while True:
                statm.seek(0)
                if int(statm.read(256).split()[1]) * resource.getpagesize() > self._most:
                    os._exit(1)
                time.sleep(_EVERY)


def _serve(folder: str, source: BinaryIO, sink: BinaryIO) -> None:
    filters: dict[str, Any] = {}
    limits = _Limits()
    sink.write(READY)
    sink.flush()
    while header := source.read(REQUEST.size):
        flags, count, expected, length, name_length = REQUEST.unpack(header)
        name = source.read(name_length).decode()
        cd_values = struct.unpack(f"<{count}I", source.read(4 * count))
        data = source.read(length)
        try:
            filters[name] = filters.get(name) or load_filter(os.path.join(folder, name))
        except (OSError, AttributeError):
            sink.write(ANSWER.pack(UNLOADABLE))
            sink.flush()
            continue
        limits.set(expected + length)
        result = _filtered(filters[name], flags, cd_values, data, expected)
        sink.write(ANSWER.pack(len(result)) + result)
        sink.flush()


def main() -> None:
    """Answer requests until the input ends."""
    with open(os.dup(1), "wb") as sink:
        # Plugins may print to descriptors 1 and 2: answers use a duplicate, and prints are discarded.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        _serve(sys.argv[1], sys.stdin.buffer, sink)


if __name__ == "__main__":
    main()
