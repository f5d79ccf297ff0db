"""Files and folders that tamis makes have the modes that a user expects, whatever the umask."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tamis
from tamis import Recipe
from tamis.access import check_own, make_private_folder, take_access

SAMPLE = Path(__file__).resolve().parents[1] / "examples" / "data" / "cam_ts.nc"
SOURCE = Path(tamis.__file__).parent
ZFP = {"TS": "zfp(accuracy=0.1)"}

# What makes files, in one process, and the processes that it starts.
MAKE = """
import importlib.util, os, shutil, tamis
from tamis.cli import main

def has(*modules):
    return all(importlib.util.find_spec(module) for module in modules)

def run(*words):
    try:
        main([*words], standalone_mode=False)
    except SystemExit as end:
        assert not end.code, words

zfp = {"TS": "zfp(accuracy=0.1)"}
tamis.repack("a.nc", "out.nc", zfp)
tamis.repack("a.nc", "spread.nc", zfp, workers=1)
if has("zarr"):
    tamis.repack("a.nc", "out.zarr", zfp)
    tamis.repack("a.nc", "shards.zarr", zfp, shards=4, workers=1)
    tamis.repack("out.zarr", "back.nc", zfp)
tamis.repack_many("data", "new/folder", zfp, other="copy", workers=1)
tamis.repack_many("archive", None, zfp, replace=True, keep_originals="old/originals", workers=1)
plot = ["--plot", "plan.svg"] * has("matplotlib")
run("plan", "a.nc", "--require", "TS:abs=0.1", "--sample", "1MB", "-o", "recipe.toml", *plot, "-q")
run("report", "a.nc", "out.nc", "-o", "report.html", "-q")
run("report", "data", "new/folder", "-o", "all.html", "--each", "1", "-q")
run("inspect", "a.nc", "--html", "inspect.html")
run("export", "out.nc", "--to", "kerchunk", "-o", "kerchunk.json")
run("export", "out.nc", "--to", "zarr-manifest", "-o", "manifest")
if has("icechunk"):
    run("export", "out.nc", "--to", "icechunk", "-o", "icechunk")
