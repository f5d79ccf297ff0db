"""The libnetcdf inside netCDF4-python, and its libhdf5, through ctypes.

Symbols are looked up in the extension module of netCDF4 and the libraries it needs, so there is no second copy of
either. Calls keep the GIL: netCDF-C may not be called by two threads at once.

The folders that netCDF-C searches for plugins, ``nc_plugin_path_…``, exist from netcdf-c 4.9.3 on. HDF5 searches a
folder when it first needs a filter, so folders can be added at any time; NCZarr loads all plugins once, when it first
needs one.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint, c_void_p
from functools import cache
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np

from tamis.arguments import PATH, Kind
from tamis.errors import FileError, MissingFilterError, ParameterError, TamisError
from tamis.filters import Request, Stage
from tamis.filters.plugin_folders import netcdf4_folder
from tamis.filters.zfp import filter_class, has_nczarr_codec, plugin_path
from tamis.meaning.variables import NON_COORDINATE
from tamis.optional import optional
from tamis.system.libraries import library_with

CODES = MappingProxyType(
    {
        "NC_EBADID": -33,
        "NC_EINVAL": -36,
        "NC_EPERM": -37,
        "NC_ENOTINDEFINE": -38,
        "NC_EINDEFINE": -39,
        "NC_ENAMEINUSE": -42,
        "NC_EBADTYPE": -45,
        "NC_EBADDIM": -46,
        "NC_ENOTVAR": -49,
        "NC_EBADNAME": -59,
        "NC_EHDFERR": -101,
        "NC_ENOTNC4": -111,
        "NC_ESTRICTNC3": -112,
        "NC_ELATEDEF": -123,
        "NC_EBADCHUNK": -127,
        "NC_ENOTBUILT": -128,
        "NC_EFILTER": -132,
        "NC_ENOFILTER": -136,
        "NC_EPLUGIN": -142,
    }
)
"""Codes of netCDF-C by their names, those that concern filters."""

_NAMES = {code: name for name, code in CODES.items()}
_MEANINGS = {
    "NC_EBADID": "the dataset is not open",
    "NC_EINVAL": "netCDF-C refuses the parameters",
    "NC_EPERM": "the dataset is open for reading only",
    "NC_EINDEFINE": "the dataset is not in define mode",
    "NC_ENOTVAR": "there is no such variable",
    "NC_EHDFERR": "HDF5 reports an error",
    "NC_ENOTNC4": "only netCDF-4 files have filters",
    "NC_ELATEDEF": "the variable is in the file already",
    "NC_EFILTER": "the filter does not take these parameters, or this type of variable",
    "NC_ENOFILTER": "netCDF's HDF5 does not have the filter",
    "NC_EPLUGIN": "a plugin could not be loaded",
}
_PARAMETER = {"NC_EINVAL", "NC_EBADTYPE", "NC_EBADDIM", "NC_EBADNAME", "NC_EBADCHUNK", "NC_EFILTER", "NC_ENAMEINUSE"}
_FILTER = {"NC_ENOFILTER", "NC_EPLUGIN", "NC_ENOTBUILT"}


class NetcdfError(TamisError):
    """A status of netCDF-C that is not NC_NOERR, or one that netCDF-C should have returned.

    Each is also a `ParameterError`, `MissingFilterError` or `FileError`; `path` and `dataset` name file and variable.
    """

    code: int = 0  # The status, such as -136

    @property
    def name(self) -> str:
        """The name of the status, such as ``NC_ENOFILTER``."""
        return _NAMES.get(self.code, f"status {self.code}")


class NetcdfParameterError(NetcdfError, ParameterError):
    """A status that blames parameters."""


class NetcdfFilterError(NetcdfError, MissingFilterError):  # type: ignore[override,misc]  # ImportError has them too
    """A status that blames an absent filter."""


class NetcdfFileError(NetcdfError, FileError):
    """A status that blames the file, or the moment."""


def status_error(code: int, text: str = "") -> NetcdfError:
    """Return the exception of a status."""
    name = _NAMES.get(code, "")
    kind = NetcdfParameterError if name in _PARAMETER else NetcdfFilterError if name in _FILTER else NetcdfFileError
    meaning = text or _MEANINGS.get(name, "netCDF-C failed")
    error = kind(f"{meaning} ({name}, {code})" if name else f"{meaning} (status {code})")
    error.code = code
    return error


def named_error(name: str, text: str) -> NetcdfError:
    """Return the exception of a status by its name; see `status_error`."""
    return status_error(CODES[name], text)


Unsigned = c_uint
_int_p, _unsigned_p, _size_p = POINTER(c_int), POINTER(c_uint), POINTER(c_size_t)
_VARIABLE = (c_int, c_int)

_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "nc_inq_format_extended": (c_int, _int_p, _int_p),
    "nc_inq_var_chunking": (*_VARIABLE, _int_p, _size_p),
    "nc_def_var_chunking": (*_VARIABLE, c_int, _size_p),
    "nc_def_var_filter": (*_VARIABLE, c_uint, c_size_t, _unsigned_p),
    "nc_inq_var_filter_ids": (*_VARIABLE, _size_p, _unsigned_p),
    "nc_inq_var_filter_info": (*_VARIABLE, c_uint, _size_p, _unsigned_p),
    "nc_inq_var_filter": (*_VARIABLE, _unsigned_p, _size_p, _unsigned_p),
    "nc_inq_filter_avail": (c_int, c_uint),
    "nc_def_var_deflate": (*_VARIABLE, c_int, c_int, c_int),
    "nc_inq_var_deflate": (*_VARIABLE, _int_p, _int_p, _int_p),
    "nc_def_var_fletcher32": (*_VARIABLE, c_int),
    "nc_inq_var_fletcher32": (*_VARIABLE, _int_p),
    "nc_def_var_szip": (*_VARIABLE, c_int, c_int),
    "nc_inq_var_szip": (*_VARIABLE, _int_p, _int_p),
    "nc_def_var_bzip2": (*_VARIABLE, c_int),
    "nc_inq_var_bzip2": (*_VARIABLE, _int_p, _int_p),
    "nc_def_var_zstandard": (*_VARIABLE, c_int),
    "nc_inq_var_zstandard": (*_VARIABLE, _int_p, _int_p),
    "nc_def_var_blosc": (*_VARIABLE, c_uint, c_uint, c_uint, c_uint),
    "nc_inq_var_blosc": (*_VARIABLE, _int_p, _unsigned_p, _unsigned_p, _unsigned_p, _unsigned_p),
    "nc_def_var_quantize": (*_VARIABLE, c_int, c_int),
    "nc_inq_var_quantize": (*_VARIABLE, _int_p, _int_p),
    "nc_plugin_path_ndirs": (_size_p,),
    "nc_plugin_path_get": (c_void_p,),
    "nc_plugin_path_set": (c_void_p,),
    "H5PLsize": (_unsigned_p,),
    "H5PLget": (c_uint, c_char_p, c_size_t),
    "H5Zregister": (c_void_p,),
    "H5Fflush": (c_int64, c_int),
    "H5Fget_obj_count": (c_int64, c_uint),
    "H5Fget_obj_ids": (c_int64, c_uint, c_size_t, POINTER(c_int64)),
    "H5Fget_name": (c_int64, c_char_p, c_size_t),
    "H5Fget_intent": (c_int64, _unsigned_p),
    "H5Lexists": (c_int64, c_char_p, c_int64),
    "H5Dopen2": (c_int64, c_char_p, c_int64),
    "H5Dget_create_plist": (c_int64,),
    "H5Dclose": (c_int64,),
    "H5Pclose": (c_int64,),
    "H5Pget_nfilters": (c_int64,),
    "H5Pget_filter2": (c_int64, c_uint, _unsigned_p, _size_p, _unsigned_p, c_size_t, c_char_p, _unsigned_p),
}
_WIDE = {"H5PLget", "H5Fget_obj_count", "H5Fget_obj_ids", "H5Fget_name", "H5Dopen2", "H5Dget_create_plist"}
"""Calls that return 64 bits."""

_LIMITS = {c_int: (-(1 << 31), (1 << 31) - 1), c_uint: (0, (1 << 32) - 1)}

_NEW = ("quantize", "bzip2", "zstandard", "blosc")
_SINCE = {
    **dict.fromkeys(("nc_inq_var_filter_ids", "nc_inq_var_filter_info"), "4.8.0"),
    **dict.fromkeys((f"nc_{verb}_var_{name}" for verb in ("def", "inq") for name in _NEW), "4.9.0"),
    **dict.fromkeys(("nc_plugin_path_ndirs", "nc_plugin_path_get", "nc_plugin_path_set"), "4.9.3"),
    "nc_inq_filter_avail": "4.9.0",
}
"""The first netcdf-c that has a call, where that is newer than 4.7."""


def netcdf4() -> Any:
    """Return the module netCDF4."""
    return optional("netCDF4", "tamis.netcdf works through netCDF4, not installed here: pip install 'tamis[netcdf]'")


def version() -> str:
    """Return the version of netcdf-c."""
    return str(netcdf4().__netcdf4libversion__)


def has(name: str) -> bool:
    """Return whether libnetcdf, or its libhdf5, has a call."""
    return hasattr(loaded(name), name)


def call(name: str, *arguments: Any) -> int:
    """Call a function and return its result, a status for those of netCDF-C."""
    function = _function(name)
    for kind, argument in zip(_ARGUMENTS[name], arguments, strict=True):
        low, high = _LIMITS.get(kind, (0, 0))
        if high and not (isinstance(argument, (int, np.integer)) and low <= argument <= high):
            raise ParameterError(f"expected whole numbers of {low} to {high} for {name}, got {argument!r}")
    return int(function(*arguments))


@cache
def loaded(symbol: str = "H5open") -> ctypes.PyDLL:
    """Return libnetcdf or its libhdf5, by the name of a function; the same one has both where the system allows it."""
    netcdf4()
    import netCDF4._netCDF4 as extension

    return library_with(symbol, str(extension.__file__), ctypes.PyDLL)


@cache
def _function(name: str) -> Any:
    try:
        function = getattr(loaded(name), name)
    except AttributeError:
        since = _SINCE.get(name)
        advice = f": upgrade netCDF4 to one with netcdf-c {since}" if since else ""
        raise FileError(
            f"expected netcdf-c {since or 'with HDF5'}, which has {name}, got {version()} in netCDF4"
            f" {netcdf4().__version__}{advice}"
        ) from None
    function.argtypes = _ARGUMENTS[name]
    function.restype = c_int64 if name in _WIDE else c_int
    return function


_ALL, _FILES = 0x1F, 0x01
_READ_WRITE = 0x01
_OPTIONAL = 0x01
_MOST_VALUES, _LABEL_NBYTES = 256, 512
_IMAGE = "file_image_"


def is_read_only(path: str) -> bool:
    """Return whether a file of netCDF is open for reading only; False if HDF5 does not have it."""
    file = _open_file(path)
    if file is None:
        return False
    intent = Unsigned()
    return call("H5Fget_intent", file, ctypes.byref(intent)) >= 0 and not intent.value & _READ_WRITE


def stored_stages(path: str, group: str, name: str) -> list[Stage] | None:
    """Return the filters of a variable in the file, as HDF5 runs them; None if the file does not have it yet."""
    file = _open_file(path)
    if file is None:
        raise FileError(f"{path}: netCDF's HDF5 has no file open under this name")
    for stem in (f"{NON_COORDINATE}{name}", name):
        place = f"{group.rstrip('/')}/{stem}".encode("utf-8", "surrogateescape")
        if call("H5Lexists", file, place, 0) > 0:
            with _creation_list(file, place) as plist:
                return [_stage(plist, index) for index in range(call("H5Pget_nfilters", plist))]
    return None


def _open_file(path: str) -> int | None:
    files = open_files()
    exact = [file for file, name in files.items() if name == path]
    same = exact or [file for file, name in files.items() if _is_same(name, path)]
    if not same and not os.path.exists(path):  # a dataset in memory, to which HDF5 gives its own name
        same = [file for file, name in files.items() if name.startswith(_IMAGE)]
        same = same if len(same) == 1 else []
    return same[0] if same else None


def open_files() -> dict[int, str]:
    """Return the files that netCDF's HDF5 has open: names by identifier."""
    count = max(call("H5Fget_obj_count", _ALL, _FILES), 0)
    ids = (ctypes.c_int64 * max(count, 1))()
    count = min(count, call("H5Fget_obj_ids", _ALL, _FILES, count, ids))
    return {file: _name(file) for file in ids[: max(count, 0)]}


