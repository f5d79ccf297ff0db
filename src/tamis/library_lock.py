"""The lock of a library that comes before all other locks: h5py's, which it holds in every call of HDF5.

A thread holds it in callbacks of h5py, such as that of ``visititems``, and in ``with h5py._objects.phil``. Any other
thread may need it at any moment: Python's garbage collector drops objects of h5py in whichever thread it runs. So a
thread that holds it must not wait for another thread, nor for a lock that another thread holds while Python code runs.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from typing import Any

from tamis.forks import begin_in_each_process, hold_while_forking

_first: list[Any] = []
_importing = threading.RLock()


def comes_first(lock: Any) -> None:
    """Let the lock of a library come first: it is reentrant, and no other thread holds it while the process forks."""
    _first.append(lock)
    hold_while_forking(lock.acquire, lock.release)
    # What comes later is done earlier: a thread that imports may need the lock.
    hold_while_forking(lambda: _importing.acquire(blocking=not is_held()), _importing.release)


def is_held() -> bool:
    """Return whether this thread holds such a lock, and must not wait for others."""
    return any(lock._is_owned() for lock in _first)


def waiting() -> AbstractContextManager[None]:
    """Return what to do while this thread waits for one of another package, such as zarr's event loop.

    If this thread holds the lock, the garbage collector pauses, which could otherwise wait for the lock in that thread.
    """
    return without_collection() if is_held() else nullcontext()


def unless_held(lock: AbstractContextManager[Any]) -> AbstractContextManager[Any]:
    """Return a lock that only saves work, or nothing if this thread must not wait for it."""
    return nullcontext() if is_held() else lock


class _Collector:
    """Python's garbage collector, which pauses while anyone asks for it."""

    def __init__(self) -> None:
        self._count = 0
        begin_in_each_process(self._begin)

    def _begin(self) -> None:
        if self._count:
            gc.enable()
        self._count, self._lock = 0, threading.Lock()

    def pause(self) -> bool:
        """Pause it, and return whether `resume` has to follow: not if it is off."""
        # The thread that holds this lock may still be in the garbage collector, and wait for HDF5's lock there.
        if not self._lock.acquire(blocking=not is_held()):
            return False
        try:
            if self._count or gc.isenabled():
                gc.disable()
                self._count += 1
                return True
            return False
        finally:
            self._lock.release()

    def resume(self) -> None:
        """Let it go on, unless others still ask for the pause."""
        with self._lock:
            self._count = max(self._count - 1, 0)
            if not self._count:
                gc.enable()


_collector = _Collector()


def imported(name: str) -> Any:
    """Return a module, imported if it is not yet.

    Other threads, and processes that are forked, may wait for that, so it must wait for nothing.
    """
    module = sys.modules.get(name)
    if module is None or getattr(module.__spec__, "_initializing", False):
        with unless_held(_importing), without_collection():
            return import_module(name)
    return module


@contextmanager
def without_collection() -> Iterator[None]:
    """Pause the garbage collector: in another library's thread, it may wait for the lock of a thread that waits for it.

    This is the deadlock of h5py's issue 2019.
    """
    paused = _collector.pause()
    try:
        yield
    finally:
        if paused:
            _collector.resume()
