"""Write several files into one, joined along a dimension."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from tamis.arguments import CALLBACK, FLAG, PATH, PATHS, TEXT
from tamis.errors import FileError, ParameterError
from tamis.formatting import plural
from tamis.jobs.many import Choice, left_out_notes, list_files
from tamis.jobs.progress import Progress
from tamis.jobs.recipes import Recipe, Recipes
from tamis.jobs.repack import (
    RepackKeywords,
    RepackOptions,
    RepackResult,
    look,
    refuse_unknown,
    save_store,
    takes_repack_options,
    witness_of,
)
from tamis.remote import is_address, located_path
from tamis.safety import Identity
from tamis.stores import JoinedStore

if TYPE_CHECKING:
    from tamis.jobs.repack import Planning, Repacked
    from tamis.jobs.witness import Witnessed


@takes_repack_options
def combine(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    recipe: Recipes | Recipe,
    dimension: str,
    *,
    include: str | Iterable[str] = (),
    exclude: str | Iterable[str] = (),
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Unpack[RepackKeywords],
) -> RepackResult:
    """Write files that continue each other into one file or Zarr store, with new filters and a proof, as `repack`.

    Variables with the dimension are joined, in the order of its coordinate, which must always rise or always fall. All
    else must be the same in all files: variables, types, attributes of variables, and the values of variables without
    the dimension. Other attributes are those of the first file.

    Parameters
    ----------
    sources
        Paths of files, stores and folders, or patterns, as for `repack_many`.
    target
        Path of a netCDF-4 file, or of a Zarr store if it ends in ``.zarr``.
    recipe
        Filters by name or pattern, or a `tamis.Recipe`; variables without any keep those of the first file.
    dimension
        Name of the dimension, such as ``time``.
    include, exclude
        Patterns of the files taken from folders; see `repack_many`.
    overwrite
        Replace an existing target.
    progress
        Called as by `repack`.
    **options
        Keywords of `repack`, except ``resume`` and ``follow``.

    Raises
    ------
    ParameterError
        If the files do not fit together; names which, and in what.
    FileError, BoundError
        See `repack`.
    """
    PATHS.check("sources", sources)
    PATH.check("target", target)
    TEXT.check("dimension", dimension)
    FLAG.check("overwrite", overwrite)
    CALLBACK.check_optional("progress", progress)
    refuse_unknown("combine", options)
    for name in ("resume", "follow"):
        if options.pop(name, False):  # type: ignore[misc]
            raise ParameterError(f"files that are combined take no {name}: leave it out")
    asked = RepackOptions.asked(recipe, **options, overwrite=overwrite)
    if is_address(target):
        raise ParameterError(
            f"{located_path(target)}: files can be combined only into a target here, not at an address"
        )
    paths = [sources] if isinstance(sources, str | bytes | os.PathLike) else [*sources]
    listing = list_files(paths, Choice.of(include, exclude), [] if _is_named(target, paths) else [target])
    for _, message in listing.failed.values():
        raise FileError(message)
    files = [file.source for file in listing.files.values()]
    left_out = [*left_out_notes(listing.left_out, may_copy=False)]
    if not files:
        raise ParameterError("; ".join(["no files to combine", *left_out]))
    here = [file for file in files if not is_address(file)]
    if os.path.exists(target) and any(os.path.samefile(target, file) for file in here):
        raise ParameterError(f"{os.fsdecode(target)}: is one of the files that are combined: choose another target")
    identities = {file: Identity.of(file) for file in files}

    def check_unchanged() -> None:
        for file, identity in identities.items():
            if Identity.of(file) != identity:
                raise FileError(f"{file}: changed while it was read: combine the files again").at(path=file)

    with JoinedStore(files, dimension, asked.open) as store:
        filters, chunks = store.stored_alike()
        completed = replace(asked, rule_pipelines=filters, rule_chunks=dict(chunks))
        witness = witness_of(store.files.paths, store, asked, dimension, store.ends)

        def check(path: Path, datasets: tuple[Repacked, ...], planning: Planning) -> Witnessed | None:
            check_unchanged()
            return look(witness, path, store, planning, datasets)

        result = save_store(store, target, completed, progress or (lambda *_: None), check)
        stored = store.stored_nbytes
        datasets = tuple(replace(dataset, source_nbytes=stored[dataset.path]) for dataset in result.datasets)
        notes = [] if store.is_sorted else [f"{dimension} has no coordinate: files are joined in their given order"]
    source, all_notes = plural(len(files), "file"), (*result.notes, *notes, *left_out)
    return replace(result, source=source, datasets=datasets, notes=all_notes)


def _is_named(target: str | os.PathLike[str], paths: Iterable[object]) -> bool:
    """Return whether a target is itself one of the arguments, which is an error of its own."""
    return os.fsdecode(target) in [os.fsdecode(path) for path in paths if isinstance(path, str | bytes | os.PathLike)]
