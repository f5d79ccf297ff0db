"""What a run of many files made, from the state beside its targets."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tamis.formatting import plural, printable, ratio, ratio_text, size_text
from tamis.jobs.many.listing import MISNAMED, LeftOut
from tamis.jobs.recipes import has_pattern_signs
from tamis.jobs.result import SCHEMA, Fields, Part, Result, Table, json_fields
from tamis.rewrite import Warned
from tamis.safety import nbytes_of
from tamis.stores import OtherFile, needed_text

if TYPE_CHECKING:
    from tamis.jobs.many.state import FileRecord, State

_MOST_FAILURES = 20
_MOST_NOTES = 5
_MOST_NOTES_SHOWN = 20
_MOST_VARIABLES = 3
"""Variables whose largest errors are printed; the JSON has all."""
_NOTHING: Mapping[str, Any] = {}


class Failure(NamedTuple):
    """A file that could not be made."""

    path: str  # Path of the target below the folder
    source: str
    kind: str  # Class of the error
    message: str
    attempts: int
    kept: bool = False  # In `status`: whether the file is done all the same, as an earlier run made it


class DamagedDataset(NamedTuple):
    """A dataset with chunks that cannot be decoded, whose bytes were copied unchanged."""

    path: str  # Path of the target below the folder
    source: str
    dataset: str
    reason: str


class FolderWarning(NamedTuple):
    """A bound that is too large for the values of a dataset."""

    dataset: str  # Path, or a pattern for several ones
    files: int  # Number of files with such a warning
    text: str  # That of the first one
    path: str = ""  # Path of the first target below the folder


class Worst(NamedTuple):
    """The dataset whose largest error is nearest to its bound."""

    path: str  # Path of the target below the folder
    dataset: str
    largest_error: float
    bound: float

    @property
    def share(self) -> float:
        """The largest error relative to its bound."""
        return self.largest_error / self.bound

    def __str__(self) -> str:
        text = f"nearest to its bound: {self.largest_error:.3g}, {100 * self.share:.3g} % of {self.bound:g}"
        return printable(f"{text}, in {self.dataset} of {self.path}")


class LargestError(NamedTuple):
    """The file with the largest error of a variable."""

    dataset: str
    path: str  # Path of the target below the folder
    largest_error: float  # In the units of the variable
    bound: float | None  # In this file; None for a bound that is not absolute


def _errors_of(record: FileRecord) -> Iterator[LargestError]:
    """Yield the largest error of each variable of a file that lost something."""
    for dataset in record.datasets:
        bound, error = dataset.get("bound"), dataset.get("largest_error")
        if isinstance(error, int | float) and error > 0:
            absolute = float(bound) if isinstance(bound, int | float) else None
            yield LargestError(str(dataset.get("path")), record.path, float(error), absolute)


def worst_of(record: FileRecord) -> Worst | None:
    """Return the dataset of a file whose largest error is nearest to its bound; None if none has a bound."""
    facts = ((str(each.get("path")), each.get("largest_error"), each.get("bound")) for each in record.datasets)
    return nearest_to_bounds(record.path, facts)


def nearest_to_bounds(path: str, datasets: Iterable[tuple[str, Any, Any]]) -> Worst | None:
    """Return the dataset of a file whose largest error is nearest to its bound, from names, errors and bounds."""
    worst = None
    for name, error, bound in datasets:
        if isinstance(bound, int | float) and isinstance(error, int | float) and bound > 0:
            own = Worst(path, name, float(error), float(bound))
            worst = own if worst is None or own.share > worst.share else worst
    return worst


@dataclass(frozen=True, slots=True)
class FolderStatus(Result):
    """What was done to the files of a folder, by all runs together.

    Parameters
    ----------
    folder
        Path of the folder of targets.
    files
        Number of files that the last run wants to make.
    done
        How many of them are complete and proven, or copied.
    made
        How many of them this run made; 0 in `status`.
    running
        Number of files that runs are making now.
    failures
        Files that could not be made, with the reason.
    source_nbytes, target_nbytes
        Bytes of the files that are done, before and after.
    worst
        The dataset whose largest error is nearest to its bound, as a fraction of it; None if nothing lossy has a
        bound.
    seconds
        Time that processes took for these files, together.
    again
        Why files were made again, with their number, although an earlier run had made them.
    notes
        Notes for the user.
    unmatched
        Names of the recipe that no file has.
    other_files
        Files that targets lead to by links, virtual datasets or raw files, and that the run did not make, by the path
        of the target below the folder.
    damaged
        Datasets with chunks that cannot be decoded, whose bytes were copied unchanged.
    keep_damaged
        Whether the last run accepts them.
    warnings
        Bounds that are too large for the values, by dataset or pattern.
    witnessed
        Number of files that a witness read as their sources.
    left_out
        Files and folders that the last run left out, with the reason.
    largest_errors
        The largest error of each variable that lost something, and the file that has it, by the paths of variables.
    missing, changed
        In `status`: paths of files that runs made, and that are gone, or have another size or time since; they are not
        done.
    earlier
        In `status`: how many of the files that are done have been made by another recipe than that of the last run.
    """

    folder: str
    files: int
    done: int
    made: int
    running: int
    failures: tuple[Failure, ...]
    source_nbytes: int
    target_nbytes: int
    worst: Worst | None
    seconds: float
    again: Mapping[str, int]
    notes: tuple[str, ...] = ()
    unmatched: tuple[str, ...] = ()
    other_files: Mapping[str, tuple[OtherFile, ...]] = field(default_factory=dict)
    damaged: tuple[DamagedDataset, ...] = ()
    keep_damaged: bool = False
    warnings: tuple[FolderWarning, ...] = ()
    witnessed: int = 0
    left_out: tuple[LeftOut, ...] = ()
    largest_errors: tuple[LargestError, ...] = ()
    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    earlier: int = 0

    @property
    def ok(self) -> bool:
        """Whether all files are done, none has damage that is not accepted, and each name of the recipe is in one."""
        is_damaged = self.damaged and not self.keep_damaged
        return not (self.failures or self.unmatched or is_damaged) and self.done >= self.files

    @property
    def differs(self) -> bool:
        """Whether a file that a run made was changed, or is missing."""
        return bool(self.missing or self.changed)

    @property
    def missed(self) -> bool:
        """Whether a file failed because a bound was missed."""
        return any(failure.kind == "BoundError" for failure in self.failures)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON: see docs/folders.md."""
        named = {"failures": [item._asdict() for item in self.failures], "worst": self.worst and self.worst._asdict()}
        named["other_files"] = _others_dict(self.other_files)
        named["warnings"] = [item._asdict() for item in self.warnings]
        named["damaged"] = [item._asdict() for item in self.damaged]
        for name in ("left_out", "largest_errors"):
            named[name] = [item._asdict() for item in getattr(self, name)]
        return {"schema": SCHEMA, **json_fields(self), **named, "ratio": ratio(self.source_nbytes, self.target_nbytes)}

    def _findings(self) -> Iterator[tuple[str, str]]:
        """Yield a line for each file that was changed, or is missing."""
        for verb, paths in (("missing", self.missing), ("changed since it was made", self.changed)):
            yield from (("violation", f"{printable(path)}: {verb}") for path in paths)

    def _parts(self) -> Iterator[Part]:
        yield from islice(self._findings(), _MOST_FAILURES)
        if (more := len(self.missing) + len(self.changed) - _MOST_FAILURES) > 0:
            yield "note", f"and {more} more: tamis status --json lists all"
        if self.failures:
            rows = [(printable(item.path), str(item.attempts), printable(item.message)) for item in self.failures]
            yield Table([("failed", "tries", "reason"), *rows[:_MOST_FAILURES]], folded=[2], right=[1], name="Failures")
            if len(rows) > _MOST_FAILURES:
                yield "note", f"and {len(rows) - _MOST_FAILURES} more: tamis status --json lists all"
        if self.damaged:
            rows = [(printable(item.path), printable(item.dataset), printable(item.reason)) for item in self.damaged]
            yield Table([("damaged", "dataset", "reason"), *rows[:_MOST_FAILURES]], folded=[2], name="Damaged")
            if len(rows) > _MOST_FAILURES:
                yield "note", f"and {len(rows) - _MOST_FAILURES} more: tamis status --json lists all"
            if not self.keep_damaged:
                yield "note", _ACCEPTS
        for reason, count in self.again.items():
            yield "note", f"{plural(count, 'file')} made again: {printable(reason)}"
        for note in self.notes[:_MOST_NOTES_SHOWN]:
            yield "note", printable(note)
        if len(self.notes) > _MOST_NOTES_SHOWN:
            yield "note", f"and {len(self.notes) - _MOST_NOTES_SHOWN} more notes: tamis status --json has all"
        yield from _others_lines(self.other_files)
        for item in self.warnings:
            first = f"in {item.path}" if item.files < 2 else f"{item.files} files; these are the numbers of {item.path}"
            yield "problem", printable(f"{item.dataset}: {item.text} ({first})")
        for name in self.unmatched:
            yield "problem", printable(f"{name}: no file has a dataset of this name")
        yield from self._error_lines()
        yield ("name" if self.ok else "problem"), self._summary()

    def _error_lines(self) -> Iterator[tuple[str, str]]:
        """Yield the error nearest to its bound, and the largest one of each variable, which may be in another file."""
        worst = self.worst
        if worst is not None:
            yield "", str(worst)
        if len(self.largest_errors) > _MOST_VARIABLES:  # their units differ
            return
        for item in self.largest_errors:
            if worst is None or (item.dataset, item.largest_error) != (worst.dataset, worst.largest_error):
                bound = "" if item.bound is None else f" (bound {item.bound:g})"
                text = f"largest error of {item.dataset}: {item.largest_error:.3g}{bound}"
                yield "", printable(f"{text}, in {item.path}")

    def _summary(self) -> str:
        sizes = f"{size_text(self.source_nbytes)} -> {size_text(self.target_nbytes)}"
        share = ratio_text(ratio(self.source_nbytes, self.target_nbytes))
        text = f"{printable(self.folder)}: {self.done} of {plural(self.files, 'file')} done"
        if self.done:
            text += f", {sizes}" + (f" (ratio {share})" if share else "")
        kept = sum(failure.kept for failure in self.failures)
        last = self.done - self.earlier - kept
        if self.earlier:
            text += f", {last} by the recipe of the last run, {self.earlier} as an earlier recipe made them"
        text += f", {len(self.missing)} missing" if self.missing else ""
        text += f", {len(self.changed)} changed since" if self.changed else ""
        text += f", {len(self.failures)} failed" if self.failures else ""
        text += f", {kept} of them as an earlier run made them" if kept else ""
        text += f", {self.witnessed} read by the witness as their sources" if self.witnessed else ""
        text += _misnamed_text(self.left_out)
        damaged = len({item.path for item in self.damaged})
        text += f", {damaged} with damage, copied as it is" if damaged else ""
        text += f", {self.running} at work" if self.running else ""
        wrong = len(self.missing) + len(self.changed)
        left = self.files - self.done - wrong - (len(self.failures) - kept) - self.running
        return text + (f", {left} left" if left > 0 else "")


