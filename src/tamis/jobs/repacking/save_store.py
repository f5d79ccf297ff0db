"""Write the arrays of a store to a new file, as repack does; for stores that are no files, such as a Dataset."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tamis._open import begin
from tamis.errors import FileError
from tamis.jobs.progress import Progress
from tamis.jobs.repacking import RepackResult
from tamis.jobs.repacking.new_target import refuse_missing, write_target
from tamis.jobs.repacking.planning import Request, plan_datasets
from tamis.jobs.repacking.proof import prove
from tamis.jobs.repacking.requiring import refuse_missed, survey_reported
from tamis.jobs.repacking.resuming import Unresumed
from tamis.jobs.repacking.room import check_room
from tamis.store.array import Store
from tamis.store.disk import nbytes_of


def save_store(
    store: Store,
    target: str | os.PathLike[str],
    request: Request,
    *,
    overwrite: bool,
    threads: int,
    report: Progress,
) -> RepackResult:
    """Write a store to a new netCDF-4 file, which gets its name when it is complete and proven.

    Raises
    ------
    FileError
        If the target cannot be written, or exists and `overwrite` is False.
    ParameterError, MissingFilterError, DataError, BoundError
        As `tamis.repack`.
    """
    began, path = time.perf_counter(), Path(os.fsdecode(target))
    with begin(path, overwrite=overwrite) as transaction:
        if path.exists() and not overwrite:
            raise FileError(f"{path}: File exists: choose another name, or replace it: overwrite=True").at(path=path)
        planning = plan_datasets(store, request, survey_reported(report, threads))
        if request.missing == "refuse":
            refuse_missing(planning, report, threads)
        check_room(transaction.path.parent, store, planning.datasets, planning.plans, 0)
        written, unread, notes = write_target(
            store, planning, transaction, Unresumed(), report, threads, history=request.history
        )
        transaction.begin_sync()
        plans = {name: plan for name, plan in planning.plans.items() if name in written}
        datasets = prove(store, planning.datasets, plans, written, transaction, report, threads)
        refuse_missed(planning.plans, datasets)
        transaction.commit()
    return RepackResult(
        store.path,
        os.fspath(path),
        store.nbytes,
        nbytes_of(path),
        datasets,
        (*planning.kept.items(), *unread.items()),
        time.perf_counter() - began,
        (*notes, *transaction.notes),
    )
