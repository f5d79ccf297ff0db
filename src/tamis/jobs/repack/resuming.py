"""What earlier runs left: a finished target, which is not made again, or chunks of an interrupted run, to be reused.

The record of the run that made a target is an extended attribute of the file. So it does not change the bytes of the
target, needs no other file, and disappears with the target. docs/design has the alternatives.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from tamis.errors import BoundError, FileError, TamisError
from tamis.formats.registry import open_packed, target_form
from tamis.formatting import plural, printable, shape_text, size_text
from tamis.jobs.repack.options import RepackOptions
from tamis.jobs.repack.planning import plan_datasets
from tamis.jobs.result import json_text
from tamis.jobs.verify.bounds import RECORDED, Bound
from tamis.old_names import recorded_text, recorded_value
from tamis.remote.address import Address
from tamis.rewrite.plan import ArrayPlan, Copy
from tamis.rewrite.resumed_chunks import ResumedChunks
from tamis.rewrite.streams import are_stored_alike
from tamis.rewrite.surveys import count_missing
from tamis.rewrite.write import would_grow
from tamis.safety.disk import Identity, size_and_checksum
from tamis.safety.journal import Journal, Leftover, RunKey, companion_key, find_leftovers
from tamis.safety.library_errors import disk_text, is_disk_full
from tamis.safety.transaction import segments_of
from tamis.safety.whole_file import check_free
from tamis.stores.facts import ELSEWHERE, ArrayFacts
from tamis.stores.protocols import Store
from tamis.system.attributes import attribute, set_attribute
from tamis.zfp.configuration import config

if TYPE_CHECKING:
    from tamis.jobs.repack.planning import Planning
    from tamis.pipeline import Pipeline
    from tamis.safety.transaction import Transaction


NOTHING_LEFT = "nothing to resume: no interrupted run for this target left chunks; started over"
"""Note of a resumed repack that had to start over."""
_NAME = "user.tamis.made"
_VERSION = 1
_MOST_NBYTES = 4096


@dataclass(frozen=True, slots=True)
class TargetRecord:
    """The source and the recipe of a target, and its checksum."""

    source: Mapping[str, int]  # Identity of the source
    place: str  # Checksum of the path of the source
    recipe: str  # Checksum of the plans of all datasets
    # Size and checksum of the finished target
    nbytes: int = 0
    checksum: int = 0
    unread: int = 0  # Number of datasets that were copied as stored because their values cannot be read
    # Whether the target stores values of other files, whose changes do not show in the source
    elsewhere: bool = False
    # Checksum of the names of other files in the target: empty if it has none, None if an older version made it
    links: str | None = None

    @classmethod
    def of(cls, source: Path | Address, planning: Planning, options: RepackOptions) -> TargetRecord:
        """Return the record of a planned run."""
        place = _checksum([source if isinstance(source, Address) else os.path.realpath(source)])
        choices = [
            recorded_value("missing", options.missing),
            str(planning.form or ""),
            "history" if options.history else "",
            "keep classic" if options.keep_classic else "",
            f"ranges {sorted(options.ranges.items())}" if options.ranges else "",
            f"without {sorted(planning.dropped)}" if planning.dropped else "",
        ]
        recipe = _checksum_of_recipe(planning.plans, planning.kept, " ".join(filter(None, choices)))
        layouts = {planning.datasets[path].storage.layout for path in planning.plans}
        elsewhere = bool(planning.taken_in) or not layouts.isdisjoint(ELSEWHERE)
        return cls(Identity.of(source, with_ctime=True)._asdict(), place, recipe, elsewhere=elsewhere)

    def write(self, path: Path, nbytes: int, checksum: int, unread: int) -> None:
        """Write the record to the target if the file system has extended attributes."""
        described = replace(self, nbytes=nbytes, checksum=checksum, unread=unread)
        text = json_text({"version": _VERSION, **asdict(described)}).encode()
        with suppress(OSError):
            set_attribute(path, _NAME, text)

    @classmethod
    def read(cls, path: Path) -> TargetRecord | None:
        """Return the record of a file; None if there is no readable one."""
        try:
            text = attribute(path, _NAME)
            entries = json.loads(text[:_MOST_NBYTES])
            if entries.pop("version") != _VERSION:
                return None
            return cls(**entries)
        except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError):
            return None

    def describes(self, path: Path) -> bool:
        """Return whether a file is unchanged since it was made; reads the whole file."""
        return (self.nbytes, self.checksum) == size_and_checksum(path)


def _checksum_of_recipe(plans: Mapping[str, ArrayPlan], kept: Iterable[str], choices: str) -> str:
    """Return a checksum of all plans, without versions of libraries: a proven target stays valid after an update.

    `choices` are the options that decide on the target besides the plans, with the treatment of missing values first.
    """
    lines = [f"missing {choices}", *(f"keep {path}" for path in sorted(kept))]
    for path, plan in sorted(plans.items()):
        grows = "may grow" if plan.may_grow else "must not grow"
        filters = recorded_text(str(plan.requested))
        filters += "" if plan.pipeline.bound is None else f" within {plan.pipeline.bound!r}"
        lines.append(
            f"{path} {filters} {shape_text(plan.chunk_shape)} {plan.dtype.str} {isinstance(plan, Copy)} {grows}"
        )
        if plan.required is not None:
            lines.append(f"{path} keeps {plan.required}")
    return _checksum(lines)


def _checksum(lines: Iterable[str]) -> str:
    text = "\n".join(lines).encode("utf-8", "surrogateescape")
    return hashlib.sha256(text).hexdigest()


MADE_AGAIN = "made again: "
"""Words before the reason, in a note that is true of the run that makes a target, and not of later ones."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """The state of an existing target."""

    done: bool  # Whether it equals the result of this run
    ours: bool  # Whether tamis made it from the same source, and it has not changed since
    reason: str  # Why it is already done, is made anew, or must not be replaced

    def __str__(self) -> str:
        return f"already done: {self.reason}" if self.done else f"{MADE_AGAIN}{self.reason}"


def check_outside(target: Path, source: Path | Address) -> None:
    """Raise FileError for a target inside the folder of its source, which would then have the target's arrays, too."""
    if isinstance(source, Address) or not source.is_dir():
        return
    folder, place = os.path.realpath(source), os.path.realpath(target)
    if place != folder and os.path.commonpath([folder, place]) == folder:
        raise FileError(f"{target}: is inside the source {source}: choose a target outside it").at(path=target)


