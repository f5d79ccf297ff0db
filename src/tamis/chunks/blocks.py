"""Parts of an array that are gathered at once, so that no piece of the source is read again and again."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from tamis.chunks.grid import Region

Shape = tuple[int, ...]

_SAME = 1e-9


def gathered_shape(
    shape: tuple[int, ...], pieces: tuple[int, ...], chunks: tuple[int, ...], itemsize: int, most_nbytes: int
) -> tuple[int, ...]:
    """Choose the shape of the parts in which an array goes from one grid to another.

    Each part is a whole number of chunks of the target. A piece of the source is read once for each part that it
    reaches into; larger parts share fewer. What comes out depends on the arguments only, so that work is always done
    in one order.

    Parameters
    ----------
    shape
        Of the array.
    pieces
        Shape of what the source reads at once.
    chunks
        Of the target.
    itemsize
        Bytes of a value.
    most_nbytes
        Largest part; one chunk is always allowed.
    """
    axes = range(len(shape))
    counts = [1] * len(shape)

    def part_nbytes(wanted: Sequence[int]) -> int:
        extents = (min(count * chunks[axis], shape[axis]) for axis, count in zip(axes, wanted, strict=True))
        return math.prod(extents) * itemsize

    while True:
        best: tuple[float, float] = (0.0, 0.0)
        chosen: list[int] = []
        now = part_nbytes(counts)
        for axis in reversed(axes):
            before = pieces_read(shape[axis], pieces[axis], counts[axis] * chunks[axis])
            for count in _steps(shape[axis], pieces[axis], chunks[axis], counts[axis]):
                wanted = [*counts[:axis], count, *counts[axis + 1 :]]
                after = pieces_read(shape[axis], pieces[axis], count * chunks[axis])
                if after >= before or part_nbytes(wanted) > most_nbytes:
                    continue
                saved = math.log(before / after)
                gain = saved / math.log(max(part_nbytes(wanted) / now, 1 + _SAME))
                if gain > best[0] + _SAME or (gain > best[0] - _SAME and saved > best[1] + _SAME):
                    best, chosen = (gain, saved), wanted
        if not chosen:
            return tuple(count * step for count, step in zip(counts, chunks, strict=True))
        counts = chosen


def pieces_of(part: Region, pieces: tuple[int, ...], itemsize: int, least_nbytes: int) -> list[Region]:
    """Cut a part along the grid of the source, into pieces of some size, last axis fastest."""
    steps = list(pieces)
    for axis in reversed(range(len(steps))):
        extent = part[axis].stop - part[axis].start
        wanted = -(-least_nbytes // max(math.prod(steps) * itemsize, 1))
        steps[axis] *= max(1, min(wanted, -(-extent // steps[axis])))
    return [tuple(each) for each in itertools.product(*map(_cut, part, steps))]


def grouped(parts: Sequence[Region], shape: tuple[int, ...]) -> Iterator[list[Region]]:
    """Group chunks by the gathered part that they lie in, in the order of these parts."""
    groups: dict[tuple[int, ...], list[Region]] = {}
    for part in parts:
        groups.setdefault(tuple(each.start // step for each, step in zip(part, shape, strict=True)), []).append(part)
    for _, group in sorted(groups.items()):
        yield group


def bounding(parts: Sequence[Region]) -> Region:
    """Smallest part of the array that holds all of some."""
    return tuple(slice(min(s.start for s in axis), max(s.stop for s in axis)) for axis in zip(*parts, strict=True))


def within(part: Region, outer: Region) -> Region:
    """Place of a part in an array that begins where another part does."""
    return tuple(slice(a.start - b.start, a.stop - b.start) for a, b in zip(part, outer, strict=True))


def _cut(extent: slice, step: int) -> list[slice]:
    firsts = range(extent.start // step * step, extent.stop, step)
    return [slice(max(at, extent.start), min(at + step, extent.stop)) for at in firsts]


def pieces_read(extent: int, piece: int, part: int) -> int:
    """Return how many pieces are read along an axis: each once, and once more for each border of parts inside it."""
    return -(-extent // piece) + (extent - 1) // part - (extent - 1) // math.lcm(part, piece)


def _steps(extent: int, piece: int, chunk: int, now: int) -> list[int]:
    """List the counts of chunks that a part may have along an axis, above what it has."""
    most = -(-extent // chunk)
    doubled = {now << shift for shift in range(1, 64) if now << shift < most}
    whole = math.lcm(piece, chunk) // chunk
    aligned = {whole * factor for factor in (1, 2, 4, 8) if now < whole * factor < most}
    return sorted(doubled | aligned | ({most} if most > now else set()))


def block_shape(shape: Shape, grids: Sequence[Shape], most: int) -> Shape:
    """Choose the shape of blocks of an array, so that chunks that several blocks touch are as few as can be.

    Parameters
    ----------
    shape
        Of the array.
    grids
        Shapes of the chunks of one or two ways to store it.
    most
        Values of a block, unless a chunk has more.
    """
    block = _clipped(grids[-1], shape) if grids else (1,) * len(shape)
    while True:
        best = None
        for larger in _grown(block, shape, grids):
            if math.prod(larger) <= most:
                # Of equally good ones the one that grew along the fastest axis, which is stored in one piece.
                rank = (_decoded(larger, shape, grids), larger)
                best = rank if best is None or rank < best else best
        if best is None:
            return block
        block = best[1]


def slab(shape: Shape, most: int) -> Shape:
    """Shape of parts of an array of at most so many values, whole along the fastest axes."""
    extents = [1] * len(shape)
    for axis in reversed(range(len(shape))):
        extents[axis] = max(1, min(shape[axis], most // math.prod(extents)))
        if extents[axis] < shape[axis]:
            break
    return tuple(extents)


def _grown(block: Shape, shape: Shape, grids: Sequence[Shape]) -> Iterator[Shape]:
    for axis, (step, extent) in enumerate(zip(block, shape, strict=True)):
        if step >= extent:
            continue
        # Twice as long at least, but where that makes whole chunks, so that few steps lead to the end.
        ends = {2 * step}
        for each in (chunk[axis] for chunk in grids):
            ends |= {-(-2 * step // each) * each, -(-step // each) * each}
        for end in sorted({min(each, extent) for each in ends if each > step}):
            yield (*block[:axis], end, *block[axis + 1 :])


def _decoded(block: Shape, shape: Shape, grids: Sequence[Shape]) -> int:
    """Values that are decoded to read the array block by block."""
    return sum(math.prod(chunk) * math.prod(map(pieces_read, shape, chunk, block)) for chunk in grids)


def _clipped(chunk: Shape, shape: Shape) -> Shape:
    return tuple(min(step, extent) for step, extent in zip(chunk, shape, strict=True))
