"""The command `tamis report`: write a page that shows what compression did."""

from __future__ import annotations

import posixpath
import sys
from typing import Any

import click

import tamis
from tamis.cli.ending import FAILED, VIOLATED, ended_by_signals, share_freed_memory
from tamis.cli.options import (
    FILE,
    bound_option,
    bounds_of,
    is_folder,
    output_options,
    remote_options,
    threads_option,
    variables_option,
)
from tamis.cli.output import Output, output_of_files


@click.command("report", short_help="Write a page that shows what compression did to the values.")
@click.argument("source", metavar="SRC", type=FILE)
@click.argument("target", metavar="DST", type=FILE)
@click.option(
    "-o",
    "--output",
    "page",
    metavar="FILE",
    type=FILE,
    help="Write the page to FILE; by default, to the current folder, with the name of DST and .html.",
)
@click.option(
    "--recipe", metavar="FILE", type=FILE, help="The recipe of DST, a TOML file: its requirements are checked."
)
@bound_option("By default, the bounds that the filters in DST record.")
@click.option(
    "--time",
    default="worst",
    metavar="worst|0,5",
    help="Draw maps of the field with the largest error and one more (worst), or of these indices along "
    "the first axis.",
)
@click.option(
    "--also",
    multiple=True,
    metavar="FILTERS",
    help="Add these filters to the chart of ratios and errors, such as 'zfp(accuracy=0.5)'; repeatable.",
)
@click.option("--budget", metavar="SIZE", default="2MB", help="Largest size of the page; 2MB by default.")
@click.option(
    "--each",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="With two folders: also a page about each of the N worst files, beside the index.",
)
@click.option("--overwrite", is_flag=True, help="Replace an existing page.")
@threads_option
@variables_option
@output_options
@remote_options
def command(
    source: str,
    target: str,
    page: str | None,
    bounds: tuple[str, ...],
    time: str,
    budget: str,
    each: int,
    overwrite: bool,
    quiet: bool,
    log: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Write a page that shows what compression did to the variables of SRC in DST.

    The page is one HTML file: verdict, table of all variables, maps, histograms, spectra and more. It needs no network
    and can be mailed. With --json and without -o no page is written. For two folders, it is an index of all files that
    `tamis repack` made in DST, worst first, from its record.

    \b
    tamis report climate.nc small.nc
    tamis report climate.nc small.nc -o report.html --recipe recipe.toml
    tamis report climate.nc small.nc --bound TS:0.1 --time 0,5
    tamis report old/ new/ -o new.html --each 3
    tamis report climate.nc small.nc --json | jq '.datasets[] | {path, outcome}'

    Exit codes: 0 all requirements met, 1 something could not be read, 2 wrong usage, 3 a requirement is missed.
    """
    from tamis.jobs.plan.requirements import parse_size
    from tamis.jobs.recipes.saved_recipe import check_new

    folders = [path for path in (source, target) if is_folder(path)]
    if len(folders) == 1:
        raise click.UsageError(f"expected two files or two folders, only {folders[0]} is a folder")
    if each and not folders:
        raise click.UsageError("--each needs two folders")
    if folders and (bounds or time != "worst" or any(options[name] for name in _SINGLE)):
        raise click.UsageError(
            "two folders go only with -o, --each and --overwrite: for other options, report two files"
        )
    share_freed_memory()
    with output_of_files("report", (source, target), as_json, quiet, log) as output:
        limits = bounds_of(bounds)
        name = page or (None if as_json else f"{posixpath.basename(target.rstrip('/'))}.html")
        if name is not None:
            check_new(name, (source, target), overwrite=overwrite, what="the page")
        if folders:
            _report_folder(output, source, target, name, each, overwrite, as_json=as_json)
            return
        with ended_by_signals() as check, output.progress(check) as progress:
            result = tamis.report(
                source,
                target,
                bounds=limits or None,
                time=_times(time),
                budget=parse_size(budget),
                progress=progress,
                **options,
            )
        if name is not None:
            result.save(name, overwrite=overwrite)
        output.result(result)
        if name is not None and not as_json:
            output.note(f"{name}: the page")
    if not result.ok:
        if quiet and not as_json:
            output.complain(result.verdict)
        sys.exit(VIOLATED if result.differs else FAILED)


_SINGLE = ("recipe", "also", "variables")
"""Options about the variables of a file, besides those that have other types here."""


def _report_folder(
    output: Output, source: str, target: str, name: str | None, each: int, overwrite: bool, *, as_json: bool
) -> None:
    """Write the index of a folder."""
    index = tamis.report_many(target, source)
    if name is not None:
        with ended_by_signals() as check, output.progress(check) as progress:
            index.save(name, each=each, overwrite=overwrite, progress=progress)
    output.result(index)
    if name is not None and not as_json:
        output.note(f"{name}: the index")
    if not index.ok:
        if output.quiet and not as_json:
            output.complain(f"{target}: some files failed, are damaged or are not done yet: `tamis status` lists them")
        sys.exit(FAILED)


def _times(text: str) -> str | tuple[int, ...]:
    """Return ``worst``, or indices."""
    if text == "worst":
        return text
    try:
        return tuple(map(int, text.split(",")))
    except ValueError:
        raise click.UsageError(f"expected --time worst, or indices such as 0,5, got {text!r}") from None
