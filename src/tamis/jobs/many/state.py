"""The state of a run, beside its targets: a line of JSON for each file that was made or failed.

Each process appends to a file of its own in ``.tamis``; readers take all of them together, and the last line about a
path counts. A line that a killed process left incomplete is ignored.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, Self, TextIO

from tamis.access import NEW_FILE
from tamis.errors import FileError
from tamis.forks import begin_in_each_process
from tamis.jobs.many.listing import STATE_FOLDER
from tamis.jobs.result import json_text
from tamis.safety import Identity, disk_text
from tamis.stores import Places, TakenIn
from tamis.system import lock_at_once, may_act_for, open_file, sync_file, write_all

SCHEMA = 1
_STATE, _RUN, _TARGETS, _ENDING = "state-", "run-", "targets-", ".jsonl"
_CLAIMS, _WANTED = "claims", "files.json"
_TOKEN_NBYTES = 4

Action = Literal["repacked", "copied", "replacing", "failed", "claimed", "changed"]
"""What happened to a file. A line is written for the first four: ``replacing`` says that a complete target is about to
take the place of its source. ``claimed``: another run is making it. ``changed``: it changed since it was listed."""


_UNKNOWN = Identity(0, 0, 0)


@dataclass(frozen=True, slots=True)
class FileRecord:
    """What was done to a file: a line of state."""

    path: str  # Path of the target below the folder
    action: Action
    source: str = ""  # Absolute path
    identity: Identity = _UNKNOWN  # Of the source before
    source_sha256: str = ""  # Empty unless it was requested, or the target took the place of the source
    recipe: str = ""  # Key of the recipe: see `FolderOptions.key`
    version: str = ""  # Version of tamis
    target_nbytes: int = 0
    target_sha256: str = ""
    seconds: float = 0.0
    attempt: int = 1
    serial: int = 0  # Grows with each record about the path: clocks of machines differ
    time: float = 0.0  # Seconds since 1970 at the end
    host: str = ""
    error: Mapping[str, Any] | None = None  # Kind and message
    datasets: tuple[Mapping[str, Any], ...] = ()  # What was done to each dataset
    notes: tuple[str, ...] = ()
    packing: str = ""  # Key of the ranges of packed variables; empty if each file has its own
    unmatched: tuple[str, ...] = ()  # Names and patterns of the recipe that match no dataset
    # Files that the target leads to, and that the run does not make: see `OtherFile`
    other_files: tuple[Mapping[str, Any], ...] = ()
    # Files whose objects or values the target has itself: see `TakenIn`
    taken_in: tuple[Mapping[str, Any], ...] = ()
    damaged: tuple[Mapping[str, Any], ...] = ()  # Path and reason of datasets with chunks that cannot be decoded
    warnings: tuple[Mapping[str, Any], ...] = ()  # Path and text of bounds that are too large for the values
    witness: Mapping[str, Any] | None = None  # What a witness looked at: see `Witnessed`; None without one
    # What each run did to a file that several ones replaced, this one last: bounds and errors of `datasets` are against
    # the source of the first one. Empty if only this one did
    runs: tuple[Mapping[str, Any], ...] = ()

    # Path of the target that has the same new file: another name of a file with several (hard links)
    link_of: str = ""

    @property
    def original_nbytes(self) -> int:
        """Bytes of the source, before the first run that replaced it."""
        return int(self.runs[0].get("source_nbytes", 0)) if self.runs else self.identity.nbytes

    @property
    def original_sha256(self) -> str:
        """SHA-256 of the source, before the first run that replaced it; empty if it is not known."""
        return str(self.runs[0].get("source_sha256", "")) if self.runs else self.source_sha256

    def is_valid(self) -> bool:
        """Return whether all fields have their types; a line of a file may have any."""
        texts = (
            self.path,
            self.action,
            self.source,
            self.source_sha256,
            self.recipe,
            self.packing,
            self.version,
            self.target_sha256,
            self.link_of,
        )
        numbers = *self.identity, self.target_nbytes, self.attempt, self.serial, self.seconds, self.time
        return (
            all(isinstance(text, str) for text in (*texts, *self.notes, *self.unmatched))
            and all(isinstance(number, int | float) for number in numbers)
            and all(isinstance(item or {}, dict) for item in (self.error, self.witness))
            and all(
                isinstance(item, dict)
                for items in (self.datasets, self.other_files, self.taken_in, self.damaged, self.warnings, self.runs)
                for item in items
            )
        )

    def to_line(self) -> bytes:
        """Return the line."""
        return json_text({"schema": SCHEMA, **asdict(self)}).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Self | None:
        """Return the record of a line; None if it is damaged or of another version."""
        try:
            entries = json.loads(line)
            if entries.pop("schema") != SCHEMA:
                return None
            entries["identity"] = Identity(*entries["identity"])
            record = cls(**entries | {name: tuple(entries[name]) for name in _TUPLES if name in entries})
            return record if record.is_valid() else None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None


_TUPLES = ("datasets", "notes", "unmatched", "other_files", "taken_in", "damaged", "warnings", "runs")


class Known(NamedTuple):
    """What readers keep in memory of the last line about a path."""

    action: str
    identity: Identity
    recipe: str
    packing: str
    target_nbytes: int
    serial: int
    time: float
    # Where the line is
    file: str
    offset: int
    nbytes: int
    other_files: tuple[str, ...] = ()  # Paths of those that the target leads to
    taken_in: tuple[TakenIn, ...] = ()  # Those whose objects or values it has itself
    has_witness: bool = False


def has_record(folder: str | os.PathLike[str]) -> bool:
    """Return whether runs recorded files in a folder, as far as this user can tell."""
    return os.path.isdir(Path(folder, STATE_FOLDER))


class State:
    """All lines of state in a folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder, STATE_FOLDER)
        self.known: dict[str, Known] = {}
        self.done: dict[str, Known] = {}  # Last lines that say that a file is done, whatever failed later
        # Last lines that say that a file is about to be replaced, if none says that it is done
        self.replacing: dict[str, Known] = {}
        self.damaged = 0  # Number of lines that cannot be read
        self._ends: dict[str, int] = {}

    def refresh(self) -> None:
        """Read what was written since the last call."""
        try:
            names = sorted(name for name in os.listdir(self.folder) if fnmatchcase(name, f"{_STATE}*{_ENDING}"))
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise FileError(f"{self.folder}: cannot be read: {disk_text(error)}").at(path=self.folder) from error
        for name in names:
            self._read(name)

    def _read(self, name: str) -> None:
        offset = self._ends.get(name, 0)
        try:
            opened = (self.folder / name).open("rb")
        except IsADirectoryError:
            return
        except OSError as error:
            raise FileError(f"{self.folder / name}: cannot be read: {disk_text(error)}").at(path=self.folder) from error
        with opened as stream:
            stream.seek(offset)
            for line in stream:
                if not line.endswith(b"\n"):
                    break
                record = FileRecord.from_line(line)
                if record is None:
                    self.damaged += 1
                else:
                    self._take(record, (name, offset, len(line)))
                offset += len(line)
        self._ends[name] = offset

    def _take(self, record: FileRecord, place: tuple[str, int, int]) -> None:
        sizes = record.identity, record.recipe, record.packing, record.target_nbytes
        others = tuple(dict.fromkeys(str(other.get("file")) for other in record.other_files))
        taken_in = tuple(map(TakenIn.from_dict, record.taken_in))
        has_witness = record.witness is not None
        known = Known(record.action, *sizes, record.serial, record.time, *place, others, taken_in, has_witness)
        done = self.done if record.action in ("repacked", "copied") else {}
        replacing = self.replacing if record.action == "replacing" else {}
        for latest in (self.known, done, replacing):
            before = latest.get(record.path)
            if before is None or (before.serial, before.time) <= (known.serial, known.time):
                latest[record.path] = known
        last, begun = self.done.get(record.path), self.replacing.get(record.path)
        if last is not None and begun is not None and begun.serial <= last.serial:
            del self.replacing[record.path]

    def lines(self, paths: Iterable[str], *, done: bool = False) -> Iterator[bytes]:
        """Yield the last line about each path, or the last one that says that it is done."""
        with ExitStack() as stack:
            streams: dict[str, BinaryIO] = {}
            for known in map((self.done if done else self.known).__getitem__, paths):
                if (stream := streams.get(known.file)) is None:
                    stream = streams[known.file] = stack.enter_context((self.folder / known.file).open("rb"))
                stream.seek(known.offset)
                yield stream.read(known.nbytes)

    def records(self, paths: Collection[str] | None = None) -> Iterator[FileRecord]:
        """Yield the last record about each path, or each of some, in the order of paths."""
        for line in self.lines(sorted(path for path in self.known if paths is None or path in paths)):
            if (record := FileRecord.from_line(line)) is not None:
                yield record

    def record(self, path: str) -> FileRecord:
        """Return the last record about a path."""
        return next(self.records({path}))

    def last(self, path: str) -> Known | None:
        """Return the last line about a path; that which says that it is done, whatever failed later."""
        known = self.known.get(path)
        return self.done.get(path, known) if known is not None and known.action == "failed" else known

    def record_at(self, known: Known) -> FileRecord | None:
        """Return the record of a line; None if it cannot be read any more."""
        with (self.folder / known.file).open("rb") as stream:
            stream.seek(known.offset)
            return FileRecord.from_line(stream.read(known.nbytes))

    def runs(self) -> list[dict[str, Any]]:
        """Return the descriptions of all runs, by time."""
        runs = []
        with suppress(FileNotFoundError):
            for path in self.folder.glob(f"{_RUN}*.json"):
                with suppress(OSError, ValueError):
                    runs.append(json.loads(path.read_bytes()))
        return sorted((run for run in runs if isinstance(run, dict)), key=lambda run: run.get("time", 0))

    def unread(self) -> dict[str, tuple[str, str]]:
        """Return source and message of each file that a run could not even list, by target.

        What is known of it since, or that its source is gone, counts more.
        """
        found = dict[str, tuple[str, str]]()
        for run in self.runs():
            for path, (source, text) in run.get("unread", {}).items():
                known = self.known.get(path)
                if (known is None or known.time <= run.get("time", 0)) and os.path.lexists(source):
                    found[path] = str(source), str(text)
        return found

    def wanted(self) -> dict[str, str]:
        """Return the source of each file that a run wanted to make, by its target; empty if none wrote that down."""
        try:
            found = json.loads((self.folder / _WANTED).read_bytes())
            return {str(target): str(source) for target, source in found.items()}
        except (OSError, ValueError, AttributeError):
            return {}

    def claimed(self) -> int:
        """Return how many files runs are making now; remove the claims of processes that have ended."""
        count = 0
        with suppress(FileNotFoundError):
            for path in (self.folder / _CLAIMS).iterdir():
                with suppress(OSError), path.open("rb") as stream:
                    is_locked = lock_at_once(stream.fileno())
                    count += is_locked is False
                    if is_locked and _has_name(stream.fileno(), path):  # otherwise another process claimed it anew
                        path.unlink()
        return count


