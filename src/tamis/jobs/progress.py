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
    together
        What all steps of its kind are called where one line for all of them is enough; else empty.
    """

    __slots__ = ("number", "step_count", "together")

    number: int
    step_count: int
    together: str

    def __new__(cls, text: str, number: int, step_count: int, together: str = "") -> Self:
        """Return the text of a step, with its number."""
        step = super().__new__(cls, text)
        step.number, step.step_count, step.together = number, step_count, together
        return step
