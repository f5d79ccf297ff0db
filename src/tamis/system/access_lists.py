"""Access lists of files, which say more than their modes do.

Linux keeps that of POSIX.1e in an extended attribute. macOS has calls of ``sys/acl.h`` for its own. On Windows a file
that replaces another one takes its list by `tamis.system.renames.replace_file`, and nothing is done here.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

from tamis.system.attributes import attribute, attribute_names, remove_attribute, set_attribute
from tamis.system.libraries import c_function

ATTRIBUTE = "system.posix_acl_access"
"""The extended attribute of Linux that is the list."""

if sys.platform == "darwin":
    _ACL_TYPE_EXTENDED = ctypes.c_int(0x100)

    def has_access_list(path: Path) -> bool:
        """Return whether a file has an access list."""
        found = _list_of(path)
        _free(found)
        return found is not None

    def copy_access_list(source: Path, new: Path) -> bool:
        """Give a file the access list of another one; return whether that is done."""
        found = _list_of(source)
        is_done = found is not None and _set(new, found)
        _free(found)
        return is_done

    def remove_access_list(path: Path) -> None:
        """Remove the access list of a file, as far as allowed."""
        empty = _pointer("acl_init", ctypes.c_int(1))
        if empty is not None:
            _set(path, empty)
        _free(empty)

    def _list_of(path: Path) -> int | None:
        return _pointer("acl_get_file", os.fsencode(path), _ACL_TYPE_EXTENDED)

    def _set(path: Path, entries: int) -> bool:
        words = os.fsencode(path), _ACL_TYPE_EXTENDED, ctypes.c_void_p(entries)
        return not c_function("acl_set_file")(*words)

    def _pointer(name: str, *arguments: object) -> int | None:
        function = c_function(name)
        function.restype = ctypes.c_void_p
        found: int | None = function(*arguments)
        return found

    def _free(found: int | None) -> None:
        if found is not None:
            c_function("acl_free")(ctypes.c_void_p(found))

else:

    def has_access_list(path: Path) -> bool:
        """Return whether a file has an access list."""
        with suppress(OSError):
            return ATTRIBUTE in attribute_names(path)
        return False

    def copy_access_list(source: Path, new: Path) -> bool:
        """Give a file the access list of another one; return whether that is done."""
        with suppress(OSError):
            set_attribute(new, ATTRIBUTE, attribute(source, ATTRIBUTE))
            return True
        return False

    def remove_access_list(path: Path) -> None:
        """Remove the access list of a file, as far as allowed."""
        with suppress(OSError):
            remove_attribute(path, ATTRIBUTE)
