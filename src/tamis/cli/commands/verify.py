"""The command `tamis verify`: compare files with their sources, within bounds."""

from __future__ import annotations

import sys
from typing import Any

import click

import tamis
from tamis.cli.ending import FAILED, VIOLATED
from tamis.cli.options import (
    FILE,
    bound_option,
    bounds_of,
    is_folder,
    keep_damaged_option,
    output_options,
    remote_options,
    threads_option,
    variables_option,
)
from tamis.cli.output import output_of_files


@click.command("verify", short_help="Compare a copy with its source, within bounds.")
@click.argument("source", metavar="SRC", type=FILE)
@click.argument("target", metavar="DST", type=FILE)
@bound_option(
    "0, like no bound, requires identical bits. NAME:recorded, or recorded for all datasets, takes the bound that the "
    "filters in DST record."
)
@click.option(
    "--drop",
    multiple=True,
    metavar="NAME",
    help="A dataset, or a pattern, that was left out of DST on purpose; repeatable.",
)
@keep_damaged_option
@threads_option
@variables_option
@output_options
@remote_options
def command(
    source: str,
    target: str,
    bounds: tuple[str, ...],
    quiet: bool,
    log: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare DST with its source SRC: values, missing values, attributes, links; or all files of two folders.

    Everything in SRC must be in DST, unchanged; how it is stored makes no difference. Values must have the same bits,
    or be within their bound if there is one; the largest errors of each dataset are shown. Missing values (NaN,
    infinities and fill values) must always keep their bits; those in a missing-value mask are restored first.

    \b
    tamis verify climate.nc copy.nc                       # must be equal
    tamis verify climate.nc small.nc --bound TS:0.1
    tamis verify climate.nc small.nc --bound recorded  # as its filters record
    tamis verify old/ new/ --bound recorded            # file by file
    tamis verify climate.nc small.nc --json | jq '.datasets[] | {path, status}'

    Exit codes: 0 equal or within the bounds, 1 something is unreadable or damaged, 2 wrong usage, 3 something differs.
    """
    with output_of_files("verify", (source, target), as_json, quiet, log) as output:
        requested = bounds_of(bounds)
        with output.progress() as progress:
            if is_folder(source):
                folders = tamis.verify_many(source, target, bounds=requested, progress=progress, **options)
            else:
                result = tamis.verify(source, target, bounds=requested, progress=progress, **options)
    if is_folder(source):
        output.result(folders)
        if not folders.ok:
            for file in folders.wrong if quiet and not as_json else ():
                output.complain(f"{file.path}: {file.verdict}: {file.text}")
            sys.exit(VIOLATED if folders.differs else FAILED)
        return
    output.result(result)
    if not result.ok:
        for problem in (*result.violations, *result.problems) if quiet and not as_json else ():
            output.complain(str(problem))
        sys.exit(VIOLATED if result.violations else FAILED)
