"""Many chunks in one native call: the values, bytes and refusals of `Pipeline` and `ChunkEncoder.encode_proven`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deflate
import numpy as np
import pytest
from numpy.typing import NDArray

from tamis import Pipeline, Shuffle, TamisError, _native
from tamis.filters import ChunkType, Stage
from tamis.meaning import Missing
from tamis.rewrite.encode import ChunkEncoder

_native.use_libdeflate(deflate._deflate.__file__)  # type: ignore[attr-defined]

PIPELINES = (
    "none",
    "shuffle",
    "fletcher32",
    "deflate(4)",
    "shuffle|deflate(4)|fletcher32",
    "szip(nn,8)",
    "shuffle|szip(ec,4)|fletcher32",
    "zfp(accuracy=0.01)",
    "zfp(rate=9)|shuffle|fletcher32",
    "zfp(reversible=true)|shuffle|deflate(4)|fletcher32",
    "zfp(precision=12)|fletcher32",
)


def recorded(text: str, chunk: ChunkType) -> Pipeline:
    """Give a pipeline with the parameters that a file has."""
    return Pipeline(
        Stage(each.filter, optional=each.optional, stored=each.filter.stored(chunk))
        for each in Pipeline.parse(text).stages
    )


def native(pipeline: Pipeline, chunk: ChunkType) -> _native.ChunkPipeline:
    filters = [(each.filter.id, list(each.stored or ())) for each in pipeline.stages]
    return _native.ChunkPipeline(chunk.shape, chunk.dtype.itemsize, filters)


class Stored:
    """An array in chunks, in a file that has nothing else."""

    def __init__(self, path: Path, values: NDArray[Any], chunks: tuple[int, ...], text: str) -> None:
        self.random = np.random.default_rng(1)
        self.values, self.chunk = values, ChunkType(values.dtype, chunks)
        self.pipeline = recorded(text, self.chunk)
        steps = [range(0, extent, step) for extent, step in zip(values.shape, chunks, strict=True)]
        self.origins = np.array(list(itertools.product(*steps)), np.int64)
        stored = [self._encoded(origin) for origin in self.origins]
        self.nbytes = np.array([len(data) for data, _ in stored], np.int64)
        self.masks = np.array([mask for _, mask in stored], np.uint32)
        self.offsets = np.cumsum(np.concatenate([[0], self.nbytes[:-1]])).astype(np.int64)
        self.path = path
        path.write_bytes(b"".join(data for data, _ in stored))

    def _encoded(self, origin: NDArray[np.int64]) -> tuple[bytes, int]:
        part = self.values[self.region(origin)]
        pad = [(0, step - extent) for step, extent in zip(self.chunk.shape, part.shape, strict=True)]
        kinds = [type(each) for each in self.pipeline.filters]
        skip = [kind for kind in kinds if self.random.random() < 0.3]
        return self.pipeline.encode(np.pad(part, pad, mode="edge"), skip=skip)

    def region(self, origin: NDArray[np.int64]) -> tuple[slice, ...]:
        return tuple(slice(at, at + step) for at, step in zip(origin.tolist(), self.chunk.shape, strict=True))

    def read(self, start: tuple[int, ...], out: NDArray[Any], threads: int = 1, **columns: NDArray[Any]) -> list[int]:
        table = [columns.get(name, getattr(self, name)) for name in ("origins", "offsets", "nbytes", "masks")]
        with self.path.open("rb") as file:
            pipeline = native(self.pipeline, self.chunk)
            return pipeline.read(file.fileno(), *table, np.array(start, np.int64), out, threads)

    def decoded(self, i: int) -> NDArray[Any] | None:
        """Give what Python makes of a chunk's bytes, as far as the array has them; None where it refuses them."""
        offset, nbytes = int(self.offsets[i]), int(self.nbytes[i])
        data = self.path.read_bytes()[offset : offset + nbytes]
        try:
            values = self.pipeline.decode(data, int(self.masks[i]), self.chunk)
        except TamisError:
            return None
        whole = self.values[self.region(self.origins[i])].shape
        return values[tuple(slice(extent) for extent in whole)]