class _Writers:
    """The state files of this process, by folder."""

    def __init__(self) -> None:
        begin_in_each_process(self._begin)

    def _begin(self) -> None:
        self._names: dict[tuple[Path, str], str] = {}  # each process has files of its own
        self._lock = threading.Lock()

    def append(self, folder: Path, line: bytes, *, durable: bool, kind: str = _STATE) -> None:
        with self._lock:
            path = folder / self._names.setdefault((folder, kind), f"{kind}{_unique_name()}{_ENDING}")
            handle = open_file(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, NEW_FILE)
            try:
                write_all(handle, line)
            except OSError:
                del self._names[folder, kind]  # a torn line ends the file: the next one begins another
                raise
            finally:
                os.close(handle)
            if durable:
                sync_file(path)


_WRITERS = _Writers()


def _unique_name() -> str:
    """Return a name that no other process has: host, process, and a token."""
    host = "".join(letter if letter.isalnum() else "-" for letter in socket.gethostname())[:64]
    return f"{host}-{os.getpid()}-{os.urandom(_TOKEN_NBYTES).hex()}"


def write_record(folder: str | os.PathLike[str], record: FileRecord, *, durable: bool = False) -> None:
    """Append a record to the state of a folder; a durable one survives a power failure."""
    state = Path(folder, STATE_FOLDER)
    try:
        _WRITERS.append(state, record.to_line(), durable=durable)
    except OSError as error:
        raise FileError(f"{state}: the state cannot be written: {disk_text(error)}").at(path=state) from error