def _name(file: int) -> str:
    room = ctypes.create_string_buffer(max(call("H5Fget_name", file, None, 0), 0) + 1)
    call("H5Fget_name", file, room, len(room))
    return os.fsdecode(room.value)


def _is_same(first: str, second: str) -> bool:
    try:
        return os.path.samefile(first, second)
    except (OSError, ValueError):
        return False


@contextmanager
def _creation_list(file: int, place: bytes) -> Iterator[int]:
    """Open the creation properties of a dataset."""
    dataset = call("H5Dopen2", file, place, 0)
    plist = -1 if dataset < 0 else call("H5Dget_create_plist", dataset)
    try:
        if plist < 0:
            raise FileError(f"{place.decode(errors='replace')}: HDF5 cannot open the dataset")
        yield plist
    finally:
        if plist >= 0:
            call("H5Pclose", plist)
        if dataset >= 0:
            call("H5Dclose", dataset)


def _stage(plist: int, index: int) -> Stage:
    flags, config, count = Unsigned(), Unsigned(), ctypes.c_size_t(_MOST_VALUES)
    values, label = (Unsigned * _MOST_VALUES)(), ctypes.create_string_buffer(_LABEL_NBYTES)
    out = (ctypes.byref(flags), ctypes.byref(count), values, _LABEL_NBYTES - 1, label, ctypes.byref(config))
    number = call("H5Pget_filter2", plist, index, *out)
    if number < 0:
        raise FileError(f"HDF5 cannot read filter {index + 1} of the list")
    stored = tuple(values[: min(count.value, _MOST_VALUES)])
    text = label.value.decode("utf-8", "replace")
    return Stage.listed(Request(number, stored), text, optional=bool(flags.value & _OPTIONAL), total=count.value)


