"""Compare the files of two folders."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from tamis.arguments import CALLBACK, FLAG, NAMES, PATH
from tamis.arrays import checked_threads
from tamis.errors import FileError, TamisError
from tamis.formatting import plural, printable
from tamis.jobs.many.listing import Choice, left_out_notes, list_files, nothing_in
from tamis.jobs.many.losses import Recorded, Records, recorded_of
from tamis.jobs.many.result import Worst, nearest_to_bounds
from tamis.jobs.progress import Progress, Step
from tamis.jobs.result import SCHEMA, Fields, Part, Result, Table, json_fields
from tamis.jobs.verify import COARSE, Bounds, asks_recorded, checked_bounds, run_verify
from tamis.safety import disk_text

if TYPE_CHECKING:
    from tamis.jobs.verify import Verification

_MOST_ROWS, _MOST_NAMED = 20, 3

Verdict = Literal["equal", "within-bound", "different", "failed", "missing"]


@dataclass(frozen=True, slots=True)
class FileVerdict(Fields):
    """A file of the first folder, compared with that in the second one."""

    path: str  # Path below the folders
    verdict: Verdict
    text: str  # What differs, or why it cannot be compared; empty if nothing does
    largest_error: float  # Of all datasets


@dataclass(frozen=True, slots=True)
class FolderVerification(Result):
    """Result of `verify_many`.

    Parameters
    ----------
    source, target
        Paths of the folders.
    files
        The verdict on each file of the first folder, by path.
    notes
        Notes about files that were not compared.
    extra
        Paths of files that only the second folder has.
    worst
        The dataset whose largest error is nearest to its bound; None without absolute bounds.
    changed
        With recorded bounds: paths of files of the second folder that are not as its record says.
    """

    source: str
    target: str
    files: tuple[FileVerdict, ...]
    notes: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    worst: Worst | None = None
    changed: tuple[str, ...] = ()

    @property
    def wrong(self) -> tuple[FileVerdict, ...]:
        """The files that differ, are missing, or cannot be compared."""
        return tuple(file for file in self.files if file.verdict in ("different", "failed", "missing"))

    @property
    def ok(self) -> bool:
        """Whether every file is there, and equal or within its bounds."""
        return not self.wrong

    @property
    def differs(self) -> bool:
        """Whether a file differs by more than its bounds, or is missing."""
        return any(file.verdict in ("different", "missing") for file in self.files)

    @property
    def failed(self) -> bool:
        """Whether a file could not be compared."""
        return any(file.verdict == "failed" for file in self.files)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON: see docs/folders.md."""
        return {"schema": SCHEMA, "ok": self.ok, **json_fields(self), "worst": self.worst and self.worst._asdict()}

    def _parts(self) -> Iterator[Part]:
        rows = [(printable(file.path), file.verdict, printable(file.text)) for file in self.wrong]
        yield Table([("file", "verdict", "why"), *rows[:_MOST_ROWS]], folded=[2], name="Files")
        if len(rows) > _MOST_ROWS:
            yield "note", f"and {len(rows) - _MOST_ROWS} more: --json lists all"
        for note in self.notes:
            yield "note", printable(note)
        if self.changed:
            text = f"{plural(len(self.changed), 'file')} changed since tamis made them, by the record"
            yield "note", printable(f"{text}: {_named(self.changed)}")
        if self.worst is not None:
            yield "", str(self.worst)
        counts = {name: sum(file.verdict == name for file in self.files) for name in get_args(Verdict)}
        words = [f"{count} {name.replace('-', ' ')}" for name, count in counts.items() if count]
        text = f"{plural(len(self.files), 'file')} compared: {', '.join(words) or 'none'}"
        yield ("name" if self.ok else "violation"), f"{printable(self.target)}: {text}"


