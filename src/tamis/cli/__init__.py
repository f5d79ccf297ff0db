"""The command line: parse arguments, call a job, print what it did."""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

import tamis
from tamis.cli.ending import FAILED, VIOLATED, Commands, ended_by_signals
from tamis.cli.memory import keep_freed_memory
from tamis.cli.options import json_option, log_option, quiet_option, threads_option, variables_option
from tamis.cli.output import Output, print_arguments, show
from tamis.cli.progress import Log
from tamis.errors import ParameterError, TamisError
from tamis.jobs.json_rule import SCHEMA, json_text
from tamis.jobs.recipe import parse_chunks, split_filters, split_recipe
from tamis.jobs.repack import plan_repack
from tamis.jobs.repacking.planning import POLICIES, MissingPolicy
from tamis.jobs.repacking.resuming import interrupted, naming_leftovers

if TYPE_CHECKING:
    from tamis.jobs.inspection import Inspection
    from tamis.notation.netcdf import Compat

T = TypeVar("T")

# Written out, since what defines them takes long to import, as do the jobs, each of which its command imports.
TARGETS = ("h5repack", "nccopy", "ncgen", "h5py", "zarr", "tamis")
NOTATIONS = ("cdl", "h5py", "h5repack", "netcdf", "tamis", "zarr")


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tamis.__version__, prog_name="tamis", message=str(tamis.config()))
def main() -> None:
    """See and change the filters of HDF5 and netCDF-4 files, and trust what was written.

    \b
    tamis inspect climate.nc
    tamis repack climate.nc small.nc -f 'TS:zfp(accuracy=0.1)'
    tamis verify climate.nc small.nc --bound TS:0.1
    HDF5_PLUGIN_PATH=$(tamis plugin-path) ncdump -v TS small.nc

    Exit codes: 0 done as asked, 1 failed, 2 wrong usage, 3 the bound was violated, 128 + n after signal n.
    """
    keep_freed_memory()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names may hold what the terminal cannot show


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(readable=False))
@variables_option
@json_option
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
    tamis inspect *.nc --json | jq '.files[].datasets[] | {path, ratio}'

    Exit codes: 0 done, 1 a file, dataset or group could not be read right, 2 wrong usage.
    """
    if as_json and notation:
        raise click.UsageError("expected --json or --as, got both")
    from tamis.jobs.inspection.terminal import lines

    output = Output("inspect", as_json)
    inspections: list[Inspection] = []
    errors: list[tuple[str, Exception]] = []
    failed = False
    for path in files:
        try:
            inspection = tamis.inspect(path, variables)
            if notation:
                failed |= bool(print_arguments(output, inspection, notation, alone=len(files) == 1))
            elif not as_json:
                click.echo("\n" * bool(inspections), nl=False)
                show(partial(lines, inspection))
        except TamisError as error:
            output.complain(str(error))
            errors.append((path, error))
        else:
            inspections.append(inspection)
    if as_json:
        from tamis.jobs.inspection import json_document

        click.echo(json_document(inspections, errors))
    if errors or failed or any(each.problems for each in inspections):
        sys.exit(FAILED)


@main.command()
@click.argument("source", metavar="IN", type=click.Path(readable=False))
@click.argument("target", metavar="OUT", type=click.Path(readable=False))
@click.option(
    "-f",
    "--filter",
    "recipes",
    multiple=True,
    metavar="NAME:FILTERS",
    help="Filters for a dataset, or for all that match a pattern such as '/grp/*'; repeatable. Lossy filters by"
    " pattern leave out coordinates, bounds, flags and integers.",
)
@click.option(
    "-c",
    "--chunks",
    "shapes",
    multiple=True,
    metavar="NAME:SHAPE",
    help="Chunk shape for a dataset or pattern, slowest axis first, such as TS:4x96x144; repeatable. A dataset without"
    " -f keeps its filters. With -f, a pattern here changes only datasets that get filters.",
)
@click.option(
    "--checksum/--no-checksum",
    default=True,
    show_default=True,
    help="Add the checksum fletcher32 after zfp, so that readers notice damage.",
)
@threads_option
@click.option(
    "--missing",
    type=click.Choice(POLICIES),
    default="exact",
    show_default=True,
    help="Missing values: exact keeps each bit by bit; companion moves them to a second dataset (best ratio, but every"
    " reader except tamis.open takes the invented values in their places for valid); refuse fails and counts them.",
)
@click.option(
    "--follow",
    is_flag=True,
    help="Let patterns store values of virtual datasets and external raw files in OUT, too; otherwise they stay in the"
    " files that IN names.",
)
@click.option("--overwrite", is_flag=True, help="Replace OUT if it exists.")
@click.option(
    "--min-size",
    type=click.IntRange(min=0),
    metavar="BYTES",
    help="Patterns leave fewer bytes of values as they are; by default 4096 without chunks, 0 with chunks.",
)
@click.option("--larger", is_flag=True, help="Let patterns also store what then takes more room than in IN.")
@click.option("--resume", is_flag=True, help="Continue an interrupted run; leave OUT as it is if it is done already.")
@click.option("--dry-run", is_flag=True, help="Print what would be done to each dataset, and write nothing.")
@quiet_option
@log_option
@json_option
def repack(
    source: str,
    target: str,
    recipes: tuple[str, ...],
    shapes: tuple[str, ...],
    checksum: bool,
    threads: int | None,
    missing: MissingPolicy,
    follow: bool,
    overwrite: bool,
    min_size: int | None,
    larger: bool,
    resume: bool,
    dry_run: bool,
    quiet: bool,
    log: str | None,
    as_json: bool,
) -> None:
    """Copy IN to OUT with other filters on some datasets, and prove the bound.

    Everything else is copied as it is, and so are chunks that have the wanted filters already. Each encoded chunk is
    decoded again and compared with IN, value by value, before OUT gets its name.

    \b
    FILTERS is a chain such as
      zfp(accuracy=0.1)        largest absolute error, in units of the variable
      zfp(rate=8)              bits per value; also precision=16, reversible=true
      shuffle|deflate(4)       lossless
      zfp(accuracy=0.1)|shuffle|deflate(4)
                               zfp; lossless where it cannot keep the bound

    \b
    tamis repack in.nc out.nc -f 'TS:zfp(accuracy=0.1)' -f '*:deflate' --dry-run
    tamis repack in.nc out.nc -f 'SST:zfp(accuracy=0.1)|shuffle|deflate(4)' \\
        -c SST:60x16x16 -j 4
    tamis repack in.nc out.nc -c TS:4x96x144           # keeps the filters

    `tamis filters` lists all filters, and `tamis filters zfp` the parameters of one.
    """
    if not recipes and not shapes:
        raise click.UsageError("expected -f NAME:FILTERS or -c NAME:SHAPE, got neither")
    from tamis.jobs.repacking.text import plan_lines, result_lines

    with _output("repack", source, target, as_json, quiet, log) as output:
        wanted = _by_name("-f", [split_filters(text) for text in recipes])
        texts = _by_name("-c", [split_recipe(text, "NAME:SHAPE", "TS:4x96x144") for text in shapes])
        chunks = {name: parse_chunks(text) for name, text in texts.items()}
        options: dict[str, Any] = {"chunks": chunks, "checksum": checksum, "missing": missing, "resume": resume}
        options |= {"follow": follow, "min_size": min_size, "larger": larger}
        if dry_run:
            plan = plan_repack(source, target, wanted, **options)
            output.result(plan, partial(plan_lines, plan))
            return
        for note in () if resume else interrupted(Path(target), "removed, since --resume is not given"):
            output.note(note)
        with naming_leftovers(target, resume, output.note), ended_by_signals() as check, output.progress(check) as bar:
            result = tamis.repack(source, target, wanted, overwrite=overwrite, threads=threads, progress=bar, **options)
        for path in result.unreadable:
            output.note(f"{path}: its values cannot be read; its bytes were copied as they are")
        try:
            output.result(result, partial(result_lines, result))
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror}; {target} is complete") from error


@main.command()
@click.argument("source", metavar="SRC", type=click.Path(readable=False))
@click.argument("target", metavar="DST", type=click.Path(readable=False))
@click.option(
    "--bound",
    "bounds",
    multiple=True,
    metavar="NAME:BOUND",
    help="Largest absolute error of a dataset, or of all that match a pattern, in units of the variable; 0, as no"
    " bound, asks for the same bits; NAME:recorded, or recorded for all datasets, takes what the filters in DST"
    " record; repeatable.",
)
@threads_option
@variables_option
@quiet_option
@log_option
@json_option
def verify(
    source: str,
    target: str,
    bounds: tuple[str, ...],
    threads: int | None,
    variables: tuple[str, ...],
    quiet: bool,
    log: str | None,
    as_json: bool,
) -> None:
    """Compare DST with SRC, from which it was made: values, missing values, attributes, links.

    What SRC has must be in DST as it was; how it is stored makes no difference. Values must have the same bits, or be
    within their bound where one is given: the largest errors of each dataset are shown. Missing values, which are NaN,
    infinities and fill values, must keep their bits in any case; those in a companion are put back first.

    \b
    tamis verify climate.nc copy.nc                       # must be equal
    tamis verify climate.nc small.nc --bound TS:0.1
    tamis verify climate.nc small.nc --bound recorded  # as its filters say
    tamis verify climate.nc small.nc --json | jq '.datasets[] | {path, status}'

    Exit codes: 0 equal or within the bounds, 1 something could not be read, 2 wrong usage, 3 something differs.
    """
    from tamis.jobs.verification.bounds import RECORDED, Bounds, parse_bound
    from tamis.jobs.verification.text import lines

    with _output("verify", source, target, as_json, quiet, log) as output:
        # Last, so that it is for what has no bound of its own.
        texts = [f"*:{text}" if text == RECORDED else text for text in sorted(bounds, key=RECORDED.__eq__)]
        limits = _by_name("--bound", [split_recipe(text, "NAME:BOUND", "TS:0.1") for text in texts])
        by_name = {name: parse_bound(text) for name, text in limits.items()}
        wanted: Bounds = RECORDED if bounds == (RECORDED,) else by_name
        with output.progress() as progress:
            found = tamis.verify(source, target, bounds=wanted, variables=variables, threads=threads, progress=progress)
    output.result(found, partial(lines, found))
    if not found.ok:
        for each in (*found.violations, *found.problems) if quiet and not as_json else ():
            output.complain(str(each))
        sys.exit(FAILED if found.problems else VIOLATED)


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, required=True, metavar="TEXT", type=click.UNPROCESSED)
@click.option("-v", "--variable", default="", metavar="NAME", help="Name of the dataset, for notations that have one.")
@click.option("--chunks", metavar="SHAPE", help="Chunk shape, slowest axis first, such as 4x96x144.")
@click.option("--dtype", metavar="TYPE", help="Type of the values, such as f4.")
@click.option("--from", "notation", type=click.Choice(NOTATIONS), help="Notation of TEXT; detected by default.")
@click.option(
    "--compat",
    type=click.Choice(["netcdf-c", "doc"]),
    help="How to read numbers in netCDF text.",
)
@json_option
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
    from tamis.jobs.spec import spec as make_spec

    with Output("spec", as_json).failures():
        shape = None if chunks is None else parse_chunks(chunks)
        text = words[0] if len(words) == 1 else shlex.join(words)
        found = make_spec(text, variable=variable, chunks=shape, dtype=dtype, notation=notation, compat=compat)
    click.echo(found.to_json() if as_json else str(found))


@main.command("filters")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@json_option
def list_filters(names: tuple[str, ...], as_json: bool) -> None:
    """List the filters that tamis knows, and whether they are installed here; with NAME also their parameters.

    \b
    tamis filters
    tamis filters zfp blosc

    Other filters are kept as they are, and written filter(ID,PARAMETER,…). A Python package can add filters by the
    entry-point group tamis.filters.
    """
    from tamis.filters.catalogue import catalogue

    with Output("filters", as_json).failures():
        entries = catalogue(names)
    if as_json:
        click.echo(json_text({"schema": SCHEMA, "filters": entries}, indent=2))
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


@contextmanager
def _output(command: str, source: str, target: str, as_json: bool, quiet: bool, log: str | None) -> Iterator[Output]:
    """Print what a command does to two files, and turn errors into a message and an exit code."""
    plain = Output(command, as_json, quiet)
    with plain.failures():
        journal = Log(log, command, (source, target)) if log is not None else None
    if journal:
        journal.write(f"started: {shlex.join(sys.argv[1:])}")
    output = Output(command, as_json, quiet, journal)
    with output.failures():
        yield output