FileAction = Literal["repack", "copy", "done", "refuse"]


@dataclass(frozen=True, slots=True)
class FilePreview(Fields):
    """What a run would do with a file: `action` is ``repack``, ``copy``, ``done`` or ``refuse``."""

    path: str  # Path of the target below the folder
    source: str
    action: FileAction
    reason: str  # Why it is made again, or refused; empty for the first time
    nbytes: int  # Of the source
    format: str = ""  # Of the source, by its first bytes; empty if it is not read
    other_files: tuple[OtherFile, ...] = ()  # Files that the target would lead to, and that the run does not make


@dataclass(frozen=True, slots=True)
class FolderPreview(Result):
    """Result of `preview_repack_many`.

    Parameters
    ----------
    folder
        Path of the folder of targets.
    files
        What would be done with each file, by path.
    notes
        Notes for the user.
    warnings
        Bounds that are too large for the values, judging by a sample of some files, by path or pattern.
    left_out
        Files and folders that are left out, with the reason.
    """

    folder: str
    files: tuple[FilePreview, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[Warned, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no file would be refused."""
        return not any(file.action == "refuse" for file in self.files)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON: see docs/folders.md."""
        named = {name: [item._asdict() for item in getattr(self, name)] for name in ("warnings", "left_out")}
        found = {"schema": SCHEMA, "dry_run": True, **json_fields(self), **named}
        for entry, file in zip(found["files"], self.files, strict=True):
            entry["other_files"] = [other._asdict() for other in file.other_files]
        return found

    def _parts(self) -> Iterator[Part]:
        rows = [
            [*map(printable, (file.path, file.action, size_text(file.nbytes), file.format, file.source, file.reason))]
            for file in self.files
        ]
        header = ("file", "action", "bytes", "format", "source", "why")
        yield Table([header, *rows], folded=[4, 5], right=[2], name="Files")
        for note in self.notes:
            yield "note", printable(note)
        yield from _others_lines({file.path: file.other_files for file in self.files if file.other_files})
        for path, warning in self.warnings:
            yield "problem", printable(f"{path}: {warning}")
        left = [file for file in self.files if file.action in ("repack", "copy")]
        refused = sum(file.action == "refuse" for file in self.files)
        size = size_text(sum(file.nbytes for file in left))
        text = f"{printable(self.folder)}: {len(left)} of {plural(len(self.files), 'file')} to be made, {size}"
        misnamed = sum(item.reason == MISNAMED for item in self.left_out)
        text += f", {refused} refused" if refused else ""
        text += f", {misnamed} left out that cannot be what the name says" if misnamed else ""
        yield ("name" if self.ok else "problem"), f"{text}; dry run, nothing was written"


def _others_lines(others: Mapping[str, Collection[OtherFile]]) -> Iterator[tuple[str, str]]:
    """Yield a line for each target that leads to files that the run does not make."""
    for path, files in list(others.items())[:_MOST_NOTES]:
        yield "note", f"{printable(path)}: {needed_text(files)}"
    if len(others) > _MOST_NOTES:
        yield "note", f"and {len(others) - _MOST_NOTES} more lead to files that this run does not make: --json has all"


def _others_dict(others: Mapping[str, Collection[OtherFile]]) -> dict[str, list[dict[str, Any]]]:
    return {path: [other._asdict() for other in files] for path, files in others.items()}


def _witness_notes(witness: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a witness said about variables of a file: see `Witnessed`."""
    for path, text in witness.get("needs", {}).items():
        yield f"{path}: other readers need {text}"
    for item in witness.get("unread", ()):
        yield f"{item['path']}: its values were not compared by the witness: {item['reason']}"


_ACCEPTS = "these files are complete, with the damage of their sources: a run with --keep-damaged accepts that"

_KEPT = ": kept as it is: "
"""In notes about datasets that a pattern leaves as they are."""


class Tally:
    """Sums over records."""

    def __init__(self) -> None:
        self.done = self.witnessed = self.source_nbytes = self.target_nbytes = self.several = 0
        self.seconds = 0.0
        self.worst: Worst | None = None
        self.largest_errors: dict[str, LargestError] = {}  # By the paths of variables
        self.failures: dict[str, Failure] = {}
        self.other_files: dict[str, tuple[OtherFile, ...]] = {}
        self.damaged: list[DamagedDataset] = []
        self.warnings: dict[str, FolderWarning] = {}
        self._unmatched: Counter[str] = Counter()
        self._notes: Counter[str] = Counter()
        self._file_notes: Counter[str] = Counter()
        self._witness_notes: Counter[str] = Counter()
        self._first: dict[str, str] = {}  # Where each note was made first

    def add(self, record: FileRecord) -> None:
        """Add the last record of a file."""
        if record.action == "failed":
            self.fail(record)
            return
        self.done += 1
        self.several += bool(record.runs)
        if not record.link_of:
            self.source_nbytes += record.original_nbytes
            self.target_nbytes += record.target_nbytes
        self.seconds += record.seconds
        own = worst_of(record)
        if own and (self.worst is None or own.share > self.worst.share):
            self.worst = own
        for lost in _errors_of(record):
            largest = self.largest_errors.get(lost.dataset)
            if largest is None or lost.largest_error > largest.largest_error:
                self.largest_errors[lost.dataset] = lost
        for dataset in record.datasets:
            notes = [*map(str, dataset.get("notes", ()))]
            self._notes.update(notes)
            self._note_first(notes, f"{dataset.get('path')} of {record.path}")
        self._unmatched.update(record.unmatched)
        if record.other_files:
            self.other_files[record.path] = tuple(OtherFile(**other) for other in record.other_files)
        of_file = [note for note in record.notes if not note.startswith(record.unmatched)]
        self._file_notes.update(of_file)
        self._note_first(of_file, record.path)
        if record.witness is not None:
            self.witnessed += 1
            of_witness = [*_witness_notes(record.witness)]
            self._witness_notes.update(of_witness)
            self._note_first(of_witness, record.path)
        for item in record.warnings:
            path, text = str(item.get("path")), str(item.get("text"))
            before = self.warnings.get(path, FolderWarning(path, 0, text, record.path))
            self.warnings[path] = before._replace(files=before.files + 1)
        for item in record.damaged:
            found = str(item.get("path")), str(item.get("reason"))
            self.damaged.append(DamagedDataset(record.path, record.source, *found))

    def _note_first(self, notes: Iterable[str], where: str) -> None:
        for note in notes:
            self._first.setdefault(note, where)

    def fail(self, record: FileRecord, *, kept: bool = False) -> None:
        """Add the record of a failure; whether an earlier run made the file, and it is as that left it."""
        error = record.error or {}
        kind, message = str(error.get("kind", "")), str(error.get("message", ""))
        self.failures[record.path] = Failure(record.path, record.source, kind, message, record.attempt, kept)

    @property
    def unmatched(self) -> tuple[str, ...]:
        """Names that no file has."""
        names = (name for name, count in self._unmatched.items() if count >= self.done)
        return tuple(name for name in names if not has_pattern_signs(name))

    def notes(self) -> Iterator[str]:
        """Yield the notes about datasets, files and names; those that say that something is kept come last."""
        if self.several:
            files = plural(self.several, "file")
            yield f"{files} replaced by several runs: bounds and errors are sums, and bytes before those of the first"
        kept = Counter({text: count for text, count in self._file_notes.items() if _KEPT in text})
        for notes, noun in (
            (self._file_notes - kept, "file"),
            (self._witness_notes, "file"),
            (self._notes, "dataset"),
            (kept, "file"),
        ):
            for text, count in notes.most_common():
                where = "in" if count == 1 else "first in"
                yield f"{plural(count, noun)}: {text} ({where} {self._first[text]})"
        for name, count in self._unmatched.items():
            if name not in self.unmatched:
                where = "all files" if count >= self.done else f"{count} of {plural(self.done, 'file')}"
                yield f"{name}: matches no dataset, in {where}"


def _misnamed_text(left_out: Iterable[LeftOut]) -> str:
    """Return the end of a summary that counts files whose names say that they are data; empty without any."""
    count = sum(item.reason == MISNAMED for item in left_out)
    return f", {count} left out that cannot be what the name says" if count else ""


_Fate = Literal["missing", "changed"]


def _fate_of(folder: str, record: FileRecord) -> _Fate | None:
    """Return what happened to a file since a run made it; None if it has the recorded size.

    A file that was replaced has the time of its source, too; when another target was written last is not recorded.
    """
    target = os.path.abspath(os.path.join(folder, record.path))
    try:
        if nbytes_of(target) != record.target_nbytes:
            return "changed"
        is_touched = record.source == target and os.stat(target).st_mtime_ns != record.identity.mtime_ns
    except FileNotFoundError:
        return "missing"
    return "changed" if is_touched else None


def _as_made(state: State, folder: str, path: str) -> FileRecord | None:
    """Return the record of the run that made a file, if the file has the size that it recorded."""
    known = state.done.get(path)
    with suppress(OSError):
        if known is not None and nbytes_of(Path(folder, path)) == known.target_nbytes:
            return state.record_at(known)
    return None


def status_of(
    state: State,
    folder: str,
    files: int | Collection[str],
    *,
    failed: Mapping[str, FileRecord] = _NOTHING,
    key: str | None = None,
    last_key: str | None = None,
    made: int = 0,
    again: Mapping[str, int] = _NOTHING,
    notes: Iterable[str] = (),
    left_out: Iterable[LeftOut] = (),
    keep_damaged: bool = False,
) -> FolderStatus:
    """Return the status of a folder from its state, and from facts about a run.

    `files` are the paths of the files that count, or, if all do, the number that is to be made. Records of other
    recipes than that of `key` do not count. Without a key, all do, but for failures of other recipes than that of the
    last run, `last_key`, if the files are as an earlier run made them; and files that are gone or were changed are told
    from those that are done.
    """
    wrong: dict[_Fate, list[str]] = {"missing": [], "changed": []}
    earlier = 0
    tally, paths = Tally(), None if isinstance(files, int) else files
    for record in state.records(paths):
        if record.path in failed:
            continue
        done = _as_made(state, folder, record.path) if record.action in ("failed", "replacing") else None
        if done is not None and (key is None or done.recipe == key):
            tally.add(done)
            if record.action == "failed" and key is None and record.recipe == last_key:
                tally.fail(record, kept=True)
            else:
                earlier += _is_of_another(done, last_key)
            continue
        if key is None and record.action in ("repacked", "copied"):
            if (fate := _fate_of(folder, record)) is not None:
                wrong[fate].append(record.path)
                continue
            earlier += _is_of_another(record, last_key)
        is_other = key is not None and record.action == "repacked" and record.recipe != key
        is_gone = paths is None and record.action == "failed" and not os.path.lexists(record.source)
        if record.action != "replacing" and not (is_other or is_gone):
            tally.add(record)
    for record in failed.values():
        tally.add(record)
    count = max(files, tally.done + sum(map(len, wrong.values()))) if isinstance(files, int) else len(files)
    all_notes = [*notes, *tally.notes()]
    if state.damaged:
        all_notes.append(f"{plural(state.damaged, 'line')} of state cannot be read: their files are made again")
    return FolderStatus(
        folder,
        count,
        tally.done,
        made,
        state.claimed(),
        tuple(tally.failures.values()),
        tally.source_nbytes,
        tally.target_nbytes,
        tally.worst,
        round(tally.seconds, 3),
        again,
        tuple(all_notes),
        tally.unmatched,
        tally.other_files,
        tuple(tally.damaged),
        keep_damaged,
        tuple(tally.warnings.values()),
        tally.witnessed,
        tuple(left_out),
        tuple(tally.largest_errors[path] for path in sorted(tally.largest_errors)),
        tuple(wrong["missing"]),
        tuple(wrong["changed"]),
        earlier,
    )


def _is_of_another(record: FileRecord, last_key: str | None) -> bool:
    """Return whether a file was repacked by another recipe than that of the last run."""
    return last_key is not None and record.action == "repacked" and record.recipe != last_key
