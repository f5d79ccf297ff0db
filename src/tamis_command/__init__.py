"""The command `tamis`, beside the package: what has to be set before numpy is imported, which the package does."""

from __future__ import annotations

import os


def main() -> None:
    """Run the command line of tamis."""
    # numpy's algebra starts a thread for each processor, which takes 30 ms of two and fails where threads are few; no
    # command needs any.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from tamis.cli import main as run

    run()
