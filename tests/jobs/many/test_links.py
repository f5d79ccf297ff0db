"""Known defects U75 and U76: links and virtual sources among the files of a run lead to the new files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t

import tamis

FILTERS = {"x": "shuffle|deflate(4)"}


def fill(path: Path, first: float) -> None:
    """Make a file with a dataset of ten values."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=first + np.arange(10.0), chunks=(5,))


def virtual(file: h5py.File, name: str, *sources: str) -> None:
    """Make a virtual dataset of files of ten values each."""
    layout = h5py.VirtualLayout((10 * len(sources),), "f8")
    for number, source in enumerate(sources):
        layout[10 * number : 10 * number + 10] = h5py.VirtualSource(source, "x", (10,))
    file.create_virtual_dataset(name, layout, fillvalue=-1.0)


def numbered(file: h5py.File, name: str, pattern: str) -> None:
    """Make a virtual dataset of as many files as there are, whose names have numbers."""
    space, plist = h5s.create_simple((10,), (h5s.UNLIMITED,)), h5p.create(h5p.DATASET_CREATE)
    space.select_hyperslab((0,), (h5s.UNLIMITED,), stride=(10,), block=(10,))
    plist.set_virtual(space, pattern.encode(), b"x", h5s.create_simple((10,)))
    h5d.create(file.id, name.encode(), h5t.IEEE_F64LE, h5s.create_simple((10,), (h5s.UNLIMITED,)), plist)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with a master that leads to files of the folder in many ways, and one outside."""
    for name in ("HDF5_VDS_PREFIX", "HDF5_EXT_PREFIX", "HDF5_EXTFILE_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    top = tmp_path / "in"
    fill(top / "data/a.h5", 100)
    fill(top / "b 50%.h5", 200)
    for number in range(3):
        fill(top / f"parts/p{number}.h5", 1000 * number)
    with h5py.File(top / "m.h5", "w", libver="v110") as file:
        virtual(file, "v", "data/a.h5", "./b 50%%.h5")
        virtual(file, "absolute", str(top / "data/a.h5"))
        virtual(file, "self", "m.h5", "./m.h5")
        file.create_dataset("x", data=7.0 + np.arange(10), chunks=(5,))
        numbered(file, "numbered", "parts/p%b.h5")
        file["link"] = h5py.ExternalLink("data/a.h5", "/x")
        file["absolute link"] = h5py.ExternalLink(str(top / "b 50%.h5"), "/")
        file["own link"] = h5py.ExternalLink("m.h5", "/x")
    (top / "data/deep").mkdir()
    with h5py.File(top / "data/deep/m.h5", "w") as file:
        virtual(file, "v", "../a.h5", "../../b 50%%.h5")
        file["up"] = h5py.ExternalLink("../../m.h5", "/v")
    return top


def read(path: Path) -> dict[str, Any]:
    """Read all that the master leads to, from a folder without such files."""
    with h5py.File(path) as file:
        names = ("v", "absolute", "self", "x", "numbered", "link", "absolute link/x", "own link")
        return {name: file[name][()].tolist() for name in names}


def names_of(path: Path) -> list[str]:
    """Return all names of other files in the master."""
    with h5py.File(path) as file:
        own = ("v", "absolute", "self", "numbered")
        found = [source.file_name for name in own for source in file[name].virtual_sources()]
        links = ("link", "absolute link", "own link")
        return [*found, *(file.get(name, getlink=True).filename for name in links)]


@pytest.fixture
def repacked(folder: Path, tmp_path: Path) -> tuple[tamis.FolderStatus, Path]:
    return tamis.repack_many(folder, tmp_path / "out", FILTERS, workers=1), tmp_path / "out"


def test_u75_repack_many_masters_lead_to_new_files(
    folder: Path, repacked: tuple[tamis.FolderStatus, Path], tmp_path: Path
) -> None:
    expected = read(folder / "m.h5")
    done, out = repacked
    assert done.ok, done
    assert done.other_files == {}
    shutil.rmtree(folder)
    assert read(out / "m.h5") == expected
    own = {str(out / "data/a.h5"), str(out / "b 50%.h5")}
    assert {name for name in names_of(out / "m.h5") if os.path.isabs(name)} == own
    with h5py.File(out / "data/deep/m.h5") as file:
        assert file["v"][()].tolist() == expected["v"]
        assert file["up"][()].tolist() == expected["v"]


def test_u75_repack_many_relative_names_survive_a_move(
    folder: Path, repacked: tuple[tamis.FolderStatus, Path], tmp_path: Path
) -> None:
    with h5py.File(folder / "m.h5") as file:
        expected = file["v"][()].tolist(), file["numbered"][()].tolist()
    shutil.rmtree(folder)
    repacked[1].rename(tmp_path / "moved")
    with h5py.File(tmp_path / "moved/m.h5") as file:
        assert (file["v"][()].tolist(), file["numbered"][()].tolist()) == expected
        assert file["self"][:10].tolist() == file["x"][()].tolist()


def test_u75_repack_many_in_place_masters_keep_their_names(folder: Path) -> None:
    before, names = read(folder / "m.h5"), names_of(folder / "m.h5")
    done = tamis.repack_many(folder, None, FILTERS, replace=True, workers=1)
    assert done.ok, done
    assert done.other_files == {}
    assert read(folder / "m.h5") == before
    virtual_names, links = names[:-3], names[-3:]
    expected = ["." if name in ("m.h5", "./m.h5") else name for name in virtual_names]
    assert names_of(folder / "m.h5") == [*expected, *links]


def test_u75_repack_many_symlinked_folder_masters_lead_to_new_files(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "way").symlink_to(folder)
    expected = read(folder / "m.h5")
    done = tamis.repack_many("way", tmp_path / "out", FILTERS, workers=1)
    assert (done.ok, done.other_files) == (True, {})
    shutil.rmtree(folder)
    assert read(tmp_path / "out/m.h5") == expected


def test_u75_repack_many_listed_files_masters_lead_to_new_files(folder: Path, tmp_path: Path) -> None:
    names = ["in/m.h5", "in/data/a.h5", "in/b 50%.h5", *(f"in/parts/p{number}.h5" for number in range(3))]
    expected = read(folder / "m.h5")
    done = tamis.repack_many([], tmp_path / "out", FILTERS, files_from=names, workers=1)
    assert (done.ok, done.other_files) == (True, {})
    shutil.rmtree(folder)
    assert read(tmp_path / "out/in/m.h5") == expected


def test_u75_repack_many_part_of_a_folder_leads_to_files_of_other_parts(folder: Path, tmp_path: Path) -> None:
    expected = read(folder / "m.h5")
    for number in (1, 2):
        assert tamis.repack_many(folder, tmp_path / "out", FILTERS, shard=(number, 2), workers=1).ok
    shutil.rmtree(folder)
    assert read(tmp_path / "out/m.h5") == expected


def test_u75_repack_many_file_outside_is_listed_everywhere(folder: Path, tmp_path: Path) -> None:
    preview = tamis.preview_repack_many(folder, "out", FILTERS, exclude="a.h5")
    done = tamis.repack_many(folder, "out", FILTERS, exclude="a.h5", workers=1)
    outside = str(folder / "data/a.h5")
    for found in (
        next(file.other_files for file in preview.files if file.path == "m.h5"),
        done.other_files["m.h5"],
        tamis.status("out").other_files["m.h5"],
    ):
        assert {(other.path, other.kind, other.file, other.exists) for other in found} == {
            ("/v", "virtual source", outside, True),
            ("/absolute", "virtual source", outside, True),
            ("/link", "external link", outside, True),
        }
    entries = {entry["path"]: entry for entry in json.loads(preview.to_json())["files"]}
    assert entries["m.h5"]["other_files"][0]["file"] == outside
    assert json.loads(done.to_json())["other_files"]["m.h5"][0]["file"] == outside
    record = next(file for file in tamis.manifest("out").files if file.path == "m.h5")
    assert record.other_files[0]["file"] == outside
    for result in (preview, done, tamis.status("out"), tamis.manifest("out")):
        assert f"m.h5: needs 1 file that this run does not make: {outside}" in str(result)
    with h5py.File("out/m.h5") as file:
        assert file["v"][:10].tolist() == (100 + np.arange(10.0)).tolist()


@pytest.mark.check
def test_u75_repack_many_file_that_joins_the_run_makes_masters_again(folder: Path) -> None:
    tamis.repack_many(folder, "out", FILTERS, exclude="a.h5", workers=1)
    done = tamis.repack_many(folder, "out", FILTERS, workers=1)
    assert done.other_files == {}
    assert done.again == {"a file that the target leads to is now one of the run": 2}
    shutil.rmtree(folder)
    with h5py.File("out/m.h5") as file:
        assert file["v"][:10].tolist() == (100 + np.arange(10.0)).tolist()


def test_u75_repack_many_number_with_some_files_outside_is_listed(folder: Path) -> None:
    done = tamis.repack_many(folder, "out", FILTERS, exclude="p1.h5", workers=1)
    assert [other.file for other in done.other_files["m.h5"]] == [str(folder / "parts/p%b.h5")]
    with h5py.File("out/m.h5") as file:
        assert len(file["numbered"]) == 30


def test_u75_repack_many_raw_file_that_is_copied_is_found_in_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    np.arange(10.0).tofile(tmp_path / "in/raw.bin")
    with h5py.File(tmp_path / "in/e.h5", "w", libver="latest") as file:
        file.create_dataset("e", (10,), "f8", external=[("raw.bin", 0, 80)])
        file.create_dataset("f", (10,), "f8", external=[(str(tmp_path / "in/raw.bin"), 0, 80)])
    done = tamis.repack_many(tmp_path / "in", tmp_path / "out", {}, other="copy", workers=1)
    assert (done.ok, done.other_files) == (True, {})
    shutil.rmtree(tmp_path / "in")
    monkeypatch.chdir(tmp_path / "out")
    with h5py.File("e.h5") as file:
        assert file["e"][()].tolist() == file["f"][()].tolist() == list(range(10))


@pytest.mark.parametrize("spelling", ["m.h5", "./m.h5", "../in/m.h5", "{}/in/m.h5"])
def test_u76_repack_virtual_dataset_that_names_its_own_file_reads_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    monkeypatch.chdir(tmp_path)
    fill(tmp_path / "in/m.h5", 5)
    with h5py.File("in/m.h5", "a") as file:
        virtual(file, "v", spelling.format(tmp_path))
    result = tamis.repack("in/m.h5", "copy.h5", FILTERS)
    assert result.other_files == ()
    shutil.rmtree("in")
    with h5py.File("copy.h5") as file:
        assert file["v"].virtual_sources()[0].file_name == "."
        assert file["v"][()].tolist() == (5 + np.arange(10.0)).tolist()


def test_u75_repack_one_file_lists_what_it_leads_to(folder: Path) -> None:
    preview, done = tamis.preview_repack("in/m.h5", "m2.h5", FILTERS), tamis.repack("in/m.h5", "m2.h5", FILTERS)
    again = tamis.repack("in/m.h5", "m2.h5", FILTERS, resume=True)
    assert again.done_already
    files = {other.file for other in done.other_files}
    assert files == {str(folder / name) for name in ("data/a.h5", "b 50%.h5", "parts/p%b.h5")}
    assert {other.file for other in preview.other_files} == {other.file for other in again.other_files} == files
    assert "the target needs 3 files that this run does not make" in str(done)
    assert "the target needs 3 files that this run does not make" in str(preview)
    assert {other["file"] for other in json.loads(done.to_json())["other_files"]} == files
    assert read(Path("m2.h5")) == read(folder / "m.h5")


def test_u75_repack_single_file_to_a_folder_of_a_run_is_made_again(folder: Path) -> None:
    Path("out").mkdir()
    tamis.repack("in/m.h5", "out/m.h5", FILTERS)
    done = tamis.repack_many(folder, "out", FILTERS, workers=1)
    assert (done.ok, done.other_files) == (True, {})
    expected = read(folder / "m.h5")
    shutil.rmtree(folder)
    assert read(Path("out/m.h5")) == expected


def test_u75_repack_file_that_does_not_exist_is_listed(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file["gone"] = h5py.ExternalLink("gone.h5", "/x")
    (other,) = tamis.repack(tmp_path / "m.h5", tmp_path / "n.h5", {}).other_files
    assert tuple(other) == ("/gone", "external link", "gone.h5", False)


def test_u75_repack_name_with_a_percent_sign_and_a_letter_is_one_file(tmp_path: Path) -> None:
    fill(tmp_path / "in/a%b.h5", 3)
    fill(tmp_path / "in/a1.h5", 4)
    with h5py.File(tmp_path / "in/m.h5", "w") as file:
        virtual(file, "v", "a%%b.h5")
        file["link"] = h5py.ExternalLink("a%b.h5", "/x")
    done = tamis.repack_many(tmp_path / "in", tmp_path / "out", FILTERS, workers=1)
    assert (done.ok, done.other_files) == (True, {})
    shutil.rmtree(tmp_path / "in")
    with h5py.File(tmp_path / "out/m.h5") as file:
        assert file["v"][0] == file["link"][0] == 3


@pytest.mark.check
def test_u75_repack_command_over_a_folder_says_what_targets_need(folder: Path) -> None:
    run: Callable[..., Any] = subprocess.run
    command = [sys.executable, "-m", "tamis", "repack", "in", "out", "-f", "x:deflate(4)", "--exclude", "a.h5"]
    preview = run([*command, "--dry-run"], capture_output=True, text=True, check=True)
    done = run(command, capture_output=True, text=True, check=True)
    for text in (preview.stdout, done.stdout):
        assert "m.h5: needs 1 file that this run does not make" in " ".join(text.split())
