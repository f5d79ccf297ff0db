"""What a job tells its caller while it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

Progress = Callable[[str, int, int], None]
"""Is given the step, such as ``writing /TS``, and how much of it is done, of how much in all.

The step is a `Step`, which knows its number, where it is one of several.
"""


class Step(str):
    """What is done to which dataset, such as ``writing /TS``.

    Attributes
    ----------
    number, step_count
        Which step of its kind it is, from 1, and how many there are.
    """

    __slots__ = ("number", "step_count")

    number: int
    step_count: int

    def __new__(cls, text: str, number: int, step_count: int) -> Self:
        """Return the text of a step, with its number."""
        step = super().__new__(cls, text)
        step.number, step.step_count = number, step_count
        return step