@pytest.fixture
def field() -> NDArray[np.float32]:
    axes = np.meshgrid(*(np.linspace(0, 3, extent) for extent in (9, 21, 14)), indexing="ij")
    return np.sin(sum(axes)).astype("f4") * 30


@pytest.fixture(params=PIPELINES)
def stored(request: pytest.FixtureRequest, tmp_path: Path, field: NDArray[np.float32]) -> Stored:
    return Stored(tmp_path / "chunks", field, (4, 8, 5), request.param)


def boxes(shape: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Give the whole array, and some parts: start and shape."""
    yield (0,) * len(shape), shape
    random = np.random.default_rng(0)
    for _ in range(20):
        start = [int(random.integers(extent)) for extent in shape]
        yield tuple(start), tuple(1 + int(random.integers(n - at)) for n, at in zip(shape, start, strict=True))


@pytest.mark.parametrize("threads", [1, 3])
def test_read_puts_what_python_decodes_to_its_place(stored: Stored, threads: int) -> None:
    expected = np.empty_like(stored.values)
    for i, origin in enumerate(stored.origins):
        expected[stored.region(origin)] = stored.decoded(i)
    for start, shape in boxes(expected.shape):
        inside = tuple(slice(at, at + extent) for at, extent in zip(start, shape, strict=True))
        for out in (np.zeros(shape, "f4"), np.zeros(shape, "f4", order="F"), np.zeros((*shape[:2], 40), "f4")):
            view = out[..., : 2 * shape[2] : 2] if out.shape != shape else out
            assert stored.read(start, view, threads) == []
            np.testing.assert_array_equal(view, expected[inside])


def test_read_of_damaged_bytes_leaves_the_chunks_that_python_refuses(stored: Stored) -> None:
    data = bytearray(stored.path.read_bytes())
    for at in stored.random.integers(len(data), size=12):
        data[at] ^= 1 << int(stored.random.integers(8))
    stored.path.write_bytes(data[: len(data) - 100])
    out = np.full_like(stored.values, -7)
    left = stored.read((0, 0, 0), out)
    assert left == [i for i in range(len(stored.origins)) if stored.decoded(i) is None]
    for i, origin in enumerate(stored.origins):
        expected = np.full_like(out[stored.region(origin)], -7) if i in left else stored.decoded(i)
        np.testing.assert_array_equal(out[stored.region(origin)], expected)


@pytest.mark.parametrize(
    ("column", "number"),
    [
        ("offsets", -1),
        ("offsets", 1 << 62),
        ("offsets", (1 << 63) - 1),
        ("nbytes", -1),
        ("nbytes", 1 << 40),
        ("nbytes", (1 << 63) - 1),
        ("origins", -1),
        ("origins", (1 << 63) - 1),
    ],
)
def test_read_of_a_table_that_lies_leaves_that_chunk(stored: Stored, column: str, number: int) -> None:
    numbers = getattr(stored, column).copy()
    numbers[3] = number
    assert stored.read((0, 0, 0), np.empty_like(stored.values), **{column: numbers}) == [3]


def test_read_of_a_foreign_filter_leaves_chunks_that_went_through_it(tmp_path: Path, field: NDArray[Any]) -> None:
    stored = Stored(tmp_path / "chunks", field, (4, 8, 5), "bzip2(9)|fletcher32")
    assert native(stored.pipeline, stored.chunk).foreign == 1
    left = stored.read((0, 0, 0), np.empty_like(field))
    assert left == np.flatnonzero(stored.masks & 1 == 0).tolist()
    assert 0 < len(left) < len(stored.origins)


def test_read_into_another_shape_or_type_is_refused(stored: Stored) -> None:
    for out in (np.empty((9, 21), "f4"), np.empty((9, 21, 14), "f8")):
        with pytest.raises(ValueError, match="expected as many axes"):
            stored.read((0, 0, 0), out)
    with pytest.raises(ValueError, match="expected an origin, an offset, a size and a mask"):
        stored.read((0, 0, 0), np.empty((9, 21, 14), "f4"), nbytes=stored.nbytes[1:])


def test_read_ranges_gives_bytes_or_none(tmp_path: Path) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(100)))
    ranges = [(0, 10), (90, 10), (90, 11), (-1, 2), (5, -1), (1 << 62, 1 << 62), (100, 0), (50, 60), (7, 3)]
    with path.open("rb") as file:
        found = _native.read_ranges(file.fileno(), *(np.array(each, np.int64) for each in zip(*ranges, strict=True)))
        # Ranges that overlap are not more than the file, together.
        assert _native.read_ranges(file.fileno(), np.zeros(3, np.int64), np.full(3, 60)) == [
            bytes(range(60)),
            None,
            None,
        ]
    whole = bytes(range(100))
    assert found == [whole[:10], whole[90:], None, None, None, None, b"", None, whole[7:10]]


def encoded(
    values: NDArray[Any], chunks: tuple[int, ...], text: str, missing: Missing
) -> Iterator[tuple[tuple[bytes, float, int] | None, tuple[bytes, int, float, int] | None]]:
    """Give what native code makes of each chunk, and what Python does: bytes, mask, error and missing values."""
    chunk = ChunkType(values.dtype, chunks)
    pipeline = recorded(text, chunk)
    steps = [range(0, extent, step) for extent, step in zip(values.shape, chunks, strict=True)]
    origins = np.array(list(itertools.product(*steps)), np.int64)
    mask = sum(1 << i for i, each in enumerate(pipeline.stages) if i and each.optional)
    limits = tuple(
        each if (limit is None) else float(limit) for limit, each in ((missing.low, -np.inf), (missing.high, np.inf))
    )
    marks = np.array(missing.values, values.dtype)
    made = native(pipeline, chunk).encode(
        values, np.zeros(values.ndim, np.int64), origins, mask, marks, limits, pipeline.error_bound
    )
    for origin, mine in zip(origins.tolist(), made, strict=True):
        part = values[tuple(slice(at, at + step) for at, step in zip(origin, chunks, strict=True))]
        try:
            data, comparison = ChunkEncoder(pipeline, chunk, missing=missing).encode_proven(part)[:2]
        except TamisError:
            yield mine, None
            continue
        yield mine, (data.data, data.mask, comparison.error, comparison.missing)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "text",
    [
        "zfp(accuracy=0.01)",
        "zfp(accuracy=0.01)|shuffle|deflate(4)|fletcher32",
        "zfp(rate=9)|shuffle",
        "zfp(precision=14)|fletcher32",
        "zfp(reversible=true)",
    ],
)
def test_encode_gives_the_bytes_and_errors_of_python(text: str, dtype: str, field: NDArray[Any]) -> None:
    values = field.astype(dtype)
    values[0, 3, 3], values[7, 15, :] = np.nan, -999
    values[5, 0, 0] = 1e30  # beside it, no tolerance is kept
    values[4:8, 8:16, 5:10] = -999  # a whole chunk, which some modes keep
    count = 0
    for mine, theirs in encoded(values[:8, :16, :10], (4, 8, 5), text, Missing((values.dtype.type(-999),))):
        if mine is None:
            assert theirs is None or theirs[1] & 1
            continue
        assert theirs is not None
        assert (mine[0], mine[1], mine[2]) == (theirs[0], theirs[2], theirs[3])
        count += 1
    assert count > 3


def test_encode_leaves_chunks_that_the_array_cuts(field: NDArray[np.float32]) -> None:
    made = [mine for mine, _ in encoded(field, (4, 8, 5), "zfp(accuracy=0.01)", Missing())]
    cut = np.ones((3, 3, 3), bool)
    cut[:2, :2, :2] = False
    assert [mine is None for mine in made] == cut.ravel().tolist()


def test_encode_leaves_chunks_with_values_beyond_the_valid_range(field: NDArray[np.float32]) -> None:
    missing = Missing((), np.float32(-10), np.float32(20))
    for mine, theirs in encoded(field, (4, 8, 5), "zfp(accuracy=0.01)", missing):
        assert mine is None or (theirs is not None and mine[0] == theirs[0])
    inside = [
        mine for mine, _ in encoded(np.clip(field[:8, :16, :10], -9, 19), (4, 8, 5), "zfp(accuracy=0.01)", missing)
    ]
    assert None not in inside


def test_encode_of_what_it_cannot_take_is_refused(field: NDArray[np.float32]) -> None:
    chunk = ChunkType(field.dtype, (4, 8, 5))
    origins, start = np.zeros((1, 3), np.int64), np.zeros(3, np.int64)
    limits, marks = (-np.inf, np.inf), np.empty(0, "f4")
    pipeline = native(recorded("zfp(rate=8)|deflate(4)", chunk), chunk)
    assert not pipeline.encodes(0)
    assert pipeline.encodes(2)
    with pytest.raises(ValueError, match="expected zfp first"):
        pipeline.encode(field, start, origins, 0, marks, limits, None)
    doubles = native(
        recorded("zfp(rate=8)", ChunkType(np.dtype("f8"), (4, 8, 5))), ChunkType(np.dtype("f8"), (4, 8, 5))
    )
    with pytest.raises(ValueError, match="expected as many axes as a chunk has, and values of its size"):
        doubles.encode(field, start, origins, 0, marks, limits, None)
    with pytest.raises(TypeError, match="expected values and marks of one type"):
        pipeline.encode(field, start, origins, 2, np.empty(0, "f8"), limits, None)
    with pytest.raises(TypeError, match="expected values of the type that zfp has"):
        pipeline.encode(field.view("i4"), start, origins, 2, marks.view("i4"), limits, None)
    with pytest.raises(ValueError, match="expected origins inside of an array"):
        pipeline.encode(field, start, origins - 4, 2, marks, limits, None)


def test_a_pipeline_of_impossible_chunks_is_refused() -> None:
    for shape in [(), (0,), (1 << 30, 1 << 30), (1,) * 33]:
        with pytest.raises(ValueError, match="expected"):
            _native.ChunkPipeline(shape, 4, [])
    with pytest.raises(ValueError, match="at most 32 filters"):
        _native.ChunkPipeline((4,), 4, [(3, [])] * 33)


def test_shuffle_by_no_size_is_by_that_of_the_values(tmp_path: Path) -> None:
    values, path = np.arange(8, dtype="f4"), tmp_path / "chunk"
    path.write_bytes(bytes(Shuffle().encode(values.data.cast("B"), ChunkType(values.dtype, (8,)), (4,))))
    pipeline, out = _native.ChunkPipeline((8,), 4, [(2, [0])]), np.empty(8, "f4")  # as NCZarr writes it
    zeros = np.zeros(1, np.int64)
    with path.open("rb") as file:
        table = (zeros[:, None], zeros, np.array([32]), np.zeros(1, np.uint32))
        assert pipeline.read(file.fileno(), *table, zeros, out) == []
    np.testing.assert_array_equal(out, values)
    assert os.path.getsize(path) == 32


def test_szip_without_loss_the_bytes_of_python_and_left_to_it_where_nothing_is_smaller() -> None:
    smooth = (100 + 30 * np.sin(np.arange(512) / 9)).astype("<i2").reshape(2, 256)
    noise = np.random.default_rng(0).integers(-(1 << 15), 1 << 15, (2, 256)).astype("<i2")
    values, chunk = np.concatenate([smooth, noise]), ChunkType(np.dtype("<i2"), (2, 256))
    pipeline = recorded("szip(nn,16)|fletcher32", chunk)
    twin, origins = native(pipeline, chunk), np.array([[0, 0], [2, 0]], np.int64)
    assert twin.encodes_bytes
    assert twin.encode_bytes(values, np.zeros(2, np.int64), origins) == [bytes(pipeline.encode(smooth)[0]), None]
    assert pipeline.encode(noise)[1] == 1, "and there the filter is left out"
