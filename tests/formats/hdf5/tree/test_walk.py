"""Walking through a file: every object once, by the path that HDF5 itself finds first."""

from __future__ import annotations

import gc
from pathlib import Path

import h5py
import numpy as np
import pytest
from h5py import h5d, h5g, h5s, h5t

import tamis
from tamis import FileError
from tamis.formats.hdf5.lib.files import open_source
from tamis.formats.hdf5.tree import walk as open_groups
from tamis.formats.hdf5.tree.walk import walk


def test_walk_objects_with_many_links_found_once_by_hdf5s_first_path(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["z/deep/v"] = 1
        file["a/x"] = 2
        file["b"], file["z/again"] = file["a/x"], file["z/deep/v"]
        file["a/loop"], file["z/root"] = file["a"], file["/"]
        file["soft"], file["gone"] = h5py.SoftLink("/a/x"), h5py.ExternalLink("none.h5", "/")
        file["type"] = np.dtype("f4")
        found = walk(file)
        assert list(found.datasets) == ["/a/x", "/z/again"]
        assert list(found.groups) == ["/", "/a", "/z", "/z/deep"]
        assert found.closed == {}
        assert found.datasets["/a/x"].dataset[()] == 2


def test_walk_names_of_any_bytes_lead_back_to_the_objects(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        group = h5g.create(file.id, b"\xff group")
        h5d.create(group, b"v", h5t.NATIVE_INT8, h5s.create(h5s.SCALAR))
        file["ünï"] = 2
        found = walk(file)
        assert list(found.datasets) == ["/ünï", "/\udcff group/v"]
        assert [int(array.dataset[()]) for array in found.datasets.values()] == [2, 0]


def test_datasets_are_opened_when_asked_for_and_few_stay_open(tmp_path: Path) -> None:
    """HDF5 takes much memory for each dataset that is open."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for path in ("b", "g/a", "g/c", *(f"h/{i:02}" for i in range(20))):
            file[path] = np.arange(3)
        found = walk(file).datasets
        assert h5py.h5f.get_obj_count(file.id, h5py.h5f.OBJ_DATASET) == 0
        assert (len(found), list(found)[:3], "g/a" in found) == (23, ["/b", "/g/a", "/g/c"], False)
        assert [array.dataset.name for array in found.values()] == list(found)
        with pytest.raises(KeyError):
            found["/g"]
        gc.collect()
        assert 0 < h5py.h5f.get_obj_count(file.id, h5py.h5f.OBJ_DATASET) <= 8
        assert found["/b"] is found["/b"]


def test_walk_damaged_link_is_a_file_error_that_names_the_file(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["v"] = 1
        address = h5py.h5o.get_info(file["v"].id).addr
    data = bytearray((tmp_path / "a.h5").read_bytes())
    data[address : address + 16] = b"\xff" * 16
    (tmp_path / "a.h5").write_bytes(data)
    with h5py.File(tmp_path / "a.h5") as file, pytest.raises(FileError, match=r"a\.h5: /v: damaged or incomplete: "):
        walk(file)


def test_datasets_every_one_once_by_path(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for path in ("z", "g/b", "g/h/a", "a"):
            file[path] = np.arange(3)
        file["g/type"] = np.dtype("f4")
        file["hard"], file["g/again"] = file["z"], file["g"]
        file["soft"], file["gone"] = h5py.SoftLink("/z"), h5py.SoftLink("/nowhere")
        file["outside"] = h5py.ExternalLink("none.h5", "/x")
    with open_source(tmp_path / "a.h5") as file:
        found = list(walk(file).datasets.values())
        assert len(found) == 4
        assert sorted(found, key=lambda array: array.path) == found
        assert {array.address for array in found} == {
            h5py.h5o.get_info(file[path].id).addr for path in ("z", "g/b", "g/h/a", "a")
        }


def test_datasets_with_undecodable_name_can_be_opened_by_it(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        h5d.create(file.id, b"lat\xff", h5t.NATIVE_FLOAT, h5s.create_simple((20,)))
    with open_source(tmp_path / "a.h5") as file:
        ((name, array),) = walk(file).datasets.items()
        assert file[name.encode("utf-8", "surrogateescape")] == array.dataset


def test_groups_that_do_not_stay_open_are_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "a.h5"
    with h5py.File(source, "w") as file:
        group: h5py.Group = file
        for number in range(40):
            group.create_dataset("v", data=np.arange(8.0), chunks=(4,))
            group["again"] = file["v"]
            group.attrs["number"] = number
            group.create_group("side", track_order=number % 2 == 0)["soft"] = h5py.SoftLink("/v")
            group = group.create_group(f"g{number}")
        group.attrs["root"] = file.ref
    results = []
    for most in (16 << 20, 6000, 0):
        monkeypatch.setattr(open_groups, "_MOST_NBYTES", most)
        target = tmp_path / f"{most}.h5"
        tamis.repack(source, target, {"*": "shuffle|deflate(4)"}, min_size=0, larger=True)
        assert tamis.verify(source, target).ok
        results.append(target.read_bytes())
        with h5py.File(target, "r+") as file:
            file["g0/g1/g2/side"].attrs["new"] = 1
            del file["g0/g1/g2/g3/again"]
        assert [finding.path for finding in tamis.verify(source, target).violations] == ["/g0/g1/g2/g3/again"]
    assert len({*results}) == 1
