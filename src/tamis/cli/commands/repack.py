"""The command `tamis repack`: copy files with new filters, and prove the bound."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import click

import tamis
from tamis.cli.completions import filters_of_names
from tamis.cli.many import MANY_OPTIONS, client_of, is_many, many_options, repack_many, split_paths, warner
from tamis.cli.options import (
    FILE,
    by_name,
    options_of,
    output_options,
    remote_options,
    threads_option,
)
from tamis.cli.output import output_of_files, show_stored
from tamis.formatting import shell_line
from tamis.jobs.recipes.policies import MissingPolicy
from tamis.jobs.repack.option_table import TABLE


@click.command("repack", short_help="Copy files with new filters or chunks, and prove the bound.")
@click.argument("paths", nargs=-1, metavar="IN... OUT", type=FILE)
@click.option(
    "-f",
    "--filter",
    "recipes",
    multiple=True,
    metavar="NAME:FILTERS",
    shell_complete=filters_of_names,
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
@options_of(TABLE)
@click.option("--overwrite", is_flag=True, help="Replace OUT if it exists.")
@click.option("--dry-run", is_flag=True, help="Print what would be done to each dataset, and write nothing.")
@many_options
@click.option(
    "--keep-damaged",
    is_flag=True,
    help="Copy datasets with damaged chunks as they are, also those that -f names, and exit with 0; they are listed.",
)
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

    Exit codes: 0 done as asked or already done, 1 something failed, is damaged, or would be refused (--dry-run),
    2 wrong usage, 3 a bound or requirement was missed, whatever else failed.
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
            run = partial(tamis.repack, source, target, recipe, keep_damaged=keep_damaged, **options)
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
