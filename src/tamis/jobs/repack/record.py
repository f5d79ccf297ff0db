"""The record of the run that made a target, so that the same run is not repeated.

The record is an extended attribute of the file. So it does not change the bytes of the target, needs no other file, and
disappears with the target. docs/design has the alternatives.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tamis.errors import FileError, TamisError
from tamis.formats.registry import open_store
from tamis.formatting import plural, shape_text
from tamis.jobs.repack.options import RepackOptions
from tamis.jobs.repack.planning import plan_datasets
from tamis.jobs.result import json_text
from tamis.jobs.verify.bounds import RECORDED, Bound
from tamis.rewrite.streams import are_stored_alike
from tamis.rewrite.surveys import count_missing
from tamis.rewrite.write import would_grow
from tamis.safety.disk import size_and_checksum, statuses_of
from tamis.safety.library_errors import disk_text
from tamis.stores.protocols import ELSEWHERE, Store

if TYPE_CHECKING:
    from tamis.jobs.repack.planning import Planning
    from tamis.rewrite.rewrite import Rewrite
    from tamis.safety.transaction import Transaction

_NAME = "user.tamis.made"
_VERSION = 1
_MOST_NBYTES = 4096


@dataclass(frozen=True, slots=True)
class Record:
    """The source and the recipe of a target, and its checksum."""

    source: Mapping[str, int]  # Identity of the source, see `source_identity`
    place: str  # Checksum of the path of the source
    recipe: str  # Checksum of the plans of all datasets
    # Size and checksum of the finished target
    nbytes: int = 0
    checksum: int = 0
    unread: int = 0  # Number of datasets that were copied as stored because their values cannot be read
    # Whether the target stores values of other files, whose changes do not show in the source
    elsewhere: bool = False

    @classmethod
    def of(cls, source: Path, planning: Planning, options: RepackOptions) -> Record:
        """Return the record of a planned run."""
        place = _checksum([os.path.realpath(source)])
        choices = [options.missing, str(planning.form or ""), "history" if options.history else ""]
        choices.append("keep classic" if options.keep_classic else "")
        choices.append(f"without {sorted(planning.dropped)}" if planning.dropped else "")
        recipe = _checksum_of_recipe(planning.plans, planning.kept, " ".join(filter(None, choices)))
        elsewhere = any(planning.datasets[path].layout in ELSEWHERE for path in planning.plans)
        return cls(source_identity(source), place, recipe, elsewhere=elsewhere)

    def write(self, path: Path, nbytes: int, checksum: int, unread: int) -> None:
        """Write the record to the target if the file system has extended attributes."""
        described = replace(self, nbytes=nbytes, checksum=checksum, unread=unread)
        text = json_text({"version": _VERSION, **asdict(described)}).encode()
        with suppress(OSError, AttributeError):  # Python has extended attributes on Linux only
            os.setxattr(path, _NAME, text)

    @classmethod
    def read(cls, path: Path) -> Record | None:
        """Return the record of a file; None if there is no readable one."""
        try:
            text = os.getxattr(path, _NAME)
            entries = json.loads(text[:_MOST_NBYTES])
            if entries.pop("version") != _VERSION:
                return None
            return cls(**entries)
        except (OSError, AttributeError, ValueError, TypeError, KeyError, RecursionError):
            return None

    def describes(self, path: Path) -> bool:
        """Return whether a file is unchanged since it was made; reads the whole file."""
        return (self.nbytes, self.checksum) == size_and_checksum(path)


def source_identity(source: Path) -> dict[str, int]:
    """Return size, times and inode of a file or folder, which show whether it is the same one, unchanged.

    Programs can set `mtime`, but not `ctime`. Times of a folder are the latest of everything in it.
    """
    statuses = [*statuses_of(source)]
    return {
        "nbytes": sum(status.st_size for status in statuses),
        "mtime_ns": max(status.st_mtime_ns for status in statuses),
        "ctime_ns": max(status.st_ctime_ns for status in statuses),
        "inode": source.stat().st_ino,
    }


def _checksum_of_recipe(plans: Mapping[str, Rewrite], kept: Iterable[str], missing: str) -> str:
    """Return a checksum of all plans, without versions of libraries: a proven target stays valid after an update."""
    lines = [f"missing {missing}", *(f"keep {path}" for path in sorted(kept))]
    for path, plan in sorted(plans.items()):
        grows = "may grow" if plan.may_grow else "must not grow"
        filters = plan.requested if plan.pipeline.bound is None else f"{plan.requested} within {plan.pipeline.bound!r}"
        lines.append(f"{path} {filters} {shape_text(plan.chunk_shape)} {plan.dtype.str} {plan.copied} {grows}")
        if plan.required is not None:
            lines.append(f"{path} keeps {plan.required}")
    return _checksum(lines)


def _checksum(lines: Iterable[str]) -> str:
    text = "\n".join(lines).encode("utf-8", "surrogateescape")
    return hashlib.sha256(text).hexdigest()


@dataclass(frozen=True, slots=True)
class Earlier:
    """The state of an existing target."""

    done: bool  # Whether it equals the result of this run
    ours: bool  # Whether tamis made it from the same source, and it has not changed since
    reason: str  # Why it is already done, is made anew, or must not be replaced

    def __str__(self) -> str:
        return f"already done: {self.reason}" if self.done else f"made again: {self.reason}"


def check_target(
    transaction: Transaction, source: Path, record: Record, plans: Mapping[str, Rewrite], options: RepackOptions
) -> Earlier | None:
    """Return the state of an existing target for a run that resumes; allow its replacement if tamis made it."""
    target = transaction.target
    if not target.exists():
        return None
    if target.samefile(source):
        raise FileError(f"{target}: expected a target other than the source, got the same file").at(path=target)
    earlier = look_at(target, source, record, plans, options) if options.resume else None
    if earlier is not None and earlier.ours:
        transaction.replace = True
        return earlier
    if transaction.replace:
        return None
    reason = "" if earlier is None else f", and {earlier.reason}"
    raise FileError(f"{target}: File exists{reason}: choose another name, or replace it (--overwrite)").at(path=target)


def look_at(
    target: Path, source: Path, record: Record, plans: Mapping[str, Rewrite], options: RepackOptions
) -> Earlier:
    """Compare the record of a target with that of this run."""
    old = Record.read(target)
    if old is None:
        return _compare(target, source, plans, options)
    try:
        unchanged = old.describes(target)
    except OSError as error:
        raise FileError(f"{target}: cannot be read: {disk_text(error)}").at(path=target) from error
    if not unchanged:
        return Earlier(False, False, "it was changed after tamis made it")
    same = old.source == record.source
    if same and old.recipe == record.recipe and old.unread:
        return Earlier(False, True, f"the values of {plural(old.unread, 'dataset')} could not be read")
    if same and old.recipe == record.recipe and record.elsewhere:
        compared = _compare(target, source, plans, options)
        changed = Earlier(False, True, "its values are from other files, and these may have changed")
        return compared if compared.done else changed
    if same and old.recipe == record.recipe:
        return Earlier(True, True, f"made from {source} by the same recipe, and both are unchanged since")
    if old.place != record.place and not same:
        return Earlier(False, False, "tamis made it from another file")
    what = "other filters, chunks or options were requested" if same else f"{source} has changed"
    return Earlier(False, True, f"{what} since it was made")


def _compare(target: Path, source: Path, plans: Mapping[str, Rewrite], options: RepackOptions) -> Earlier:
    """Compare the content of a target without a record: the file system stores none, or the file was copied."""
    from tamis.jobs.verify.job import verify

    unknown = Earlier(False, False, "nothing says that tamis made it from this source by this recipe")
    try:
        with open_store(target) as after, open_store(source) as before:
            kept = _kept(after, before, plans, options)
            if kept is None:
                return unknown
            stored = [plan for path, plan in plans.items() if path not in kept]
            if reason := _other_missing(before, after, stored, options):
                return Earlier(False, False, reason)
        if any(_needs_proof(plan) for plan in stored):
            return Earlier(False, False, "nothing records that it meets the requirements")
        allowed = {plan.path: RECORDED if plan.rounding else plan.unpacked_bound for plan in stored}
        bounds: dict[str, Bound] = {path: bound for path, bound in allowed.items() if bound is not None}
        if len(bounds) < len(stored):  # without a bound, values cannot be compared with the source
            return unknown
        if not verify(source, target, bounds={"*": 0.0, **bounds}).ok:
            return unknown
    except TamisError:
        return unknown
    return Earlier(True, True, "it has the filters and chunks of the recipe, and all values are within the bounds")


def _needs_proof(plan: Rewrite) -> bool:
    """Return whether there are requirements that a comparison with the bounds of the filters does not show."""
    bounds = plan.bounds
    return bool(plan.measures) or (bounds is not None and (plan.rounding is not None or bounds.needs_values))


def _kept(after: Store, before: Store, plans: Mapping[str, Rewrite], options: RepackOptions) -> set[str] | None:
    """Return the datasets kept in the target because they would grow; None if other datasets differ."""
    stored = plan_datasets(after, options).plans
    kept = set()
    for path, plan in plans.items():
        if path not in stored:
            return None
        if stored[path].copied:
            continue
        source = before.array(path)
        if not are_stored_alike(source, after.array(path)) or not would_grow(plan, source):
            return None
        kept.add(path)
    return kept


def _other_missing(before: Store, after: Store, plans: Iterable[Rewrite], options: RepackOptions) -> str:
    """Return how a target's treatment of missing values differs from the request; empty if it does not."""
    if options.missing == "exact":
        return ""
    for plan in plans:
        if plan.lossy and not after.array(plan.path).has_companion:
            count = count_missing(plan, before.array(plan.path), lambda *_: None)
            if count.total:
                return f"missing values are kept in {plan.path} itself, and --missing {options.missing} was requested"
    return ""
