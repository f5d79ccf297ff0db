"""Options, progress and output of a repack of many files."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import tamis
from tamis.cli.ending import FAILED, VIOLATED, ended_by_signals
from tamis.cli.options import FILE, Command, is_folder
from tamis.cli.output import Output, is_terminal
from tamis.errors import FileError, ParameterError
from tamis.formatting import plural, printable, size_text
from tamis.optional import optional

if TYPE_CHECKING:
    from tamis.jobs.many.result import FolderStatus
    from tamis.jobs.many.run import ManyProgress, Running

OTHERS = ("skip", "copy", "fail")
"""Listed here, because the module that defines them takes long to import."""
_LINE_SECONDS = 60.0
_MOST_BARS = 8


class _Shard(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """A part of all files, such as 3/8."""

    name = "part"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Return the number of the part, and of parts."""
        number, _, count = value.partition("/")
        if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
            self.fail(f"expected a part such as 3/8, got {value!r}", param, ctx)
        return int(number), int(count)


_OPTIONS = (
    click.option(
        "--files-from", metavar="LIST", help="Read more names of files from LIST, one a line; - is standard input."
    ),
    click.option(
        "--include",
        multiple=True,
        metavar="PATTERN",
        help="Only files of a folder that match, such as '*_day_*.nc'; repeatable.",
    ),
    click.option(
        "--exclude", multiple=True, metavar="PATTERN", help="Leave out files of a folder that match; repeatable."
    ),
    click.option(
        "--other",
        type=click.Choice(OTHERS),
        help="What to do with files that are neither HDF5, netCDF nor Zarr; skip by default.",
    ),
    click.option(
        "--to", type=click.Choice(("nc", "zarr")), help="Format of the targets; by default that of each source."
    ),
    click.option(
        "--combine",
        metavar="DIMENSION",
        help="Make one file or Zarr store OUT of all files, joined along this dimension, such as time.",
    ),
    click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Number of processes; one for each core by default. With a single file, they encode its large datasets.",
    ),
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Let the workers of a Dask cluster do the work; ADDRESS is that of its scheduler.",
    ),
    click.option(
        "--scheduler-file", metavar="FILE", help="Like --scheduler, with the address in a file that Dask wrote."
    ),
    click.option(
        "--shard",
        type=_Shard(),
        metavar="I/N",
        help="Do only part I of N of the files, for job arrays. Not to be confused with --shards, which is about Zarr.",
    ),
    click.option(
        "--keep-going/--stop",
        default=None,
        help="After a file has failed, go on with the others (default), or begin no more.",
    ),
    click.option(
        "--retries",
        type=click.IntRange(min=0),
        metavar="N",
        help="How often to try a file again after an error of a disk or network; 2 by default.",
    ),
    click.option(
        "--checksums", is_flag=True, default=None, help="Also record the SHA-256 of sources; --replace always does."
    ),
    click.option(
        "--replace",
        is_flag=True,
        default=None,
        help="Without OUT: replace each file by the new one, once it is proven; name, owner, mode and times stay.",
    ),
    click.option(
        "--packing",
        type=click.Choice(("one", "each")),
        help="For packed variables: one packing in all files (default), by a pass over all values first, or one for"
        " each file.",
    ),
    click.option(
        "--keep-originals", metavar="FOLDER", type=FILE, help="Keep the files that --replace replaces in this folder."
    ),
    click.option(
        "--break-hard-links",
        is_flag=True,
        default=None,
        help="Also replace files that have several names (hard links); their other names keep the old content.",
    ),
    click.option(
        "--settle",
        type=click.FloatRange(min=0),
        metavar="SECONDS",
        help="Leave files alone that changed in the last SECONDS; 2 by default, 60 on file servers.",
    ),
    click.option("--yes", is_flag=True, help="Do not ask before files are replaced."),
)


MANY_OPTIONS = (
    *("files_from", "include", "exclude", "other", "to", "combine", "workers", "scheduler", "scheduler_file", "shard"),
    *(
        "keep_going",
        "retries",
        "checksums",
        "replace",
        "keep_originals",
        "break_hard_links",
        "settle",
        "packing",
        "yes",
    ),
)
"""Names of these options as arguments."""
_OF_ANY_NUMBER = ("workers", "scheduler", "scheduler_file", "yes")
"""Those that a single file has, too."""
_RUNNING = ("workers", "retries", "keep_going", "keep_damaged", "scheduler", "scheduler_file")
"""Those about how a run goes, which a dry run has no use for."""


