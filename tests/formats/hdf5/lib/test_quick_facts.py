"""Small datasets whose facts are read at once: the same as read one by one, and None where that is not sure."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis
from tamis import Pipeline
from tamis.filters import ChunkType
from tamis.formats.hdf5 import store, writer
from tamis.formats.hdf5.lib.quick_facts import (
    Creation,
    Depth,
    QuickFacts,
    bare_address,
    quick_facts,
    quick_links,
    rewrite_small,
)
from tamis.formats.hdf5.stored_array import Hdf5Array
from tamis.formats.hdf5.tree.links import link_plist
from tamis.meaning import NONE_MISSING
from tamis.rewrite.new_chunk import native_encoder

VALUES = np.arange(60.0, dtype="f4").reshape(6, 10)
SETTINGS: dict[str, dict[str, Any]] = {
    "chunked": {"chunks": (4, 5)},
    "filtered": {"chunks": (4, 10), "shuffle": True, "compression": 9, "fletcher32": True},
    "growing": {"chunks": (4, 10), "maxshape": (None, 10), "fillvalue": -7},
    "contiguous": {},
    "big-endian": {"chunks": (6, 10), "dtype": ">i2"},
}


def create(path: Path, **settings: Any) -> None:
    with h5py.File(path, "w", libver="latest") as file:
        dataset = file.create_dataset("v", **{"data": VALUES, **settings})
        dataset.attrs["units"], dataset.attrs["valid_min"] = "K", np.float32(-3)
        dataset.attrs["n"], dataset.attrs["texts"] = np.arange(3), ["a", "bc"]


def small_values(file: h5py.File, path: str) -> bytes | None:
    facts = quick_facts(file, path, Depth.values)
    return None if facts is None else facts.values


def both(folder: Path, depth: Depth = Depth.values) -> tuple[QuickFacts, QuickFacts]:
    """Facts and values of the dataset in each of two files."""
    with h5py.File(folder / "a.h5") as first, h5py.File(folder / "b.h5") as second:
        facts = quick_facts(first, "/v", depth), quick_facts(second, "/v", depth)
        assert facts[0] is not None
        assert facts[1] is not None
        return facts[0], facts[1]


@pytest.mark.parametrize("name", SETTINGS)
def test_facts_read_at_once_are_those_read_one_by_one(name: str, tmp_path: Path) -> None:
    create(tmp_path / "a.h5", **SETTINGS[name])
    with h5py.File(tmp_path / "a.h5") as file:
        at_once, one_by_one = Hdf5Array(file, "/v"), Hdf5Array(file, "/v")
        at_once.survey()
        assert at_once.form is not None
        for own in ("facts", "attributes", "meaning", "marks", "shape", "maxshape", "stored_nbytes"):
            assert repr(getattr(at_once, own)) == repr(getattr(one_by_one, own)), own
        if one_by_one.storage.chunk_shape:
            pair = at_once.chunk_index(), one_by_one.chunk_index()
            assert [*pair[0].records()] == [*pair[1].records()]
        values = at_once.small_values()
        assert values is not None
        np.testing.assert_array_equal(values, file["v"][()])


def test_values_of_chunks_that_are_not_stored_are_the_fill_value(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", shape=(6, 10), dtype="f8", chunks=(4, 10), fillvalue=2.5)[:4] = 1
    with h5py.File(tmp_path / "a.h5") as file:
        assert small_values(file, "/v") == file["v"][()].tobytes()


@pytest.mark.parametrize(
    "settings",
    [
        {"data": np.zeros((200, 200))},
        {"data": "text"},
        {"data": np.zeros(4, "c8")},
        {"data": np.zeros(0)},
        {"data": np.float32(1)},
        {"data": VALUES, "chunks": (1, 1)},
        {"data": VALUES, "chunks": (6, 5), "maxshape": (6, None)},
    ],
)
def test_unusual_and_large_datasets_are_left(settings: dict[str, Any], tmp_path: Path) -> None:
    create(tmp_path / "a.h5", **settings)
    with h5py.File(tmp_path / "a.h5") as file:
        assert quick_facts(file, "/v") is None
        assert small_values(file, "/v") is None
        assert quick_facts(file, "/absent") is None


def test_files_that_are_open_for_writing_are_left(tmp_path: Path) -> None:
    create(tmp_path / "a.h5", chunks=(6, 10))
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        assert quick_facts(file, "/v") is None


@pytest.mark.parametrize("at", [0, 1, -1])
def test_damaged_chunks_are_left(at: int, tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    create(path, **SETTINGS["filtered"])
    with h5py.File(path) as file:
        record = file["v"].id.get_chunk_info(0)
        assert small_values(file, "/v") is not None
    damaged = bytearray(path.read_bytes())
    damaged[record.byte_offset + (at if at >= 0 else record.size - 1)] ^= 255
    path.write_bytes(damaged)
    with h5py.File(path) as file:
        assert small_values(file, "/v") is None


CHANGES: dict[str, Callable[[h5py.File], object]] = {
    "a bit": lambda file: file["v"].write_direct((VALUES + (VALUES == 59) * 1e-5).astype("f4")),
    "the fill value": lambda file: recreated(file, fillvalue=1),
    "the type": lambda file: recreated(file, dtype="f8"),
    "the largest shape": lambda file: recreated(file, maxshape=(None, 10)),
    "the shape": lambda file: recreated(file, data=VALUES.reshape(10, 6)),
}


def recreated(file: h5py.File, **settings: Any) -> None:
    attributes = dict(file["v"].attrs)
    del file["v"]
    dataset = file.create_dataset("v", **{"data": VALUES, "chunks": (3, 5), **settings})
    dataset.attrs.update(attributes)


@pytest.mark.parametrize("change", CHANGES)
def test_datasets_that_differ_are_not_alike(change: str, tmp_path: Path) -> None:
    for name in ("a.h5", "b.h5"):
        create(tmp_path / name, chunks=(4, 5))
    with h5py.File(tmp_path / "b.h5", "r+") as file:
        recreated(file, compression=4)
    before, after = both(tmp_path, Depth.twice)
    assert before.is_like(after)
    assert before.new_attributes(after) == ()
    assert before.values == after.values == VALUES.tobytes()
    with h5py.File(tmp_path / "b.h5", "r+") as file:
        CHANGES[change](file)
    before, after = both(tmp_path)
    assert not before.is_like(after) or (change == "a bit" and before.values != after.values)


@pytest.mark.parametrize("value", ["m", np.float32(-4), ["a", "bd"], np.arange(4), None])
def test_attributes_that_differ_are_not_the_same(value: Any, tmp_path: Path) -> None:
    for name in ("a.h5", "b.h5"):
        create(tmp_path / name)
    with h5py.File(tmp_path / "b.h5", "r+") as file:
        name = {str: "units", list: "texts", np.ndarray: "n"}.get(type(value), "valid_min")
        del file["v"].attrs[name]
        if value is not None:
            file["v"].attrs[name] = value
    before, after = both(tmp_path)
    assert before.is_like(after)
    assert before.values == after.values
    assert before.new_attributes(after) is None
    assert not tamis.verify(tmp_path / "a.h5", tmp_path / "b.h5", threads=1).ok


def test_datasets_in_formats_of_several_versions_are_the_same(tmp_path: Path) -> None:
    for name, libver in (("a.h5", "earliest"), ("b.h5", "latest")):
        with h5py.File(tmp_path / name, "w", libver=libver) as file:
            dataset = file.create_dataset("v", data=VALUES)
            dataset.attrs["n"], dataset.attrs["units"] = np.arange(3), "K"
    before, after = both(tmp_path)
    assert before.is_like(after)
    assert before.values == after.values
    assert before.new_attributes(after) == ()


@pytest.mark.parametrize("kept_nbytes", [0, 1000])
def test_verify_says_the_same_however_many_values_are_kept(
    kept_nbytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.h5", "b.h5"):
        write_many(tmp_path / name)
    with h5py.File(tmp_path / "b.h5", "r+") as file:
        file["03"][2, 3], file["whole"][0, 0], file["05"].attrs["units"] = 99, 99, "m"
    at_once = tamis.verify(tmp_path / "a.h5", tmp_path / "b.h5").to_dict()
    monkeypatch.setattr(store, "_AHEAD_NBYTES", kept_nbytes)
    assert tamis.verify(tmp_path / "a.h5", tmp_path / "b.h5").to_dict() == at_once
    assert [finding["path"] for finding in at_once["violations"]] == ["/03", "/05", "/again"]


@pytest.mark.parametrize("track_order", [False, True])
def test_attributes_of_all_kinds_are_copied_in_their_order(track_order: bool, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for at, special in enumerate((None, file.ref, h5py.Empty("f4"), np.zeros(0), "\N{DEGREE SIGN}")):
            dataset = file.create_dataset(f"v{at}", data=VALUES, chunks=(4, 5), track_order=track_order)
            for name, value in (("z", "text"), ("\N{DEGREE SIGN}", np.arange(3)), ("a", [b"x", b"yz"]), ("s", special)):
                if value is not None:
                    dataset.attrs[name] = value
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"*": "shuffle|deflate(4)"}, larger=True, min_size=0, threads=1)
    assert tamis.verify(tmp_path / "a.h5", tmp_path / "b.h5", threads=1).ok
    with h5py.File(tmp_path / "a.h5") as source, h5py.File(tmp_path / "b.h5") as target:
        for name, dataset in source.items():
            assert [*target[name].attrs] == [*dataset.attrs]
            assert target[name].attrs["z"] == "text"
            assert len(dataset.attrs) == 3 + (name != "v0")


def write_many(path: Path) -> None:
    """Write pairs of datasets that are alike, so that the second of each may be stored at once."""
    with h5py.File(path, "w", libver="latest") as file:
        for number, name in enumerate([*SETTINGS, *SETTINGS]):
            settings = {"data": VALUES + number, **SETTINGS[name]}
            file.create_dataset(f"{number:02}", **settings).attrs["units"] = "K"
        whole = {"data": VALUES, "chunks": (3, 5)}
        for name in ("whole", "noted", "\u00e4", "texts", "refers"):
            file.create_dataset(name, **whole)
        for name in ("sparse", "sparse again"):
            file.create_dataset(name, (6, 10), "f4", chunks=(3, 5))[:3] = VALUES[:3]
        file["\u00e4"].attrs["n"] = np.arange(3)
        file["texts"].attrs["list"] = ["a", "bc"]
        file["refers"].attrs["other"] = file["whole"].ref
        h5py.h5g.open(file.id, b"/").set_comment(b"noted", b"a comment")
        file["again"] = file["whole"]


def test_datasets_stored_at_once_are_as_those_stored_chunk_by_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_many(tmp_path / "a.h5")
    stored: list[str] = []

    def note(*arguments: Any) -> Any:
        result = rewrite_small(*arguments)
        stored.extend([arguments[1]] if result is not None else [])
        return result

    for name, function in (("quick.h5", note), ("slow.h5", lambda *_: None)):
        monkeypatch.setattr(writer, "rewrite_small", function)
        tamis.repack(
            tmp_path / "a.h5", tmp_path / name, {"*": "shuffle|deflate(4)|fletcher32"}, min_size=0, larger=True
        )
    # 6 x 10 values end within chunks of 4 x 5, and not all chunks of the sparse ones are there.
    # The first of each form shows how HDF5 records the filters: /again, which is /whole, too.
    assert {"/noted", "/\u00e4", "/texts", "/refers"} <= {*stored}
    assert not {"/sparse again", "/05"} & {*stored}
    with h5py.File(tmp_path / "quick.h5") as quick, h5py.File(tmp_path / "slow.h5") as slow:
        assert quick["again"] == quick["whole"]
        assert quick[quick["refers"].attrs["other"]] == quick["whole"]
        assert h5py.h5g.open(quick.id, b"/").get_comment(b"noted") == b"a comment"
        for name in slow:
            mine, other = quick[name], slow[name]
            assert (mine.chunks, mine.maxshape, mine.fillvalue, mine.dtype) == (
                other.chunks,
                other.maxshape,
                other.fillvalue,
                other.dtype,
            )
            assert [*mine.attrs] == [*other.attrs]
            count = mine.id.get_num_chunks()
            assert count == other.id.get_num_chunks()
            for at in range(count):
                origin = mine.id.get_chunk_info(at).chunk_offset
                assert mine.id.read_direct_chunk(origin) == other.id.read_direct_chunk(origin)
    assert tamis.verify(tmp_path / "a.h5", tmp_path / "quick.h5").ok


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_links_listed_at_once_are_those_that_h5py_lists(libver: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as file:
        file["v"], file["soft"], file["t"] = 1.0, h5py.SoftLink("/v"), np.dtype("f4")
        file["external"] = h5py.ExternalLink("b.h5", "/x")
        for name, order in (("plain", False), ("ordered", True), ("noted", False), ("\u00e4", False)):
            file.create_group(name, track_order=order)["again"] = file["v"]
        file["\u00e4"].attrs["a"] = 1
        h5py.h5g.open(file.id, b"/").set_comment(b"noted", b"a comment")
    with h5py.File(tmp_path / "a.h5") as file:
        for group in (file["/"], *(file[name] for name in ("plain", "ordered", "noted", "\u00e4"))):
            listed: list[Any] = []
            group.id.links.iterate(
                lambda name, info, to=listed: to.append(
                    (name, info.type, info.cset, info.corder_valid and info.corder)
                ),
                info=True,
                order=h5py.h5.ITER_NATIVE,
            )
            found = quick_links(group.id)
            assert found is not None
            assert [(name, kind, charset, order or False) for name, kind, _, charset, order in found] == [
                (*entry[:3], entry[3] or False) for entry in listed
            ]
            hard = {name: address for name, kind, address, *_ in found if kind == h5py.h5l.TYPE_HARD}
            assert hard == {name: h5py.h5o.get_info(group.id, name).addr for name in hard}
            bare = group.name == "/plain" and libver == "earliest"
            assert bare_address(group.id) == (h5py.h5o.get_info(group.id).addr if bare else None)


def test_dataset_that_would_grow_is_not_stored_at_once(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        for name in "ab":
            file.create_dataset(name, data=np.random.default_rng(0).random((6, 10)), chunks=(6, 10))
    result = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"*": "deflate(4)"}, min_size=0)
    assert [*dict(result.kept)] == ["/a", "/b"]
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["a"].compression is None
        assert file["b"].compression is None


def test_dataset_that_cannot_be_written_at_once_raises(tmp_path: Path) -> None:
    create(tmp_path / "a.h5", chunks=(6, 10))
    with h5py.File(tmp_path / "a.h5") as file, h5py.File(tmp_path / "b.h5", "w") as target:
        plist = file["v"].id.get_create_plist()
        encoder = native_encoder(Pipeline(()), ChunkType(VALUES.dtype, (6, 10)))
        creation = Creation(file["v"].id.get_type(), plist, Pipeline(()), encoder)
        group, link = h5py.h5g.open(target.id, b"/"), link_plist(0)
        assert rewrite_small(file, "/absent", group, b"v", link, creation, NONE_MISSING, 1000) is None
        assert rewrite_small(file, "/v", group, b"v", link, creation, NONE_MISSING, 239) is None
        assert [*target] == []
        copy = rewrite_small(file, "/v", group, b"v", link, creation, NONE_MISSING, 240)
        assert copy is not None
        assert copy.complete
        ((offset, nbytes, checksum, missing, error),) = copy.chunks
        assert (missing, error) == (0, 0)
        target.flush()
        data = (tmp_path / "b.h5").read_bytes()[offset : offset + nbytes]
        assert (data, checksum) == (VALUES.tobytes(), zlib.crc32(VALUES.tobytes()))
        assert rewrite_small(file, "/v", group, b"v", link, creation, NONE_MISSING, 240) is None  # it is there already
        # Chunks that HDF5 refuses, because they begin elsewhere.
        other = native_encoder(Pipeline(()), ChunkType(VALUES.dtype, (3, 10)))
        with pytest.raises(RuntimeError, match=r"the dataset cannot be written \(errno = "):
            rewrite_small(file, "/v", group, b"w", link, creation._replace(encoder=other), NONE_MISSING, 240)
