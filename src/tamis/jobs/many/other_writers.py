"""Whether another program writes a file, as far as the system tells: see `tamis.system.leases`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tamis.system import begin_lease, can_tell, end_lease, is_lease_awaited, opened

SETTLE_SECONDS = 2.0
"""How long ago a file must have been changed where the system tells who has it open."""

SETTLE_SECONDS_ON_SERVERS = 60.0
"""How long ago a file must have been changed where the system does not tell that."""

__all__ = ["SETTLE_SECONDS", "SETTLE_SECONDS_ON_SERVERS", "Lease", "can_tell", "lease_on"]


class Lease:
    """A lease on a file, held by an open handle of it; None stands for one where the system cannot tell."""

    def __init__(self, handle: int | None) -> None:
        self._handle = handle

    @property
    def is_awaited(self) -> bool:
        """True if a program waits to open the file for writing; False if the system cannot tell."""
        return self._handle is not None and is_lease_awaited(self._handle)


@contextmanager
def lease_on(path: Path) -> Iterator[Lease | None]:
    """Hold a lease on a file; yield None if another program has the file open for writing.

    Where the system cannot tell, the lease is one that nobody waits for.
    """
    with opened(path) as handle:
        begun = begin_lease(handle, path) if can_tell(path) else None
        if not begun:
            yield None if begun is False else Lease(None)
            return
        try:
            yield Lease(handle)
        finally:
            with suppress(OSError):
                end_lease(handle)
