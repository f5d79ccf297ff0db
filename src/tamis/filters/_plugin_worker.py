"""A process that runs HDF5 filters of other packages on chunks, which may end it: ``python _plugin_worker.py``.

`tamis.filters.plugin_client` runs this file as a script, which imports nothing of tamis for chunks. It calls the
plugins directly, so they get the parameters exactly as in a file.

::

    ready   : READY, once, before the first request
    request : task, u32 | parameter count, u32 | size of the result, at most, u64 | size of the data, u64
              | size of the path of the plugin, u32 | path | parameters | data
    answer  : size, u64 | result; size 0 if there is none, UNLOADABLE if the plugin could not be loaded

    ENCODE, DECODE : data is a chunk, and so is the result
    FIND           : data is JSON of a filter's number and of folders; the result is JSON of a plugin in them
    CALL           : data is JSON of folders of modules, a module, one of its functions and the arguments; the result is
                     JSON of what the function returns

All numbers are little-endian.
"""

import ctypes
import os
import struct
import sys
import threading
import time
from contextlib import suppress
from importlib import import_module
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING or __name__ != "__main__":
    from tamis.system import libraries, memory
else:

    def _module(name):
        """Return a module of `tamis.system`, without the package, which takes as long to import as many chunks."""
        module = ModuleType(name)
        file = os.path.join(os.path.dirname(os.path.dirname(__file__)), "system", f"{name}.py")
        SourceFileLoader(name, file).exec_module(module)
        return module

    libraries, memory = _module("libraries"), _module("memory")

REQUEST = struct.Struct("<IIQQI")
ANSWER = struct.Struct("<Q")
READY = b"\1"
UNLOADABLE = (1 << 64) - 1
"""The size in an answer if the plugin cannot be loaded."""

TOO_MUCH_MEMORY = 9
"""The exit code of a process that takes more memory than a chunk can need."""

ENCODE, DECODE, FIND, CALL = 0, 0x100, 1, 2
"""Tasks: the first two are the flags that HDF5 passes to a filter."""
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
SetLocal = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


class FilterClass(ctypes.Structure):
    """H5Z_class2_t of H5Zpublic.h, which a plugin returns."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("id", ctypes.c_int),
        ("encodes", ctypes.c_uint),
        ("decodes", ctypes.c_uint),
        ("name", ctypes.c_char_p),
        ("can_apply", ctypes.c_void_p),
        ("set_local", SetLocal),
        ("filter", Callback),
    )


LIBC = libraries.c_library()
LIBC.malloc.restype = ctypes.c_void_p
LIBC.malloc.argtypes = (ctypes.c_size_t,)
LIBC.free.argtypes = (ctypes.c_void_p,)

CLASS_VERSION = 1
"""H5Z_CLASS_T_VERS."""

_loaded: dict[str, FilterClass] = {}


def load_class(path: str) -> FilterClass:
    """Return a plugin's description of its filter; raises OSError or AttributeError if it is not a filter plugin."""
    if path not in _loaded:
        plugin = libraries.load(path)
        if plugin.H5PLget_plugin_type():
            raise AttributeError(f"{path} has no filter")
        plugin.H5PLget_plugin_info.restype = ctypes.POINTER(FilterClass)
        _loaded[path] = plugin.H5PLget_plugin_info().contents
    return _loaded[path]


def is_loaded(path: str) -> bool:
    """Return whether this process has loaded a plugin, whoever did."""
    return libraries.is_loaded(path)


def _find(question: bytes) -> bytes:
    """Return the first plugin for a filter in folders; nothing if there is none."""
    import json

    code, folders = json.loads(question)
    for folder in folders:
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            if libraries.is_plugin(name):
                with suppress(OSError, AttributeError):
                    plugin = load_class(path)
                    if plugin.id == code and plugin.version == CLASS_VERSION:
                        label = (plugin.name or b"").decode("utf-8", "replace")
                        abilities = plugin.encodes, plugin.decodes, plugin.can_apply or plugin.set_local
                        return json.dumps([path, label, *map(bool, abilities)]).encode()
    return b""


def _call(request: bytes) -> bytes:
    """Call a function by its module and name; the requesting process says where modules are."""
    import json

    sys.path[:], module, name, arguments = json.loads(request)
    return json.dumps(getattr(import_module(module), name)(*arguments)).encode()


def _filtered(call: Any, flags: int, cd_values: tuple[int, ...], data: bytes, most: int) -> bytes:
    """Call a filter as HDF5 does: it may replace the buffer with another."""
    buffer = ctypes.c_void_p(LIBC.malloc(max(1, len(data))))
    ctypes.memmove(buffer, data, len(data))
    size = ctypes.c_size_t(len(data))
    c_values = (ctypes.c_uint * len(cd_values))(*cd_values)
    nbytes = call(flags, len(cd_values), c_values, len(data), ctypes.byref(size), ctypes.byref(buffer))
    # in bounds: a filter returns the bytes of the buffer that it leaves.
    result = ctypes.string_at(buffer, nbytes) if nbytes <= most and buffer else b""
    LIBC.free(buffer)
    return result


class _Limits:
    """Ends the process when it takes more memory than a chunk can need, as decoders of damaged chunks do."""

    def __init__(self) -> None:
        self._most = _RESIDENT
        threading.Thread(target=self._watch, daemon=True).start()

    def set(self, nbytes: int) -> None:
        """Allow the memory that a chunk of this size may take."""
        self._most = _RESIDENT + _TIMES * nbytes
        memory.limit_addresses(_ADDRESSES + _TIMES * nbytes)

    def _watch(self) -> None:
        while True:
            if memory.resident_nbytes() > self._most:
                os._exit(TOO_MUCH_MEMORY)
            time.sleep(_EVERY)


def _answer(task: int, path: str, cd_values: tuple[int, ...], data: bytes, most: int) -> bytes:
    if task == FIND:
        return _find(data)
    if task == CALL:
        return _call(data)
    return _filtered(load_class(path).filter, task, cd_values, data, most)


def _serve(source: BinaryIO, sink: BinaryIO) -> None:
    limits = _Limits()
    sink.write(READY)
    sink.flush()
    while header := source.read(REQUEST.size):
        task, count, most, length, path_length = REQUEST.unpack(header)
        path = os.fsdecode(source.read(path_length))
        cd_values = struct.unpack(f"<{count}I", source.read(4 * count))
        data = source.read(length)
        limits.set(most + length)
        try:
            result = _answer(task, path, cd_values, data, most)
            sink.write(ANSWER.pack(len(result)) + result)
        except (OSError, AttributeError):
            sink.write(ANSWER.pack(UNLOADABLE))
        sink.flush()


def main() -> None:
    """Answer requests until the input ends."""
    with open(os.dup(1), "wb") as sink:
        # Plugins may print to descriptors 1 and 2: answers use a duplicate, and prints are discarded.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        _serve(sys.stdin.buffer, sink)


if __name__ == "__main__":
    main()
