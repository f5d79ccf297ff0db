"""The command `tamis manifest`: print or check the record of a repacked folder."""

from __future__ import annotations

import sys

import click

import tamis
from tamis.cli.ending import FAILED, VIOLATED
from tamis.cli.options import FILE, json_option, quiet_option
from tamis.cli.output import Output


@click.command("manifest", short_help="Print the record of what was done to a folder of files.")
@click.argument("folder", metavar="OUT", type=FILE)
@click.option(
    "--format",
    "form",
    type=click.Choice(("csv", "markdown")),
    help="Print CSV or a table in Markdown, with a row for each dataset.",
)
@click.option("--check", is_flag=True, help="Read all files again, and compare their SHA-256 with the record.")
@quiet_option
@json_option
def command(folder: str, form: str | None, check: bool, quiet: bool, as_json: bool) -> None:
    """Print what `tamis repack` did to each file and dataset in the folder OUT.

    Filters, bounds, largest errors, sizes and checksums are what an archive hands to its auditors. The record is in
    OUT/.tamis/manifest.json; it moves with the folder. Years later, --check says whether the files are still the same.

    \b
    tamis manifest small/ --format csv > record.csv
    tamis manifest small/ --check

    Files without a record are listed, and are no failure: they came later, or were left out.

    Exit codes: 0 done, 1 the record or a file cannot be read, or runs failed to make a file, 2 wrong usage, 3 a file
    was changed or is missing, whatever else is wrong.
    """
    if form and (as_json or check):
        raise click.UsageError("--format cannot be combined with --json or --check")
    output = Output("manifest", as_json, quiet)
    with output.failures():
        if not check:
            result = tamis.manifest(folder)
            if form:
                click.echo(result.to_csv() if form == "csv" else result.to_markdown(), nl=False)
            else:
                output.result(result)
            return
        with output.progress() as progress:
            checked = tamis.check_manifest(folder, progress)
    output.result(checked)
    if not checked.ok:
        for _, text in checked.findings() if quiet and not as_json else ():
            output.complain(text)
        sys.exit(VIOLATED if checked.differs else FAILED)
