"""Shared libraries: what their files are called, what this process has loaded, and calls of the C library.

`tamis.filters._plugin_worker` runs this file without the package, so it imports nothing of tamis.

What a system lacks: Windows finds all symbols of a plugin when it loads it, and finds those of a library only in that
library itself, not in the ones that it needs.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pathlib import Path

L = TypeVar("L", bound=ctypes.CDLL)

PLUGIN_SUFFIXES: tuple[str, ...] = {"win32": (".dll",), "darwin": (".dylib", ".so")}.get(sys.platform, (".so",))
"""Endings of HDF5's plugins, as HDF5 knows them."""

# The one that Python and HDF5 share; on other systems the program itself, with all that it has loaded.
_C_LIBRARY = "ucrtbase" if sys.platform == "win32" else None


def is_plugin(name: str) -> bool:
    """Return whether HDF5 takes a file for a plugin, by its name: ``H5PL__find_plugin_in_path``."""
    if PLUGIN_SUFFIXES == (".dll",):
        return name.lower().endswith(".dll")
    return name.startswith("lib") and any(suffix in name for suffix in PLUGIN_SUFFIXES)


def plugin_in(folder: Path, stem: str) -> Path:
    """Return the path of a plugin in a folder, which need not exist, by its name without the ending."""
    paths = [folder / f"{stem}{suffix}" for suffix in PLUGIN_SUFFIXES]
    return next((path for path in paths if path.is_file()), paths[0])


def shared_library_in(folder: Path, stem: str) -> Path | None:
    """Return the path of a shared library in a folder, by its name without the ending; None if there is none."""
    paths = (folder / f"{stem}{suffix}" for suffix in (".so", ".dylib", ".dll"))
    return next((path for path in paths if path.is_file()), None)


def static_library_in(folder: Path, stem: str) -> Path:
    """Return the path of a static library in a folder, which need not exist, by its name without the ending.

    On Windows the ending is that of the compiler's own linker: ``.lib`` for Microsoft's, ``.a`` for MinGW's.
    """
    paths = [folder / f"{stem}{suffix}" for suffix in (".a", ".lib")]
    return next((path for path in paths if path.is_file()), paths[0])


def folders_in(variable: str) -> list[str]:
    """Return the folders that a variable of the environment lists; ``:`` parts them, and ``;`` on Windows."""
    return [folder for folder in os.environ.get(variable, "").split(os.pathsep) if folder]


@cache
def c_library() -> ctypes.CDLL:
    """Return the C library of this process; its calls set `ctypes.get_errno`."""
    return ctypes.CDLL(_C_LIBRARY, use_errno=True)


def c_function(name: str) -> Any:
    """Return a function of the C library; None if it has none of this name, or it cannot be found."""
    try:
        return getattr(c_library(), name)
    except (OSError, AttributeError):
        return None


if sys.platform == "win32":
    from ctypes import wintypes

    _kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
    _kernel32.GetModuleHandleW.restype = wintypes.HANDLE
    _kernel32.GetCurrentProcess.restype = wintypes.HANDLE

    def load(path: str) -> ctypes.CDLL:
        """Load a library; raises OSError if it lacks symbols, too."""
        return ctypes.CDLL(path)

    def is_loaded(path: str) -> bool:
        """Return whether this process has loaded a library, whoever did."""
        return bool(_kernel32.GetModuleHandleW(path))

    def loaded_libraries() -> list[str]:
        """Return the paths of the libraries that this process has loaded: ``K32EnumProcessModules``."""
        process, needed = wintypes.HANDLE(_kernel32.GetCurrentProcess()), wintypes.DWORD()
        modules = (wintypes.HMODULE * 4096)()
        if not _kernel32.K32EnumProcessModules(process, modules, ctypes.sizeof(modules), ctypes.byref(needed)):
            raise ctypes.WinError(ctypes.get_last_error())
        count = min(needed.value // ctypes.sizeof(wintypes.HMODULE), len(modules))
        return [_path_of(wintypes.HMODULE(module)) for module in modules[:count] if module]

    def _path_of(module: wintypes.HMODULE) -> str:
        room = ctypes.create_unicode_buffer(1 << 15)
        _kernel32.GetModuleFileNameW(module, room, len(room))
        return room.value

else:

    def load(path: str) -> ctypes.CDLL:
        """Load a library, whose symbols are found when they are called, as HDF5 does: some plugins lack those of HDF5.

        Raises OSError.
        """
        handle = _dlopen(path, os.RTLD_LAZY)
        if not handle:
            raise OSError(f"{path} cannot be loaded")
        return ctypes.CDLL(path, handle=handle)

    def is_loaded(path: str) -> bool:
        """Return whether this process has loaded a library, whoever did."""
        return bool(_dlopen(path, os.RTLD_LAZY | os.RTLD_NOLOAD))

    def _dlopen(path: str, flags: int) -> int | None:
        dlopen = c_library().dlopen
        dlopen.restype, dlopen.argtypes = ctypes.c_void_p, (ctypes.c_char_p, ctypes.c_int)
        handle: int | None = dlopen(os.fsencode(path), flags)
        return handle

    def loaded_libraries() -> list[str]:
        """Return the paths of the libraries that this process has loaded, in the order of the system's list."""
        return list(dict.fromkeys(_images() if sys.platform == "darwin" else _mapped()))


def _images() -> Iterator[str]:
    """Yield the paths of loaded libraries on macOS, by the functions of ``mach-o/dyld.h``."""
    name_of = c_library()._dyld_get_image_name
    name_of.restype = ctypes.c_char_p
    for number in range(c_library()._dyld_image_count()):
        if (name := name_of(ctypes.c_uint32(number))) is not None:
            yield os.fsdecode(name)


def _mapped() -> Iterator[str]:
    """Yield the paths of loaded libraries on Linux, some of them more than once."""
    library = re.compile(rb"\.so(\.[\w.]+)?$")
    with open("/proc/self/maps", "rb") as lines:
        for line in lines:
            fields = line.rstrip(b"\n").split(maxsplit=5)
            if len(fields) == 6 and library.search(fields[5]):
                yield os.fsdecode(fields[5])


def library_with(symbol: str, extension: str, kind: type[L]) -> L:
    """Return the library with a function, among an extension module and the libraries that it needs.

    `kind` is `ctypes.CDLL` or `ctypes.PyDLL`. Where a library also has the functions of those that it needs, it is the
    module itself. Windows has those that are loaded in the folder of the package, or in one beside it that begins with
    its name; if none has the function, it is the module.
    """
    if PLUGIN_SUFFIXES == (".dll",):
        package = os.path.dirname(extension).lower()
        for path in loaded_libraries():
            if path.lower().startswith(package) and hasattr(library := kind(path), symbol):
                return library
    return kind(extension)
