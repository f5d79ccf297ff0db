"""The command `tamis doctor`: show what is installed and runs, what is wrong, and what to do."""

from __future__ import annotations

import sys

import click

from tamis.cli.ending import FAILED
from tamis.cli.options import FILE, json_option
from tamis.cli.output import Output


@click.command("doctor", short_help="Show what is installed and runs here, and what is wrong.")
@click.argument("folder", metavar="[FOLDER]", default=".", type=FILE)
@json_option
def command(folder: str, as_json: bool) -> None:
    """Show what is installed and runs here, what is wrong, and what to do about it.

    It looks at tamis, Python and the packages of the extras, at the HDF5 libraries and their plugins, at the locale,
    processors and memory, tries what the file system of FOLDER can do, by default that of the current folder, and tries
    with small files who can read which filter. Nothing is changed, and nothing is sent.

    Paste all of it into a report of a problem: the home folder is written ~, and of the environment only variables of
    HDF5, tamis and the locale are shown.

    \b
    tamis doctor
    tamis doctor /scratch/data
    tamis doctor --json | jq .findings

    Exit codes: 0 nothing is wrong, 1 something is wrong, 2 wrong usage.
    """
    output = Output("doctor", as_json)
    with output.failures():
        from tamis.jobs.doctor.job import diagnose

        result = diagnose(folder)
    output.result(result)
    if not result.ok:
        sys.exit(FAILED)
