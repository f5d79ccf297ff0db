"""End an interrupted command, or one whose output cannot be written, with a message and without a traceback."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TextIO

import click

from tamis.errors import ParameterError, TamisError, hook_without
from tamis.formatting import printable
from tamis.system.libraries import c_function
from tamis.system.processes import is_at_work
from tamis.system.signals import ENDING, pipe_that_never_waits

# Of malloc.h: how many freed bytes the process keeps, from which size on arrays are mapped separately, and how many
# heaps threads have.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_KEPT_NBYTES = 16 << 20


def keep_freed_memory() -> bool:
    """Reuse the memory of finished chunks for later ones; return whether the C library supports that.

    Otherwise glibc returns it to the system after each chunk of about 1 MiB, and the system clears every page for the
    next chunk, which takes a third of the time of verifying a repack of 256 MiB. For commands only: another program
    that imports tamis makes its own choice.
    """
    mallopt = c_function("mallopt")
    if mallopt is None:  # another C library
        return False
    return all(mallopt(option, _KEPT_NBYTES) for option in (_TRIM_THRESHOLD, _MMAP_THRESHOLD))


def share_freed_memory() -> None:
    """Let all threads reuse the memory that any of them freed: otherwise each keeps its own.

    For commands with few large blocks: threads that allocate often would wait for each other.
    """
    mallopt = c_function("mallopt")
    if mallopt is not None:
        mallopt(_ARENA_MAX, 1)


FAILED, USAGE, VIOLATED, INTERRUPTED = 1, 2, 3, 128 + signal.SIGINT
"""Exit codes; 0 means done as asked, and 128 + n that signal n ended the command. Of several, the largest counts."""

INTERRUPTED_TEXT = "\ntamis: interrupted\n"

_JSON = "tamis.json"


class Commands(click.Group):
    """A group of commands that end as this module describes."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Record whether JSON is requested, before a command's own arguments are checked."""
        ctx.meta[_JSON] = "--json" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Call a command; end it at Ctrl-C and at the signals of batch systems, so that nothing half-written stays."""
        try:
            with ended_by_signals():
                return super().invoke(ctx)
        except click.UsageError as error:
            if ctx.meta[_JSON]:
                from tamis.jobs.result import error_document, json_text

                click.echo(json_text(error_document(ParameterError(error.format_message()), USAGE), indent=2))
            raise
        except KeyboardInterrupt:
            with suppress(OSError):
                click.echo(INTERRUPTED_TEXT, err=True, nl=False)
            _said.append(INTERRUPTED_TEXT)
            sys.exit(INTERRUPTED)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program; it prints warnings as notes, without the line of code that Python shows."""
        format_in_python, warnings.formatwarning = warnings.formatwarning, _warning_text
        try:
            return super().main(*args, **kwargs)
        except OSError as error:  # click is silent about a closed pipe
            if isinstance(error, TamisError) or error.errno is None:
                raise
            if _is_output_error(error):
                _stop_without_output(error)
            click.echo(f"tamis: {printable(str(error))}", err=True)
            sys.exit(FAILED)
        finally:
            warnings.formatwarning = format_in_python
            try:
                if sys.stderr is not None:  # which it is for a process that was started without
                    sys.stderr.flush()
            except OSError:  # a full disk
                _silence(sys.stderr)


def _warning_text(message: Warning | str, *_: Any, **__: Any) -> str:
    return "".join(f"tamis: {printable(line)}\n" for line in str(message).splitlines())


@contextmanager
def ended_by_signals() -> Iterator[Callable[[], None]]:
    """Raise an exception at Ctrl-C and at the signals of batch systems, so that the block inside cleans up.

    Exceptions of signal handlers get lost in some places: Python drops them in callbacks of weak references, and tamis
    where HDF5 calls it. The yielded function raises a lost exception again: call it now and then. Signals that were
    ignored at the start, as by nohup, stay ignored.
    """
    with _handlers() as check:
        try:
            yield check
        except TamisError:  # it may follow from a dropped exception
            check()
            raise


_checks: list[Callable[[], None]] = []
"""The function that raises a lost exception again, while handlers are set."""


