"""A parallel map: order, bounds, errors, and that no thread is left."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from h5py._objects import phil

from tamis import ParameterError
from tamis.arrays import checked_threads, ordered_map


def tamis_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("tamis_")]


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_ordered_map_slow_items_first_results_in_order(threads: int) -> None:
    def slow(item: int) -> int:
        time.sleep(0.02 if item % 5 == 0 else 0)
        return item * item

    assert list(ordered_map(slow, range(40), threads)) == [i * i for i in range(40)]
    assert not tamis_threads()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_ordered_map_few_items_all_results(count: int, threads: int) -> None:
    assert list(ordered_map(str, range(count), threads)) == ["0", "1"][:count]


@pytest.mark.parametrize(("threads", "items"), [(1, 5), (4, 1)])
def test_ordered_map_one_thread_or_one_item_runs_in_this_thread(threads: int, items: int) -> None:
    found = list(ordered_map(lambda _: threading.get_ident(), range(items), threads))
    assert set(found) == {threading.get_ident()}


def test_ordered_map_two_threads_work_at_the_same_time() -> None:
    meeting = threading.Barrier(2, timeout=10)
    assert len(list(ordered_map(lambda _: meeting.wait(), range(4), 2))) == 4


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_ordered_map_endless_items_no_more_taken_than_two_for_each_thread(threads: int) -> None:
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        while True:
            taken += 1
            yield taken

    with closing(ordered_map(lambda item: item, items(), threads)) as results:
        for count, each in enumerate(results, start=1):
            assert each == count
            assert taken <= count + 2 * threads
            if count == 50:
                break
    assert not tamis_threads()


@pytest.mark.parametrize("threads", [1, 2])
def test_ordered_map_error_raised_in_its_turn_and_ends_the_map(threads: int) -> None:
    begun = []

    def fail_at_three(item: int) -> int:
        begun.append(item)
        if item == 3:
            raise KeyError(item)
        return item

    results = ordered_map(fail_at_three, range(1000), threads)
    found = [next(results) for _ in range(3)]
    with pytest.raises(KeyError, match="3"):
        next(results)
    assert list(results) == []
    assert found == [0, 1, 2]
    assert len(begun) <= 3 + 1 + 2 * threads
    assert not tamis_threads()


def test_ordered_map_items_fail_error_raised_and_no_thread_left() -> None:
    def items() -> Iterator[int]:
        yield from range(6)
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        list(ordered_map(str, items(), 2))
    assert not tamis_threads()


def test_ordered_map_closed_what_was_not_begun_is_not() -> None:
    begun = []
    go_on = threading.Event()

    def wait(item: int) -> int:
        begun.append(item)
        if item:
            go_on.wait(10)
        return item

    results = ordered_map(wait, range(1000), 2)
    assert next(results) == 0
    threading.Timer(0.05, go_on.set).start()
    results.close()
    assert set(begun) <= {0, 1, 2}, "two of the three that were handed over"
    assert not tamis_threads()


def test_ordered_map_keyboard_interrupt_in_the_loop_no_thread_left() -> None:
    def interrupted() -> None:
        with closing(ordered_map(str, range(1000), 2)) as results:
            for _ in results:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        interrupted()
    assert caught.traceback, "kept here, with the iterator"
    assert not tamis_threads()


INTERRUPTED = """
import _thread, os, sys, threading, time
from contextlib import closing
from typing import Any
from tamis.arrays.threads import ordered_map
sys.unraisablehook = lambda _: os._exit(77)
threading.Timer(0.2, _thread.interrupt_main).start()
try:
    with closing(ordered_map(lambda item: time.sleep(0.01), iter(int, 1), 2)) as results:
        for each in results:
            pass
except KeyboardInterrupt:
    threads = [each for each in threading.enumerate() if each.name.startswith("tamis_")]
    for each in threads:  # a thread that was just begun is not waited for, and ends by itself
        each.join(10)
    print([each.name for each in threads if each.is_alive()])
"""


def test_ordered_map_ctrl_c_while_it_waits_no_thread_left() -> None:
    command = [sys.executable, "-c", INTERRUPTED]
    for _ in range(5):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        if done.returncode != 77:  # now and then Python drops the interrupt, in a weak reference
            break
    assert (done.stdout.strip(), done.stderr, done.returncode) == ("[]", "", 0)


def test_checked_threads_none_given_those_that_the_process_may_use() -> None:
    assert checked_threads(None) == len(os.sched_getaffinity(0))
    assert checked_threads(7) == 7
    assert type(checked_threads(np.int64(3))) is int


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_checked_threads_no_number_of_threads_refused(threads: object) -> None:
    with pytest.raises(ParameterError, match="expected 1 or more threads, got threads="):
        checked_threads(threads)  # type: ignore[arg-type]


def test_ordered_map_with_the_lock_of_hdf5_runs_in_this_thread() -> None:
    with phil:
        found = list(ordered_map(lambda _: threading.get_ident(), range(9), 4))
    assert set(found) == {threading.get_ident()}


def test_ordered_map_ends_while_a_task_waits_for_an_earlier_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that has taken a task may get to run it only after later ones run, which wait for it."""
    tasks: list[Future[object]] = []
    submit, begin = ThreadPoolExecutor.submit, Future.set_running_or_notify_cancel

    def submit_noted(*arguments: Any, **keywords: Any) -> Future[object]:
        tasks.append(submit(*arguments, **keywords))
        return tasks[-1]

    def begin_late(task: Future[object]) -> bool:
        while task not in tasks:
            time.sleep(0.001)
        if tasks.index(task) == 2:
            waiting.wait(10)
            time.sleep(0.2)
        return begin(task)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", submit_noted)
    monkeypatch.setattr(Future, "set_running_or_notify_cancel", begin_late)
    done, waiting = threading.Event(), threading.Event()

    def work(item: int) -> bool:
        if item == 1:
            raise ValueError(item)
        if item == 2:
            done.set()
        if item == 3:
            waiting.set()
            return done.wait(10)
        return True

    with closing(ordered_map(work, range(9), 2)) as results:
        assert next(results)
        assert waiting.wait(10)
        with pytest.raises(ValueError, match="1"):
            next(results)
    assert done.is_set()
    assert not tamis_threads()
