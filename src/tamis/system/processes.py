"""What other processes do: whether one has answered, and whether any is at work.

Windows cannot wait for an answer in a pipe with a time limit, so a thread of ours looks there. Only Linux tells what
the threads of a process do.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import IO

if sys.platform != "win32" and hasattr(select, "poll"):

    def answers(stream: IO[bytes], seconds: float) -> bool:
        """Wait until a process writes into its pipe or ends; return False after the timeout."""
        ready = select.poll()
        ready.register(stream, select.POLLIN)
        return bool(ready.poll(1000 * seconds))

else:

    def answers(stream: IO[bytes], seconds: float) -> bool:
        """Wait until a process writes into its pipe or ends; return False after the timeout.

        The thread that looks ends with the process: end that if it did not answer.
        """
        look = threading.Thread(target=_peek, args=(stream,), name="tamis answers", daemon=True)
        look.start()
        look.join(max(seconds, _LEAST_SECONDS))
        return not look.is_alive()


_LEAST_SECONDS = 0.2
"""How long a thread may take to see what is there already."""


def _peek(stream: IO[bytes]) -> None:
    assert isinstance(stream, BufferedReader)
    with suppress(OSError, ValueError):  # closed meanwhile
        stream.peek(1)


def is_at_work() -> bool:
    """Return whether a thread of this process, or of one that it started, runs or waits for a processor or a disk.

    False if the system does not tell.
    """
    own, processes = str(threading.get_native_id()), [os.getpid()]
    for process in processes:  # which grows
        for task in _tasks_of(process):
            with suppress(OSError, IndexError):  # it has just ended
                state = (task / "stat").read_text().rpartition(")")[2].split()[0]
                if state in "RD" and task.name != own:
                    return True
                processes += map(int, (task / "children").read_text().split())
    return False


def _tasks_of(process: int) -> list[Path]:
    """Return the folders of the threads of a process; none if it has ended, or the system is not Linux."""
    with suppress(OSError):
        return [*Path(f"/proc/{process}/task").iterdir()]
    return []
