"""Region references are equal where they select the same elements; what else of a file is noted where it changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from h5py import h5r, h5s

import tamis
from tamis.hdf5 import create_group

Select = Callable[[h5s.SpaceID], None]
SHAPE = (6, 8)


def boxes(*corners: tuple[tuple[int, int], tuple[int, int]]) -> Select:
    """Select boxes, given by their first elements and extents, one after the other."""

    def select(space: h5s.SpaceID) -> None:
        space.select_none()
        for start, count in corners:
            space.select_hyperslab(start, count, op=h5s.SELECT_OR)

    return select


def regular(start: tuple[int, int], count: tuple[int, int], stride: tuple[int, int], block: tuple[int, int]) -> Select:
    return lambda space: space.select_hyperslab(start, count, stride, block)


def points(*elements: tuple[int, int]) -> Select:
    return lambda space: space.select_elements(np.array(elements))


def write(path: Path, select: Select) -> Path:
    with h5py.File(path, "w") as file:
        data = file.create_dataset("data", data=np.arange(48).reshape(SHAPE))
        space = h5s.create_simple(SHAPE)
        select(space)
        reference = h5r.create(file.id, b"data", h5r.DATASET_REGION, space)
        file.create_dataset("region", (1,), dtype=h5py.regionref_dtype)[0] = reference
        data.attrs.create("region", reference, dtype=h5py.regionref_dtype)
        kind = np.dtype([("id", "i4"), ("where", h5py.regionref_dtype)])
        file["records"] = np.array([(1, reference)], kind)
    return path


CORNERS = boxes(((0, 0), (1, 1)), ((5, 7), (1, 1)), ((2, 2), (2, 3)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (CORNERS, boxes(((0, 0), (1, 1)), ((5, 7), (1, 1)), ((3, 4), (2, 3)))),
        (regular((0, 0), (3, 4), (2, 2), (1, 1)), regular((0, 0), (3, 4), (2, 2), (1, 1))),
        (points((0, 0), (5, 7), (1, 1)), points((0, 0), (5, 7), (1, 2))),
        (points((0, 0), (5, 7), (1, 1)), points((0, 0), (1, 1), (5, 7))),
        (points((0, 0), (5, 7)), boxes(((0, 0), (1, 1)), ((5, 7), (1, 1)))),
        (lambda space: space.select_none(), boxes(((0, 0), (1, 1)))),
    ],
    ids=["other blocks", "regular", "other points", "other order", "points and blocks", "none"],
)
def test_verify_region_of_the_same_size_and_box_is_compared_by_its_elements(
    before: Select, after: Select, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    source, target = write(tmp_path / "a.h5", before), write(tmp_path / "b.h5", after)
    assert tamis.verify(source, source).ok
    found = tamis.verify(source, target)
    if "regular" in request.node.callspec.id:
        assert found.ok
        return
    assert {(each.path, each.code) for each in found.violations} == {
        ("/data", "attribute"),
        ("/region", "values"),
        ("/records", "values"),
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (boxes(((1, 1), (2, 4))), boxes(((1, 1), (2, 2)), ((1, 3), (2, 2)))),
        (CORNERS, boxes(((2, 2), (1, 3)), ((5, 7), (1, 1)), ((3, 2), (1, 3)), ((0, 0), (1, 1)))),
        (regular((1, 0), (2, 4), (3, 1), (1, 1)), boxes(((1, 0), (1, 4)), ((4, 0), (1, 4)))),
        (lambda space: space.select_all(), boxes(((0, 0), (6, 8)))),
    ],
    ids=["box of two", "order", "regular", "all"],
)
def test_verify_region_put_together_otherwise_is_the_same(before: Select, after: Select, tmp_path: Path) -> None:
    found = tamis.verify(write(tmp_path / "a.h5", before), write(tmp_path / "b.h5", after))
    assert found.ok, str(found)


@pytest.mark.parametrize("select", [CORNERS, points((0, 0), (5, 7), (1, 1)), regular((0, 0), (3, 4), (2, 2), (1, 1))])
def test_verify_region_through_repack_and_other_recipes_is_the_same(select: Select, tmp_path: Path) -> None:
    source = write(tmp_path / "a.h5", select)
    tamis.repack(source, tmp_path / "b.h5", {"data": "shuffle|deflate"})
    found = tamis.verify(source, tmp_path / "b.h5", bounds={"*": 0})
    assert found.ok, str(found)


def test_verify_group_that_loses_its_filters_or_order_is_noted(tmp_path: Path) -> None:
    def make(name: str, names: str, filters: str, *, tracked: bool) -> Path:
        with h5py.File(tmp_path / name, "w", track_order=tracked) as file:
            for each in names:
                file[each] = 1
            create_group(file, "steps", filters, max_compact=0)["x"] = file["a"]
        return tmp_path / name

    def notes(source: Path, target: Path) -> set[tuple[str, str, str]]:
        found = tamis.verify(source, target)
        assert found.ok, str(found)
        return {(each.path, each.code, each.text) for each in found.notes}

    source = make("a.h5", "cab", "deflate(9)", tracked=True)
    assert notes(source, make("same.h5", "cab", "deflate(9)", tracked=True)) == set()
    assert ("/", "creation-order", "links were created in another order, b where c was") in notes(
        source, make("order.h5", "bca", "deflate(9)", tracked=True)
    )
    lost = notes(source, make("lost.h5", "cab", "deflate(1)", tracked=False))
    assert ("/", "creation-order", "the order in which links were created is no longer recorded") in lost
    assert ("/steps", "group-filters", "filters of the group's links deflate(9) became deflate(1)") in lost


def test_verify_named_type_that_is_lost_and_fill_value_of_records_are_noted(tmp_path: Path) -> None:
    kind = np.dtype([("a", "i4"), ("b", "S3")])
    paths = tmp_path / "a.h5", tmp_path / "b.h5"
    for path, fill in zip(paths, [(1, b"x"), (2, b"x")], strict=True):
        with h5py.File(path, "w") as file:
            file["kind"] = kind
            dtype = file["kind"] if path == paths[0] else kind
            file.create_dataset("v", data=np.zeros(3, kind), dtype=dtype, fillvalue=np.array(fill, kind), chunks=(2,))
    found = tamis.verify(*paths)
    assert found.ok
    assert [(each.path, each.code, each.text) for each in found.notes] == [
        ("/v", "named-type", "the type, a named type, became one without a name"),
        ("/v", "fill-value", "HDF5's fill value (1, 'x') became (2, 'x')"),
    ]
