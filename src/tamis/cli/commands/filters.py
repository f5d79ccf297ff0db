"""The command `tamis filters`: list the filters that tamis knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from tamis.cli.completions import filter_names
from tamis.cli.options import json_option
from tamis.cli.output import Output

if TYPE_CHECKING:
    from tamis.rounding import Rounding


@click.command("filters", short_help="List the filters that tamis knows, and their parameters.")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=filter_names)
@json_option
def command(names: tuple[str, ...], as_json: bool) -> None:
    """List the filters that tamis knows, and whether they are installed here; with NAME, also list parameters.

    \b
    tamis filters
    tamis filters zfp blosc
    tamis filters pack

    Other filters are kept unchanged, and written filter(ID,PARAMETER,…). A Python package can add filters through the
    entry-point group tamis.filters. Rounding comes before filters, and is not one of them: absolute(bound=0.1),
    pack(bound=0.1), bitround(keepbits=7), granular(digits=3), bitgroom(digits=3).
    """
    from tamis.filters.registry import catalogue

    with Output("filters", as_json).failures():
        entries = catalogue(names, _roundings()) if names else catalogue()
    if as_json:
        from tamis.jobs.result import SCHEMA, json_text

        click.echo(json_text({"schema": SCHEMA, "filters": entries}, indent=2))
        return
    for entry in entries:
        click.echo(f"{entry.id or '':>5}  {entry.name:<11}  {entry.about}{f' ({entry.takes})' if entry.takes else ''}")
        for parameter in entry.parameters if names else ():
            click.echo(f"{'':20}{parameter}")
        if entry.missing:
            click.echo(f"{'':20}{entry.missing}")


def _roundings() -> Mapping[str, type[Rounding]]:
    from tamis.rounding import BY_NAME

    return BY_NAME
