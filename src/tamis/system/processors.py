"""How many processors this process may use."""

from __future__ import annotations

import os


def processor_count() -> int:
    """Return the number of processors that this process may use; of all, where the system has no such limits."""
    if hasattr(os, "process_cpu_count"):  # from Python 3.13 on
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