def check_place(transaction: Transaction, source: Path | Address, options: RepackOptions) -> None:
    """Raise FileError, before anything is read, for a target that no run with these options replaces."""
    target = transaction.target
    check_outside(target, source)
    if not target.exists():
        return
    if not isinstance(source, Address) and target.samefile(source):
        raise FileError(f"{target}: is the source itself: choose another target").at(path=target)
    if not (transaction.replace or options.resume):
        check_free(target)


def check_target(
    transaction: Transaction,
    source: Path | Address,
    record: TargetRecord,
    plans: Mapping[str, ArrayPlan],
    options: RepackOptions,
) -> Earlier | None:
    """Return the state of an existing target for a run that resumes; allow its replacement if tamis made it."""
    check_place(transaction, source, options)
    target = transaction.target
    if not target.exists():
        return None
    earlier = look_at(target, source, record, plans, options) if options.resume else None
    if earlier is not None and earlier.ours:
        transaction.replace = True
        return earlier
    if transaction.replace:
        return None
    reason = "" if earlier is None else f", and {earlier.reason}"
    raise FileError(f"{target}: File exists{reason}: choose another name, or replace it: overwrite=True").at(
        path=target
    )


def look_at(
    target: Path, source: Path | Address, record: TargetRecord, plans: Mapping[str, ArrayPlan], options: RepackOptions
) -> Earlier:
    """Compare the record of a target with that of this run."""
    old = TargetRecord.read(target)
    if old is None:
        return _compare(target, source, plans, options)
    try:
        unchanged = old.describes(target)
    except OSError as error:
        raise FileError(f"{target}: cannot be read: {disk_text(error)}").at(path=target) from error
    if not unchanged:
        return _of_others("it was changed after tamis made it")
    if old.source != record.source:
        if old.place != record.place:
            return _of_others("tamis made it from another file")
        return _outdated(f"{source} has changed since it was made")
    if old.recipe != record.recipe:
        return _outdated("other filters, chunks or options were requested since it was made")
    if old.unread:
        return _unread(old.unread)
    if record.elsewhere:
        compared = _compare(target, source, plans, options)
        return compared if compared.done else _outdated("its values are from other files, and these may have changed")
    if (old.links or "") != (record.links or ""):
        return _outdated("its links lead to other places than those of the files of this run")
    return _done(f"made from {source} by the same recipe, and both are unchanged since")


