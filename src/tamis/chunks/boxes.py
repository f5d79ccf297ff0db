"""Shapes of the parts and blocks in which an array is read, so that few chunks of the source are read twice."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from tamis.chunks.grid import Region

Shape = tuple[int, ...]

_SAME = 1e-9


def gathered_shape(
    shape: tuple[int, ...], pieces: tuple[int, ...], chunk_shape: tuple[int, ...], itemsize: int, most_nbytes: int
) -> tuple[int, ...]:
    """Return the shape of the parts in which an array goes from one grid of chunks to another.

    Each part is a whole number of chunks of the target. A piece of the source is read once for each part that it
    overlaps, so that larger parts share fewer pieces. The result depends only on the arguments, so that work is always
    done in the same order.

    Parameters
    ----------
    shape
        Shape of the array.
    pieces
        Shape of the pieces that the source reads at once.
    chunk_shape
        Chunk shape of the target.
    itemsize
        Bytes of a value.
    most_nbytes
        Largest part; one chunk is always allowed.
    """
    axes = range(len(shape))
    counts = [1] * len(shape)

    def part_nbytes(chunk_counts: Sequence[int]) -> int:
        extents = (min(count * chunk_shape[axis], shape[axis]) for axis, count in zip(axes, chunk_counts, strict=True))
        return math.prod(extents) * itemsize

    while True:
        best_score: tuple[float, float] = (0.0, 0.0)
        best_counts: list[int] = []
        nbytes = part_nbytes(counts)
        for axis in reversed(axes):
            reads = pieces_read(shape[axis], pieces[axis], counts[axis] * chunk_shape[axis])
            for count in _steps(shape[axis], pieces[axis], chunk_shape[axis], counts[axis]):
                candidate = [*counts[:axis], count, *counts[axis + 1 :]]
                fewer_reads = pieces_read(shape[axis], pieces[axis], count * chunk_shape[axis])
                if fewer_reads >= reads or part_nbytes(candidate) > most_nbytes:
                    continue
                saved = math.log(reads / fewer_reads)
                gain = saved / math.log(max(part_nbytes(candidate) / nbytes, 1 + _SAME))
                if gain > best_score[0] + _SAME or (gain > best_score[0] - _SAME and saved > best_score[1] + _SAME):
                    best_score, best_counts = (gain, saved), candidate
        if not best_counts:
            return tuple(count * step for count, step in zip(counts, chunk_shape, strict=True))
        counts = best_counts


def pieces_of(part: Region, pieces: tuple[int, ...], itemsize: int, least_nbytes: int) -> list[Region]:
    """Return pieces of a part, cut along the grid of the source, of at least `least_nbytes`, last axis fastest."""
    steps = list(pieces)
    for axis in reversed(range(len(steps))):
        extent = part[axis].stop - part[axis].start
        factor = -(-least_nbytes // max(math.prod(steps) * itemsize, 1))
        steps[axis] *= max(1, min(factor, -(-extent // steps[axis])))
    return [*cut(part, steps)]


def cut(part: Region, step: Sequence[int]) -> Iterator[Region]:
    """Yield the pieces of a part along a grid that begins with the array, last axis fastest."""

    def pieces(span: slice, n: int) -> list[slice]:
        starts = range(span.start // n * n, span.stop, n)
        return [slice(max(start, span.start), min(start + n, span.stop)) for start in starts]

    return itertools.product(*map(pieces, part, step))


def whole(shape: Sequence[int]) -> Region:
    """Return the region of a whole array."""
    return tuple(slice(0, extent) for extent in shape)


def within(part: Region, outer: Region) -> Region:
    """Return a part relative to an outer part that contains it."""
    return tuple(slice(a.start - b.start, a.stop - b.start) for a, b in zip(part, outer, strict=True))


def intersection(part: Region, other: Region) -> Region:
    """Return the intersection of two overlapping parts."""
    return tuple(slice(max(a.start, b.start), min(a.stop, b.stop)) for a, b in zip(part, other, strict=True))


def pieces_read(extent: int, piece: int, part: int) -> int:
    """Return how often pieces are read along an axis: each once, and once more for each border of parts inside it."""
    return -(-extent // piece) + (extent - 1) // part - (extent - 1) // math.lcm(part, piece)


def _steps(extent: int, piece: int, chunk: int, count: int) -> list[int]:
    """Return larger counts of chunks that a part may have along an axis."""
    most = -(-extent // chunk)
    doubled = {count << shift for shift in range(1, 64) if count << shift < most}
    whole = math.lcm(piece, chunk) // chunk
    aligned = {whole * factor for factor in (1, 2, 4, 8) if count < whole * factor < most}
    return sorted(doubled | aligned | ({most} if most > count else set()))


def block_shape(shape: Shape, grids: Sequence[Shape], most: int) -> Shape:
    """Return the shape of blocks of an array that overlap as few chunks twice as possible.

    Parameters
    ----------
    shape
        Shape of the array.
    grids
        Chunk shapes of the one or two stored arrays.
    most
        Largest number of values of a block, unless a chunk has more.
    """
    block = gathered_shape(shape, grids[0], grids[-1], 1, most) if grids else (1,) * len(shape)
    return tuple(map(min, several_chunks(shape, tuple(map(min, block, shape)), most), shape))


def several_chunks(shape: Shape, chunk_shape: Shape, most: int) -> Shape:
    """Return the shape of several chunks that follow each other in the order of an array, if one has few values.

    Parameters
    ----------
    shape, chunk_shape
        Of the array and of its chunks; chunks of one value give parts that are whole along the fastest axes.
    most
        Most values of the shape, unless one chunk has more.
    """
    steps = list(chunk_shape)
    for axis in reversed(range(len(shape))):
        count = -(-shape[axis] // chunk_shape[axis])
        steps[axis] *= max(1, min(count, most // math.prod(steps)))
        if steps[axis] < shape[axis]:
            break
    return tuple(steps)
