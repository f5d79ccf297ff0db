"""The command `tamis plan`: measure which filters meet requirements, and choose."""

from __future__ import annotations

from typing import Any

import click

import tamis
from tamis.cli.ending import ended_by_signals
from tamis.cli.options import FILE, RenamedChoice, by_name, files_of, old_options, output_options, remote_options
from tamis.cli.output import output_of_files
from tamis.errors import ParameterError
from tamis.jobs.plan.choices import CHUNK_CHOICES, MISSING, PREFERENCES, READERS, RISKS, STORAGES

_SAMPLE = "16MB"


@click.command("plan", short_help="Find the filters that save most within an error bound.")
@old_options("plan")
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option(
    "-r",
    "--require",
    "required",
    multiple=True,
    metavar="NAME:REQUIREMENT",
    help="What to preserve of a variable, or of all that match a pattern, such as TS:abs=0.1; repeatable. By default"
    " every bit.",
)
@click.option(
    "--readers",
    type=click.Choice(READERS),
    default="netcdf",
    show_default=True,
    help="Who must be able to read the result: every program with HDF5 (any); HDF5 with all its own "
    "filters, szip included (netcdf); netCDF-C with its plugins (netcdf-plugins); HDF5 with the "
    "plugin of zfp; Python with hdf5plugin; zarr-python (zarr); or whoever installs what is needed "
    "(all). What fewer readers would allow is listed as an offer.",
)
@click.option(
    "--prefer",
    type=click.Choice(PREFERENCES),
    default="size",
    show_default=True,
    help="size: choose the best ratio; among similar ones, readers and speed decide. speed: the fastest "
    "filters with at least two thirds of the best ratio. archive: the best ratio alone.",
)
@click.option(
    "--sample",
    metavar="SIZE",
    help=f"Read at most this much of each variable, such as 500kB, 64MB or 1GB; {_SAMPLE} by default.",
)
@click.option(
    "--access",
    metavar="READS",
    help="Also choose chunk shapes that suit how values are read: series, map, whole, "
    "series=0.7,map=0.3, or a box such as box:time=10,lat=96.",
)
@click.option(
    "--storage",
    type=click.Choice(STORAGES),
    default="disk",
    show_default=True,
    help="Where values are read from, for --access. For s3, chunks get 4 to 16 MiB of stored bytes.",
)
@click.option(
    "--chunks",
    type=click.Choice(CHUNK_CHOICES),
    help="auto: choose the chunk shapes with the best ratio. keep: keep all chunks. Without this and "
    "--access, shapes are chosen only for variables without chunks.",
)
@click.option(
    "--allow",
    multiple=True,
    type=click.Choice(RISKS),
    help="unstable: also choose sz3, whose versions do not read each other's chunks.",
)
@click.option(
    "--ratio", type=float, metavar="R", help="Reach this ratio (bytes of values per stored byte) over all files."
)
@click.option("--size", metavar="SIZE", help="Reach this stored size of all files together, such as 2GB.")
@click.option("--all", "everything", is_flag=True, help="Measure all values instead of a sample.")
@click.option(
    "--confirm",
    is_flag=True,
    help="Try the result on all values, in a temporary folder ($TMPDIR) that is removed afterwards.",
)
@click.option(
    "--compare",
    metavar="FILTERS",
    default="",
    help="Also measure sz3, sperr or both (sz3,sperr) for any requirement, without a proof; needs hdf5plugin, and takes"
    " seconds.",
)
@click.option(
    "--missing",
    type=RenamedChoice(MISSING),
    default="exact",
    show_default=True,
    help="How repack will store missing values.",
)
@click.option(
    "-o",
    "--recipe-out",
    metavar="FILE",
    type=FILE,
    help="Write the recipe to a TOML file, for `tamis repack --recipe`.",
)
@click.option(
    "--plot",
    metavar="FILE",
    type=FILE,
    help="Draw ratio against largest error and speed of all candidates into an SVG, PNG or PDF file.",
)
@click.option("--overwrite", is_flag=True, help="Replace the recipe (-o) and the picture (--plot) if they exist.")
@output_options
@remote_options
def command(
    files: tuple[str, ...],
    required: tuple[str, ...],
    sample: str | None,
    size: str | None,
    everything: bool,
    compare: str,
    recipe_out: str | None,
    plot: str | None,
    overwrite: bool,
    quiet: bool,
    log: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure which filters preserve what you require of FILES, and print them as options of `tamis repack`.

    No file is changed: -o writes a recipe, and --plot a picture. The numbers are predictions from a sample of each
    variable; repack proves the bound of the filters, value by value. Coordinates, bounds, flags and integers stay
    lossless unless they are named, and several files get the same filters.

    Without --require, a ladder shows error bounds from the noise of each variable: what they save, what they do to
    mean, extremes and gradients, and a line to paste for each. A row "as stored" has what is there now. Errors marked
    with ! are beyond a tenth of the standard deviation, or make more than 1 % of the non-zero values zero. The same
    input gives the same plan: measured speeds are shown, and decide nothing.

    \b
    REQUIREMENT is one limit or several, all of which must hold:
      abs=0.1            largest absolute error, in units of the variable
      range=1e-4         the same, relative to the range of the values; also std=0.01
      rel=0.001          largest error relative to a value; also digits=3, bits=9
      information=0.99   share of the real information of the bits
      rmse=0.02,psnr=80,corr=0.99999,dssim=0.9995,ks=0.05,spectrum=0.01
                         of all values of the sample
      limits,sign,zeros  values stay within valid_min and valid_max, keep signs and zeros
      lossless           no bit changes
      recommended        what is published for the variable's CF, CMIP or CESM name; else what its noise allows

    \b
    tamis plan climate.nc
    tamis plan climate.nc --require 'TS:abs=0.1' -o recipe.toml
    tamis repack climate.nc small.nc --recipe recipe.toml
    tamis plan climate.nc --size 2GB --confirm
    tamis plan climate.nc -r 'TS:abs=0.1' --access series=0.7,map=0.3
    tamis plan 2001.nc 2002.nc -r 'T*:abs=0.1,psnr=70' -r '*:lossless' --readers any
    """
    from tamis.jobs.plan.requirements import parse_requirements, parse_size
    from tamis.jobs.recipes.saved_recipe import check_new

    with output_of_files("plan", files, as_json, quiet, log) as output:
        asked = by_name("--require", parse_requirements(required))
        if everything and sample is not None:
            raise ParameterError("--sample and --all cannot be combined")
        nbytes = parse_size(sample or _SAMPLE)
        files = tuple(files_of(files))
        if recipe_out is not None:
            check_new(recipe_out, files, overwrite=overwrite)
        if plot is not None:
            from tamis.jobs.plan.plot import check_picture, save

            check_picture(plot)
            others = files if recipe_out is None else (*files, recipe_out)
            check_new(plot, others, overwrite=overwrite, what="the picture")
        with ended_by_signals() as check, output.progress(check) as progress:
            result = tamis.plan(
                files,
                asked,
                sample=None if everything else nbytes,
                size=None if size is None else parse_size(size),
                compare=compare or (),
                progress=progress,
                **options,
            )
        if recipe_out is not None:
            result.dump(recipe_out, overwrite=overwrite)
        if plot is not None:
            save(result.datasets, plot)
        output.result(result)
