"""Chains of filters whose bytes are no values any more: back by tamis as they were, and read so by HDF5."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

from tamis import (
    Bitshuffle,
    Blosc,
    Blosc2,
    Bzip2,
    DataError,
    Deflate,
    Fletcher32,
    Lz4,
    Lzf,
    Nbit,
    ParameterError,
    Pipeline,
    Scaleoffset,
    Shuffle,
    StreamError,
    Szip,
    Zfp,
    Zstd,
)
from tamis.filters import ChunkType, Filter, Request, Stage, by_id, from_values

OF_VALUES = [Nbit(), Scaleoffset("integer", 0), Zfp(reversible=True)]
OF_BYTES = [
    Deflate(1),
    Shuffle(),
    Fletcher32(),
    Szip("nn", 8),
    Szip("ec", 32),
    Bzip2(1),
    Lzf(),
    Blosc("lz4", 5, "byte"),
    Blosc("zstd", 1, "bit"),
    Lz4(),
    Lz4(500),
    Bitshuffle("none"),
    Bitshuffle("lz4"),
    Bitshuffle("zstd", 1, 64),
    Zstd(1),
    Blosc2("lz4", 5, "byte"),
]
TYPES = ["u1", "<i2", ">i2", "<i4", ">u4", "<i8", "<f4", ">f8"]
SHAPES = [(611,), (21, 30)]


def chains() -> Iterator[tuple[Filter, ...]]:
    """Every pair, and some of three, of different filters."""
    firsts = [*OF_VALUES, *OF_BYTES]
    yield from ((a, b) for a, b in itertools.product(firsts, OF_BYTES) if a.id != b.id)
    source = random.Random(1)
    for _ in range(200):
        three = (source.choice(firsts), *source.sample(OF_BYTES, 2))
        if len({each.id for each in three}) == 3:
            yield three


def values_of(dtype: str, shape: tuple[int, ...], steps: int) -> NDArray[Any]:
    return (np.arange(np.prod(shape)) // steps % 101).reshape(shape).astype(dtype)


@pytest.fixture(scope="module")
def encoded() -> list[tuple[Pipeline, NDArray[Any], bytes, int]]:
    made = []
    kinds = itertools.cycle(itertools.product(TYPES, SHAPES, (1, 3, 40)))
    for filters, turn in itertools.product(chains(), range(5)):
        values = values_of(*next(kinds))
        pipeline = Pipeline(filters)
        try:
            pipeline.check(ChunkType(values.dtype, values.shape))
        except ParameterError:
            continue
        made.append((pipeline, values, *pipeline.encode(values)))
        assert turn < 5
    return made


def test_chain_has_every_filter_that_is_encoded_and_lossless() -> None:
    of_chains = {type(each) for each in OF_VALUES + OF_BYTES}
    assert of_chains == {kind for kind in by_id().values() if not kind.is_foreign}


def test_chain_decoded_as_it_was(encoded: list[tuple[Pipeline, NDArray[Any], bytes, int]]) -> None:
    assert len(encoded) > 1500
    wrong = [
        (pipeline, values.dtype, values.shape, mask)
        for pipeline, values, data, mask in encoded
        if pipeline.decode(data, mask, ChunkType(values.dtype, values.shape)).tobytes() != values.tobytes()
    ]
    assert not wrong
    # Szip in every place, and left out in some.
    places = {
        (at, bool(mask >> at & 1))
        for pipeline, _, _, mask in encoded
        for at, each in enumerate(pipeline.filters)
        if isinstance(each, Szip)
    }
    assert places == {(0, False), (1, False), (1, True), (2, False), (2, True)}


@pytest.mark.check
def test_chain_read_by_hdf5_as_it_was(
    encoded: list[tuple[Pipeline, NDArray[Any], bytes, int]], tmp_path: Path, run_script: Callable[..., str]
) -> None:
    path = tmp_path / "chains.h5"
    with h5py.File(path, "w") as file:
        for at, (pipeline, values, data, mask) in enumerate(encoded):
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_chunk(values.shape)
            for stage in pipeline.stages:
                here = h5py.h5z.filter_avail(stage.filter.id)
                words = stage.filter.stored(ChunkType(values.dtype, values.shape))
                words = stage.filter.requested if here else words
                plist.set_filter(stage.filter.id, int(stage.optional), words)
            made = file.create_dataset(str(at), values.shape, values.dtype, chunks=values.shape, dcpl=plist)
            made.id.write_direct_chunk((0,) * made.ndim, data, mask)
            file[f"expected/{at}"] = values
    failed = run_script("library_files.py", "read", path).splitlines()
    assert not [(line, str(encoded[int(line.split()[0])][0])) for line in failed]


@pytest.mark.parametrize("text", ["lzf|szip", "scaleoffset|szip"])
def test_szip_after_part_of_a_pixel_left_out_and_never_other_values(text: str) -> None:
    pipeline = Pipeline.parse(text)
    left_out = 0
    for count in range(64, 1000, 37):
        values = values_of("<i4", (count,), 3)
        data, mask = pipeline.encode(values)
        left_out += mask == 2
        np.testing.assert_array_equal(pipeline.decode(data, mask, ChunkType(values.dtype, values.shape)), values)
    assert left_out


def test_szip_of_part_of_a_pixel_refused_both_ways() -> None:
    chunk, one = ChunkType("<i4", (100,)), Szip()
    stored = one.stored(chunk)
    with pytest.raises(DataError, match="expected whole pixels of 4 bytes for szip, got 399 bytes"):
        one.encode(bytes(399), chunk, stored)
    with pytest.raises(StreamError, match="expected whole pixels of 4 bytes from szip, got 399 bytes"):
        one.decode((399).to_bytes(4, "little") + bytes(99), chunk, stored)


def hdf5_chunk(path: Path, values: NDArray[Any], *filters: tuple[int, tuple[int, ...]]) -> tuple[Pipeline, bytes, int]:
    """What HDF5 itself stores, whatever the order of filters."""
    with h5py.File(path, "w") as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk(values.shape)
        for number, words in filters:
            plist.set_filter(number, 1, words)
        file.create_dataset("x", data=values, chunks=values.shape, dcpl=plist)
    with h5py.File(path) as file:
        found = file["x"].id.get_create_plist()
        stages = []
        for at in range(found.get_nfilters()):
            id_, flags, words, _ = found.get_filter(at)
            words = tuple(word & 0xFFFFFFFF for word in words)
            stages.append(Stage(from_values(Request(id_, words), stored=True), bool(flags & 1), words))
        mask, data = file["x"].id.read_direct_chunk((0,) * values.ndim)
        assert file["x"][...].tobytes() == values.tobytes()
    return Pipeline(stages), data, mask


@pytest.mark.parametrize("verbatim", [(5, ()), (6, (2, 32))], ids=["nbit", "scaleoffset"])
# Not lzf: HDF5 hands its whole buffer on there, not the bytes in it, and cannot read that itself.
@pytest.mark.parametrize("before", [(1, (4,)), (3, ())], ids=["deflate", "fletcher32"])
def test_verbatim_chunks_behind_another_filter_handed_through_as_hdf5_does(
    tmp_path: Path, before: tuple[int, tuple[int, ...]], verbatim: tuple[int, tuple[int, ...]]
) -> None:
    values = values_of("<i4", (1000,), 3)
    pipeline, data, mask = hdf5_chunk(tmp_path / "x.h5", values, before, verbatim)
    assert mask == 0
    chunk = ChunkType(values.dtype, values.shape)
    np.testing.assert_array_equal(pipeline.decode(data, mask, chunk), values)
    again, mask = pipeline.encode(values)
    assert mask == 0
    np.testing.assert_array_equal(pipeline.decode(again, mask, chunk), values)


ENUM = h5py.enum_dtype({"a": 0, "b": 1}, "<i4")


@pytest.mark.parametrize(
    "dtype",
    [
        ENUM,
        h5py.enum_dtype({"a": 0, "b": 1}, ">i2"),
        np.dtype("?"),
        np.dtype([("number", "<i4"), ("name", ENUM), ("flag", "?")]),
    ],
    ids=str,
)
def test_nbit_of_enumerations_stored_as_hdf5_leaves_it(tmp_path: Path, dtype: np.dtype[Any]) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((100,))
        plist.set_filter(5, 1, ())
        made = file.create_dataset("x", data=np.zeros(100, dtype), chunks=(100,), dcpl=plist, dtype=dtype)
        assert Nbit().stored(ChunkType(made.dtype, (100,))) == made.id.get_create_plist().get_filter(0)[2]


@pytest.mark.parametrize("dtype", [ENUM, np.dtype("?")], ids=str)
def test_scaleoffset_of_enumerations_refused_as_by_hdf5(tmp_path: Path, dtype: np.dtype[Any]) -> None:
    with pytest.raises(ParameterError, match="expected integers of 1, 2, 4 or 8 bytes for scaleoffset"):
        Scaleoffset().check(ChunkType(dtype, (100,)))
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((100,))
    plist.set_scaleoffset(2, 0)
    with h5py.File(tmp_path / "x.h5", "w") as file, pytest.raises(ValueError, match="not supported by scaleoffset"):
        file.create_dataset("x", (100,), dtype, chunks=(100,), dcpl=plist)
