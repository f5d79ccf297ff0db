"""Signals that end a command, and a process that must not see Ctrl-C while it starts.

On POSIX, a batch system or a lost connection sends one of many. Windows has Ctrl-C and Ctrl-Break, which one process
can send to another as ``CTRL_BREAK_EVENT`` if that one has a process group of its own; any other end comes without
warning.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_NAMES = ("SIGTERM", "SIGHUP", "SIGXCPU", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGBREAK")

ENDING = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))
"""Signals that end a command besides Ctrl-C: Slurm and PBS send SIGTERM, a lost connection SIGHUP, a CPU time limit
SIGXCPU, LSF SIGUSR2, Grid Engine SIGUSR1 and SIGUSR2 before SIGKILL, and Windows SIGBREAK. By default they would leave
temporary files."""

ASKED_TO_END = getattr(signal, "SIGBREAK", signal.SIGTERM)
"""The signal by which `tamis.system.processes.ask_to_end` ends a process."""


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Let nothing that starts inside see Ctrl-C until it says what to do then, where a process inherits that.

    Windows does not give Ctrl-C to a process in a group of its own.
    """
    if sys.platform != "win32" and hasattr(signal, "pthread_sigmask"):
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        if sys.platform != "win32" and hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def pipe_that_never_waits() -> tuple[int, int]:
    """Return the two ends of a pipe for the numbers of signals; writing to it does not wait for a reader.

    Python on Windows can only make it so from 3.12 on; a pipe there has room for thousands of signals.
    """
    source, sink = os.pipe()
    if hasattr(os, "set_blocking"):
        os.set_blocking(sink, False)
    return source, sink


def how_it_ended(code: int) -> str:
    """Return how a process ended, by its exit code as `subprocess` gives it."""
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
