"""A warning about requests without an answer: otherwise users wait for a server that hangs, and do not know why.

A thread looks at them now and then, because the libraries that wait do not come back to Python meanwhile. It takes no
lock, as others must not: see `tamis.remote.file`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING

from tamis.forks import begin_in_each_process

if TYPE_CHECKING:
    from tamis.remote.address import Address

NOTED_SECONDS = 60.0
"""How long a request may take until there is a warning."""

LOOK_SECONDS = 2.0
"""Between two looks."""


class _Requests:
    """The requests of this process, and the thread that looks at them."""

    def __init__(self) -> None:
        begin_in_each_process(self._begin)

    def _begin(self) -> None:
        self._pending: dict[object, tuple[float, Address]] = {}  # When each began, and its address
        self._watchers: list[Thread] = []  # At most one, as a rule: two do no harm

    @contextmanager
    def watch(self, address: Address) -> Iterator[None]:
        """See `watch`."""
        key = object()
        self._pending[key] = time.monotonic(), address
        if not self._watchers:
            self._watchers = [thread := Thread(target=self._watch, name="tamis-waiting", daemon=True)]
            thread.start()
        try:
            yield
        finally:
            self._pending.pop(key, None)

    def _watch(self) -> None:
        """Look at the requests now and then, until there are none at a look."""
        while True:
            time.sleep(LOOK_SECONDS)
            self._warn(time.monotonic() - NOTED_SECONDS)
            if self._pending:
                continue
            self._watchers = []
            if not self._pending:  # otherwise a new request counts on this thread
                return

    def _warn(self, latest: float) -> None:
        """Warn of those that began before a time, once of each."""
        late = {key: address for key, (begin, address) in [*self._pending.items()] if begin < latest}
        for key in late:
            self._pending.pop(key, None)
        for address in dict.fromkeys(late.values()):
            text = f"{address}: no answer for {NOTED_SECONDS:g} seconds: it is asked again, for some minutes at most"
            with suppress(Warning):  # where warnings are errors
                warnings.warn(text, stacklevel=1)


_requests = _Requests()


def watch(address: Address) -> AbstractContextManager[None]:
    """Warn, once, if what is done inside takes long."""
    return _requests.watch(address)
