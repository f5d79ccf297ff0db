"""What earlier runs did to a file that is replaced once more: losses add up, and the record says so."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from tamis.accuracy import Requirement
from tamis.errors import FileError
from tamis.jobs.many.state import FileRecord, Known, State, has_record
from tamis.safety import disk_text, nbytes_of, sha256_of

_OF_DATASET = (
    *("path", "pipeline", "nbytes", "source_nbytes", "target_nbytes", "bound", "relative_bound", "largest_error"),
)
"""What the record of a run has about a dataset."""


class Line(NamedTuple):
    """Where a record of a file is."""

    folder: str  # Folder of files with a record
    known: Known
    serial: int  # Of the last line about the file, also of a failure

    def record(self) -> FileRecord | None:
        """Return the record; None if it is gone."""
        with suppress(OSError):
            return State(self.folder).record_at(self.known)
        return None


class Records:
    """The records of files: a file may be in that of its folder, and of every folder above."""

    def __init__(self, *states: State) -> None:
        self._states: dict[Path, State | None] = {state.folder.parent: state for state in states}

    def lines(self, path: str | os.PathLike[str]) -> tuple[Line, ...]:
        """Return the last line about a file in each record that has one, and those that a kill left unfinished."""
        place, found = Path(os.path.abspath(os.fsdecode(path))), list[Line]()
        for folder in place.parents:
            state = self._state_of(folder)
            if state is None:
                continue
            target = place.relative_to(folder).as_posix()
            for known in filter(None, (state.done.get(target), state.replacing.get(target))):
                found.append(Line(os.fspath(folder), known, state.known[target].serial))
        return tuple(found)

    def _state_of(self, folder: Path) -> State | None:
        if folder not in self._states:
            self._states[folder] = None
            if has_record(folder):
                with suppress(FileError):  # that of another user, maybe
                    state = State(folder)
                    state.refresh()
                    self._states[folder] = state
        return self._states[folder]


def _records(lines: Iterable[Line]) -> list[FileRecord]:
    """Return the records of files that were replaced, the latest last."""
    found = filter(None, (line.record() for line in lines))
    return sorted((each for each in found if each.action in ("repacked", "replacing")), key=lambda each: each.time)


def run_of(record: FileRecord) -> dict[str, Any]:
    """Return what a single run did to a file."""
    return {
        "recipe": record.recipe,
        "version": record.version,
        "time": record.time,
        "source_nbytes": record.identity.nbytes,
        "source_sha256": record.source_sha256,
        "target_nbytes": record.target_nbytes,
        "target_sha256": record.target_sha256,
        "changed": False,
        "datasets": [{name: dataset.get(name) for name in _OF_DATASET} for dataset in record.datasets],
    }


def _runs_of(record: FileRecord) -> list[dict[str, Any]]:
    return [dict(run) for run in record.runs] or [run_of(record)]


def earlier_runs(lines: Iterable[Line], sha256: str) -> list[dict[str, Any]]:
    """Return the runs that made a file what it is, by its SHA-256 and the records about it; none for an original.

    A file that another program changed since may still have the values of those runs, so they count all the same: the
    last of them has `changed`.
    """
    records = _records(lines)
    for record in reversed(records):
        runs = _runs_of(record)
        for number in range(len(runs), 0, -1):
            if runs[number - 1]["target_sha256"] == sha256:
                return runs[:number]
    done = [record for record in records if record.action == "repacked"]
    if not done:
        return []
    runs = _runs_of(done[-1])
    for number, run in enumerate(runs):
        if run["source_sha256"] == sha256:  # somebody went back to it
            return runs[:number]
    return [*runs[:-1], {**runs[-1], "changed": True}]


def with_earlier(record: FileRecord, runs: Sequence[Mapping[str, Any]], dropped: Iterable[str] = ()) -> FileRecord:
    """Return the record of a file with what earlier runs did to it: bounds and errors against the first original."""
    if not runs:
        return record
    all_runs = (*runs, run_of(record))
    own = {str(dataset.get("path")): dataset for dataset in record.datasets}
    before = {dataset["path"]: dataset for run in runs for dataset in run["datasets"]}
    paths = [path for path in (*own, *(path for path in before if path not in own)) if path not in {*dropped}]
    datasets = tuple({**own.get(path, before.get(path, {})), **_summed(path, all_runs)} for path in paths)
    notes = record.notes
    if runs[-1]["changed"]:
        text = "another program changed it after a run had replaced it: the losses of that run count all the same"
        notes = (*notes, text)
    return replace(record, runs=all_runs, datasets=datasets, notes=notes)


def first_missed(record: FileRecord) -> str:
    """Return what is wrong if the losses of all runs exceed the absolute error that the last one requires; or empty.

    A run measures what it does itself to the values that earlier ones left.
    """
    for dataset in record.datasets:
        required = Requirement.parse(dataset["require"]).abs if dataset.get("require") else None
        steps = [step for run in record.runs[:-1] for step in run["datasets"] if step["path"] == dataset["path"]]
        before = math.fsum(step["largest_error"] or 0.0 for step in steps)
        if required is not None and before > 0 and dataset["largest_error"] > required:
            own = dataset["largest_error"] - before
            return (
                f"{dataset['path']}: expected an error of at most {required:g} (require), but earlier runs have one of"
                f" {before:.3g} on record, to which this one adds {own:.3g}"
            )
    return ""


def _summed(path: str, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the loss of all runs to a dataset, and the bytes of its values, as stored or not, before the first one.

    A run that packed the values left fewer bytes of them to the next one.
    """
    steps = [dataset for run in runs for dataset in run["datasets"] if dataset["path"] == path]
    lossy = [step for step in steps if step["bound"] != 0]
    bounds, relative = ([step[name] for step in lossy] for name in ("bound", "relative_bound"))
    are_all = None not in bounds
    is_relative = bool(relative) and None not in relative
    return {
        "nbytes": steps[0]["nbytes"],
        "source_nbytes": steps[0]["source_nbytes"],
        "bound": math.fsum(bounds) if are_all else None,
        "relative_bound": math.prod(1 + each for each in relative) - 1 if is_relative else None,
        "largest_error": math.fsum(step["largest_error"] or 0.0 for step in steps),
    }


