"""The command `tamis copy`: copy a netCDF-4 file with the options of nccopy."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from tamis.cli.commands.repack import drops_to_paste
from tamis.cli.options import FILE, keep_damaged_option, options_of, output_options, remote_options, threads_option
from tamis.cli.output import output_of_files, show_stored
from tamis.jobs.copy_table import OF_NCCOPY, OF_REPACK

if TYPE_CHECKING:
    from collections.abc import Callable

_SUBSET = "tamis copies all variables: select them first, with nccopy -V or ncks -v, and copy the result"
_MEMORY = "leave it out: memory does not grow with the size of the file"
_CLASSIC = "the formats before netCDF-4 have no chunks or filters: use nccopy {}"
_REFUSED = {
    "-u": (True, "unlimited dimensions stay unlimited: use nccopy -u first, and copy the result"),
    "-w": (True, _MEMORY),
    "-r": (True, _MEMORY),
    "-m": (False, _MEMORY),
    "-e": (False, _MEMORY),
    "-v": (False, _SUBSET),
    "-V": (False, _SUBSET),
    "-g": (False, _SUBSET),
    "-G": (False, _SUBSET),
    "-L": (False, "use --log FILE"),
    "-3": (True, _CLASSIC.format("-3")),
    "-5": (True, _CLASSIC.format("-5")),
    "-6": (True, _CLASSIC.format("-6")),
}
"""Options of nccopy that are refused: whether they have no argument, and what to do instead."""


def _refused_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that are refused."""

    def refuse(ctx: click.Context, option: click.Parameter, value: object) -> None:
        if value not in (None, False):
            raise click.UsageError(
                f"{option.opts[0]} is an option of nccopy that tamis copy does not have: {_REFUSED[option.opts[0]][1]}",
                ctx,
            )

    for name, (is_flag, _) in _REFUSED.items():
        variable = f"refused_{'upper_' * name[1].isupper()}{name[1].lower()}"
        function = click.option(
            name, variable, is_flag=is_flag, expose_value=False, hidden=True, callback=refuse, is_eager=True
        )(function)
    return function


@click.command("copy", short_help="Copy a file with the options of nccopy, and prove the bound.")
@click.argument("source", metavar="IN", type=FILE)
@click.argument("target", metavar="OUT", type=FILE)
@click.option(
    "-F",
    "filters",
    multiple=True,
    metavar="NAMES,FILTERS",
    help="Filters in netCDF's notation for variables; 'none' for no filters; repeatable.",
)
@options_of(OF_NCCOPY)
@click.option("-4", "kind", flag_value="nc4", help="Short for -k nc4.")
@click.option("-7", "kind", flag_value="nc7", help="Short for -k nc7, netCDF-4 of the classic model.")
@threads_option
@options_of(OF_REPACK)
@click.option("--overwrite", is_flag=True, help="Replace OUT if it exists, which nccopy does without asking.")
@click.option("--dry-run", is_flag=True, help="Print what would be done to each variable, and write nothing.")
@keep_damaged_option
@output_options
@_refused_options
@remote_options
def command(
    source: str,
    target: str,
    filters: tuple[str, ...],
    overwrite: bool,
    keep_damaged: bool,
    dry_run: bool,
    quiet: bool,
    log: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Copy IN to OUT with the options of nccopy, and prove the result like tamis repack.

    \b
    NAMES is * for all variables, or paths with & between them, without patterns;
    \\ takes the next character literally: 'a\\,b&/group/TS'
    FILTERS is none, or filters with | between them, each an id and its parameters:
      1,4                      deflate, level 4
      2|1,4                    shuffle and deflate
      32013,3,0,0.1d           zfp, accuracy 0.1 (d: the number is a double)
      32013,1,0,8d             zfp, rate 8; 2,0,16: precision 16; 5: reversible

    \b
    tamis copy in.nc out.nc -F 'TS,32013,3,0,0.1d' -F '*,none' -d 4 -s
    tamis copy in.nc out.nc -F 'TS&PS,32013,3,0,0.1d|2|1,4' -c time/10,lat/96,lon/
    tamis copy in.nc out.nc -d 4 -s --dry-run

    A variable gets the filters of each -F that names it, even if it has others in IN; else those of -F '*,…'; else
    those of -d and -s; else none after -F none; else its own. A name that no variable has is an error. Unnamed
    variables that cannot take filters are kept and listed; with lossy filters, so are coordinates, bounds, flags and
    integers.

    `tamis spec 'zfp(accuracy=0.1)'` prints any filter in this notation.
    """
    from tamis.jobs.copy import CopyOptions, preview_copy, run_copy

    with output_of_files("copy", (source, target), as_json, quiet, log) as output:
        asked = CopyOptions.asked(filters, overwrite=overwrite, **options)
        with drops_to_paste():
            if dry_run:
                output.result(preview_copy(source, target, asked))
                return
            run = partial(run_copy, source, target, asked)
            show_stored(output, target, options["resume"], run, keep_damaged=keep_damaged)
