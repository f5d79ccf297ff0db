"""How the process of a command asks the system for memory."""

from __future__ import annotations

import ctypes

# Of malloc.h: how much of the memory that was freed stays, and from which size on an array has pages of its own.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT_NBYTES = 16 << 20


def keep_freed_memory() -> bool:
    """Keep the memory of chunks that are done for those to come; returns whether the C library can.

    glibc gives it back to the system after each chunk of about 1 MiB, and the system clears every page of it for the
    next one: a third of the time of verifying a repack of 256 MiB. For commands alone: in a program of somebody else
    that is theirs to choose.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    return all(mallopt(option, _KEPT_NBYTES) for option in (_TRIM_THRESHOLD, _MMAP_THRESHOLD))
