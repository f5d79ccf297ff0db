"""Print results, notes, progress and failures of a command, as text or JSON.

Rich and numpy are imported only where they are needed, because the import takes longer than many commands.
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NoReturn, TextIO

import click

from tamis.cli.ending import FAILED, USAGE, VIOLATED, ended_by_signals
from tamis.errors import BoundError, FileError, ParameterError, TamisError
from tamis.formatting import printable, shell_line, size_text
from tamis.jobs.progress import Progress, Step

_LONG_SECONDS = 60.0
_KEYWORD = re.compile(r"\b(overwrite|resume)=True\b")


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
            raise ParameterError(
                f"{path}: cannot be the log, because the command reads or writes it: choose another name for --log"
            )
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
            with suppress(OSError):  # Python 3.13 prints an error of the end of an open stream
                self._stream.close()
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


if TYPE_CHECKING:
    from rich.console import Console

    from tamis.jobs.inspect.result import Inspection
    from tamis.jobs.repack.result import RepackResult
    from tamis.jobs.result import Line, Result

    LinesWithin = Callable[[int | None], Iterator[Line]]
    """Return the lines of a text, at most `width` characters wide; None for no limit."""


@dataclass(frozen=True, slots=True)
class Output:
    """The output of one command."""

    command: str  # Name of the command
    as_json: bool = False  # Print one JSON document on standard output, also if the command fails
    quiet: bool = False  # Print only errors and JSON
    log: Log | None = None  # Gets a copy of everything except JSON

    def result(self, result: Result) -> None:
        """Print the result of a job."""
        if self.log:
            for _, text in result.lines():
                self.log.write(text)
        if self.as_json:
            click.echo(result.to_json(indent=2))
        elif not self.quiet:
            show(result.lines)

    def complain(self, text: str) -> None:
        """Print a message on standard error, with options in the place of Python's keywords."""
        text = _KEYWORD.sub(r"--\1", text)
        click.echo("\n".join(map(printable, f"tamis {self.command}: {text}".splitlines())), err=True)
        if self.log:
            self.log.write(text)

    def note(self, text: str) -> None:
        """Print a note on standard error, unless quiet."""
        if not self.quiet:
            self.complain(text)

    @contextmanager
    def progress(self, check: Callable[[], None] = lambda: None) -> Iterator[Progress]:
        """Yield a function that reports progress; each call of it also calls `check`.

        A terminal shows a bar; a pipe, a file and the log get a line for each finished dataset.
        """
        reporters: list[Progress] = [Steps(self.log.write)] if self.log else []
        bar = is_terminal(sys.stderr) and not self.quiet
        if not bar and not self.quiet:
            reporters.append(Steps(self._say))

        def report(step: str, done: int, total: int) -> None:
            check()
            for reporter in reporters:
                reporter(step, done, total)

        with progress_bar(reporters if bar else None):
            yield report

    def _say(self, text: str) -> None:
        with suppress(OSError):  # the reader of standard error is gone
            click.echo(printable(f"tamis {self.command}: {text}"), err=True)

    @contextmanager
    def failures(self) -> Iterator[None]:
        """Turn an error into a message and an exit code."""
        try:
            yield
        except ParameterError as error:
            self.fail(error, USAGE)
        except BoundError as error:
            self.fail(error, VIOLATED)
        except TamisError as error:
            self.fail(error, FAILED)

    def fail(self, error: Exception, code: int) -> NoReturn:
        """Print an error and end the command."""
        self.complain(str(error))
        if self.as_json:
            from tamis.jobs.result import error_document, json_text

            click.echo(json_text(error_document(error, code), indent=2))
        sys.exit(code)


_WHOLE = ("header", "row", "code")
"""Kinds of lines that are never broken: those of tables, which are folded already, and those to paste."""


def show(lines: LinesWithin) -> None:
    """Print text: on a terminal in colour and wrapped to its width, through a pipe in full."""
    terminal = is_terminal(sys.stdout)
    if not terminal and not os.environ.get("FORCE_COLOR"):
        click.echo("\n".join(text for _, text in lines(None)))
        return
    from rich.console import Console

    console = Console(markup=False, emoji=False, highlight=False)  # names may look like markup
    paint(lines, console, max(console.width, 20) if terminal else None)


