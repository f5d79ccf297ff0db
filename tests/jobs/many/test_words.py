"""Known defect U110: folders said nothing with -q, or said it after everything was written."""

from __future__ import annotations

import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from inprocess import said_by_workers

import tamis


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files, of which only the last one has a second variable."""
    (tmp_path / "in").mkdir()
    for name in ("a.nc", "b.nc", "c.nc"):
        with h5py.File(tmp_path / "in" / name, "w") as file:
            file["TS"] = np.add.outer(np.arange(64.0), np.arange(64.0)).astype("f4")
            if name == "c.nc":
                file["group/PS"] = file["TS"][()]
    return tmp_path / "in"


@pytest.mark.matrix
@pytest.mark.parametrize("option", ["-f", "-c", "recipe"])
@pytest.mark.parametrize("replaces", [False, True])
def test_u110_a_misspelt_name_stops_before_the_first_file(
    folder: Path, tmp_path: Path, option: str, replaces: bool
) -> None:
    before = {path: path.stat().st_ino for path in folder.iterdir()}
    value = {"-f": ["-f", "TSS:zfp(accuracy=0.1)"], "-c": ["-c", "TSS:8x8"]}.get(option)
    if value is None:
        tamis.Recipe({"TSS": "shuffle|deflate(4)"}).dump(tmp_path / "recipe.toml")
        value = ["--recipe", str(tmp_path / "recipe.toml")]
    words = ["repack", folder, *(["--replace", "--yes"] if replaces else [f"{tmp_path}/out"]), *value]
    for more in ([], ["--dry-run"], ["-q"]):
        said = said_by_workers(*words, *more, code=1)
        assert "expected a dataset named 'TSS' in one of the files" in said
        assert "did you mean TS?" in said
    assert {path: path.stat().st_ino for path in folder.iterdir()} == before
    assert not (tmp_path / "out").exists()


def test_u110_names_that_some_files_have_are_fine(folder: Path, tmp_path: Path) -> None:
    found = tamis.repack_many(folder, tmp_path / "out", {"group/PS": "deflate", "TS": "deflate"}, workers=1)
    assert found.ok
    assert any("group/PS: matches no dataset, in 2 of 3 files" in note for note in found.notes)
    tamis.repack_many(folder, tmp_path / "part", {"group/PS": "deflate"}, workers=1, shard=(1, 3))
    (folder / "a.nc").write_bytes(b"\x89HDF\r\n\x1a\n damaged")
    with pytest.raises(tamis.FileError, match=r"'PSS'.*did you mean PS"):
        tamis.repack_many(folder, tmp_path / "out", {"PSS": "deflate"}, workers=1)


def test_u110_quiet_commands_say_what_failed(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said_by_workers("repack", folder, out, "-f", "TS:deflate", "-q", "--workers", "1")
    assert said_by_workers("verify", folder, out, "-q") == ""
    with h5py.File(out / "a.nc", "r+") as file:
        file["TS"][0, 0] = 5
    (out / "b.nc").unlink()
    (out / "c.nc").write_bytes(b"?")
    said = said_by_workers("verify", folder, out, "-q", code=3)
    assert "a.nc: different: /TS" in said
    assert "b.nc: missing: no such file in the second folder" in said
    assert "c.nc: failed: " in said
    said = said_by_workers("manifest", out, "--check", "-q", code=3)
    assert "b.nc: missing" in said
    assert "c.nc: changed since it was made" in said


def test_u110_an_error_of_zero_reads_well(folder: Path, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    said = said_by_workers(
        "repack", folder, tmp_path / "out", "-f", "TS:absolute(bound=0.5)|deflate(4)", "--workers", "1"
    )
    assert "nearest to its bound: 0, 0 % of 0.5, in /TS of " in said
