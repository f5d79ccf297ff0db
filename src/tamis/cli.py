"""The command line: parse arguments, call a job, print what it did."""

from __future__ import annotations

import io
import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import NoReturn, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import tamis
from tamis.chunks.words import size_text
from tamis.errors import BoundError, ParameterError, TamisError
from tamis.filters.catalogue import catalogue
from tamis.jobs.inspection import Inspection, json_document
from tamis.jobs.inspection.arguments import COMMENTS, TARGETS, arguments
from tamis.jobs.inspection.cards import printable
from tamis.jobs.inspection.terminal import lines, show
from tamis.jobs.recipe import parse_chunks, split_filters, split_recipe
from tamis.jobs.repack import Progress as Report
from tamis.jobs.repack import RepackResult
from tamis.jobs.spec import spec as make_spec
from tamis.notation.detect import NOTATIONS
from tamis.notation.netcdf import Compat

T = TypeVar("T")

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
@click.argument("files", nargs=-1, required=True, type=click.Path(readable=False))
@click.option(
    "-v",
    "--variable",
    "variables",
    multiple=True,
    metavar="NAME",
    help="Only this dataset, or those that match a pattern such as '/grp/*'; may be given again.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, see docs/inspect.md.")
@click.option(
    "--as",
    "notation",
    type=click.Choice(TARGETS),
    help="Print filters and chunks as arguments of another program, ready to paste.",
)
def inspect(files: tuple[str, ...], variables: tuple[str, ...], as_json: bool, notation: str | None) -> None:
    """Show the datasets of FILES: shape, type, chunks, filters in words, size, ratio, and what can read them.

    No plugin is needed, and no values are read.

    \b
    tamis inspect climate.nc
    tamis inspect climate.nc -v TS --as h5repack
    tamis inspect *.nc --json | jq '.files[].datasets[] | {path, pipeline, ratio}'
    """
    if as_json and notation:
        raise click.UsageError("expected --json or --as, got both")
    found: list[Inspection] = []
    errors: list[tuple[str, str]] = []
    for path in files:
        try:
            each = tamis.inspect(path, variables)
            if notation:
                errors.extend((path, problem) for problem in _print_arguments(each, notation, alone=len(files) == 1))
            elif not as_json:
                _print_inspection(each, first=not found)
        except TamisError as error:
            click.echo(f"tamis inspect: {error}", err=True)
            errors.append((path, str(error)))
        else:
            found.append(each)
    if as_json:
        click.echo(json_document(found, errors))
    if errors:
        sys.exit(_FAILED)


@main.command()
@click.argument("source", metavar="IN", type=click.Path(readable=False))
@click.argument("target", metavar="OUT", type=click.Path(readable=False))
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
        wanted = _by_name("-f", [split_filters(text) for text in recipes])
        texts = _by_name("-c", [split_recipe(text, "NAME:SHAPE", "TS:4x96x144") for text in shapes])
        chunks = {name: parse_chunks(text) for name, text in texts.items()}
        with _progress() as progress:
            result = tamis.repack(
                source, target, wanted, chunks=chunks, checksum=checksum, overwrite=overwrite, progress=progress
            )
        _print_repacked(result)


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, required=True, metavar="TEXT", type=click.UNPROCESSED)
@click.option("--variable", default="", metavar="NAME", help="Dataset or variable, for the notations that name it.")
@click.option("--chunks", metavar="SHAPE", help="Chunk shape, slowest axis first, such as 4x96x144.")
@click.option("--dtype", metavar="TYPE", help="Type of the values, such as f4.")
@click.option("--from", "notation", type=click.Choice(NOTATIONS), help="How to read TEXT, instead of by its looks.")
@click.option("--compat", type=click.Choice(["netcdf-c", "doc"]), help="How to read numbers of netCDF text.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def spec(
    words: tuple[str, ...],
    variable: str,
    chunks: str | None,
    dtype: str | None,
    notation: str | None,
    compat: Compat | None,
    as_json: bool,
) -> None:
    """Write the filters of TEXT in every notation, ready to paste.

    TEXT is in any of them, as one word or as it stands in a shell. With --chunks and --dtype also the parameters that
    the filters leave in a file are shown.

    \b
    tamis spec 'zfp(accuracy=0.1)|shuffle|deflate(4)'
    tamis spec 'TS,32013,3,0,0.1d' --chunks 4x96x144 --dtype f4
    tamis spec -f TS:UD=32013,0,3,2,0,16
    """
    with _failures("spec"):
        shape = None if chunks is None else parse_chunks(chunks)
        text = words[0] if len(words) == 1 else shlex.join(words)
        found = make_spec(text, variable=variable, chunks=shape, dtype=dtype, notation=notation, compat=compat)
    click.echo(found.to_json() if as_json else str(found))


