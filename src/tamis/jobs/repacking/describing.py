"""Describe a planning: what would be done to each dataset of a file."""

from __future__ import annotations

from tamis.jobs.repacking.notes import planned_notes
from tamis.jobs.repacking.planning import Planning, replaced_companions
from tamis.jobs.repacking.preview import DatasetPreview
from tamis.rewrite.plan import Plan
from tamis.store.array import StoredArray


def describe(planning: Planning) -> tuple[DatasetPreview, ...]:
    """Return a preview of each dataset of a file."""
    plans = planning.plans
    dropped = {
        path: f"it is the companion of {variable}, which is stored anew"
        for path, variable in replaced_companions(planning.datasets, plans).items()
    }
    kept = {**planning.kept, **dropped}
    return tuple(
        _preview(path, dataset, plans.get(path), kept.get(path, "no recipe matches it"), path in dropped)
        for path, dataset in planning.datasets.items()
    )


def _preview(path: str, dataset: StoredArray, plan: Plan | None, reason: str, dropped: bool) -> DatasetPreview:
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