def many_options(command: Command) -> Command:
    """Add the options for many files."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def split_paths(paths: Sequence[str], many: dict[str, Any]) -> tuple[list[str], str | None]:
    """Return the sources and the target of a command line; None for files that are replaced."""
    if many["replace"]:
        if not paths and not many["files_from"]:
            raise click.UsageError("Missing argument: name the files or folders to replace.")
        return [*paths], None
    if not paths or (len(paths) == 1 and not many["files_from"]):
        raise click.UsageError(f"Missing argument '{'OUT' if paths else 'IN... OUT'}'.")
    return [*paths[:-1]], paths[-1]


def is_many(sources: Sequence[str], target: str, many: dict[str, Any]) -> bool:
    """Return whether a command line is about several files: by its options, or by a folder on either side."""
    is_store = _names_store(target)  # and no folder of targets
    # A folder with the name of a store may be one whose metadata are lost, which opening it says.
    are_several = len(sources) != 1 or (is_folder(sources[0]) and not (is_store and _names_store(sources[0])))
    if many["combine"] is None and are_several and is_store:
        raise ParameterError(
            f"{target}: expected a folder for several files, got the name of a Zarr store: join the files (--combine"
            " time), or end the name with /"
        )
    if many["combine"] is not None or are_several or target.endswith(os.sep) or (is_folder(target) and not is_store):
        return True
    given = [name for name, value in many.items() if value not in (None, (), False) and name not in _OF_ANY_NUMBER]
    if given:
        raise ParameterError(
            f"--{given[0].replace('_', '-')} is for several files or a folder, got {sources[0]} and {target}; "
            "end the name of a new folder with /"
        )
    return False


def _names_store(path: str) -> bool:
    return path.lower().endswith(".zarr")


def repack_many(
    output: Output,
    sources: list[str],
    target: str | None,
    recipe: tamis.Recipe,
    *,
    dry_run: bool,
    many: dict[str, Any],
    options: dict[str, Any],
) -> None:
    """Repack files into a folder or, with --combine, into one file; show the progress, and print the result."""
    if many["combine"] is not None:
        _combine(output, sources, target, recipe, dry_run, many, options)
        return
    running = {name: many.pop(name) for name in _RUNNING}
    is_confirmed, files_from = many.pop("yes"), many.pop("files_from")
    del many["combine"]
    asked = {name: value for name, value in many.items() if value is not None}
    del options["resume"]  # such runs always continue
    asked["files_from"] = _lines_of(files_from) if files_from else ()
    if dry_run:
        preview = tamis.preview_repack_many(sources, target, recipe, **asked, **options)
        output.result(preview)
        if not preview.ok:
            for file in preview.files if output.quiet and not output.as_json else ():
                if file.action == "refuse":
                    output.complain(file.reason)
            sys.exit(FAILED)
        return
    if target is None and not is_confirmed:
        asked["confirm"] = _confirm
    client = client_of(output, running.pop("scheduler"), running.pop("scheduler_file"))
    given = {name: value for name, value in running.items() if value is not None}
    with _naming_the_next_step(output), ended_by_signals() as check, _progress(output, check) as progress:
        result = tamis.repack_many(
            sources, target, recipe, client=client, warn=warner(output), progress=progress, **given, **asked, **options
        )
    output.result(result)
    end(result, output)


@contextmanager
def _naming_the_next_step(output: Output) -> Iterator[None]:
    """Say how an interrupted run continues."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        output.note("interrupted: what is done stays; give the same command again to continue")
        raise


def _combine(
    output: Output, sources: list[str], target: str | None, recipe: tamis.Recipe, dry_run: bool, many: Any, options: Any
) -> None:
    """Join files into one, and print the result; refuse options that make no sense for one file."""
    dimension, files_from = many.pop("combine"), many.pop("files_from")
    choice = {name: many.pop(name) for name in ("include", "exclude")}
    refused = [name for name, value in many.items() if value] + ["dry_run"] * dry_run
    refused += [name for name in ("resume", "follow") if options.pop(name)]
    if refused or target is None:
        raise ParameterError(f"--combine cannot be combined with --{(refused or ['replace'])[0].replace('_', '-')}")
    paths = [*sources, *(_lines_of(files_from) if files_from else ())]
    with ended_by_signals() as check, output.progress(check) as progress:
        result = tamis.combine(paths, target, recipe, dimension, **choice, progress=progress, **options)
    output.result(result)


def warner(output: Output) -> Callable[[Any], None]:
    """Return a function that prints a warning, also where only errors are printed: values may be lost."""
    return lambda warning: output.complain(f"{warning.path}: {warning.text}")


