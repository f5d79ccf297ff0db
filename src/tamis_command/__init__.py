"""The command `tamis`, beside the package: what has to be set before numpy is imported, which the package does.

A small repack takes 0.17 s of CPU so, and 0.26 s without.
"""

from __future__ import annotations

import gc
import os
import signal
import threading


def main() -> None:
    """Run the command line of tamis."""
    # numpy's algebra starts a thread for each processor, which takes time and fails where threads are few; no command
    # needs any.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Ctrl-C while modules are imported would end in a traceback, in native ones in an abort.
    before = signal.getsignal(signal.SIGINT)
    ours = before is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()  # imports leave no garbage
    from tamis.cli import main as run

    gc.enable()
    if ours:
        signal.signal(signal.SIGINT, before)
    try:
        run()
    finally:
        gc.freeze()  # what is there in the end goes with the process, and need not be searched
