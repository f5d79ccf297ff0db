"""The command line: parse arguments, call a job, print what it did."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import tamis
from tamis.errors import BoundError, ParameterError, TamisError
from tamis.jobs.inspect import DatasetInfo
from tamis.jobs.recipe import parse_chunks, split_recipe
from tamis.jobs.repack import Progress as Report
from tamis.jobs.repack import RepackResult

_FAILED, _USAGE, _VIOLATED = 1, 2, 3


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tamis.__version__, prog_name="tamis")
def main() -> None:
    """See and change the filters of HDF5 and netCDF-4 files, and trust what was written.

    \b
    tamis inspect climate.nc
    tamis repack climate.nc small.nc -f 'TS:zfp(accuracy=0.1)'
    HDF5_PLUGIN_PATH=$(tamis plugin-path) ncdump -v TS small.nc

    Exit codes: 0 done as asked, 1 failed, 2 wrong usage, 3 the bound was violated.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names may hold what the terminal cannot show


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path())
def inspect(files: tuple[str, ...]) -> None:
    """Show the datasets of FILES: shape, type, chunks, filters in words, ratio.

    No plugin is needed, and no values are read.
    """
    failed = False
    for path in files:
        try:
            found = tamis.inspect(path)
        except TamisError as error:
            click.echo(f"tamis inspect: {error}", err=True)
            failed = True
            continue
        table = Table("dataset", "shape", "type", "chunks", "filters", "ratio")
        for each in found.datasets:
            table.add_row(*_inspect_row(each))
        click.echo(found.path)
        _print(table)
    if failed:
        sys.exit(_FAILED)


@main.command()
@click.argument("source", metavar="IN", type=click.Path())
@click.argument("target", metavar="OUT", type=click.Path())
@click.option(
    "-f",
    "--filter",
    "recipes",
    multiple=True,
    required=True,
    metavar="NAME:FILTERS",
    help="Filters for a dataset, or for all that match a pattern such as '/grp/*'; may be given again.",
)
@click.option(
    "-c",
    "--chunks",
    "shapes",
    multiple=True,
    metavar="NAME:SHAPE",
    help="Chunk shape for a dataset or pattern, slowest axis first, such as TS:4x96x144.",
)
@click.option(
    "--checksum/--no-checksum",
    default=True,
    show_default=True,
    help="Add fletcher32 after zfp, so that damage cannot go unseen.",
)
@click.option("--overwrite", is_flag=True, help="Replace OUT if it exists.")
def repack(
    source: str, target: str, recipes: tuple[str, ...], shapes: tuple[str, ...], checksum: bool, overwrite: bool
) -> None:
    """Copy IN to OUT with other filters on some datasets, and prove the bound.

    Everything else in the file is copied as it is. What was written is read again and compared with IN, value by value,
    before OUT gets its name.

    \b
    FILTERS is a chain such as
      zfp(accuracy=0.1)        largest absolute error, in units of the data
      zfp(rate=8)              bits per value; also precision=16, reversible=true
      shuffle|deflate(4)       lossless
      zfp(accuracy=0.1)|shuffle|deflate(4)
                               chunks that zfp cannot keep within the bound take the lossless rest
    """
    with _failures("repack"):
        wanted = _by_name("-f", [split_recipe(text) for text in recipes])
        texts = _by_name("-c", [split_recipe(text, "NAME:SHAPE", "TS:4x96x144") for text in shapes])
        chunks = {name: parse_chunks(text) for name, text in texts.items()}
        with _progress() as progress:
            result = tamis.repack(
                source, target, wanted, chunks=chunks, checksum=checksum, overwrite=overwrite, progress=progress
            )
        _print_repacked(result)


@main.command("plugin-path")
def plugin_path() -> None:
    """Print the folder of the HDF5 plugin, for HDF5_PLUGIN_PATH.

    \b
    export HDF5_PLUGIN_PATH=$(tamis plugin-path)
    """
    click.echo(tamis.plugin_path())


def _by_name(option: str, pairs: list[tuple[str, str]]) -> dict[str, str]:
    by_name = dict(pairs)
    if len(by_name) < len(pairs):
        raise ParameterError(f"expected each name once in {option}, got {', '.join(name for name, _ in pairs)}")
    return by_name


def _print(table: Table) -> None:
    # Names are no markup. Through a pipe nothing is folded to the width of a terminal that is not there.
    width = None if sys.stdout.isatty() else 100_000
    Console(width=width, markup=False, emoji=False, highlight=False).print(table)


def _inspect_row(each: DatasetInfo) -> tuple[str, ...]:
    filters = list(each.filters)
    if each.unfiltered_chunks:
        filters.append(f"not applied to all: {each.unfiltered_chunks} of {each.stored_chunks} chunks skip a filter")
    if each.problem:
        filters.append(each.problem)
    return (
        each.path,
        _shape(each.shape),
        each.dtype,
        "" if each.chunks is None else _shape(each.chunks),
        "\n".join(filters),
        "" if each.ratio is None else f"{each.ratio:.2f}",
    )


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _print_repacked(result: RepackResult) -> None:
    table = Table("dataset", "filters", "in", "out", "ratio", "largest error", "bound", "chunks without zfp")
    for each in result.datasets:
        table.add_row(
            each.path,
            each.pipeline,
            _size(each.source_nbytes),
            _size(each.target_nbytes),
            f"{each.ratio:.2f}",
            f"{each.largest_error:.3g}",
            "none" if each.bound is None else f"{each.bound:g}",
            f"{each.lossless_chunks} of {each.chunks}",
        )
    _print(table)
    for each in result.datasets:
        for note in each.notes:
            click.echo(f"{each.path}: {note}")
    for path, reason in result.kept:
        click.echo(f"{path}: kept as it was: {reason}")
    click.echo(
        f"{result.source} {_size(result.source_nbytes)} -> {result.target} {_size(result.target_nbytes)}"
        f" in {result.seconds:.2f} s, {len(result.datasets)} dataset(s) stored anew, read again and verified"
    )


def _size(nbytes: int) -> str:
    number = float(nbytes)
    for unit in ("B", "kB", "MB", "GB"):
        if number < 999.5:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB"


@contextmanager
def _progress() -> Iterator[Report]:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bars:
        task = bars.add_task("")
        yield lambda what, done, total: bars.update(task, description=what, completed=done, total=total)


@contextmanager
def _failures(command: str) -> Iterator[None]:
    try:
        yield
    except ParameterError as error:
        _stop(command, error, _USAGE)
    except BoundError as error:
        _stop(command, error, _VIOLATED)
    except TamisError as error:
        _stop(command, error, _FAILED)


def _stop(command: str, error: Exception, code: int) -> NoReturn:
    click.echo(f"tamis {command}: {error}", err=True)
    sys.exit(code)
