"""What cannot be stored as asked: tables of conditions, each with its message."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

from tamis.errors import ParameterError

C = TypeVar("C")


class Refusal(NamedTuple, Generic[C]):
    """A condition under which something is refused, and the message."""

    applies: Callable[[C], bool]
    text: Callable[[C], str]


def refuse(refusals: Iterable[Refusal[C]], case: C) -> None:
    """Raise ParameterError with the message of the first condition that a case meets."""
    for refusal in refusals:
        if refusal.applies(case):
            raise ParameterError(refusal.text(case))