def end(result: FolderStatus, output: Output) -> None:
    """End a command with the exit code of a status."""
    if not result.ok:
        if output.quiet and not output.as_json:
            for failure in result.failures:
                output.complain(failure.message)
            for damaged in () if result.keep_damaged else result.damaged:
                output.complain(f"{damaged.source}: {damaged.dataset}: damaged, and copied as it is: {damaged.reason}")
        sys.exit(VIOLATED if result.missed or result.differs else FAILED)


def _lines_of(path: str) -> list[str]:
    """Return the names in a file, one a line."""
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}").at(path=path) from error
    return [os.fsdecode(line) for line in data.splitlines() if line.strip()]


def _confirm(preview: tamis.FolderPreview) -> None:
    """Ask before files are replaced; without a terminal, refuse."""
    left = [file for file in preview.files if file.action in ("repack", "copy")]
    if not left:
        return
    size = size_text(sum(file.nbytes for file in left))
    question = f"Replace {plural(len(left), 'file')} ({size}) in {printable(preview.folder)}?"
    if not is_terminal(sys.stdin):
        raise ParameterError(f"{question} There is no terminal to ask at: add --yes to replace them")
    click.confirm(question, abort=True, err=True)


def client_of(output: Output, address: str | None, file: str | None) -> Any:
    """Return a client of a Dask cluster, and note its dashboard; None if none is named."""
    if address is None and file is None:
        return None
    if address is not None and file is not None:
        raise ParameterError("--scheduler and --scheduler-file cannot be combined")
    distributed = optional("distributed", "--scheduler needs Dask, which is not installed: pip install 'tamis[dask]'")
    try:
        new_client: Callable[..., Any] = distributed.Client
        client = new_client(address, scheduler_file=file)
    except (OSError, TimeoutError, ValueError) as error:
        raise FileError(f"{address or file}: no scheduler of Dask answers there: {error}") from error
    output.note(f"dashboard of the cluster: {client.dashboard_link}")
    return client


@contextmanager
def _progress(output: Output, check: Callable[[], None]) -> Iterator[ManyProgress]:
    """Yield a function that shows the progress: bars on a terminal, elsewhere a line a minute, as in the log."""
    lines = _Lines(output)
    if output.quiet or not is_terminal(sys.stderr):

        def tell(running: Running) -> None:
            check()
            lines(running)

        yield tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    texts = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[amount]}", markup=False)
    columns = (texts[0], BarColumn(), texts[1], TimeRemainingColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        whole = bars.add_task("all files", amount="")
        rows: dict[str, Any] = {}

        def show(running: Running) -> None:
            check()
            lines(running)
            amount = f"{running.done}/{running.files}, {size_text(running.done_nbytes)}/{size_text(running.nbytes)}"
            bars.update(whole, completed=running.done_nbytes, total=max(running.nbytes, 1), amount=amount)
            for path in [path for path in rows if path not in running.at_work]:
                bars.remove_task(rows.pop(path))
            for path, (step, done, total) in [*running.at_work.items()][:_MOST_BARS]:
                row = rows.get(path)
                if row is None:
                    row = rows[path] = bars.add_task("", amount="")
                bars.update(row, description=f"{printable(path)}: {printable(step)}", completed=done, total=total)

        yield show


class _Lines:
    """A line a minute, for the log and, without a terminal, for standard error."""

    def __init__(self, output: Output) -> None:
        self._output, self._begin = output, time.monotonic()
        self._next = self._begin + _LINE_SECONDS
        self._failed = 0

    def __call__(self, running: Running) -> None:
        """Print a line if one is due."""
        now = time.monotonic()
        if now < self._next and running.failed == self._failed:
            return
        self._next, self._failed = now + _LINE_SECONDS, running.failed
        text = f"{running.done} of {plural(running.files, 'file')} done"
        text += f", {size_text(running.done_nbytes)} of {size_text(running.nbytes)}"
        text += f", {running.failed} failed" if running.failed else ""
        made = running.done_nbytes - running.begun_nbytes
        if made:
            left = (now - self._begin) * (running.nbytes - running.done_nbytes) / made
            text += f", about {_duration(left)} left"
        if self._output.log:
            self._output.log.write(text)
        if not (self._output.quiet or is_terminal(sys.stderr)):
            click.echo(f"tamis {self._output.command}: {text}", err=True)


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{max(minutes, 1)} min"
    return f"{minutes // 60} h {minutes % 60} min"
