"""Repack many files in one run, which can be interrupted, continued and shared."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from typing import Any, Unpack

from tamis.arguments import CALLBACK, CLIENT, COUNT, FLAG, NAMES, PATH, PATHS, WHOLE, Kind
from tamis.jobs.many.again import done_test
from tamis.jobs.many.listing import Choice, LeftOut, Other, To, left_out_notes
from tamis.jobs.many.look_ahead import check_names, check_views
from tamis.jobs.many.manifest import state_of
from tamis.jobs.many.prepared import PreparedRun, describe, prepare
from tamis.jobs.many.preview import coarse_bounds_of, preview_of
from tamis.jobs.many.result import FolderPreview, FolderStatus, status_of
from tamis.jobs.many.run import ManyProgress, Run, unread_records, with_ranges
from tamis.jobs.many.state import begin_run, listed_targets
from tamis.jobs.many.task import Packing
from tamis.jobs.recipes import Recipe, Recipes
from tamis.jobs.repack import RepackKeywords, Warn, refuse_unknown, takes_repack_options
from tamis.jobs.workers import DaskWorkers, LocalWorkers, Workers
from tamis.remote import is_address

_TRIES = Kind("a whole number, 0 or more", lambda value: WHOLE.fits(value) and value >= 0)
_SECONDS = Kind("seconds, 0 or more", lambda value: isinstance(value, int | float) and 0 <= value < math.inf)
_SHARD = Kind("a pair such as (1, 8)", lambda value: isinstance(value, tuple | list) and len(value) == 2)


_KINDS = {
    "files_from": NAMES,
    "include": NAMES,
    "exclude": NAMES,
    **dict.fromkeys(("checksums", "overwrite", "replace", "break_hard_links", "keep_going", "keep_damaged"), FLAG),
}


_OPTIONAL_KINDS = {"shard": _SHARD, "keep_originals": PATH, "settle": _SECONDS}


def _check_keywords(**given: object) -> None:
    """Raise ParameterError if a keyword of the folder is of another kind; repack checks its own."""
    for name, value in given.items():
        if name in _KINDS:
            _KINDS[name].check(name, value)
        elif name in _OPTIONAL_KINDS:
            _OPTIONAL_KINDS[name].check_optional(name, value)


def _prepared(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str] | None,
    recipe: Recipes | Recipe,
    options: RepackKeywords,
    *,
    include: str | Iterable[str],
    exclude: str | Iterable[str],
    other: Other,
    to: To | None,
    checksums: bool,
    overwrite: bool,
    replace: bool,
    break_hard_links: bool,
    **others: Any,
) -> PreparedRun:
    """Check the arguments of a run, list its files, and look for mistakes in the recipe before a file is made."""
    PATHS.check("sources", sources)
    PATH.check_optional("out", out)
    folder = {"checksums": checksums, "replace": replace, "break_hard_links": break_hard_links}
    _check_keywords(include=include, exclude=exclude, overwrite=overwrite, **folder, **others)
    choice = Choice.of(include, exclude, other=other, to=to)
    asked = {**options, "overwrite": overwrite}
    run = prepare(sources, out, recipe, choice=choice, options=asked, folder=folder, **others)
    check_names(run.listing.files.values(), run.options.repack)
    check_views(run.listing.files.values(), run.options, partial(done_test, run))
    return run


@takes_repack_options
def repack_many(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str] | None,
    recipe: Recipes | Recipe,
    *,
    files_from: Iterable[str] = (),
    include: str | Iterable[str] = (),
    exclude: str | Iterable[str] = (),
    other: Other = "skip",
    to: To | None = None,
    shard: tuple[int, int] | None = None,
    client: Any = None,
    workers: int | None = None,
    retries: int = 2,
    keep_going: bool = True,
    checksums: bool = False,
    overwrite: bool = False,
    replace: bool = False,
    keep_originals: str | os.PathLike[str] | None = None,
    break_hard_links: bool = False,
    settle: float | None = None,
    keep_damaged: bool = False,
    packing: Packing = "one",
    confirm: Callable[[FolderPreview], object] | None = None,
    warn: Warn | None = None,
    progress: ManyProgress | None = None,
    **options: Unpack[RepackKeywords],
) -> FolderStatus:
    """Repack files and folders into a folder, with one recipe, in several processes.

    Each file is repacked and proven as by `repack`, largest first. What was done to it is recorded in ``.tamis`` in the
    folder of targets, so the same call continues an interrupted run: a file is done if there is a record of it, its
    source and the recipe are unchanged, and the target has the recorded size. Several calls for the same folder, also
    on different machines, share the work.

    Parameters
    ----------
    sources
        Paths of files, Zarr stores and folders, or patterns such as ``data/*.nc``. A folder gives all files in it, with
        their paths below it; a file gives its name.
    out
        Folder of the targets, which is created; None if `replace` is given.
    recipe
        Filters by dataset name or pattern, or a `tamis.Recipe`; see `repack`. A name may be missing in some files: the
        notes say in how many.
    files_from
        More paths of files; relative ones are kept as the paths of their targets.
    include, exclude
        Patterns of the files taken from folders: of names, or, if they have a slash, of paths below the folder.
    other
        What happens to files that tamis does not read: ``"skip"``, ``"copy"`` or ``"fail"``.
    to
        Format of the targets, ``"nc"`` or ``"zarr"``; by default that of each source.
    shard
        Number of a part and of all parts, such as ``(1, 8)``: only every eighth file, from the first on.
    client
        A Dask client, whose workers make the files; they must reach sources and targets by the same paths.
    workers
        Number of processes on this machine; by default one for each processor.
    retries
        How often a file is tried again after an error that may pass.
    keep_going
        Whether other files are made after one has failed for good.
    checksums
        Whether records have the SHA-256 of sources; that of targets is always recorded, and that of sources that are
        replaced.
    overwrite
        Replace targets that tamis did not make from these sources.
    replace
        Give each target the name of its source, with its owner, mode, times and attributes, once it is proven.
    keep_originals
        Folder for the sources that are replaced.
    break_hard_links
        Whether files with several hard links are replaced; the other names keep the old content.
    settle
        Seconds for which a file that is replaced must not have changed; others are left alone, and fail. By default 2
        where the system tells which files are open for writing, 60 elsewhere: see docs/in-place.md.
    keep_damaged
        Whether datasets with chunks that cannot be decoded are copied as they are, also those that the recipe names,
        and the status is `ok` all the same; they are listed.
    packing
        ``"one"``: a variable that is packed has one packing in all files, by a pass over all values first, so that
        programs may join the files. ``"each"``: each file has the packing that suits its values.
    confirm
        Called with the result of `preview_repack_many` before anything is written; an error that it raises ends the
        run.
    warn
        Called with each of the `warnings` of the preview before anything is written.
    progress
        Called a few times a second with `Running`.
    **options
        Keywords of `repack`; `threads` is for each process, by default the processors divided by the processes.

    Returns
    -------
    FolderStatus
        Numbers of files, failures, bytes and the largest error. It raises no error if files failed.

    Raises
    ------
    FileError
        If a source does not exist, a name of the recipe is in none of the files, or the folder cannot be written.
    ParameterError
        If options contradict each other, or two sources have the same target.
    """
    CLIENT.check_optional("client", client)
    COUNT.check_optional("workers", workers)
    _TRIES.check("retries", retries)
    CALLBACK.check_optional("confirm", confirm)
    CALLBACK.check_optional("warn", warn)
    CALLBACK.check_optional("progress", progress)
    _check_keywords(keep_going=keep_going, keep_damaged=keep_damaged)
    refuse_unknown("repack_many", options)
    run = _prepared(
        sources,
        out,
        recipe,
        options,
        files_from=files_from,
        include=include,
        exclude=exclude,
        other=other,
        to=to,
        shard=shard,
        client=client,
        workers=workers,
        checksums=checksums,
        overwrite=overwrite,
        replace=replace,
        keep_originals=keep_originals,
        break_hard_links=break_hard_links,
        settle=settle,
        packing=packing,
    )
    if keep_damaged:
        run = run.keeping_damaged()
    preview = None if confirm is None else preview_of(run)
    if warn is not None:
        for warning in coarse_bounds_of(run) if preview is None else preview.warnings:
            warn(warning)
    if confirm is not None and preview is not None:
        confirm(preview)
    report = progress or (lambda _: None)
    description = describe(run, shard) | {"keep_damaged": keep_damaged}
    with (
        begin_run(run.options.folder, description) as described,
        listed_targets(described, run.targets()) as targets,
        ExitStack() as elsewhere,
    ):
        processes: Workers = LocalWorkers(run.processes) if client is None else DaskWorkers(client)
        try:
            complete = with_ranges(run, processes, report).with_targets(targets)
            files = Run(complete, run.files, retries, keep_going, report)
            files.fail_unread(run.listing)
            files.begin_elsewhere(description, elsewhere)
            files.sweep(run.listing)
            if files.queue:
                files.go(processes)
        finally:
            processes.stop()
        return files.finished(run.listing.left_out, keep_damaged=keep_damaged)


@takes_repack_options
def preview_repack_many(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str] | None,
    recipe: Recipes | Recipe,
    *,
    files_from: Iterable[str] = (),
    include: str | Iterable[str] = (),
    exclude: str | Iterable[str] = (),
    other: Other = "skip",
    to: To | None = None,
    shard: tuple[int, int] | None = None,
    checksums: bool = False,
    overwrite: bool = False,
    replace: bool = False,
    keep_originals: str | os.PathLike[str] | None = None,
    break_hard_links: bool = False,
    settle: float | None = None,
    packing: Packing = "one",
    **options: Unpack[RepackKeywords],
) -> FolderPreview:
    """Return what `repack_many` would make, and write nothing.

    Its keywords about how it runs, such as ``workers``, are not taken. What happens to the datasets of one file is
    shown by `preview_repack`.

    Parameters
    ----------
    sources, out, recipe, files_from, include, exclude, other, to, shard, checksums, overwrite, replace
        See `repack_many`.
    keep_originals, break_hard_links, settle, packing, **options
        See `repack_many`, too.
    """
    refuse_unknown("preview_repack_many", options)
    return preview_of(
        _prepared(
            sources,
            out,
            recipe,
            options,
            files_from=files_from,
            include=include,
            exclude=exclude,
            other=other,
            to=to,
            shard=shard,
            checksums=checksums,
            overwrite=overwrite,
            replace=replace,
            keep_originals=keep_originals,
            break_hard_links=break_hard_links,
            settle=settle,
            packing=packing,
        )
    )


def status(folder: str | os.PathLike[str]) -> FolderStatus:
    """Return what runs of `repack_many` have done in a folder so far, also while one is at work.

    Parameters
    ----------
    folder
        Folder of the targets.

    Returns
    -------
    FolderStatus
        Numbers of files, failures, bytes and the largest error.

    Raises
    ------
    FileError
        If there is no state in the folder, or it cannot be read.
    """
    PATH.check("folder", folder)
    state = state_of(folder)
    runs = state.runs() or [{}]
    last = runs[-1]
    left_out = dict[str, str]()
    for run in runs:
        left_out |= dict(run.get("left_out", ()))
    unread = state.unread()
    others = [LeftOut(path, reason) for path, reason in left_out.items() if os.path.lexists(path)]
    wanted = state.wanted()
    return status_of(
        state,
        os.fsdecode(folder),
        {path for path, source in wanted.items() if is_address(source) or os.path.lexists(source)}
        | {*state.done, *unread}
        if wanted
        else int(last.get("files", 0)) + len(unread),
        failed=unread_records(unread),
        last_key=last.get("key"),
        notes=left_out_notes(others, may_copy=not last.get("replace")),
        left_out=others,
        keep_damaged=bool(last.get("keep_damaged")),
    )
