"""Processes that have a connection to this one: started, and asked to end.

On POSIX a process inherits the descriptor of the connection, and Ctrl-C in the terminal reaches it, too. On Windows it
inherits a handle, and has a process group of its own: Ctrl-C does not reach it, but ``CTRL_BREAK_EVENT`` does.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

if sys.platform == "win32":
    from multiprocessing.connection import PipeConnection as Connection

    def _start(command: Sequence[str], number: int) -> subprocess.Popen[bytes]:
        os.set_handle_inheritable(number, True)
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            startupinfo=subprocess.STARTUPINFO(lpAttributeList={"handle_list": [number]}),
            creationflags=subprocess.CREATE_NEW_PROCESS_GROUP,
        )

    def ask_to_end(process: subprocess.Popen[bytes]) -> None:
        """Send a process the signal `tamis.system.signals.ASKED_TO_END`."""
        with suppress(OSError):  # it has just ended
            process.send_signal(signal.CTRL_BREAK_EVENT)

else:
    from multiprocessing.connection import Connection

    def _start(command: Sequence[str], number: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=(number,))

    def ask_to_end(process: subprocess.Popen[bytes]) -> None:
        """Send a process the signal `tamis.system.signals.ASKED_TO_END`."""
        process.terminate()


def start_with(connection: Any, command: Callable[[int], Sequence[str]]) -> subprocess.Popen[bytes]:
    """Start a process that has one end of a pair of connections, which is to be closed here afterwards.

    Its command is made with a number, by which the process finds its connection: see `connection_of`.
    """
    number = connection.fileno()
    return _start(command(number), number)


def connection_of(number: int) -> Any:
    """Return the connection with which this process was started."""
    return Connection(number)
