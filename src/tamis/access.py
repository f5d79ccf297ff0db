"""Who may read and write what tamis makes.

- A new file or folder has the mode that the umask leaves of 0o666 or 0o777, as from any program, or the access list
  that its folder gives to new files. Nothing in tamis changes the umask, which all threads of a process share.
- What takes the place of a file or store also takes its owner, group, access list and mode. Until it is complete, only
  its owner can open it.
- A copy of a file has the mode of that file, as far as the umask allows it.
- What no other user needs is for its owner alone: journals, caches, and targets that are made here for a store
  elsewhere.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from tamis.errors import FileError
from tamis.system.access_lists import ATTRIBUTE, copy_access_list, has_access_list, remove_access_list
from tamis.system.attributes import attribute, attribute_names, set_attribute
from tamis.system.files import open_file
from tamis.system.users import give_to, group_ids, user_id

NEW_FILE, NEW_FOLDER = 0o666, 0o777
"""Modes of files and folders for everybody whom the umask allows."""

PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
"""Modes of files and folders for their owner alone."""

_SPECIAL = stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX


def mode_for(target: Path, usual: int = NEW_FILE) -> int:
    """Return the mode in which to create a file or folder that gets the name of a target once it is complete.

    If it replaces another one, only its owner can open it, because fewer users may read that one than a new one.
    """
    return usual & PRIVATE_FOLDER if os.path.exists(target) else usual


def create_empty(path: str | os.PathLike[str], mode: int) -> None:
    """Create an empty file with a mode, as far as the umask allows it; raises FileExistsError."""
    os.close(open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))


def take_access(new: Path, replaced: Path) -> bool:
    """Give a new file or folder the owner, group, access list and mode of what it replaces.

    Returns
    -------
    bool
        False if this user may not give it to the same group: then its group may do no more than all others may.
    """
    status = replaced.stat()
    mode = stat.S_IMODE(status.st_mode)
    has_group = _take_owner(new, status)
    if not has_group:
        mode &= ~_SPECIAL
        others = mode & stat.S_IRWXO
        mode &= ~stat.S_IRWXG | others << 3
    takes_list = has_group and has_access_list(replaced) and copy_access_list(replaced, new)
    if not takes_list and has_access_list(new):
        remove_access_list(new)  # which its folder gave to it
    new.chmod(mode)
    return has_group


def _take_owner(new: Path, status: os.stat_result) -> bool:
    """Give a file to the owner and group of another one, as far as this user may; return whether it has the group.

    Call this before the mode is set: a change of owner clears bits of the mode.
    """
    for owner in (status.st_uid, -1):
        with suppress(PermissionError):
            if (status.st_uid, status.st_gid) != (new.stat().st_uid, new.stat().st_gid):
                give_to(new, owner, status.st_gid)
            return True
    return new.stat().st_gid == status.st_gid


def may_give_group(path: Path) -> bool:
    """Return whether this user may give a new file in the same folder the group of a file."""
    group, folder = path.stat().st_gid, path.parent.stat()
    if user_id() == 0 or group in group_ids():
        return True
    return bool(folder.st_mode & stat.S_ISGID) and folder.st_gid == group


def take_access_inside(new: Path) -> None:
    """Give everything in a folder the folder's mode, so that everybody who may open the folder can use all of it."""
    if has_access_list(new):  # the list itself sets the modes of what is inside
        return
    mode = stat.S_IMODE(new.stat().st_mode)
    for folder, folders, files in os.walk(new):
        for names, wanted in ((folders, mode), (files, mode & NEW_FILE)):
            for name in names:
                path = os.path.join(folder, name)
                if stat.S_IMODE(os.stat(path).st_mode) != wanted:
                    os.chmod(path, wanted)


def opened_like(source: Path, new: Path) -> BinaryIO:
    """Create a file with the mode of another one, as far as the umask allows it."""
    mode = stat.S_IMODE(source.stat().st_mode) & ~_SPECIAL
    return os.fdopen(open_file(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb")


def copy_attributes(source: Path, new: Path | int) -> None:
    """Copy the extended attributes of a file, as far as allowed, without those about access and those of tamis."""
    with suppress(OSError):
        for name in attribute_names(source):
            if name != ATTRIBUTE and not name.startswith("user.tamis."):
                with suppress(OSError):
                    set_attribute(new, name, attribute(source, name))


def make_private_folder(path: Path) -> None:
    """Create a folder, and those around it that do not exist, for this user alone."""
    for folder in (*reversed(path.parents), path):
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)


def check_own(folder: Path, advice: str) -> None:
    """Raise FileError if a folder whose name anybody can guess belongs to another user, or is a link."""
    with suppress(FileNotFoundError):
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != user_id():
            found = "a link or file" if not stat.S_ISDIR(status.st_mode) else f"one of user {status.st_uid}"
            raise FileError(
                f"{folder}: must be a folder that belongs to you (user {user_id()}), found {found}: {advice}"
            ).at(path=folder)
