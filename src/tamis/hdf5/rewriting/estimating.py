"""How many bytes a dataset will take, before it is written."""

from __future__ import annotations

import math
from contextlib import closing

import h5py

from tamis.filters import ChunkType
from tamis.hdf5.rewriting.encoding import make_chunk
from tamis.hdf5.rewriting.plans import Plan, parts_of
from tamis.hdf5.rewriting.streams import encode_streams
from tamis.hdf5.values import open_values

_SAMPLES = 8
RECORD_NBYTES = 128
"""What filters and the index of chunks add to a chunk, about."""


def most_nbytes(plan: Plan, source: h5py.Dataset) -> int:
    """Bytes of the chunks if all are written, and no filter makes them smaller."""
    if plan.copied:
        return int(source.id.get_storage_size())
    count: int = math.prod(-(-extent // step) for extent, step in zip(source.shape, plan.chunks, strict=True))
    flags = 0 if plan.flags is None else math.prod(plan.chunks) + RECORD_NBYTES
    return count * (ChunkType(plan.dtype, plan.chunks).nbytes + RECORD_NBYTES + flags)


def likely_nbytes(plan: Plan, source: h5py.Dataset) -> int:
    """Bytes of the chunks if they are like some of them, which are encoded to see."""
    if plan.copied:
        return int(source.id.get_storage_size())
    parts = parts_of(plan, source)
    chosen = parts[:: -(-len(parts) // _SAMPLES)] if parts else []
    if plan.streams_kept:
        encoded = [*encode_streams(plan, source, chosen, 1)]
    else:
        with closing(open_values(source)) as values:
            encoded = [make_chunk(plan, part, values.read(part).astype(plan.dtype)) for part in chosen]
    sizes = [len(each.data) + (len(each.flags[0]) + RECORD_NBYTES if each.flags else 0) for each in encoded]
    return len(parts) * (sum(sizes) // max(len(sizes), 1) + RECORD_NBYTES)
