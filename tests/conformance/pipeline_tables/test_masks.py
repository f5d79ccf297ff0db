"""Masks, orders, duplicates and numbers of filters: HDF5 reads what we encode, we read what it reads."""

from __future__ import annotations

import ctypes
import itertools
import zlib
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5s, h5t, h5z
from numpy.typing import NDArray

from tamis import DataError, Deflate, Fletcher32, ParameterError, Pipeline, Shuffle, StreamError
from tamis.filters import ChunkType, Filter
from tamis.formats.hdf5.chunk_access import chunk_type, pipeline_of
from tamis.pipeline import MAX_FILTERS

REQUIRED, OPTIONAL = h5z.FLAG_MANDATORY, h5z.FLAG_OPTIONAL
TOY, SHUFFLE, DEFLATE, CHECKSUM = (400, REQUIRED, (90,)), (2, 1, ()), (1, 1, (6,)), (3, 0, ())
ORDERS = list(itertools.permutations([TOY, SHUFFLE, DEFLATE, CHECKSUM]))


def without(pipeline: Pipeline, mask: int, values: NDArray[Any]) -> bytes:
    """A chunk as it is without the filters whose bit is set."""
    return Pipeline(stage for i, stage in enumerate(pipeline.stages) if not mask >> i & 1).encode(values)[0]


@pytest.fixture
def values() -> NDArray[Any]:
    return (np.sin(np.arange(16 * 30) / 7) * 1000).astype("<i4").reshape(16, 30)


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: "-".join(str(each[0]) for each in order))
def test_decode_every_mask_in_every_order_as_hdf5(
    order: tuple[Any, ...], hdf5: Any, toy: Any, installed: Any, values: NDArray[Any]
) -> None:
    with hdf5.registered(toy()), installed("Xor"):
        hdf5.create(order, shape=(16, 30), chunk=(1, 30))
        with hdf5.file() as file:
            pipeline, chunk = pipeline_of(file["x"]), chunk_type(file["x"])
        hdf5.write_raw([((mask, 0), without(pipeline, mask, values[mask : mask + 1]), mask) for mask in range(16)])
        np.testing.assert_array_equal(hdf5.read(), values)
        assert hdf5.masks() == [*range(16)]
        for (row, _), data, mask in hdf5.stored():
            np.testing.assert_array_equal(pipeline.decode(data, mask, chunk)[0], values[row])


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: "-".join(str(each[0]) for each in order))
def test_encode_every_order_as_hdf5(
    order: tuple[Any, ...], hdf5: Any, toy: Any, installed: Any, values: NDArray[Any]
) -> None:
    with hdf5.registered(toy()), installed("Xor"):
        hdf5.create(order, shape=(16, 30), chunk=(16, 30))
        with hdf5.file("r+") as file:
            file["x"][...] = values
        ((_, theirs, mask),) = hdf5.stored()
        with hdf5.file() as file:
            pipeline, chunk = pipeline_of(file["x"]), chunk_type(file["x"])
        ours, our_mask = pipeline.encode(values)
        assert mask == our_mask == 0
        np.testing.assert_array_equal(pipeline.decode(theirs, mask, chunk), values)
        hdf5.create(order, shape=(16, 30), chunk=(16, 30))
        hdf5.write_raw([((0, 0), ours, 0)])
        np.testing.assert_array_equal(hdf5.read(), values)
    after = [each[0] for each in order][order.index(DEFLATE) + 1 :]
    if not after:  # another zlib may compress otherwise
        assert zlib.decompress(ours) == zlib.decompress(theirs)


@pytest.mark.parametrize("skip", [(Shuffle,), (Deflate,), (Shuffle, Fletcher32), (Shuffle, Deflate, Fletcher32)])
def test_encode_filters_left_out_on_demand_hdf5_reads_it(
    skip: tuple[type[Filter], ...], hdf5: Any, values: NDArray[Any]
) -> None:
    hdf5.create([CHECKSUM, SHUFFLE, DEFLATE], shape=(16, 30), chunk=(16, 30))
    with hdf5.file() as file:
        data, mask = pipeline_of(file["x"]).encode(values, skip=skip)
    assert mask == sum(1 << bit for bit, kind in enumerate((Fletcher32, Shuffle, Deflate)) if kind in skip)
    hdf5.write_raw([((0, 0), data, mask)])
    np.testing.assert_array_equal(hdf5.read(), values)


