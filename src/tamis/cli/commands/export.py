"""The command `tamis export`: write references through which Zarr reads existing files."""

from __future__ import annotations

from typing import Any

import click

import tamis
from tamis.cli.options import FILE, json_option, quiet_option, remote_options
from tamis.cli.output import Output

KINDS = ("kerchunk", "icechunk", "zarr-manifest")
"""Listed here, because the modules that define them take long to import."""


@click.command("export", short_help="Let Zarr read HDF5 and netCDF-4 files: write references.")
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option("--to", "kind", type=click.Choice(KINDS), required=True, help="Kind of references to write.")
@click.option(
    "-o",
    "--output",
    "target",
    required=True,
    metavar="OUT",
    type=FILE,
    help="The JSON file (kerchunk), or the new folder (others).",
)
@click.option("--concat", metavar="DIM", help="The dimension along which several FILES are joined, in order.")
@click.option("--url", metavar="URL", help="Address of the folder where readers find FILES, such as s3://bucket/run1.")
@click.option("--drop", multiple=True, metavar="NAME", help="Leave out datasets by name or pattern; repeatable.")
@click.option("--overwrite", is_flag=True, help="Replace OUT if it is an existing JSON file.")
@quiet_option
@json_option
@remote_options
def command(
    files: tuple[str, ...],
    kind: str,
    target: str,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Let Zarr read existing HDF5 or netCDF-4 FILES: write references to their chunks, without copying values.

    This works with all filters of tamis, including zfp, and with chunks that skip filters. A dataset that cannot be
    referenced is an error: leave it out with --drop.

    \b
    tamis export climate.nc --to kerchunk -o climate.json
    tamis export 2001.nc 2002.nc --concat time --to kerchunk -o all.json --url s3://bucket/run1
    tamis export climate.nc --to icechunk -o climate.icechunk
    tamis export climate.nc --to zarr-manifest -o climate.manifests
    python -c "import xarray; print(xarray.open_dataset('climate.json', engine='kerchunk'))"

    Exit codes: 0 done, 1 failed, 2 wrong usage.
    """
    output = Output("export", as_json, quiet)
    with output.failures():
        result = tamis.export(files, target, kind, **options)
    output.result(result)
