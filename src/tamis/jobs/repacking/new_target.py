"""Write the arrays of a store to a new target by their plans, and count missing values before if none are allowed."""

from __future__ import annotations

from functools import partial

from tamis._open import copy_store, is_copied_by_objects
from tamis.errors import DataError, FileError, TamisError
from tamis.hdf5.lib.damage import reading
from tamis.jobs.progress import Progress, Step
from tamis.jobs.repacking.history_line import history_line
from tamis.jobs.repacking.notes import GROWN
from tamis.jobs.repacking.planning import Planning, replaced_companions
from tamis.jobs.repacking.requiring import refuse_missed_early
from tamis.jobs.repacking.resuming import Resuming, Unresumed
from tamis.rewrite.growth import LargerError
from tamis.rewrite.plan import Create, Plan, Written
from tamis.rewrite.sampled.estimate import unreadable
from tamis.rewrite.streams import carry, carry_flags
from tamis.rewrite.surveys.count_missing import count_missing
from tamis.rewrite.write import would_grow, write
from tamis.store.array import ArrayWriter, CopyInsteadError, Store, StoredArray
from tamis.store.disk import disk_text, is_disk_full
from tamis.store.transaction import Transaction


def refuse_missing(planning: Planning, report: Progress, threads: int) -> None:
    """Raise DataError if lossy filters would get missing values."""
    refused = []
    lossy = [plan for plan in planning.plans.values() if plan.lossy]
    for number, plan in enumerate(lossy, 1):
        step = Step(f"counting missing values of {plan.path}", number, len(lossy))
        try:
            count = count_missing(plan, planning.datasets[plan.path], partial(report, step), threads)
        except FileError:
            if plan.path in planning.exact:
                raise
            continue  # repack keeps it
        source = planning.datasets[plan.path]
        if count.total and not would_grow(plan, source):
            refused.append(f"{plan.path}: {count.total} of {source.size} ({count})")
    if refused:
        raise DataError(
            f"expected no missing values, found {'; '.join(refused)}: keep each of them as it is (--missing exact)"
        )


def write_target(
    store: Store,
    planning: Planning,
    transaction: Transaction,
    resuming: Resuming | Unresumed,
    report: Progress,
    threads: int,
    *,
    history: str = "",
) -> tuple[dict[str, Written], dict[str, str], list[str]]:
    """Write the target, with a line of history if that has the name of a command.

    Returns results by path, reasons of unreadable datasets, and notes about other files.
    """
    plans, by_objects = planning.plans, is_copied_by_objects(store, transaction)
    count = sum(not plan.copied for plan in plans.values())
    written: dict[str, Written] = {}
    carried: dict[str, ArrayWriter | None] = {}
    unread: dict[str, str] = {}

    def recreate(plan: Plan, source: StoredArray, create: Create) -> None:
        if plan.copied:
            carried[plan.path] = carry(plan, source, create)
            return
        created: list[ArrayWriter] = []

        def create_noted(plan: Plan) -> ArrayWriter:
            created.append(create(plan))
            return created[-1]

        carries_flags = plan.streams_kept and not by_objects
        make = create_noted if carries_flags else create
        history = resuming.history(plan, plan.grid(source))
        step = Step(f"writing {plan.path}", len(written) + 1, count)
        try:
            with reading(store.path, dataset=plan.path, only_damage=True):
                written[plan.path] = write(plan, source, make, partial(report, step), threads, history)
        except LargerError:
            planning.kept[plan.path] = GROWN
            raise CopyInsteadError from None
        except (TamisError, OSError, RuntimeError) as error:
            # A dataset with a companion cannot be kept: the companion may be gone from the target already.
            if plan.path in planning.exact or is_disk_full(error) or source.has_companion:
                raise
            if not (reason := unreadable(plan, source)):
                raise
            unread[plan.path] = f"its values cannot be read, so that its bytes are kept, damaged ones too: {reason}"
            raise CopyInsteadError from None
        refuse_missed_early(plan, source, written[plan.path])
        if carries_flags:
            carried[plan.path] = carry_flags(source, created[-1])
        resuming.flush()

    def companions() -> dict[str, ArrayWriter | None]:
        new = carried | {path: result.companion for path, result in written.items() if plans[path].recoded}
        marked = set(planning.datasets.marked())
        return {path: companion for path, companion in new.items() if companion or path in marked}

    def line() -> str:
        return history_line(history, plans, written, planning.datasets) if history else ""

    resuming.begin()
    try:
        anew = {path: partial(recreate, plan) for path, plan in plans.items() if not (plan.copied and by_objects)}
        old = replaced_companions(planning.datasets, plans)
        notes = copy_store(store, transaction, anew, old, companions, threads, line, planning.dropped)
    except (TamisError, OSError, RuntimeError) as error:  # HDF5 reports a full disk as either of these
        if isinstance(error, TamisError) and not is_disk_full(error):
            raise
        text = f"{transaction.target}: cannot be written: {disk_text(error)}"
        raise FileError(text).at(path=transaction.target) from error
    return written, unread, notes
