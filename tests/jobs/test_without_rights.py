"""What tamis does where its user has no right: a line that says so, an exit code, and nothing is lost."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"
ZFP = ("-f", "TS:zfp(accuracy=0.1)")

pytestmark = pytest.mark.skipif(os.geteuid() == 0, reason="root may read all")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with a file, and one that cannot be entered, with another file."""
    for name in ("a.nc", "closed/a.nc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(SAMPLE, tmp_path / name)
    (tmp_path / "closed").chmod(0)
    yield tmp_path
    for parent, folders, _ in os.walk(tmp_path):  # so that pytest can remove it
        for name in folders:
            Path(parent, name).chmod(0o755)


def run(folder: Path, *words: str, code: int) -> str:
    """Run tamis; return what it said, with neither a traceback nor the words of an error of Python."""
    command = [sys.executable, "-m", "tamis", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == code, said[-3000:]
    assert "Traceback" not in said, said
    assert "[Errno" not in said, said
    return said


@pytest.mark.parametrize(
    "words",
    [
        ("inspect", "closed/a.nc"),
        ("inspect", "closed"),
        ("plan", "closed/a.nc", "--require", "TS:abs=0.1"),
        ("plan", "a.nc", "--require", "TS:abs=0.1", "-o", "closed/new.toml"),
        ("repack", "closed/a.nc", "new.nc", *ZFP),
        ("repack", "a.nc", "closed/new.nc", *ZFP),
        ("repack", "a.nc", "closed/", *ZFP),
        ("repack", "a.nc", "new.nc", "--log", "closed/log", *ZFP),
        ("verify", "a.nc", "closed/a.nc"),
        ("report", "a.nc", "closed/a.nc", "-o", "new.html"),
        ("report", "a.nc", "a.nc", "-o", "closed/new.html"),
        ("export", "a.nc", "--to", "kerchunk", "-o", "closed/new.json"),
        ("export", "a.nc", "--to", "icechunk", "-o", "closed/new"),
        ("status", "closed"),
        ("manifest", "closed"),
        ("config", "--install", "closed/new"),
    ],
    ids=" ".join,
)
def test_closed_folder_is_named_with_the_reason(words: tuple[str, ...], folder: Path) -> None:
    said = run(folder, *words, code=1)
    assert re.search(r"closed\S*: .*Permission denied", said), said
    assert {path.name for path in folder.iterdir()} == {"a.nc", "closed"}


def test_closed_folder_in_a_folder_fails_and_all_else_is_done(folder: Path) -> None:
    assert re.search("closed.*Permission denied", run(folder, "inspect", ".", code=1))
    assert re.search("closed.*Permission denied", run(folder, "plan", ".", "--require", "TS:abs=0.1", code=1))
    said = run(folder, "repack", ".", "out/", *ZFP, code=1)
    assert re.search(r"closed *1 .*closed: cannot be listed: Permission denied", said)
    assert "1 of 2 files done" in said
    (folder / "closed").chmod(0o755)
    shutil.copytree(folder / "closed", folder / "out" / "closed")
    (folder / "out" / "closed").chmod(0)
    said = run(folder, "verify", ".", "out", "--bound", "recorded", code=1)
    assert re.search(r"closed/a.nc +failed .*out/closed/a.nc: cannot be read: Permission denied", said)


def test_original_that_cannot_be_kept_is_not_replaced(folder: Path) -> None:
    before = (folder / "a.nc").read_bytes()
    said = run(folder, "repack", "a.nc", "--replace", "--yes", *ZFP, "--keep-originals", "closed/old", code=1)
    assert re.search(r"a\.nc: cannot be kept as \S*closed/old/a\.nc: Permission denied", said)
    assert (folder / "a.nc").read_bytes() == before
    assert {path.name for path in folder.iterdir()} == {"a.nc", "closed", ".tamis"}


@pytest.mark.parametrize("words", [("inspect",), ("verify", "a.nc"), ("plan", "--require", "TS:abs=0.1")], ids=" ".join)
def test_store_with_a_closed_array_is_an_error(words: tuple[str, ...], folder: Path) -> None:
    pytest.importorskip("zarr")
    run(folder, "repack", "a.nc", "a.zarr", *ZFP, "-q", code=0)
    (folder / "a.zarr" / "TS").chmod(0)
    assert re.search(r"a\.zarr: .*Permission denied", run(folder, *words, "a.zarr", code=1))


def test_read_only_file_is_replaced_and_stays_read_only(folder: Path) -> None:
    (folder / "a.nc").chmod(0o444)
    shutil.copyfile(SAMPLE, folder / "target.nc")
    (folder / "target.nc").chmod(0o444)
    run(folder, "repack", "a.nc", "target.nc", "--overwrite", *ZFP, "-q", code=0)
    run(folder, "repack", "a.nc", "--replace", "--yes", *ZFP, "-q", code=0)
    for name in ("a.nc", "target.nc"):
        assert (folder / name).stat().st_mode & 0o777 == 0o444
        assert (folder / name).stat().st_size < SAMPLE.stat().st_size
