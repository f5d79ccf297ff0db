"""What the commands print: tables, progress, failures.

Rich is imported when something is printed with it, since that takes longer than many a command.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn, TextIO

import click

from tamis.chunks.words import shape_text, size_text
from tamis.cli.ending import FAILED, USAGE, VIOLATED
from tamis.errors import BoundError, ParameterError, TamisError
from tamis.formatting import printable
from tamis.jobs.repack import Progress as Report
from tamis.jobs.repacking import RepackPlan, RepackResult

if TYPE_CHECKING:
    from tamis.jobs.inspection import Inspection


def print_table(*rows: Sequence[str]) -> None:
    """Print a table, its header first: folded on a terminal, a line for each row through a pipe."""
    cells = [[printable(cell) for cell in row] for row in rows]
    if not _is_terminal(sys.stdout):
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for line in cells:
            click.echo(f"│ {' │ '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} │")
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*cells[0])
    for row in cells[1:]:
        table.add_row(*row)
    Console(markup=False, emoji=False, highlight=False).print(table)  # names are no markup


def print_inspection(found: Inspection, *, first: bool) -> None:
    """Print what `inspect` found, after an empty line if it is not the first."""
    from tamis.jobs.inspection.terminal import lines, show

    if not first:
        click.echo()
    if _is_terminal(sys.stdout):
        from rich.console import Console

        show(found, Console(markup=False, emoji=False, highlight=False))
    else:
        click.echo("\n".join(lines(found)))


def print_arguments(found: Inspection, notation: str, *, alone: bool) -> tuple[str, ...]:
    """Print filters as arguments of another program; return what it cannot say."""
    from tamis.jobs.inspection.arguments import COMMENTS, arguments

    made = arguments(found, notation)
    if made.text:
        if COMMENTS[notation] and not alone:
            click.echo(f"{COMMENTS[notation]} {printable(found.path)}")
        click.echo(made.text)
    for each in made.notes:
        complain("inspect", f"note: {each}")
    for each in made.problems:
        complain("inspect", each)
    return made.problems


def print_repacked(result: RepackResult) -> None:
    """Print what `repack` did."""
    rows = [("dataset", "filters", "in", "out", "ratio", "largest error", "bound", "chunks without zfp")]
    rows += [
        (
            each.path,
            each.pipeline,
            size_text(each.source_nbytes),
            size_text(each.target_nbytes + each.companion_nbytes),
            f"{each.ratio:.2f}",
            f"{each.largest_error:.3g}",
            "none" if each.bound is None else f"{each.bound:g}",
            f"{each.lossless_chunks} of {each.chunks}",
        )
        for each in result.datasets
    ]
    print_table(*rows)
    for each in result.datasets:
        for note in each.notes:
            _say(f"{each.path}: {note}")
    for path, reason in result.kept:
        _say(f"{path}: kept as it was: {reason}")
    copied = sum(each.copied for each in result.datasets)
    _say(
        f"{result.source} {size_text(result.source_nbytes)} -> {result.target} {size_text(result.target_nbytes)}"
        f" in {result.seconds:.2f} s, {len(result.datasets) - copied} dataset(s) stored anew,"
        f"{f' {copied} copied as they are,' * bool(copied)} read again and verified"
    )
    if reused := sum(each.reused_chunks for each in result.datasets):
        chunks = sum(each.chunks for each in result.datasets if not each.copied)
        click.echo(f"{reused} of {chunks} chunks were taken over from an interrupted run")
    for note in result.notes:
        _say(note)


def print_plan(plan: RepackPlan) -> None:
    """Print what `repack` would do."""
    rows = [("dataset", "what", "filters now", "chunks now", "filters then", "chunks then", "bound")]
    rows += [
        (
            each.path,
            each.action,
            each.source_pipeline,
            "" if each.source_chunks is None else shape_text(each.source_chunks),
            each.pipeline,
            "" if each.chunks is None else shape_text(each.chunks),
            "none" if each.bound is None else f"{each.bound:g}",
        )
        for each in plan.datasets
    ]
    print_table(*rows)
    for each in plan.datasets:
        if each.reusable_chunks:
            _say(f"{each.path}: {each.reusable_chunks} chunks can be taken over from an interrupted run")
        what = "dropped" if each.action == "drop" else "kept as it is"
        for text in (*([f"{what}: {each.reason}"] if each.reason else []), *each.notes):
            _say(f"{each.path}: {text}")
    for note in plan.notes:
        _say(note)
    _say(f"{plan.target}: nothing was written")


def _is_terminal(stream: TextIO | None) -> bool:
    """Tell whether a stream is a terminal; Python has none where the command was started with it closed."""
    return stream is not None and stream.isatty()


def _say(text: str) -> None:
    """Print a line; names in a file may hold what a terminal would act on."""
    click.echo(printable(text))


@contextmanager
def progress_bars(check: Callable[[], None] = lambda: None) -> Iterator[Report]:
    """Show progress on a terminal, through the function that is given; `check` is called whenever that is."""
    if not _is_terminal(sys.stderr):
        yield lambda *_: check()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    def told(what: str, done: int, total: int) -> None:
        check()
        bars.update(task, description=printable(what), completed=done, total=total)

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("")
        yield told


@contextmanager
def failures(command: str) -> Iterator[None]:
    """Turn errors into a message and an exit code."""
    try:
        yield
    except ParameterError as error:
        stop(command, error, USAGE)
    except BoundError as error:
        stop(command, error, VIOLATED)
    except TamisError as error:
        stop(command, error, FAILED)


def stop(command: str, error: Exception, code: int) -> NoReturn:
    """Print an error and end."""
    complain(command, str(error))
    sys.exit(code)


def complain(command: str, text: str) -> None:
    """Print what a command has to say beside its output."""
    click.echo("\n".join(map(printable, f"tamis {command}: {text}".splitlines())), err=True)