def register(extension: ModuleType) -> None:
    """Give the plugin to libhdf5 and NCZarr of netCDF4, by its extension module, and to both netCDF4's own plugins.

    netCDF4 names the folder of these in HDF5_PLUGIN_PATH, but only if the variable is not set. They come first: others
    may be for another HDF5, with which variables cannot be created.
    """
    # netCDF4 is being imported: `loaded` would wait for it.
    library = library_with("H5Zregister", str(extension.__file__), ctypes.PyDLL)
    if not hasattr(library, "H5Zregister"):
        return  # linked statically, without symbols: HDF5_PLUGIN_PATH remains
    library.H5Zregister(ctypes.c_void_p(filter_class()))
    netcdf = library_with("nc_plugin_path_set", str(extension.__file__), ctypes.PyDLL)
    if not hasattr(netcdf, "nc_plugin_path_set"):
        return  # netcdf-c before 4.9.3 has only HDF5_PLUGIN_PATH
    folders = plugin_path_get()
    if (own := netcdf4_folder()) is not None:
        folders = [str(own), *(folder for folder in folders if folder != str(own))]
    if has_nczarr_codec():
        # NCZarr loads plugins only from folders, and all at once when it needs the first.
        folders = [*folders, str(plugin_path())]
    plugin_path_set(folders)


