"""What a run takes over from one that was killed, and what it leaves for another."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from tamis.chunks.words import shape_text, size_text
from tamis.errors import FileError
from tamis.formatting import printable
from tamis.hdf5.rewriting import History, Journal, Leftover, Plan, Run, companion_key, find_leftovers
from tamis.hdf5.transaction import Transaction
from tamis.pipeline import Pipeline
from tamis.zfp.configuration import config

_AGAIN = "--resume continues it"


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

    Raises
    ------
    FileError
        If something should be taken over from a run that still writes.
    """

    def __init__(self, transaction: Transaction, source: Path, plans: Mapping[str, Plan], *, wanted: bool) -> None:
        self.run = _run(source, [plan for plan in plans.values() if not plan.copied])
        self._numbers = {path: number for number, path in enumerate(self.run.datasets)}
        self._path = transaction.path
        self._journal_path = transaction.journal
        self._journal: Journal | None = None
        found = find_leftovers(transaction.place)
        self._dead = found.dead
        self._chosen: dict[str, Leftover] = {}
        self.notes: list[str] = []
        if wanted and found.busy:
            self.close()
            raise FileError(
                f"{found.busy[0]}: expected an interrupted run, found one that is still writing, or that another run"
                " is resuming"
            )
        if wanted:
            try:
                self._choose(source)
            except BaseException:
                self.close()
                raise
        self.notes += [
            f"{path}: it has no journal, so a run may still be writing it: remove it if none is"
            for path in found.unknown
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def begin(self) -> None:
        """Begin the journal, before there is a temporary file: one without a journal is nobody's to remove."""
        self._journal = Journal(self._journal_path, self.run)

    def history(self, plan: Plan, shape: tuple[int, ...]) -> History | None:
        """Give the history of a dataset; None before `begin`."""
        if self._journal is None:
            return None
        numbers = self._numbers[plan.path], self._numbers[companion_key(plan.path)]
        return History(plan, shape, self._path, self._journal, numbers, self._chosen.get(plan.path))

    def flush(self) -> None:
        """Write what was noted so far."""
        if self._journal is not None:
            self._journal.flush()

    def reusable(self, path: str) -> int:
        """Count the chunks of a dataset that an earlier run noted."""
        return self._chosen[path].count(path) if path in self._chosen else 0

    def remove(self) -> None:
        """Remove what earlier runs left."""
        for each in self._dead:
            if each.total() and each not in self._chosen.values():
                self.notes.append(f"{each.path}: left by an interrupted run; removed")
            each.remove()

    def close(self) -> None:
        """Let go of the locks."""
        if self._journal is not None:
            self._journal.close()
        for each in self._dead:
            each.close()

    def _choose(self, source: Path) -> None:
        """Choose for each dataset what holds most of its chunks."""
        candidates = [each for each in self._dead if each.total()]
        if not candidates:
            self.notes.append("nothing to resume: no interrupted run for this target left chunks; started over")
            return
        fitting = [each for each in candidates if each.run and each.run.source == self.run.source]
        if not fitting:
            self.notes.append(f"nothing to resume: {source} has changed since a run was interrupted; started over")
            return
        for path, entry in self.run.datasets.items():
            if not entry:  # a companion, which goes with its dataset
                continue
            alike = [each for each in fitting if each.run and each.run.datasets.get(path) == entry]
            if alike:
                self._chosen[path] = max(alike, key=lambda each: each.count(path))
            elif differing := [each.run.datasets[path] for each in fitting if each.run and each.count(path)]:
                self.notes.append(f"{path}: stored anew: {_difference(differing[0], entry)}")


def interrupted(target: Path) -> list[str]:
    """Name what interrupted runs for a target left, with how much of it there is."""
    try:
        found = find_leftovers(Transaction(target).place)
    except FileError:
        return []
    notes = [
        f"an interrupted run left {each.path} ({each.total()} chunks, {size_text(each.nbytes)}): {_AGAIN}"
        for each in found.dead
        if each.total()
    ]
    for each in found.dead:
        each.close()
    return notes


def _run(source: Path, plans: Collection[Plan]) -> Run:
    found = source.stat()
    same = {"nbytes": found.st_size, "mtime_ns": found.st_mtime_ns, "inode": found.st_ino}
    entries: dict[str, dict[str, str]] = {plan.path: _entry(plan) for plan in plans}
    return Run(same, entries | {companion_key(plan.path): {} for plan in plans})


def _entry(plan: Plan) -> dict[str, str]:
    """Say what decides the bytes of a dataset's chunks, but for its values."""
    return {
        "filters": str(plan.pipeline),
        "chunks": shape_text(plan.chunks),
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
