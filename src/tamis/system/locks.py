"""Locks on open files, which end with the process at the latest.

On POSIX they are those of ``flock``, which only concern programs that ask for them. Windows keeps locked bytes from
every other program, so there the byte that is locked is one that no file has: ``LockFileEx`` takes any offset. If a
process ends without closing the file, Windows frees its lock some time later, POSIX at once.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress

if sys.platform == "win32":
    import ctypes
    import msvcrt
    from ctypes import wintypes

    from tamis.system import windows

    _LOCKFILE_FAIL_IMMEDIATELY, _LOCKFILE_EXCLUSIVE_LOCK = 1, 2
    _ERROR_LOCK_VIOLATION, _ERROR_IO_PENDING = 33, 997

    class _Overlapped(ctypes.Structure):
        """OVERLAPPED, which has the offset of the bytes to lock."""

        _fields_ = (
            ("Internal", ctypes.c_void_p),
            ("InternalHigh", ctypes.c_void_p),
            ("Offset", wintypes.DWORD),
            ("OffsetHigh", wintypes.DWORD),
            ("hEvent", wintypes.HANDLE),
        )

    def _lock(handle: int, *, is_shared: bool, waits: bool) -> None:
        """Lock a file; raises BlockingIOError if it must not wait and another one has the lock."""
        flags = (0 if is_shared else _LOCKFILE_EXCLUSIVE_LOCK) | (0 if waits else _LOCKFILE_FAIL_IMMEDIATELY)
        place = _Overlapped(Offset=0, OffsetHigh=0x7FFFFFFF)
        own = wintypes.HANDLE(msvcrt.get_osfhandle(handle))
        if not windows.kernel32.LockFileEx(own, flags, 0, 1, 0, ctypes.byref(place)):
            if ctypes.get_last_error() in (_ERROR_LOCK_VIOLATION, _ERROR_IO_PENDING):
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            raise windows.last_error()

else:
    try:
        import fcntl
    except ImportError:  # a system without locks, as some file systems are

        def _lock(handle: int, *, is_shared: bool, waits: bool) -> None:
            """Raise OSError."""
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    else:

        def _lock(handle: int, *, is_shared: bool, waits: bool) -> None:
            """Lock a file; raises BlockingIOError if it must not wait and another one has the lock."""
            fcntl.flock(handle, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | (0 if waits else fcntl.LOCK_NB))


def lock_at_once(handle: int, *, is_shared: bool = False) -> bool | None:
    """Lock an open file until it is closed, without waiting.

    Returns False if another process holds a lock, and None where the file system has no locks.
    """
    try:
        _lock(handle, is_shared=is_shared, waits=False)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def wait_for_lock(handle: int) -> None:
    """Lock an open file until it is closed, once no other process does; not where the file system has no locks."""
    with suppress(OSError):
        _lock(handle, is_shared=False, waits=True)
