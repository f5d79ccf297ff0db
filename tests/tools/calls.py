"""Calls of functions, counted where times would depend on the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

Job = Callable[[Path, Path], object]
"""Reads a source, and writes a target or compares it."""


def calls_of(job: Callable[[], object]) -> int:
    """Count the calls of functions of Python and C in this thread during a job."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        job()
    finally:
        sys.setprofile(None)
    return count


def calls_by_count(counts: Sequence[int], write: Callable[[int], tuple[Path, Path]], *jobs: Job) -> dict[int, int]:
    """Return the calls of the last of several jobs, by the number of datasets in the source that `write` makes.

    All jobs run once before, so that what is imported or cached the first time is not counted.
    """
    calls = {}
    for count in counts:
        files = write(count)
        for job in jobs:
            job(*files)
        calls[count] = calls_of(partial(jobs[-1], *files))
    return calls
