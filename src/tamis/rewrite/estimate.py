"""What can be said of an array before it is written: how many bytes it will take, whether its source can be read."""

from __future__ import annotations

import math
from contextlib import closing

from tamis.errors import TamisError
from tamis.rewrite.new_chunk import make_chunk
from tamis.rewrite.plan import Plan
from tamis.rewrite.streams import encode_streams
from tamis.store.array import StoredArray

_SAMPLES = 8
RECORD_NBYTES = 128
"""What filters and the index of chunks add to a chunk, about."""


def most_nbytes(plan: Plan, source: StoredArray) -> int:
    """Return the bytes of the chunks if all are written, and no filter makes them smaller."""
    if plan.copied:
        return source.stored_nbytes
    flags = 0 if plan.flags is None else math.prod(plan.chunk_shape) + RECORD_NBYTES
    return plan.grid(source).chunk_count * (plan.chunk.nbytes + RECORD_NBYTES + flags)


def likely_nbytes(plan: Plan, source: StoredArray) -> int:
    """Return the bytes of the chunks if they are like some of them, which are encoded to see."""
    if plan.copied:
        return source.stored_nbytes
    parts = plan.parts(source)
    chosen = parts[:: -(-len(parts) // _SAMPLES)] if parts else parts
    if plan.streams_kept:
        chunks = [*encode_streams(plan, source, chosen, 1)]
    else:
        with closing(source.open_reader()) as values:
            chunks = [make_chunk(plan, part, values.read(part).astype(plan.dtype)) for part in chosen]
    sizes = [len(chunk.data) + (len(chunk.flags[0]) + RECORD_NBYTES if chunk.flags else 0) for chunk in chunks]
    return len(parts) * (sum(sizes) // max(len(sizes), 1) + RECORD_NBYTES)


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
