"""How far a command is: a bar on a terminal, a line for each dataset elsewhere, and a log."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TextIO

import click

from tamis.errors import FileError, ParameterError
from tamis.formatting import printable
from tamis.jobs.progress import Progress, Step

_LONG_SECONDS = 60.0


class Steps:
    """Print a line when a step is done, or all steps of a kind that share a line; of long ones every minute how far.

    Parameters
    ----------
    say
        Is given each line.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._step, self._together, self._finished = "", "", False
        self._began = self._said = 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        """Take note of the progress of a step."""
        now = time.monotonic()
        together = what.together if isinstance(what, Step) else ""
        if what != self._step:
            if not together or together != self._together:
                self._began = now
            self._step, self._together, self._finished, self._said = what, together, False, now
        if done >= total:
            if not self._finished and not (isinstance(what, Step) and together and what.number < what.step_count):
                took = now - self._began
                self._say(f"{together or label(what)}: done" + (f" in {took:.1f} s" if took >= 0.1 else ""))
            self._finished = True
        elif now - self._said >= _LONG_SECONDS:
            self._say(f"{label(what)}: {100 * done / total:.0f} %")
            self._said = now


class Log:
    """Lines with times, appended to a file.

    Parameters
    ----------
    path
        Of the file.
    command
        Name of the command.
    others
        Files that it must not be.

    Raises
    ------
    FileError
        If the file cannot be opened.
    ParameterError
        If it is one of the others.
    """

    def __init__(self, path: str, command: str, others: tuple[str, ...]) -> None:
        self._start = f"tamis {command}[{os.getpid()}]"
        if any(os.path.exists(each) and os.path.exists(path) and os.path.samefile(each, path) for each in others):
            raise ParameterError(f"{path}: expected a log of its own, got a file that is read or written (--log)")
        try:
            self._stream: TextIO | None = open(path, "a", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
        except (OSError, ValueError) as error:
            text = getattr(error, "strerror", None) or error
            raise FileError(f"{path}: the log cannot be opened: {text}").at(path=path) from error

    def write(self, text: str) -> None:
        """Append a line for each line of a text; a log that cannot be written ends, but not the command."""
        if self._stream is None:
            return
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        try:
            for line in text.splitlines():
                self._stream.write(f"{now} {self._start}: {printable(line)}\n")
            self._stream.flush()
        except OSError as error:
            self._stream = None
            click.echo(f"{self._start}: the log cannot be written and ends here: {error.strerror}", err=True)


@contextmanager
def progress_bar(shown: list[Progress] | None) -> Iterator[None]:
    """Show a bar on standard error, which moves by a function that is added to `shown`; nothing if that is None."""
    if shown is None:
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    def move(what: str, done: int, total: int) -> None:
        bar.update(task, description=printable(label(what)), completed=done, total=total)

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("")
        shown.append(move)
        yield


def label(what: str) -> str:
    """Return a step with its number, where it has one: ``writing /TS (3 of 12)``."""
    return f"{what} ({what.number} of {what.step_count})" if isinstance(what, Step) else what
