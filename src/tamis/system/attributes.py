"""Extended attributes of files: names with bytes, which the file system keeps, and copies may lose.

Linux and macOS have them. Windows has none that fit: there every call raises OSError with ENOTSUP, as it does on a file
system without them. A file is a path, or the descriptor of an open file.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

from tamis.system.libraries import c_function

if sys.platform == "linux" and hasattr(os, "listxattr"):

    def attribute_names(file: str | Path | int) -> list[str]:
        """Return the names of the attributes of a file; raises OSError."""
        return os.listxattr(file)

    def attribute(file: str | Path | int, name: str) -> bytes:
        """Return an attribute of a file; raises OSError."""
        return os.getxattr(file, name)

    def set_attribute(file: str | Path | int, name: str, value: bytes) -> None:
        """Set an attribute of a file; raises OSError."""
        os.setxattr(file, name, value)

    def remove_attribute(file: str | Path | int, name: str) -> None:
        """Remove an attribute of a file; raises OSError."""
        os.removexattr(file, name)

elif sys.platform == "darwin":
    # Each of these calls of sys/xattr.h has a twin for descriptors, whose name begins with f; the last two arguments of
    # getxattr and setxattr are a position, which is 0 for all but resource forks, and options.
    _NOTHING = ctypes.c_uint32(0), ctypes.c_int(0)

    def attribute_names(file: str | Path | int) -> list[str]:
        """Return the names of the attributes of a file; raises OSError."""
        names = _read("listxattr", file, (), (ctypes.c_int(0),))
        return [os.fsdecode(name) for name in names.split(b"\0") if name]

    def attribute(file: str | Path | int, name: str) -> bytes:
        """Return an attribute of a file; raises OSError."""
        return _read("getxattr", file, (os.fsencode(name),), _NOTHING)

    def set_attribute(file: str | Path | int, name: str, value: bytes) -> None:
        """Set an attribute of a file; raises OSError."""
        _call("setxattr", file, os.fsencode(name), value, ctypes.c_size_t(len(value)), *_NOTHING)

    def remove_attribute(file: str | Path | int, name: str) -> None:
        """Remove an attribute of a file; raises OSError."""
        _call("removexattr", file, os.fsencode(name), ctypes.c_int(0))

    def _read(call: str, file: str | Path | int, before: tuple[bytes, ...], after: tuple[object, ...]) -> bytes:
        """Ask for a size, then for as many bytes."""
        nbytes = _call(call, file, *before, None, ctypes.c_size_t(0), *after)
        room = ctypes.create_string_buffer(max(nbytes, 1))
        return room.raw[: _call(call, file, *before, room, ctypes.c_size_t(nbytes), *after)]

    def _call(call: str, file: str | Path | int, *arguments: object) -> int:
        function = c_function(f"f{call}" if isinstance(file, int) else call)
        function.restype = ctypes.c_ssize_t
        result: int = function(ctypes.c_int(file) if isinstance(file, int) else os.fsencode(file), *arguments)
        if result < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return result

else:

    def attribute_names(file: str | Path | int) -> list[str]:
        """Raise OSError."""
        raise _unsupported()

    def attribute(file: str | Path | int, name: str) -> bytes:
        """Raise OSError."""
        raise _unsupported()

    def set_attribute(file: str | Path | int, name: str, value: bytes) -> None:
        """Raise OSError."""
        raise _unsupported()

    def remove_attribute(file: str | Path | int, name: str) -> None:
        """Raise OSError."""
        raise _unsupported()


def _unsupported() -> OSError:
    return OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
