"""The command `tamis repair`: repair Zarr stores of netCDF-C with a wrong shuffle."""

from __future__ import annotations

import click

import tamis
from tamis.cli.options import FILE, json_option, quiet_option
from tamis.cli.output import Output


@click.command("repair", short_help="Repair Zarr stores of netCDF-C that others read wrongly.")
@click.argument("store", metavar="STORE", type=FILE)
@click.option("--dry-run", is_flag=True, help="Only say what would be repaired.")
@quiet_option
@json_option
def command(store: str, dry_run: bool, quiet: bool, as_json: bool) -> None:
    """Repair a Zarr store of netCDF-C whose shuffle makes other readers return wrong values silently.

    Only metadata change, all or none of them; chunks stay unchanged. First, numcodecs decodes some chunks of each
    array, and the values are compared with those that tamis reads.

    \b
    tamis repair /data/a.zarr --dry-run
    tamis repair /data/a.zarr
    python -c "import xarray; print(xarray.open_zarr('/data/a.zarr'))"

    Exit codes: 0 repaired, or nothing to repair, 1 failed, 2 wrong usage.
    """
    output = Output("repair", as_json, quiet)
    with output.failures():
        result = tamis.repair(store, dry_run=dry_run)
    output.result(result)