class _List(ctypes.Structure):
    """NCPluginList."""

    _fields_ = (("ndirs", ctypes.c_size_t), ("dirs", ctypes.POINTER(ctypes.c_char_p)))


def plugin_path_get() -> list[str]:
    """Return the folders, in the order of the search."""
    count = ctypes.c_size_t()
    _check(call("nc_plugin_path_ndirs", ctypes.byref(count)))
    room = (ctypes.c_char_p * max(count.value, 1))()
    folders = _List(count.value, room)
    _check(call("nc_plugin_path_get", ctypes.byref(folders)))
    # The texts are netCDF's to allocate and ours to free; a few bytes for a call made a few times are left.
    return [os.fsdecode(folder) for folder in room[: folders.ndirs] if folder is not None]


_FOLDERS = Kind("a list of folders such as ['plugins']", lambda value: isinstance(value, Iterable | os.PathLike))


def plugin_path_set(folders: Iterable[str | os.PathLike[str]]) -> None:
    """Replace the folders."""
    _FOLDERS.check("folders", folders)
    if isinstance(folders, (str, os.PathLike)):
        raise ParameterError(f"expected a list of folders, got {os.fspath(folders)!r}: write [{os.fspath(folders)!r}]")
    names = [_folder(folder) for folder in folders]
    room = (ctypes.c_char_p * max(len(names), 1))(*names)
    _check(call("nc_plugin_path_set", ctypes.byref(_List(len(names), room))))


def plugin_path_append(folder: str | os.PathLike[str]) -> None:
    """Add a folder that exists, which is searched last.

    For NCZarr, add it before the process first uses a filter there: netCDF-C loads the plugins of NCZarr once.
    """
    PATH.check("folder", folder)
    _check_exists(folder)
    plugin_path_set([*plugin_path_get(), folder])


def plugin_path_prepend(folder: str | os.PathLike[str]) -> None:
    """Add a folder that exists, which is searched first.

    For NCZarr, add it before the process first uses a filter there: netCDF-C loads the plugins of NCZarr once.
    """
    PATH.check("folder", folder)
    _check_exists(folder)
    plugin_path_set([folder, *plugin_path_get()])


def _folder(folder: str | os.PathLike[str]) -> bytes:
    name = os.fsencode(folder) if isinstance(folder, (str, os.PathLike)) else b""
    if b"\0" in name or not name:
        raise ParameterError(f"expected the name of a folder, got {folder!r}")
    return name


def _check_exists(folder: str | os.PathLike[str]) -> None:
    if not os.path.isdir(_folder(folder)):
        raise FileError(f"{os.fspath(folder)}: no such folder").at(path=folder)


def _check(status: int) -> None:
    if status:
        raise status_error(status)
