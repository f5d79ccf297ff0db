"""Whether it is the source that cannot be read."""

from __future__ import annotations

from contextlib import closing

from tamis.errors import TamisError
from tamis.rewrite.plan import Plan
from tamis.store.array import StoredArray


def unreadable(plan: Plan, source: StoredArray) -> str:
    """Read the values of an array, and return why they cannot be read; empty where they can."""
    try:
        source.check_readable()
        with closing(source.open_reader()) as values:
            for part in source.parts(plan.grid(source)):
                values.read(part)
    except (TamisError, OSError, RuntimeError) as error:
        return str(error)
    return ""
