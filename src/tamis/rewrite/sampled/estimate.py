"""Estimate the bytes of an array before it is written, and check that its source can be read."""

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
"""Approximate overhead of filters and chunk index for each chunk."""


def most_nbytes(plan: Plan, source: StoredArray) -> int:
    """Return the bytes that all chunks take if no filter makes them smaller."""
    if plan.copied:
        return source.stored_nbytes
    flags = 0 if plan.flags is None else math.prod(plan.chunk_shape) + RECORD_NBYTES
    return plan.grid(source).chunk_count * (plan.chunk.nbytes + RECORD_NBYTES + flags)


def likely_nbytes(plan: Plan, source: StoredArray) -> int:
    """Return the likely bytes of all chunks, from a sample of them that is encoded."""
    if plan.copied:
        return source.stored_nbytes
    parts = plan.parts(source)
    sample = parts[:: -(-len(parts) // _SAMPLES)] if parts else parts
    if plan.streams_kept:
        chunks = [*encode_streams(plan, source, sample, 1)]
    else:
        with closing(source.open_reader()) as reader:
            chunks = [make_chunk(plan, part, reader.read(part).astype(plan.dtype)) for part in sample]
    sizes = [len(chunk.data) + (len(chunk.flags[0]) + RECORD_NBYTES if chunk.flags else 0) for chunk in chunks]
    return len(parts) * (sum(sizes) // max(len(sizes), 1) + RECORD_NBYTES)


def unreadable(plan: Plan, source: StoredArray) -> str:
    """Read all values of an array, and return why they cannot be read; empty if they can."""
    try:
        source.check_readable()
        with closing(source.open_reader()) as reader:
            for part in source.parts(plan.grid(source)):
                reader.read(part)
    except (TamisError, OSError, RuntimeError) as error:
        return str(error)
    return ""
