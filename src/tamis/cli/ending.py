"""How a command ends that is interrupted, or whose output cannot be written: a message, an exit code, no traceback."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import click

from tamis.errors import TamisError

FAILED, INTERRUPTED, TERMINATED = 1, 128 + signal.SIGINT, 128 + signal.SIGTERM


class Commands(click.Group):
    """A group of commands that end so."""

    def invoke(self, ctx: click.Context) -> Any:
        """Call a command; Ctrl-C ends it."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            with suppress(OSError):
                click.echo("\ntamis: interrupted", err=True)
            sys.exit(INTERRUPTED)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            # All else that opens or reads is caught where it is done; click is silent about a closed pipe.
            if isinstance(error, TamisError) or error.filename is not None or error.errno is None:
                raise
            _stop_without_output(error)


@contextmanager
def ended_by_signals(*, terminate: bool) -> Iterator[None]:
    """Let SIGTERM end what is inside as Ctrl-C does, cleared up, if asked so; else it ends the process at once."""
    if not terminate or threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> NoReturn:
        sys.exit(TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _stop_without_output(error: OSError) -> NoReturn:
    # What is still to be flushed would fail again when Python ends, which reports it in its own way.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    with suppress(OSError):
        if error.errno != errno.EPIPE:
            click.echo(f"tamis: standard output cannot be written: {error.strerror}", err=True)
    sys.exit(FAILED)
