"""Small chunks that are encoded many at a time: what `encode_proven` makes of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

import tamis
from tamis import Pipeline
from tamis.arrays import Grid, Parts
from tamis.filters import ChunkType, Stage
from tamis.meaning import Missing
from tamis.rewrite import new_chunk as module
from tamis.rewrite.encode import ChunkEncoder
from tamis.rewrite.new_chunk import encode_many

CHUNKS = (4, 8, 5)
WHOLE = "zfp(accuracy=0.01)|shuffle|deflate(4)|fletcher32"


def recorded(text: str, chunk: ChunkType) -> Pipeline:
    return Pipeline(
        Stage(each.filter, optional=each.optional, stored=each.filter.stored(chunk))
        for each in Pipeline.parse(text).stages
    )


def field(dtype: str = "f4") -> NDArray[Any]:
    axes = np.meshgrid(*(np.linspace(0, 3, extent) for extent in (12, 21, 15)), indexing="ij")
    return (np.sin(sum(axes)) * 30).astype(dtype)


def parts_of(values: NDArray[Any]) -> Parts:
    """Return all chunks but the first four, which are whole."""
    grid = Grid(values.shape, CHUNKS)
    return Parts(grid, np.arange(4, grid.chunk_count))


def encoded(values: NDArray[Any], text: str, missing: Missing = Missing()) -> list[Any]:  # noqa: B008
    """Encode chunks of a part of an array, compare them with those of `encode_proven`, and return them."""
    chunk = ChunkType(values.dtype, CHUNKS)
    pipeline, parts = recorded(text, chunk), parts_of(values)
    box = parts.bounding()
    made = encode_many(pipeline, values[box], box, parts, chunk, missing)
    for part, mine in zip(parts, made, strict=True):
        if mine is not None:
            assert mine == ChunkEncoder(pipeline, chunk, missing=missing).encode_proven(values[part])[:2]
    return made


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        "zfp(rate=9)",
        "zfp(precision=20)|fletcher32",
        "zfp(reversible=true)|shuffle",
        "shuffle|deflate(4)",
        "fletcher32|deflate(9)|shuffle",
        "deflate(0)|deflate(1)",
        "none",
    ],
)
def test_whole_chunks_are_those_of_encode_proven(text: str, dtype: str) -> None:
    values = field(dtype)
    whole = [values[part].shape == CHUNKS for part in parts_of(values)]
    assert [each is not None for each in encoded(values, text)] == whole


def test_chunks_that_zfp_does_not_keep_are_left() -> None:
    values = field()
    values[4, 0, 0], values[4, 8, 0], values[4, 0, 5] = np.nan, 1e30, -999
    values[4:8, 8:16, 5:10] = -999
    missing = Missing((np.float32(-999),))
    left: dict[int, list[tuple[int, int]]] = {0: [], 4: [], 8: []}
    for part, mine in zip(parts_of(values), encoded(values, WHOLE, missing), strict=True):
        if mine is None and values[part].shape == CHUNKS:
            left[part[0].start].append((part[1].start, part[2].start))
    assert left == {0: [], 4: [(0, 0), (0, 5), (8, 0)], 8: []}


def test_chunks_beyond_the_valid_range_are_left() -> None:
    values = np.clip(field(), -5, 5)
    values[4, 0, 0] = 10
    made = encoded(values, WHOLE, Missing((), np.float32(-6), np.float32(6)))
    assert made[list(parts_of(values)).index(tuple(map(slice, (4, 0, 0), (8, 8, 5))))] is None
    assert sum(each is not None for each in made) == 3 * 2 * 3 - 4 - 1


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("shuffle|bzip2", "f4"),
        ("zfp(rate=8)|deflate(4)", "f4"),  # without shuffle, deflate is there for zfp's bytes
        ("zfp(minbits=1,maxbits=16658,maxprec=64,minexp=-10)", "f4"),  # a tolerance that only the plugin knows of
        ("zfp(rate=8)", "i4"),
    ],
)
def test_filters_and_types_that_are_not_native_are_left(text: str, dtype: str) -> None:
    assert not any(encoded(field(dtype), text))


@pytest.mark.parametrize("dtype", ["u1", ">i2", "i8", "c8", "?"])
def test_whole_chunks_of_any_numbers_are_encoded_without_loss(dtype: str) -> None:
    values = field().astype(dtype)
    assert sum(each is not None for each in encoded(values, "shuffle|deflate(6)|fletcher32")) == 3 * 2 * 3 - 4


def test_large_chunks_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL_NBYTES", 4 * 8 * 5 * 4 - 1)
    assert not any(encoded(field(), WHOLE))


@pytest.mark.parametrize("source_chunks", [CHUNKS, (12, 3, 15), None])
@pytest.mark.parametrize("recipe", [WHOLE, "zfp(accuracy=0.5)"])
def test_repack_writes_the_bytes_of_chunks_encoded_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source_chunks: tuple[int, ...] | None, recipe: str
) -> None:
    values = np.concatenate([field()] * 3)
    values[4, 0, 0], values[17, 8, 0] = np.nan, 1e30
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=source_chunks, fillvalue=np.float32(-999))
    arguments: dict[str, Any] = {"chunks": {"x": CHUNKS}}
    tamis.repack(tmp_path / "in.h5", tmp_path / "many.h5", {"x": recipe}, **arguments)
    monkeypatch.setattr(module, "SMALL_NBYTES", 0)
    tamis.repack(tmp_path / "in.h5", tmp_path / "one.h5", {"x": recipe}, **arguments)
    assert (tmp_path / "many.h5").read_bytes() == (tmp_path / "one.h5").read_bytes()
