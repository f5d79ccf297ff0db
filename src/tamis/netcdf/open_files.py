"""Files that the libhdf5 below netCDF-C has open, found by their names, because netCDF-C does not tell their ids.

This works on files that are open for writing, too, which another libhdf5, such as that of h5py, may not open.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

from tamis.errors import FileError
from tamis.filters import Request, Stage
from tamis.netcdf.library import Unsigned, call

_ALL, _FILES = 0x1F, 0x01
_READ_WRITE = 0x01
_OPTIONAL = 0x01
_MOST_VALUES, _LABEL_NBYTES = 256, 512
_IMAGE = "file_image_"
_NON_COORDINATE = "_nc4_non_coord_"


def is_read_only(path: str) -> bool:
    """Return whether a file of netCDF is open for reading only; False if HDF5 does not have it."""
    file = _open_file(path)
    if file is None:
        return False
    intent = Unsigned()
    return call("H5Fget_intent", file, ctypes.byref(intent)) >= 0 and not intent.value & _READ_WRITE


def stored_stages(path: str, group: str, name: str) -> list[Stage] | None:
    """Return the filters of a variable in the file, as HDF5 runs them; None if the file does not have it yet.

    Parameters
    ----------
    path
        Path of the file, as given to netCDF.
    group, name
        Path of the group, and name of the variable.

    Raises
    ------
    FileError
        If HDF5 does not have the file, or cannot read the list.
    """
    file = _open_file(path)
    if file is None:
        raise FileError(f"{path}: expected a file that netCDF's HDF5 has open under this name, found none")
    for stem in (f"{_NON_COORDINATE}{name}", name):
        place = f"{group.rstrip('/')}/{stem}".encode("utf-8", "surrogateescape")
        if call("H5Lexists", file, place, 0) > 0:
            with _creation_list(file, place) as plist:
                return [_stage(plist, index) for index in range(call("H5Pget_nfilters", plist))]
    return None


def _open_file(path: str) -> int | None:
    files = _open_files()
    exact = [file for file, name in files.items() if name == path]
    same = exact or [file for file, name in files.items() if _is_same(name, path)]
    if not same and not os.path.exists(path):  # a dataset in memory, which HDF5 gives a name of its own
        same = [file for file, name in files.items() if name.startswith(_IMAGE)]
        same = same if len(same) == 1 else []
    return same[0] if same else None


def _open_files() -> dict[int, str]:
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
