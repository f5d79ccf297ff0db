"""Find other files that a file names, by HDF5's rules, without opening them.

HDF5 looks for a relative name of a virtual source, or of the file of an external link, in the folders of an environment
variable, in the folder of the file that names it, and in the current folder. If an absolute name does not exist, it
looks for its last part in the same way. It looks for a raw file only in the current folder, unless an environment
variable names another.
"""

from __future__ import annotations

import os
from glob import escape, iglob
from typing import NamedTuple

SAME_FILE = "."
"""Name of a virtual source in the same file."""

_NUMBER = "%b"


class NamedFile(NamedTuple):
    """A file: its folder, and its name there, which may have a number and stand for many files."""

    folder: str
    name: str

    def is_same(self, other: NamedFile) -> bool:
        """Return whether two names lead to the same file, or, if they stand for many, to the same folder."""
        first, second = (file.folder if _NUMBER in file.name else os.path.join(*file) for file in (self, other))
        return self.name == other.name and os.path.samefile(first, second)


def find_virtual(name: str, file: str) -> NamedFile | None:
    """Return a source of a virtual dataset of `file`; None if it does not exist."""
    # A percent sign is doubled in these names, unless it means the number of a block.
    return _find(name.replace("%%", "%"), file, "HDF5_VDS_PREFIX")


def find_linked(name: str, file: str) -> NamedFile | None:
    """Return the file that an external link of `file` names; None if it does not exist."""
    return _find(name, file, "HDF5_EXT_PREFIX")


def find_raw(name: str, file: str) -> NamedFile | None:
    """Return a raw file of a dataset of `file`, also if only readers in the folder of `file` find it; else None."""
    own_folder = os.path.dirname(file)
    prefix = os.environ.get("HDF5_EXTFILE_PREFIX", "").replace("${ORIGIN}", own_folder)
    for folder in [""] if os.path.isabs(name) else [prefix] if prefix else [os.curdir, own_folder]:
        if os.path.exists(path := os.path.join(folder, name)):
            return NamedFile(*os.path.split(path))
    return None


def linked_file(name: bytes, file: str) -> str | None:
    """Return the path of the file that an external link of `file` leads to; None if it does not exist."""
    linked = find_linked(os.fsdecode(name), os.path.abspath(file))
    return None if linked is None else os.path.realpath(os.path.join(*linked))


def _find(name: str, file: str, prefix: str) -> NamedFile | None:
    if os.path.isabs(name):
        if _exists(name):
            return NamedFile(*os.path.split(name))
        name = os.path.basename(name)
    folders = [*filter(None, os.environ.get(prefix, "").split(":")), os.path.dirname(file), os.curdir]
    folders.append(os.path.dirname(os.path.realpath(file)))
    for folder in folders:
        if _exists(path := os.path.join(folder, name)):
            return NamedFile(*os.path.split(path))
    return None


def _exists(path: str) -> bool:
    if _NUMBER not in path:
        return os.path.exists(path)
    return next(iglob(escape(path).replace(_NUMBER, "*")), None) is not None
