"""Settings of the C library's memory allocator for the process of a command."""

from __future__ import annotations

import ctypes

# Of malloc.h: how many freed bytes the process keeps, and from which size on arrays are mapped separately.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT_NBYTES = 16 << 20


def keep_freed_memory() -> bool:
    """Reuse the memory of finished chunks for later ones; return whether the C library supports that.

    Otherwise glibc returns it to the system after each chunk of about 1 MiB, and the system clears every page for the
    next chunk, which takes a third of the time of verifying a repack of 256 MiB. For commands only: another program
    that imports tamis makes its own choice.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    return all(mallopt(option, _KEPT_NBYTES) for option in (_TRIM_THRESHOLD, _MMAP_THRESHOLD))
