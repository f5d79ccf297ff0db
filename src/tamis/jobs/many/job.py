"""Repack many files in one run, which can be interrupted, continued and shared."""

from __future__ import annotations

import math
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, get_args

from tamis import _native
from tamis.arguments import CALLBACK, CLIENT, COUNT, FLAG, NAMES, PATH, PATHS, WHOLE, Kind
from tamis.errors import FileError, ParameterError, TamisError
from tamis.formatting import plural
from tamis.jobs.many.leftovers import sweep
from tamis.jobs.many.listing import (
    IN_TARGETS,
    NOT_REPLACED,
    STATE_FOLDER,
    Choice,
    LeftOut,
    Listing,
    Other,
    SourceFile,
    To,
    left_out_notes,
    list_files,
    nothing_in,
)
from tamis.jobs.many.look_ahead import check_names, check_views, warnings_of
from tamis.jobs.many.manifest import state_of, write_manifest
from tamis.jobs.many.order import Order
from tamis.jobs.many.ranges import common_ranges, is_packed
from tamis.jobs.many.result import FileAction, FilePreview, FolderPreview, FolderStatus, status_of
from tamis.jobs.many.state import FileRecord, Known, State, begin_run, listed_targets, write_record
from tamis.jobs.many.task import FileTask, FolderOptions, Packing, what_is_lost, why_refused
from tamis.jobs.recipes.names import Recipes
from tamis.jobs.recipes.saved_recipe import Recipe
from tamis.jobs.repack.job import Warn
from tamis.jobs.repack.option_table import DEFAULTS
from tamis.jobs.repack.options import RepackKeywords, RepackOptions, refuse_unknown, takes_options
from tamis.jobs.witness.process import check_installed
from tamis.jobs.workers import DaskWorkers, Died, Event, LocalWorkers, Reported, Workers
from tamis.remote.address import is_address, located_path
from tamis.safety.disk import Identity, nbytes_of
from tamis.stores.first_bytes import format_of, is_folder
from tamis.stores.other_files import OtherFile, Places

if TYPE_CHECKING:
    from tamis.rewrite.coarse_bounds import Warned

_MOST_DEATHS = 3
"""Ends of its process after which a file is set aside."""
_WAIT_SECONDS = 0.2
_CLAIMED_SECONDS = 1.0
_RETRY_SECONDS = 1.0
"""Pause before the second try of a file; it doubles with each further one."""

_MOST_PACKINGS = 5
"""Packed variables that a result names."""

_TRIES = Kind("a whole number, 0 or more", lambda value: WHOLE.fits(value) and value >= 0)
_SECONDS = Kind("seconds, 0 or more", lambda value: isinstance(value, int | float) and 0 <= value < math.inf)
_SHARD = Kind("a pair such as (1, 8)", lambda value: isinstance(value, tuple | list) and len(value) == 2)


class Running(NamedTuple):
    """The progress of a run."""

    files: int
    done: int  # Number of files that are complete, also by earlier runs
    failed: int
    nbytes: int  # Bytes of all sources
    done_nbytes: int
    begun_nbytes: int  # Bytes of the sources that were done when the run began
    at_work: Mapping[str, tuple[str, int, int]]  # By target: step, amount of work done, whole amount


ManyProgress = Callable[[Running], None]


_KINDS = {
    "files_from": NAMES,
    "include": NAMES,
    "exclude": NAMES,
    "shard": _SHARD.or_none(),
    "keep_originals": PATH.or_none(),
    "settle": _SECONDS.or_none(),
    **dict.fromkeys(("checksums", "overwrite", "replace", "break_hard_links", "keep_going", "keep_damaged"), FLAG),
}


def _check_keywords(**given: object) -> None:
    """Raise ParameterError if a keyword of the folder is of another kind; repack checks its own."""
    for name, value in given.items():
        if name in _KINDS:
            _KINDS[name].check(name, value)


