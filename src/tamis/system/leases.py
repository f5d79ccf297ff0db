"""Whether another program writes a file, as far as the system tells.

- A lease of Linux for reading is only given while no process of this machine has a file open for writing, and a program
  that opens it later waits until the lease ends. Servers of files do not know what other machines have open.
- Windows refuses to open a file against writers (without ``FILE_SHARE_WRITE``) while one has it open. Nothing tells of
  a program that opens it later: only that the file has changed.
- macOS does not tell.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
from pathlib import Path

_LOCAL = {"ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "ramfs", "overlay", "f2fs", "bcachefs", "zfs", "jfs"}
"""File systems of one machine; servers of files refuse leases although nobody writes."""

if sys.platform == "linux":
    try:
        import fcntl
    except ImportError:
        _HAS_LEASES = False
    else:
        _HAS_LEASES = True

    def can_tell(path: Path) -> bool:
        """Return whether the system knows which programs have a file open for writing."""
        file_system = file_system_of(path) if _HAS_LEASES else None
        # In a chroot, the file system of its root is not listed.
        return file_system is not None and (file_system in _LOCAL or not file_system)

    def begin_lease(handle: int, path: Path) -> bool | None:
        """Begin a lease on a file that is open for reading.

        Returns False if another program has it open for writing, and None where the file system has no leases.
        """
        try:
            # The signal to a process whose lease another one waits for is SIGIO, which would end it.
            fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except OSError as error:
            return False if error.errno == errno.EAGAIN else None
        return True

    def is_lease_awaited(handle: int) -> bool:
        """Return whether a program waits to open the file of a lease for writing."""
        return fcntl.fcntl(handle, fcntl.F_GETLEASE) != fcntl.F_RDLCK

    def end_lease(handle: int) -> None:
        """End a lease; raises OSError."""
        fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_UNLCK)

else:

    def can_tell(path: Path) -> bool:
        """Return whether the system knows which programs have a file open for writing."""
        return sys.platform == "win32"

    def begin_lease(handle: int, path: Path) -> bool | None:
        """Return False if another program has a file open for writing, None otherwise: there are no leases."""
        if sys.platform == "win32":
            from tamis.system import windows

            try:
                share = windows.FILE_SHARE_READ | windows.FILE_SHARE_DELETE
                os.close(windows.open_handle(os.fspath(path), os.O_RDONLY, share=share))
            except OSError as error:
                return False if error.winerror == _ERROR_SHARING_VIOLATION else None
        return None

    def is_lease_awaited(handle: int) -> bool:
        """Return False."""
        return False

    def end_lease(handle: int) -> None:
        """Do nothing."""


_ERROR_SHARING_VIOLATION = 32
_OCTAL = re.compile(r"\\([0-7]{3})")
"""A blank or another character in a path of the table of mounted file systems."""


def file_system_of(path: Path) -> str | None:
    """Return the kind of the file system that has a file, empty if the table does not list it; None without a table."""
    place = os.path.realpath(path)
    nearest = file_system = ""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                before, _, after = line.partition(" - ")
                mounted = _OCTAL.sub(lambda digits: chr(int(digits[1], 8)), before.split()[4])
                is_above = os.path.commonpath([mounted, place]) == mounted
                if is_above and len(mounted) >= len(nearest):
                    nearest = mounted
                    file_system = after.split()[0]
    except (OSError, IndexError, ValueError):
        return None
    return file_system
