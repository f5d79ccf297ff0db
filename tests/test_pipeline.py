"""Chains of filters on one chunk, against libhdf5."""

from __future__ import annotations

import zlib
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5z

from tamis import Deflate, Fletcher32, ParameterError, Pipeline, Shuffle, StreamError, Zfp
from tamis.filters import ChunkType

TEXTS = [
    "shuffle",
    "deflate(4)",
    "fletcher32",
    "shuffle|deflate(6)|fletcher32",
    "fletcher32|shuffle",
    "zfp(accuracy=0.1)",
    "zfp(rate=11.3)|fletcher32",
    "zfp(precision=17)|shuffle|deflate(4)|fletcher32",
    "zfp(reversible=true)|deflate(1)",
]


def field(dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return (100 * np.sin(np.arange(np.prod(shape)) / 9)).reshape(shape).astype(dtype)


def create(file: h5py.File, pipeline: Pipeline, values: np.ndarray[Any, Any]) -> h5py.h5d.DatasetID:
    """A dataset of one chunk with the filters in the order of the pipeline, which h5py's keywords cannot give."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk(values.shape)
    for each in pipeline.filters:
        plist.set_filter(each.id, h5z.FLAG_MANDATORY, each.requested)
    kind, space = h5py.h5t.py_create(values.dtype), h5py.h5s.create_simple(values.shape)
    return h5py.h5d.create(file.id, b"x", kind, space, plist)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
@pytest.mark.parametrize("text", TEXTS)
def test_pipeline_encode_decode_same_as_hdf5(text: str, dtype: str) -> None:
    if dtype == "i4":
        text = text.replace("accuracy=0.1", "precision=30")
    values, pipeline = field(dtype, (1, 7, 9)), Pipeline.parse(text)
    chunk = ChunkType(values.dtype, values.shape)
    ours, mask = pipeline.encode(values)
    assert mask == 0
    with h5py.File.in_memory() as file:
        dataset = create(file, pipeline, values)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, values)
        file.flush()
        _, theirs = dataset.read_direct_chunk((0, 0, 0))
        read = np.empty_like(values)
        dataset.read(h5py.h5s.ALL, h5py.h5s.ALL, read)
    if "deflate" not in text:  # another zlib may compress otherwise
        assert ours == theirs
    elif text.endswith("deflate(1)"):
        assert zlib.decompress(ours) == zlib.decompress(theirs)
    assert pipeline.decode(theirs, 0, chunk).tobytes() == read.tobytes()
    assert pipeline.decode(ours, 0, chunk).tobytes() == read.tobytes()


@pytest.mark.parametrize(
    ("skip", "mask"),
    [((), 0), ((Zfp,), 1), ((Shuffle, Deflate), 6), ((Fletcher32,), 8), ((Zfp, Shuffle, Deflate, Fletcher32), 15)],
)
def test_pipeline_encode_filters_skipped_mask_says_so_and_hdf5_reads_it(skip: tuple[type, ...], mask: int) -> None:
    values = field("f8", (6, 10))
    pipeline, chunk = Pipeline.parse("zfp(rate=9)|shuffle|deflate(4)|fletcher32"), ChunkType(np.dtype("f8"), (6, 10))
    data, found = pipeline.encode(values, skip=skip)
    assert found == mask
    decoded = pipeline.decode(data, mask, chunk).tobytes()
    assert (decoded == values.tobytes()) == (Zfp in skip)
    with h5py.File.in_memory() as file:
        dataset = create(file, pipeline, values)
        dataset.write_direct_chunk((0, 0), data, mask)
        del dataset  # HDF5 2.0 forgets the mask for as long as the dataset stays open
        assert file["x"][...].tobytes() == decoded


def test_pipeline_encode_same_filter_twice_skipped_twice() -> None:
    values = field("f4", (30,))
    data, mask = Pipeline.parse("shuffle|deflate(1)|shuffle").encode(values, skip=[Shuffle])
    assert mask == 0b101
    assert zlib.decompress(data) == values.tobytes()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("shuffle|zfp(rate=8)", r"expected zfp first in a pipeline, got shuffle before it.*write zfp\(…\)\|shuffle"),
        ("fletcher32|zfp(rate=8)|deflate", r"got fletcher32 before it.*write zfp\(…\)\|fletcher32\|deflate"),
        ("shuffle|deflate|zfp(rate=8)", r"got deflate before it.*write zfp\(…\)\|shuffle\|deflate"),
        ("zfp(rate=8)|zfp(rate=8)", "expected zfp once in a pipeline, got it 2 times"),
        ("zfp(rate=8)|shuffle|zfp(rate=8)", "expected zfp once in a pipeline, got it 2 times"),
    ],
)
def test_pipeline_d11_zfp_not_first_refused_with_the_order_to_use(text: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Pipeline.parse(text)
    with pytest.raises(ParameterError, match="zfp needs unfiltered values"):
        Pipeline((Shuffle(), Zfp(rate=8)))


def test_pipeline_zfp_the_filter_or_none() -> None:
    assert Pipeline.parse("zfp(rate=8)|shuffle").zfp == Zfp(rate=8)
    assert Pipeline.parse("shuffle").zfp is None


def test_pipeline_no_filters_bytes_as_they_are() -> None:
    chunk = ChunkType(np.dtype("f4"), (3,))
    values = np.frombuffer(b"0123456789ab", "f4")
    assert Pipeline(()).encode(values) == (b"0123456789ab", 0)
    np.testing.assert_array_equal(Pipeline(()).decode(b"0123456789ab", 0, chunk), values)


def test_pipeline_check_a_filter_refuses_refused() -> None:
    Pipeline.parse("zfp(rate=8)|shuffle").check(ChunkType(np.dtype("f4"), (8, 8)))
    Pipeline.parse("shuffle|deflate").check(ChunkType(np.dtype("S3"), (8, 8)))
    with pytest.raises(ParameterError, match="got int16"):
        Pipeline.parse("zfp(rate=8)|shuffle").check(ChunkType(np.dtype("i2"), (8, 8)))


@pytest.mark.parametrize("text", ["shuffle", "deflate(4)", "fletcher32", "shuffle|deflate(4)|fletcher32"])
def test_pipeline_decode_other_size_than_a_chunk_refused(text: str) -> None:
    pipeline, chunk = Pipeline.parse(text), ChunkType(np.dtype("f4"), (30,))
    short, _ = pipeline.encode(np.zeros(29, "f4"))
    with pytest.raises(StreamError, match="expected a chunk of 120 bytes, got 116 after decoding"):
        pipeline.decode(short, 0, chunk)


@pytest.mark.parametrize("text", ["fletcher32", "zfp(rate=8)|fletcher32", "shuffle|deflate(4)|fletcher32"])
def test_pipeline_decode_any_damage_under_fletcher32_refused(text: str) -> None:
    values, pipeline = field("f4", (30,)), Pipeline.parse(text)
    chunk = ChunkType(np.dtype("f4"), (30,))
    data, _ = pipeline.encode(values)
    for at in range(len(data)):
        with pytest.raises(StreamError, match="fletcher32 checksum differs"):
            pipeline.decode(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :], 0, chunk)


@pytest.mark.parametrize("text", ["zfp(rate=128)|deflate(4)", "zfp(minbits=32768,maxbits=32768)|deflate(1)"])
def test_pipeline_deflate_after_zfp_that_expands_round_trip(text: str) -> None:
    # Whatever encode takes, decode gives back, however senseless the rate.
    values, pipeline = np.random.default_rng(0).standard_normal((64, 64)).astype("f4"), Pipeline.parse(text)
    chunk = ChunkType(values.dtype, values.shape)
    data, mask = pipeline.encode(values)
    np.testing.assert_allclose(pipeline.decode(data, mask, chunk), values, 1e-5, 1e-5)


@pytest.mark.parametrize("text", ["shuffle|deflate(4)", "deflate(4)|fletcher32", "shuffle"])
@pytest.mark.parametrize("dtype", [">f8", ">i4"])
def test_pipeline_other_byte_order_same_bytes_back(dtype: str, text: str) -> None:
    values, pipeline = field(dtype, (6, 10)), Pipeline.parse(text)
    chunk = ChunkType(values.dtype, values.shape)
    data, mask = pipeline.encode(values)
    assert pipeline.decode(data, mask, chunk).tobytes() == values.tobytes()


@pytest.mark.parametrize("stages", ["deflate", [5], [(1, (4,))], [None]])
def test_pipeline_of_anything_but_filters_refused(stages: Any) -> None:
    with pytest.raises(ParameterError, match="expected a sequence of filters, or"):
        Pipeline(stages)


def test_pipeline_parse_no_text_refused() -> None:
    with pytest.raises(ParameterError, match="expected the text of filters"):
        Pipeline.parse(5)  # type: ignore[arg-type]
