"""Copy a file and store some of its datasets through other filters, with proof that the bound is kept."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tamis._open import open_store
from tamis.chunks.threads import checked_threads
from tamis.errors import BoundError, DataError, FileError, ParameterError, TamisError
from tamis.filters import Filter
from tamis.hdf5.lib.damage import reading
from tamis.hdf5.store import Create, Hdf5Store
from tamis.hdf5.stored_array import Hdf5Array
from tamis.hdf5.tree.copy import CopyInsteadError
from tamis.jobs.progress import Progress, Step
from tamis.jobs.recipe import Recipes, chunk_shape, least_nbytes
from tamis.jobs.repacking import Repacked, RepackPreview, RepackResult
from tamis.jobs.repacking.earlier import check_target
from tamis.jobs.repacking.notes import GROWN
from tamis.jobs.repacking.planning import (
    POLICIES,
    MissingPolicy,
    Planning,
    Wanted,
    describe,
    plan_datasets,
    replaced_companions,
)
from tamis.jobs.repacking.proof import prove
from tamis.jobs.repacking.record import Record
from tamis.jobs.repacking.resuming import Resuming, interrupted, remove_leftovers
from tamis.jobs.repacking.room import check_room
from tamis.pipeline import as_pipeline
from tamis.rewrite.count_missing import count_missing
from tamis.rewrite.estimate import unreadable
from tamis.rewrite.growth import LargerError
from tamis.rewrite.plan import Plan, Written
from tamis.rewrite.write import would_grow, write
from tamis.store.array import ArrayWriter
from tamis.store.disk import disk_text, is_disk_full
from tamis.store.transaction import Transaction

__all__ = ["Progress", "RepackResult", "Repacked", "preview_repack", "repack"]


def repack(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    recipes: Recipes,
    *,
    chunks: Mapping[str, tuple[int, ...]] | None = None,
    checksum: bool = True,
    overwrite: bool = False,
    missing: MissingPolicy = "exact",
    threads: int | None = None,
    resume: bool = False,
    follow: bool = False,
    min_size: int | None = None,
    larger: bool = False,
    progress: Progress | None = None,
) -> RepackResult:
    """Copy an HDF5 or netCDF-4 file, with other filters on some of its datasets.

    Groups, attributes, dimension scales, links and all other datasets are copied as they are, and so are the chunks of
    datasets that are stored through the wanted filters already. Every encoded chunk is decoded again and compared with
    the source, value by value, and the file is seen to hold these bytes, before the target gets its name; until then
    the name holds what it held before. A chunk that zfp cannot store within the bound, because of missing values, NaN
    or infinities, is stored by the rest of its pipeline, without loss, and any reader with a ZFP plugin reads it.

    Parameters
    ----------
    source, target
        Paths of two different files.
    recipes
        Filters by dataset name or pattern: a `Pipeline`, a filter, or its text. A name holds over patterns, and of
        several patterns the first that fits. A dataset matched by a pattern that cannot take the filters is kept as it
        is and listed; so is one whose values cannot be read, with its bytes as they are, and so are coordinates,
        bounds, flags, integers and the like if the filters are lossy: see docs/metadata.md. An accuracy is in units of
        the variable: of unpacked values where ``scale_factor`` is there.
    chunks
        Chunk shapes, slowest axis first, by name or pattern; by default a dataset keeps its own. A dataset that is
        named and has no recipe keeps its filters. A pattern is for datasets that get filters, unless there are no
        recipes.
    checksum
        Add fletcher32 to pipelines with zfp that have none, so that damage cannot go unseen.
    overwrite
        Replace a target that exists.
    missing
        What to do about missing values, which are NaN, infinities, the values of the attributes ``_FillValue`` and
        ``missing_value``, and a fill value other than 0. ``"exact"`` keeps each of them bit by bit. ``"companion"``
        fills the gaps from beside them, so that zfp takes every chunk, and says in another dataset where they are and
        which. `tamis.open` puts them back; every other reader takes the filling for valid values: see docs/missing.md.
        ``"refuse"`` raises if lossy filters would get any.
    threads
        Threads; as many as the process may use by default. The target does not depend on it.
    resume
        Do what earlier runs for the same target left to do, so that the same call may be repeated. A target that such a
        run made of this source by these recipes is left as it is, and the result says `done_already`. Chunks that an
        interrupted run encoded are taken over, and the target gets the bytes of a run that was not interrupted. Where
        source or recipes changed, the target is made anew, and the notes of the result say why. A target that tamis
        did not make of this source is refused unless `overwrite` is given. An interrupted run keeps what it encoded.
        Without `resume`, what interrupted runs left is removed.
    follow
        Let patterns store the values of virtual datasets and external raw files in the target, too. Otherwise patterns
        leave them in the files that they name, which are not opened.
    min_size
        Bytes of values below which a pattern leaves a dataset as it is; by default 4096 where it has no chunks yet,
        whose index would take more than filters save, and 0 where it has some.
    larger
        Store datasets that a pattern matches even if they then take more room than in the source. Otherwise these are
        kept as they are and listed; one that is named is stored in any case, and a note says that it grew.
    progress
        Called before the first and after each chunk, with what is done to which dataset (`tamis.jobs.progress.Step`),
        chunks done so far, and chunks in all.

    Returns
    -------
    RepackResult
        Sizes, errors and times.

    Raises
    ------
    FileError
        If a file cannot be read or written, exists already, a name matches nothing, there is no room for the target, or
        the run to resume still writes.
    ParameterError
        If a dataset cannot take its filters or chunks.
    DataError
        If there are missing values, which were to be refused.
    BoundError
        If what was encoded, decoded again, differs by more than allowed, or the target holds other bytes; it is
        removed.
    """
    began = time.perf_counter()
    source, target = Path(os.fsdecode(source)), Path(os.fsdecode(target))
    wanted = _wanted(recipes, chunks, checksum, missing, follow, min_size, larger)
    threads = checked_threads(threads)
    report = progress or (lambda *_: None)
    notes: list[str] = []
    done = _Done()
    with (
        open_store(source) as store,
        reading(source, only_damage=True),
        Transaction(target, overwrite=overwrite) as transaction,
    ):
        planning = plan_datasets(store, wanted)
        record = Record.of(source, planning, missing)
        earlier = check_target(transaction, source, record, planning.plans, wanted, resume=resume)
        if earlier is not None:
            notes.append(f"{target}: {earlier}")
        if earlier is not None and earlier.done:
            notes += remove_leftovers(transaction)
        else:
            if missing == "refuse":
                _refuse_missing(planning, report, threads)
            done = _run(store, planning, record, transaction, report, threads, resume=resume)
    return RepackResult(
        os.fspath(source),
        os.fspath(target),
        source.stat().st_size,
        target.stat().st_size,
        done.datasets,
        (*planning.kept.items(), *done.unread.items()),
        time.perf_counter() - began,
        (*notes, *done.notes, *transaction.notes),
        tuple(done.unread),
        earlier is not None and earlier.done,
    )


def preview_repack(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    recipes: Recipes,
    *,
    chunks: Mapping[str, tuple[int, ...]] | None = None,
    checksum: bool = True,
    missing: MissingPolicy = "exact",
    resume: bool = False,
    follow: bool = False,
    min_size: int | None = None,
    larger: bool = False,
) -> RepackPreview:
    """Say what `repack` would do to each dataset, and write nothing.

    It raises what `repack` raises before it writes, except where that is about the target or about values.

    Parameters
    ----------
    source, target, recipes, chunks, checksum, missing, follow, min_size,
    larger
        As for `repack`. Whether a dataset would grow is only known when it is encoded.
    resume
        Say also what could be taken over from a run that was interrupted.
    """
    source, target = Path(os.fsdecode(source)), Path(os.fsdecode(target))
    wanted = _wanted(recipes, chunks, checksum, missing, follow, min_size, larger)
    with open_store(source) as store, reading(source):
        planning = plan_datasets(store, wanted)
        found = describe(planning)
        notes = store.survey_other_files(os.fspath(target))
        if not resume:
            return RepackPreview(os.fspath(source), os.fspath(target), found, (*interrupted(target), *notes))
        transaction = Transaction(target)
        record = Record.of(source, planning, missing)
        if (earlier := check_target(transaction, source, record, planning.plans, wanted, resume=True)) and earlier.done:
            return RepackPreview(os.fspath(source), os.fspath(target), found, (f"{target}: {earlier}",))
        with Resuming(transaction, source, planning.plans, wanted=True) as resuming:
            found = tuple(replace(each, reusable_chunks=resuming.reusable(each.path)) for each in found)
            return RepackPreview(os.fspath(source), os.fspath(target), found, (*resuming.notes, *notes))


def _wanted(
    recipes: Recipes,
    chunks: Mapping[str, tuple[int, ...]] | None,
    checksum: bool,
    missing: MissingPolicy,
    follow: bool,
    min_size: int | None,
    larger: bool,
) -> Wanted:
    if missing not in POLICIES:
        raise ParameterError(f"expected missing to be one of {', '.join(POLICIES)}, got {missing!r}")
    if not isinstance(recipes, Mapping) or isinstance(recipes, Filter) or not (recipes or chunks):
        raise ParameterError(f"expected at least one recipe such as {{'TS': 'zfp(accuracy=0.1)'}}, got {recipes!r}")
    if not isinstance(chunks or {}, Mapping) or not all(isinstance(name, str) for name in (*recipes, *(chunks or {}))):
        raise ParameterError(f"expected names as text, got {[*recipes]!r} and chunks {chunks!r}")
    pipelines = {name: as_pipeline(value) for name, value in recipes.items()}
    shapes = {name: chunk_shape(value) for name, value in (chunks or {}).items()}
    return Wanted(pipelines, shapes, checksum, missing, follow, least_nbytes(min_size), larger)


class _Done(NamedTuple):
    """What a run did: to datasets, which it could not read and why, and what else there is to know."""

    datasets: tuple[Repacked, ...] = ()
    unread: Mapping[str, str] = {}
    notes: tuple[str, ...] = ()


def _run(
    store: Hdf5Store,
    planning: Planning,
    record: Record,
    transaction: Transaction,
    report: Progress,
    threads: int,
    *,
    resume: bool,
) -> _Done:
    """Write, verify and commit the target."""
    source = Path(store.path)
    with Resuming(transaction, source, planning.plans, wanted=resume) as resuming:
        check_room(transaction.path.parent, source, planning.datasets, planning.plans, resuming.removable_nbytes)
        written, unread, notes = _write(store, planning, transaction, resuming, report, threads)
        transaction.begin_sync()
        stored = {path: plan for path, plan in planning.plans.items() if plan.copied or path in written}
        try:
            done = prove(planning.datasets, stored, written, transaction, report, threads)
        except BoundError as error:
            if not any(each.reused for each in written.values()):
                raise
            stale = f"what an interrupted run left is not of {source} as it is now; all is encoded anew: {error}"
        else:
            record.write(transaction.path, *transaction.finish_sync(), len(unread))
            transaction.commit()
            resuming.finish()
            return _Done(done, unread, (*resuming.notes, *notes))
    transaction.discard()
    again = _run(store, planning, record, transaction, report, threads, resume=False)
    return again._replace(notes=(stale, *again.notes))


def _refuse_missing(planning: Planning, report: Progress, threads: int) -> None:
    found = []
    lossy = [plan for plan in planning.plans.values() if plan.lossy]
    for number, plan in enumerate(lossy, 1):
        step = Step(f"counting missing values of {plan.path}", number, len(lossy))
        try:
            count = count_missing(plan, planning.datasets[plan.path], partial(report, step), threads)
        except FileError:
            if plan.path in planning.exact:
                raise
            continue  # kept as it is
        source = planning.datasets[plan.path]
        if count.total and not would_grow(plan, source):
            found.append(f"{plan.path}: {count.total} of {source.size} ({count})")
    if found:
        raise DataError(
            f"expected no missing values, found {'; '.join(found)}: keep each of them as it is (--missing exact)"
        )


def _write(
    store: Hdf5Store,
    planning: Planning,
    transaction: Transaction,
    resuming: Resuming,
    report: Progress,
    threads: int,
) -> tuple[dict[str, Written], dict[str, str], list[str]]:
    """Write the target; also say why datasets cannot be read, and which names of other files changed."""
    plans = planning.plans
    count = sum(not plan.copied for plan in plans.values())
    written: dict[str, Written] = {}
    unread: dict[str, str] = {}

    def recreate(plan: Plan, source: Hdf5Array, create: Create) -> None:
        history = resuming.history(plan, plan.grid(source))
        step = Step(f"writing {plan.path}", len(written) + 1, count)
        try:
            with reading(store.path, dataset=plan.path, only_damage=True):
                written[plan.path] = write(plan, source, create, partial(report, step), threads, history)
        except LargerError:
            planning.kept[plan.path] = GROWN
            raise CopyInsteadError from None
        except (TamisError, OSError, RuntimeError) as error:
            # Its companion, if it has one, may be gone from the target already.
            if plan.path in planning.exact or is_disk_full(error) or source.has_companion:
                raise
            if not (reason := unreadable(plan, source)):
                raise
            unread[plan.path] = f"its values cannot be read, so that its bytes are kept, damaged ones too: {reason}"
            raise CopyInsteadError from None
        resuming.flush()

    def companions() -> dict[str, ArrayWriter | None]:
        new = {path: result.companion for path, result in written.items() if plans[path].recoded}
        marked = set(planning.datasets.marked())
        return {path: companion for path, companion in new.items() if companion or path in marked}

    resuming.begin()
    try:
        anew = {path: partial(recreate, plan) for path, plan in plans.items() if not plan.copied}
        old = replaced_companions(planning.datasets, plans)
        notes = store.copy_to(transaction.path, anew, old, companions, transaction.protect)
    except (TamisError, OSError, RuntimeError) as error:  # HDF5 reports a full disk as either of these
        if isinstance(error, TamisError) and not is_disk_full(error):
            raise
        text = f"{transaction.target}: cannot be written: {disk_text(error)}"
        raise FileError(text).at(path=transaction.target) from error
    return written, unread, notes
