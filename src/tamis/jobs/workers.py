"""Processes for tasks, files or chunks: on this machine, or those of a Dask cluster.

A process that a task ends takes nothing else with it: it is known which task that was, and another process starts.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tamis.errors import FileError, hook_without
from tamis.system import ASKED_TO_END, ask_to_end, connection_of, how_it_ended, start_with, without_interrupts

if TYPE_CHECKING:
    from tamis.jobs.progress import Progress

_REPORT_SECONDS = 0.2
_ENDING_SECONDS = 10.0


class Task(Protocol):
    """Work that can be sent to another process; equal tasks are the same."""

    def run(self, report: Progress) -> Any:
        """Do the work, and return the result; errors are results, too."""


class Progressed(NamedTuple):
    """The progress of a task."""

    task: Any
    step: str
    done: int
    total: int


class Finished(NamedTuple):
    """A task that was done, or failed."""

    task: Any
    result: Any


class Died(NamedTuple):
    """A task whose process ended."""

    task: Any
    how: str
    is_final: bool = False  # Whether it was tried in several processes already


Event = Progressed | Finished | Died


class Workers(Protocol):
    """Processes that are given tasks."""

    @property
    def idle(self) -> int:
        """How many more tasks they take now."""

    def submit(self, task: Task) -> None:
        """Begin a task."""

    def events(self, seconds: float) -> Iterator[Event]:
        """Wait at most this many seconds, and yield what happened."""

    def stop(self) -> None:
        """End all work; a later run continues unfinished files."""


class LocalWorkers:
    """Processes on this machine, each of which does one task at a time."""

    def __init__(self, count: int) -> None:
        self._workers = [_Worker() for _ in range(count)]

    @property
    def idle(self) -> int:
        """How many more tasks they take now."""
        return sum(worker.task is None for worker in self._workers)

    def submit(self, task: Task) -> None:
        """Begin a task."""
        next(worker for worker in self._workers if worker.task is None).begin(task)

    def events(self, seconds: float) -> Iterator[Event]:
        """Wait at most this many seconds, and yield what happened."""
        busy = {worker.connection: worker for worker in self._workers if worker.task is not None}
        for connection in wait([item for item in busy if item is not None], seconds):
            event = busy[connection].event()
            if event is not None:
                yield event

    def stop(self) -> None:
        """End the processes; each leaves its file so that a later run continues it."""
        for worker in self._workers:
            worker.ask_to_end()
        for worker in self._workers:
            worker.end()


class _Worker:
    """A process; it starts when it is first needed, and again after a task ended it."""

    def __init__(self) -> None:
        self.connection: Any = None  # A Connection, or a PipeConnection on Windows
        self.task: Task | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self, task: Task) -> None:
        if self._process is None or self._process.poll() is not None:
            self._start()
        assert self.connection is not None
        self.task = task
        with suppress(BrokenPipeError, ConnectionResetError):  # `event` says how it ended
            self.connection.send(task)

    def _start(self) -> None:
        from multiprocessing import Pipe

        self.end()
        self.connection, other = Pipe()

        def command(number: int) -> list[str]:
            code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve({number})"
            return [sys.executable, "-c", code]

        # The process inherits this, so that an interrupt of the terminal does not end it while Python starts.
        with without_interrupts():
            self._process = start_with(other, command)
        other.close()

    def event(self) -> Event | None:
        assert self.connection is not None
        assert self.task is not None
        task = self.task
        try:
            kind, value = self.connection.recv()
        except (EOFError, ConnectionResetError):
            how = self._ending()
            self.task = None
            self.end()
            return Died(task, how)
        if kind == "result":
            self.task = None
            return Finished(task, value)
        return Progressed(task, *value)

    def _ending(self) -> str:
        assert self._process is not None
        try:
            code = self._process.wait(_ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            return "did not answer"
        return how_it_ended(code)

    def ask_to_end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            ask_to_end(self._process)

    def end(self) -> None:
        if self.connection is not None:
            self.connection.close()
        if self._process is not None:
            try:
                self._process.wait(_ENDING_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self.connection, self._process = None, None


def serve(handle: int) -> None:
    """Do tasks until the other side closes the connection."""
    connection = connection_of(handle)
    ended: list[BaseException] = []

    def end(number: int, _: object) -> None:
        if not ended:
            ended.append(SystemExit(128 + number))
            raise ended[0]

    sys.unraisablehook = hook_without(ended)  # callbacks of weak references drop it: see `_reporter`
    signal.signal(ASKED_TO_END, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to this process, too: the other side decides
    while True:
        try:
            task = connection.recv()
        except (EOFError, ConnectionResetError):
            return
        result = task.run(_reporter(connection, ended))
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.send(("result", result))


def _reporter(connection: Any, ended: list[BaseException]) -> Progress:
    """Return a function that reports now and then; it also raises the exception of a signal that Python dropped."""
    times = [0.0]

    def report(step: str, done: int, total: int) -> None:
        if ended:
            raise ended[0]
        if time.monotonic() - times[0] >= _REPORT_SECONDS:
            times[0] = time.monotonic()
            with suppress(BrokenPipeError, ConnectionResetError):  # nobody is there; the task is done all the same
                connection.send(("progress", (str(step), done, total)))

    return report


@contextmanager
def connected(client: Any) -> Iterator[None]:
    """Say that the scheduler of Dask has ended, or is out of reach."""
    try:
        yield
    except OSError as error:
        raise FileError(
            f"{client.scheduler.address}: the scheduler of Dask does not answer: {error}: start a new one, "
            "and run this again"
        ) from error


class DaskWorkers:
    """The workers of a Dask cluster, which gives a task to another one if one ends."""

    def __init__(self, client: Any) -> None:
        import distributed
        from distributed.scheduler import KilledWorker

        self._client: Any = client
        self._killed: type[Exception] = KilledWorker
        self._wait: Callable[..., object] = distributed.wait
        self._tasks: dict[Any, Task] = {}

    @property
    def idle(self) -> int:
        """How many more tasks they take now: two for each thread, so that none waits for the next."""
        with connected(self._client):
            threads: int = sum(self._client.nthreads().values())
        return max(2 * threads, 1) - len(self._tasks)

    def submit(self, task: Task) -> None:
        """Begin a task."""
        with connected(self._client):
            future = self._client.submit(_run_quietly, task, pure=False, key=f"tamis-{os.urandom(8).hex()}")
        self._tasks[future] = task

    def events(self, seconds: float) -> Iterator[Event]:
        """Wait at most this many seconds, and yield what happened."""
        with connected(self._client), suppress(TimeoutError):
            self._wait([*self._tasks], timeout=seconds, return_when="FIRST_COMPLETED")
        for future in [item for item in self._tasks if item.done()]:
            task = self._tasks.pop(future)
            with connected(self._client):
                error = future.exception() if future.status == "error" else None
                result = future.result() if future.status == "finished" else None
            if future.status == "finished":
                yield Finished(task, result)
            elif isinstance(error, self._killed):
                yield Died(task, "was ended, several times", is_final=True)
            else:
                yield Died(task, f"failed: {error!r}" if error else "was cancelled")

    def stop(self) -> None:
        """Cancel what has not begun."""
        with suppress(OSError):  # a scheduler that has ended
            self._client.cancel([*self._tasks])


def _run_quietly(task: Task) -> Any:
    return task.run(lambda *_: None)