@pytest.mark.parametrize("mask", [0xFFFFFFF8, 0xFFFFFFFD, 0x80000002, 0xFFFFFFFF])
def test_decode_bits_beyond_the_filters_ignored_as_in_hdf5(mask: int, hdf5: Any, values: NDArray[Any]) -> None:
    hdf5.create([SHUFFLE, DEFLATE, CHECKSUM], shape=(16, 30), chunk=(16, 30))
    with hdf5.file() as file:
        pipeline, chunk = pipeline_of(file["x"]), chunk_type(file["x"])
    data = without(pipeline, mask, values)
    hdf5.write_raw([((0, 0), data, mask)])
    assert hdf5.masks() == [mask]
    np.testing.assert_array_equal(hdf5.read(), values)
    np.testing.assert_array_equal(pipeline.decode(data, mask, chunk), values)


# Numbers of filters


@pytest.mark.parametrize("mask", [0, 1, 1 << 31, 0x55555555, 0xFFFFFFFF])
def test_thirty_two_filters_encoded_and_decoded_as_hdf5(mask: int, hdf5: Any, values: NDArray[Any]) -> None:
    filters = [CHECKSUM, DEFLATE] * 16
    hdf5.create(filters, shape=(16, 30), chunk=(16, 30))
    with hdf5.file() as file:
        pipeline, chunk = pipeline_of(file["x"]), chunk_type(file["x"])
    assert len(pipeline.stages) == MAX_FILTERS == 32
    data = without(pipeline, mask, values)
    hdf5.write_raw([((0, 0), data, mask)])
    np.testing.assert_array_equal(hdf5.read(), values)
    np.testing.assert_array_equal(pipeline.decode(data, mask, chunk), values)


def test_thirty_three_filters_refused_as_by_hdf5(hdf5: Any) -> None:
    with pytest.raises(RuntimeError, match="too many filters"):
        hdf5.plist([CHECKSUM] * 33)
    with pytest.raises(ParameterError, match=r"expected at most 32 filters, .*, got 33"):
        Pipeline([Fletcher32()] * 33)


def test_no_filters_bytes_as_they_are(hdf5: Any, values: NDArray[Any]) -> None:
    hdf5.create([], shape=(16, 30), chunk=(16, 30))
    with hdf5.file("r+") as file:
        file["x"][...] = values
    ((_, data, mask),) = hdf5.stored()
    with hdf5.file() as file:
        pipeline, chunk = pipeline_of(file["x"]), chunk_type(file["x"])
    assert pipeline.encode(values) == (data, mask) == (values.tobytes(), 0)
    np.testing.assert_array_equal(pipeline.decode(data, mask, chunk), values)


# The same id twice


def test_same_filter_twice_each_with_its_own_parameters_as_hdf5(
    hdf5: Any, toy: Any, installed: Any, values: NDArray[Any]
) -> None:
    with hdf5.registered(toy()), installed("Xor"):
        filters = [(400, 0, (3,)), DEFLATE, (400, 1, (5,)), (1, 0, (0,))]
        hdf5.create(filters, shape=(16, 30), chunk=(16, 30))
        with hdf5.file("r+") as file:
            file["x"][...] = values
        ((_, data, mask),) = hdf5.stored()
        with hdf5.file() as file:
            pipeline, chunk = pipeline_of(file["x"]), chunk_type(file["x"])
        assert [str(each) for each in pipeline.filters] == ["toy(3)", "deflate(6)", "toy(5)", "deflate(0)"]
        np.testing.assert_array_equal(pipeline.decode(data, mask, chunk), values)
        hdf5.create(filters, shape=(16, 30), chunk=(16, 30))
        hdf5.write_raw([((0, 0), *pipeline.encode(values))])
        np.testing.assert_array_equal(hdf5.read(), values)


