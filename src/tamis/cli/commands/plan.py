"""The command `tamis plan`."""

from __future__ import annotations

from typing import Any

import click

import tamis
from tamis.cli.ending import ended_by_signals
from tamis.cli.options import FILE, RenamedChoice, by_name, files_of, old_options, output_options, remote_options
from tamis.cli.output import output_of_files
from tamis.errors import ParameterError

READERS = ("any", "netcdf", "netcdf-plugins", "zfp", "hdf5plugin", "zarr", "all")
PREFERENCES = ("size", "speed", "archive")
STORAGES = ("disk", "lustre", "s3")
"""Listed here, because the modules that define them take long to import."""
_SAMPLE = "16MB"


@click.command("plan")
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
    help="Who must be able to read the result: any program with HDF5; all that HDF5 has by itself, szip included"
    " (netcdf); netCDF-C with its own plugins; HDF5 with the plugin of zfp; Python with hdf5plugin; zarr-python; or"
    " whoever installs what is needed. What others could read is listed as an offer.",
)
@click.option(
    "--prefer",
    type=click.Choice(PREFERENCES),
    default="size",
    show_default=True,
    help="Choose the best ratio (among similar ones, readers and speed decide), the fastest filters with at least two"
    " thirds of it, or for archives the best ratio alone.",
)
@click.option(
    "--sample", metavar="SIZE", help=f"Most data to read of each variable, in kB, MB or GB; {_SAMPLE} by default."
)
@click.option(
    "--access",
    metavar="READS",
    help="Also choose chunk shapes, for how values are read: series, map, whole, series=0.7,map=0.3, or a box such"
    " as box:time=10,lat=96.",
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
    type=click.Choice(("auto", "keep")),
    help="Choose the chunk shape with the best ratio, or keep chunks. By default, and without --access, a shape is"
    " chosen for variables without chunks.",
)
@click.option(
    "--allow",
    multiple=True,
    type=click.Choice(("unstable",)),
    help="Also choose sz3, whose versions do not read each other's chunks.",
)
@click.option("--ratio", type=float, metavar="R", help="Bytes of values per stored byte, over all files.")
@click.option("--size", metavar="SIZE", help="Stored size of all files together, such as 2GB.")
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
    type=RenamedChoice(("exact", "mask")),
    default="exact",
    show_default=True,
    help="How repack will treat missing values.",
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
    help="Draw the candidates, ratio against largest error and speed, into an SVG, PNG or PDF file.",
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

    Only the recipe is written, with -o, and a picture, with --plot. The numbers are predictions from a sample of each
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
      recommended        what is published for variables of such a CF, CMIP or CESM name; else by their own noise

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
            raise ParameterError("expected --sample or --all, got both")
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
            save(result, plot)
        output.result(result)
