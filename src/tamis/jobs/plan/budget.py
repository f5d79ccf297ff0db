"""The smallest error with which variables fit a number of bytes: relative to each range, the same for all."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from tamis.errors import ParameterError
from tamis.formatting import size_text
from tamis.jobs.plan.wants import Want

if TYPE_CHECKING:
    from tamis.jobs.plan.candidates import Variable
    from tamis.jobs.plan.result import PlannedVariable
    from tamis.stores.protocols import Store

FREE = Want({"range": 1.0})
"""What is wanted of variables whose errors a budget decides."""

_FINEST = 30
"""Range over error, as a power of two, beyond which values are rather stored without loss."""


class Budget(NamedTuple):
    """The limit for all variables together: bytes of values per stored byte, or stored bytes."""

    ratio: float | None = None
    nbytes: int | None = None

    @property
    def is_given(self) -> bool:
        """True if there is a limit."""
        return self.ratio is not None or self.nbytes is not None

    def check(self, wants: Mapping[str, Want]) -> None:
        """Raise ParameterError for an invalid budget, or one that leaves nothing to decide."""
        if self.ratio is not None and self.nbytes is not None:
            raise ParameterError("expected a ratio or a size, got both")
        for name, value in (("ratio", self.ratio), ("size", self.nbytes)):
            if value is not None and (isinstance(value, bool) or not 0 < value < math.inf):
                raise ParameterError(f"expected a {name} above 0, got {value!r}")
        if self.is_given and "*" in wants:
            raise ParameterError(
                "expected either a want for '*', or a ratio or size for variables without a want, got both"
            )

    def left(self, stores: Sequence[Store], planned: Sequence[PlannedVariable], free: Sequence[Variable]) -> float:
        """Return the bytes left for variables, after those that are planned or stay unchanged."""
        counted = {variable.path for variable in planned} | {variable.path for variable in free}
        arrays = [(path, array) for store in stores for path, array in store.arrays.items() if array.dtype is not None]
        kept = sum(array.stored_nbytes for path, array in arrays if path not in counted)
        if self.nbytes is not None:
            allowed = float(self.nbytes)
        else:
            allowed = sum(array.values_nbytes for _, array in arrays) / (self.ratio or math.inf)
        return allowed - kept - sum(map(predicted_nbytes, planned))


def predicted_nbytes(planned: PlannedVariable) -> float:
    """Return the bytes that a variable takes according to its plan."""
    chosen = planned.chosen
    return planned.nbytes / ((planned.source_ratio or 1.0) if chosen is None else chosen.ratio)


def within_budget(
    free: Sequence[Variable],
    left: float,
    look: Callable[[Variable], PlannedVariable],
    plan: Callable[[Variable], PlannedVariable],
) -> list[PlannedVariable]:
    """Plan variables so that they fit, with the smallest error relative to the range of each."""

    @cache
    def nbytes(power: int) -> float:
        return sum(predicted_nbytes(look(_wanting(variable, power))) for variable in free)

    low, high = 0, _FINEST + 1
    if nbytes(high) <= left:
        low = high
    while high - low > 1:  # all fit with the errors of the power `low`, unless that is 0
        middle = (low + high) // 2
        low, high = (middle, high) if nbytes(middle) <= left else (low, middle)
    for power in range(low, 0, -1):
        planned = [plan(_wanting(variable, power)) for variable in free]
        total = sum(map(predicted_nbytes, planned))
        if total <= left:
            note = (
                f"; with this error relative to their ranges, all variables without a want take "
                f"{size_text(round(total))}"
            )
            return [variable.with_note(f"{note} of the {size_text(round(left))} allowed") for variable in planned]
    raise ParameterError(
        f"expected a budget that can be met: {size_text(round(max(left, 0)))} is left for variables without a want, "
        f"but they take {size_text(round(nbytes(1)))} even with errors of half their ranges: allow more bytes, or "
        f"want less"
    )


def _wanting(variable: Variable, power: int) -> Variable:
    """Return a variable with such a small wanted error; lossless beyond the finest one."""
    return variable._replace(want=Want({"range": 2.0**-power}) if power <= _FINEST else Want())
