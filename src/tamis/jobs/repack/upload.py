"""A target that is elsewhere: made here, proven, and copied to its store; what makes it look whole goes last."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tamis.access import check_own, make_private_folder
from tamis.arrays.threads import ordered_map
from tamis.errors import FileError
from tamis.formatting import plural
from tamis.jobs.progress import Progress, Step
from tamis.jobs.repack.result import RepackResult
from tamis.remote.address import Address
from tamis.remote.file import AT_ONCE, can_list, list_below, size_of
from tamis.remote.object_store import Objects
from tamis.remote.objects import failure, objects_of
from tamis.safety.disk import Identity, nbytes_of, size_and_checksum
from tamis.safety.library_errors import disk_text
from tamis.safety.transaction import remove
from tamis.system.users import user_id

if TYPE_CHECKING:
    from tamis.jobs.repack.options import RepackOptions

STAGING = "TAMIS_STAGING"
"""Environment variable with the folder in which targets are made before they are copied."""

_ROOT_METADATA = (".zattrs", ".zgroup", ".zmetadata", "zarr.json")
"""Files that are copied after all others, in this order: without them there is no store."""

_SENT, _MADE = "sent.json", "made.json"

_REMOVED = "removed"

_MOST_DAYS = 14
"""Age of targets of interrupted runs that nobody continued: then they are removed."""


def repack_to_address(
    source: Path | Address,
    target: Address,
    options: RepackOptions,
    report: Progress,
    run: Callable[[Path, RepackOptions], RepackResult],
) -> RepackResult:
    """Make a target by `run` in a folder on this machine, and copy it to its store.

    With ``resume``, a run continues the target here, copies what is not there yet, and keeps a record, so that the same
    call later leaves a complete target alone.
    """
    began = time.perf_counter()
    folder = _staging_of(target)
    upload = _Upload.to(target)
    removed = folder / _REMOVED
    remove(removed if options.resume else folder)
    _sweep(folder)
    if note := made_already(source, target, options):
        return RepackResult(
            source=str(source),
            target=str(target),
            source_nbytes=nbytes_of(source),
            target_nbytes=nbytes_of(target),
            datasets=(),
            kept=(),
            seconds=time.perf_counter() - began,
            notes=(note,),
            done_already=True,
        )
    upload.check(options)
    try:
        make_private_folder(folder)
    except OSError as error:
        raise FileError(f"{folder}: cannot be made: {disk_text(error)}: set {STAGING}").at(path=folder) from error
    staged = staged_place(target)
    with ExitStack() as stack:
        if not options.resume:
            stack.callback(remove, folder)
        try:
            result = run(staged, replace(options, overwrite=True))
            upload.send(staged, report)
        except FileError as error:
            kept = f"what was made is in {folder}: repeat the call"
            error.args = (f"{error}; {kept if options.resume else 'resume=True keeps what was made'}",)
            raise
        if options.resume:
            staged.replace(removed)  # a part of a target would be in the way of the next run
            upload.keep(_origin_of(source, options))
            remove(removed)
    return replace(result, target=str(target))


def made_already(source: Path | Address, target: Address, options: RepackOptions) -> str:
    """Return a note that an earlier run made the target, which a run with `resume` leaves alone; empty if none did."""
    if not options.resume or not _Upload.to(target).is_complete(_origin_of(source, options)):
        return ""
    return f"{target}: made from {source} by the same recipe, and both are unchanged since"


def _origin_of(source: Path | Address, options: RepackOptions) -> dict[str, Any]:
    """Return what a target is made from, for the record of a run."""
    return {"source": [*Identity.of(source)], "recipe": options.target_key}


def staged_place(target: Address) -> Path:
    """Return the path on this machine at which a target is made before it is copied."""
    return _staging_of(target) / (target.name or "target")


def _staging_of(target: Address) -> Path:
    """Return the folder for a target, the same in each run."""
    root = os.environ.get(STAGING)
    if not root:
        root = os.path.join(tempfile.gettempdir(), f"tamis-{user_id()}")
        check_own(Path(root), f"remove it, or set {STAGING}")
    return Path(root, hashlib.sha256(target.url.partition("?")[0].encode()).hexdigest()[:16])


def _sweep(own: Path) -> None:
    """Remove what old interrupted runs for other targets left here; their records, which are small, stay."""
    oldest = time.time() - _MOST_DAYS * 86400
    for path in own.parent.glob(f"{'[0-9a-f]' * 16}/*"):
        with suppress(OSError):
            if path.parent != own and path.suffix != ".json" and _newest(path.parent) < oldest:
                remove(path)


def _newest(folder: Path) -> float:
    """Return when something in a folder was changed last, to the depth of the records and targets."""
    return max(path.stat().st_mtime for path in (folder, *folder.iterdir()))


class _Upload:
    """Files that are copied to a store, and a list of those that are there, for a run that continues."""

    def __init__(self, target: Address, objects: Objects, key: str, journal: Path) -> None:
        self.target, self._objects, self._key, self._journal = target, objects, key, journal
        self._earlier: Mapping[str, int] = {}

    @classmethod
    def to(cls, target: Address) -> Self:
        """Return the copy to a target, with the list that its runs keep."""
        objects, key = objects_of(target)
        return cls(target, objects, key.rstrip("/"), _staging_of(target) / _SENT)

    def is_complete(self, made: Mapping[str, Any]) -> bool:
        """Return whether an earlier run made the target from the same source by the same recipe."""
        done = self._read(self._journal.with_name(_MADE))
        return bool(done) and done == {**made, "objects": self._entries()}

    def keep(self, made: Mapping[str, Any]) -> None:
        """Record what the target was made from."""
        self._write(self._journal.with_name(_MADE), {**made, "objects": self._entries()})

    def check(self, options: RepackOptions) -> None:
        """Raise FileError if there is another target already, and the run may not replace it."""
        self._earlier = self._entries()
        if options.overwrite or not self._earlier or (options.resume and self._journal.exists()):
            return
        raise FileError(f"{self.target}: File exists: choose another name, or replace it: overwrite=True").at(
            path=self.target
        )

    def send(self, staged: Path, report: Progress) -> None:
        """Copy all files, metadata of the root last; remove what an earlier target had besides."""
        files = dict(_files_of(staged))
        marks = {name: list(size_and_checksum(file)) for name, file in files.items()}
        sent = {name: mark for name, mark in self._read(self._journal).items() if marks.get(name) == mark}
        sent = {name: mark for name, mark in sent.items() if self._earlier.get(name) == mark[0]}
        self._write(self._journal, sent)  # from now on, what is at the target is of this run
        last = [name for name in _ROOT_METADATA if name in files]
        first = [name for name in files if name not in last and name not in sent]
        if first:
            for name in reversed(last):
                if name in self._earlier:  # until the new chunks are there, it is no store
                    self._call(self._objects.delete, name)
        step = Step(f"copying to {self.target}", 1, 1)
        count = len(first) + len(last)
        report(step, 0, count)
        with closing(ordered_map(lambda name: self._put(name, files[name]), first, AT_ONCE)) as results:
            for done, name in enumerate(results, 1):
                sent[name] = marks[name]
                if not done % AT_ONCE:
                    self._write(self._journal, sent)
                report(step, done, count)
        for done, name in enumerate(last, len(first) + 1):
            self._put(name, files[name])
            report(step, done, count)
        self._check_sizes({name: mark[0] for name, mark in marks.items()})

    def _check_sizes(self, expected: Mapping[str, int]) -> None:
        """Compare what the store has with what was sent, and remove the rest of an earlier target."""
        for name in sorted(self._earlier.keys() - expected.keys()):
            self._call(self._objects.delete, name)
        found = self._entries() if can_list(self.target) else expected
        if wrong := [name for name, size in expected.items() if found.get(name) != size]:
            raise FileError(
                f"{self.target}: expected {plural(len(expected), 'object')} as sent, found {wrong[0] or 'it'} of"
                f" {found.get(wrong[0])} bytes instead of {expected[wrong[0]]}: run it again"
            ).at(path=self.target)

    def _put(self, name: str, file: Path) -> str:
        self._call(self._objects.put, name, file)
        return name

    def _call(self, function: Callable[..., object], name: str, *arguments: object) -> None:
        try:
            function(f"{self._key}/{name}" if name else self._key, *arguments)
        except Exception as error:  # obstore and fsspec raise many kinds
            if isinstance(error, FileNotFoundError) and not arguments:
                return  # it is gone already
            raise failure(error, self.target, "written") from None

    def _entries(self) -> dict[str, int]:
        """Return the sizes of the objects at the target, by their names below it; that of a file has none."""
        found = {entry.key: entry.size for entry in list_below(self.target)} if can_list(self.target) else {}
        if not found and (size := size_of(self.target)) is not None:
            return {"": size}
        return found

    @staticmethod
    def _read(path: Path) -> dict[str, Any]:
        """Return the object in a JSON file; empty if there is none, or it is damaged."""
        try:
            found = json.loads(path.read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    @staticmethod
    def _write(path: Path, content: Mapping[str, Any]) -> None:
        new = path.with_suffix(".new")
        try:
            new.write_text(json.dumps(content))
            new.replace(path)
        except OSError as error:
            raise FileError(f"{path}: cannot be written: {disk_text(error)}").at(path=path) from error


def _files_of(staged: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files of a target with their names below it; a file has none."""
    if staged.is_file():
        yield "", staged
        return
    for folder, _, names in os.walk(staged):
        for name in names:
            file = Path(folder, name)
            yield file.relative_to(staged).as_posix(), file
