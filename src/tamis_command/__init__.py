"""The command `tamis`, outside the package: it makes settings that the package needs before it imports numpy.

With these settings a small repack takes 0.17 s of CPU, without them 0.26 s.
"""

from __future__ import annotations

import gc
import os
import platform
import signal
import sys
import threading


def main() -> None:
    """Run the command line of tamis."""
    # numpy's linear algebra starts a thread for each processor, which takes time and fails under a limit of threads; no
    # command needs it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # h5py reads all of uname when it is imported, and Python would start a process for this one field.
    vars(platform.uname())["processor"] = ""
    # Otherwise Ctrl-C during imports ends in a traceback, or, in native modules, an abort.
    handler = signal.getsignal(signal.SIGINT)
    is_default = handler is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if is_default:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()  # imports create no garbage, and collections would slow them down
    from tamis.cli import main as run
    from tamis.cli import preload
    from tamis.cli.ending import ended_while_waiting

    preload(sys.argv[1:])
    # Collections skip imported objects. The last one, at the end of Python, must not be left out: errors refer to the
    # objects they concern, and HDF5, which ends after Python, crashes on some identifiers that are still open.
    gc.freeze()
    gc.enable()
    if is_default:
        signal.signal(signal.SIGINT, handler)
    with ended_while_waiting():
        run()
