"""The command `tamis status`: show how far the repack of a folder is."""

from __future__ import annotations

import click

import tamis
from tamis.cli.many import end
from tamis.cli.options import FILE, json_option
from tamis.cli.output import Output


@click.command("status", short_help="Show how far the repack of a folder is.")
@click.argument("folder", metavar="OUT", type=FILE)
@json_option
def command(folder: str, as_json: bool) -> None:
    """Show what `tamis repack` has done in the folder OUT, also while it is at work.

    It counts the files that are done, failed, at work and still to do, with their bytes. It names those that failed,
    with the reason, and compares the largest error of all datasets with its bound.

    \b
    tamis status small/
    watch -n 10 tamis status small/
    tamis status small/ --json | jq -r '.failures[].source' > again.txt

    Exit codes: 0 all files are done, 1 some failed, are damaged or are not done yet, 2 wrong usage, 3 a bound
    was missed.
    """
    output = Output("status", as_json)
    with output.failures():
        result = tamis.status(folder)
    output.result(result)
    end(result, output)