def append_line(folder: str | os.PathLike[str], line: bytes, *, kind: str) -> None:
    """Append a line to a file of this process beside the state of a folder; the name of the file begins with a word."""
    _WRITERS.append(Path(folder, STATE_FOLDER), line, durable=False, kind=kind)


def begin_run(folder: str | os.PathLike[str], description: Mapping[str, Any]) -> BinaryIO:
    """Create the folder of state, and describe a run there; the returned file is locked until it is closed.

    Raises
    ------
    FileError
        If the state cannot be written, or another run with another recipe is at work.
    """
    state = Path(folder, STATE_FOLDER)
    facts = {"schema": SCHEMA, "time": time.time(), "host": socket.gethostname(), "process": os.getpid()}
    try:
        (state / _CLAIMS).mkdir(parents=True, exist_ok=True)
        path = state / f"{_RUN}{_unique_name()}.json"
        stream = path.open("w+b")
        lock_at_once(stream.fileno())
        stream.write((json_text({**facts, **description}, indent=2) + "\n").encode())
        stream.flush()
        for other in state.glob(f"{_RUN}*.json"):
            before, is_at_work = _description_of(other)
            if other != path and is_at_work and before.get("key") != description["key"]:
                path.unlink()
                raise FileError(
                    f"{folder}: a run with other filters, chunks or options is at work: wait until it has ended"
                ).at(path=folder)
            is_same = all(before.get(name) == description.get(name) for name in _LASTING)
            if is_at_work is False and is_same and before.get("files", 0) <= description.get("files", 0):
                with suppress(PermissionError):  # of another user, in a folder where everybody keeps his own
                    other.unlink(missing_ok=True)  # the new one says the same
            if is_at_work is False:
                with suppress(PermissionError):
                    _targets_of(other).unlink(missing_ok=True)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        text = f"{state}: the state cannot be written: {disk_text(error)}{_whose(state)}"
        raise FileError(text).at(path=state) from error
    return stream


