"""What a plan allows to become of the values of a chunk."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from tamis.accuracy.difference import Comparison, compare
from tamis.chunks.grid import Origin
from tamis.errors import BoundError
from tamis.rewrite.plan import Plan


def compared(plan: Plan, origin: Origin, before: NDArray[Any], after: NDArray[Any]) -> float:
    """Largest error of the values of a chunk.

    Raises
    ------
    BoundError
        If that is more than the plan allows, a missing value is not what it was, or a value left the valid range;
        names the chunk.
    """
    return checked(plan, origin, compare(before, after, plan.missing if plan.lossy else None))


def checked(plan: Plan, origin: Origin, found: Comparison) -> float:
    """Largest error of values that were compared already, as `compared` does; it raises the same."""
    try:
        return _checked(plan, f"in the chunk at {origin}", found)
    except BoundError as error:
        error.at(dataset=plan.path, chunk=origin)
        raise


def _checked(plan: Plan, where: str, found: Comparison) -> float:
    if plan.dtype.kind == "V" and not found.kept:
        raise BoundError(f"{plan.path}: expected the same bytes, found others {where}")
    if plan.bound is not None and not found.error <= plan.bound:
        raise BoundError(
            f"{plan.path}: expected an error of at most {plan.bound:g}, found {found.error:g} {where}: nothing was kept"
        )
    if not found.kept:
        what = "missing values of the source" if plan.lossy else "same bits"
        if found.crossed:
            what = "valid values of the source"
        raise BoundError(f"{plan.path}: expected the {what}, found others {where}")
    return found.error