run("config", "--install", "h5z-zfp")
run("copy", "a.nc", "copy.nc", "-F", "TS,1,4", "--log", "run.log", "-q")
"""


def modes(folder: Path) -> dict[str, int]:
    """Return the mode of all files and folders below a folder, by path."""
    found = (Path(parent, name) for parent, folders, files in os.walk(folder) for name in (*folders, *files))
    return {path.relative_to(folder).as_posix(): stat.S_IMODE(path.lstat().st_mode) for path in found}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.slow
@pytest.mark.check
@pytest.mark.parametrize("umask", [0o027, 0o022, 0o077, 0o002], ids=oct)
def test_u64_what_is_made_has_the_mode_of_the_umask(umask: int, tmp_path: Path) -> None:
    for name in ("a.nc", "data/a.nc", "archive/a.nc", "archive/deep/b.nc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SAMPLE, tmp_path / name)
        (tmp_path / name).chmod(0o640)
    (tmp_path / "data" / "notes.txt").write_text("notes")
    before = modes(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", MAKE], cwd=tmp_path, umask=umask, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    made = modes(tmp_path)
    assert {path: made[path] for path in before} == before
    originals = {"old/originals/a.nc", "old/originals/deep/b.nc"}
    assert {made[path] for path in originals} == {0o640}
    wrong = {
        path: oct(found)
        for path, found in made.items()
        if path not in {*before, *originals}
        and found != (0o777 if (tmp_path / path).is_dir() else 0o666) & ~umask
        and path != "new/folder/notes.txt"
    }
    assert not wrong
    assert made["new/folder/notes.txt"] == made["data/notes.txt"] & ~umask
    assert len(made) > 100


def test_no_module_changes_the_umask() -> None:
    """All threads of a process share it, so that the files of others would get it, too."""
    modules = [*SOURCE.rglob("*.py")]
    assert len(modules) > 100
    assert not [path for path in modules if "umask(" in path.read_text()]


class Watch:
    """Progress that notes the modes of the temporary files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.modes: set[int] = set()

    def __call__(self, *_: Any) -> None:
        for path in self.folder.iterdir():
            if path.name.startswith(".") and path.name.endswith((".tamis", ".tamis-chunks")):
                self.modes.add(mode(path))


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    """Let a test set the umask."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@pytest.mark.parametrize("old", [0o600, 0o640, 0o664, 0o444], ids=oct)
def test_target_that_replaces_a_file_takes_its_mode_and_is_closed_before(
    old: int, tmp_path: Path, umask: Callable[[int], int]
) -> None:
    target, watch = tmp_path / "out.nc", Watch(tmp_path)
    target.write_text("before")
    target.chmod(old)
    tamis.repack(SAMPLE, target, ZFP, overwrite=True, progress=watch)
    assert mode(target) == old
    assert watch.modes == {0o600}
    tamis.repack(SAMPLE, tmp_path / "new.nc", ZFP, progress=watch)
    assert watch.modes == {0o600, 0o644}


@pytest.mark.matrix
@pytest.mark.parametrize("old", [0o700, 0o750, 0o775], ids=oct)
def test_store_that_replaces_a_store_takes_its_mode_and_is_closed_before(
    old: int, tmp_path: Path, umask: Callable[[int], int]
) -> None:
    pytest.importorskip("zarr")
    target, watch = tmp_path / "out.zarr", Watch(tmp_path)
    tamis.repack(SAMPLE, target, ZFP)
    target.chmod(old)
    umask(0o077)
    tamis.repack(SAMPLE, target, ZFP, overwrite=True, progress=watch, workers=1)
    assert mode(target) == old
    inside = modes(target)
    assert {found for path, found in inside.items() if (target / path).is_dir()} == {old}
    assert {found for path, found in inside.items() if (target / path).is_file()} == {old & 0o666}
    assert watch.modes == {0o700}


@pytest.mark.matrix
@pytest.mark.parametrize("old", [0o600, 0o640, 0o664, 0o444], ids=oct)
def test_file_that_is_replaced_in_place_keeps_its_mode(
    old: int, tmp_path: Path, umask: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "archive" / "a.nc"
    path.parent.mkdir()
    shutil.copyfile(SAMPLE, path)
    path.chmod(old)
    umask(0o027)
    found = tamis.repack_many(path.parent, None, ZFP, workers=1, replace=True, keep_originals=tmp_path / "old")
    assert found.made == 1
    assert mode(path) == mode(tmp_path / "old" / "a.nc") == old
    assert mode(tmp_path / "old") == 0o750
    state = modes(path.parent / ".tamis")
    folders = {"claims", "room"}
    assert {found for name, found in state.items() if name not in folders} == {0o640}
    assert {state[name] for name in folders & state.keys()} == {mode(path.parent / ".tamis")} == {0o750}


def test_recipe_and_references_that_replace_others_take_their_modes(tmp_path: Path) -> None:
    recipe, references = tmp_path / "recipe.toml", tmp_path / "references.json"
    for path in (recipe, references):
        path.write_text("")
        path.chmod(0o640)
    Recipe({"TS": "deflate(4)"}).dump(recipe, overwrite=True)
    tamis.export(SAMPLE, references, "kerchunk", overwrite=True)
    assert mode(recipe) == mode(references) == 0o640
    assert recipe.read_text()
    assert references.read_text()


@pytest.mark.matrix
@pytest.mark.parametrize("old", [0o644, 0o755, 0o600, 0o444], ids=oct)
def test_copy_of_another_file_has_its_mode_as_far_as_the_umask_allows(
    old: int, tmp_path: Path, umask: Callable[[int], int]
) -> None:
    source = tmp_path / "data" / "script.sh"
    source.parent.mkdir()
    source.write_text("echo")
    source.chmod(old)
    os.utime(source, ns=(10**18, 10**18))
    umask(0o027)
    for _ in range(2):  # the second time it replaces the first copy
        tamis.repack_many(source.parent, tmp_path / "out", {}, workers=1, other="copy", overwrite=True)
        copy = tmp_path / "out" / "script.sh"
        assert mode(copy) == old & ~0o027
        assert copy.stat().st_mtime_ns == 10**18
        source.write_text("echo again") if old & 0o200 else None
        os.utime(source, ns=(10**18, 10**18))


def test_private_folders_are_for_their_owner_alone(tmp_path: Path, umask: Callable[[int], int]) -> None:
    tmp_path.chmod(0o755)
    make_private_folder(tmp_path / "cache" / "tamis")
    make_private_folder(tmp_path / "cache" / "tamis")
    assert modes(tmp_path) == {"cache": 0o700, "cache/tamis": 0o700}
    assert mode(tmp_path) == 0o755
    check_own(tmp_path / "cache", "remove it")
    check_own(tmp_path / "absent", "remove it")
    (tmp_path / "link").symlink_to("cache")
    with pytest.raises(
        tamis.FileError, match=r"must be a folder that belongs to you .*, found a link or file: remove it"
    ):
        check_own(tmp_path / "link", "remove it")


def test_group_that_cannot_be_kept_leaves_no_more_than_all_others_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for path in (old, new):
        path.touch()
    old.chmod(0o664)

    def refuse(*_: Any) -> None:
        raise PermissionError

    status = os.stat_result([*old.stat()[:5], old.stat().st_gid + 1, *old.stat()[6:]])
    monkeypatch.setattr(os, "chown", refuse)
    monkeypatch.setattr(type(old), "stat", lambda path: status if path == old else os.stat(path))
    assert not take_access(new, old)
    assert stat.S_IMODE(os.stat(new).st_mode) == 0o644