@contextmanager
def new_content(path: Path) -> Iterator[TextIO]:
    """Write a file of the folder, which has its old content, or is absent, until the block ends without an error.

    Unlike the targets of `tamis.safety.whole_file`, it may be replaced by each user of the folder, and is as open to
    others as a new file.
    """
    new = path.with_name(f"{path.name}.{_unique_name()}.new")
    try:
        with new.open("w", encoding="ascii") as stream:
            yield stream
        os.replace(new, path)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise FileError(f"{path}: cannot be written: {disk_text(error)}").at(path=path) from error


@contextmanager
def listed_targets(run: BinaryIO, targets: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Write a table from paths of sources to paths of targets beside a run's description, until the block ends.

    Yields the path of that file. The processes of the run read it if a file of theirs leads to others.
    """
    path, table = _targets_of(Path(run.name)), dict(targets)
    try:
        path.write_bytes(json_text(table).encode())
        _want(path.parent, table)
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {disk_text(error)}").at(path=path) from error
    try:
        yield str(path)
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _want(state: Path, targets: Mapping[str, str]) -> None:
    """Add files to those that runs want to make, so that the status of the folder has them, too."""
    try:
        before = json.loads((state / _WANTED).read_bytes())
    except (OSError, ValueError):
        before = {}
    after = before | {os.path.relpath(target, state.parent): source for source, target in targets.items()}
    if after != before:
        with new_content(state / _WANTED) as stream:
            stream.write(json_text(after))


def _targets_of(run: Path) -> Path:
    return run.with_name(f"{_TARGETS}{run.name.removeprefix(_RUN)}")


@lru_cache(maxsize=1)
def places_in(path: str) -> Places:
    """Return where the files of a run go, from the file of `listed_targets`."""
    try:
        return Places.of_files(json.loads(Path(path).read_bytes()).items())
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {disk_text(error)}").at(path=path) from error


def _whose(path: Path) -> str:
    """Return whose folder a path is in, if it is another user's; root is none, who may write everywhere."""
    folder = next(folder for folder in (path, *path.parents) if os.path.exists(folder))
    owner = folder.stat().st_uid
    return "" if may_act_for(owner) else f": {folder} belongs to user {owner}"


_LASTING = ("key", "recipe", "replace", "keep_originals")
"""What descriptions of runs are kept for."""


def _description_of(path: Path) -> tuple[Mapping[str, Any], bool | None]:
    """Return the description of a run, and whether it is at work; None if the file system cannot tell."""
    with suppress(OSError, ValueError), path.open("rb") as stream:
        description = json.loads(stream.read())
        is_locked = lock_at_once(stream.fileno(), is_shared=True)
        return description, None if is_locked is None else not is_locked
    return {}, None


@contextmanager
def claim(folder: str | os.PathLike[str], path: str) -> Iterator[bool]:
    """Claim a path for this process until the block ends; yield False if another process has it.

    The claim is a lock, which ends with the process. A file system without locks claims nothing: then two runs may make
    the same file, each under its own temporary name.
    """
    place = Path(folder, STATE_FOLDER, _CLAIMS, hashlib.sha256(os.fsencode(path)).hexdigest()[:32])
    while True:
        handle = _open_claim(place)
        try:
            is_locked = lock_at_once(handle)
            if not is_locked:
                yield is_locked is None
                return
            if not _has_name(handle, place):  # the owner that has just ended removed it
                continue
            try:
                yield True
            finally:
                with suppress(OSError):
                    place.unlink()
            return
        finally:
            os.close(handle)


def _open_claim(place: Path) -> int:
    """Open the file of a claim; one that an ended process of another user left can be locked without being written."""
    try:
        return open_file(place, os.O_RDWR | os.O_CREAT, NEW_FILE)
    except PermissionError:
        try:
            return open_file(place)
        except OSError as error:
            text = f"the claim of another run cannot be opened: {disk_text(error)}: remove it if no run is at work"
            raise FileError(f"{place}: {text}").at(path=place) from error


def _has_name(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except OSError:
        return False
