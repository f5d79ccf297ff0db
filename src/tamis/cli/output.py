"""Print results, notes and failures of a command, as text or JSON.

Rich and numpy are imported only where they are needed, because the import takes longer than many commands.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO

import click

from tamis.cli.ending import FAILED, USAGE, VIOLATED, ended_by_signals
from tamis.cli.progress import Log, Steps, progress_bar
from tamis.errors import BoundError, ParameterError, TamisError
from tamis.formatting import printable, shell_line

if TYPE_CHECKING:
    from rich.console import Console

    from tamis.jobs.inspect.result import Inspection
    from tamis.jobs.parts import Line
    from tamis.jobs.progress import Progress
    from tamis.jobs.repack.result import RepackResult
    from tamis.jobs.result import Result

    LinesWithin = Callable[[int | None], Iterator[Line]]
    """Return the lines of a text, at most so many characters wide; None for no limit."""


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
        """Print a message on standard error."""
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

    from tamis.jobs.parts import STYLES

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


def print_header(path: str) -> None:
    """Print the header of a file as CDL."""
    from tamis.jobs.inspect.cdl import cdl_header

    click.echo(cdl_header(path), nl=False)


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal; it is None if it was closed when the command started."""
    return stream is not None and stream.isatty()


@contextmanager
def output_of_two_files(
    command: str, source: str, target: str, as_json: bool, quiet: bool, log: str | None
) -> Iterator[Output]:
    """Yield the output of a command with two files, and turn an error into a message and an exit code."""
    plain = Output(command, as_json, quiet)
    with plain.failures():
        journal = Log(log, command, (source, target)) if log is not None else None
    if journal:
        journal.write(f"started: {shell_line(sys.argv[1:])}")
    output = Output(command, as_json, quiet, journal)
    with output.failures():
        yield output


def show_stored(output: Output, target: str, resume: bool, run: Callable[..., RepackResult]) -> None:
    """Run a job that stores a file and can be interrupted by signals; print its result and leftover files."""
    from tamis.jobs.repack.resuming import interrupted, naming_leftovers

    for note in () if resume else interrupted(Path(target), "removed, since --resume is not given"):
        output.note(note)
    with naming_leftovers(target, resume, output.note), ended_by_signals() as check, output.progress(check) as bar:
        result = run(progress=bar)
    for path in result.unreadable:
        output.note(f"{path}: its values cannot be read; its bytes were copied as they are")
    try:
        output.result(result)
    except OSError as error:
        error.strerror = f"{error.strerror}; {target} is complete"
        raise
