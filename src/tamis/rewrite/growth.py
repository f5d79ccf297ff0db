"""Refuse a rewrite that would make a dataset larger: docs/design/2026-11-22-what-would-grow-is-kept.md."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING

from tamis.errors import FileError, TamisError
from tamis.filters import Bitshuffle, Filter, Fletcher32, Shuffle
from tamis.rewrite.new_chunk import NewChunk, make_chunk
from tamis.rewrite.plan import ArrayPlan, Copy, Recompress
from tamis.rewrite.streams import encode_streams
from tamis.stores.facts import described_nbytes

if TYPE_CHECKING:
    from tamis.pipeline import Pipeline
    from tamis.stores.protocols import StoredArray

_SAMPLES = 8
RECORD_NBYTES = 128
"""Approximate overhead of filters and chunk index for each chunk."""


def most_nbytes(plan: ArrayPlan, source: StoredArray) -> int:
    """Return the bytes that all chunks take if no filter makes them smaller."""
    if isinstance(plan, Copy):
        return source.stored_nbytes
    flags = 0 if plan.flags is None else math.prod(plan.chunk_shape) + RECORD_NBYTES
    return plan.grid(source).chunk_count * (plan.chunk.nbytes + RECORD_NBYTES + flags)


def likely_nbytes(plan: ArrayPlan, source: StoredArray) -> int:
    """Return the likely bytes of all chunks, from a sample of them that is encoded."""
    if isinstance(plan, Copy):
        return source.stored_nbytes
    parts = plan.parts(source)
    sample = parts[:: -(-len(parts) // _SAMPLES)] if parts else parts
    if isinstance(plan, Recompress):
        chunks = [*encode_streams(plan, source, sample, 1)]
    else:
        with closing(source.open_reader()) as reader:
            chunks = [make_chunk(plan, part, reader.read(part).astype(plan.dtype)) for part in sample]
    sizes = [len(chunk.data) + (len(chunk.flags[0]) + RECORD_NBYTES if chunk.flags else 0) for chunk in chunks]
    return len(parts) * (sum(sizes) // max(len(sizes), 1) + RECORD_NBYTES)


def unreadable(plan: ArrayPlan, source: StoredArray) -> str:
    """Read all values of an array, and return why they cannot be read; empty if they can."""
    try:
        source.check_readable()
        with closing(source.open_reader()) as reader:
            for part in source.parts(plan.grid(source)):
                reader.read(part)
    except (TamisError, OSError, RuntimeError) as error:
        return str(error)
    return ""


_HELD_NBYTES = 16 << 20
"""Up to this size, all new chunks of a dataset stay in memory until it is known whether it grows."""


class LargerError(TamisError):
    """The new dataset is larger than its source."""


_REORDERING = ("crc32c", "endian", "numcodecs.crc32", "numcodecs.crc32c", "transpose")
"""Codecs of Zarr that are no filters of HDF5, and make nothing smaller."""


def compresses(pipeline: Pipeline) -> bool:
    """Return whether a pipeline has a filter that compresses, not only checksums and shuffles."""
    return any(map(_makes_smaller, pipeline.filters))


def _makes_smaller(item: Filter) -> bool:
    """Return whether a filter compresses."""
    if isinstance(item, Bitshuffle):
        return item.compressor != "none"
    return not isinstance(item, (Shuffle, Fletcher32)) and item.name not in _REORDERING


def check_growth(plan: ArrayPlan, source: StoredArray, count: int) -> int | None:
    """Return the bytes that the new chunks may take; None if there is no limit, or they are too many for memory."""
    if plan.may_grow or not count:
        return None
    stored = source.stored_nbytes
    most = stored + described_nbytes(source.shape, source.storage, source.storage.chunk_shape, source.storage.pipeline)
    most -= described_nbytes(source.shape, source.storage, plan.chunk_shape, plan.pipeline)
    if most <= 0:
        # An unreadable dataset is reported whatever its size.
        if source.storage.pipeline.stages and (reason := unreadable(plan, source)):
            raise FileError(reason)
        raise LargerError
    if stored <= _HELD_NBYTES:
        return most
    # Unfiltered values do not become larger; for others, a sample of chunks is encoded.
    if source.storage.pipeline.stages and likely_nbytes(plan, source) > most + count * RECORD_NBYTES:
        raise LargerError
    return None


def collect_within(chunks: Iterable[NewChunk], most_nbytes: int) -> list[NewChunk]:
    """Return all chunks as a list; raise LargerError as soon as they take more than `most_nbytes`."""
    collected: list[NewChunk] = []
    nbytes = 0
    for chunk in chunks:
        nbytes += chunk.nbytes + (len(chunk.flags[0]) if chunk.flags else 0)
        if nbytes > most_nbytes:
            raise LargerError
        collected.append(chunk)
    return collected
