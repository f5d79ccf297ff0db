"""A warning about requests that have no answer for long: otherwise a server that hangs is waited for without a word.

A thread looks at them now and then, because the libraries that wait do not come back to Python meanwhile. It takes no
lock, as others must not: see `tamis.remote.file`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tamis.remote.address import Address

NOTED_SECONDS = 60.0
"""How long a request may take until there is a warning."""

LOOK_SECONDS = 2.0
"""Between two looks."""

_pending: dict[object, tuple[float, Address]] = {}
"""When each request began, and its address."""

_watchers: list[Thread] = []


@contextmanager
def noted(address: Address) -> Iterator[None]:
    """Warn, once, if what is done inside takes long."""
    key = object()
    _pending[key] = time.monotonic(), address
    if not _watchers:
        _watchers.append(Thread(target=_watch, name="tamis-waiting", daemon=True))
        _watchers[0].start()
    try:
        yield
    finally:
        _pending.pop(key, None)


def _watch() -> None:
    """Look at the requests until there are none."""
    while True:
        time.sleep(LOOK_SECONDS)
        if not _pending:
            _watchers.clear()
            return
        latest = time.monotonic() - NOTED_SECONDS
        late = {key: address for key, (begin, address) in [*_pending.items()] if begin < latest}
        for key in late:
            _pending.pop(key, None)
        for address in dict.fromkeys(late.values()):
            with suppress(Warning):  # where warnings are errors
                warnings.warn(
                    f"{address}: no answer for {NOTED_SECONDS:g} seconds: it is asked again, for some minutes at most",
                    stacklevel=1,
                )