class Loss(NamedTuple):
    """How far the values of a dataset may be from those of the first original."""

    bound: float | None
    relative_bound: float | None


class Recorded(NamedTuple):
    """What records say of a file."""

    losses: Mapping[str, Loss]  # Those that several runs made, by dataset; empty if not more than one replaced it
    is_changed: bool  # Whether it has other bytes than every run recorded; False without a record


def recorded_of(
    target: str | os.PathLike[str], records: Records | None = None, *, asks_changed: bool = False
) -> Recorded:
    """Return what records say of a file, which is read once for its SHA-256.

    A file that no run or a single one replaced is read only if the caller `asks_changed`. Losses of a file that was
    changed are not known.
    """
    found = [each for each in _records((records or Records()).lines(target)) if asks_changed or each.runs]
    if not found:
        return Recorded({}, False)
    place = Path(os.fsdecode(target))
    try:
        nbytes = nbytes_of(place)
        likely = [record for record in found if record.target_nbytes == nbytes]
        sha256 = sha256_of(place) if likely else ""
    except OSError as error:
        raise FileError(f"{place}: cannot be read: {disk_text(error)}").at(path=target) from error
    own = [record for record in likely if record.target_sha256 == sha256]
    several = next((record for record in reversed(own) if record.runs), None)
    return Recorded(dict(_losses(several)) if several else {}, not own)


def _losses(record: FileRecord) -> Iterator[tuple[str, Loss]]:
    for dataset in record.datasets:
        bound, relative = dataset.get("bound"), dataset.get("relative_bound")
        if bound is None and relative is None:
            # No run promised a bound, or one an absolute and one a relative: what each measured adds up, too.
            bound = math.nextafter(float(dataset.get("largest_error") or 0.0), math.inf)
        yield str(dataset.get("path")), Loss(bound, relative)
