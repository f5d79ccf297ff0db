"""Find out whether an existing target is already done, or may be replaced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tamis._open import open_store
from tamis.errors import FileError, TamisError
from tamis.formatting import plural
from tamis.jobs.repacking.planning import Request, plan_datasets
from tamis.jobs.repacking.record import Record
from tamis.jobs.verification.bounds import RECORDED, Bound
from tamis.rewrite.plan import Plan
from tamis.rewrite.streams import are_stored_alike
from tamis.rewrite.surveys.count_missing import count_missing
from tamis.rewrite.write import would_grow
from tamis.store.array import Store
from tamis.store.disk import disk_text
from tamis.store.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Earlier:
    """The state of an existing target.

    Parameters
    ----------
    done
        Whether it is what this run would make.
    ours
        Whether tamis made it from the same source, and it has not changed since.
    reason
        Why it is done already, is made anew, or must not be replaced.
    """

    done: bool
    ours: bool
    reason: str

    def __str__(self) -> str:
        return f"done already: {self.reason}" if self.done else f"made anew: {self.reason}"


def check_target(
    transaction: Transaction, source: Path, record: Record, plans: Mapping[str, Plan], request: Request, *, resume: bool
) -> Earlier | None:
    """Return the state of an existing target for a run that resumes; allow its replacement if tamis made it.

    Returns
    -------
    Earlier or None
        None if there is no target, or it is replaced in any case.

    Raises
    ------
    FileError
        If it must not be replaced.
    """
    target = transaction.target
    if not target.exists():
        return None
    if target.samefile(source):
        raise FileError(f"{target}: expected a target other than the source, got the same file").at(path=target)
    earlier = look_at(target, source, record, plans, request) if resume else None
    if earlier is not None and earlier.ours:
        transaction.replace = True
        return earlier
    if transaction.replace:
        return None
    reason = "" if earlier is None else f", and {earlier.reason}"
    raise FileError(f"{target}: File exists{reason}: choose another name, or replace it (--overwrite)").at(path=target)


def look_at(target: Path, source: Path, record: Record, plans: Mapping[str, Plan], request: Request) -> Earlier:
    """Compare the record of a target with that of this run.

    Raises
    ------
    FileError
        If the target cannot be read.
    """
    old = Record.read(target)
    if old is None:
        return _compare(target, source, plans, request)
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
        compared = _compare(target, source, plans, request)
        changed = Earlier(False, True, "its values are from other files, and these may have changed")
        return compared if compared.done else changed
    if same and old.recipe == record.recipe:
        return Earlier(True, True, f"made from {source} by the same recipe, and both are unchanged since")
    if old.place != record.place and not same:
        return Earlier(False, False, "tamis made it from another file")
    what = "other filters, chunks or options were asked for" if same else f"{source} has changed"
    return Earlier(False, True, f"{what} since it was made")


def _compare(target: Path, source: Path, plans: Mapping[str, Plan], request: Request) -> Earlier:
    """Compare the content of a target without a record: the file system stores none, or the file was copied."""
    from tamis.jobs.verify import verify

    unknown = Earlier(False, False, "nothing says that tamis made it from this source by this recipe")
    try:
        with open_store(target) as after, open_store(source) as before:
            kept = _kept(after, before, plans, request)
            if kept is None:
                return unknown
            stored = [plan for path, plan in plans.items() if path not in kept]
            if reason := _other_missing(before, after, stored, request):
                return Earlier(False, False, reason)
        if any(_needs_proof(plan) for plan in stored):
            return Earlier(False, False, "nothing records that it keeps what is required")
        allowed = {plan.path: RECORDED if plan.rounding else plan.unpacked_bound for plan in stored}
        bounds: dict[str, Bound] = {path: bound for path, bound in allowed.items() if bound is not None}
        if len(bounds) < len(stored):  # without a bound, values cannot be compared with the source
            return unknown
        if not verify(source, target, bounds={"*": 0.0, **bounds}).ok:
            return unknown
    except TamisError:
        return unknown
    return Earlier(True, True, "it has the filters and chunks of the recipe, and all values are within the bounds")


def _needs_proof(plan: Plan) -> bool:
    """Return whether something is required that a comparison with the bounds of the filters does not show."""
    bounds = plan.bounds
    return bool(plan.measures) or (bounds is not None and (plan.rounding is not None or bounds.needs_values))


def _kept(after: Store, before: Store, plans: Mapping[str, Plan], request: Request) -> set[str] | None:
    """Return the datasets that are kept in the target because they would grow; None if other datasets differ."""
    stored = plan_datasets(after, request).plans
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


def _other_missing(before: Store, after: Store, plans: Iterable[Plan], request: Request) -> str:
    """Return how a target treats missing values in another way than requested; empty if it does not."""
    if request.missing == "exact":
        return ""
    for plan in plans:
        if plan.lossy and not after.array(plan.path).has_companion:
            count = count_missing(plan, before.array(plan.path), lambda *_: None)
            if count.total:
                return f"missing values are kept in {plan.path} itself, and --missing {request.missing} was asked for"
    return ""
