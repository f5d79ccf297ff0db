"""A store of objects that counts what is asked of it, to say what reading costs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tamis.library_lock import unless_held
from tamis.remote.address import Address
from tamis.remote.file import AT_ONCE, in_fewest_rounds
from tamis.remote.object_store import Entry, LocalObjects, Objects, Part, Range
from tamis.remote.objects import objects_of

_ANSWER_SECONDS = 0.003


def counted_at(place: Path | Address) -> tuple[CountedObjects, str]:
    """Return a store that counts, and the key of a file in it, which is here or elsewhere."""
    if isinstance(place, Address):
        objects, key = objects_of(place)
        return CountedObjects(objects), key
    return CountedObjects(LocalObjects()), str(place.absolute())


class CountedObjects:
    """A store that counts requests, the bytes that they return, and rounds of requests at the same time."""

    protocol = "file"

    def __init__(self, objects: Objects) -> None:
        self._objects, self.requests, self.nbytes, self.rounds = objects, 0, 0, 0
        self.can_list, self.reads_tails = objects.can_list, objects.reads_tails
        self._lock, self._waiting = threading.Lock(), 0
        self._spans: list[Range] = []  # that were asked for

    def get(self, key: str, span: Range | None, version: str) -> Part:
        """Return a range; see `Objects.get`."""
        with unless_held(self._lock):
            self.rounds += not self._waiting
            self._waiting += 1
            self._spans += [] if span is None else [span]
        time.sleep(_ANSWER_SECONDS)  # so that requests at the same time are seen to be
        try:
            part = self._objects.get(key, span, version)
            self._count([part.data])
        finally:
            with unless_held(self._lock):
                self._waiting -= 1
        return part._replace(version="")  # without one, no metadata are kept on disk, or taken from there

    def get_many(self, key: str, spans: Sequence[Range]) -> list[bytes | memoryview]:
        """Return ranges; see `Objects.get_many`."""
        self.rounds += 1
        found = self._objects.get_many(key, spans)
        self._count(found)
        return found

    def entries(self, prefix: str) -> Iterator[Entry]:
        """Yield the objects below a folder."""
        self.requests += 1
        yield from self._objects.entries(prefix)

    def finish(self) -> None:
        """Wait until no request is left without an answer."""
        while self._waiting:
            time.sleep(_ANSWER_SECONDS)

    def count_unread(self, ranges: Iterable[Range]) -> None:
        """Count the requests that would read those of these ranges that nobody asked for, without reading them."""
        known = self._spans
        spans = in_fewest_rounds([(at, end) for at, end in ranges if not any(a <= at and end <= b for a, b in known)])
        self.requests += len(spans)
        self.nbytes += sum(end - begin for begin, end in spans)
        self.rounds += -(-len(spans) // AT_ONCE)

    def _count(self, parts: Sequence[bytes | memoryview]) -> None:
        with unless_held(self._lock):
            self.requests += len(parts)
            self.nbytes += sum(map(len, parts))
