"""The command `tamis spec`: write filters in every notation."""

from __future__ import annotations

import shlex
from typing import Any

import click

from tamis.cli.completions import filters_of_text
from tamis.cli.options import json_option
from tamis.cli.output import Output

NOTATIONS = ("cdl", "h5dump", "h5py", "h5repack", "netcdf", "tamis", "zarr")
"""Listed here, because the modules that define them take long to import."""


@click.command(
    "spec",
    short_help="Write filters in every notation, ready to paste.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument(
    "parts", nargs=-1, required=True, metavar="TEXT", type=click.UNPROCESSED, shell_complete=filters_of_text
)
@click.option(
    "-v", "--variable", default="", metavar="NAME", help="Name of the dataset, for notations that include it."
)
@click.option("--chunks", metavar="SHAPE", help="Chunk shape, slowest axis first, such as 4x96x144.")
@click.option("--dtype", metavar="TYPE", help="Type of the values, such as f4.")
@click.option("--from", "notation", type=click.Choice(NOTATIONS), help="Notation of TEXT; detected by default.")
@click.option(
    "--compat",
    type=click.Choice(["netcdf-c", "doc"]),
    help="How to read numbers in netCDF text: as netcdf-c does, or as its documentation says.",
)
@json_option
def command(parts: tuple[str, ...], chunks: str | None, as_json: bool, **options: Any) -> None:
    """Write the filters of TEXT in every notation, ready to paste.

    TEXT is in any of them, as one argument or as typed in a shell. --chunks and --dtype also show the parameters that
    the filters store in a file.

    \b
    tamis spec 'zfp(accuracy=0.1)|shuffle|deflate(4)'
    tamis spec 'TS,32013,3,0,0.1d' --chunks 4x96x144 --dtype f4
    tamis spec -f TS:UD=32013,0,3,2,0,16
    tamis spec "$(h5ls -v small.nc/TS | grep Filter-)"
    """
    from tamis.jobs.recipes.names import parse_chunks
    from tamis.jobs.spec import spec as make_spec

    with Output("spec", as_json).failures():
        shape = None if chunks is None else parse_chunks(chunks)
        text = parts[0] if len(parts) == 1 else shlex.join(parts)
        result = make_spec(text, chunks=shape, **options)
    click.echo(result.to_json(indent=2) if as_json else "\n".join(text for _, text in result.lines()))
