"""The grid that chunks lay over an array, and the shapes that chunks should have."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable

from tamis.zfp import MAX_RANK, max_extent
from tamis.zfp.checks import BLOCK_SIDE

Origin = tuple[int, ...]
"""Index of the first value of a chunk."""

Region = tuple[slice, ...]

# 1 MiB: large enough for the codec, small enough for a reader's cache.
_CHUNK_NBYTES = 1 << 20

LEAST_CHUNK_NBYTES = 16 << 10
"""Smaller chunks cost more in the index and in calls than zfp saves by them."""

_EVEN_COUNT = 16
"""Where an axis has more chunks than this, the last one makes little difference."""


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


def default_chunks(shape: tuple[int, ...], itemsize: int, *, zfp: bool) -> tuple[int, ...]:
    """Choose a chunk shape of at most 1 MiB for values that are not chunked yet; the slowest axes are cut first.

    For zfp, which codes blocks of 4 along at most four axes, extents are whole blocks where the array is longer, and
    an axis that would mostly hold padding is cut into single values: one shorter than a block, or the fourth from the
    end if its last block is mostly empty. A small array is one chunk.

    Parameters
    ----------
    shape
        Of the array, slowest axis first.
    itemsize
        Bytes of a value.
    zfp
        Whether the chunks go through zfp.
    """
    chunks = [max(extent, 1) for extent in shape]
    if zfp:
        chunks = _without_padding(chunks, itemsize)
    longer = [axis for axis, extent in enumerate(chunks) if extent > 1]
    least = BLOCK_SIDE if len(longer) <= MAX_RANK else 1
    for axis in longer if zfp else ():
        chunks[axis] = min(chunks[axis], max_extent(len(longer)))
    for axis in longer:
        others = math.prod(chunks) // chunks[axis]
        chunks[axis] = min(chunks[axis], _fitting(shape[axis], others * itemsize, least))
    return tuple(chunks)


def whole_blocks(extent: int) -> int:
    """Round an extent up to whole blocks of zfp."""
    return -(-extent // BLOCK_SIDE) * BLOCK_SIDE


def pads_little(extent: int) -> bool:
    """Return whether at most a tenth of the blocks along an axis is padding."""
    return 10 * extent >= 9 * whole_blocks(extent)


def _without_padding(extents: list[int], itemsize: int) -> list[int]:
    """Cut axes that zfp would mostly pad into single values, unless that makes small chunks; leave four at most."""
    chunks = [extent if extent >= BLOCK_SIDE else 1 for extent in extents]
    if math.prod(chunks) * itemsize < LEAST_CHUNK_NBYTES:
        chunks = [*extents]
    kept = [axis for axis, extent in enumerate(chunks) if extent > 1][-MAX_RANK:]
    chunks = [extent if axis in kept else 1 for axis, extent in enumerate(chunks)]
    if len(kept) == MAX_RANK and not pads_little(chunks[kept[0]]):
        without = [1 if axis == kept[0] else extent for axis, extent in enumerate(chunks)]
        chunks = without if math.prod(without) * itemsize >= LEAST_CHUNK_NBYTES else chunks
    return chunks


def _fitting(extent: int, others_nbytes: int, least: int) -> int:
    """Return the extent along an axis with which a chunk has at most 1 MiB; `least` at least."""
    most = _CHUNK_NBYTES // others_nbytes
    if most >= extent:
        return extent
    return _even_step(extent, most // BLOCK_SIDE * BLOCK_SIDE) if most >= BLOCK_SIDE else max(most, least)


def _even_step(extent: int, most: int) -> int:
    """Return the extent of chunks of whole blocks, between half of `most` and it, that reach least past the end."""
    count = -(-extent // most)
    if count > _EVEN_COUNT:
        return most
    steps = [min(most, whole_blocks(-(-extent // each))) for each in range(count, 2 * count + 1)]
    # In steps of 5 %: less is not worth smaller chunks.
    return min(steps, key=lambda step: (-(-extent // step) * step * 20 // extent, -step))
