"""The memory of this process: how much it has, how much it may have, and what the C library keeps.

`tamis.filters._plugin_worker` runs this file without the package, so it imports nothing of tamis.

What a system lacks: a limit of addresses is only kept by Linux. Elsewhere `resident_nbytes` alone tells when a process
has too much, so that one that takes memory fast has it for a moment.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from io import FileIO

try:
    import resource
except ImportError:  # Windows
    _HAS_LIMITS = False
else:
    _HAS_LIMITS = True


def limit_addresses(nbytes: int) -> None:
    """Let further memory be refused to this process once it has so many bytes of addresses, where that can be."""
    if sys.platform != "win32" and _HAS_LIMITS:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        least = nbytes if hard == resource.RLIM_INFINITY else min(nbytes, hard)
        resource.setrlimit(resource.RLIMIT_AS, (least, hard))


def memory_limits() -> dict[str, int]:
    """Return what this process may have, in bytes, by what sets the limit; only what is known and limited."""
    return {name: nbytes for name, nbytes in _limits() if 0 < nbytes < _UNLIMITED}


def open_file_limit() -> int | None:
    """Return how many files this process may have open; None if that is not known or limited."""
    if sys.platform == "win32" or not _HAS_LIMITS:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


_UNLIMITED = 1 << 60  # what control groups have for no limit is about 2^63


def _limits() -> Iterator[tuple[str, int]]:
    if sys.platform != "win32":
        with suppress(OSError, ValueError):
            yield "this machine", os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if _HAS_LIMITS:
            soft, _ = resource.getrlimit(resource.RLIMIT_AS)
            yield "ulimit -v", -1 if soft == resource.RLIM_INFINITY else soft
    # Of this process' group in a container, where it is the only one that can be seen.
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError), open(path, encoding="ascii") as file:
            yield "its control group", int(file.read())


if sys.platform == "win32":
    from ctypes import wintypes

    class _Counters(ctypes.Structure):
        """PROCESS_MEMORY_COUNTERS."""

        _fields_ = (
            ("cb", wintypes.DWORD),
            ("PageFaultCount", wintypes.DWORD),
            ("PeakWorkingSetSize", ctypes.c_size_t),
            ("WorkingSetSize", ctypes.c_size_t),
            ("rest", ctypes.c_size_t * 6),
        )

    _kernel32 = ctypes.WinDLL("kernel32")
    _kernel32.GetCurrentProcess.restype = wintypes.HANDLE

    def resident_nbytes() -> int:
        """Return the bytes of memory that this process has: ``K32GetProcessMemoryInfo``."""
        counters = _Counters(cb=ctypes.sizeof(_Counters))
        own = wintypes.HANDLE(_kernel32.GetCurrentProcess())
        _kernel32.K32GetProcessMemoryInfo(own, ctypes.byref(counters), counters.cb)
        return int(counters.WorkingSetSize)

elif sys.platform == "darwin":
    _PROC_PIDTASKINFO = 4  # of sys/proc_info.h
    _TASKINFO_NBYTES = 96

    def resident_nbytes() -> int:
        """Return the bytes of memory that this process has: ``proc_pidinfo`` of libproc."""
        info = (ctypes.c_uint64 * (_TASKINFO_NBYTES // 8))()  # pti_virtual_size, pti_resident_size, …
        ctypes.CDLL(None).proc_pidinfo(os.getpid(), _PROC_PIDTASKINFO, ctypes.c_uint64(0), info, _TASKINFO_NBYTES)
        return info[1]

else:
    _PAGE_NBYTES = os.sysconf("SC_PAGE_SIZE")

    @cache
    def _statm() -> FileIO:
        return open("/proc/self/statm", "rb", buffering=0)  # kept open: memory may be too short to open it

    def resident_nbytes() -> int:
        """Return the bytes of memory that this process has."""
        _statm().seek(0)
        return int(_statm().read(256).split()[1]) * _PAGE_NBYTES