@takes_options
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
        Whether records have the SHA-256 of sources; that of targets is always recorded.
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
        Whether the status is `ok` although chunks that cannot be decoded were copied as they are; they are listed all
        the same.
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
    PATHS.check("sources", sources)
    PATH.or_none().check("out", out)
    CLIENT.check_optional("client", client)
    COUNT.check_optional("workers", workers)
    _TRIES.check("retries", retries)
    CALLBACK.check_optional("confirm", confirm)
    CALLBACK.check_optional("warn", warn)
    CALLBACK.check_optional("progress", progress)
    _check_keywords(
        files_from=files_from,
        include=include,
        exclude=exclude,
        shard=shard,
        keep_originals=keep_originals,
        settle=settle,
        checksums=checksums,
        overwrite=overwrite,
        replace=replace,
        break_hard_links=break_hard_links,
        keep_going=keep_going,
        keep_damaged=keep_damaged,
    )
    refuse_unknown("repack_many", options)
    run = _prepared(
        sources,
        out,
        recipe,
        files_from=files_from,
        choice=Choice.of(include, exclude, other=other, to=to),
        shard=shard,
        client=client,
        workers=workers,
        keep_originals=keep_originals,
        options={**options, "overwrite": overwrite},
        folder={"checksums": checksums, "replace": replace, "break_hard_links": break_hard_links},
        settle=settle,
        packing=packing,
    )
    check_names(run.listing.files.values(), run.options.repack)
    check_views(run.listing.files.values(), run.options, partial(_is_done, run))
    preview = None if confirm is None else _preview(run)
    if warn is not None:
        for warning in _warnings(run) if preview is None else preview.warnings:
            warn(warning)
    if confirm is not None and preview is not None:
        confirm(preview)
    report = progress or (lambda _: None)
    with (
        begin_run(run.options.folder, _description(run, shard) | {"keep_damaged": keep_damaged}) as described,
        listed_targets(described, run.targets()) as targets,
    ):
        processes: Workers = LocalWorkers(run.processes) if client is None else DaskWorkers(client)
        try:
            complete = _with_ranges(run, processes, report).with_targets(targets)
            files = _Run(complete, run.files, retries, keep_going, report)
            files.fail_unread(run.listing)
            files.sweep(run.listing)
            if files.queue:
                files.go(processes)
        finally:
            processes.stop()
        return files.finished(run.listing.left_out, keep_damaged=keep_damaged)


def preview_repack_many(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str] | None,
    recipe: Recipes | Recipe,
    **options: Any,
) -> FolderPreview:
    """Return what `repack_many` would make, and write nothing.

    Parameters
    ----------
    sources, out, recipe
        See `repack_many`.
    **options
        Its keywords, except those about how it runs: ``client``, ``workers``, ``retries``, ``keep_going``,
        ``keep_damaged``, ``warn`` and ``progress``. What happens to the datasets of one file is shown by
        `preview_repack`.
    """
    PATHS.check("sources", sources)
    PATH.or_none().check("out", out)
    _check_keywords(**options)
    named = {name: options.pop(name) for name in ("other", "to") if name in options}
    run = _prepared(
        sources,
        out,
        recipe,
        files_from=options.pop("files_from", ()),
        choice=Choice.of(options.pop("include", ()), options.pop("exclude", ()), **named),
        shard=options.pop("shard", None),
        keep_originals=options.pop("keep_originals", None),
        settle=options.pop("settle", None),
        packing=options.pop("packing", "one"),
        folder={name: options.pop(name, False) for name in ("checksums", "replace", "break_hard_links")},
        options=options,
    )
    check_names(run.listing.files.values(), run.options.repack)
    check_views(run.listing.files.values(), run.options, partial(_is_done, run))
    return _preview(run)


def _preview(run: _Prepared) -> FolderPreview:
    """Return what a run would make."""
    failed = [FilePreview(path, source, "refuse", text, 0) for path, (source, text) in run.listing.failed.items()]
    places = Places.of_files(run.targets())
    actions = _actions(run, places)
    rows = [_preview_of(file, *actions[file.target], run.options, places) for file in run.files]
    left_out = tuple(run.listing.left_out)
    notes = tuple(left_out_notes(left_out, may_copy=not run.options.replace))
    return FolderPreview(run.options.folder, (*rows, *failed), notes, _warnings(run, actions), left_out)


def _warnings(run: _Prepared, actions: Mapping[str, tuple[FileAction, str]] | None = None) -> tuple[Warned, ...]:
    """Return the warnings about the bounds of a recipe for the files that a run repacks."""
    actions = _actions(run, Places.of_files(run.targets())) if actions is None else actions
    return warnings_of([file for file in run.files if actions[file.target][0] == "repack"], run.options.repack)


