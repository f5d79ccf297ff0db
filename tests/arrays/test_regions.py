"""Parts of an array by the numbers of chunks, against all elements of small arrays."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.arrays import Grid, Parts, joined
from tamis.arrays.grid import ChunkNotes
from tamis.arrays.index import ChunkIndex, ChunkRecord

EXTENTS = st.integers(1, 12)


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    shape = tuple(draw(st.lists(EXTENTS, min_size=1, max_size=3)))
    return Grid(shape, tuple(draw(st.integers(1, extent + 2)) for extent in shape))


@st.composite
def some_parts(draw: st.DrawFn) -> Parts:
    grid = draw(grids())
    numbers = draw(st.none() | st.sets(st.integers(0, grid.chunk_count - 1)))
    return Parts(grid, None if numbers is None else np.array(sorted(numbers), np.int64))


def marks(parts: Parts, shape: tuple[int, ...]) -> np.ndarray:
    marked = np.zeros(parts.grid.shape, int)
    for part in parts:
        marked[part] += 1
    return marked[tuple(slice(extent) for extent in shape)]


@given(grids())
def test_parts_of_a_grid_cover_the_array_once_last_axis_fastest(grid: Grid) -> None:
    parts = Parts(grid)
    assert (marks(parts, grid.shape) == 1).all()
    assert len(parts) == math.prod(-(-e // s) for e, s in zip(grid.shape, grid.chunk_shape, strict=True))
    origins = [*parts.origins()]
    assert origins == sorted(origins)
    assert [grid.number_of(origin) for origin in origins] == [*range(len(parts))]
    assert [parts[at] for at in range(len(parts))] == [*parts]


@given(some_parts(), st.data())
def test_touching_are_the_chunks_that_share_an_element(parts: Parts, data: st.DataObject) -> None:
    shape = tuple(data.draw(st.integers(1, extent + 3)) for extent in parts.grid.shape)
    other = Grid(shape, tuple(data.draw(st.integers(1, extent)) for extent in shape))
    marked = np.zeros(tuple(map(max, shape, parts.grid.shape)), bool)
    for part in parts:
        marked[part] = True
    assert [*parts.touching(other)] == [part for part in Parts(other) if marked[part].any()]


@given(some_parts(), st.data())
def test_grouped_gives_each_chunk_once_in_the_order_of_larger_parts(parts: Parts, data: st.DataObject) -> None:
    factors = [data.draw(st.integers(1, 4)) for _ in parts.grid.shape]
    larger = tuple(factor * step for factor, step in zip(factors, parts.grid.chunk_shape, strict=True))
    groups = [*parts.grouped(larger)]
    places = [{tuple(at // step for at, step in zip(o, larger, strict=True)) for o in g.origins()} for g in groups]
    assert all(len(place) == 1 for place in places)
    assert [*itertools.chain.from_iterable(places)] == sorted(set().union(*places))
    assert sorted(itertools.chain.from_iterable(g.origins() for g in groups)) == [*parts.origins()]
    for group in groups:
        box = group.bounding()
        assert all(a.start >= b.start and a.stop <= b.stop for part in group for a, b in zip(part, box, strict=True))


@given(some_parts(), st.data())
def test_without_and_joined_are_those_of_sets(parts: Parts, data: st.DataObject) -> None:
    numbers = {*map(int, parts.numbers)}
    chosen = data.draw(st.sets(st.sampled_from(sorted(numbers)))) if numbers else set()
    rest = parts.without(np.array(sorted(chosen), np.int64))
    assert {*map(int, rest.numbers)} == numbers - chosen
    both = joined(rest, Parts(parts.grid, np.array(sorted(chosen), np.int64)))
    assert {*map(int, both.numbers)} == numbers


def test_parts_of_a_slice_are_parts() -> None:
    parts = Parts(Grid((10,), (3,)))
    assert [*parts[1:3]] == [(slice(3, 6),), (slice(6, 9),)]
    assert [*parts[::2].origins()] == [(0,), (6,)]


def test_a_million_chunks_take_no_memory_before_they_are_asked_for() -> None:
    parts = Parts(Grid((1 << 40, 1 << 20), (1, 1)))
    assert parts[-1 - 0 : -1] is not None
    assert parts[(1 << 60) - 1] == (slice((1 << 40) - 1, 1 << 40), slice((1 << 20) - 1, 1 << 20))


@pytest.mark.parametrize("numbers", [range(4), np.array([0, 2, 3])])
def test_index_gives_the_record_of_each_stored_chunk(numbers: range | np.ndarray) -> None:
    count = len(numbers)
    index = ChunkIndex(
        Grid((8,), (2,)), numbers, np.arange(count) * 100, np.full(count, 10), np.array([1] * count, np.uint32)
    )
    assert (len(index), index.nbytes, index.mask_counts()) == (count, 10 * count, {1: count})
    records = dict(index.records())
    assert list(records) == [(2 * int(number),) for number in numbers]
    assert all(index.record_of(origin) == record and origin in index for origin, record in records.items())
    assert index.record_of((6,)) == ChunkRecord((count - 1) * 100, 10, 1)
    if count < 4:
        assert index.record_of((2,)) is None
        assert (2,) not in index


def test_notes_come_back_in_the_order_of_numbers_the_last_of_each() -> None:
    notes = ChunkNotes("qI")
    for row in ((7, 1, 2), (3, 4, 5), (7, 8, 2**32 - 1)):
        notes.add(*row)
    assert [column.tolist() for column in notes.columns()] == [[3, 7], [4, 8], [5, 2**32 - 1]]
    assert len(notes) == 3


def test_boxes_have_all_parts_in_order_without_gaps() -> None:
    grid = Grid((12, 21, 15), (4, 8, 5))  # 3 x 3 x 3 chunks
    for numbers, lengths in [
        (range(27), [27]),
        ([*range(10), *range(11, 27)], [9, 1, 1, 6, 9]),
        ([2, 3, 4, 5, 6, 7, 8, 9, 10], [1, 6, 2]),
        ([5, 3, 4], [1, 2]),
        ([0, 3, 6], [1, 1, 1]),
    ]:
        parts = Parts(grid, numbers if isinstance(numbers, range) else np.array(numbers))
        boxes = list(parts.boxes())
        assert [number for box in boxes for number in box.numbers] == list(numbers)
        assert [len(box) for box in boxes] == lengths
        for box in boxes:
            covered = np.zeros(grid.shape, int)
            for part in box:
                covered[part] += 1
            assert covered.sum() == covered[box.bounding()].size
            assert (covered[box.bounding()] == 1).all()


def test_origin_table_has_a_row_for_each_part() -> None:
    parts = Parts(Grid((12, 21, 15), (4, 8, 5)), np.array([0, 5, 26]))
    assert parts.origin_table().tolist() == [list(origin) for origin in parts.origins()]
