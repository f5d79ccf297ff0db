"""Parts of an array that are gathered at once, so that no piece of the source is read again and again."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from tamis.chunks.grid import Region

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
            before = _reads(shape[axis], pieces[axis], counts[axis] * chunks[axis])
            for count in _steps(shape[axis], pieces[axis], chunks[axis], counts[axis]):
                wanted = [*counts[:axis], count, *counts[axis + 1 :]]
                after = _reads(shape[axis], pieces[axis], count * chunks[axis])
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


def _reads(extent: int, piece: int, part: int) -> int:
    """Pieces that are read along an axis: each once, and once more for each border of parts inside of it."""
    return -(-extent // piece) + (extent - 1) // part - (extent - 1) // math.lcm(part, piece)


def _steps(extent: int, piece: int, chunk: int, now: int) -> list[int]:
    """List the counts of chunks that a part may have along an axis, above what it has."""
    most = -(-extent // chunk)
    doubled = {now << shift for shift in range(1, 64) if now << shift < most}
    whole = math.lcm(piece, chunk) // chunk
    aligned = {whole * factor for factor in (1, 2, 4, 8) if now < whole * factor < most}
    return sorted(doubled | aligned | ({most} if most > now else set()))
