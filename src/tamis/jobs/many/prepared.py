"""A run of many files that has not begun: its options, checked, and its files, listed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

from tamis.arguments import WHOLE
from tamis.errors import FileError, ParameterError
from tamis.jobs.many.listing import (
    IN_TARGETS,
    NOT_REPLACED,
    STATE_FOLDER,
    STORE_NOT_REPLACED,
    Choice,
    LeftOut,
    Listing,
    SourceFile,
    is_among_originals,
    left_out_notes,
    list_files,
    nothing_in,
)
from tamis.jobs.many.state import State, has_record
from tamis.jobs.many.task import FolderOptions, Packing
from tamis.jobs.recipes import Recipe, Recipes
from tamis.jobs.repack import RepackOptions
from tamis.jobs.result import VERSION
from tamis.jobs.witness import check_installed
from tamis.remote import is_address, located_path
from tamis.stores import is_folder
from tamis.system import processor_count


class PreparedRun(NamedTuple):
    """A run that has not begun."""

    options: FolderOptions
    listing: Listing
    files: list[SourceFile]  # Those of the part
    processes: int  # On this machine

    def keeping_damaged(self) -> PreparedRun:
        """Return the same run, which copies datasets with damaged chunks as they are."""
        options = replace(self.options, repack=replace(self.options.repack, keep_damaged=True))
        return self._replace(options=options)

    def targets(self) -> Iterator[tuple[str, str]]:
        """Yield the source and the path of the target of each file of the run, also of other parts."""
        for file in self.listing.files.values():
            yield file.source, os.path.join(self.options.folder, file.target)


def prepare(
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
) -> PreparedRun:
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
    keep_originals = None if keep_originals is None else os.path.abspath(os.fsdecode(keep_originals))
    asked = RepackOptions.asked(recipe, **{**options, "resume": True})
    if asked.witness:
        check_installed()
    if out is None:
        listing, place = _in_place(paths, choice, names, [keep_originals] if keep_originals else [])
    else:
        place = os.path.abspath(os.fsdecode(out))
        if os.path.lexists(place) and not os.path.isdir(place):
            raise FileError(f"{os.fsdecode(out)}: expected a folder for the targets, found a file: name another").at(
                path=place
            )
        _check_no_source(place, paths)
        listing = list_files(paths, choice, [out], names)
        listing.left_out += _sources_in(place, paths, choice)
    if not (listing.files or listing.failed):
        if len(paths) == 1 and not (names or listing.left_out):
            raise nothing_in(paths[0], listing)
        where = ", ".join(map(os.fsdecode, (*paths, *names))) or "the list"
        left_out = left_out_notes(listing.left_out, may_copy=not replaces)
        raise FileError("; ".join([f"{where}: no HDF5, netCDF or Zarr files", *left_out]))
    processors = processor_count()
    count = workers or min(processors, max(len(listing.files), 1))
    threads = options.get("threads") or (max(processors // count, 1) if client is None else 1)
    return PreparedRun(
        FolderOptions(
            place,
            replace(asked, threads=threads, optional_names=True),
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
    if not is_inside or not os.path.isdir(out) or has_record(out):
        return []
    return [LeftOut(file.source, IN_TARGETS) for file in list_files([out], choice).files.values()]


def _in_place(paths: list[Any], choice: Choice, files_from: Iterable[str], originals: list[str]) -> tuple[Listing, str]:
    """Return files that are to be replaced, and the folder that has all of them, below which their paths are."""
    listing, found, folders = Listing(), list[SourceFile](), list[str]()
    for place in map(os.fsdecode, (*paths, *files_from)):
        if is_address(place):
            raise ParameterError(f"{located_path(place)}: only files here can be replaced, not an address")
        is_tree = is_folder(place)
        _check_originals_apart(place, originals)
        known = [*originals, *(_originals_of(place) if is_tree else ())]
        listed = list_files([place], choice, known, in_place=True)
        listing.left_out += listed.left_out
        listing.failed |= listed.failed
        listing.unmatched += listed.unmatched
        folders += [os.path.abspath(place)] * (is_tree and not is_among_originals(place))
        for file in listed.files.values():
            folders += [os.path.dirname(file.source)] * (not is_tree)
            if os.path.isdir(file.source) or (is_tree and os.path.islink(file.source)):
                reason = NOT_REPLACED if os.path.islink(file.source) else STORE_NOT_REPLACED
                listing.left_out.append(LeftOut(file.source, reason))
            elif file.is_read:
                found.append(file)
    if not folders and listing.left_out and not listing.failed:
        return listing, ""  # nothing is made
    if not folders:
        raise ParameterError("name the files to replace, or their folders")
    folder = _with_record(os.path.commonpath(folders))
    for file in found:
        listing.add(file._replace(target=Path(os.path.relpath(file.source, folder)).as_posix()))
    return listing, folder


def _check_originals_apart(source: str, originals: list[str]) -> None:
    """Raise ParameterError if a folder of originals has the files to replace in it, and is no folder of its own."""
    place = os.path.realpath(source)
    for folder in map(os.path.realpath, originals):
        if place == folder or place.startswith(os.path.join(folder, "")):
            raise ParameterError(
                f"{folder}: has the files that are to be replaced: keep the originals in a folder of their own, such as"
                f" {os.path.join(folder, 'originals')}"
            )


def _with_record(folder: str) -> str:
    """Return the folder around that has the record of runs in place, so that files have one; by default the same."""
    own = Path(folder)
    if has_record(own):
        return folder
    for around in own.parents:
        with suppress(OSError, FileError):
            if os.access(around / STATE_FOLDER, os.W_OK) and any(run.get("replace") for run in State(around).runs()):
                return os.fspath(around)
    return folder


def _originals_of(folder: str) -> list[str]:
    """Return the folders in which earlier runs kept originals."""
    runs = [run for place in {folder, _with_record(os.path.abspath(folder))} for run in State(place).runs()]
    return [path for run in runs if isinstance(path := run.get("keep_originals"), str)]


def _part(listing: Listing, shard: tuple[int, int] | None) -> list[SourceFile]:
    """Return the files of a part: every n-th by path, so that all machines agree."""
    files = [listing.files[target] for target in sorted(listing.files)]
    if shard is None:
        return files
    number, count = shard
    if not (WHOLE.fits(number) and WHOLE.fits(count) and 1 <= number <= count):
        raise ParameterError(f"expected a part such as 1/8, from 1 to the number of parts, got {number}/{count}")
    return files[number - 1 :: count]


def describe(run: PreparedRun, shard: tuple[int, int] | None) -> dict[str, Any]:
    """Return what the state of a folder says of a run."""
    files = run.listing.files.values()
    return {
        "version": VERSION,
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
