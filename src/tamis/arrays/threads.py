"""A parallel map: results in order, memory bounded."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future
from concurrent.futures.thread import ThreadPoolExecutor
from typing import TypeVar

from tamis import library_lock
from tamis.system.processors import processor_count
from tamis.zfp.header import check_threads

T = TypeVar("T")
R = TypeVar("R")

_AHEAD = 2
"""Limit of results, for each thread, that wait to be taken or are in work."""


def checked_threads(threads: int | None) -> int:
    """Return a number of threads; None means as many as the process may use. Raises ParameterError below 1."""
    if threads is None:
        return processor_count()
    return check_threads(threads)


def ordered_map(function: Callable[[T], R], items: Iterable[T], threads: int) -> Generator[R, None, None]:
    """Call a function on items in threads, and yield the results in the order of the items.

    At most two results per thread are in progress or waiting, so memory is bounded for any number of items. An error of
    the function is raised in order, and ends the map; so does closing the iterator. Then no more calls begin, except of
    items that threads have taken, and the map waits for running ones: no thread is left running.

    A thread that holds HDF5's lock makes all calls itself, because others may need it (see `tamis.library_lock`).

    If the loop over the results may end early, through an error or Ctrl-C, close the iterator. Otherwise the traceback
    of the error keeps it alive, and its threads wait::

        with contextlib.closing(ordered_map(decode, items, threads)) as results:
            for result in results:
                ...
    """
    items = iter(items)
    first = list(itertools.islice(items, 2))
    items = itertools.chain(first, items)
    if threads == 1 or len(first) < 2 or library_lock.is_held():
        del first  # otherwise the items would stay in memory as long as the map
        yield from map(function, items)
        return
    del first
    with ThreadPoolExecutor(threads, "tamis") as executor:
        pending: deque[Future[R]] = deque()
        try:
            for item in items:
                if len(pending) == _AHEAD * threads:
                    yield pending.popleft().result()
                pending.append(executor.submit(function, item))
            while pending:
                yield pending.popleft().result()
        finally:
            _cancel(pending)


def _cancel(pending: Sequence[Future[R]]) -> None:
    """Cancel tasks from the last one back to one that runs: a task may wait for an earlier one, as in `gather`.

    An earlier one may not be running yet, although a thread has taken it.
    """
    for task in reversed(pending):
        if not task.cancel():
            return
