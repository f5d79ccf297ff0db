"""Read every dataset of a target again, compare it with its source, and return the results."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.accuracy.fields import FIELD_WORDS
from tamis.errors import BoundError, located
from tamis.formats.registry import open_store
from tamis.formatting import plural
from tamis.jobs.progress import Progress, Step
from tamis.jobs.repack.notes import measures_note, planned_notes, recorded_filters, written_notes
from tamis.jobs.repack.planning import Planning, replaced_companions
from tamis.jobs.repack.result import DatasetPreview, Repacked
from tamis.pipeline import Pipeline
from tamis.rewrite.prove import Verified, verify, verify_copied, verify_kept
from tamis.rewrite.rewrite import Rewrite, Written
from tamis.rewrite.surveys import count_partial, measured_fields
from tamis.rewrite.witness import SmallArrays
from tamis.safety.library_errors import reading

if TYPE_CHECKING:
    from tamis.safety.transaction import Transaction
    from tamis.stores.protocols import Store, StoreComparison, StoredArray


def describe(planning: Planning) -> tuple[DatasetPreview, ...]:
    """Return a preview of each dataset of a file."""
    plans = planning.plans
    dropped = {
        path: f"it is the companion of {variable}, which is rewritten"
        for path, variable in replaced_companions(planning.datasets, plans).items()
    }
    kept = {**planning.kept, **dropped}
    return tuple(
        _preview(path, dataset, plans.get(path), kept.get(path, "no recipe matches it"), path in dropped)
        for path, dataset in planning.datasets.items()
    )


def _preview(path: str, dataset: StoredArray, plan: Rewrite | None, reason: str, dropped: bool) -> DatasetPreview:
    stored = str(dataset.pipeline)
    return DatasetPreview(
        path=path,
        action="store" if plan and not plan.copied else "copy" if plan else "drop" if dropped else "keep",
        reason=reason if plan is None else "",
        dtype=dataset.type_text,
        shape=dataset.shape,
        source_pipeline=stored,
        source_chunks=dataset.chunk_shape,
        pipeline=stored if plan is None or plan.copied else str(plan.requested),
        chunks=dataset.chunk_shape if plan is None else plan.chunk_shape,
        bound=0.0 if plan is None else plan.unpacked_bound,
        relative_bound=None if plan is None else plan.relative_bound,
        notes=() if plan is None else planned_notes(plan, dataset.shape),
        packing=None if plan is None else plan.packing,
        tolerance=None if plan is None else plan.tolerance,
        require="" if plan is None or plan.required is None else str(plan.required),
    )


def prove(
    store: Store,
    planning: Planning,
    plans: Mapping[str, Rewrite],
    written: Mapping[str, Written],
    transaction: Transaction,
    report: Progress,
    threads: int,
) -> tuple[Repacked, ...]:
    """Compare the planned datasets of a written target with those of the source.

    Datasets without a plan are also compared, unless they were copied as stored or left out.
    """
    results, small, source = [], SmallArrays(), planning.datasets
    by_objects = planning.form is not None and planning.form.copies_objects_of(store)
    with open_store(transaction.path) as out:
        # A copy by objects has the same paths: its other objects need not be found.
        stores = None if by_objects else store.comparison(out)
        anew = [path for path in source if path not in plans and path not in planning.dropped] if stores else []
        anew = [path for path in anew if stores and _is_compared(stores, source[path])]
        count = len(plans) + len(anew)
        together = f"verifying {plural(count, 'dataset')}"
        counterpart = stores.counterpart if stores else out.array
        for number, path in enumerate((*plans, *anew), 1):
            step = Step(f"verifying {path}", number, count, together)
            before, after, plan = source[path], counterpart(path), plans.get(path)
            if after is None:
                raise BoundError(f"{path}: expected it in the target, found none").at(path=transaction.target)
            with located(path=transaction.target), reading(store.path, out.path, dataset=path):
                witness = small.takes(before, after)
                if plan is None:
                    verify_kept(path, before, after, partial(report, step), threads, witness=witness)
                elif plan.copied:
                    results.append(_check_copied(plan, before, after, report, step, threads, witness=witness))
                else:
                    result = _check_written(plan, before, after, written[path], report, step, threads, witness=witness)
                    results.append(result)
    return tuple(results)


def _is_compared(stores: StoreComparison, array: StoredArray) -> bool:
    """Return whether an array is compared itself: a companion is compared as another array's missing values."""
    return not array.is_bare_dimension and array.path not in stores.companions