def verify_many(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    bounds: Bounds | None = None,
    include: str | Iterable[str] = (),
    exclude: str | Iterable[str] = (),
    variables: Iterable[str] = (),
    drop: Iterable[str] = (),
    threads: int | None = None,
    keep_damaged: bool = False,
    progress: Progress | None = None,
) -> FolderVerification:
    """Compare the files of a folder with those of the same names in another one, whoever made them.

    Parameters
    ----------
    source, target
        Paths of the folders. ``a.nc`` of the first one may be ``a.zarr`` in the second one, and the other way round.
    bounds, variables, drop, threads, keep_damaged
        See `verify`; a name may be absent from some files.
    include, exclude
        Patterns of names of files, or of paths if they have a slash; by default all files that tamis reads.
    progress
        Called as by `verify`; the step is that of a file.

    Raises
    ------
    FileError
        If a folder cannot be listed, or the first one has no files. A file that cannot be read has the verdict
        ``failed``.
    """
    PATH.check("source", source)
    PATH.check("target", target)
    limits = checked_bounds(bounds)
    NAMES.check("include", include)
    NAMES.check("exclude", exclude)
    NAMES.check("variables", variables)
    NAMES.check("drop", drop)
    FLAG.check("keep_damaged", keep_damaged)
    CALLBACK.check_optional("progress", progress)
    choice = Choice.of(include, exclude)
    ins, outs = ([], []) if os.path.realpath(source) == os.path.realpath(target) else ([source], [target])
    listing = list_files([source], choice, outs)
    if not (listing.files or listing.failed):
        raise nothing_in(source, listing)
    if not os.path.isdir(target):
        raise FileError(f"{os.fsdecode(target)}: no such folder").at(path=target)
    report = progress or (lambda *_: None)
    threads = checked_threads(threads)
    names, dropped = ([given] if isinstance(given, str) else [*given] for given in (variables, drop))
    verdicts = [FileVerdict(path, "failed", message, 0.0) for path, (_, message) in listing.failed.items()]
    met: set[Path] = set()
    records = Records()
    pairs = {
        (os.path.realpath(file.source), os.path.realpath(os.path.join(os.fsdecode(target), path)))
        for path, file in listing.files.items()
    }
    errors, changed = list[Worst](), list[str]()
    warned, counts = dict[str, tuple[str, str]](), Counter[str]()
    for number, path in enumerate(sorted(listing.files), 1):
        step = Step(f"comparing {path}", number, len(listing.files))
        try:
            other = _counterpart(Path(os.fsdecode(target), path))
        except OSError as error:
            text = f"{error.filename}: cannot be read: {disk_text(error)}"
            verdicts.append(FileVerdict(path, "failed", text, 0.0))
            continue
        if other is None:
            verdicts.append(FileVerdict(path, "missing", "no such file in the second folder", 0.0))
            continue
        met.add(other)
        try:
            recorded = recorded_of(other, records, asks_changed=True) if asks_recorded(limits) else Recorded({}, False)
            if recorded.is_changed:
                changed.append(path)
            asked = limits, names, dropped, threads, partial(_report, report, step)
            source_path = listing.files[path].source
            result = run_verify(
                source_path,
                other,
                *asked,
                optional_names=True,
                pairs=pairs,
                keep_damaged=keep_damaged,
                losses=recorded.losses,
            )
        except TamisError as error:
            verdicts.append(FileVerdict(path, "failed", str(error), 0.0))
        else:
            verdicts.append(_verdict_on(path, result))
            facts = ((item.path, item.tally.error, item.bound) for item in result.datasets if item.tally is not None)
            errors += filter(None, [nearest_to_bounds(path, facts)])
            coarse = [note for note in result.notes if note.code == COARSE]
            warned = {note.path: (note.text, path) for note in coarse} | warned
            counts.update(note.path for note in coarse)
    others = list_files([target], choice, ins).files
    extra = sorted(path for path in others if Path(os.fsdecode(target), path) not in met)
    notes = [*left_out_notes(listing.left_out, may_copy=False)]
    notes += [
        f"{path}: {text} (in {first if counts[path] == 1 else f'{counts[path]} files, the first {first}'})"
        for path, (text, first) in warned.items()
    ]
    if extra:
        notes.append(f"{plural(len(extra), 'file')} only in {os.fsdecode(target)}: {_named(extra)}")
    return FolderVerification(
        os.fsdecode(source),
        os.fsdecode(target),
        tuple(verdicts),
        tuple(notes),
        tuple(extra),
        max(errors, key=attrgetter("share"), default=None),
        tuple(changed),
    )


def _named(paths: Sequence[str]) -> str:
    return ", ".join(paths[:_MOST_NAMED]) + (", … (--json has all)" if len(paths) > _MOST_NAMED else "")


def _report(report: Progress, step: Step, _: str, done: int, total: int) -> None:
    report(step, done, total)


def _counterpart(path: Path) -> Path | None:
    """Return the path of a target, also of one in another format; None if there is none."""
    others = (path, path.with_suffix(".zarr"), path.with_suffix(".nc"), path.with_name(f"{path.name}.zarr"))
    return next((other for other in others if _exists(other)), None)


def _exists(path: Path) -> bool:
    """Return whether there is a file or folder; raise OSError where that cannot be known."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _verdict_on(path: str, result: Verification) -> FileVerdict:
    errors = [float(item.tally.error) for item in result.datasets if item.tally is not None]
    findings = (*result.violations, *result.problems)
    largest = max(errors, default=0.0)
    if findings:
        more = f" and {len(findings) - 1} more" if len(findings) > 1 else ""
        return FileVerdict(path, "different" if result.violations else "failed", f"{findings[0]}{more}", largest)
    equal = all(item.status in ("equal", None) for item in result.datasets)
    return FileVerdict(path, "equal" if equal else "within-bound", "", largest)
