"""What a command did to the variables of a file, as a line of its history.

The line has no time, so that the same run makes the same bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from tamis import _native
from tamis.filters import Stage, Zfp
from tamis.formatting import plural, printable, shape_text
from tamis.pipeline import Pipeline
from tamis.rewrite.plan import Plan
from tamis.rounding import Absolute
from tamis.store.array import Arrays, StoredArray
from tamis.zfp import Accuracy

_MOST = 1000
"""Characters of a line, after which variables are only counted."""


def history_line(
    command: str, plans: Mapping[str, Plan], written: Collection[str], datasets: Arrays[StoredArray]
) -> str:
    """Return what was done as options of repack; empty if no dataset was encoded anew.

    Parameters
    ----------
    command
        What did it.
    plans
        The plans by path.
    written
        Paths of the datasets that were not copied as they are stored.
    datasets
        The datasets of the source.
    """
    changed = [plan for path, plan in plans.items() if path in written]
    if not changed:
        return ""
    line = f"tamis {_native.version}: {command}"
    for number, plan in enumerate(changed):
        option = _option(plan, datasets[plan.path])
        if len(line) + len(option) > _MOST and number:
            return f"{line}, and {plural(len(changed) - number, 'other variable')}"
        line += option
    return line


def _option(plan: Plan, source: StoredArray) -> str:
    name = plan.path[1:] if plan.path.count("/") == 1 else plan.path
    text = f" -f '{name}:{_as_asked(plan)}'"
    if plan.required is not None:
        text += f" --require '{name}:{plan.required}'"
    if plan.chunk_shape != source.chunk_shape:
        text += f" -c '{name}:{shape_text(plan.chunk_shape)}'"
    return printable(text)


def _as_asked(plan: Plan) -> Pipeline:
    """Return the filters of a plan in units of the variable, with the bound asked for in place of its tolerance."""
    steps: list[Stage | Absolute] = [_stage(stage, plan) for stage in plan.requested.stages]
    rounding = plan.requested.rounding
    if rounding is None:
        return Pipeline(steps)
    bound = rounding.bound if isinstance(rounding, Absolute) else None
    return Pipeline((rounding if bound is None else Absolute(_in_units(bound, plan)), *steps))


def _stage(stage: Stage, plan: Plan) -> Stage:
    if not isinstance(stage.filter, Zfp) or not isinstance(stage.filter.mode, Accuracy):
        return stage
    if plan.pipeline.bound and plan.required is None:
        return replace(stage, filter=Zfp(bound=_in_units(plan.pipeline.bound, plan)))
    return replace(stage, filter=Zfp(accuracy=_in_units(stage.filter.mode.tolerance, plan)))


def _in_units(bound: float, plan: Plan) -> float:
    return bound if plan.packing is None else float(f"{plan.in_units(bound):.6g}")