def paint(lines: LinesWithin, console: Console, width: int | None) -> None:
    """Print to a terminal, in colour if it has colours."""
    from rich.text import Text

    from tamis.jobs.result import STYLES

    for kind, text in lines(width):
        for line in _wrapped(text, None if kind in _WHOLE else width):
            console.print(Text(line, STYLES.get(kind, "")), soft_wrap=True)


def _wrapped(text: str, width: int | None) -> list[str]:
    """Break a text between words; long paths and names are not broken."""
    if width is None or len(text) <= width:
        return [text]
    return textwrap.wrap(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def print_arguments(output: Output, inspection: Inspection, notation: str, *, alone: bool) -> tuple[str, ...]:
    """Print filters as arguments of another program; return problems with filters that it cannot express."""
    from tamis.jobs.inspect.arguments import COMMENTS, arguments

    printed = arguments(inspection, notation)
    if printed.text:
        if COMMENTS[notation] and not alone:
            click.echo(f"{COMMENTS[notation]} {printable(inspection.path)}")
        click.echo(printed.text)
    for note in printed.notes:
        output.complain(f"note: {note}")
    for problem in printed.problems:
        output.complain(problem)
    return printed.problems


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal; it is None if it was closed when the command started."""
    return stream is not None and stream.isatty()


_WISH = re.compile(r"[^:/\\]+:(?![/\\]).*[=(|].*", re.DOTALL)
"""What somebody wants of a dataset, such as TS:zfp(accuracy=0.1)."""

_WISHES = {
    "inspect": "the name of a dataset follows --variable",
    "plan": "requirements follow --require",
    "repack": "filters follow -f, and requirements --require",
}


def check_no_wishes(command: str, paths: Iterable[str]) -> None:
    """Raise ParameterError if a path that leads nowhere says what is wanted of a dataset."""
    for path in paths:
        if command in _WISHES and _WISH.fullmatch(path) and not os.path.lexists(path):
            raise ParameterError(f"{path}: expected a file, found what is said of a dataset: {_WISHES[command]}")


@contextmanager
def output_of_files(
    command: str, paths: tuple[str, ...], as_json: bool, quiet: bool, log: str | None
) -> Iterator[Output]:
    """Yield the output of a command about files, and turn an error into a message and an exit code."""
    plain = Output(command, as_json, quiet)
    with plain.failures():
        check_no_wishes(command, paths)
        journal = Log(log, command, paths) if log is not None else None
    if journal:
        journal.write(f"started: {shell_line(sys.argv[1:])}")
    output = Output(command, as_json, quiet, journal)
    with output.failures():
        yield output


def show_stored(
    output: Output, target: str, resume: bool, run: Callable[..., RepackResult], *, keep_damaged: bool = False
) -> None:
    """Run a job that stores a file and can be interrupted by signals; print its result and leftover files.

    Unless damage is expected, a target with chunks that cannot be decoded ends the command with an exit code.
    """
    from tamis.jobs.repack.resuming import interrupted, naming_leftovers
    from tamis.remote.address import place_of

    for note in () if resume else interrupted(place_of(target), "removed, since --resume is not given"):
        output.note(note)
    with naming_leftovers(target, resume, output.note), ended_by_signals() as check, output.progress(check) as bar:
        result = run(progress=bar)
    damaged = {path for path, _ in result.damaged}
    for path in result.unreadable:
        if path not in damaged:
            output.note(f"{path}: its values cannot be read; its bytes were copied as they are")
    for path, reason in result.damaged:
        say = output.note if keep_damaged else output.complain
        say(f"{path}: damaged, and copied as it is: {reason}")
    try:
        output.result(result)
    except OSError as error:
        error.strerror = f"{error.strerror}; {target} is complete"
        raise
    if damaged and not keep_damaged:
        output.complain(f"{target} is complete, with the damage of its source: --keep-damaged accepts that")
        sys.exit(FAILED)
