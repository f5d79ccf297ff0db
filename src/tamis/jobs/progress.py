"""Progress that a job reports to its caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

Progress = Callable[[str, int, int], None]
"""Called with the step, such as ``writing /TS``, the finished amount of work, and the whole amount.

The step is a `Step` with a number if it is one of several.
"""


class Step(str):
    """The text of one step, such as ``writing /TS``."""

    __slots__ = ("item_nbytes", "number", "step_count", "together")

    # Number of the step among those of its kind, from 1, and how many there are
    number: int
    step_count: int
    together: str  # Text for all steps of its kind if one progress line is enough for them; otherwise empty
    item_nbytes: int  # Bytes of an item of work; 0 if items are not values

    def __new__(cls, text: str, number: int, step_count: int, together: str = "", item_nbytes: int = 0) -> Self:
        """Return the text of a step, with its number."""
        step = super().__new__(cls, text)
        step.number, step.step_count, step.together, step.item_nbytes = number, step_count, together, item_nbytes
        return step