def _actions(run: _Prepared, places: Places) -> dict[str, tuple[FileAction, str]]:
    """Return by target what a run does with each file, and why, without reading it."""
    state = State(run.options.folder)
    state.refresh()
    return {file.target: _action_of(file, state, run.options, places) for file in run.files}


def _action_of(file: SourceFile, state: State, options: FolderOptions, places: Places) -> tuple[FileAction, str]:
    known, target = state.known.get(file.target), os.path.join(options.folder, file.target)
    # The ranges of packed variables are not known before all values are read.
    reason = _why_again(file, known, options, places, packing=None if known is None else known.packing)
    if reason is None:
        return "done", ""
    if refusal := why_refused(file, options):
        return "refuse", refusal
    if reason == "" and known is not None and known.action == "failed":
        reason = f"failed before: {(state.record(file.target).error or {}).get('message', '')}"
    elif reason == "" and not (options.replace or options.repack.overwrite) and os.path.exists(target):
        reason = "the target exists: it is refused unless tamis made it from this source"
    return "repack" if file.is_read else "copy", reason


def _preview_of(
    file: SourceFile, action: FileAction, reason: str, options: FolderOptions, places: Places
) -> FilePreview:
    if action == "repack" and (lost := what_is_lost(file, options)):
        reason = f"{reason}; {lost}" if reason else lost
    target, kind = os.path.join(options.folder, file.target), format_of(file.source)
    others = _others_of(file, target, options, places) if kind == "HDF5" and action in ("repack", "done") else ()
    return FilePreview(file.target, file.source, action, reason, file.nbytes, kind, others)


def _others_of(file: SourceFile, target: str, options: FolderOptions, places: Places) -> tuple[OtherFile, ...]:
    """Return the files that a target would lead to; none if its source cannot be read, which the run says."""
    from tamis.jobs.repack.job import needed_files  # late: a run leaves it to other processes

    try:
        return needed_files(file.source, target, options.repack, places)
    except TamisError:
        return ()


def _with_ranges(run: _Prepared, workers: Workers, report: ManyProgress) -> FolderOptions:
    """Return the options of a run with the ranges of packed variables over all of its files, also of other parts."""
    options, files = run.options, run.listing.files.values()
    if options.packing == "each" or not is_packed(options.repack.recipe):
        return options
    is_done = _is_done(run, packed=True)
    nbytes = sum(file.nbytes for file in run.files)

    def tell(step: str, done: int, total: int) -> None:
        report(Running(len(run.files), 0, 0, nbytes, 0, 0, {"ranges of packed variables": (step, done, total)}))

    ranges = common_ranges(files, is_done, options, workers, tell)
    return replace(options, repack=replace(options.repack, ranges=ranges))


def _is_done(run: _Prepared, *, packed: bool = False) -> Callable[[SourceFile], bool]:
    """Return whether an earlier run made a file as this one would; if `packed`, in recorded ranges of values."""
    state, options = State(run.options.folder), run.options
    places = Places.of_files(run.targets())
    state.refresh()

    def is_done(file: SourceFile) -> bool:
        known = state.known.get(file.target)
        if known is None or (packed and not known.packing) or known.recipe != options.key:
            return False
        return _why_again(file, known, options, places, packing=known.packing) is None

    return is_done


class _Prepared(NamedTuple):
    """A run that has not begun."""

    options: FolderOptions
    listing: Listing
    files: list[SourceFile]  # Those of the part
    processes: int  # On this machine

    def targets(self) -> Iterator[tuple[str, str]]:
        """Yield the source and the path of the target of each file of the run, also of other parts."""
        for file in self.listing.files.values():
            yield file.source, os.path.join(self.options.folder, file.target)


