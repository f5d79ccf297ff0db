"""What an index selects, and how it is cut along chunks: NumPy says what is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import ParameterError
from tamis.arrays import Selection
from tamis.arrays.selection import Points, select

SHAPE = (10, 7)


@st.composite
def indices(draw: st.DrawFn, extent: int) -> Any:
    """An index along one axis, but for an array."""
    kind = draw(st.sampled_from(["number", "slice"]))
    if kind == "number" and extent:
        return draw(st.integers(-extent, extent - 1))
    bounds = st.none() | st.integers(-extent - 3, extent + 3)
    return slice(draw(bounds), draw(bounds), draw(st.none() | st.integers(1, extent + 2)))


@st.composite
def cases(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], Any]:
    """Shape, chunks and key."""
    shape = tuple(draw(st.lists(st.integers(0, 9), min_size=1, max_size=4)))
    chunks = tuple(draw(st.integers(1, 10)) for _ in shape)
    if draw(st.integers(0, 5)) == 0:
        flags = draw(st.lists(st.booleans(), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
        return shape, chunks, np.array(flags, bool).reshape(shape)
    keys = [draw(indices(extent)) for extent in shape]
    if draw(st.booleans()):
        axis = draw(st.integers(0, len(shape) - 1))
        flags = np.array(draw(st.lists(st.booleans(), min_size=shape[axis], max_size=shape[axis])), bool)
        keys[axis] = draw(st.sampled_from([flags, np.flatnonzero(flags), np.flatnonzero(flags).tolist()]))
    if draw(st.booleans()):
        start, stop = sorted(draw(st.integers(0, len(shape))) for _ in range(2))
        keys[start:stop] = [...]
    return shape, chunks, tuple(keys)


@given(cases())
def test_pieces_put_together_what_numpy_selects(case: tuple[tuple[int, ...], tuple[int, ...], Any]) -> None:
    shape, chunks, key = case
    values = np.arange(np.prod(shape)).reshape(shape)
    selection = select(key, shape)
    out = np.full(selection.full_shape, -1)
    origins = []
    for piece in selection.pieces(chunks):
        assert all(start % step == 0 for start, step in zip(piece.origin, chunks, strict=True))
        chunk = values[tuple(slice(start, start + step) for start, step in zip(piece.origin, chunks, strict=True))]
        part = chunk[piece.inside]
        assert part.size
        assert np.array_equal(part, chunk) or not piece.covers(chunk.shape)
        out[piece.outside] = part
        origins.append(piece.origin)
    # NumPy moves the axis of an array to the front where numbers stand apart from it; h5py leaves it in its place.
    expected = values[key] if isinstance(selection, Points) else values[np.ix_(*selection.axes)]
    assert np.array_equal(out, expected)
    assert selection.shape == (expected.shape if isinstance(selection, Points) else _shape_by_slices(values, key))
    assert origins == sorted(set(origins))


def _shape_by_slices(values: Any, key: tuple[Any, ...]) -> tuple[int, ...]:
    """Shape of the result where each key is applied along its own axis."""
    dots = next((i for i, each in enumerate(key) if each is Ellipsis), None)
    if dots is not None:
        key = (*key[:dots], *[slice(None)] * (values.ndim - len(key) + 1), *key[dots + 1 :])
    found = []
    for axis, each in enumerate(key):
        if not isinstance(each, int):
            found.append(np.arange(values.shape[axis])[each].size)
    return tuple(found)


@pytest.mark.parametrize(
    ("key", "shape"),
    [
        (np.int8(3), (7,)),
        (np.array(3), (7,)),
        (np.uint64(3), (7,)),
        (True, (7,)),
        ((1, 2), ()),
        (..., SHAPE),
        ((), SHAPE),
        (range(3), (3, 7)),
        (((1, 2), 0), (2,)),
        ([], (0, 7)),
        ([-2, -1], (2, 7)),
        (np.array([1, 3], "u1"), (2, 7)),
        ([True] * 10, SHAPE),
        (slice(5, 2), (0, 7)),
        (slice(0, 10**30), SHAPE),
    ],
    ids=repr,
)
def test_select_what_numpy_and_h5py_take_shape(key: Any, shape: tuple[int, ...]) -> None:
    assert select(key, SHAPE).shape == shape


@pytest.mark.parametrize(
    ("key", "error", "text"),
    [
        (10, IndexError, "expected an index of -10 to 9 along axis 0, got 10"),
        ((0, -8), IndexError, "expected an index of -7 to 6 along axis 1, got -8"),
        ([3, 10], IndexError, "got 10"),
        ([-11], IndexError, "got -11"),
        (np.array([0, 2**63], "u8"), IndexError, "got 9223372036854775808"),
        ((0, 0, 0), ParameterError, "expected at most 2 indices, one for each axis"),
        ((..., ...), ParameterError, r"expected one '\.\.\.' in an index, got several"),
        (slice(None, None, -1), ParameterError, "expected a step of 1 or more"),
        (slice(None, None, 0), ParameterError, "expected a step of 1 or more"),
        (slice(1.5, 2), TypeError, "slice indices must be integers"),
        (None, TypeError, "None .numpy.newaxis. is not supported"),
        (2.0, TypeError, "expected numbers, slices"),
        ("name", TypeError, "expected numbers, slices"),
        (np.True_, TypeError, "expected one axis of indices"),
        ([1.0], TypeError, "expected whole numbers as indices, got float64"),
        (np.array([], float), TypeError, "expected whole numbers as indices, got float64"),
        ([2**70], TypeError, "expected whole numbers as indices, got object"),
        ([3, 1], TypeError, "indices along axis 0 must increase"),
        ([1, 1], TypeError, "indices along axis 0 must increase"),
        ([-1, 2], TypeError, "indices along axis 0 must increase"),
        ([[1, 2]], TypeError, "expected one axis of indices"),
        (([0, 1], [0, 1]), TypeError, "expected one array of indices, got several"),
        ([True, False], TypeError, "expected 10 booleans along axis 0, got 2"),
        (np.zeros((7, 10), bool), TypeError, "expected one axis of indices"),
    ],
    ids=repr,
)
def test_select_what_cannot_be_refused(key: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        select(key, SHAPE)


def test_pieces_of_nothing_none() -> None:
    assert list(select(slice(3, 3), SHAPE).pieces((2, 2))) == []
    assert list(select(np.zeros(SHAPE, bool), SHAPE).pieces((2, 2))) == []


def test_selection_of_many_chunks_cut_while_taken() -> None:
    pieces = select((), (1 << 20, 1 << 20)).pieces((1 << 10, 1 << 10))
    assert next(pieces).origin == (0, 0)
    assert next(pieces).origin == (0, 1 << 10)


@pytest.mark.parametrize(
    ("key", "covered"),
    [((), True), (slice(0, 10), True), (slice(0, 9), False), (slice(0, 10, 2), False), (list(range(10)), False)],
    ids=repr,
)
def test_piece_covers_chunk_only_if_all_of_it(key: Any, covered: bool) -> None:
    assert next(select(key, SHAPE).pieces(SHAPE)).covers(SHAPE) is covered


def test_points_each_chunk_once() -> None:
    mask = np.zeros(SHAPE, bool)
    mask[[0, 1, 9, 9], [0, 1, 0, 6]] = True
    selection = select(mask, SHAPE)
    assert isinstance(selection, Points)
    assert [piece.origin for piece in selection.pieces((5, 4))] == [(0, 0), (5, 0), (5, 4)]


def test_array_along_an_axis_is_no_point_selection() -> None:
    assert isinstance(select((slice(None), [1, 2]), SHAPE), Selection)
