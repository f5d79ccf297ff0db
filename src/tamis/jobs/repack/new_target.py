"""Write the arrays of a store to a new target by their plans; first count missing values if none are allowed."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tamis.errors import BoundError, DataError, FileError, TamisError
from tamis.formatting import size_text
from tamis.jobs.progress import Progress, Step
from tamis.jobs.repack.notes import GROWN, history_line
from tamis.jobs.repack.planning import Planning, replaced_companions
from tamis.jobs.repack.requiring import refuse_missed_early
from tamis.rewrite.growth import LargerError, likely_nbytes, most_nbytes, unreadable
from tamis.rewrite.streams import carry, carry_flags
from tamis.rewrite.surveys import count_missing
from tamis.rewrite.transfer import Changes
from tamis.rewrite.write import would_grow, write
from tamis.safety.disk import nbytes_of, size_and_checksum
from tamis.safety.library_errors import disk_text, is_disk_full, reading
from tamis.stores.first_bytes import is_classic
from tamis.stores.protocols import ArrayWriter, CopyInsteadError, Store, StoredArray

if TYPE_CHECKING:
    from tamis.jobs.repack.options import RepackOptions
    from tamis.jobs.repack.resuming import Resuming, Unresumed
    from tamis.rewrite.rewrite import Create, Rewrite, Written
    from tamis.safety.transaction import Transaction


def growth_of(store: Store, transaction: Transaction) -> str:
    """Return how a classic file has grown in a written target; empty if it has not, or for another target."""
    if not (is_classic(store.path) and transaction.path.is_file()):
        return ""
    before, after = nbytes_of(store.path), nbytes_of(transaction.path)
    return f"{size_text(after)} instead of {size_text(before)}" if after > before else ""


def copy_as_it_is(store: Store, transaction: Transaction) -> None:
    """Replace a written target by the bytes of its source."""
    shutil.copyfile(store.path, transaction.path)
    transaction.begin_sync()
    if transaction.finish_sync() != size_and_checksum(Path(store.path)):
        raise BoundError(
            f"{transaction.target}: expected the bytes of {store.path}, found different ones: run it again"
        ).at(path=transaction.target)


def check_room(
    folder: Path, source: Store, arrays: Mapping[str, StoredArray], plans: Mapping[str, Rewrite], removable_nbytes: int
) -> None:
    """Check that a folder has space for the target; its size is only estimated by encoding if space could be short.

    `removable_nbytes` are the bytes of interrupted runs that this run removes before it writes.
    """
    free = shutil.disk_usage(folder).free + removable_nbytes
    replaced = most = 0
    for path, plan in plans.items():
        with reading(source.path, dataset=path):
            replaced, most = replaced + arrays[path].stored_nbytes, most + most_nbytes(plan, arrays[path])
    others = max(source.nbytes - replaced, 0)
    if free >= others + most:
        return
    likely = others + sum(likely_nbytes(plan, arrays[path]) for path, plan in plans.items())
    if free < likely:
        raise FileError(
            f"{folder}: No space left: expected about {size_text(likely)} of free space, found {size_text(free)}: make"
            " room, or write to another folder"
        ).at(path=folder)


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
    options: RepackOptions,
) -> tuple[dict[str, Written], dict[str, str], list[str]]:
    """Write the target, and return the result.

    Returns results by path, reasons of unreadable datasets, and notes about other files.
    """
    plans, form = planning.plans, planning.form
    assert form is not None
    by_objects, threads = form.copies_objects_of(store), options.threads
    count = sum(not plan.copied for plan in plans.values())
    written: dict[str, Written] = {}
    carried: dict[str, ArrayWriter | None] = {}
    unread: dict[str, str] = {}

    def recreate(plan: Rewrite, source: StoredArray, create: Create) -> None:
        if plan.copied:
            carried[plan.path] = carry(plan, source, create)
            return
        created: list[ArrayWriter] = []

        def create_noted(plan: Rewrite) -> ArrayWriter:
            created.append(create(plan))
            return created[-1]

        carries_flags = plan.streams_kept and not by_objects
        make = create_noted if carries_flags else create
        resumed = resuming.chunks(plan, plan.grid(source))
        step = Step(f"writing {plan.path}", len(written) + 1, count)
        try:
            with reading(store.path, dataset=plan.path, only_damage=True):
                written[plan.path] = write(plan, source, make, partial(report, step), threads, resumed)
        except LargerError:
            planning.kept[plan.path] = GROWN
            raise CopyInsteadError from None
        except (TamisError, OSError, RuntimeError) as error:
            # A dataset with a companion cannot be kept: the companion may already be gone from the target.
            if plan.path in planning.exact or is_disk_full(error) or source.has_companion:
                raise
            if not (reason := unreadable(plan, source)):
                raise
            unread[plan.path] = f"its values cannot be read, so its bytes are kept, even damaged ones: {reason}"
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
        command = options.history
        return history_line(command, plans, written, planning.datasets) if command else ""

    resuming.begin()
    try:
        anew = {path: partial(recreate, plan) for path, plan in plans.items() if not (plan.copied and by_objects)}
        old = replaced_companions(planning.datasets, plans)
        notes = form.copy(store, transaction, Changes(anew, companions, old, line, planning.dropped), threads)
    except (TamisError, OSError, RuntimeError) as error:  # HDF5 reports a full disk as either of these
        if isinstance(error, TamisError) and not is_disk_full(error):
            raise
        text = f"{transaction.target}: cannot be written: {disk_text(error)}"
        raise FileError(text).at(path=transaction.target) from error
    return written, unread, notes
