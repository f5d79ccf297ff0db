"""What is said before anything is written: a dry run, and a refusal where there is no room; and the JSON of both."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner, Result

import tamis
from tamis import FileError, MissingFilterError, ParameterError, RepackResult
from tamis.cli import main

FIELD = (100 * np.sin(np.arange(32 * 64) / 17)).reshape(32, 64).astype("f4")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["raw"], file["be"], file["flag"] = FIELD, FIELD.astype(">f4"), np.array([True, False])
        file.create_dataset("zfp", data=FIELD, chunks=(8, 16), **tamis.Zfp(accuracy=0.1))
        file.create_dataset("other", data=FIELD, chunks=(4, 64), compression="gzip")
    return path


def tamis_(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(part) for part in arguments])


def test_preview_repack_says_what_becomes_of_each_dataset(source: Path, tmp_path: Path) -> None:
    recipes = {"raw": "zfp(rate=8)", "[bfz]*": "zfp(accuracy=0.1)"}
    preview = tamis.preview_repack(source, tmp_path / "b.h5", recipes, chunks={"raw": (16, 16)})
    found = {each.path: each for each in preview.datasets}
    assert {path: each.action for path, each in found.items()} == {
        "/be": "store", "/flag": "keep", "/other": "keep", "/raw": "store", "/zfp": "copy",
    }  # fmt: skip
    raw, zfp, other = found["/raw"], found["/zfp"], found["/other"]
    assert (raw.source_pipeline, raw.source_chunks) == ("none", None)
    assert (raw.pipeline, raw.chunks, raw.bound) == ("zfp(rate=8)|fletcher32", (16, 16), None)
    assert (zfp.pipeline, zfp.chunks, zfp.bound) == (zfp.source_pipeline, (8, 16), 0.0)
    assert zfp.notes == ("chunks are copied as stored: they have these filters already, without a checksum",)
    assert (other.reason, other.pipeline, other.chunks) == ("no recipe matches it", "deflate(4)", (4, 64))
    assert found["/flag"].reason.startswith("expected numbers, got values of the type bool: use filters of bytes")
    assert found["/be"].notes == ("converted from >f4 to native <f4, which zfp needs",)
    assert os.listdir(tmp_path) == ["a.h5"]
    # What was said is what is done.
    done = tamis.repack(source, tmp_path / "b.h5", recipes, chunks={"raw": (16, 16)})
    assert {each.path: (each.pipeline, each.chunk_shape, each.copied) for each in done.datasets} == {
        path: (each.pipeline if each.action == "store" else "zfp(accuracy=0.1)", each.chunks, each.action == "copy")
        for path, each in found.items()
        if each.action != "keep"
    }


@pytest.mark.parametrize(
    ("recipes", "error"),
    [
        ({"nothing": "deflate"}, FileError),
        ({"flag": "zfp(rate=8)"}, ParameterError),
        ({"raw": "szip(ec,3)"}, ParameterError),
    ],
    ids=str,
)
def test_preview_repack_refuses_what_repack_refuses(
    recipes: dict[str, str], error: type[Exception], source: Path, tmp_path: Path
) -> None:
    with pytest.raises(error) as first:
        tamis.preview_repack(source, tmp_path / "b.h5", recipes)
    with pytest.raises(error) as second:
        tamis.repack(source, tmp_path / "b.h5", recipes)
    assert str(first.value) == str(second.value)


def test_repack_filter_that_tamis_cannot_encode_refused_before_anything_is_written(
    source: Path, tmp_path: Path
) -> None:
    said: list[str] = []
    with pytest.raises(MissingFilterError):
        tamis.repack(source, tmp_path / "b.h5", {"raw": "filter(399,1)"}, progress=lambda *each: said.append(each[0]))
    assert said == []


def test_repack_command_dry_run_writes_nothing(source: Path, tmp_path: Path) -> None:
    result = tamis_("repack", source, tmp_path / "b.h5", "-f", "*:zfp(accuracy=0.1)", "--dry-run")
    assert result.exit_code == 0, result.output
    rows = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines()}
    assert rows["/other"] == ["store", "deflate(4)", "zfp(accuracy=0.1)|fletcher32", "4x64", "4x64", "0.1"]
    assert rows["/zfp"][0] == "copy"
    assert "/flag: kept as it is: expected numbers" in result.stdout
    assert result.stdout.splitlines()[-1] == f"{tmp_path / 'b.h5'}: dry run, nothing was written"
    assert os.listdir(tmp_path) == ["a.h5"]


def test_repack_command_json_is_what_the_job_returns(source: Path, tmp_path: Path) -> None:
    arguments = [
        "repack",
        source,
        tmp_path / "b.h5",
        "-f",
        "[rz]*:zfp(accuracy=0.1)",
        "-f",
        "flag*:zfp(rate=8)",
        "--json",
    ]
    planned = json.loads(tamis_(*arguments, "--dry-run").stdout)
    assert (planned["schema"], planned["dry_run"], planned["source"]) == (1, True, str(source))
    assert [each["action"] for each in planned["datasets"]] == ["keep", "keep", "keep", "store", "copy"]
    result = tamis_(*arguments, "--threads", "2")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    raw, zfp = found["datasets"]
    assert (raw["path"], raw["chunk_shape"], raw["copied"], zfp["copied"]) == ("/raw", [32, 64], False, True)
    assert 0 < raw["largest_error"] <= raw["bound"] == 0.1
    assert raw["ratio"] == raw["nbytes"] / raw["target_nbytes"]
    assert found["target_nbytes"] == (tmp_path / "b.h5").stat().st_size
    assert [each["path"] for each in found["kept"]] == ["/flag"]


def test_repack_command_missing_refuse_fails_with_the_count(source: Path, tmp_path: Path) -> None:
    with h5py.File(source, "a") as file:
        file["raw"][3, 3] = np.nan
    result = tamis_("repack", source, tmp_path / "b.h5", "-f", "raw:zfp(rate=8)", "--missing", "refuse")
    assert result.exit_code == 1
    assert "/raw: 1 of 2048 (1 NaN): keep each of them as it is: missing='exact' (--missing exact)" in result.stderr
    assert tamis_("repack", source, tmp_path / "b.h5", "-f", "raw:zfp(rate=8)", "--missing", "drop").exit_code == 2
    assert tamis_("repack", source, tmp_path / "b.h5", "-f", "raw:zfp(rate=8)", "--threads", "0").exit_code == 2
    assert os.listdir(tmp_path) == ["a.h5"]


def test_repack_without_room_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = np.sin(np.arange(1 << 18) / 999).reshape(512, 512).astype("f4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["v"] = data
    room = [10_000]
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("Usage", (), {"free": room[0]}))
    said: list[Any] = []

    def repack() -> RepackResult:
        return tamis.repack(
            tmp_path / "a.h5", tmp_path / "b.h5", {"v": "zfp(accuracy=0.1)"}, overwrite=True,
            progress=lambda *each: said.append(each),
        )  # fmt: skip

    with pytest.raises(
        FileError, match=r"No space left: expected about .* kB of free space, found 10 kB: make room, or write to"
    ) as caught:
        repack()
    assert isinstance(caught.value.__cause__, OSError)  # by which a run of many files tries again
    assert caught.value.__cause__.errno == errno.ENOSPC
    assert said == []
    assert os.listdir(tmp_path) == ["a.h5"]
    # Less than the values take, and enough for what becomes of them: some chunks are tried to know.
    room[0] = 500_000
    assert repack().target_nbytes < room[0] < data.nbytes


def test_repack_docs_name_the_keys_of_the_json(sample: Path, tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "repack.md").read_text()
    target = tmp_path / "b.nc"
    found = json.loads(tamis_("repack", sample, target, "-f", "*S:zfp(rate=8)", "--json").stdout)
    planned = json.loads(tamis_("repack", target, tmp_path / "c.nc", "-f", "TS:deflate", "--json", "--dry-run").stdout)
    for each in (found, planned):
        for key in (*each, *each["datasets"][0]):
            assert f"`{key}`" in page
