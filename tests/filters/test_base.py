"""What all filters have in common, and the registry."""

from __future__ import annotations

import inspect
from typing import Any

import h5py
import numpy as np
import pytest

from tamis import Deflate, Fletcher32, MissingFilterError, ParameterError, Shuffle, UnknownFilter, Zfp
from tamis.filters import ChunkType, Filter, Request, by_id, by_name, from_values, requested_filter

KINDS = list(by_name().values())


@pytest.mark.parametrize(
    ("dtype", "shape", "nbytes"), [("f4", (3, 5), 60), ("f8", (), 8), ("i1", (1 << 40, 1 << 40), 1 << 80)]
)
def test_chunk_type_nbytes_exact(dtype: str, shape: tuple[int, ...], nbytes: int) -> None:
    assert ChunkType(np.dtype(dtype), shape).nbytes == nbytes


def test_chunk_type_type_and_shape_as_numpy_takes_them() -> None:
    assert ChunkType("f4", [np.int64(4)]) == ChunkType(np.dtype("f4"), (4,))
    assert hash(ChunkType("f4", [4])) == hash(ChunkType(np.dtype("f4"), (4,)))


@pytest.mark.parametrize(("dtype", "shape"), [("nothing", (4,)), ("f4", 4), ("f4", (4.5,)), ("f4", (-1,))])
def test_chunk_type_of_none_refused(dtype: Any, shape: Any) -> None:
    with pytest.raises(
        ParameterError, match=r"expected (type and shape of a chunk|a chunk shape of 0 or more along each axis), got"
    ):
        ChunkType(dtype, shape)


def test_chunk_type_of_an_enumeration_differs_from_its_integers() -> None:
    # numpy says that the types are equal.
    names = h5py.enum_dtype({"a": 0}, "i4")
    assert ChunkType(names, (4,)) != ChunkType(np.dtype("i4"), (4,))
    nested = np.dtype([("a", names), ("b", "i4")])
    assert ChunkType(nested, (4,)) != ChunkType(np.dtype([("a", "i4"), ("b", names)]), (4,))


def test_registry_names_and_ids_as_registered() -> None:
    known = {name: kind.id for name, kind in by_name().items()}
    assert known.items() >= {"zfp": 32013, "shuffle": 2, "deflate": 1, "fletcher32": 3}.items()
    assert {kind.id: kind for kind in KINDS if not kind.zarr_only} == by_id()
    assert [kind.name for kind in KINDS if kind.id > 0xFFFF] == ["pcodec"]  # HDF5's ids have 16 bits


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_filter_class_says_what_it_is(kind: type[Filter]) -> None:
    assert kind.registered_name
    assert kind.about
    assert set(kind.parameters()) <= set(inspect.signature(kind).parameters)
    assert all(each.about and each.range for each in kind.parameters().values())


@pytest.mark.parametrize("one", [Shuffle(), Deflate(3), Fletcher32(), Zfp(rate=8), UnknownFilter(400, (1,))], ids=str)
def test_filter_object_frozen_and_without_dict(one: Filter) -> None:
    assert not hasattr(one, "__dict__")
    with pytest.raises((AttributeError, TypeError)):
        one.level = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("number", "values", "expected"),
    [
        (1, (6,), Deflate(6)),
        (2, (8,), Shuffle()),
        (3, (), Fletcher32()),
        (400, (1, -1), UnknownFilter(400, (1, 0xFFFFFFFF))),
        (32013, (5,), Zfp(reversible=True)),
        (32013, Zfp(rate=8).stored(ChunkType(np.dtype("f8"), (256,))), Zfp(rate=8)),
    ],
)
def test_from_values_known_typed_others_kept(number: int, values: tuple[int, ...], expected: Filter) -> None:
    found = from_values(Request(number, values))
    assert found == expected
    assert type(found) is type(expected)


def test_from_values_damaged_kept_with_the_reason_and_requested_refused() -> None:
    found = from_values(Request(1, (77,)), "deflate")
    assert found == UnknownFilter(1, (77,))
    assert found.in_words() == "deflate [1], not readable: expected level of 0 to 9, got level=77"
    with pytest.raises(ParameterError, match=r"filter 1 \(deflate\): expected level of 0 to 9, got level=77"):
        requested_filter(Request(1, (77,)))


@pytest.mark.parametrize("number", [-1, 65536, 1.5, None, True, np.True_])
def test_unknown_filter_id_out_of_range_refused(number: int) -> None:
    with pytest.raises(ParameterError, match="expected a filter id of 0 to 65535, got"):
        UnknownFilter(number)


def test_unknown_filter_numpy_integers_taken() -> None:
    one = UnknownFilter(np.int64(400), np.array([1, 2]))
    assert one == UnknownFilter(400, (1, 2))
    assert type(one.id) is int
    assert [type(value) for value in one.values] == [int, int]


@pytest.mark.parametrize("value", [-1, 1 << 32, 0.5, False])
def test_unknown_filter_value_beyond_32_bits_refused(value: int) -> None:
    with pytest.raises(ParameterError, match="expected parameters of filter 400 of 0 to 4294967295, got"):
        UnknownFilter(400, (value,))


def test_unknown_filter_encode_decode_refused_with_name() -> None:
    one, chunk = UnknownFilter(400, (), "my filter"), ChunkType(np.dtype("f4"), (3,))
    for call in (one.encode, one.decode):
        with pytest.raises(MissingFilterError, match=r"tamis does not know filter 400 \(my filter\)"):
            call(b"", chunk, ())
