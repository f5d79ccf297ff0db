"""What forked processes make anew."""

from __future__ import annotations

import gc
import os
import threading
import warnings
from collections.abc import Callable

import pytest

from tamis import forks

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def in_child(work: Callable[[], bool]) -> bool:
    """Return what a forked process finds; False after 30 seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 and later warn of forks beside threads
        child = os.fork()
    if not child:
        threading.Timer(30, os._exit, [2]).start()
        code = 1
        try:
            code = 0 if work() else 1
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


class Owner:
    def __init__(self) -> None:
        self.count = 0
        forks.begin_in_each_process(self.begin)

    def begin(self) -> None:
        self.lock = threading.Lock()
        self.count += 1


def test_begin_in_each_process_called_now_and_in_each_child() -> None:
    owner = Owner()
    assert owner.count == 1
    assert in_child(lambda: owner.count == 2)
    assert in_child(lambda: in_child(lambda: owner.count == 3))
    assert owner.count == 1


def test_begin_in_each_process_lock_held_by_another_thread_free_in_child() -> None:
    owner = Owner()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with owner.lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert in_child(lambda: owner.lock.acquire(timeout=20))
        assert owner.lock.locked()
    finally:
        done.set()
        thread.join()


def test_begin_in_each_process_object_dropped_forgotten() -> None:
    before = len(forks._begins)
    owners = [Owner() for _ in range(10)]
    assert len(forks._begins) == before + 10
    del owners
    gc.collect()
    assert len(forks._begins) <= before


def test_hold_while_forking_another_thread_at_work_fork_waits_for_it() -> None:
    lock, order = threading.RLock(), list[str]()
    forks.hold_while_forking(lock.acquire, lock.release)
    held = threading.Event()

    def work() -> None:
        with lock:
            held.set()
            for _ in range(1000):
                os.sched_yield()
            order.append("worked")

    thread = threading.Thread(target=work)
    thread.start()
    held.wait()
    assert in_child(lambda: order == ["worked"] and lock.acquire(timeout=20))
    thread.join()
    assert lock.acquire(blocking=False)
    lock.release()


def test_hold_while_forking_not_acquired_not_released() -> None:
    lock = threading.RLock()
    forks.hold_while_forking(lambda: lock.acquire(blocking=False), lock.release)
    with lock:
        assert in_child(lambda: True)
    assert lock.acquire(blocking=False)
    lock.release()
