"""Where HDF5 looks for other files that a file names; nothing is opened here.

HDF5 looks for a relative name of a virtual source, or of the file of an external link, in the folders of an environment
variable, in the folder of the file that names it, and in the current one; for an absolute name where nothing is, it
looks for the last part of it in the same way. It looks for a raw file in the current folder alone, unless an
environment variable names another.
"""

from __future__ import annotations

import os
from glob import escape, iglob
from typing import NamedTuple

SAME_FILE = "."
"""Name of a virtual source that is in the same file."""

_NUMBER = "%b"


class Place(NamedTuple):
    """A file: the folder in which it is, and its name there, which may stand for many by a number."""

    folder: str
    name: str

    def is_same(self, other: Place) -> bool:
        """Whether two names lead to one file; where they stand for many, to one folder."""
        first, second = (each.folder if _NUMBER in each.name else os.path.join(*each) for each in (self, other))
        return self.name == other.name and os.path.samefile(first, second)


def find_virtual(name: str, file: str) -> Place | None:
    """Find a source of a virtual dataset of `file`; None where it is not there."""
    # A percent sign is doubled in these names, unless it stands for the number of a block.
    return _find(name.replace("%%", "%"), file, "HDF5_VDS_PREFIX")


def find_linked(name: str, file: str) -> Place | None:
    """Find the file that an external link of `file` names; None where it is not there."""
    return _find(name, file, "HDF5_EXT_PREFIX")


def find_raw(name: str, file: str) -> Place | None:
    """Find a raw file of a dataset of `file`, also where only readers in the folder of `file` would; None elsewhere."""
    here = os.path.dirname(file)
    prefix = os.environ.get("HDF5_EXTFILE_PREFIX", "").replace("${ORIGIN}", here)
    for folder in [""] if os.path.isabs(name) else [prefix] if prefix else [os.curdir, here]:
        if os.path.exists(path := os.path.join(folder, name)):
            return Place(*os.path.split(path))
    return None


def linked_file(name: bytes, file: str) -> str | None:
    """Return the path of the file that an external link of `file` leads to; None where it is not there."""
    found = find_linked(os.fsdecode(name), os.path.abspath(file))
    return None if found is None else os.path.realpath(os.path.join(*found))


def _find(name: str, file: str, prefix: str) -> Place | None:
    if os.path.isabs(name):
        if _is_there(name):
            return Place(*os.path.split(name))
        name = os.path.basename(name)
    folders = [*filter(None, os.environ.get(prefix, "").split(":")), os.path.dirname(file), os.curdir]
    folders.append(os.path.dirname(os.path.realpath(file)))
    for folder in folders:
        if _is_there(path := os.path.join(folder, name)):
            return Place(*os.path.split(path))
    return None


def _is_there(path: str) -> bool:
    if _NUMBER not in path:
        return os.path.exists(path)
    return next(iglob(escape(path).replace(_NUMBER, "*")), None) is not None