@main.command("filters")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_filters(names: tuple[str, ...], as_json: bool) -> None:
    """List the filters that tamis knows, and whether they are installed here; with NAME also their parameters.

    \b
    tamis filters
    tamis filters zfp blosc

    Others are kept as they are, and written filter(ID,PARAMETER,…). docs/filters.md says how a package adds one.
    """
    with _failures("filters"):
        entries = catalogue(names)
    if as_json:
        click.echo(json.dumps([asdict(each) for each in entries], indent=2))
        return
    for each in entries:
        click.echo(f"{each.id:>5}  {each.name:<11}  {each.about}{f' ({each.takes})' if each.takes else ''}")
        for parameter in each.parameters if names else ():
            click.echo(f"{'':20}{parameter}")
        if each.missing:
            click.echo(f"{'':20}{each.missing}")


@main.command("plugin-path")
def plugin_path() -> None:
    """Print the folder of the HDF5 plugin, for HDF5_PLUGIN_PATH.

    \b
    export HDF5_PLUGIN_PATH=$(tamis plugin-path)
    """
    click.echo(tamis.plugin_path())


def _by_name(option: str, pairs: list[tuple[str, T]]) -> dict[str, T]:
    by_name = dict(pairs)
    if len(by_name) < len(pairs):
        raise ParameterError(f"expected each name once in {option}, got {', '.join(name for name, _ in pairs)}")
    return by_name


def _print(table: Table) -> None:
    # Names are no markup. Through a pipe nothing is folded to the width of a terminal that is not there.
    width = None if sys.stdout.isatty() else 100_000
    Console(width=width, markup=False, emoji=False, highlight=False).print(table)


def _print_inspection(found: Inspection, *, first: bool) -> None:
    if not first:
        click.echo()
    if sys.stdout.isatty():
        show(found, Console(markup=False, emoji=False, highlight=False))
    else:
        click.echo("\n".join(lines(found)))


def _print_arguments(found: Inspection, notation: str, *, alone: bool) -> tuple[str, ...]:
    made = arguments(found, notation)
    if made.text:
        if COMMENTS[notation] and not alone:
            click.echo(f"{COMMENTS[notation]} {printable(found.path)}")
        click.echo(made.text)
    for each in made.notes:
        click.echo(f"tamis inspect: note: {each}", err=True)
    for each in made.problems:
        click.echo(f"tamis inspect: {each}", err=True)
    return made.problems


def _print_repacked(result: RepackResult) -> None:
    table = Table("dataset", "filters", "in", "out", "ratio", "largest error", "bound", "chunks without zfp")
    for each in result.datasets:
        table.add_row(
            each.path,
            each.pipeline,
            size_text(each.source_nbytes),
            size_text(each.target_nbytes),
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
        f"{result.source} {size_text(result.source_nbytes)} -> {result.target} {size_text(result.target_nbytes)}"
        f" in {result.seconds:.2f} s, {len(result.datasets)} dataset(s) stored anew, read again and verified"
    )


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
