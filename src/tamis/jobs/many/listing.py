"""The files of a run: found in folders, with the path of each target."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from glob import has_magic, iglob
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, get_args

from tamis.errors import FileError, ParameterError
from tamis.formatting import plural
from tamis.remote import Address, can_list, is_address, list_below
from tamis.safety import disk_text, nbytes_of
from tamis.stores import READABLE, is_folder, is_folder_store, is_read, kind_of

STATE_FOLDER = ".tamis"
"""The folder of state in the folder of targets."""

REPLACEMENT = ".tamis-new-"
"""Beginning of the name of a file that will replace the one with the rest of the name."""

REPLACED = ".tamis-old-"
"""Beginning of the name that a file has while it is replaced, until it is known that nobody has written it since."""

ORIGINALS_MARKER = ".tamis-originals"
"""File in a folder of kept originals: no run in place replaces what is in such a folder, or below it."""

Other = Literal["skip", "copy", "fail"]
OTHERS = get_args(Other)
To = Literal["nc", "zarr"]

_OURS = re.compile(
    rf"{re.escape(STATE_FOLDER)}|{re.escape(ORIGINALS_MARKER)}|({re.escape(REPLACEMENT)}|{re.escape(REPLACED)}).*|\..*\.[0-9a-f]{{8}}\.tamis(-journal|-chunks)?"
)


class LeftOut(NamedTuple):
    """A file or folder that a run leaves out."""

    path: str
    reason: str


class SourceFile(NamedTuple):
    """A file to repack or copy."""

    source: str  # Absolute path of the file, or of the folder of a Zarr store
    target: str  # Path of the target below the folder of targets
    nbytes: int
    is_read: bool = True  # False for a file that tamis does not read, which is copied


@dataclass(frozen=True, slots=True)
class Choice:
    """Which files are taken, and what they become."""

    include: tuple[str, ...] = ()  # Patterns of names, or of paths if they have a slash; all files if empty
    exclude: tuple[str, ...] = ()
    other: Other = "skip"  # What happens to files that tamis does not read
    to: To | None = None  # Format of the targets; None for that of each source

    def __post_init__(self) -> None:
        for name, value, known in (("other", self.other, OTHERS), ("to", self.to, (*get_args(To), None))):
            if value not in known:
                raise ParameterError(f"expected {name} to be one of {', '.join(filter(None, known))}, got {value!r}")

    @classmethod
    def of(cls, include: str | Iterable[str], exclude: str | Iterable[str], **others: Any) -> Self:
        """Return the choice of a call, in which a single pattern may be a text."""
        taken, left = ((names,) if isinstance(names, str) else tuple(names) for names in (include, exclude))
        return cls(taken, left, **others)

    def takes(self, path: str) -> bool:
        """Return whether a file of a folder is taken, by its path below the folder."""
        return (not self.include or _matches(path, self.include)) and not _matches(path, self.exclude)

    def target_of(self, path: str, is_store: bool) -> str:
        """Return the path of a target: that of the source, with the ending of its format."""
        to = self.to or ("zarr" if is_store else "nc")
        ending = f".{to}"
        if path.endswith(ending) or (to == "nc" and not is_store):
            return path
        stem, dot, suffix = path.rpartition(".")
        known = dot and suffix.lower() in _ENDINGS
        return (stem if known and self.to else path) + ending


@dataclass(slots=True)
class Listing:
    """The files of a run, and what was left out."""

    files: dict[str, SourceFile] = field(default_factory=dict)  # By target
    left_out: list[LeftOut] = field(default_factory=list)
    unmatched: int = 0  # Number of files in folders that the choice does not take
    failed: dict[str, tuple[str, str]] = field(default_factory=dict)  # By target: source, and why it cannot be read

    def add(self, file: SourceFile) -> None:
        """Add a file; raise ParameterError if another one has the same target."""
        before = self.files.setdefault(file.target, file)
        if before.source != file.source:
            raise ParameterError(
                f"{before.source} and {file.source} would both become {file.target}: repack them into two "
                "folders, or give a folder that has both, whose tree is kept"
            )


def list_files(
    sources: Iterable[str | os.PathLike[str]],
    choice: Choice,
    outs: Iterable[str | os.PathLike[str]] = (),
    relative: Iterable[str] = (),
    *,
    in_place: bool = False,
) -> Listing:
    """List the files of a run.

    A folder gives all files in it, with their paths below it; a file, or a pattern that no file has as its name, gives
    files by their names. Those in `relative` keep their paths if these are relative. Nothing in `outs` is listed; nor,
    if the files are to be replaced `in_place`, are originals that runs kept, which are left out.
    """
    listing, unlisted = Listing(), {os.path.realpath(out) for out in outs}
    for source in map(os.fsdecode, sources):
        if is_address(source):
            _add_elsewhere(listing, choice, Address(source))
            continue
        for path in _expanded(source):
            if os.path.realpath(path) in unlisted:
                continue
            if in_place and is_among_originals(path):
                listing.left_out.append(LeftOut(path, KEPT_ORIGINALS))
            elif is_folder(path):
                for file in _files_in(path, choice, unlisted, listing, in_place=in_place):
                    _add(listing, choice, path, file, required=False)
            else:
                folder, name = os.path.split(path.rstrip(os.sep))
                _add(listing, choice, folder, name, required=True)
    for path in relative:
        if is_address(path):
            _add_elsewhere(listing, choice, Address(path))
            continue
        folder, name = os.path.split(path) if os.path.isabs(path) else ("", os.path.normpath(path))
        if name.split(os.sep)[0] == os.pardir:
            raise ParameterError(f"{path}: expected a path below the working folder, or an absolute one, in the list")
        _add(listing, choice, folder, name, required=True)
    return listing


def _expanded(source: str) -> Iterable[str]:
    if os.path.lexists(source):
        return [source]
    paths = sorted(iglob(source, recursive=True)) if has_magic(source) else []
    if not paths:
        raise FileError(f"{source}: no such file or folder, and no file matches it").at(path=source)
    return paths


def is_among_originals(path: str) -> bool:
    """Return whether a path is, or is in, a folder of kept originals."""
    place = Path(os.path.realpath(path))
    return any(os.path.lexists(folder / ORIGINALS_MARKER) for folder in (place, *place.parents))


def _files_in(
    folder: str, choice: Choice, unlisted: set[str], listing: Listing, *, in_place: bool = False
) -> Iterator[str]:
    """Yield the paths of files and stores below a folder, which other links to folders are not."""
    top, pending = os.path.realpath(folder), [""]
    while pending:
        below = pending.pop()
        try:
            with os.scandir(os.path.join(folder, below)) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            place = os.path.abspath(os.path.join(folder, below))
            listing.failed[below or os.path.basename(place)] = place, f"{place}: cannot be listed: {disk_text(error)}"
            continue
        if in_place and any(entry.name == ORIGINALS_MARKER for entry in found):
            listing.left_out.append(LeftOut(os.path.join(folder, below), KEPT_ORIGINALS))
            continue
        for entry in found:
            path = os.path.join(below, entry.name)
            place = os.path.realpath(entry.path) if entry.is_symlink() else os.path.join(top, path)
            if is_ours(entry.name) or place in unlisted:
                continue
            if _is_folder(entry) and not is_folder_store(entry.path):
                if entry.is_symlink():
                    listing.left_out.append(LeftOut(entry.path, _LINKED))
                else:
                    pending.append(path)
            elif choice.takes(path):
                yield path
            else:
                listing.unmatched += 1


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link in a circle, or into a folder that this user may not enter: opening it says why
        return False


def _add_elsewhere(listing: Listing, choice: Choice, source: Address) -> None:
    """Add a file or Zarr store that is elsewhere, or those of a folder, whose address ends with a slash."""
    if not source.endswith("/") or is_folder_store(source):
        _add_source(listing, choice, source, source.name, required=True)
        return
    if not can_list(source):
        raise FileError(f"{source}: this server does not list files: give the address of each file").at(path=source)
    names = dict.fromkeys(_IN_STORE.sub(r"\1", entry.key) for entry in list_below(source))
    for name in names:
        if choice.takes(name) and not is_ours(name):
            _add_source(listing, choice, source / name, name, required=False)
    if not names:
        raise FileError(f"{source}: no files below this address").at(path=source)


_IN_STORE = re.compile(r"(.*?\.zarr)/.*")


def _add(listing: Listing, choice: Choice, folder: str, path: str, *, required: bool) -> None:
    """Add a file by its path below a folder; one that tamis does not read may be skipped unless it is required."""
    _add_source(listing, choice, os.path.abspath(os.path.join(folder, path)), path, required=required)


def _add_source(listing: Listing, choice: Choice, source: str, path: str, *, required: bool) -> None:
    try:
        is_store = is_folder_store(source)
        read = is_store or is_read(source)
        nbytes = nbytes_of(source)
    except OSError as error:
        text = str(error) if isinstance(error, FileError) else f"{source}: cannot be read: {disk_text(error)}"
        listing.failed[Path(path).as_posix()] = source, text
        return
    is_stored = read or _is_stored(source)
    if not read and (choice.other == "fail" or (required and (choice.other == "skip" or not is_stored))):
        raise FileError(
            f"{source}: expected an HDF5, netCDF or Zarr file, found {kind_of(source)}"
            + ("; with --other copy, such files are copied" if is_stored else "")
        ).at(path=source)
    if not read and (choice.other == "skip" or not is_stored):
        reason = (MISNAMED if _looks_like_data(source) else _UNREAD) if is_stored else _NO_FILE
        listing.left_out.append(LeftOut(source, reason))
        return
    target = choice.target_of(path, is_store) if read else path
    listing.add(SourceFile(source, Path(target).as_posix(), nbytes, read))


def _is_stored(source: str) -> bool:
    """Return whether a path is an address, or leads to a file or folder; not to a pipe, which blocks who opens it."""
    return isinstance(source, Address) or os.path.isfile(source) or os.path.isdir(source)


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    name = os.path.basename(path)
    return any(fnmatchcase(path if "/" in pattern else name, pattern) for pattern in patterns)


def is_ours(name: str) -> bool:
    """Return whether tamis made a file or folder for its own work, by its name."""
    return _OURS.fullmatch(name) is not None


def nothing_in(folder: str | os.PathLike[str], listing: Listing | None = None) -> FileError:
    """Return the error about a folder without files that tamis reads, or from which the choice takes none."""
    place = os.fsdecode(folder)
    if listing is not None and listing.unmatched:
        text = f"{place}: none of {plural(listing.unmatched, 'file')} matches the patterns (--include, --exclude)"
        return FileError(text).at(path=folder)
    kind = kind_of(folder)  # An error, if the folder cannot be listed
    if os.path.isdir(place) and os.listdir(place):
        text = f"{place}: no file in this folder is {READABLE}; it is no Zarr store either, because it has no metadata"
        return FileError(f"{text} (zarr.json, .zgroup or .zarray)").at(path=folder)
    return FileError(f"{place}: expected {READABLE}, got {kind}").at(path=folder)


_LINKED = "links to folders are not followed: name the folder as a source, too"
NOT_REPLACED = "links are not replaced: name the files that they lead to"
STORE_NOT_REPLACED = (
    "Zarr stores are not replaced: repack each into a new one, tamis repack OLD.zarr NEW.zarr, and rename that"
)
KEPT_ORIGINALS = f"originals that a run kept, which are not replaced (their folder has the file {ORIGINALS_MARKER})"
IN_TARGETS = "the folder of targets has files, too, which are no sources"
_NO_FILE = "devices, pipes and sockets are no files"
_UNREAD = "neither HDF5, netCDF nor Zarr"
MISNAMED = "neither HDF5, netCDF nor Zarr, although named so: empty, cut off, or of another kind"


def left_out_notes(left_out: Iterable[LeftOut], *, may_copy: bool = True) -> Iterator[str]:
    """Yield a note for each reason why files or folders are left out; `may_copy` if an option would copy them."""
    by_reason: dict[str, list[str]] = {}
    for path, reason in left_out:
        by_reason.setdefault(reason, []).append(path)
    for reason, paths in by_reason.items():
        shown = sorted(paths, key=lambda path: (not _looks_like_data(path), path))[:_MOST_SHOWN]
        named = ", ".join(shown) + (f", … (--json has all {len(paths)})" if len(paths) > len(shown) else "")
        advice = " (--other copy copies them)" if reason in (_UNREAD, MISNAMED) and may_copy else ""
        yield f"{len(paths)} left out, {reason}{advice}: {named}"


def _looks_like_data(path: str) -> bool:
    return path.rpartition(".")[2].lower() in _ENDINGS


_ENDINGS = ("nc", "nc4", "cdf", "h5", "hdf5", "hdf", "he5", "zarr")
_MOST_SHOWN = 3