def _check_copied(
    plan: Rewrite,
    source: StoredArray,
    target: StoredArray,
    report: Progress,
    step: Step,
    threads: int,
    *,
    witness: bool,
) -> Repacked:
    masks = verify_copied(plan, source, target, partial(report, step), threads, witness=witness)
    before, after = source.companion, target.companion
    if before and after:
        # Compare the companion's values, not its bytes, because it may have its own recipe.
        flags = Rewrite(after.path, Pipeline(), np.dtype(np.uint8), plan.chunk_shape)
        verify(flags, before, after, partial(report, step), threads)
    zfp = plan.pipeline.zfp is not None
    return Repacked(
        **_facts(plan, source, target, recorded_filters(plan, target)),
        largest_error=0.0,
        chunks=len(masks),
        lossless_chunks=int(np.count_nonzero(masks & 1)) if zfp else 0,
        notes=plan.notes,
        copied=True,
    )


def _check_written(
    plan: Rewrite,
    source: StoredArray,
    target: StoredArray,
    written: Written,
    report: Progress,
    step: Step,
    threads: int,
    *,
    witness: bool,
) -> Repacked:
    verified = verify(plan, source, target, partial(report, step), threads, written, witness=witness)
    measures = _measures(plan, source, target, verified, report, threads)
    partial_count = count_partial(plan, target)
    filters = recorded_filters(plan, target)
    notes = written_notes(plan, source, target, written, partial_count, filters[1]) + measures_note(plan, measures)
    return Repacked(
        **_facts(plan, source, target, filters),
        largest_error=plan.in_units(verified.largest_error),
        chunks=written.chunk_count,
        lossless_chunks=written.lossless_chunks,
        notes=plan.notes + notes,
        missing_values=written.missing_values,
        lossless_for_missing=written.lossless_for_missing,
        read_by_hdf5=verified.read_by_library,
        reused_chunks=written.reused,
        lossless_for_range=written.lossless_for_range,
        lossless_for_growth=partial_count,
        unrounded_values=written.unrounded,
        missed_chunks=written.missed,
        measures=measures,
    )


def _measures(
    plan: Rewrite, source: StoredArray, target: StoredArray, verified: Verified, report: Progress, threads: int
) -> dict[str, float | None]:
    """Return the required measures of a whole dataset, whose chunks are proven."""
    values = plan.reached(verified.measured, all_stored=verified.all_stored)
    if words := [word for word in plan.measures if word in FIELD_WORDS and word not in values]:
        step = Step(f"measuring fields of {plan.path}", 1, 1)
        fields = measured_fields(plan, source, target, words, partial(report, step), threads).by_word
        values |= {word: fields[word] for word in words}
    return values


def _facts(
    plan: Rewrite, source: StoredArray, target: StoredArray, filters: tuple[Pipeline, Pipeline]
) -> dict[str, Any]:
    """Return the fields of a result that all datasets have, with the filters of `recorded_filters`."""
    recorded, left_out = filters
    facts = {
        "path": plan.path,
        "pipeline": str(recorded),
        "left_out": str(left_out) if left_out.stages else "",
        "nbytes": source.nbytes,
        "source_nbytes": source.stored_nbytes,
        "target_nbytes": target.stored_nbytes,
        "bound": plan.unpacked_bound,
        "chunk_shape": plan.chunk_shape,
        "packing": plan.packing,
        "relative_bound": plan.relative_bound,
        "tolerance": plan.tolerance,
        "require": "" if plan.required is None else str(plan.required),
    }
    if target.companion is None:
        return facts
    return facts | {"companion": target.companion.path, "companion_nbytes": target.companion.stored_nbytes}
