"""Whether another program writes a file, as far as the system tells.

A lease of Linux for reading is only given while no process of this machine has a file open for writing, and a program
that opens it later waits until the lease ends. Servers of files do not know what other machines have open.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tamis.arrays import opened

_LOCAL = {"ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "ramfs", "overlay", "f2fs", "bcachefs", "zfs", "jfs"}
"""File systems of one machine; servers of files refuse leases although nobody writes."""

SETTLE_SECONDS = 2.0
"""How long ago a file must have been changed where the system tells who has it open."""

SETTLE_SECONDS_ON_SERVERS = 60.0
"""How long ago a file must have been changed where the system does not tell that."""


class Lease:
    """A lease on a file, held by an open handle of it; None stands for one where the system cannot tell."""

    def __init__(self, handle: int | None) -> None:
        self._handle = handle

    @property
    def is_awaited(self) -> bool:
        """True if a program waits to open the file for writing; False if the system cannot tell."""
        return self._handle is not None and fcntl.fcntl(self._handle, fcntl.F_GETLEASE) != fcntl.F_RDLCK


@contextmanager
def lease_on(path: Path) -> Iterator[Lease | None]:
    """Hold a lease on a file; yield None if another program has the file open for writing.

    Where the system cannot tell, the lease is one that nobody waits for.
    """
    with opened(path) as handle:
        if not can_tell(path):
            yield Lease(None)
            return
        try:
            # The signal to a process whose lease another one waits for is SIGIO, which would end it.
            fcntl.fcntl(handle, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except OSError as error:
            yield None if error.errno == errno.EAGAIN else Lease(None)
            return
        try:
            yield Lease(handle)
        finally:
            with suppress(OSError):
                fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_UNLCK)


_OCTAL = re.compile(r"\\([0-7]{3})")
"""A blank or another character in a path of the table of mounted file systems."""


def can_tell(path: Path) -> bool:
    """Return whether the system knows which programs have a file open for writing: on a local file system of Linux."""
    if not hasattr(fcntl, "F_SETLEASE"):
        return False
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
        return False
    return file_system in _LOCAL or not file_system  # in a chroot, the file system of its root is not listed
