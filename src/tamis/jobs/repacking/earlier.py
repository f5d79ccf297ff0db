"""Whether a target that exists is what a run would make, or may be replaced by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tamis._open import open_store
from tamis.errors import FileError, TamisError
from tamis.formatting import plural
from tamis.hdf5.store import Hdf5Store
from tamis.jobs.repacking.planning import Wanted, plan_datasets
from tamis.jobs.repacking.record import Record
from tamis.rewrite.count_missing import count_missing
from tamis.rewrite.identical import are_stored_alike
from tamis.rewrite.plan import Plan
from tamis.rewrite.write import would_grow
from tamis.store.disk import disk_text
from tamis.store.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Earlier:
    """What a target that exists is.

    Parameters
    ----------
    done
        Whether it is what this run would make.
    ours
        Whether a run from the same source made it, and nothing changed it since.
    reason
        Why it is done already, is made anew, or is not to be replaced.
    """

    done: bool
    ours: bool
    reason: str

    def __str__(self) -> str:
        """Say what becomes of the target."""
        return f"done already: {self.reason}" if self.done else f"made anew: {self.reason}"


def check_target(
    transaction: Transaction, source: Path, record: Record, plans: Mapping[str, Plan], wanted: Wanted, *, resume: bool
) -> Earlier | None:
    """Say what a target that exists is to a run that resumes, and let it be replaced where tamis made it.

    Returns
    -------
    Earlier or None
        None where there is no target, or it is replaced whatever it is.

    Raises
    ------
    FileError
        If it may not be replaced.
    """
    target = transaction.target
    if not target.exists():
        return None
    if target.samefile(source):
        raise FileError(f"{target}: expected a target other than the source, got the same file").at(path=target)
    earlier = look_at(target, source, record, plans, wanted) if resume else None
    if earlier is not None and earlier.ours:
        transaction.replace = True
        return earlier
    if transaction.replace:
        return None
    reason = "" if earlier is None else f", and {earlier.reason}"
    raise FileError(f"{target}: File exists{reason}: choose another name, or replace it (--overwrite)").at(path=target)


def look_at(target: Path, source: Path, record: Record, plans: Mapping[str, Plan], wanted: Wanted) -> Earlier:
    """Compare the record of a target with that of a run.

    Parameters
    ----------
    target, source, plans, wanted
        Of the run.
    record
        Of the run, as `Record.of` gives it.

    Raises
    ------
    FileError
        If the target cannot be read.
    """
    found = Record.read(target)
    if found is None:
        return _compare(target, source, plans, wanted)
    try:
        unchanged = found.describes(target)
    except OSError as error:
        raise FileError(f"{target}: cannot be read: {disk_text(error)}").at(path=target) from error
    if not unchanged:
        return Earlier(False, False, "it was changed after tamis made it")
    same = found.source == record.source
    if same and found.recipe == record.recipe and found.unread:
        return Earlier(False, True, f"the values of {plural(found.unread, 'dataset')} could not be read")
    if same and found.recipe == record.recipe and record.elsewhere:
        compared = _compare(target, source, plans, wanted)
        changed = Earlier(False, True, "its values are from other files, and these may have changed")
        return compared if compared.done else changed
    if same and found.recipe == record.recipe:
        return Earlier(True, True, f"made from {source} by the same recipe, and both are unchanged since")
    if found.place != record.place and not same:
        return Earlier(False, False, "tamis made it from another file")
    what = "other filters, chunks or options were asked for" if same else f"{source} has changed"
    return Earlier(False, True, f"{what} since it was made")


def _compare(target: Path, source: Path, plans: Mapping[str, Plan], wanted: Wanted) -> Earlier:
    """Look at what is in a target without a record, as where its file system keeps none, or it came by a copy."""
    from tamis.jobs.verify import verify

    unknown = Earlier(False, False, "nothing says that tamis made it from this source by this recipe")
    try:
        with open_store(target) as after, open_store(source) as before:
            kept = _kept(after, before, plans, wanted)
            if kept is None:
                return unknown
            stored = [plan for path, plan in plans.items() if path not in kept]
            if reason := _other_missing(before, after, stored, wanted):
                return Earlier(False, False, reason)
        bounds = {plan.path: plan.unpacked_bound for plan in stored if plan.unpacked_bound is not None}
        if len(bounds) < len(stored):  # no comparison can tell whether such values are of this source
            return unknown
        if not verify(source, target, bounds={"*": 0.0, **bounds}).ok:
            return unknown
    except TamisError:
        return unknown
    return Earlier(True, True, "it has the filters and chunks of the recipe, and all values are within the bounds")


def _kept(after: Hdf5Store, before: Hdf5Store, plans: Mapping[str, Plan], wanted: Wanted) -> set[str] | None:
    """Find the datasets that a target has as the source has them, since they would grow; None if others differ."""
    stored = plan_datasets(after, wanted).plans
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


def _other_missing(before: Hdf5Store, after: Hdf5Store, plans: Iterable[Plan], wanted: Wanted) -> str:
    """Return what a target does about missing values that was not asked for; empty where it does what was."""
    if wanted.missing == "exact":
        return ""
    for plan in plans:
        if plan.lossy and not after.array(plan.path).has_companion:
            count = count_missing(plan, before.array(plan.path), lambda *_: None)
            if count.total:
                return f"missing values are kept in {plan.path} itself, and --missing {wanted.missing} was asked for"
    return ""