def _done(reason: str) -> Earlier:
    """Return the state of a target that equals the result of this run."""
    return Earlier(done=True, ours=True, reason=reason)


def _outdated(reason: str) -> Earlier:
    """Return the state of a target that tamis made from the same source, and that this run makes anew."""
    return Earlier(done=False, ours=True, reason=reason)


def _of_others(reason: str) -> Earlier:
    """Return the state of a target that must not be replaced, as if tamis had not made it."""
    return Earlier(done=False, ours=False, reason=reason)


def _unread(count: int) -> Earlier:
    """Return the state of a target some of whose datasets have the stored bytes of the source, but no known values."""
    return _outdated(f"the values of {plural(count, 'dataset')} could not be read")


def _compare(target: Path, source: Path | Address, plans: Mapping[str, ArrayPlan], options: RepackOptions) -> Earlier:
    """Compare the content of a target without a record: the file system stores none, or the file was copied."""
    from tamis.jobs.verify.job import verify

    unknown = _of_others("nothing says that tamis made it from this source by this recipe")
    try:
        with open_packed(target) as after, options.open(source) as before:
            kept = _kept(after, before, plans, options)
            if kept is None:
                return unknown
            stored = [plan for path, plan in plans.items() if path not in kept]
            if reason := _other_missing(before, after, stored, options):
                return _of_others(reason)
        if any(_needs_proof(plan) for plan in stored):
            return _of_others("nothing records that it meets the requirements")
        allowed = {plan.path: RECORDED if plan.rounding else plan.unpacked_bound for plan in stored}
        bounds: dict[str, Bound] = {path: bound for path, bound in allowed.items() if bound is not None}
        if len(bounds) < len(stored):  # without a bound, values cannot be compared with the source
            return unknown
        found = verify(source, target, bounds={"*": 0.0, **bounds}, keep_damaged=True)
        if not found.ok:
            return unknown
        if unread := sum(note.code == "stored-bytes" for note in found.notes):
            return _unread(unread)
    except TamisError:
        return unknown
    return _done("it has the filters and chunks of the recipe, and all values are within the bounds")


def _needs_proof(plan: ArrayPlan) -> bool:
    """Return whether there are requirements that a comparison with the bounds of the filters does not show."""
    bounds = plan.checks.bounds
    return bool(plan.measures) or (bounds is not None and (plan.rounding is not None or bounds.needs_values))


def _is_taken_in(source: ArrayFacts, target: ArrayFacts) -> bool:
    """Return whether a target has the values itself that its source has in other files."""
    return source.storage.layout in ELSEWHERE and target.storage.layout not in ELSEWHERE


def _kept(after: Store, before: Store, plans: Mapping[str, ArrayPlan], options: RepackOptions) -> set[str] | None:
    """Return the datasets kept in the target because they would grow; None if other datasets differ."""
    stored = plan_datasets(after, options).plans
    kept = set()
    for path, plan in plans.items():
        if path not in stored:
            if _is_taken_in(before.array(path), after.array(path)):
                continue
            return None
        if isinstance(stored[path], Copy):
            continue
        source = before.array(path)
        if not are_stored_alike(source, after.array(path)) or not would_grow(plan, plan.source_of(source)):
            return None
        kept.add(path)
    return kept


def _other_missing(before: Store, after: Store, plans: Iterable[ArrayPlan], options: RepackOptions) -> str:
    """Return how a target's treatment of missing values differs from the request; empty if it does not."""
    if options.missing == "exact":
        return ""
    for plan in plans:
        if plan.lossy and not after.array(plan.path).marks.has_companion:
            count = count_missing(plan, before.array(plan.path), lambda *_: None)
            if count.total:
                return f"missing values are kept in {plan.path} itself, and --missing {options.missing} was requested"
    return ""


