"""The grid that chunks lay over an array, and the shapes that chunks should have."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable

from tamis.zfp import MAX_RANK, max_extent

Origin = tuple[int, ...]
"""Index of the first value of a chunk."""

Region = tuple[slice, ...]

# 1 MiB: large enough for the codec, small enough for a reader's cache.
_CHUNK_NBYTES = 1 << 20


def region(origin: tuple[int, ...], shape: tuple[int, ...], chunks: tuple[int, ...]) -> Region:
    """Part of the array that a chunk covers; smaller than the chunk at the array's end."""
    return tuple(
        slice(start, min(start + step, extent)) for start, step, extent in zip(origin, chunks, shape, strict=True)
    )


def origin_of(part: Region) -> Origin:
    """Index of the first value of a part."""
    return tuple([each.start for each in part])  # a list, since this is done for each chunk


def regions(origins: Collection[tuple[int, ...]], shape: tuple[int, ...], chunks: tuple[int, ...]) -> list[Region]:
    """Parts of the array that chunks cover, as `region` gives them; they share slices, which saves time and memory."""
    axes = [
        {at: slice(at, min(at + step, extent)) for at in set(starts)}
        for starts, step, extent in zip(zip(*origins, strict=True), chunks, shape, strict=False)
    ]
    return [tuple([axis[at] for axis, at in zip(axes, origin, strict=True)]) for origin in origins]


def touched(parts: Iterable[Region], shape: tuple[int, ...], chunks: tuple[int, ...]) -> list[Region]:
    """Regions of the chunks that share an element with any of the parts, each once, last axis fastest."""
    found: set[tuple[int, ...]] = set()
    for part in parts:
        first = tuple([each.start // step * step for each, step in zip(part, chunks, strict=True)])
        if all(each.start < each.stop <= at + step for each, at, step in zip(part, first, chunks, strict=True)):
            found.add(first)
        else:
            axes = (range(at, each.stop, step) for each, at, step in zip(part, first, chunks, strict=True))
            found.update(itertools.product(*axes))
    return regions(sorted(found), shape, chunks)


def default_chunks(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Choose a chunk shape for values that are not chunked yet.

    About 1 MiB, whole blocks of 4 along each axis but where the array is shorter, at most four axes longer than 1, the
    slowest ones cut first.
    """
    chunks = [max(extent, 1) for extent in shape]
    longer = [axis for axis, extent in enumerate(chunks) if extent > 1]
    for axis in longer[:-MAX_RANK]:
        chunks[axis] = 1
    longer = longer[-MAX_RANK:]
    for axis in longer:
        chunks[axis] = min(chunks[axis], max_extent(len(longer)))
    for axis in longer:
        others = math.prod(chunks) // chunks[axis]
        fitting = _CHUNK_NBYTES // (others * itemsize)
        if fitting < chunks[axis]:
            chunks[axis] = min(chunks[axis], max(4, fitting // 4 * 4))
    return tuple(chunks)
