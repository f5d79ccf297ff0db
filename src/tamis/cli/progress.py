"""The progress of a command: a bar on a terminal, a line for each dataset elsewhere, and a log."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TextIO

import click

from tamis.errors import FileError, ParameterError
from tamis.formatting import printable, size_text
from tamis.jobs.progress import Progress, Step

_LONG_SECONDS = 60.0


class Steps:
    """Print a line when a step, or a group of steps, is done; for long steps also the percentage every minute."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._step, self._group, self._finished = "", "", False
        self._start_time = self._line_time = 0.0

    def __call__(self, step: str, done: int, total: int) -> None:
        """Record the progress of a step, and print a line if one is due."""
        time_now = time.monotonic()
        group = step.together if isinstance(step, Step) else ""
        if step != self._step:
            if not group or group != self._group:
                self._start_time = time_now
            self._step, self._group, self._finished, self._line_time = step, group, False, time_now
        if done >= total:
            if not self._finished and not (isinstance(step, Step) and group and step.number < step.step_count):
                seconds = time_now - self._start_time
                self._say(f"{group or label(step)}: done" + (f" in {seconds:.1f} s" if seconds >= 0.1 else ""))
            self._finished = True
        elif time_now - self._line_time >= _LONG_SECONDS:
            self._say(f"{label(step)}: {100 * done / total:.0f} % of {_amount(step, total)}")
            self._line_time = time_now


class Log:
    """Lines with times, appended to a file."""

    def __init__(self, path: str, command: str, others: tuple[str, ...]) -> None:
        self._start = f"tamis {command}[{os.getpid()}]"
        if any(os.path.exists(other) and os.path.exists(path) and os.path.samefile(other, path) for other in others):
            raise ParameterError(f"{path}: expected a separate file as --log, got one that the command reads or writes")
        try:
            self._stream: TextIO | None = open(path, "a", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
        except (OSError, ValueError) as error:
            text = getattr(error, "strerror", None) or error
            raise FileError(f"{path}: the log cannot be opened: {text}").at(path=path) from error

    def write(self, text: str) -> None:
        """Append each line of a text with the time; a log that cannot be written ends, but the command continues."""
        if self._stream is None:
            return
        timestamp = datetime.now().astimezone().isoformat(timespec="seconds")
        try:
            for line in text.splitlines():
                self._stream.write(f"{timestamp} {self._start}: {printable(line)}\n")
            self._stream.flush()
        except OSError as error:
            self._stream = None
            click.echo(f"{self._start}: the log cannot be written and ends here: {error.strerror}", err=True)


@contextmanager
def progress_bar(reporters: list[Progress] | None) -> Iterator[None]:
    """Show a bar on standard error, and add the function that moves it to `reporters`; no bar if that is None."""
    if reporters is None:
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    def move(step: str, done: int, total: int) -> None:
        amount = f"{_amount(step, done)}/{_amount(step, total)}"
        bar.update(task, description=printable(label(step)), completed=done, total=total, amount=amount)

    texts = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[amount]}", markup=False)
    columns = (texts[0], BarColumn(), texts[1], TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", amount="")
        reporters.append(move)
        yield


def label(step: str) -> str:
    """Return a step with its number, if it has one: ``writing /TS (3 of 12)``."""
    return f"{step} ({step.number} of {step.step_count})" if isinstance(step, Step) else step


def _amount(step: str, count: int) -> str:
    """Return an amount of work: bytes of values, or a number of chunks and the like."""
    nbytes = step.item_nbytes if isinstance(step, Step) else 0
    return size_text(count * nbytes) if nbytes else str(count)
