"""Two arrays in chunks of different shapes, compared in bounded memory and in any number of threads."""

from __future__ import annotations

import math
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tamis.accuracy import compare, compared
from tamis.accuracy import statistics as pairing
from tamis.arrays import Region, block_shape
from tamis.arrays.gather import pieces_read, several_chunks
from tamis.meaning import Missing

Shape = tuple[int, ...]


class InMemory:
    """An array whose chunks are given out part by part, which keeps account of it."""

    def __init__(self, values: NDArray[Any], chunks: Shape | None) -> None:
        self.values, self.chunk_shape = values, chunks
        self.shape, self.dtype = values.shape, values.dtype
        self.largest, self.read_values, self.lock = 0, 0, threading.Lock()

    def read(self, part: Region) -> NDArray[Any]:
        found = self.values[part]
        with self.lock:
            self.largest = max(self.largest, found.size)
            self.read_values += (
                self._chunk_count(part) * math.prod(self.chunk_shape) if self.chunk_shape else found.size
            )
        return found

    def _chunk_count(self, part: Region) -> int:
        steps = zip(part, self.chunk_shape or [1 for _ in part], strict=True)
        return math.prod(-(-axis.stop // step) - axis.start // step for axis, step in steps)


def silent(done: int, total: int) -> None:
    assert 0 <= done <= total


def pair(shape: Shape) -> tuple[NDArray[Any], NDArray[Any]]:
    random = np.random.default_rng(3)
    source = random.standard_normal(shape).astype("f4")
    return source, source + random.standard_normal(shape).astype("f4") / 100


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("shape", "first", "second"),
    [
        ((20, 30, 40), (20, 30, 40), (20, 30, 40)),
        ((20, 30, 40), (1, 30, 40), (20, 7, 9)),
        ((20, 30, 40), (7, 8, 9), (3, 11, 13)),
        ((20, 30, 40), None, (5, 5, 5)),
        ((20, 30, 40), (5, 64, 3), None),
        ((20, 30, 40), None, None),
        ((5,), (100,), (2,)),
        ((1, 1), (1, 1), None),
        ((), None, None),
    ],
)
@pytest.mark.parametrize("most", [1 << 20, 4000, 60])
def test_compared_any_two_chunk_shapes_as_the_whole_arrays(
    shape: Shape, first: Shape | None, second: Shape | None, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairing, "_BLOCK_NBYTES", 4 * most)
    monkeypatch.setattr(pairing, "_SLAB_NBYTES", 4 * most)
    source, target = pair(shape)
    expected = compare(source, target, (0,) * len(shape))
    found = [
        compared(InMemory(source, first), InMemory(target, second), Missing(), threads, silent) for threads in (1, 2, 8)
    ]
    assert found[0] == found[1] == found[2]
    for name in ("count", "different", "error", "worst", "relative", "low", "high", "compared"):
        assert getattr(found[0], name) == getattr(expected, name)
    assert found[0].rmse == pytest.approx(expected.rmse, rel=1e-14)


def test_compared_progress_reaches_all_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairing, "_SLAB_NBYTES", 4 * 12000)
    source, target = pair((20, 30, 40))
    steps: list[tuple[int, int]] = []
    compared(
        InMemory(source, (10, 30, 40)), InMemory(target, (10, 30, 40)), Missing(), 2, lambda *each: steps.append(each)
    )
    assert steps == [(0, 24000), (12000, 24000), (24000, 24000)]


def test_compared_empty_arrays_read_nothing() -> None:
    empty = np.zeros((0, 5), "f4")
    assert compared(InMemory(empty, (2, 5)), InMemory(empty, (1, 5)), Missing(), 2, silent).count == 0


def test_compared_without_chunks_reads_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairing, "_SLAB_NBYTES", 400)
    source, target = (InMemory(each, None) for each in pair((20, 30, 40)))
    assert compared(source, target, Missing(), 1, silent).count == 24000
    assert max(source.largest, target.largest) <= 100


def test_block_shape_holds_both_chunks_where_there_is_room_each_is_read_once() -> None:
    block = block_shape((60, 384, 320), [(1, 384, 320), (60, 16, 16)], 8 << 20)
    assert block == (60, 384, 320)
    source, target = (np.zeros((8, 64, 64), "f4") for _ in range(2))
    first, second = InMemory(source, (1, 64, 64)), InMemory(target, (8, 16, 16))
    compared(first, second, Missing(), 1, silent)
    assert (first.read_values, second.read_values) == (source.size, target.size)


@pytest.mark.parametrize("most", [1, 1000, 100_000, 10_000_000])
@pytest.mark.parametrize("grids", [[(7, 8, 9)], [(1, 100, 100), (100, 1, 100)], [(3, 50, 7), (64, 64, 64)]])
def test_block_shape_no_larger_than_asked_or_one_chunk(grids: list[Shape], most: int) -> None:
    block = block_shape((100, 100, 100), grids, most)
    assert math.prod(block) <= max(most, math.prod(grids[-1]))
    assert all(1 <= step <= 100 for step in block)


def test_block_shape_of_a_long_array_of_tiny_chunks_is_found_at_once() -> None:
    assert 500_000 < block_shape((10**12,), [(1,), (3,)], 1_000_000)[0] <= 1_000_000
    assert block_shape((), [], 100) == ()


@pytest.mark.parametrize(
    ("shape", "most", "expected"),
    [
        ((10, 20, 30), 30, (1, 1, 30)),
        ((10, 20, 30), 100, (1, 3, 30)),
        ((10, 20, 30), 7, (1, 1, 7)),
        ((), 5, ()),
        ((2, 3), 100, (2, 3)),
        ((2, 3), 0, (1, 1)),
    ],
)
def test_slab_whole_along_the_fastest_axes(shape: Shape, most: int, expected: Shape) -> None:
    assert several_chunks(shape, (1,) * len(shape), most) == expected


def test_touched_as_counted_one_by_one() -> None:
    for block, chunk, extent in [(1, 1, 5), (4, 6, 50), (6, 4, 50), (7, 7, 49), (100, 3, 10), (5, 64, 20)]:
        ends = [(start, min(start + block, extent) - 1) for start in range(0, extent, block)]
        assert pieces_read(extent, chunk, block) == sum(last // chunk - first // chunk + 1 for first, last in ends)


@pytest.mark.parametrize(("first", "second"), [((1, 512, 512), (32, 64, 64)), ((32, 64, 64), None), (None, None)])
def test_compared_memory_is_bounded(first: Shape | None, second: Shape | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairing, "_BLOCK_NBYTES", 4 << 20)
    source = np.ones((32, 512, 512), "f4")  # 32 MiB
    target = source + np.float32(0.5)
    tracemalloc.start()
    try:
        found = compared(InMemory(source, first), InMemory(target, second), Missing(), 2, silent)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.error == 0.5
    assert peak < 10 << 20
