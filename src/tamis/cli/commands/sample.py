"""The command `tamis sample`: copy the sample that tamis carries."""

from __future__ import annotations

import click

from tamis.cli.options import FILE
from tamis.cli.output import Output
from tamis.formatting import printable, shell_path


@click.command("sample", short_help="Copy a sample file, to try tamis with.")
@click.argument("folder", metavar="[FOLDER]", default=".", type=FILE)
@click.option("--overwrite", is_flag=True, help="Replace a file of that name.")
def command(folder: str, overwrite: bool) -> None:
    """Copy the sample cam_ts.nc into FOLDER, or into the current folder.

    It is a netCDF-4 file of 3.9 MB: thirty days of surface temperature from a climate model (CESM, NCAR). It is cut
    from a file of the Python package ldcpy, under the licence Apache-2.0.

    \b
    tamis sample
    tamis inspect cam_ts.nc

    Exit codes: 0 copied, 1 failed, 2 wrong usage.
    """
    from tamis.jobs.sample import copy_sample

    with Output("sample").failures():
        path = copy_sample(folder, overwrite=overwrite)
    word = shell_path(str(path))
    for line in (
        f"{path}: thirty days of surface temperature TS in kelvin, 30 x 192 x 288 values (time, lat, lon)",
        "source: CESM Large Ensemble, NCAR, as the Python package ldcpy 0.20 has it, cut to 30 days",
        "licence: Apache-2.0",
        f"next: tamis inspect {word}",
        f"      tamis plan {word} --require TS:abs=0.1",
    ):
        click.echo(printable(line))
