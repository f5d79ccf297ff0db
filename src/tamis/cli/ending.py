"""How a command ends that is interrupted, or whose output cannot be written: a message, an exit code, no traceback."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import click

from tamis.errors import ParameterError, TamisError
from tamis.formatting import printable
from tamis.jobs.json_rule import error_document, json_text

FAILED, USAGE, VIOLATED, INTERRUPTED = 1, 2, 3, 128 + signal.SIGINT
"""Exit codes; 0 is done as asked, and 128 and a number that a signal ended the command."""

_ENDING_SIGNALS = ("SIGTERM", "SIGHUP", "SIGXCPU", "SIGQUIT", "SIGUSR1", "SIGUSR2")
"""What ends a command besides Ctrl-C: Slurm and PBS send SIGTERM, a lost connection SIGHUP, limits of processor time
SIGXCPU, LSF SIGUSR2, Grid Engine both SIGUSR1 and SIGUSR2 before SIGKILL. Their default would clear nothing up."""


_JSON = "tamis.json"


class Commands(click.Group):
    """A group of commands that end so."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note whether JSON is asked for, before anything can be wrong with the arguments of a command."""
        ctx.meta[_JSON] = "--json" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Call a command; Ctrl-C ends it."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            if ctx.meta[_JSON]:
                click.echo(json_text(error_document(ParameterError(error.format_message()), USAGE), indent=2))
            raise
        except KeyboardInterrupt:
            with suppress(OSError):
                click.echo("\ntamis: interrupted", err=True)
            sys.exit(INTERRUPTED)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""
        try:
            return super().main(*args, **kwargs)
        except OSError as error:  # click is silent about a closed pipe
            if isinstance(error, TamisError) or error.errno is None:
                raise
            if _is_of_output(error):
                _stop_without_output(error)
            click.echo(f"tamis: {printable(str(error))}", err=True)
            sys.exit(FAILED)


@contextmanager
def ended_by_signals() -> Iterator[Callable[[], None]]:
    """End what is inside, cleared up, at Ctrl-C and at the signals that batch systems send.

    Python drops what a signal raises in some places, such as weak references. So call the function that is given now
    and then: it raises what was dropped. A signal that the process was started to ignore, as by nohup, stays ignored.
    """
    came: list[BaseException] = []

    def end(number: int, _: object) -> None:
        # Signals that are sent more than once, as SIGXCPU is each second, must not end the clearing up.
        if not came or number == signal.SIGINT:
            came.append(KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number))
            raise came[-1]

    def check() -> None:
        if came:
            raise came[-1]

    def unraisable(found: sys.UnraisableHookArgs) -> None:
        if found.exc_value not in came:
            sys.__unraisablehook__(found)

    others = [getattr(signal, name) for name in _ENDING_SIGNALS if hasattr(signal, name)]
    wanted = {signal.SIGINT: signal.default_int_handler, **dict.fromkeys(others, signal.SIG_DFL)}
    if threading.current_thread() is not threading.main_thread():
        wanted = {}
    replaced = {number: before for number, before in wanted.items() if signal.getsignal(number) == before}
    hook, sys.unraisablehook = sys.unraisablehook, unraisable
    try:
        for number in replaced:
            signal.signal(number, end)
        yield check
    finally:
        for number, before in replaced.items():
            signal.signal(number, before)
        sys.unraisablehook = hook


def _is_of_output(error: OSError) -> bool:
    """Tell whether an error was raised where text is printed."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return any(
        frame.f_code is click.echo.__code__ or frame.f_globals.get("__name__") == "rich.console" for frame in frames
    )


def _stop_without_output(error: OSError) -> NoReturn:
    # What is still to be flushed would fail again when Python ends, which reports it in its own way.
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    with suppress(OSError):
        if error.errno != errno.EPIPE:
            click.echo(f"tamis: standard output cannot be written: {error.strerror}", err=True)
    sys.exit(FAILED)
