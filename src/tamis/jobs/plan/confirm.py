"""Confirm a plan: repack whole files with its recipe, discard them, and compare with the predictions."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tamis.accuracy.measured import AT_MOST
from tamis.accuracy.requirement import WHOLE, Requirement
from tamis.errors import BoundError
from tamis.jobs.plan.result import Confirmed, Plan
from tamis.jobs.recipes.saved_recipe import Recipe

if TYPE_CHECKING:
    from tamis.jobs.plan.wants import Want
    from tamis.jobs.progress import Progress
    from tamis.jobs.repack.result import Repacked, RepackResult


@dataclass(slots=True)
class _Total:
    """The totals of all files for one variable."""

    nbytes: int = 0
    stored: int = 0
    error: float = 0.0
    measures: dict[str, float | None] = field(default_factory=dict)
    missed: str | None = None

    def add(self, result: Repacked) -> None:
        self.nbytes += result.nbytes
        self.stored += result.target_nbytes + result.companion_nbytes
        self.error = max(self.error, result.largest_error)
        for word, value in result.measures.items():
            self.measures[word] = _worse(word, self.measures.get(word), value)


def _worse(word: str, one: float | None, other: float | None) -> float | None:
    """Return the worse of two values of a measure, of which one may be None."""
    known = [value for value in (one, other) if value is not None]
    return (max if word in AT_MOST else min)(known, default=None)


def confirm(plan: Plan, wants: Mapping[str, Want], progress: Progress | None) -> Plan:
    """Return a plan with the result of repack for each variable.

    Each file is repacked into a temporary folder, which needs space for the largest result, and is removed.
    """
    recipe = plan.recipe
    if not plan.filters:
        return plan
    measured = _measured(plan, wants)
    totals = {path: _Total() for path in plan.filters}
    with TemporaryDirectory(prefix="tamis-plan-") as folder:
        for path in plan.files:
            target = Path(folder) / f"confirmed{Path(path).suffix}"
            for result in _repacked(path, target, recipe, measured, totals, progress).datasets:
                if result.path in totals:
                    totals[result.path].add(result)
            shutil.rmtree(target) if target.is_dir() else target.unlink()
    return replace(
        plan,
        datasets=tuple(
            replace(variable, confirmed=_confirmed(totals[variable.path])) if variable.path in totals else variable
            for variable in plan.datasets
        ),
    )


def _measured(plan: Plan, wants: Mapping[str, Want]) -> dict[str, Requirement]:
    """Return the wants of variables with measures of whole datasets."""
    measured = [path for path in plan.filters if not wants[path].limits.keys().isdisjoint(WHOLE)]
    required = ((path, wants[path].required(measures=True)) for path in measured)
    return {path: requirement for path, requirement in required if requirement is not None}


def _repacked(
    path: str,
    target: Path,
    recipe: Recipe,
    measured: Mapping[str, Requirement],
    totals: Mapping[str, _Total],
    progress: Progress | None,
) -> RepackResult:
    """Repack a file with required measures, then without missed ones, because a run ends at the first miss."""
    from tamis.jobs.repack.job import repack

    left = dict(measured)
    while left:
        require = {**recipe.require, **left}
        demanding = Recipe(recipe.filters, chunks=recipe.chunks, require=require, missing=recipe.missing)
        try:
            return repack(path, target, demanding, progress=progress)
        except BoundError as error:
            texts = str(error).split("; ")  # one for each measure; /T is not part of /group/T
            missed = [name for name in left if any(text.startswith(f"{name}: expected") for text in texts)]
            for name in missed:
                totals[name].missed = totals[name].missed or str(error)
            left = {name: value for name, value in left.items() if missed and name not in missed}
    return repack(path, target, recipe, progress=progress)


def _confirmed(total: _Total) -> Confirmed:
    ratio = total.nbytes / total.stored if total.stored else 0.0
    return Confirmed(ratio, total.error, tuple(total.measures.items()), total.missed)
