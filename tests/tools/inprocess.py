"""Commands of tamis in this process, for tests of what a command does to files: a start of one costs half a second.

How commands start and end as programs is shown by tests/cli, by the documents of tests/test_examples.py, by tests that
kill, limit or starve them, and by tests/cli/test_process_ends.py for every kind of file.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest import mock

from click.testing import CliRunner

from tamis.cli import main
from tamis.jobs import workers

_HIDDEN = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)


def _print_warning(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object) -> None:
    sys.stderr.write(warnings.formatwarning(message, category, filename, lineno))


def run_tamis(*arguments: object, cwd: Path | str = ".", given: str = "") -> subprocess.CompletedProcess[str]:
    """Run `tamis` with such arguments; give its exit code and what it prints, warnings of Python as well."""
    words = [str(each) for each in arguments]
    with contextlib.chdir(cwd), mock.patch.object(sys, "argv", ["tamis", *words]), warnings.catch_warnings():
        warnings.simplefilter("default")
        for category in _HIDDEN:
            warnings.simplefilter("ignore", category)
        warnings.showwarning = _print_warning
        done = CliRunner().invoke(main, words, given, prog_name="tamis")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(["tamis", *words], done.exit_code, done.stdout, done.stderr)


def said_by_tamis(*arguments: object, code: int = 0, given: str = "") -> str:
    """Run `tamis` as `run_tamis` does; give all that it says after this exit code."""
    done = run_tamis(*arguments, given=given)
    said = done.stdout + done.stderr
    assert done.returncode == code, said
    assert "Traceback" not in said
    return said


class _Thread:
    """A thread that does the tasks of a worker, in the place of its process."""

    pid = 0

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(EOFError, ConnectionResetError), self._connection:
            while True:
                task = self._connection.recv()
                result = task.run(workers._reporter(self._connection, []))
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self._connection.send(("result", result))

    def poll(self) -> int | None:
        return None if self._thread.is_alive() else 0

    def wait(self, seconds: float) -> int:
        self._thread.join(seconds)
        return 0

    def terminate(self) -> None:
        """The thread ends with its connection."""


def _start(worker: Any) -> None:
    worker.end()
    worker.connection, other = Pipe()
    worker._process = _Thread(other)


@contextlib.contextmanager
def threads_as_workers() -> Iterator[None]:
    """Have threads do the tasks of local workers, which reach them as they reach processes: pickled, by a pipe."""
    with mock.patch.object(workers._Worker, "_start", _start):
        yield


def said_by_workers(*arguments: object, code: int = 0) -> str:
    """Run `tamis` with threads as its workers; give all that it says after this exit code."""
    with threads_as_workers():
        return said_by_tamis(*arguments, code=code)
