"""The command `tamis inspect`: show the filters, sizes and readers of datasets."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

import tamis
from tamis.cli.ending import FAILED
from tamis.cli.options import FILE, files_of, json_option, remote_options, variables_option
from tamis.cli.output import Output, check_no_wishes, print_arguments, show
from tamis.errors import TamisError

if TYPE_CHECKING:
    from tamis.jobs.inspect.result import Inspection

TARGETS = ("h5repack", "nccopy", "ncgen", "h5py", "zarr", "zarr2", "zarr3", "nczarr", "tamis")
"""Listed here, because the modules that define them take long to import."""


@click.command("inspect", short_help="Show filters, chunks, sizes and readers of datasets.")
@click.argument("files", nargs=-1, required=True, type=FILE)
@variables_option
@json_option
@click.option(
    "--as",
    "notation",
    type=click.Choice(TARGETS),
    help="Print filters and chunks as arguments of another program, ready to paste.",
)
@click.option("--cdl", is_flag=True, help="Print the header as CDL, like ncdump -hs, with the filters as stored.")
@click.option(
    "--html", "page", metavar="FILE", type=FILE, help="Write an HTML page about one file: what takes its space."
)
@click.option("--overwrite", is_flag=True, help="Replace the page of --html if it exists.")
@click.option(
    "--cost", is_flag=True, help="Print how many requests and bytes it takes to read the file over a network."
)
@click.option(
    "--latency",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    metavar="MS",
    help="Milliseconds until an answer begins, for --cost.",
)
@click.option(
    "--price",
    metavar="PRICE",
    type=click.FloatRange(min=0),
    default=0.4,
    show_default=True,
    help="Price of a million requests, for --cost.",
)
@remote_options
def command(
    files: tuple[str, ...],
    variables: tuple[str, ...],
    as_json: bool,
    notation: str | None,
    cdl: bool,
    page: str | None,
    overwrite: bool,
    cost: bool,
    latency: float,
    price: float,
) -> None:
    """Show the datasets of FILES: shape, type, chunks, filters in words, size, ratio, and what can read them.

    A folder stands for all files in it. No plugin is needed, and no values are read.

    \b
    tamis inspect climate.nc
    tamis inspect climate.nc -v TS --as h5repack
    tamis inspect climate.nc --cdl
    tamis inspect s3://bucket/climate.nc --cost
    tamis inspect climate.nc --html climate.html
    tamis inspect *.nc --json | jq '.files[].datasets[] | {path, ratio}'

    Exit codes: 0 done, 1 a file, dataset or group could not be read correctly, 2 wrong usage.
    """
    if as_json and notation:
        raise click.UsageError("--json and --as cannot be combined")
    if cdl and (as_json or notation or variables):
        raise click.UsageError("--cdl cannot be combined with --json, --as or -v")
    if cost and (cdl or notation or as_json or page is not None):
        raise click.UsageError("--cost cannot be combined with --json, --as, --cdl or --html")
    if page is not None and (cdl or notation or len(files) != 1):
        raise click.UsageError("--html takes one file, and cannot be combined with --as or --cdl")
    output = Output("inspect", as_json)
    inspections: list[Inspection] = []
    errors: list[tuple[str, Exception]] = []
    failed = False
    if page is not None:
        from tamis.jobs.recipes.saved_recipe import check_new
    with output.failures():
        check_no_wishes("inspect", files)
        paths = [*files_of(files)]
    for path in paths:
        try:
            if cdl:
                from tamis.jobs.inspect.cdl import cdl_header

                click.echo(cdl_header(path), nl=False)
                continue
            if cost:
                from tamis.jobs.inspect.cost import reading_cost

                click.echo("\n".join(reading_cost(path, variables, latency=latency / 1000, price=price).lines()))
                continue
            inspection = tamis.inspect(path, variables)
            if page is not None:
                check_new(page, (path,), overwrite=overwrite, what="the page")
                inspection.save(page, overwrite=overwrite)
            if notation:
                failed |= bool(print_arguments(output, inspection, notation, alone=len(paths) == 1))
            elif not as_json:
                click.echo("\n" * bool(inspections), nl=False)
                show(inspection.lines)
        except TamisError as error:
            output.complain(str(error))
            errors.append((path, error))
        else:
            inspections.append(inspection)
    if len(inspections) > 1 and not (as_json or notation):
        from tamis.jobs.inspect.result import summary

        click.echo(f"\n{summary(inspections)}")
    if as_json:
        from tamis.jobs.inspect.result import json_document

        click.echo(json_document(inspections, errors))
    if errors or failed or any(inspection.problems for inspection in inspections):
        sys.exit(FAILED)
