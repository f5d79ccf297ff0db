"""Copies keep the filters of groups, and when groups take them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from h5py import h5a, h5f, h5g, h5p, h5s, h5t

import tamis
from tamis import FileError, UnknownFilter
from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.tree.copy import TreeCopier
from tamis.formats.hdf5.tree.create import create_target
from tamis.hdf5 import create_group, group_filters, group_phase_change

Fill, Links, Storage = Callable[..., h5py.Group], Callable[[h5py.Group], dict[str, str]], Callable[[h5py.Group], int]
FILTERS = "deflate(9)|fletcher32"
# Of the ids that HDF5 leaves to tests: no plugin has it.
NOWHERE = 511
VERSIONS = [None, "earliest", "v108", "latest"]


def plain_group(file: h5py.File, name: str, code: int, flags: int) -> h5py.Group:
    """Create a group with any filter, past all checks."""
    gcpl = h5p.create(h5p.GROUP_CREATE)
    set_filter(gcpl, code, flags)
    return h5py.Group(h5g.create(file.id, name.encode(), gcpl=gcpl))


def set_filter(plist: h5p.PropOCID, code: int, flags: int, values: tuple[int, ...] = ()) -> None:
    view = h5p.PropDCID(plist.id)
    view.locked = True
    view.set_filter(code, flags, values)


def filtered_root(path: Path) -> h5py.File:
    """Create a file whose root group has deflate, and is dense from its third link on."""
    fcpl = h5p.create(h5p.FILE_CREATE)
    set_filter(fcpl, 1, 0, (9,))
    calls.set_link_phase_change(fcpl, 2, 1)
    return h5py.File(h5f.create(os.fsencode(path), h5f.ACC_TRUNC, fcpl))


def copied(source: Path, target: Path) -> Path:
    with h5py.File(source) as old, create_target(old, target) as new:
        copier = TreeCopier(old, new)
        assert not [*copier.slots()]
        copier.finish()
    return target


@pytest.mark.parametrize("libver", VERSIONS)
def test_copy_tree_keeps_filters_and_phase_change_of_groups(
    tmp_path: Path, libver: str | None, fill: Fill, storage: Storage
) -> None:
    source = tmp_path / "a.h5"
    with h5py.File(source, "w", libver=libver) as file:
        fill(create_group(file, "dense", FILTERS, max_compact=0))
        fill(create_group(file, "dense/inner", "deflate(1)!", max_compact=30, min_dense=20, track_order=True), 25)
        fill(create_group(file, "unfiltered", max_compact=3, min_dense=1), 20)
        fill(file.create_group("default"), 20)
    target = copied(source, tmp_path / "b.h5")
    with h5py.File(source) as old, h5py.File(target) as new:
        for name in ("dense", "dense/inner", "unfiltered", "default"):
            assert group_phase_change(new[name]) == group_phase_change(old[name])
            assert str(group_filters(new[name])) == str(group_filters(old[name]))
            assert storage(new[name]) == storage(old[name])
            assert list(new[name]) == list(old[name])
        plists = [file["dense/inner"].id.get_create_plist() for file in (old, new)]
        assert plists[0].get_link_creation_order() == plists[1].get_link_creation_order()
    assert target.stat().st_size == pytest.approx(source.stat().st_size, rel=0.1)


def test_copy_tree_keeps_room_for_links(tmp_path: Path) -> None:
    gcpl = h5p.create(h5p.GROUP_CREATE)
    calls.set_estimated_links(gcpl, 7, 99)
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        h5g.create(file.id, b"g", gcpl=gcpl)
    with h5py.File(copied(tmp_path / "a.h5", tmp_path / "b.h5")) as file:
        assert calls.estimated_links(file["g"].id.get_create_plist()) == (7, 99)


def test_copy_tree_keeps_filters_of_the_root_group(
    tmp_path: Path, fill: Fill, links: Links, storage: Storage, names: list[str]
) -> None:
    source = tmp_path / "a.h5"
    with filtered_root(source) as file:
        assert str(group_filters(file)) == str(group_filters(file["/"])) == "deflate(9)!"
        fill(file)
    with h5py.File(copied(source, tmp_path / "b.h5")) as file:
        assert str(group_filters(file)) == "deflate(9)!"
        assert group_phase_change(file) == (2, 1)
        assert storage(file) == calls.DENSE
        assert links(file) == dict.fromkeys(names, "/somewhere")
    assert names[100].encode() not in (tmp_path / "b.h5").read_bytes()


def test_copy_tree_required_filter_of_group_missing_refused(tmp_path: Path, fill: Fill) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        fill(plain_group(file, "g", NOWHERE, 0), 3)
    with pytest.raises(FileError, match=f"cannot copy /g: links cannot be written without HDF5 filter {NOWHERE}"):
        copied(tmp_path / "a.h5", tmp_path / "b.h5")


def test_create_target_required_filter_of_root_group_missing_refused(tmp_path: Path) -> None:
    fcpl = h5p.create(h5p.FILE_CREATE)
    set_filter(fcpl, NOWHERE, 0)
    h5py.File(h5f.create(os.fsencode(tmp_path / "a.h5"), h5f.ACC_TRUNC, fcpl)).close()
    with (
        h5py.File(tmp_path / "a.h5") as file,
        pytest.raises(FileError, match=f"links cannot be written without HDF5 filter {NOWHERE}"),
    ):
        create_target(file, tmp_path / "b.h5")
    assert not (tmp_path / "b.h5").exists()


def test_copy_tree_optional_filter_of_group_missing_kept(
    tmp_path: Path, fill: Fill, links: Links, names: list[str]
) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        fill(plain_group(file, "g", NOWHERE, 1))
    with h5py.File(copied(tmp_path / "a.h5", tmp_path / "b.h5")) as file:
        assert links(file["g"]) == dict.fromkeys(names, "/somewhere")
        assert group_filters(file["g"]).filters == (UnknownFilter(NOWHERE),)


def test_copy_tree_damaged_links_of_group_refused(tmp_path: Path, fill: Fill, names: list[str]) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        fill(create_group(file, "g", max_compact=0))
    raw = bytearray(path.read_bytes())
    raw[raw.index(names[100].encode())] ^= 1
    path.write_bytes(raw)
    with pytest.raises(FileError, match=r"cannot copy /g: .*links cannot be read: .*checksum"):
        copied(path, tmp_path / "b.h5")


def test_copy_tree_without_the_librarys_calls_keeps_filters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fill: Fill
) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        fill(create_group(file, "g", FILTERS))
    monkeypatch.setattr(calls, "_function", lambda name: None)
    monkeypatch.setattr(calls, "has", lambda name: False)
    with h5py.File(copied(tmp_path / "a.h5", tmp_path / "b.h5")) as file:
        assert str(group_filters(file["g"])) == FILTERS


def test_copy_tree_keeps_mark_of_attribute_names_as_utf8(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for owner in (file.create_group("g"), file.create_dataset("d", data=1), file):
            scalar = h5s.create(h5s.SCALAR)
            calls.create_utf8_attribute(owner.id, "größe".encode(), h5t.STD_I32LE, scalar).write(np.array(7, "i4"))
            owner.attrs["plain"] = 8
    with h5py.File(copied(tmp_path / "a.h5", tmp_path / "b.h5")) as file:
        for owner in (file["g"], file["d"], file):
            assert dict(owner.attrs) == {"größe": 7, "plain": 8}
            marks = {name: h5a.get_info(owner.id, name.encode()).cset for name in owner.attrs}
            assert marks == {"größe": h5t.CSET_UTF8, "plain": h5t.CSET_ASCII}


STEPS = [f"temperature at 2 m above ground, time step {i:05d}" for i in range(200)]


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_d30_repack_keeps_filters_of_groups(tmp_path: Path, libver: str) -> None:
    """D30: h5repack drops filters of groups; tamis keeps them, with all links."""
    source, target = tmp_path / "a.h5", tmp_path / "b.h5"
    values = np.linspace(0, 1, 4096, dtype="f4").reshape(64, 64)
    with h5py.File(source, "w", libver=libver) as file:
        file.create_dataset("TS", data=values, chunks=(16, 64))
        group = create_group(file, "steps", FILTERS, max_compact=4, min_dense=2)
        for name in STEPS:
            group[name] = file["TS"]
        create_group(group, "inner", "deflate(1)!", max_compact=0)["again"] = h5py.SoftLink("/TS")
    tamis.repack(source, target, {"TS": "zfp(accuracy=0.001)"})
    with h5py.File(target) as file:
        assert str(group_filters(file["steps"])) == FILTERS
        assert group_phase_change(file["steps"]) == (4, 2)
        assert str(group_filters(file["steps/inner"])) == "deflate(1)!"
        assert group_phase_change(file["steps/inner"]) == (0, 0)
        assert list(file["steps"]) == sorted(["inner", *STEPS])
        assert all(file["steps"][name] == file["TS"] for name in STEPS)
        assert np.abs(file["steps/inner/again"][...] - values).max() <= 0.001
    # Filtered in the file, not in the properties alone.
    assert STEPS[100].encode() not in target.read_bytes()
