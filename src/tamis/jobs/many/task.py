"""Make one file of a run in the process that gets it, and record what was done."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import socket
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tamis.access import PRIVATE_FILE, copy_attributes, create_empty, may_give_group, opened_like, take_access
from tamis.errors import FileError, TamisError
from tamis.formatting import plural
from tamis.jobs.many.listing import ORIGINALS_MARKER, REPLACED, REPLACEMENT, STATE_FOLDER, SourceFile
from tamis.jobs.many.losses import Line, earlier_runs, first_missed, with_earlier
from tamis.jobs.many.other_writers import SETTLE_SECONDS, SETTLE_SECONDS_ON_SERVERS, Lease, can_tell, lease_on
from tamis.jobs.many.state import FileRecord, State, claim, places_in, write_record
from tamis.jobs.repack import MADE_AGAIN, NOTHING_LEFT, run_repack
from tamis.jobs.result import VERSION, error_dict, json_value
from tamis.lazy_property import lazy_property
from tamis.remote import Address, place_of
from tamis.safety import (
    Identity,
    Room,
    Transaction,
    disk_text,
    find_leftovers,
    marked,
    may_pass,
    nbytes_of,
    remove,
    sha256_of,
)
from tamis.stores import Places
from tamis.system import may_act_for, sync_file, sync_folder

if TYPE_CHECKING:
    from tamis.jobs.progress import Progress
    from tamis.jobs.repack import RepackOptions, RepackResult


Packing = Literal["one", "each"]


@dataclass(frozen=True)
class FolderOptions:
    """What a run does with each of its files."""

    folder: str  # Absolute path of the folder of targets
    repack: RepackOptions
    checksums: bool = False  # Whether records have the SHA-256 of sources
    replace: bool = False  # Whether each target takes the place of its source
    keep_originals: str | None = None  # Folder that gets the sources that are replaced
    break_hard_links: bool = False  # Whether sources with other names are replaced, too
    settle: float | None = None  # Seconds for which a source must not have changed; None if the system decides
    targets: str = ""  # File with the path of each target of the run: see `listed_targets`

    def with_targets(self, path: str) -> FolderOptions:
        """Return the options with the file of targets of a run."""
        return replace(self, targets=path)

    @property
    def room(self) -> Path:
        """Folder where the processes of a run reserve room on the disk."""
        return Path(self.folder, STATE_FOLDER, "room")

    @property
    def places(self) -> Places:
        """Where the files of the run go."""
        return places_in(self.targets) if self.targets else Places()

    packing: Packing = "one"  # Whether a packed variable has one packing in all files, or each file its own

    @lazy_property
    def key(self) -> str:
        """A short checksum of everything that determines the bytes of targets, but for the ranges of packed values."""
        return _checksum(self.repack.target_key + ("" if self.packing == "one" else self.packing))

    @lazy_property
    def repack_key(self) -> str:
        """The same, whatever the packing of other files."""
        return _checksum(self.repack.target_key)

    @property
    def packing_key(self) -> str:
        """A short checksum of the ranges that all files have in common; empty without any."""
        return _checksum(repr(sorted(self.repack.ranges.items()))) if self.repack.ranges else ""


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


class FileTask(NamedTuple):
    """A file to make."""

    file: SourceFile
    options: FolderOptions
    attempt: int = 1
    serial: int = 0  # Of the record
    expected: Identity | None = None  # Of the source when it was listed, if it is to be replaced
    is_half_done: bool = False  # Whether the last record says that it is about to be replaced
    is_ours: bool = False  # Whether the target is as an earlier run made it
    stand_ins: Mapping[str, str] = {}  # See `Places`
    lines: tuple[Line, ...] = ()  # What records say of the target: that of its folder, and those of folders around it
    other_name: str = ""  # Target that another name of the file (a hard link) had, and that was replaced
    is_last_name: bool = True  # Whether no other name of the file is replaced after this one

    def run(self, report: Progress) -> FileRecord:
        """Make the file, unless another process does, and record what was done. An error is recorded, not raised."""
        began, path = time.perf_counter(), self.file.target
        try:
            with claim(self.options.folder, path) as is_ours:
                if not is_ours:
                    return FileRecord(path, "claimed", self.file.source)
                record = _completed(_made(self, report), self, began)
                if record.action != "changed":
                    write_record(self.options.folder, record)
                if record.action in ("repacked", "copied"):
                    self._write_elsewhere(record)
                return record
        except OSError as error:  # of the claim or the record, for example of a full disk
            return _completed(FileRecord(path, "failed", self.file.source, error=_described(error)), self, began)

    def _write_elsewhere(self, record: FileRecord) -> None:
        """Append a record to those of other folders that have the file, as far as this user may: it is theirs, too."""
        own = self.options.folder
        for folder, serial in {line.folder: line.serial for line in self.lines if line.folder != own}.items():
            path, link_of = (
                Path(os.path.relpath(os.path.join(own, name), folder)).as_posix() if name else ""
                for name in (record.path, record.link_of)
            )
            with suppress(FileError):
                write_record(folder, replace(record, path=path, link_of=link_of, serial=serial + 1))


def _made(task: FileTask, report: Progress) -> FileRecord:
    try:
        # The reserved room is given back when the file that this one replaces is gone, too.
        with closing(Room(task.options.room)) as room:
            return _done(task, report, room)
    except Exception as error:
        if isinstance(error, TamisError):
            error.at(task.file.source)
        described = _described(error)
        if not described["may_pass"]:  # otherwise the next try, or run, continues what is there
            _remove_parts(task)
        return FileRecord(task.file.target, "failed", task.file.source, error=described)


def _remove_parts(task: FileTask) -> None:
    """Remove what a failed try left of a target."""
    target = Path(task.options.folder, task.file.target)
    if task.options.replace:
        target = target.with_name(f"{REPLACEMENT}{target.name}")
    with suppress(OSError, TamisError):
        for leftover in find_leftovers(target).dead:
            leftover.remove()
            leftover.close()


def _completed(record: FileRecord, task: FileTask, began: float) -> FileRecord:
    """Return a record with facts about the run."""
    return replace(
        record,
        recipe=task.options.key,
        packing=task.options.packing_key,
        version=VERSION,
        seconds=round(time.perf_counter() - began, 3),
        attempt=task.attempt,
        serial=task.serial,
        time=time.time(),
        host=socket.gethostname(),
    )


def _described(error: Exception) -> dict[str, Any]:
    facts = {**error_dict(error), "may_pass": may_pass(error)}
    if isinstance(error, TamisError):
        return facts
    if isinstance(error, OSError):
        return {**facts, "message": f"{error.filename or ''}: {disk_text(error)}".lstrip(": ")}
    return {**facts, "message": f"{error!r}", "traceback": traceback.format_exc()}


class Refusal(NamedTuple):
    """Why a file would not be replaced, and what is waited for if it would; both empty without a reason."""

    reason: str
    waiting: str = ""


def why_refused(file: SourceFile, options: FolderOptions) -> Refusal:
    """Return why a file would not be replaced, without reading it."""
    try:
        if options.replace:
            path = Path(file.source)
            _check_replaceable(path, _original(file, options), options)
            with lease_on(path) as lease:
                _check_unwritten(path, lease)
            seconds, left = _settling(path, options)
            if left > SETTLE_SECONDS:  # the run does not wait longer, by its further tries
                _check_settled(path, options)
            if left > 0:
                return Refusal("", f"the run waits until {seconds:g} s after its last change (--settle)")
    except FileError as error:
        return Refusal(str(error))
    return Refusal("")


def what_is_lost(file: SourceFile, options: FolderOptions) -> str:
    """Return what the new file would lack of the one that it replaces; empty if nothing."""
    with suppress(OSError):
        if options.replace and not may_give_group(Path(file.source)):
            return _lost_group(Path(file.source))
    return ""


def _lost_group(path: Path) -> str:
    group = path.stat().st_gid
    return f"this user may not give the new file to group {group}, so that group would lose its rights to the file"


def _original(file: SourceFile, options: FolderOptions) -> Path | None:
    return None if options.keep_originals is None else Path(options.keep_originals, file.target)


def _done(task: FileTask, report: Progress, room: Room) -> FileRecord:
    file, options = task.file, task.options
    source, target = place_of(file.source), Path(options.folder, file.target)
    if options.replace:
        return _replaced(task, report, room)
    identity = Identity.of(source)
    target.parent.mkdir(parents=True, exist_ok=True)
    record = _repacked(task, source, target, report, room) if file.is_read else _copied(task, Path(source), target)
    if record.action == "changed":
        return record
    return replace(
        record,
        identity=identity,
        **_checksums(target, source if options.checksums and isinstance(source, Path) else None),
    )


def _checksums(target: Path, source: Path | None) -> dict[str, Any]:
    return {
        "target_nbytes": nbytes_of(target),
        "target_sha256": sha256_of(target),
        "source_sha256": sha256_of(source) if source else "",
    }


def _repacked(task: FileTask, source: Path | Address, target: Path, report: Progress, room: Room) -> FileRecord:
    options, places = task.options.repack, replace(task.options.places, stand_ins=task.stand_ins)
    result = run_repack(source, target, options, report, private=task.options.replace, places=places, room=room)
    if result.done_already:
        if not task.options.replace and _is_recorded(task, source):
            return FileRecord(task.file.target, "changed", task.file.source)
        # Made by a run that has no record of it: only another one says what was done.
        again = replace(options, resume=False, overwrite=True)
        result = run_repack(source, target, again, report, private=task.options.replace, places=places, room=room)
    others = tuple(other._asdict() for other in result.other_files)
    taken_in = tuple(item._asdict() for item in result.taken_in)
    record = FileRecord(task.file.target, "repacked", task.file.source, unmatched=result.unmatched, other_files=others)
    record = replace(record, taken_in=taken_in)
    datasets = tuple({name: json_value(getattr(item, name)) for name in _KEPT_FIELDS} for item in result.datasets)
    damaged = tuple(item._asdict() for item in result.damaged)
    warnings = tuple(item._asdict() for item in result.warnings)
    record = replace(record, witness=json_value(result.witness), damaged=damaged, warnings=warnings)
    return replace(record, datasets=datasets, notes=_notes_of(result))


def _is_recorded(task: FileTask, source: Path | Address) -> bool:
    """Return whether another run has just made and recorded a file."""
    state = State(task.options.folder)
    state.refresh()
    known = state.known.get(task.file.target)
    if known is None or known.action != "repacked" or known.recipe != task.options.key:
        return False
    if task.options.repack.witness and not known.has_witness:
        return False
    return known.identity == Identity.of(source)


_KEPT_FIELDS = (
    *("path", "pipeline", "nbytes", "source_nbytes", "target_nbytes", "companion_nbytes", "bound", "relative_bound"),
    *("largest_error", "chunks", "lossless_chunks", "missing_values", "copied", "require", "notes"),
)


def _notes_of(result: RepackResult) -> tuple[str, ...]:
    damaged = {path for path, _ in result.damaged}
    kept = [f"{path}: kept as it is: {reason}" for path, reason in result.kept if path not in damaged]
    # The result of the run counts why files are made again; later runs, which read these notes, make nothing.
    own = (note for note in result.notes if note != NOTHING_LEFT and f": {MADE_AGAIN}" not in note)
    return (*kept, *own)


def _copied(task: FileTask, source: Path, target: Path) -> FileRecord:
    """Copy a file that tamis does not read."""
    record = FileRecord(task.file.target, "copied", task.file.source)
    if target.exists() and not (task.options.repack.overwrite or task.is_ours):
        if nbytes_of(target) == nbytes_of(source) and sha256_of(target) == sha256_of(source):
            return record
        raise FileError(f"{target}: File exists: choose another folder, or replace it: overwrite=True").at(path=target)
    try:
        with Transaction(target) as transaction, marked(transaction):
            _copy(source, transaction.path)
            transaction.commit()
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{target}: cannot be written: {disk_text(error)}").at(path=target) from error
    return replace(record, notes=tuple(transaction.notes))


def _copy(source: Path, new: Path) -> None:
    """Copy the bytes, attributes and times of a file, and as much of its mode as the umask allows."""
    status = source.stat()
    with source.open("rb") as stream, opened_like(source, new) as out:
        shutil.copyfileobj(stream, out, _COPIED_NBYTES)
        copy_attributes(source, out.fileno())
    os.utime(new, ns=(status.st_atime_ns, status.st_mtime_ns))


_COPIED_NBYTES = 8 << 20


def _replaced(task: FileTask, report: Progress, room: Room) -> FileRecord:
    """Make a new file beside its source; once it is complete and proven, it replaces the source."""
    path, options, began = Path(task.file.source), task.options, time.perf_counter()
    new = path.with_name(f"{REPLACEMENT}{path.name}")
    _end_exchange(task, path)
    if task.is_half_done and (finished := _finished(task, path)) is not None:
        return finished
    _check_settled(path, options)
    with lease_on(path) as lease:
        _check_unwritten(path, lease)
    status, identity = Identity.of(path, with_ctime=True), Identity.of(path)
    if task.expected is not None and identity != task.expected:
        return FileRecord(task.file.target, "changed", task.file.source)
    original = _original(task.file, options)
    if original is not None:
        with _keeping(path, original):
            remove(original.with_name(f"{REPLACEMENT}{original.name}"))  # of a run that was interrupted
    others = _check_replaceable(path, original, options)
    try:
        record = _linked(task, path, new) or _proven(task, path, new, report, room, identity)
        if others and task.is_last_name and original is None:
            names = plural(others, "other hard link")
            note = f"{names} of it, outside this run, keep{'s' * (others == 1)} the old content and its bytes"
            record = replace(record, notes=(*record.notes, note))
        if original is not None and (note := _no_original(task, original, record)):
            record = replace(record, notes=(*record.notes, note))
        if not _keep_attributes(path, new):
            record = replace(record, notes=(*record.notes, _lost_group(path)))
        with lease_on(path) as lease:
            _check_unwritten(path, lease)
            if Identity.of(path, with_ctime=True) != status:
                raise _changed(path)
            about = _completed(replace(record, action="replacing"), task, began)
            write_record(options.folder, about, durable=True)
            if original is not None:
                _mark_originals(Path(options.keep_originals or ""), path)
                _keep_original(path, original, record)
            _take_place(new, path, identity, lease)
    except Exception as error:
        with suppress(OSError):
            remove(new)
        if isinstance(error, TamisError) or not isinstance(error, OSError):
            raise
        raise FileError(f"{path}: cannot be replaced: {disk_text(error)}").at(path=path) from error
    try:
        sync_folder(path.parent)
    except OSError as error:
        note = f"replaced, but a power failure may undo it: its folder cannot be made durable: {disk_text(error)}"
        record = replace(record, notes=(*record.notes, note))
    return record


def _proven(task: FileTask, path: Path, new: Path, report: Progress, room: Room, identity: Identity) -> FileRecord:
    """Make the new file, and return its record."""
    # The name is ours: what an interrupted run left there may be replaced.
    ours = task._replace(options=replace(task.options, repack=replace(task.options.repack, overwrite=True)))
    record = _repacked(ours, path, new, report, room)
    # The source is gone afterwards: only its checksum tells which one it was.
    return _with_earlier(task, new, replace(record, identity=identity, **_checksums(new, path)))


def _linked(task: FileTask, path: Path, new: Path) -> FileRecord | None:
    """Make the new file a further name of that which another name of the old file has got; None if there is none."""
    if not task.other_name:
        return None
    state = State(task.options.folder)
    state.refresh()
    known = state.done.get(task.other_name)
    if known is None or (known.recipe, known.packing) != (task.options.key, task.options.packing_key):
        return None
    other, record = Path(task.options.folder, task.other_name), state.record_at(known)
    try:
        if record is None or not record.source_sha256 or nbytes_of(other) != record.target_nbytes:
            return None
        if sha256_of(path) != record.source_sha256 or sha256_of(other) != record.target_sha256:
            return None
        remove(new)
        os.link(other, new)
    except OSError:  # the other name is gone, or on another file system: a new file is made
        return None
    link_of = record.link_of or record.path
    return replace(record, path=task.file.target, source=task.file.source, link_of=link_of)


def _with_earlier(task: FileTask, new: Path, record: FileRecord) -> FileRecord:
    """Return a record with what earlier runs did to the file."""
    runs = earlier_runs(task.lines, record.source_sha256)
    paths = {str(dataset.get("path")) for run in runs for dataset in run["datasets"]}
    dropped = set[str]()
    if task.options.repack.recipe.drop and paths:
        with task.options.repack.open(new) as store:
            dropped = {path for path in paths if not store.has(path)}
    own = replace(record, recipe=task.options.key, version=VERSION, time=time.time())
    found = with_earlier(own, runs, dropped)
    if missed := first_missed(found):
        folders = sorted(set(_first_originals(task, found)))
        advice = f"in {', '.join(folders)}" if folders else "if there is one, or require less"
        text = f"{task.file.source}: {missed}: repack the first original, {advice}"
        raise FileError(text).at(path=task.file.source)
    return found


def _settle_seconds(path: Path, options: FolderOptions) -> float:
    if options.settle is not None:
        return options.settle
    return SETTLE_SECONDS if can_tell(path) else SETTLE_SECONDS_ON_SERVERS


def _settling(path: Path, options: FolderOptions) -> tuple[float, float]:
    """Return for how many seconds a file must not have changed, and how many of them are left."""
    seconds = _settle_seconds(path, options)
    return seconds, seconds - (time.time() - path.stat().st_mtime) if seconds else 0.0


def _check_settled(path: Path, options: FolderOptions) -> None:
    """Raise FileError for a file that was changed so short a time ago that more may follow."""
    seconds, left = _settling(path, options)
    if left > 0:
        age = seconds - left
        when = f"{max(age, 0):.0f} s ago" if age > -1 else "in the future, by its time"
        text = (
            f"{path}: was changed {when}, and stays: it can be replaced {seconds:g} s after its last change (--settle)"
        )
        raise FileError(text).at(path=path) from OSError(errno.EBUSY, os.strerror(errno.EBUSY))


def _check_unwritten(path: Path, lease: Lease | None) -> None:
    """Raise FileError for a file that another program has open for writing."""
    if lease is None:
        text = f"{path}: another program has it open for writing, and it stays: repack it again when that has ended"
        raise FileError(text).at(path=path) from OSError(errno.EBUSY, os.strerror(errno.EBUSY))


def _changed(path: Path) -> FileError:
    return FileError(f"{path}: changed while it was read, and stays: repack it again").at(path=path)


def _take_place(new: Path, path: Path, identity: Identity, lease: Lease | None) -> None:
    """Give a new file the name of an old one, which gets its name back if somebody wrote to it meanwhile."""
    old = _name_of_old(path)
    try:
        os.link(path, old)
    except OSError:  # a file system without hard links
        os.replace(new, path)
        return
    try:
        os.replace(new, path)
        if Identity.of(old) != identity or (lease is not None and lease.is_awaited):
            os.replace(old, path)
            raise _changed(path)
    finally:
        remove(old)


def _name_of_old(path: Path) -> Path:
    return path.with_name(f"{REPLACED}{path.name}")


def _end_exchange(task: FileTask, path: Path) -> None:
    """Remove the old name that a killed run left to a file; a file that was written since gets its name back."""
    old = _name_of_old(path)
    if not os.path.lexists(old):
        return
    state = State(task.options.folder)
    state.refresh()
    record = state.replacing.get(task.file.target) or state.done.get(task.file.target)
    is_new = record is not None and record.target_nbytes == nbytes_of(path) and not path.samefile(old)
    if is_new and record is not None and Identity.of(old) != record.identity:
        os.replace(old, path)
    elif is_new or path.samefile(old):
        remove(old)


def _finished(task: FileTask, path: Path) -> FileRecord | None:
    """Return the record of a file that an interrupted run has replaced already; None if it has not."""
    state = State(task.options.folder)
    state.refresh()
    known = state.replacing.get(task.file.target)
    if known is None or known.recipe != task.options.key or known.target_nbytes != nbytes_of(path):
        return None
    record = state.record_at(known)
    if record is None or sha256_of(path) != record.target_sha256:
        return None
    return replace(record, action="repacked")


def _check_replaceable(path: Path, original: Path | None, options: FolderOptions) -> int:
    """Return how many other names a file has; raise FileError unless these may keep the old content."""
    if path.is_symlink():
        raise FileError(f"{path}: is a link, which is not replaced: name the file, {os.path.realpath(path)}").at(
            path=path
        )
    owner = path.stat().st_uid
    if not may_act_for(owner):
        raise FileError(
            f"{path}: belongs to another user, to whom the new file could not be given: run as user {owner}"
        ).at(path=path)
    others = path.stat().st_nlink - 1
    for left in (original, _name_of_old(path)):
        if left is not None and os.path.exists(left) and left.samefile(path):  # exists() raises without rights
            others -= 1  # of a run that was interrupted
    if others > 0 and not options.break_hard_links:
        raise FileError(
            f"{path}: has {plural(others, 'other hard link')}, which would keep the old content and its bytes: "
            "replace it all the same with --break-hard-links; names that the same run replaces stay links of one file"
        ).at(path=path)
    return max(others, 0)


def _keep_attributes(source: Path, new: Path) -> bool:
    """Give a new file the owner, mode, times, access list and extended attributes of its source, as far as allowed.

    Returns False if the new file has another group.
    """
    status = source.stat()
    copy_attributes(source, new)
    has_group = take_access(new, source)  # last, because it may end the right to set attributes
    os.utime(new, ns=(status.st_atime_ns, status.st_mtime_ns))
    return has_group


def _no_original(task: FileTask, original: Path, record: FileRecord) -> str:
    """Return a note if what will be kept lost values in earlier runs; empty if not, or if a file is kept already."""
    earlier = record.runs[:-1]
    datasets = [dataset for run in earlier for dataset in run["datasets"]]
    if original.exists() or not any(dataset["largest_error"] or dataset["bound"] for dataset in datasets):
        return ""
    folders = sorted(set(_first_originals(task, record)))
    where = f"the first originals are in {', '.join(folders)}" if folders else "no run is known to have kept the first"
    folder = task.options.keep_originals
    return f"{folder} gets no original, but what an earlier run with a loss made of it: {where}"


def _first_originals(task: FileTask, record: FileRecord) -> Iterator[str]:
    """Yield the folders in which earlier runs kept a file of the size of the first original."""
    for folder in {task.options.folder, *(line.folder for line in task.lines)}:
        path = os.path.relpath(task.file.source, folder)
        for kept in {str(run.get("keep_originals") or "") for run in State(folder).runs()} - {""}:
            with suppress(OSError):
                if nbytes_of(Path(kept, path)) == record.original_nbytes:
                    yield kept


def _mark_originals(folder: Path, path: Path) -> None:
    """Put the file into a folder of originals that keeps later runs from replacing them, before the first one."""
    marker = folder / ORIGINALS_MARKER
    if not os.path.lexists(marker):
        with _keeping(path, marker):
            folder.mkdir(parents=True, exist_ok=True)
            marker.write_text(_ABOUT_ORIGINALS)


_ABOUT_ORIGINALS = (
    "Files here are as they were before tamis repack --replace; while this file is here, it replaces none of them.\n"
)


def _keep_original(path: Path, place: Path, record: FileRecord) -> None:
    """Store the source in the folder of originals: as a second name, or as a copy on another file system.

    What an earlier run made of a file is no original: the one that is kept stays.
    """
    if place.exists() and _is_kept(path, place, record):
        return
    if place.exists() or place.is_symlink():
        text = f"{place}: is the original of another version of {path}, which stays: rename that original, and repeat"
        raise FileError(f"{text} the run").at(path=place)
    new = place.with_name(f"{REPLACEMENT}{place.name}")
    with _keeping(path, place):
        place.parent.mkdir(parents=True, exist_ok=True)
        remove(new)
        try:
            try:
                os.link(path, new)
            except OSError:
                create_empty(new, PRIVATE_FILE)
                shutil.copyfile(path, new)
                _keep_attributes(path, new)
                sync_file(new)
            os.rename(new, place)
            sync_folder(place.parent)
        except OSError:
            remove(new)
            raise


def _is_kept(path: Path, place: Path, record: FileRecord) -> bool:
    """Return whether a place has a file, or the original from which runs made it."""
    runs = record.runs or ({"source_sha256": record.source_sha256},)
    if any(run.get("changed") for run in runs):
        runs = runs[-1:]
    kept = sha256_of(place)
    return any(run.get("source_sha256") == kept for run in runs) or kept == sha256_of(path)


@contextmanager
def _keeping(path: Path, place: Path) -> Iterator[None]:
    """Say which original cannot be kept."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{path}: cannot be kept as {place}: {disk_text(error)}").at(path=place) from error
