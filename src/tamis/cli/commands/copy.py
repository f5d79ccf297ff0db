"""The command `tamis copy`: copy a netCDF-4 file with the options of nccopy."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from tamis.cli.commands.repack import drops_to_paste
from tamis.cli.options import FILE, RenamedChoice, keep_damaged_option, output_options, remote_options, threads_option
from tamis.cli.output import output_of_files, show_stored
from tamis.jobs.recipes.policies import POLICIES

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
@click.option(
    "-c",
    "chunks",
    multiple=True,
    metavar="CHUNKS",
    help="Chunk lengths of dimensions, such as time/10,lat/96,lon/ (no length: the whole dimension), or the chunk shape"
    " of a variable, such as TS:10,96,144; repeatable.",
)
@click.option(
    "-d",
    "level",
    type=click.IntRange(0, 9),
    metavar="N",
    help="Deflate all variables that -F does not name, at level 1 to 9; 0 removes deflate and shuffle.",
)
@click.option("-s", "shuffle", is_flag=True, help="With -d: shuffle before deflate.")
@click.option("-k", "kind", metavar="KIND", help="Kind of OUT, nc4 or nc7; only a check: OUT keeps the kind of IN.")
@click.option("-4", "kind", flag_value="nc4", help="Short for -k nc4.")
@click.option("-7", "kind", flag_value="nc7", help="Short for -k nc7, netCDF-4 of the classic model.")
@click.option(
    "-M",
    "--min-size",
    type=click.IntRange(min=0),
    metavar="BYTES",
    help="Keep variables with fewer bytes of values unchanged unless -F or -c names them; by default 4096 without "
    "chunks, 0 with chunks.",
)
@click.option("--checksum", is_flag=True, help="Add the checksum fletcher32 after zfp, so that readers notice damage.")
@threads_option
@click.option(
    "--missing",
    type=RenamedChoice(POLICIES),
    default="exact",
    show_default=True,
    help="Missing values under lossy filters, as for tamis repack.",
)
@click.option("--follow", is_flag=True, help="Also filter unnamed variables whose values are in other files.")
@click.option(
    "--self-contained",
    is_flag=True,
    help="Store all that is in other files in OUT, as for tamis repack.",
)
@click.option("--overwrite", is_flag=True, help="Replace OUT if it exists, which nccopy does without asking.")
@click.option("--larger", is_flag=True, help="Also filter unnamed variables that become larger than in IN.")
@click.option(
    "--history", is_flag=True, help="Record the command in OUT's attribute history, if OUT has history or Conventions."
)
@click.option("--resume", is_flag=True, help="Continue an interrupted run; leave OUT unchanged if it is complete.")
@click.option("--drop", multiple=True, metavar="NAME", help="Leave out a variable, or a pattern of them; repeatable.")
@click.option("--dry-run", is_flag=True, help="Print what would be done to each variable, and write nothing.")
@keep_damaged_option
@output_options
@_refused_options
@remote_options
def command(
    source: str,
    target: str,
    overwrite: bool,
    threads: int | None,
    resume: bool,
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
        asked = CopyOptions(**options)
        with drops_to_paste():
            if dry_run:
                output.result(preview_copy(source, target, asked, resume=resume))
                return
            run = partial(run_copy, source, target, asked, overwrite=overwrite, threads=threads, resume=resume)
            show_stored(output, target, resume, run, keep_damaged=keep_damaged)