class Unresumed:
    """A run that reuses nothing and leaves nothing; see `Resuming`."""

    def begin(self) -> None:
        """Do nothing."""

    def chunks(self, plan: ArrayPlan) -> None:
        """Return None."""

    def flush(self) -> None:
        """Do nothing."""


class Resuming:
    """The leftovers of interrupted runs beside a target, and the journal of this run.

    Until it is closed, leftovers are locked, so that no other run uses or removes them.
    """

    def __init__(
        self,
        transaction: Transaction,
        source: Path | Address,
        plans: Mapping[str, ArrayPlan],
        *,
        resume: bool,
        gives_way: bool = False,
    ) -> None:
        self._gives_way = gives_way  # Whether nothing is kept if the disk is full, because other files need the room
        self.run = _run(source, [plan for plan in plans.values() if not isinstance(plan, Copy)])
        self._numbers = {path: number for number, path in enumerate(self.run.datasets)}
        self._transaction = transaction
        self._resume = resume
        self._is_stale = False  # after a failed verification, the written chunks are useless
        self._journal: Journal | None = None
        leftovers = find_leftovers(transaction.target_path)
        self._dead = leftovers.dead
        self._leftover: Leftover | None = None  # whose chunks are reused
        self._left: set[str] = set()  # datasets whose chunks in it are still to be reused
        self.notes: list[str] = []
        if resume and leftovers.busy:
            self.close()
            raise FileError(
                f"{leftovers.busy[0]}: a run is still writing it, or another one is resuming it: wait until that "
                "has ended"
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
        is_in_the_way = self._gives_way and error is not None and is_disk_full(error)
        self._is_stale = is_in_the_way or isinstance(error, BoundError)
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
        if self._leftover is not None:
            with suppress(OSError):  # mostly there are none
                os.rename(segments_of(self._leftover.path), segments_of(self._transaction.path))

    def chunks(self, plan: ArrayPlan) -> ResumedChunks | None:
        """Return the chunks of a dataset that are reused and recorded for a later run; None before `begin`."""
        if self._journal is None:
            return None
        numbers = self._numbers[plan.path], self._numbers[companion_key(plan.path)]
        leftover = self._leftover if plan.path in self._left else None
        taken = partial(self._finish_dataset, plan.path)
        return ResumedChunks(plan, self._journal, numbers, leftover, taken, self._transaction.file_of)

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

    def _choose(self, source: Path | Address) -> None:
        """Choose the leftover with the most chunks that this run can use."""
        candidates = [leftover for leftover in self._dead if leftover.total()]
        if not candidates:
            self.notes.append(NOTHING_LEFT)
            return
        fitting = [leftover for leftover in candidates if leftover.run and leftover.run.source == self.run.source]
        if not fitting:
            self.notes.append(f"nothing to resume: {source} has changed since a run was interrupted; started over")
            return
        self._leftover = max(fitting, key=lambda leftover: sum(map(leftover.count, self._alike(leftover))))
        self._left = {path for path in self._alike(self._leftover) if self._leftover.count(path)}
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


def interrupted(target: Path | Address, then: str = "--resume continues it") -> list[str]:
    """Return notes about the leftovers of interrupted runs for a target, with their sizes."""
    if isinstance(target, Address):
        return []
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
        if resume:
            for text in interrupted(Path(target)):
                note(text)
        raise


def _run(source: Path | Address, plans: Collection[ArrayPlan]) -> RunKey:
    entries: dict[str, dict[str, str]] = {}
    by_model: dict[int, dict[str, str]] = {}
    for plan in plans:
        model = plan.model or plan
        if (entry := by_model.get(id(model))) is None:
            entry = by_model[id(model)] = _entry(model)
        entries[plan.path] = entry
    return RunKey(
        Identity.of(source, with_ctime=True)._asdict(), entries | {companion_key(path): {} for path in entries}
    )


def _entry(plan: ArrayPlan) -> dict[str, str]:
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
