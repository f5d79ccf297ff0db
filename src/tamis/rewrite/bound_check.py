"""Check the values of a chunk against the bound of its plan."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from tamis.accuracy.difference import Comparison, compare
from tamis.chunks.grid import Origin
from tamis.errors import BoundError, located
from tamis.rewrite.plan import Plan


def compare_chunk(plan: Plan, origin: Origin, before: NDArray[Any], after: NDArray[Any]) -> float:
    """Compare the values of a chunk with those of the source, and return the largest error.

    Raises
    ------
    BoundError
        If the error is larger than the plan allows, a missing value changed, or a value left the valid range; names the
        chunk.
    """
    if plan.rounding is None:
        error = check_comparison(plan, origin, compare(before, after, plan.missing if plan.lossy else None))
    else:
        with located(f"{plan.path}: chunk at {origin}", dataset=plan.path, chunk=origin):
            error = plan.rounding.check(before, after, plan.missing).error
    if plan.bounds is not None and (broken := plan.bounds.broken(before, after, error)):
        raise BoundError(f"{plan.path}: expected {broken}, in the chunk at {origin}: nothing was kept").at(
            dataset=plan.path, chunk=origin
        )
    return error


def check_comparison(plan: Plan, origin: Origin, comparison: Comparison) -> float:
    """Return the largest error of a finished comparison; raises the errors of `compare_chunk`."""
    try:
        return _check(plan, f"in the chunk at {origin}", comparison)
    except BoundError as error:
        error.at(dataset=plan.path, chunk=origin)
        raise


def _check(plan: Plan, where: str, comparison: Comparison) -> float:
    if plan.dtype.kind == "V" and not comparison.kept:
        raise BoundError(f"{plan.path}: expected the same bytes, found others {where}")
    if plan.bound is not None and not comparison.error <= plan.bound:
        raise BoundError(
            f"{plan.path}: expected an error of at most {plan.bound:g}, found {comparison.error:g} {where}: nothing was"
            " kept"
        )
    if not comparison.kept:
        expected = "missing values of the source" if plan.lossy else "same bits"
        if comparison.crossed:
            expected = "valid values of the source"
        raise BoundError(f"{plan.path}: expected the {expected}, found others {where}")
    return comparison.error
