"""Calls timed in turns, so that what the machine does meanwhile meets all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def times_in_turns(
    calls: list[Callable[[], Any]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> list[list[float]]:
    """Seconds by some clock that each call took in each round."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, mine in zip(calls, times, strict=True):
            began = clock()
            call()
            mine.append(clock() - began)
    return times