@contextmanager
def _handlers() -> Iterator[Callable[[], None]]:
    """Set the handlers of `ended_by_signals`, unless a block around has set them."""
    if _checks:
        yield _checks[0]
        return
    raised: list[BaseException] = []

    def end(number: int, _: object) -> None:
        # A repeated signal, such as SIGXCPU every second, must not interrupt the cleanup.
        if not raised or number == signal.SIGINT:
            raised.append(KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number))
            raise raised[-1]

    def check() -> None:
        if raised:
            raise raised[-1]

    defaults = {signal.SIGINT: signal.default_int_handler, **dict.fromkeys(ENDING, signal.SIG_DFL)}
    if threading.current_thread() is not threading.main_thread():
        defaults = {}
    replaced = {number: handler for number, handler in defaults.items() if signal.getsignal(number) == handler}
    hook, sys.unraisablehook = sys.unraisablehook, hook_without(raised)
    _checks.append(check)
    try:
        for number in replaced:
            signal.signal(number, end)
        yield check
    finally:
        _checks.clear()
        for number, handler in replaced.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook


_PATIENCE_SECONDS = 1.0
"""How long a command may wait for something else after a signal that ends it."""

_LOOK_SECONDS = 0.1

_said: list[str] = []
"""What was printed about a signal, so that it is printed once."""


@contextmanager
def ended_while_waiting() -> Iterator[None]:
    """End the process soon after a signal that its main thread does not see, because it waits in another library.

    Python runs handlers of signals in its main thread, between its own instructions. A request to a server that does
    not answer, for example, takes minutes in which there are none.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    source, sink = pipe_that_never_waits()
    before = signal.set_wakeup_fd(sink, warn_on_full_buffer=False)
    main = threading.get_ident()
    came = threading.Event()
    watch = threading.Thread(target=_end_if_stuck, args=(source, main, came), name="tamis signals", daemon=True)
    watch.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(sink)  # without a signal, the thread reads the end
        if not came.is_set():
            watch.join()


def _end_if_stuck(source: int, main: int, came: threading.Event) -> None:
    """Wait for a signal that ends a command, and end the process once nothing goes on in it.

    At its end, too: Python then waits for its threads, which may wait for the server.
    """
    ending = {signal.SIGINT, *ENDING}
    with os.fdopen(source, "rb", buffering=0) as numbers:
        while (number := numbers.read(1)) and number[0] not in ending:
            pass
    if not number:
        return
    came.set()
    place, used, since = _place_of(main), time.process_time(), time.monotonic()
    while True:
        time.sleep(_LOOK_SECONDS)
        here, seconds = _place_of(main), time.process_time()
        if here != place or seconds - used > _LOOK_SECONDS or is_at_work():
            place, used, since = here, seconds, time.monotonic()
        elif time.monotonic() - since > _PATIENCE_SECONDS:
            _end_at_once(number[0])


def _place_of(thread: int) -> tuple[int, int]:
    """Return where a thread is in Python's code."""
    frame = sys._current_frames().get(thread)
    return (id(frame), frame.f_lasti) if frame is not None else (0, 0)


def _end_at_once(number: int) -> NoReturn:
    from tamis.safety.transaction import abandon_all  # late: commands that write nothing do not need it

    abandon_all()
    if number == signal.SIGINT:  # as where the command ends by itself, a message is only for Ctrl-C
        _say_interrupted()
    os._exit(128 + number)


def _say_interrupted() -> None:
    if not _said:
        _said.append(INTERRUPTED_TEXT)
        with suppress(OSError):
            os.write(2, INTERRUPTED_TEXT.encode())


def _is_output_error(error: OSError) -> bool:
    """Return whether an error was raised while printing."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return any(
        frame.f_code is click.echo.__code__ or frame.f_globals.get("__name__") == "rich.console" for frame in frames
    )


def _stop_without_output(error: OSError) -> NoReturn:
    _silence(sys.stdout)
    with suppress(OSError):
        if error.errno != errno.EPIPE:
            click.echo(f"tamis: standard output cannot be written: {error.strerror}", err=True)
    sys.exit(FAILED)


def _silence(stream: TextIO) -> None:
    """Throw away the rest of the output, which Python would flush at exit, and fail again with exit code 120."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