def test_shuffle_twice_hdf5_leaves_the_second_out_and_so_do_we(hdf5: Any, values: NDArray[Any]) -> None:
    """HDF5 completes the parameters of the first only; the second fails, and is optional."""
    hdf5.create([SHUFFLE, DEFLATE, SHUFFLE], shape=(16, 30), chunk=(16, 30))
    with hdf5.file("r+") as file:
        file["x"][...] = values
        pipeline, chunk = pipeline_of(file["x"]), chunk_type(file["x"])
    assert [each.stored for each in pipeline.stages] == [(4,), (6,), ()]
    ((_, data, mask),) = hdf5.stored()
    assert mask == 0b100
    np.testing.assert_array_equal(pipeline.decode(data, mask, chunk), values)
    ours, mask = pipeline.encode(values)
    assert mask == 0b100
    assert zlib.decompress(ours) == zlib.decompress(data)
    hdf5.create([SHUFFLE, DEFLATE, SHUFFLE], shape=(16, 30), chunk=(16, 30))
    hdf5.write_raw([((0, 0), ours, mask)])
    np.testing.assert_array_equal(hdf5.read(), values)


def test_shuffle_twice_required_fails_in_both_and_check_refuses_it(hdf5: Any, values: NDArray[Any]) -> None:
    required = (2, 0, ())
    hdf5.create([required, required], shape=(16, 30), chunk=(16, 30))
    with hdf5.file("r+") as file:
        found = file["x"]
        found[...] = values
        with pytest.raises((OSError, RuntimeError), match="filter returned failure"):
            file.flush()
        # HDF5 would try again at closing: this takes the chunk from its cache.
        found.id.write_direct_chunk((0, 0), values.tobytes(), 3)
    with hdf5.file() as file:
        pipeline = pipeline_of(file["x"])
    with pytest.raises((DataError, StreamError), match=r"filter 2, shuffle \(required\): expected the element size"):
        pipeline.encode(values)
    with pytest.raises(ParameterError, match="expected shuffle once in a pipeline, got it 2 times"):
        Pipeline([Shuffle(), Shuffle()]).check(ChunkType(np.dtype("i4"), (30,)))


# What a mask does not say


def set_chunk_options(hdf5: Any, plist: Any, options: int) -> None:
    assert hdf5.calls.H5Pset_chunk_opts(ctypes.c_int64(plist.id), ctypes.c_uint(options)) >= 0


def test_partial_chunks_left_unfiltered_by_option_have_a_mask_of_zero_in_hdf5(hdf5: Any) -> None:
    """H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS: who decodes such chunks must skip all filters, whatever the mask says."""
    values = np.arange(20, dtype="<i4")
    plist = hdf5.plist([SHUFFLE, DEFLATE])
    set_chunk_options(hdf5, plist, 2)
    with h5py.File(hdf5.folder / "t.h5", "w", libver="latest") as file:
        found = h5d.create(file.id, b"x", h5t.py_create(values.dtype), h5s.create_simple((20,)), plist)
        h5py.Dataset(found)[:] = values
    assert hdf5.masks() == [0, 0, 0]
    with hdf5.file() as file:
        pipeline, chunk = pipeline_of(file["x"]), chunk_type(file["x"])
    *_, (_, data, mask) = hdf5.stored()
    with pytest.raises(StreamError, match="deflate stream is damaged"):
        pipeline.decode(data, mask, chunk)
    np.testing.assert_array_equal(pipeline.decode(data, ~0, chunk)[:4], values[16:])


def test_optional_shuffle_of_text_of_any_length_is_left_out_by_hdf5(hdf5: Any) -> None:
    """HDF5 2.0 calls no set_local for such types: shuffle has no parameter, fails, and its mask bit is set."""
    with hdf5.file("w") as file:
        texts = ["ab", "cdefg"] * 10
        file.create_dataset("x", data=texts, dtype=h5py.string_dtype(), chunks=(5,), shuffle=True, compression="gzip")
    with hdf5.file() as file:
        pipeline = pipeline_of(file["x"])
    assert hdf5.masks() == [1] * 4
    whole = ChunkType(np.dtype("V16"), (5,))  # length, address of the heap, index
    for _, data, mask in hdf5.stored():
        found = pipeline.decode(data, mask, whole)
        assert found.tobytes() == zlib.decompress(data)
        assert [int.from_bytes(each.tobytes()[:4], "little") for each in found] in ([2, 5, 2, 5, 2], [5, 2, 5, 2, 5])
        assert pipeline.encode(found)[1] == 1