def _prepared(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str] | None,
    recipe: Recipes | Recipe,
    *,
    files_from: Iterable[str],
    choice: Choice,
    shard: tuple[int, int] | None,
    keep_originals: str | os.PathLike[str] | None,
    settle: float | None,
    packing: Packing,
    folder: Mapping[str, Any],
    options: Mapping[str, Any],
    client: Any = None,
    workers: int | None = None,
) -> _Prepared:
    """Check the arguments of a run, and list its files."""
    replaces = folder["replace"]
    if (out is None) != replaces:
        got = "both" if replaces else "none"
        raise ParameterError(f"expected either a folder for the targets or replace, got {got}")
    if out is not None and is_address(out):
        raise ParameterError(
            f"{located_path(out)}: several files cannot be written to an address: write each to its own, "
            "such as s3://bucket/a.nc, or write to a folder here, and copy it when it is complete"
        )
    if keep_originals is not None and not replaces:
        raise ParameterError("keep_originals (--keep-originals) needs replace (--replace)")
    if packing not in get_args(Packing):
        raise ParameterError(f"expected packing to be one of {', '.join(get_args(Packing))}, got {packing!r}")
    if settle is not None and not replaces:
        raise ParameterError("settle (--settle) needs replace (--replace)")
    if folder["break_hard_links"] and not replaces:
        raise ParameterError("break_hard_links (--break-hard-links) needs replace (--replace)")
    if replaces and choice.to is not None:
        raise ParameterError("replace cannot change the format of the files: leave out replace, or to")
    paths = [sources] if isinstance(sources, str | bytes | os.PathLike) else [*sources]
    names = [files_from] if isinstance(files_from, str) else [*files_from]
    if unknown := [name for name in options if name not in (*DEFAULTS, "overwrite")]:
        raise ParameterError(f"repack_many has no keyword {unknown[0]}")
    keep_originals = None if keep_originals is None else os.path.abspath(os.fsdecode(keep_originals))
    asked = RepackOptions.asked(recipe, **{**options, "resume": True})
    if asked.witness:
        check_installed()
    if out is None:
        listing, place = _in_place(paths, choice, names, [keep_originals] if keep_originals else [])
    else:
        place = os.path.abspath(os.fsdecode(out))
        _check_no_source(place, paths)
        listing = list_files(paths, choice, [out], names)
        listing.left_out += _sources_in(place, paths, choice)
    if not (listing.files or listing.failed):
        if len(paths) == 1 and not (names or listing.left_out):
            raise nothing_in(paths[0], listing)
        where = ", ".join(map(os.fsdecode, (*paths, *names))) or "the list"
        left_out = left_out_notes(listing.left_out, may_copy=not replaces)
        raise FileError("; ".join([f"{where}: no HDF5, netCDF or Zarr files", *left_out]))
    processors = len(os.sched_getaffinity(0))
    count = workers or min(processors, max(len(listing.files), 1))
    threads = options.get("threads") or (max(processors // count, 1) if client is None else 1)
    return _Prepared(
        FolderOptions(
            place,
            replace(asked, threads=threads, optional_names=True, room=os.path.join(place, STATE_FOLDER, "room")),
            keep_originals=keep_originals,
            settle=settle,
            packing=packing,
            **folder,
        ),
        listing,
        _part(listing, shard),
        count,
    )


def _check_no_source(out: str, paths: Iterable[Any]) -> None:
    """Raise FileError if the folder of targets is one of the sources."""
    if any(is_folder(place) and os.path.realpath(place) == os.path.realpath(out) for place in map(os.fsdecode, paths)):
        raise FileError(f"{out}: is the source itself: choose another folder, or replace its files (--replace)").at(
            path=out
        )


def _sources_in(out: str, paths: Iterable[Any], choice: Choice) -> list[LeftOut]:
    """Return the files in a folder of targets that no run has made, and that would be sources in another folder."""
    folders = [os.path.realpath(place) for place in map(os.fsdecode, paths) if is_folder(place)]
    is_inside = any(os.path.realpath(out).startswith(os.path.join(folder, "")) for folder in folders)
    if not is_inside or not os.path.isdir(out) or os.path.isdir(os.path.join(out, STATE_FOLDER)):
        return []
    return [LeftOut(file.source, IN_TARGETS) for file in list_files([out], choice).files.values()]


def _in_place(paths: list[Any], choice: Choice, files_from: Iterable[str], originals: list[str]) -> tuple[Listing, str]:
    """Return files that are to be replaced, and the folder that has all of them, below which their paths are."""
    listing, found, folders = Listing(), list[SourceFile](), list[str]()
    for place in map(os.fsdecode, (*paths, *files_from)):
        if is_address(place):
            raise ParameterError(f"{located_path(place)}: only files here can be replaced, not an address")
        is_tree = is_folder(place)
        listed = list_files([place], choice, [*originals, *(_originals_of(place) if is_tree else ())])
        listing.left_out += listed.left_out
        listing.failed |= listed.failed
        listing.unmatched += listed.unmatched
        folders += [os.path.abspath(place)] * is_tree
        for file in listed.files.values():
            folders += [os.path.dirname(file.source)] * (not is_tree)
            if os.path.isdir(file.source) or (is_tree and os.path.islink(file.source)):
                listing.left_out.append(LeftOut(file.source, NOT_REPLACED))
            elif file.is_read:
                found.append(file)
    if not folders:
        raise ParameterError("name the files to replace, or their folders")
    folder = os.path.commonpath(folders)
    for file in found:
        listing.add(file._replace(target=Path(os.path.relpath(file.source, folder)).as_posix()))
    return listing, folder


def _originals_of(folder: str) -> list[str]:
    """Return the folders in which earlier runs kept originals."""
    found = (run.get("keep_originals") for run in State(folder).runs())
    return [path for path in found if isinstance(path, str)]


def _part(listing: Listing, shard: tuple[int, int] | None) -> list[SourceFile]:
    """Return the files of a part: every n-th by path, so that all machines agree."""
    files = [listing.files[target] for target in sorted(listing.files)]
    if shard is None:
        return files
    number, count = shard
    if not (WHOLE.fits(number) and WHOLE.fits(count) and 1 <= number <= count):
        raise ParameterError(f"expected a part such as 1/8, from 1 to the number of parts, got {number}/{count}")
    return files[number - 1 :: count]


def _description(run: _Prepared, shard: tuple[int, int] | None) -> dict[str, Any]:
    files = run.listing.files.values()
    return {
        "version": _native.version,
        "files": len(files),
        "nbytes": sum(file.nbytes for file in files),
        "part": {"files": len(run.files), "shard": shard},
        "key": run.options.key,
        "recipe": str(run.options.repack.recipe),
        "replace": run.options.replace,
        "keep_originals": run.options.keep_originals,
        "unread": run.listing.failed,
        "left_out": run.listing.left_out,
    }


def _why_again(
    file: SourceFile, known: Known | None, options: FolderOptions, places: Places, *, packing: str | None = None
) -> str | None:
    """Return why a file has to be made although there is a record of it; None if it is done, empty without a record.

    `packing` is the key of the ranges of packed variables, by default that of the options.
    """
    if known is None or known.action in ("failed", "replacing"):
        return ""
    if file.is_read and known.recipe != options.key:
        return "other filters, chunks or options were requested"
    if file.is_read and options.repack.witness and not known.has_witness:
        return f"the witness {options.repack.witness} has not seen the target"
    # What was replaced would lose more values: it keeps its packing.
    if file.is_read and not options.replace and known.packing != (options.packing_key if packing is None else packing):
        return "the ranges of packed variables are larger now"
    target = Path(options.folder, file.target)
    try:
        if nbytes_of(target) != known.target_nbytes:
            return "the target was changed"
    except FileNotFoundError:
        return "the target is gone"
    if any(places.target_of(path) is not None for path in known.other_files):
        return "a file that the target leads to is now one of the run"
    if not options.replace and not all(item.is_unchanged() for item in known.taken_in):
        return "a file that the target has taken in was changed"
    identity = Identity.of(file.source)
    if options.replace:
        return None if identity.mtime_ns == known.identity.mtime_ns else "the file was changed"
    return None if identity == known.identity else "the source was changed"


def _is_as_made(target: Path, done: Known | None) -> bool:
    """Return whether a target has the size that a run recorded for it."""
    return done is not None and target.exists() and nbytes_of(target) == done.target_nbytes


class _Run:
    """The files of a run, and what becomes of them."""

    def __init__(
        self, options: FolderOptions, files: list[SourceFile], retries: int, keep_going: bool, report: ManyProgress
    ) -> None:
        self._options, self._files, self._retries, self._keep_going = options, files, retries, keep_going
        self._report, self._places = report, options.places
        self._state = State(options.folder)
        self._state.refresh()
        self._again: Counter[str] = Counter()
        self._made = self._done = self._done_nbytes = 0
        self._failed: dict[str, FileRecord] = {}  # Last records of files that failed for good
        self._deaths: Counter[str] = Counter()
        self._swept: tuple[str, ...] = ()  # Notes about what ended runs left
        self._at_work: dict[str, tuple[str, int, int]] = {}
        self._contents: dict[str, tuple[int, int]] = {}  # Of files at work that may have several names
        self._later: list[tuple[float, FileTask]] = []  # Failed, or others have it, with the time of the next try
        self._stops = False
        self.queue = deque(sorted(filter(None, map(self._task_of, files)), key=lambda task: -task.file.nbytes))
        self._order = Order(options, self.queue)
        self._nbytes, self._begun_nbytes = sum(file.nbytes for file in files), self._done_nbytes

    def _task_of(self, file: SourceFile) -> FileTask | None:
        """Return the task that makes a file; None if it is done."""
        known = self._state.known.get(file.target)
        reason = _why_again(file, known, self._options, self._places)
        if reason is None:
            self._done += 1
            self._done_nbytes += file.nbytes
            return None
        self._again.update([reason] * bool(reason))
        expected = Identity.of(file.source) if self._options.replace else None
        serial = 0 if known is None else known.serial + 1
        is_half_done = known is not None and known.action == "replacing"
        is_ours = _is_as_made(Path(self._options.folder, file.target), self._state.done.get(file.target))
        return FileTask(file, self._options, 1, serial, expected, is_half_done, is_ours)

    def sweep(self, listing: Listing) -> None:
        """Remove what ended runs left, and begin with files of which they left a part, which takes space already."""
        swept = sweep(self._options.folder, listing.files, {task.file.target for task in self.queue})
        self.queue = deque(sorted(self.queue, key=lambda task: task.file.target not in swept.begun))
        self._swept = swept.notes

    def fail_unread(self, listing: Listing) -> None:
        """Count the files that cannot even be listed as failed; the description of the run has them."""
        self._failed |= _unread_records(listing.failed)
        self._stops = bool(listing.failed) and not self._keep_going

    def go(self, workers: Workers) -> None:
        """Make all files."""
        while self.queue or self._at_work or self._later:
            self._submit(workers)
            if not self._at_work and not self._later:
                if self._order.release(self.queue):
                    continue
                break
            begun = time.monotonic()
            for event in workers.events(_WAIT_SECONDS) if self._at_work else ():
                self._take(event)
            if not self._at_work:
                time.sleep(max(_WAIT_SECONDS - (time.monotonic() - begun), 0))
            self._tell()

    def _submit(self, workers: Workers) -> None:
        if self._stops:
            self.queue.clear()
            self._later.clear()
        if due := [entry for entry in self._later if entry[0] <= time.monotonic()]:
            self._state.refresh()
            self._later = [entry for entry in self._later if entry not in due]
            for _, task in due:
                self._look_again(task)
        waiting = list[FileTask]()
        while self.queue and workers.idle > 0:
            task = self.queue.popleft()
            if self._order.awaited(task):
                waiting.append(task)
            elif self._is_new(task):
                self._look_again(task)
            elif self._is_held(task):
                waiting.append(task)
            else:
                self._at_work[task.file.target] = ("begins", 0, 1)
                workers.submit(task)
        self.queue.extendleft(reversed(waiting))

    def _is_held(self, task: FileTask) -> bool:
        """Return whether another name of a file is being replaced, which this one has to wait for."""
        if not self._options.break_hard_links:
            return False
        with suppress(OSError):  # a file that is gone has no other name
            status = os.stat(task.file.source)
            content = status.st_dev, status.st_ino
            if content in self._contents.values():
                return True
            self._contents[task.file.target] = content
        return False

    def _is_new(self, task: FileTask) -> bool:
        """Return whether another run wrote a record of a file since this one looked."""
        before = self._state.known.get(task.file.target)
        self._state.refresh()
        return task.attempt == 1 and self._state.known.get(task.file.target) is not before

    def _look_again(self, task: FileTask) -> None:
        """Queue a file that failed, or that another run had, unless a run has made it."""
        if (again := self._task_of(task.file)) is not None:
            self.queue.append(again._replace(attempt=task.attempt))
        else:
            self._order.end(task.file.target)

    def _take(self, event: Event) -> None:
        task, path = event.task, event.task.file.target
        if isinstance(event, Reported):
            self._at_work[path] = (event.step, event.done, event.total)
            return
        self._at_work.pop(path, None)
        self._contents.pop(path, None)
        if isinstance(event, Died):
            self._died(event)
        elif event.result.action == "claimed":
            self._later.append((time.monotonic() + _CLAIMED_SECONDS, task))
        elif event.result.action == "changed":
            self._state.refresh()
            self._look_again(task)
        elif event.result.action == "failed":
            self._fail(task, event.result)
        else:
            self._order.end(path)
            self._made += 1
            self._done += 1
            self._done_nbytes += task.file.nbytes

    def _fail(self, task: FileTask, record: FileRecord) -> None:
        if (record.error or {}).get("may_pass") and task.attempt <= self._retries:
            pause = _RETRY_SECONDS * 2 ** (task.attempt - 1)
            self._later.append((time.monotonic() + pause, task._replace(attempt=task.attempt + 1)))
            return
        self._order.end(task.file.target)
        self._failed[task.file.target] = record
        self._stops |= not self._keep_going

    def _died(self, event: Died) -> None:
        task, path = event.task, event.task.file.target
        self._deaths[path] += 1
        if self._deaths[path] < _MOST_DEATHS and not event.is_final:
            self.queue.append(task._replace(attempt=task.attempt + 1, serial=task.serial + 1))
            return
        text = f"{task.file.source}: the process that made it {event.how}: it is set aside; memory may be short"
        record = _failure(path, task.file.source, "ProcessError", text)
        record = replace(record, recipe=self._options.key, attempt=task.attempt, serial=task.serial + 1)
        with suppress(FileError):  # a full disk; the result has it
            write_record(self._options.folder, record)
        self._order.end(path)
        self._failed[path] = record
        self._stops |= not self._keep_going

    def _tell(self) -> None:
        nbytes = self._nbytes, self._done_nbytes, self._begun_nbytes
        self._report(Running(len(self._files), self._done, len(self._failed), *nbytes, self._at_work))

    def _packing_notes(self) -> Iterator[str]:
        """Yield notes about packed variables."""
        options = self._options
        if not is_packed(options.repack.recipe):
            return
        if options.packing == "each":
            yield "packed variables have a packing of their own in each file (--packing one: the same in all)"
            return
        valid = {path: extent for path, extent in options.repack.ranges.items() if extent.low <= extent.high}
        for path, extent in sorted(valid.items())[:_MOST_PACKINGS]:
            ends = f"from {extent.low:g} to {extent.high:g}"
            yield f"{path}: one packing in all files, for values {ends} (--packing each: one for each file)"
        if len(valid) > _MOST_PACKINGS:
            yield f"{len(valid) - _MOST_PACKINGS} more variables have one packing in all files"
        known = [self._state.known[file.target] for file in self._files if file.target in self._state.known]
        others = sum(item.action == "repacked" and item.packing != options.packing_key for item in known)
        if others and options.replace:
            files = plural(others, "file")
            yield f"{files} replaced by runs that did not know the ranges of all files, and may have another packing"

    def finished(self, left_out: Collection[LeftOut], *, keep_damaged: bool) -> FolderStatus:
        """Write the manifest, and return the status of this run's files."""
        self._state.refresh()
        notes = left_out_notes(left_out, may_copy=not self._options.replace)
        found = [*notes, *self._swept, *self._packing_notes()]
        try:
            write_manifest(self._state, self._options.folder)
        except FileError as error:
            found.append(str(error))
        return status_of(
            self._state,
            self._options.folder,
            {file.target for file in self._files} | self._failed.keys(),
            failed=self._failed,
            key=self._options.key,
            made=self._made,
            again=dict(self._again),
            notes=found,
            left_out=left_out,
            keep_damaged=keep_damaged,
        )


def _failure(path: str, source: str, kind: str, message: str) -> FileRecord:
    """Return the record of a file that no process could record."""
    error = {"kind": kind, "message": message, "path": source}
    return FileRecord(path, "failed", source, version=_native.version, error=error, time=time.time())


def _unread_records(unread: Mapping[str, Any]) -> dict[str, FileRecord]:
    """Return the records of files that could not even be listed, by target, from their sources and messages."""
    return {path: _failure(path, str(source), "FileError", str(text)) for path, (source, text) in unread.items()}


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
    last = (state.runs() or [{}])[-1]
    unread = {path: found for path, found in last.get("unread", {}).items() if os.path.lexists(found[0])}
    left_out = [LeftOut(path, reason) for path, reason in last.get("left_out", ())]
    return status_of(
        state,
        os.fsdecode(folder),
        int(last.get("files", 0)) + len(unread),
        failed=_unread_records(unread),
        notes=left_out_notes(left_out, may_copy=not last.get("replace")),
        left_out=left_out,
        keep_damaged=bool(last.get("keep_damaged")),
    )
