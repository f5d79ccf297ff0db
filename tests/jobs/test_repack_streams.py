"""zfp streams are kept while filters behind zfp change: a lossy chunk is not encoded a second time (D15)."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t
from numpy.typing import NDArray

import tamis
from tamis import BoundError, FileError, Recipe
from tamis.formats.hdf5.store import Hdf5Store
from tamis.formats.hdf5.stored_array import Hdf5Array
from tamis.jobs.repack import RepackOptions, plan_datasets
from tamis.rewrite.growth import likely_nbytes

NOTE = "zfp streams are kept: only filters after zfp change, and no error is added"
WRITTEN = "zfp(accuracy=0.1)|shuffle|deflate(4)|fletcher32"


def field(*, gaps: bool = True) -> NDArray[Any]:
    """Of 4 x 6 chunks, those of the last row and column cut by the edge; every other one has a gap."""
    values = (100 * np.sin(np.arange(60 * 90) / 17)).reshape(60, 90).astype("f4")
    if gaps:
        values[::32, 3::32] = np.nan
    return values


@pytest.fixture
def lossy(tmp_path: Path, make: Callable[..., Path]) -> Path:
    """Chunks that zfp took, and others without it."""
    make(tmp_path / "raw.h5", v={"data": field(), "chunks": (16, 16)})
    tamis.repack(tmp_path / "raw.h5", tmp_path / "lossy.h5", {"v": WRITTEN})
    return tmp_path / "lossy.h5"


def streams(path: Path) -> dict[tuple[int, ...], bytes | None]:
    with h5py.File(path) as file:
        source = Hdf5Array.of(file["v"]).open_chunks()
        return {origin: source.first_output(origin) for origin in source.index.parts.origins()}


def masks(path: Path) -> set[int]:
    with h5py.File(path) as file:
        return {*Hdf5Array.of(file["v"]).chunk_index().mask_counts()}


def bits(path: Path) -> bytes:
    return bytes(tamis.open(path)["v"][...].tobytes())


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        ("zfp(accuracy=0.1)|deflate(9)|fletcher32", {0, 1}),
        ("zfp(accuracy=0.1)|shuffle|deflate(1)|fletcher32", {0b0110, 0b0001}),
        ("zfp(accuracy=0.0625)|shuffle|deflate(2)", {0b0110, 0b0001}),
        ("zfp(accuracy=0.1)|shuffle!|deflate!", {0, 1}),
        ("zfp(accuracy=0.1)|bitshuffle|deflate", {0b0110, 0b0001}),
        ("zfp(accuracy=0.1)", {0, 1}),
    ],
)
def test_repack_filters_behind_zfp_changed_keeps_streams(
    recipe: str, expected: set[int], lossy: Path, tmp_path: Path
) -> None:
    target = tmp_path / "b.h5"
    (found,) = tamis.repack(lossy, target, {"v": recipe}).datasets
    assert NOTE in found.notes
    assert not any("adds to the old" in each for each in found.notes)
    assert (found.copied, found.bound, found.largest_error) == (False, 0.0, 0.0)
    assert (found.chunks, found.lossless_chunks) == (24, 6)
    assert streams(target) == streams(lossy)
    assert list(streams(target).values()).count(None) == 6
    assert masks(target) == expected
    assert bits(target) == bits(lossy)


@pytest.mark.parametrize("recipe", ["zfp(accuracy=0.1)|fletcher32", "zfp(accuracy=0.1)|shuffle|deflate(1)"])
def test_repack_zfp_of_another_writer_gets_filters_and_keeps_streams(
    recipe: str, tmp_path: Path, make: Callable[..., Path], tool: Callable[..., str]
) -> None:
    raw = make(tmp_path / "raw.h5", v={"data": field(gaps=False), "chunks": (16, 16)})
    words = ",".join(map(str, tamis.Zfp(accuracy=0.1).requested))
    tool("h5repack", "-f", f"v:UD=32013,0,4,{words}", raw, tmp_path / "a.h5")
    (found,) = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"v": recipe}).datasets
    assert NOTE in found.notes
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["v"].fletcher32
    assert streams(tmp_path / "a.h5") == streams(tmp_path / "b.h5")
    tool("h5diff", tmp_path / "a.h5", tmp_path / "b.h5")


def test_repack_streams_shuffled_in_the_source_are_kept(tmp_path: Path, make: Callable[..., Path]) -> None:
    options = dict(tamis.Zfp(rate=9)) | {"shuffle": False, "chunks": (16, 16)}
    source = make(tmp_path / "a.h5", v={"data": field(gaps=False)} | options)
    tamis.repack(source, tmp_path / "b.h5", {"v": "zfp(rate=9)|shuffle!|deflate!"})
    assert masks(tmp_path / "b.h5") == {0}
    (found,) = tamis.repack(tmp_path / "b.h5", tmp_path / "c.h5", {"v": "zfp(rate=9)|shuffle|deflate(6)"}).datasets
    assert NOTE in found.notes
    assert masks(tmp_path / "c.h5") == {0}
    assert streams(source) == streams(tmp_path / "c.h5")


@pytest.mark.parametrize(
    ("recipe", "shape"),
    [
        ("zfp(accuracy=0.2)|deflate", None),
        ("zfp(precision=20)|deflate", None),
        ("zfp(accuracy=0.1)|deflate", (32, 16)),
        ("shuffle|deflate", None),
    ],
)
def test_repack_other_zfp_chunks_or_none_keeps_no_streams(
    recipe: str, shape: tuple[int, ...] | None, lossy: Path, tmp_path: Path
) -> None:
    chunks = {} if shape is None else {"v": shape}
    (found,) = tamis.repack(lossy, tmp_path / "b.h5", {"v": recipe}, chunks=chunks).datasets
    assert NOTE not in found.notes
    assert any("adds to the old" in each for each in found.notes) == ("zfp" in recipe)


def test_repack_streams_kept_any_number_of_threads_gives_the_same_bytes(lossy: Path, tmp_path: Path) -> None:
    files = []
    for threads in (1, 2, 8):
        tamis.repack(lossy, tmp_path / f"{threads}.h5", {"v": "zfp(accuracy=0.1)|deflate"}, threads=threads)
        files.append((tmp_path / f"{threads}.h5").read_bytes())
    assert files[0] == files[1] == files[2]


def test_repack_filters_changed_and_back_gives_the_chunks_of_before(lossy: Path, tmp_path: Path) -> None:
    """D15: nothing is lost on the way."""
    path = lossy
    for number, recipe in enumerate(["zfp(accuracy=0.1)", "zfp(accuracy=0.1)|deflate(1)", WRITTEN]):
        again = tmp_path / f"{number}.h5"
        tamis.repack(path, again, {"v": recipe})
        path = again
    with h5py.File(path) as last, h5py.File(lossy) as first:
        found, expected = Hdf5Array.of(last["v"]).open_chunks(), Hdf5Array.of(first["v"]).open_chunks()
        assert [*found.index.parts.origins()] == [*expected.index.parts.origins()]
        assert all(found.stored(each) == expected.stored(each) for each in expected.index.parts.origins())


def test_repack_streams_kept_read_alike_by_h5diff(lossy: Path, tmp_path: Path, tool: Callable[..., str]) -> None:
    (found,) = tamis.repack(lossy, tmp_path / "b.h5", {"v": "zfp(accuracy=0.1)|shuffle|deflate(7)"}).datasets
    assert found.read_by_hdf5 >= 2
    tool("h5diff", lossy, tmp_path / "b.h5")


@pytest.mark.parametrize("threads", [1, 2])
def test_repack_damaged_chunk_of_the_source_found_and_named(lossy: Path, tmp_path: Path, threads: int) -> None:
    with h5py.File(lossy) as file:
        record = Hdf5Array.of(file["v"]).chunk_index().record_of((16, 32))
    with lossy.open("r+b") as stream:
        stream.seek(record.offset + 9)
        byte = stream.read(1)[0]
        stream.seek(record.offset + 9)
        stream.write(bytes([byte ^ 4]))
    with pytest.raises(FileError, match=r"/v: chunk at \(16, 32\) cannot be decoded: filter 4, fletcher32"):
        tamis.repack(lossy, tmp_path / "b.h5", {"v": "zfp(accuracy=0.1)|deflate"}, threads=threads)
    assert sorted(os.listdir(tmp_path)) == ["lossy.h5", "raw.h5"]


def test_repack_required_zfp_refused_where_a_chunk_has_none(
    lossy: Path, tmp_path: Path, make: Callable[..., Path]
) -> None:
    with pytest.raises(BoundError, match=r"/v: chunk at \(0, 0\): the source stores it without zfp"):
        tamis.repack(lossy, tmp_path / "b.h5", {"v": "zfp(accuracy=0.1)!|deflate"})
    source = make(tmp_path / "a.h5", v={"data": field(gaps=False), "chunks": (16, 16)} | dict(tamis.Zfp(accuracy=0.1)))
    (found,) = tamis.repack(source, tmp_path / "b.h5", {"v": "zfp(accuracy=0.1)!"}).datasets
    assert NOTE in found.notes


@pytest.mark.parametrize("missing", ["exact", "mask", "refuse"])
def test_repack_streams_kept_whatever_is_wanted_of_missing_values(missing: Any, lossy: Path, tmp_path: Path) -> None:
    (found,) = tamis.repack(lossy, tmp_path / "b.h5", {"v": "zfp(accuracy=0.1)|deflate"}, missing=missing).datasets
    assert NOTE in found.notes
    assert found.missing_mask == ""
    assert bits(tmp_path / "b.h5") == bits(lossy)


def test_repack_streams_kept_keeps_the_companion(tmp_path: Path, make: Callable[..., Path]) -> None:
    raw = make(tmp_path / "raw.h5", v={"data": field(), "chunks": (16, 16)})
    first, second = tmp_path / "a.h5", tmp_path / "b.h5"
    tamis.repack(raw, first, {"v": "zfp(accuracy=0.1)"}, missing="mask")
    (found,) = tamis.repack(first, second, {"v": "zfp(accuracy=0.1)|deflate"}, missing="mask").datasets
    assert NOTE in found.notes
    assert found.missing_mask == "/v_missing"
    assert streams(first) == streams(second)
    with h5py.File(first) as old, h5py.File(second) as new:
        assert dict(old["v"].attrs) == dict(new["v"].attrs)
        assert sorted(old) == sorted(new)
        assert old["v_missing"][()].tobytes() == new["v_missing"][()].tobytes()
    assert bits(first) == bits(second)
    (found,) = tamis.repack(first, tmp_path / "c.h5", {"v": "zfp(accuracy=0.1)|deflate"}).datasets
    assert NOTE not in found.notes, "missing values go back among the others"


def test_repack_streams_kept_chunks_that_are_not_stored_stay_so(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = file.create_dataset("v", (64, 64), "f4", chunks=(16, 16), fillvalue=np.nan, **tamis.Zfp(accuracy=0.1))
        made[16:32, 16:48] = 3
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"v": "zfp(accuracy=0.1)|deflate"}, missing="mask")
    assert streams(tmp_path / "a.h5").keys() == {(16, 16), (16, 32)}
    assert streams(tmp_path / "a.h5") == streams(tmp_path / "b.h5")


def test_repack_planned_streams_say_so(lossy: Path, tmp_path: Path) -> None:
    (found,) = tamis.preview_repack(lossy, tmp_path / "b.h5", {"v": "zfp(accuracy=0.1)|deflate"}).datasets
    assert (found.action, found.bound) == ("store", 0.0)
    assert NOTE in found.notes
    text = tamis.preview_repack(lossy, tmp_path / "b.h5", {"v": "zfp(accuracy=0.1)|deflate"}).to_json()
    assert NOTE in json.loads(text)["datasets"][0]["notes"]


def test_repack_edge_chunks_that_hdf5_left_unfiltered_go_without_zfp(tmp_path: Path) -> None:
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_chunk((16, 16))
    plist.set_filter(32013, 1, tamis.Zfp(accuracy=0.1).requested)
    assert ctypes.CDLL(h5p.__file__).H5Pset_chunk_opts(ctypes.c_int64(plist.id), ctypes.c_uint(2)) >= 0
    values = field(gaps=False)
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        made = h5d.create(file.id, b"v", h5t.py_create(values.dtype), h5s.create_simple(values.shape), plist)
        h5py.Dataset(made)[...] = values
    for recipe, expected in (("zfp(accuracy=0.1)|shuffle|deflate", {0b0110, 0b0001}), ("zfp(accuracy=0.1)", {0, 1})):
        (found,) = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"v": recipe}, overwrite=True).datasets
        assert NOTE in found.notes
        assert found.lossless_chunks == 9
        assert masks(tmp_path / "b.h5") == expected
        assert bits(tmp_path / "a.h5") == bits(tmp_path / "b.h5")


KILLED = """
import os, signal, sys, tamis
def progress(what, done, total):
    if (what, done) == ("writing /v", 80):
        os.kill(os.getpid(), signal.SIGKILL)
