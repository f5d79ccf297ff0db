"""Known defects U10 and U27: virtual datasets, external links and raw files in a copy that is in another folder."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t

import tamis

FILTERS = {"n": "shuffle|deflate(4)"}
VALUES = np.arange(40.0)


def fill(path: Path, value: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file["x"] = np.full((10, 4), value)


def numbered(file: h5py.File, name: str, pattern: str) -> None:
    """Create a virtual dataset of as many files as there are, whose names have numbers."""
    space, plist = h5s.create_simple((4, 10), (h5s.UNLIMITED, 10)), h5p.create(h5p.DATASET_CREATE)
    space.select_hyperslab((0, 0), (h5s.UNLIMITED, 1), stride=(4, 1), block=(4, 10))
    source = h5s.create_simple((40,))
    plist.set_virtual(space, pattern.encode(), b"flat", source)
    h5d.create(file.id, name.encode(), h5t.IEEE_F64LE, h5s.create_simple((4, 10), (h5s.UNLIMITED, 10)), plist)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a file in the folder `in` that names others in many ways."""
    monkeypatch.chdir(tmp_path)
    for name in ("HDF5_VDS_PREFIX", "HDF5_EXT_PREFIX", "HDF5_EXTFILE_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    for i in (1, 2):
        fill(tmp_path / f"in/src{i}.h5", float(i))
    fill(tmp_path / "in/deep/100%/src3.h5", 3.0)
    for i in range(3):
        with h5py.File(tmp_path / f"in/part{i}.h5", "w") as file:
            file["flat"] = np.full(40, float(i))
    VALUES.tofile(tmp_path / "in/raw.bin")
    monkeypatch.chdir(tmp_path / "in")
    with h5py.File("v.h5", "w", libver="v110") as file:
        layout = h5py.VirtualLayout((30, 4), "f8")
        for i, name in enumerate(("src1.h5", "src2.h5", "deep/100%%/src3.h5")):
            layout[10 * i : 10 * i + 10] = h5py.VirtualSource(name, "x", (10, 4))
        made = file.create_virtual_dataset("v", layout, fillvalue=-5.0)
        made.attrs["units"] = "K"
        numbered(file, "numbered", "part%b.h5")
        inner = h5py.VirtualLayout((40,), "f8")
        inner[:] = h5py.VirtualSource(".", "n", (40,))
        file.create_virtual_dataset("own", inner)
        file.create_dataset("n", data=VALUES, chunks=(8,))
        file.create_dataset("raw", (20,), ">f8", external=[("raw.bin", 0, 80), ("raw.bin", 160, 80)], fillvalue=3)
        file["link"] = h5py.ExternalLink("src1.h5", "/x")
        file["absolute"] = h5py.ExternalLink(str(tmp_path / "in/src2.h5"), "/x")
        file.create_group("g")["deep"] = h5py.ExternalLink("deep/100%/src3.h5", "/x")
        file["gone"] = h5py.ExternalLink("gone.h5", "/x")
    monkeypatch.chdir(tmp_path)
    return Path("in/v.h5")


def contents(path: Path, folder: Path | None = None) -> dict[str, Any]:
    """Read everything that a file leads to, from its own folder or another one."""
    before = Path.cwd()
    os.chdir(folder or before)
    try:
        with h5py.File(os.path.relpath(before / path, Path.cwd())) as file:
            names = ("v", "numbered", "own", "n", "raw", "link", "absolute", "g/deep")
            return {name: file[name][()].tolist() for name in names}
    finally:
        os.chdir(before)


@pytest.fixture
def expected(source: Path) -> dict[str, Any]:
    return contents(source, Path("in"))


@pytest.mark.parametrize("out", ["out/v.h5", "b.h5", "in/deep/b.h5", "a/b/100%/c.h5"])
def test_u10_relative_places_lead_to_the_same_files_elsewhere(
    source: Path, expected: dict[str, Any], out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    result = tamis.repack(source, out, FILTERS)
    assert contents(Path(out), Path(out).parent) == expected
    assert contents(Path(out), Path("in")) == expected
    with monkeypatch.context() as patch:
        patch.chdir("in")  # where HDF5 finds the raw file of the source
        assert tamis.verify("v.h5", os.path.join("..", out)).ok
    assert any("src1.h5" in note for note in result.notes)
    assert any("'gone.h5', which does not exist" in note for note in result.notes)
    with h5py.File(source) as before, h5py.File(out) as after:
        assert after["v"].fillvalue == -5
        assert after["v"].attrs["units"] == "K"
        assert after["raw"].fillvalue == 3
        assert after["raw"].dtype == before["raw"].dtype
        assert after.get("gone", getlink=True).filename == "gone.h5"
        assert after["own"].virtual_sources()[0].file_name == "."


def test_u10_names_stay_in_the_same_folder(source: Path, expected: dict[str, Any]) -> None:
    result = tamis.repack(source, "in/b.h5", FILTERS)
    assert result.notes == ()
    with h5py.File(source) as before, h5py.File("in/b.h5") as after:
        for name in ("v", "numbered"):
            names = ([each.file_name for each in file[name].virtual_sources()] for file in (before, after))
            assert next(names) == next(names)
        assert after["raw"].external == before["raw"].external
        assert after.get("link", getlink=True).filename == "src1.h5"
    shutil.move("in", "moved")  # as much as before
    assert contents(Path("moved/b.h5"), Path("moved"))["v"] == expected["v"]


def test_u10_files_of_the_same_name_in_the_target_folder_are_not_taken(source: Path, expected: dict[str, Any]) -> None:
    for i in (1, 2):
        fill(Path(f"out/src{i}.h5"), 99.0)
    tamis.repack(source, "out/v.h5", FILTERS)
    assert contents(Path("out/v.h5"), Path("out")) == expected


def test_u10_places_are_right_through_symbolic_links(source: Path, expected: dict[str, Any]) -> None:
    Path("far/away").mkdir(parents=True)
    Path("near").symlink_to("far/away")
    tamis.repack(source, "near/v.h5", FILTERS)
    assert contents(Path("near/v.h5"), Path("near")) == expected
    assert contents(Path("far/away/v.h5"), Path("far/away")) == expected


def test_u10_a_folder_of_the_environment_comes_first(source: Path, python: Callable[..., str]) -> None:
    Path("raw.bin").write_bytes(b"not this one" * 40)
    Path("out").mkdir()
    code = """
import h5py, tamis
print(h5py.File("in/v.h5")["raw"][1])
tamis.repack("in/v.h5", "out/v.h5", {"n": "shuffle"})
print(h5py.File("out/v.h5")["raw"][1], h5py.File("out/v.h5")["raw"].external[0][0])
"""
    first, second, name = python(code, env={"HDF5_EXTFILE_PREFIX": "${ORIGIN}"}).split()
    assert first == second
    assert name == os.path.realpath("in/raw.bin")


@pytest.mark.parametrize("resume", [False, True])
def test_u10_dry_run_says_which_names_change(source: Path, resume: bool) -> None:
    Path("out").mkdir()
    preview = tamis.preview_repack(source, "out/v.h5", FILTERS, resume=resume)
    made = tamis.repack(source, "out/v.h5", FILTERS)
    assert set(made.notes) <= set(preview.notes)
    assert any("'../in/src1.h5'" in note for note in json.loads(preview.to_json())["notes"])


def test_u10_verify_finds_an_external_link_that_leads_elsewhere(source: Path) -> None:
    tamis.repack(source, "in/b.h5", FILTERS)
    with h5py.File("in/b.h5", "r+") as file:
        del file["link"]
        file["link"] = h5py.ExternalLink("src2.h5", "/x")
    assert not tamis.verify(source, "in/b.h5").ok


def test_u10_names_of_another_kind_are_kept(tmp_path: Path) -> None:
    """A virtual dataset whose sources are all missing, with selections of several kinds."""
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    with h5py.File(tmp_path / "in/v.h5", "w") as file:
        layout = h5py.VirtualLayout((20, 4), "f4")
        layout[::2] = h5py.VirtualSource("gone.h5", "x", (40, 4))[10:20]
        layout[1::2, 1:3] = h5py.VirtualSource("/gone/too.h5", "/x", (10, 2))
        file.create_virtual_dataset("v", layout, fillvalue=7)
        file.create_dataset("n", data=VALUES)
    result = tamis.repack(tmp_path / "in/v.h5", tmp_path / "out/v.h5", FILTERS)
    assert len(result.notes) == 1
    with h5py.File(tmp_path / "out/v.h5") as file:
        assert [each.file_name for each in file["v"].virtual_sources()] == ["gone.h5", "/gone/too.h5"]
        assert (file["v"][()] == 7).all()
    fill(tmp_path / "in/gone.h5", 4.0)
    tamis.repack(tmp_path / "in/v.h5", tmp_path / "out/w.h5", FILTERS)
    with h5py.File(tmp_path / "in/v.h5") as before, h5py.File(tmp_path / "out/w.h5") as after:
        for old, new in zip(before["v"].virtual_sources(), after["v"].virtual_sources(), strict=True):
            assert old.dset_name == new.dset_name
            for first, second in ((old.vspace, new.vspace), (old.src_space, new.src_space)):
                assert first.get_select_npoints() == second.get_select_npoints()
                if first.get_select_type() == h5s.SEL_HYPERSLABS:
                    assert first.get_regular_hyperslab() == second.get_regular_hyperslab()


@pytest.mark.parametrize("pattern", ["*", "/*", "/[vrno]*"])
def test_u27_a_pattern_leaves_values_in_other_files(source: Path, pattern: str) -> None:
    result = tamis.repack(source, "in/b.h5", {pattern: "shuffle|deflate(4)"})
    assert [each.path for each in result.datasets] == ["/n"]
    reasons = dict(result.kept)
    assert {"/v", "/raw", "/own", "/numbered"} == set(reasons)
    assert "other files (virtual)" in reasons["/v"]
    assert "--follow" in reasons["/raw"]
    with h5py.File("in/b.h5") as file:
        assert file["v"].is_virtual
        assert file["raw"].external


def test_u27_follow_and_exact_names_store_values_in_the_target(source: Path) -> None:
    os.chdir("in")
    tamis.repack("v.h5", "b.h5", {"*": "shuffle|deflate(4)"}, follow=True)
    tamis.repack("v.h5", "c.h5", {"v": "shuffle", "raw": "shuffle"})
    with h5py.File("v.h5") as before, h5py.File("b.h5") as all_of_it, h5py.File("c.h5") as two:
        for name in ("v", "raw", "own", "numbered", "n"):
            assert all_of_it[name].chunks
            np.testing.assert_array_equal(all_of_it[name][()], before[name][()])
        assert not two["v"].is_virtual
        assert not two["raw"].external
        assert two["own"].is_virtual


def test_u27_a_hostile_file_does_not_bring_others_into_the_target(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"root:x:0:0: very secret" * 10)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("absolute", (23,), "u1", external=[(str(secret), 0, 23)])
        file.create_dataset("relative", (23,), "u1", external=[("../" * 30 + str(secret)[1:], 0, 23)])
        file.create_dataset("n", data=VALUES)
    preview = tamis.preview_repack(tmp_path / "a.h5", tmp_path / "b.h5", {"*": "none"})
    assert {each.path: each.action for each in preview.datasets} == {
        "/absolute": "keep",
        "/relative": "keep",
        "/n": "store",
    }
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"*": "none"})
    assert b"secret" not in (tmp_path / "b.h5").read_bytes().replace(str(secret).encode(), b"")
