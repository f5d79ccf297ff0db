"""Chunks that change in nothing are copied byte for byte: a lossy chunk is not encoded a second time (D15)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis
from tamis import BoundError, Pipeline
from tamis.formats.hdf5.stored_array import Hdf5Array
from tamis.rewrite import Copy
from tamis.rewrite.prove import verify_copied

FIELD = (100 * np.sin(np.arange(30 * 50) / 17)).reshape(30, 50).astype("f4")


def chunks(path: Path) -> dict[tuple[int, ...], tuple[int, bytes]]:
    with h5py.File(path) as file:
        made = file["v"].id
        origins = [made.get_chunk_info(index).chunk_offset for index in range(made.get_num_chunks())]
        return {origin: made.read_direct_chunk(origin) for origin in origins}


def make(path: Path, data: Any = FIELD, **options: Any) -> Path:
    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=data, **{"chunks": (8, 16)} | options)
    return path


COPIED = "chunks are copied as stored: they have these filters already"


@pytest.mark.parametrize(
    ("recipe", "stored"),
    [
        ("zfp(accuracy=0.1)", dict(tamis.Zfp(accuracy=0.1))),
        ("zfp(rate=9)", dict(tamis.Zfp(rate=9))),
        ("zfp(reversible=true)", dict(tamis.Zfp(reversible=True))),
        ("zfp(accuracy=0.1)|fletcher32", dict(tamis.Zfp(accuracy=0.1)) | {"fletcher32": True}),
        ("shuffle|deflate(4)", {"shuffle": True, "compression": "gzip", "compression_opts": 4}),
        ("lzf", {"compression": "lzf"}),
        ("scaleoffset(decimal,2)", {"scaleoffset": 2}),
    ],
)
def test_repack_recipe_that_is_what_is_stored_copies_chunks(
    recipe: str, stored: dict[str, Any], tmp_path: Path, sha256: Callable[[Path], str]
) -> None:
    source = make(tmp_path / "a.h5", **stored)
    (found,) = tamis.repack(source, tmp_path / "b.h5", {"v": recipe}).datasets
    assert found.copied
    assert any(note.startswith(COPIED) for note in found.notes)
    assert any("without a checksum" in note for note in found.notes) == (recipe[:3] == "zfp" and "fletch" not in recipe)
    assert (found.bound, found.largest_error, found.chunks) == (0.0, 0.0, 16)
    assert chunks(source) == chunks(tmp_path / "b.h5")
    with h5py.File(source) as old, h5py.File(tmp_path / "b.h5") as new:
        lists = [file["v"].id.get_create_plist() for file in (old, new)]
        assert lists[0].get_nfilters() == lists[1].get_nfilters()
        for index in range(lists[0].get_nfilters()):
            assert lists[0].get_filter(index) == lists[1].get_filter(index)


@pytest.mark.parametrize(
    ("recipe", "shape"),
    [
        ("zfp(accuracy=0.3)|shuffle|deflate", None),
        ("zfp(rate=16)|shuffle|deflate", None),
        ("zfp(accuracy=0.1)|shuffle|deflate", (8, 8)),
        ("zfp(accuracy=0.1)!|shuffle|deflate", None),
    ],
)
def test_repack_recipe_that_differs_in_anything_is_done(
    recipe: str, shape: tuple[int, ...] | None, tmp_path: Path
) -> None:
    first, second = tmp_path / "b.h5", tmp_path / "c.h5"
    tamis.repack(make(tmp_path / "a.h5"), first, {"v": "zfp(accuracy=0.1)|shuffle|deflate"}, checksum=False)
    (same,) = tamis.repack(first, second, {"v": "zfp(accuracy=0.1)|shuffle|deflate"}, checksum=False).datasets
    assert same.copied
    wanted = {} if shape is None else {"v": shape}
    (found,) = tamis.repack(first, second, {"v": recipe}, chunks=wanted, checksum=False, overwrite=True).datasets
    assert not found.copied
    assert chunks(second).keys() != chunks(first).keys() or shape is None
    with h5py.File(second) as file:
        assert file["v"].id.get_create_plist().get_nfilters() == 1  # no chunk needs the others


def test_repack_copies_masks_too(tmp_path: Path) -> None:
    data = FIELD.copy()
    data[3, 3] = np.nan
    recipe = {"v": "zfp(accuracy=0.1)|shuffle|deflate"}
    tamis.repack(make(tmp_path / "a.h5", data), tmp_path / "b.h5", recipe)
    (found,) = tamis.repack(tmp_path / "b.h5", tmp_path / "c.h5", recipe).datasets
    assert (found.copied, found.lossless_chunks) == (True, 1)
    assert chunks(tmp_path / "b.h5") == chunks(tmp_path / "c.h5")
    assert {mask for mask, _ in chunks(tmp_path / "c.h5").values()} == {1, 6}


def test_d15_repack_again_and_again_adds_no_error(tmp_path: Path) -> None:
    """D15: read-modify-write of a lossy chunk compounds the error past the tolerance."""
    path = make(tmp_path / "0.h5")
    for number in range(1, 6):
        again = tmp_path / f"{number}.h5"
        tamis.repack(path, again, {"v": "zfp(accuracy=5)"})
        path = again
    with h5py.File(path) as file:
        assert 0 < np.abs(file["v"][()].astype("f8") - FIELD).max() <= 5
    assert chunks(path) == chunks(tmp_path / "1.h5")


def test_repack_of_what_was_lossy_before_says_that_errors_add_up(tmp_path: Path) -> None:
    source = make(tmp_path / "a.h5", **tamis.Zfp(accuracy=0.1))
    (found,) = tamis.repack(source, tmp_path / "b.h5", {"v": "zfp(accuracy=1)"}).datasets
    assert any("already went through zfp(accuracy=0.0625): the new error adds" in note for note in found.notes)


def test_repack_big_endian_through_the_same_filters_is_copied(tmp_path: Path) -> None:
    source = make(tmp_path / "a.h5", FIELD.astype(">f4"), shuffle=True)
    (result,) = tamis.repack(source, tmp_path / "b.h5", {"v": "shuffle"}).datasets
    assert result.copied
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["v"].dtype == ">f4"


def test_verify_copied_other_bytes_or_chunks_refused(tmp_path: Path) -> None:
    other = FIELD.copy()
    other[9, 17] += 1
    plan = Copy("/v", Pipeline.parse("none"), np.dtype("f4"), (8, 16))
    counts: list[int] = []
    with h5py.File(make(tmp_path / "a.h5")) as old:
        with h5py.File(make(tmp_path / "b.h5")) as same:
            masks = verify_copied(
                plan, Hdf5Array.of(old["v"]), Hdf5Array.of(same["v"]), lambda done, _: counts.append(done), threads=2
            )
            assert (masks.tolist(), counts) == ([0] * 16, list(range(17)))
        with (
            h5py.File(make(tmp_path / "c.h5", other)) as new,
            pytest.raises(
                BoundError,
                match=r"/v: bytes differ from those of the source in the chunk at \(8, 16\)",
            ),
        ):
            verify_copied(plan, Hdf5Array.of(old["v"]), Hdf5Array.of(new["v"]), lambda *_: None, threads=2)
        with (
            h5py.File(make(tmp_path / "d.h5", chunks=(8, 8))) as new,
            pytest.raises(BoundError, match="only one of source and target has a chunk at"),
        ):
            verify_copied(plan, Hdf5Array.of(old["v"]), Hdf5Array.of(new["v"]), lambda *_: None)


@pytest.fixture
def with_companion(tmp_path: Path) -> Path:
    data = FIELD.copy()
    data[:, 20:30] = np.nan
    tamis.repack(make(tmp_path / "a.h5", data), tmp_path / "b.h5", {"v": "zfp(accuracy=0.1)"}, missing="mask")
    return tmp_path / "b.h5"


def test_repack_copied_variable_whose_companion_is_stored_anew_keeps_missing_values(with_companion: Path) -> None:
    target = with_companion.with_name("c.h5")
    recipes = {"v": "zfp(accuracy=0.1)|fletcher32", "v_missing": "shuffle|deflate(9)"}
    variable, companion = tamis.repack(with_companion, target, recipes, missing="mask").datasets
    assert (variable.copied, companion.copied) == (True, False)
    assert tamis.verify(with_companion, target, bounds={"*": 0}).ok


def test_repack_copied_variable_whose_companion_has_no_chunks_keeps_missing_values(with_companion: Path) -> None:
    with h5py.File(with_companion, "r+") as file:
        flags, attributes = file["v_missing"][()], dict(file["v_missing"].attrs)
        del file["v_missing"]
        file.create_dataset("v_missing", data=flags).attrs.update(attributes)
    target = with_companion.with_name("c.h5")
    (found,) = tamis.repack(with_companion, target, {"v": "zfp(accuracy=0.1)|fletcher32"}, missing="mask").datasets
    assert found.copied
    assert tamis.verify(with_companion, target, bounds={"*": 0}).ok
