"""Every dataset of a target read again and compared with its source, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.errors import located
from tamis.formatting import plural
from tamis.hdf5.companions import Companion, companion_of
from tamis.hdf5.facts import open_dataset
from tamis.hdf5.lib.damage import reading
from tamis.hdf5.lib.source_file import open_source
from tamis.hdf5.rewriting import Plan, Written, count_partial, verify, verify_copied
from tamis.jobs.progress import Progress, Step
from tamis.jobs.repacking import Repacked
from tamis.jobs.repacking.notes import written_notes
from tamis.pipeline import Pipeline
from tamis.store.transaction import Transaction

if TYPE_CHECKING:
    import h5py


def prove(
    file: h5py.File,
    plans: Mapping[str, Plan],
    written: Mapping[str, Written],
    transaction: Transaction,
    report: Progress,
    threads: int,
) -> tuple[Repacked, ...]:
    """Compare all datasets of a target that is written with those of the source.

    Raises
    ------
    BoundError
        If a dataset is not as planned.
    """
    done = []
    with open_source(transaction.path) as out:
        together = f"verifying {plural(len(plans), 'dataset')}"
        for number, (path, plan) in enumerate(plans.items(), 1):
            step = Step(f"verifying {path}", number, len(plans), together)
            with located(path=transaction.target), reading(file.filename, out.filename, dataset=path):
                before, after = open_dataset(file, path), open_dataset(out, path)
                if plan.copied:
                    done.append(_copied(plan, before, after, report, step, threads))
                else:
                    done.append(_result(plan, before, after, written[path], partial(report, step), threads))
    return tuple(done)


def _copied(
    plan: Plan, source: h5py.Dataset, target: h5py.Dataset, report: Progress, step: Step, threads: int
) -> Repacked:
    chunks = verify_copied(plan, source, target, partial(report, step), threads)
    before, after = companion_of(source), companion_of(target)
    if before and after:
        # Its values, since a recipe may be for it, and any program may have stored it anew.
        name = str(after.dataset.name)
        flags = Plan(name, Pipeline(), np.dtype(np.uint8), plan.chunks)
        verify(flags, before.dataset, after.dataset, partial(report, step), threads)
    return Repacked(
        path=plan.path,
        pipeline=str(plan.pipeline),
        nbytes=source.size * source.id.get_type().get_size(),
        source_nbytes=source.id.get_storage_size(),
        target_nbytes=target.id.get_storage_size(),
        bound=plan.unpacked_bound,
        largest_error=0.0,
        chunks=len(chunks),
        lossless_chunks=sum(plan.pipeline.zfp is not None and mask & 1 for mask in chunks),
        notes=plan.notes,
        chunk_shape=plan.chunks,
        copied=True,
        packing=plan.packing,
        **_companion(after),
    )


def _result(
    plan: Plan,
    source: h5py.Dataset,
    target: h5py.Dataset,
    written: Written,
    progress: Callable[[int, int], None],
    threads: int,
) -> Repacked:
    verified = verify(plan, source, target, progress, threads, written)
    companion, partial_count = companion_of(target), count_partial(plan, target)
    return Repacked(
        path=plan.path,
        pipeline=str(plan.pipeline),
        nbytes=source.size * source.id.get_type().get_size(),
        source_nbytes=source.id.get_storage_size(),
        target_nbytes=target.id.get_storage_size(),
        bound=plan.unpacked_bound,
        largest_error=plan.in_units(verified.largest_error),
        chunks=written.chunks,
        lossless_chunks=written.lossless_chunks,
        notes=plan.notes + written_notes(plan, source, target, written, partial_count),
        chunk_shape=plan.chunks,
        missing_values=written.missing_values,
        lossless_for_missing=written.lossless_for_missing,
        read_by_hdf5=verified.read_by_hdf5,
        reused_chunks=written.reused,
        lossless_for_range=written.lossless_for_range,
        lossless_for_growth=partial_count,
        packing=plan.packing,
        **_companion(companion),
    )


def _companion(found: Companion | None) -> dict[str, Any]:
    if found is None:
        return {}
    return {"companion": found.dataset.name, "companion_nbytes": found.dataset.id.get_storage_size()}
