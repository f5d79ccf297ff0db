"""Reuse the chunks of an interrupted run, and leave chunks for a later one."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from tamis.errors import BoundError, FileError, TamisError
from tamis.formats.registry import target_form
from tamis.formatting import printable, shape_text, size_text
from tamis.jobs.repack.record import source_identity
from tamis.rewrite.resumed_chunks import ResumedChunks
from tamis.safety.journal import Journal, Leftover, Run, companion_key, find_leftovers
from tamis.zfp.configuration import config

if TYPE_CHECKING:
    from tamis.arrays.grid import Grid
    from tamis.pipeline import Pipeline
    from tamis.rewrite.rewrite import Rewrite
    from tamis.safety.transaction import Transaction


class Unresumed:
    """A run that reuses nothing and leaves nothing; see `Resuming`."""

    def begin(self) -> None:
        """Do nothing."""

    def chunks(self, plan: Rewrite, grid: Grid) -> None:
        """Return None."""

    def flush(self) -> None:
        """Do nothing."""


class Resuming:
    """The leftovers of interrupted runs beside a target, and the journal of this run.

    Until it is closed, leftovers are locked, so that no other run uses or removes them.
    """

    def __init__(self, transaction: Transaction, source: Path, plans: Mapping[str, Rewrite], *, resume: bool) -> None:
        self.run = _run(source, [plan for plan in plans.values() if not plan.copied])
        self._numbers = {path: number for number, path in enumerate(self.run.datasets)}
        self._transaction = transaction
        self._resume = resume
        self._is_stale = False  # after a failed verification, the written chunks are useless
        self._journal: Journal | None = None
        leftovers = find_leftovers(transaction.target_path)
        self._dead = leftovers.dead
        self._leftover: Leftover | None = None  # whose chunks are reused
        self._left: set[str] = set()  # datasets whose chunks in it are still to be reused
        self.reused = False
        self.notes: list[str] = []
        if resume and leftovers.busy:
            self.close()
            raise FileError(
                f"{leftovers.busy[0]}: expected an interrupted run, found one that is still writing, or that another"
                " run is resuming"
            ).at(path=transaction.target)
        if resume:
            try:
                self._choose(source)
            except BaseException:
                self.close()
                raise
        self.notes += [
            f"{path}: it has no journal that can be read and locked, so a run may still be writing it: remove it if"
            " none is"
            for path in leftovers.unknown
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_stale = isinstance(error, BoundError)
        try:
            if error is not None:
                self.flush()
        finally:
            self.close()

    def begin(self) -> None:
        """Create the journal, before the temporary file: no run removes a temporary file without a journal.

        Other leftovers are removed first, so a target has only one partial file, or two while chunks move from one to
        the other.
        """
        for leftover in self._dead:
            if leftover is not self._leftover:
                removed = [f"{leftover.path}: left by an interrupted run; removed"] if leftover.total() else []
                self.notes += leftover.remove() or removed
        self._transaction.is_kept = self._has_progress
        self._journal = Journal(self._transaction.journal, self.run)

    def chunks(self, plan: Rewrite, grid: Grid) -> ResumedChunks | None:
        """Return the chunks of a dataset that are reused and recorded for a later run; None before `begin`."""
        if self._journal is None:
            return None
        numbers = self._numbers[plan.path], self._numbers[companion_key(plan.path)]
        leftover = self._leftover if plan.path in self._left else None
        taken = partial(self._finish_dataset, plan.path)
        return ResumedChunks(plan, grid, self._journal, numbers, leftover, taken, self._transaction.file_of)

    def flush(self) -> None:
        """Write all notes of the journal to its file."""
        if self._journal is not None:
            self._journal.flush()

    def _has_progress(self) -> bool:
        """Return whether a later run can continue this one, and has no more from an earlier one.

        This is computed when the transaction ends, not earlier, because Ctrl-C may come at any moment.
        """
        usable = self._journal is not None and self._journal.usable
        return self._resume and usable and not self._left and not self._is_stale

    @property
    def removable_nbytes(self) -> int:
        """Bytes of the files that `begin` removes."""
        return sum(leftover.nbytes for leftover in self._dead if leftover is not self._leftover)

    def reusable(self, path: str) -> int:
        """Return the number of chunks of a dataset that an earlier run recorded."""
        return self._leftover.count(path) if self._leftover and path in self._left else 0

    def finish(self) -> None:
        """Remove the leftover whose chunks were reused."""
        if self._leftover is not None:
            self.notes += self._leftover.remove()

    def close(self) -> None:
        """Release all locks."""
        if self._journal is not None:
            self._journal.close()
        for leftover in self._dead:
            leftover.close()

    def _finish_dataset(self, path: str) -> None:
        """Remove the leftover as soon as this run has all of its usable chunks."""
        self._left.discard(path)
        self.flush()
        if not self._left and self._leftover is not None and self._journal is not None and self._journal.usable:
            self._leftover.remove()  # if that fails, `finish` tries again

    def _choose(self, source: Path) -> None:
        """Choose the leftover with the most chunks that this run can use."""
        candidates = [leftover for leftover in self._dead if leftover.total()]
        if not candidates:
            self.notes.append("nothing to resume: no interrupted run for this target left chunks; started over")
            return
        fitting = [leftover for leftover in candidates if leftover.run and leftover.run.source == self.run.source]
        if not fitting:
            self.notes.append(f"nothing to resume: {source} has changed since a run was interrupted; started over")
            return
        self._leftover = max(fitting, key=lambda leftover: sum(map(leftover.count, self._alike(leftover))))
        self._left = {path for path in self._alike(self._leftover) if self._leftover.count(path)}
        self.reused = bool(self._left)
        for path, entry in self.run.datasets.items():
            before = self._leftover.run.datasets.get(path, {}) if self._leftover.run else {}
            # The entry of a companion is empty; the record of its dataset is enough.
            if entry and before != entry and self._leftover.count(path):
                self.notes.append(f"{path}: encoded again: {_difference(before, entry)}")
        if not self._left:
            self._leftover = None

    def _alike(self, leftover: Leftover) -> list[str]:
        """Return the datasets that another run stored in the same way as this one."""
        others = leftover.run.datasets if leftover.run else {}
        return [path for path, entry in self.run.datasets.items() if entry and others.get(path) == entry]


def remove_leftovers(transaction: Transaction) -> list[str]:
    """Remove the leftovers beside a finished target; return notes about files that cannot be removed."""
    notes = []
    for leftover in find_leftovers(transaction.target_path).dead:
        notes += leftover.remove()
        leftover.close()
    return notes


def interrupted(target: Path, then: str = "--resume continues it") -> list[str]:
    """Return notes about the leftovers of interrupted runs for a target, with their sizes."""
    try:
        leftovers = find_leftovers(target_form(target).begin(target).target_path)
    except TamisError:
        return []
    notes = [
        f"an interrupted run left {leftover.path} ({leftover.total()} chunks, {size_text(leftover.nbytes)}): {then}"
        for leftover in leftovers.dead
        if leftover.total()
    ]
    for leftover in leftovers.dead:
        leftover.close()
    return notes


@contextmanager
def naming_leftovers(target: str, resume: bool, note: Callable[[str], None]) -> Iterator[None]:
    """Note the leftovers of a run for a target if it fails or is interrupted."""
    try:
        yield
    except BaseException:
        for text in interrupted(Path(target)) if resume else ():
            note(text)
        raise


def _run(source: Path, plans: Collection[Rewrite]) -> Run:
    entries: dict[str, dict[str, str]] = {}
    by_model: dict[int, dict[str, str]] = {}
    for plan in plans:
        model = plan.model or plan
        if (entry := by_model.get(id(model))) is None:
            entry = by_model[id(model)] = _entry(model)
        entries[plan.path] = entry
    return Run(source_identity(source), entries | {companion_key(path): {} for path in entries})


def _entry(plan: Rewrite) -> dict[str, str]:
    """Return everything that determines the bytes of a dataset's chunks, except its path and values."""
    return {
        "filters": str(plan.requested),
        "chunks": shape_text(plan.chunk_shape),
        "type": plan.dtype.str,
        "versions": _versions(plan.pipeline),
        "rest": hashlib.sha256(repr(replace(plan, path="")).encode("utf-8", "backslashreplace")).hexdigest(),
    }


@cache
def _versions(pipeline: Pipeline) -> str:
    """Return the versions of all libraries that encode, as text."""
    modules = set[str]().union(*((*item.needs, type(item).__module__) for item in pipeline.filters))
    versions = [f"zlib {zlib.ZLIB_RUNTIME_VERSION}", f"tamis {config().version}"]
    others = sorted({module.partition(".")[0] for module in modules} - {"tamis"})
    if others:
        from importlib import metadata  # imported late: it takes as long as all of h5py
    for name in others:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            versions.append(name)
    return ", ".join(versions)


def _difference(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return the differences from an interrupted run as text."""
    differences = [
        f"{key} {after[key]}, and {printable(before.get(key, 'none'))} in the interrupted run"
        for key in ("filters", "chunks", "type", "versions")
        if before.get(key) != after[key]
    ]
    return "; ".join(differences) or "settings differ from those of the interrupted run"
