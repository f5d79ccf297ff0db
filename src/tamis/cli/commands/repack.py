"""The command `tamis repack`: copy files with new filters, and prove the bound."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import click

import tamis
from tamis.cli.many import MANY_OPTIONS, client_of, is_many, many_options, repack_many, split_paths, warner
from tamis.cli.options import (
    FILE,
    RenamedChoice,
    by_name,
    keep_damaged_option,
    output_options,
    remote_options,
    threads_option,
)
from tamis.cli.output import output_of_files, show_stored
from tamis.formatting import shell_line
from tamis.jobs.recipes.policies import POLICIES, MissingPolicy


@click.command("repack", short_help="Copy files with new filters or chunks, and prove the bound.")
@click.argument("paths", nargs=-1, metavar="IN... OUT", type=FILE)
@click.option(
    "-f",
    "--filter",
    "recipes",
    multiple=True,
    metavar="NAME:FILTERS",
    help="Filters for a dataset, or for all that match a pattern such as '/grp/*' or 'standard_name=air_*';"
    " repeatable. A pattern never applies lossy filters to coordinates, bounds, flags or integers.",
)
@click.option(
    "-c",
    "--chunks",
    "shapes",
    multiple=True,
    metavar="NAME:SHAPE",
    help="Chunk shape for a dataset or pattern, slowest axis first, such as TS:4x96x144; repeatable. A dataset without"
    " -f keeps its filters. With -f, a pattern here applies only to datasets that get filters.",
)
@click.option(
    "-r",
    "--require",
    "required",
    multiple=True,
    metavar="NAME:REQUIREMENT",
    help="Requirement for a dataset or pattern, whatever the filters promise, such as TS:abs=0.1,limits; repeatable. A "
    "chunk that fails it is stored without loss.",
)
@click.option(
    "--checksum/--no-checksum",
    default=True,
    show_default=True,
    help="Add the checksum fletcher32 after zfp, so that readers notice damage.",
)
@click.option(
    "--recipe",
    "recipe_path",
    metavar="FILE",
    type=FILE,
    help="Filters, chunks, --require and --missing from a TOML file, as --recipe-out writes it; -f, -c, --require and "
    "--missing override the file.",
)
@click.option(
    "--recipe-out",
    metavar="FILE",
    type=FILE,
    help="Write these settings, from options and --recipe combined, to a TOML file; also with --dry-run. --overwrite "
    "replaces an existing file.",
)
@threads_option
@click.option(
    "--missing",
    type=RenamedChoice(POLICIES),
    default=None,
    help="Missing values: exact, the default, keeps each bit by bit; mask moves them to a missing-value mask, a"
    " second dataset (best ratio, but all readers except tamis.open see invented values in their place);"
    " refuse fails if there are any, and counts them.",
)
@click.option(
    "--follow",
    is_flag=True,
    help="Let patterns also copy values of virtual datasets and external raw files into OUT; otherwise OUT refers to "
    "the same files as IN.",
)
@click.option(
    "--self-contained",
    is_flag=True,
    help="Store all that is in other files in OUT, which then needs none: the values of every virtual dataset and raw "
    "file, with or without filters, and what external links lead to.",
)
@click.option("--overwrite", is_flag=True, help="Replace OUT if it exists.")
@click.option(
    "--min-size",
    type=click.IntRange(min=0),
    metavar="BYTES",
    help="Patterns skip datasets with fewer bytes of values; by default 4096 without chunks, 0 with chunks.",
)
@click.option("--larger", is_flag=True, help="Let patterns also change datasets that become larger than in IN.")
@click.option(
    "--keep-classic", is_flag=True, help="Copy a netCDF classic file unchanged if it would be larger as netCDF-4."
)
@click.option(
    "--zarr-format", type=click.IntRange(2, 3), metavar="N", help="Version of the Zarr format, 2 or 3; 3 by default."
)
@click.option(
    "--shards",
    type=click.IntRange(min=1),
    metavar="CHUNKS",
    help="Store up to this many chunks per file of a Zarr 3 store; by default each chunk has its own file.",
)
@click.option(
    "--consolidated/--no-consolidated",
    default=None,
    help="Repeat the metadata of all arrays in the root of a Zarr store, as xarray does (default).",
)
@click.option(
    "--cloud",
    is_flag=True,
    help="Store the metadata of an HDF5 or netCDF-4 OUT together: opening it over a network takes few requests.",
)
@click.option(
    "--storage",
    type=click.Choice(("disk", "s3")),
    default="disk",
    show_default=True,
    help="Where OUT is read from. With s3, datasets without -c get chunks of 4 to 16 MiB of stored "
    "bytes, and --cloud is on.",
)
@click.option(
    "--history/--no-history",
    default=True,
    show_default=True,
    help="Record the command in OUT's attribute history, if OUT has history or Conventions.",
)
@click.option("--drop", multiple=True, metavar="NAME", help="Leave out datasets by name or pattern; repeatable.")
@click.option(
    "--witness",
    type=click.Choice(("xarray",)),
    help="Let xarray read IN and OUT in a process without tamis before OUT gets its name: all metadata, and the first, "
    "last and worst chunk of each variable must be alike. Costs a second.",
)
@click.option("--resume", is_flag=True, help="Continue an interrupted run; leave OUT unchanged if it is complete.")
@click.option("--dry-run", is_flag=True, help="Print what would be done to each dataset, and write nothing.")
@many_options
@keep_damaged_option
@output_options
@remote_options
def command(
    paths: tuple[str, ...],
    recipes: tuple[str, ...],
    shapes: tuple[str, ...],
    required: tuple[str, ...],
    recipe_path: str | None,
    recipe_out: str | None,
    missing: MissingPolicy | None,
    drop: tuple[str, ...],
    overwrite: bool,
    threads: int | None,
    dry_run: bool,
    keep_damaged: bool,
    quiet: bool,
    log: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Copy IN to OUT with new filters on some datasets, and prove the bound.

    Everything else is copied unchanged, including chunks that already have the filters. Each encoded chunk is decoded
    again and compared with IN, value by value, before OUT gets its name. An OUT that ends in .zarr becomes a Zarr
    store. Without -f and -c, all filters that OUT's format supports are kept.

    \b
    FILTERS is a chain such as
      zfp(accuracy=0.1)        largest absolute error, in units of the variable
      zfp(bound=0.1)           the same promise in the fewest bytes, from a sample
      zfp(rate=8)              bits per value; also precision=16, reversible=true
      shuffle|deflate(4)       lossless
      zfp(accuracy=0.1)|shuffle|deflate(4)
                               zfp; lossless where it cannot keep the bound

    \b
    REQUIREMENT is one limit or several, for each value,
      abs=0.1 rel=0.001 range=1e-4 std=0.01 digits=3 bits=9 limits sign zeros
    and for a whole dataset (if one is missed, OUT is not written, exit 3),
      rmse=0.02 psnr=80 corr=0.99999 dssim=0.9995 ks=0.05
      spectrum=0.01

    \b
    tamis repack in.nc out.nc -f 'TS:zfp(accuracy=0.1)' -f '*:deflate' --dry-run
    tamis repack in.nc out.nc -f 'SST:zfp(accuracy=0.1)|shuffle|deflate(4)' \\
        -c SST:60x16x16 -j 4
    tamis repack in.nc out.nc -c TS:4x96x144           # keeps the filters
    tamis repack in.nc out.nc --recipe recipe.toml

    Several files, or a folder, are repacked into a folder OUT, each file as above, in several processes. Give the same
    command again to continue an interrupted run; `tamis status OUT` shows what is done. Failed files do not stop the
    others.

    \b
    tamis repack data/ small/ --recipe recipe.toml
    tamis repack 19*.nc small/ -f '*:shuffle|deflate(4)' --workers 8
    tamis repack archive/ --replace --recipe recipe.toml
    tamis repack data/*.nc all.zarr --combine time --recipe recipe.toml

    `tamis filters` lists all filters, and `tamis filters zfp` the parameters of one.
    """
    from tamis.accuracy.requirement import as_requirement
    from tamis.jobs.recipes.names import parse_chunks, split_filters, split_recipe
    from tamis.jobs.recipes.saved_recipe import check_new, joined_requirements

    many = {name: options.pop(name) for name in MANY_OPTIONS}
    sources, target = split_paths(paths, many)
    with output_of_files("repack", paths, as_json, quiet, log) as output:
        pipelines = by_name("-f", [split_filters(text) for text in recipes])
        texts = by_name("-c", [split_recipe(text, "NAME:SHAPE", "TS:4x96x144") for text in shapes])
        chunks = {name: parse_chunks(text) for name, text in texts.items()}
        words = [split_recipe(text, "NAME:REQUIREMENT", "TS:abs=0.1") for text in required]
        require = joined_requirements((name, as_requirement(text)) for name, text in words)
        recipe = tamis.Recipe(pipelines, chunks=chunks, require=require, missing=missing, drop=drop)
        if recipe_path is not None:
            recipe = recipe.before(tamis.Recipe.load(recipe_path))
        if recipe_out is not None:
            check_new(recipe_out, paths, overwrite=overwrite)
            recipe.dump(recipe_out, overwrite=overwrite)
        if target is None or is_many(sources, target, many):
            options |= {"overwrite": overwrite, "threads": threads}
            many["keep_damaged"] = keep_damaged
            repack_many(output, sources, target, recipe, dry_run=dry_run, many=many, options=options)
            return
        source = sources[0]
        with drops_to_paste():
            if dry_run:
                output.result(tamis.preview_repack(source, target, recipe, **options))
                return
            options["client"] = client_of(output, many["scheduler"], many["scheduler_file"])
            options |= {"overwrite": overwrite, "threads": threads, "workers": many["workers"], "warn": warner(output)}
            run = partial(tamis.repack, source, target, recipe, **options)
            show_stored(output, target, options["resume"], run, keep_damaged=keep_damaged)


@contextmanager
def drops_to_paste() -> Iterator[None]:
    """Add to an error about datasets that the target does not support the command that leaves them out."""
    from tamis.rewrite.transfer import UnstorableError

    try:
        yield
    except UnstorableError as error:
        if not error.paths:
            raise
        command, *arguments = sys.argv[1:]
        options = [word for path in error.paths for word in ("--drop", path)]
        line = shell_line(["tamis", command, *options, *arguments])
        error.command = line
        raise
