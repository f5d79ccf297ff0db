"""The index of a folder: from the record of its run, worst first."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from inprocess import run_tamis

import tamis
from tamis.cli import main

SAMPLE = Path(__file__).resolve().parents[3] / "examples" / "data" / "cam_ts.nc"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    top = tmp_path_factory.mktemp("folders")
    (top / "old" / "sub").mkdir(parents=True)
    shutil.copy(SAMPLE, top / "old" / "a.nc")
    shutil.copy(SAMPLE, top / "old" / "sub" / "b <1>.nc")
    (top / "old" / "broken.nc").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    tamis.repack_many(top / "old", top / "new", {"TS": "zfp(bound=0.1)"}, workers=1)
    return top / "old", top / "new"


@pytest.mark.check
def test_index_has_failures_first_and_links_reports(folders: tuple[Path, Path], tmp_path: Path) -> None:
    result = tamis.report_many(folders[1])
    assert [(file.path, file.outcome) for file in result.files] == [
        *(("broken.nc", "failed"), ("a.nc", "repacked"), ("sub/b <1>.nc", "repacked"))
    ]
    assert not result.ok
    assert "2 files" in result.verdict
    assert "1 failed" in result.verdict
    assert result.files[1].share == pytest.approx(result.files[1].largest_error / 0.1)
    result.save(tmp_path / "index.html", each=2)
    html = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert 'href="index-files/sub/b%20%3C1%3E.nc.html"' in html
    assert "b <1>.nc" not in html.partition("<script")[0]
    assert (tmp_path / "index-files" / "sub" / "b <1>.nc.html").exists()
    assert result.html.count("<a ") == 0


def test_command_writes_the_index_and_exits_1_for_failures(folders: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    command = ["report", *folders]
    done = run_tamis(*command, "-o", page)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith(f"{folders[1]}: 2 files")
    assert "All files, worst first" in page.read_text(encoding="utf-8")
    assert json.loads(run_tamis(*command, "--json").stdout)["files"][1]["dataset"] == "/TS"
    assert run_tamis(*command, "--bound", "TS:1").returncode == 2


def test_folder_without_a_record_is_refused(tmp_path: Path) -> None:
    with pytest.raises(tamis.FileError, match="tamis repack has made nothing here"):
        tamis.report_many(tmp_path)


def test_page_without_a_name_goes_to_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    with h5py.File(tmp_path / "data" / "a.h5", "w") as file:
        file["v"] = np.arange(9.0)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    done = CliRunner().invoke(main, ["report", "../data/a.h5", "../data/a.h5"])
    assert (done.exit_code, [path.name for path in Path().iterdir()]) == (0, ["a.h5.html"])
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["a.h5"]
    done = CliRunner().invoke(main, ["report", "../data/a.h5", "../data/a.h5"])
    assert "a.h5.html: File exists" in done.output
