"""Waiting for another process, and how it ended, with the calls of this system and without them."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from multiprocessing import Pipe
from types import ModuleType

import pytest
from second_copy import second_copy

from tamis.system import connections, processors, signals

SPEAK = "import sys, time\nfor line in sys.stdin:\n    time.sleep(float(line)); print('done', flush=True)"

ANSWER_UNTIL_ASKED_TO_END = """
import signal, sys
from tamis.system.connections import connection_of
from tamis.system.signals import ASKED_TO_END
connection = connection_of(int(sys.argv[1]))
signal.signal(ASKED_TO_END, lambda *_: sys.exit(7))
connection.send(connection.recv() + 1)
signal.pause()
"""


@pytest.fixture(params=["poll", "a thread"])
def processes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    if request.param == "a thread":
        monkeypatch.delattr(select, "poll")
    return second_copy("tamis.system.processes")


def test_answers_are_awaited_as_long_as_allowed(processes: ModuleType) -> None:
    command = [sys.executable, "-c", SPEAK]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=False) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(3):
            process.stdin.write(b"0\n")
            process.stdin.flush()
            assert processes.answers(process.stdout, 30)
            assert process.stdout.read(5) == b"done\n"
        began = time.monotonic()
        assert not processes.answers(process.stdout, 0.3)
        assert 0.2 < time.monotonic() - began < 10
        process.kill()
        assert processes.answers(process.stdout, 30)  # its end, too
        assert process.stdout.read() == b""


def test_connected_process_gets_its_end_and_ends_when_asked() -> None:
    own, other = Pipe()
    process = connections.start_with(
        other, lambda number: [sys.executable, "-c", ANSWER_UNTIL_ASKED_TO_END, str(number)]
    )
    other.close()
    own.send(41)
    assert own.recv() == 42
    connections.ask_to_end(process)
    assert process.wait(30) == 7


def test_end_of_a_process_is_said() -> None:
    assert signals.how_it_ended(-signal.SIGKILL) == "was ended by SIGKILL"
    assert signals.how_it_ended(3) == "ended with exit code 3"


def test_signals_that_a_system_lacks_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SIGHUP", "SIGXCPU", "SIGQUIT", "SIGUSR1", "SIGUSR2", "pthread_sigmask"):
        monkeypatch.delattr(signal, name)
    monkeypatch.setattr(signal, "SIGBREAK", 21, raising=False)
    windows = second_copy("tamis.system.signals")
    assert windows.ENDING == (signal.SIGTERM, 21)
    assert windows.ASKED_TO_END == 21
    with windows.without_interrupts():
        pass


@pytest.mark.parametrize("absent", [(), ("process_cpu_count",), ("process_cpu_count", "sched_getaffinity")])
def test_processors_are_counted_by_what_the_system_has(
    absent: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in absent:
        monkeypatch.delattr(os, name, raising=False)
    count = processors.processor_count()
    assert 1 <= count <= (os.cpu_count() or 1)
    if "sched_getaffinity" not in absent:
        assert count == len(os.sched_getaffinity(0))
