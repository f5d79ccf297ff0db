"""A process that tries what may end it: ``python _probe.py TASK``, with a JSON list of items on standard input.

It writes a line of JSON for each item before it is tried, and one with the result, so that whoever asks knows at which
item it ended. It imports nothing of tamis, whose import changes what h5py and netCDF4 can read, but for tasks that say
so.
"""

import ctypes
import json
import locale
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __name__ != "__main__":
    from tamis.system import libraries
else:
    # Without the package; see above.
    libraries = ModuleType("libraries")
    SourceFileLoader(
        "libraries", os.path.join(os.path.dirname(__file__), "..", "..", "system", "libraries.py")
    ).exec_module(libraries)


class _FilterClass(ctypes.Structure):
    """The beginning of H5Z_class2_t, which a plugin returns."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("id", ctypes.c_int),
        ("encodes", ctypes.c_uint),
        ("decodes", ctypes.c_uint),
        ("name", ctypes.c_char_p),
    )


def plugin(path: str) -> dict[str, Any]:
    """Load a plugin as HDF5 does; return number and name of its filter, no number if it is a plugin of another kind."""
    try:
        loaded = libraries.load(path)
    except OSError:
        raise OSError(_reason() or "cannot be loaded") from None
    try:
        kind, info = loaded.H5PLget_plugin_type, loaded.H5PLget_plugin_info
    except AttributeError:
        return {"id": None, "name": ""}
    if kind():
        return {"id": None, "name": ""}
    info.restype = ctypes.POINTER(_FilterClass)
    found = info().contents
    return {"id": found.id, "name": (found.name or b"").decode("utf-8", "replace")}


def _reason() -> str:
    """Return why a library was not loaded, as the system says it."""
    with suppress(AttributeError):
        dlerror = libraries.c_library().dlerror
        dlerror.restype = ctypes.c_char_p
        return (dlerror() or b"").decode("utf-8", "replace")
    return ""


def hdf5_of(names: str) -> list[dict[str, Any]]:
    """Import packages; return the HDF5 libraries that each of them brings, none twice, or why it cannot be imported."""
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    for name in names.split():
        try:
            import_module(name)
        except BaseException as error:
            found.append({"of": name, "error": f"{type(error).__name__}: {error}"})
            continue
        paths = [path for path in libraries.loaded_libraries() if _is_hdf5(path) and path not in seen]
        seen.update(paths)
        found += [{"of": name, **_described(path)} for path in paths]
    return found


def imports(name: str) -> str:
    """Import a package; return why it cannot be imported, with the place that says so, or else nothing."""
    try:
        import_module(name)
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = "" if trace is None else trace.tb_frame.f_code.co_filename
        return f"{type(error).__name__}: {error} ({place})"
    return ""


def hdf5_of_system(name: str) -> list[dict[str, Any]]:
    """Return the library of this name that programs of the system load; none if there is none."""
    from ctypes.util import find_library

    file = find_library(name)
    if file is None:
        return []
    ctypes.CDLL(file)
    paths = [path for path in libraries.loaded_libraries() if _is_hdf5(path)]
    return [{"of": "system", **_described(path)} for path in paths or [file]]


def _is_hdf5(path: str) -> bool:
    """Return whether a path is that of libhdf5 itself, of any build: libhdf5.so.310, libhdf5_serial.so, hdf5.dll."""
    stem = os.path.basename(path).lower().removeprefix("lib").partition(".")[0]
    kind = stem.partition("-")[0]
    return kind in ("hdf5", "hdf5_serial", "hdf5_openmpi", "hdf5_mpich")


def _described(path: str) -> dict[str, Any]:
    """Return path and version of an HDF5 library, and the folders in which it searches plugins."""
    library = ctypes.CDLL(path)
    numbers = [ctypes.c_uint() for _ in range(3)]
    library.H5open()
    library.H5get_libversion(*map(ctypes.byref, numbers))
    folders: list[str] = []
    count, room = ctypes.c_uint(), ctypes.create_string_buffer(4096)
    with suppress(AttributeError):  # HDF5 before 1.10
        library.H5PLsize(ctypes.byref(count))
        for index in range(count.value):
            library.H5PLget(ctypes.c_uint(index), room, ctypes.c_size_t(len(room)))
            folders.append(os.fsdecode(room.value))
    return {"path": path, "version": ".".join(str(number.value) for number in numbers), "folders": folders}


def written(item: list[str]) -> bool:
    """Write a small file with a filter; item has the path and the text of the filter. Imports tamis."""
    path, text = item
    h5py, hdf5, numpy = import_module("h5py"), import_module("tamis.hdf5"), import_module("numpy")
    values = numpy.arange(16**3, dtype="f4").reshape(16, 16, 16)
    with h5py.File(path, "w") as file:
        hdf5.write(file, "x", values, filters=text, chunks=(16, 16, 16))
    return True


def read_by_h5py(path: str) -> bool:
    """Read a file as written above."""
    with import_module("h5py").File(path) as file:
        return bool(file["x"][()].shape)


def read_by_hdf5plugin(path: str) -> bool:
    """Read a file by h5py with the plugins of the package hdf5plugin."""
    import_module("hdf5plugin")
    return read_by_h5py(path)


def read_by_netcdf4(path: str) -> bool:
    """Read a file by netCDF4."""
    with import_module("netCDF4").Dataset(path) as file:
        return bool(file["x"][:].shape)


def read_by_tamis(path: str) -> bool:
    """Read a file by tamis."""
    with import_module("tamis").open(path) as file:
        return bool(file["x"][...].shape)


def locked(path: str) -> bool:
    """Make a file with HDF5's own lock."""
    with import_module("h5py").File(path, "w", locking=True):
        return True


def known_locale(name: str) -> bool:
    """Take a locale; raises locale.Error if the system has none of this name."""
    locale.setlocale(locale.LC_ALL, name)
    return True


TASKS: Mapping[str, Callable[[Any], Any]] = {
    "plugin": plugin,
    "imports": imports,
    "hdf5 of": hdf5_of,
    "hdf5 of system": hdf5_of_system,
    "written": written,
    "h5py": read_by_h5py,
    "hdf5plugin": read_by_hdf5plugin,
    "netCDF4": read_by_netcdf4,
    "tamis": read_by_tamis,
    "locked": locked,
    "locale": known_locale,
}


def main(task: str) -> None:
    """Try each item."""
    with open(os.dup(1), "w", encoding="utf-8") as sink:
        # Libraries may print to descriptors 1 and 2: answers use a duplicate, and prints are discarded.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        for item in json.load(sys.stdin):
            print("begin", file=sink, flush=True)
            try:
                answer = {"value": TASKS[task](item)}
            except BaseException as error:  # of libraries, which raise anything
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), file=sink, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