tamis.repack(sys.argv[1], sys.argv[2], {"v": "zfp(accuracy=0.1)|shuffle|deflate(1)"}, progress=progress)
"""


def test_resume_streams_kept_gives_the_bytes_of_a_whole_run(
    tmp_path: Path, make: Callable[..., Path], python: Callable[..., str]
) -> None:
    values = np.tile(field(), (16, 16))
    make(tmp_path / "raw.h5", v={"data": values, "chunks": (64, 64)})
    source, target, whole = (tmp_path / name for name in ("a.h5", "b.h5", "c.h5"))
    tamis.repack(tmp_path / "raw.h5", source, {"v": WRITTEN})
    recipe = {"v": "zfp(accuracy=0.1)|shuffle|deflate(1)"}
    tamis.repack(source, whole, recipe)
    python(KILLED, source, target, exit_code=-9)
    (found,) = tamis.preview_repack(source, target, recipe, resume=True).datasets
    assert 70 < found.reusable_chunks <= 80
    (found,) = tamis.repack(source, target, recipe, resume=True).datasets
    assert 70 < found.reused_chunks <= 80
    assert target.read_bytes() == whole.read_bytes()
    assert len(os.listdir(tmp_path)) == 4


def test_repack_streams_where_room_is_short_are_counted_as_they_will_be(lossy: Path, tmp_path: Path) -> None:
    with h5py.File(lossy) as file:
        plans = plan_datasets(Hdf5Store(file), RepackOptions(Recipe({"v": "zfp(accuracy=0.1)|deflate(9)"}))).plans
        (plan,) = plans.values()
        likely = likely_nbytes(plan, Hdf5Array.of(file["v"]))
    (found,) = tamis.repack(lossy, tmp_path / "b.h5", {"v": "zfp(accuracy=0.1)|deflate(9)"}).datasets
    assert found.target_nbytes <= likely < 3 * found.target_nbytes
