"""The files of a run, given to processes until all are made or have failed for good."""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from tamis.errors import FileError
from tamis.formatting import plural
from tamis.jobs.many.again import done_test, is_as_made, why_again
from tamis.jobs.many.leftovers import sweep
from tamis.jobs.many.listing import LeftOut, Listing, SourceFile, left_out_notes
from tamis.jobs.many.losses import Records
from tamis.jobs.many.manifest import write_manifest
from tamis.jobs.many.order import Order
from tamis.jobs.many.prepared import PreparedRun
from tamis.jobs.many.ranges import common_ranges, is_packed, with_asked
from tamis.jobs.many.result import FolderStatus, status_of
from tamis.jobs.many.state import FileRecord, State, begin_run, write_record
from tamis.jobs.many.task import FileTask, FolderOptions
from tamis.jobs.repack import has_checksum, packs
from tamis.jobs.result import VERSION
from tamis.jobs.workers import Died, Event, Progressed, Workers
from tamis.safety import Identity

_MOST_DEATHS = 3
"""Ends of its process after which a file is set aside."""
_WAIT_SECONDS = 0.2
_CLAIMED_SECONDS = 1.0
_RETRY_SECONDS = 1.0
"""Pause before the second try of a file; it doubles with each further one."""

_MOST_PACKINGS = 5
"""Packed variables that a result names."""


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


def with_ranges(run: PreparedRun, workers: Workers, report: ManyProgress) -> FolderOptions:
    """Return the options of a run with the ranges of packed variables over all of its files, also of other parts."""
    options, files = run.options, run.listing.files.values()
    if options.packing == "each" or not is_packed(options.repack.recipe):
        return options
    is_done = done_test(run, packed=True)
    nbytes = sum(file.nbytes for file in run.files)

    def tell(step: str, done: int, total: int) -> None:
        report(Running(len(run.files), 0, 0, nbytes, 0, 0, {"ranges of packed variables": (step, done, total)}))

    ranges = common_ranges(files, is_done, options, workers, tell)
    return replace(options, repack=replace(options.repack, ranges=ranges))


class Run:
    """The files of a run, and what becomes of them: waiting, at work, to be tried later, failed or done."""

    def __init__(
        self, options: FolderOptions, files: list[SourceFile], retries: int, keep_going: bool, report: ManyProgress
    ) -> None:
        self._options, self._files, self._retries, self._keep_going = options, files, retries, keep_going
        self._report, self._places = report, options.places
        self._state = State(options.folder)
        self._state.refresh()
        self._records = Records(self._state)
        self._replaced = {known.identity: path for path, known in self._state.done.items()}  # Targets by their sources
        self._again: Counter[str] = Counter()
        self._reasons: dict[str, str] = {}  # Why files are made again, by target; empty for the first time
        self._made = self._done = self._done_nbytes = 0
        self._failed: dict[str, FileRecord] = {}  # Last records of files that failed for good
        self._deaths: Counter[str] = Counter()
        self._swept: tuple[str, ...] = ()  # Notes about what ended runs left
        self._elsewhere: list[str] = []  # Other folders whose records have files of the run
        self._at_work: dict[str, tuple[str, int, int]] = {}
        self._later: list[tuple[float, FileTask]] = []  # Failed, or others have it, with the time of the next try
        self._stops = False
        self.queue = deque(sorted(filter(None, map(self._task_of, files)), key=lambda task: -task.file.nbytes))
        self._order = Order(options, self.queue)
        self._nbytes, self._begun_nbytes = sum(file.nbytes for file in files), self._done_nbytes

    def _task_of(self, file: SourceFile) -> FileTask | None:
        """Return the task that makes a file; None if it is done."""
        known = self._state.known.get(file.target)
        reason = why_again(file, self._state.last(file.target), self._options, self._places)
        if reason is None:
            self._done += 1
            self._done_nbytes += file.nbytes
            return None
        self._reasons[file.target] = reason
        expected = Identity.of(file.source) if self._options.replace else None
        serial = 0 if known is None else known.serial + 1
        is_half_done = file.target in self._state.replacing
        is_ours = is_as_made(Path(self._options.folder, file.target), self._state.done.get(file.target))
        lines = self._records.lines(os.path.join(self._options.folder, file.target))
        return FileTask(file, self._options, 1, serial, expected, is_half_done, is_ours, lines=lines)

    def sweep(self, listing: Listing) -> None:
        """Remove what ended runs left, and begin with files of which they left a part, which takes space already."""
        swept = sweep(self._options.folder, listing.files, {task.file.target for task in self.queue})
        self.queue = deque(sorted(self.queue, key=lambda task: task.file.target not in swept.begun))
        self._swept += swept.notes

    def begin_elsewhere(self, description: Mapping[str, Any], runs: ExitStack) -> None:
        """Describe the run in each other folder whose record has files that it makes, and will have what it does."""
        about = {**description, "files": 0, "nbytes": 0, "unread": {}, "left_out": []}
        for folder in sorted({line.folder for task in self.queue for line in task.lines} - {self._options.folder}):
            try:
                runs.enter_context(begin_run(folder, about))
                self._elsewhere.append(folder)
            except FileError as error:
                if not isinstance(error.__cause__, OSError):
                    raise
                self._swept += (f"{error}: the record there does not have what this run does",)

    def fail_unread(self, listing: Listing) -> None:
        """Count the files that cannot even be listed as failed; the description of the run has them."""
        self._failed |= unread_records(listing.failed)
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
            else:
                self._at_work[task.file.target] = ("begins", 0, 1)
                workers.submit(self._with_names(task._replace(stand_ins=self._order.stand_ins(task))))
        self.queue.extendleft(reversed(waiting))

    def _with_names(self, task: FileTask) -> FileTask:
        """Return a task that knows the target of another name of its file, if that has been replaced."""
        if not self._options.break_hard_links or task.expected is None:
            return task
        other = self._replaced.get(task.expected, "")
        is_last = self._order.is_last_name(task.file.target)
        return task._replace(other_name="" if other == task.file.target else other, is_last_name=is_last)

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
        if isinstance(event, Progressed):
            self._at_work[path] = (event.step, event.done, event.total)
            return
        self._at_work.pop(path, None)
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
            self._replaced[event.result.identity] = path
            self._again.update(filter(None, [self._reasons.get(path)]))
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
        if options.replace and not all(map(has_checksum, filter(packs, options.repack.recipe.filters.values()))):
            yield (
                "packed variables get no checksum: with |fletcher32 at the end of their filters, 4 bytes a chunk, each"
                " reader of HDF5 notices damage"
            )
        if options.packing == "each":
            yield "packed variables have a packing of their own in each file (--packing one: the same in all)"
            return
        asked = (with_asked(options.repack.recipe, *found) for found in options.repack.ranges.items())
        valid = {path: extent for path, extent in asked if extent.low <= extent.high}
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
        for state in (self._state, *map(State, self._elsewhere)):
            try:
                state.refresh()
                write_manifest(state)
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
    return FileRecord(path, "failed", source, version=VERSION, error=error, time=time.time())


def unread_records(unread: Mapping[str, Any]) -> dict[str, FileRecord]:
    """Return the records of files that could not even be listed, by target, from their sources and messages."""
    return {path: _failure(path, str(source), "FileError", str(text)) for path, (source, text) in unread.items()}
