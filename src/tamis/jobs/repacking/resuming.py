"""What a run takes over from one that was killed, and what it leaves for another."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import Self

from tamis.chunks.grid import Grid
from tamis.errors import BoundError, FileError
from tamis.formatting import printable, shape_text, size_text
from tamis.jobs.repacking.record import source_identity
from tamis.pipeline import Pipeline
from tamis.rewrite.history import History
from tamis.rewrite.plan import Plan
from tamis.store.journal import Journal, Run, companion_key
from tamis.store.leftovers import Leftover, find_leftovers
from tamis.store.transaction import Transaction
from tamis.zfp.configuration import config


class Resuming:
    """What was left beside a target, and the journal of this run.

    Leftovers are locked, so that no other run takes them over or away, until this is closed.

    Parameters
    ----------
    transaction
        Of the target.
    source
        Path of the source.
    plans
        By path; those whose chunks are copied have nothing that could be taken over.
    wanted
        Whether to take over what fits, or only to remove it in the end.

    Attributes
    ----------
    notes
        What the user should know.
    reused
        Whether chunks of another run were offered to this one.

    Raises
    ------
    FileError
        If something should be taken over from a run that still writes.
    """

    def __init__(self, transaction: Transaction, source: Path, plans: Mapping[str, Plan], *, wanted: bool) -> None:
        self.run = _run(source, [plan for plan in plans.values() if not plan.copied])
        self._numbers = {path: number for number, path in enumerate(self.run.datasets)}
        self._transaction = transaction
        self._wanted = wanted
        self._journal: Journal | None = None
        found = find_leftovers(transaction.place)
        self._dead = found.dead
        self._leftover: Leftover | None = None  # from which chunks are taken over
        self._left: set[str] = set()  # datasets of which it has chunks that are still to be taken over
        self.reused = False
        self.notes: list[str] = []
        if wanted and found.busy:
            self.close()
            raise FileError(
                f"{found.busy[0]}: expected an interrupted run, found one that is still writing, or that another run"
                " is resuming"
            ).at(path=transaction.target)
        if wanted:
            try:
                self._choose(source)
            except BaseException:
                self.close()
                raise
        self.notes += [
            f"{path}: it has no journal that can be read and locked, so a run may still be writing it: remove it if"
            " none is"
            for path in found.unknown
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A verification that failed says that what was written is of no use.
        if error is not None and self._wanted and self._journal is not None and not isinstance(error, BoundError):
            self.flush()
            self._transaction.kept = not self._left and self._journal.count > 0 and self._journal.open
        self.close()

    def begin(self) -> None:
        """Begin the journal, before there is a temporary file: one without a journal is nobody's to remove.

        What other runs left goes away before, so that a target has one partial file, and two only while chunks are
        taken over from one to the other.
        """
        for each in self._dead:
            if each is not self._leftover:
                removed = [f"{each.path}: left by an interrupted run; removed"] if each.total() else []
                self.notes += each.remove() or removed
        self._journal = Journal(self._transaction.journal, self.run)

    def history(self, plan: Plan, grid: Grid) -> History | None:
        """Return the history of a dataset; None before `begin`."""
        if self._journal is None:
            return None
        numbers = self._numbers[plan.path], self._numbers[companion_key(plan.path)]
        leftover = self._leftover if plan.path in self._left else None
        taken = partial(self._taken, plan.path)
        return History(plan, grid, self._journal, numbers, leftover, taken)

    def flush(self) -> None:
        """Write what was noted so far."""
        if self._journal is not None:
            self._journal.flush()

    @property
    def removable_nbytes(self) -> int:
        """Bytes that `begin` makes free."""
        return sum(each.nbytes for each in self._dead if each is not self._leftover)

    def reusable(self, path: str) -> int:
        """Count the chunks of a dataset that an earlier run noted."""
        return self._leftover.count(path) if self._leftover and path in self._left else 0

    def finish(self) -> None:
        """Remove what chunks were taken over from."""
        if self._leftover is not None:
            self.notes += self._leftover.remove()

    def close(self) -> None:
        """Let go of the locks."""
        if self._journal is not None:
            self._journal.close()
        for each in self._dead:
            each.close()

    def _taken(self, path: str) -> None:
        """Remove what was left as soon as this run has all of its chunks that it can use."""
        self._left.discard(path)
        self.flush()
        if not self._left and self._leftover is not None and self._journal is not None and self._journal.open:
            self._leftover.remove()  # where that fails, `finish` tries again

    def _choose(self, source: Path) -> None:
        """Choose the run that left most of what this one needs."""
        candidates = [each for each in self._dead if each.total()]
        if not candidates:
            self.notes.append("nothing to resume: no interrupted run for this target left chunks; started over")
            return
        fitting = [each for each in candidates if each.run and each.run.source == self.run.source]
        if not fitting:
            self.notes.append(f"nothing to resume: {source} has changed since a run was interrupted; started over")
            return
        self._leftover = max(fitting, key=lambda each: sum(map(each.count, self._alike(each))))
        self._left = {path for path in self._alike(self._leftover) if self._leftover.count(path)}
        self.reused = bool(self._left)
        for path, entry in self.run.datasets.items():
            before = self._leftover.run.datasets.get(path, {}) if self._leftover.run else {}
            # The entry of a companion is empty: it goes with its dataset.
            if entry and before != entry and self._leftover.count(path):
                self.notes.append(f"{path}: stored anew: {_difference(before, entry)}")
        if not self._left:
            self._leftover = None

    def _alike(self, leftover: Leftover) -> list[str]:
        """List the datasets that a run stored as this one does."""
        found = leftover.run.datasets if leftover.run else {}
        return [path for path, entry in self.run.datasets.items() if entry and found.get(path) == entry]


def remove_leftovers(transaction: Transaction) -> list[str]:
    """Remove what interrupted runs left beside a target that is done; return notes about what cannot be removed."""
    notes = []
    for each in find_leftovers(transaction.place).dead:
        notes += each.remove()
        each.close()
    return notes


def interrupted(target: Path, then: str = "--resume continues it") -> list[str]:
    """Name what interrupted runs for a target left, with how much of it there is."""
    try:
        found = find_leftovers(Transaction(target).place)
    except FileError:
        return []
    notes = [
        f"an interrupted run left {each.path} ({each.total()} chunks, {size_text(each.nbytes)}): {then}"
        for each in found.dead
        if each.total()
    ]
    for each in found.dead:
        each.close()
    return notes


@contextmanager
def naming_leftovers(target: str, resume: bool, note: Callable[[str], None]) -> Iterator[None]:
    """Name what a run for a target keeps when it fails or is interrupted."""
    try:
        yield
    except BaseException:
        for text in interrupted(Path(target)) if resume else ():
            note(text)
        raise


def _run(source: Path, plans: Collection[Plan]) -> Run:
    entries: dict[str, dict[str, str]] = {plan.path: _entry(plan) for plan in plans}
    return Run(source_identity(source), entries | {companion_key(plan.path): {} for plan in plans})


def _entry(plan: Plan) -> dict[str, str]:
    """Say what decides the bytes of a dataset's chunks, but for its values."""
    return {
        "filters": str(plan.pipeline),
        "chunks": shape_text(plan.chunk_shape),
        "type": plan.dtype.str,
        "versions": _versions(plan.pipeline),
        "rest": hashlib.sha256(repr(plan).encode("utf-8", "backslashreplace")).hexdigest(),
    }


@cache
def _versions(pipeline: Pipeline) -> str:
    """Name the versions of whatever encodes."""
    modules = set[str]().union(*((*each.needs, type(each).__module__) for each in pipeline.filters))
    found = [f"zlib {zlib.ZLIB_RUNTIME_VERSION}", f"tamis {config().version}"]
    others = sorted({each.partition(".")[0] for each in modules} - {"tamis"})
    if others:
        from importlib import metadata  # imported late: it takes as long as all of h5py
    for name in others:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            found.append(name)
    return ", ".join(found)


def _difference(was: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Say what an interrupted run did otherwise."""
    found = [
        f"{key} {now[key]}, and {printable(was.get(key, 'none'))} in the interrupted run"
        for key in ("filters", "chunks", "type", "versions")
        if was.get(key) != now[key]
    ]
    return "; ".join(found) or "other settings than in the interrupted run"
