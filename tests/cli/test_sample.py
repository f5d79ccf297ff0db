"""`tamis sample` copies the file that the first steps need, and says what it is."""

from __future__ import annotations

import filecmp
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import tamis
from tamis.cli import main
from tamis.jobs import sample

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["sample", *map(str, arguments)], prog_name="tamis")


def test_sample_into_the_current_folder_is_that_of_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run()
    assert result.exit_code == 0, result.output
    assert filecmp.cmp(tmp_path / "cam_ts.nc", SAMPLE, shallow=False)
    assert os.listdir(tmp_path) == ["cam_ts.nc"]
    for said in ("Apache-2.0", "ldcpy 0.20", "next: tamis inspect cam_ts.nc"):
        assert said in result.stdout


def test_sample_says_what_its_file_has(tmp_path: Path) -> None:
    shape = tamis.inspect(SAMPLE)["TS"].shape
    assert shape is not None
    assert " x ".join(map(str, shape)) in run(tmp_path).stdout


def test_sample_commands_that_it_names_work(tmp_path: Path) -> None:
    lines = run(tmp_path).stdout.splitlines()
    commands = [line.partition("tamis ")[2].split() for line in lines if " tamis " in line]
    assert [words[0] for words in commands] == ["inspect", "plan"]
    for words in commands:
        assert CliRunner().invoke(main, words, prog_name="tamis").exit_code == 0


def test_sample_existing_file_is_kept_unless_asked(tmp_path: Path) -> None:
    (tmp_path / "cam_ts.nc").write_text("mine")
    result = run(tmp_path)
    assert result.exit_code == 1
    assert "cam_ts.nc: File exists: choose another name, or replace it: --overwrite" in result.stderr
    assert (tmp_path / "cam_ts.nc").read_text() == "mine"
    assert run(tmp_path, "--overwrite").exit_code == 0
    assert filecmp.cmp(tmp_path / "cam_ts.nc", SAMPLE, shallow=False)


def test_sample_that_is_there_already_is_left(tmp_path: Path) -> None:
    said = run(tmp_path).stdout
    before = (tmp_path / "cam_ts.nc").stat().st_mtime_ns, (tmp_path / "cam_ts.nc").stat().st_ino
    again = run(tmp_path)
    assert (again.exit_code, again.stdout) == (0, said)
    assert before == ((tmp_path / "cam_ts.nc").stat().st_mtime_ns, (tmp_path / "cam_ts.nc").stat().st_ino)


def test_sample_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    result = run(tmp_path / "none")
    assert result.exit_code == 1
    assert f"tamis sample: {tmp_path}/none: is no folder: name one that exists" in result.stderr


def test_sample_installation_without_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "_FOLDER", tmp_path / "gone")
    result = run(tmp_path)
    assert result.exit_code == 1
    assert "the sample cannot be read (No such file or directory): install tamis from a wheel" in result.stderr
    assert os.listdir(tmp_path) == []


def test_sample_licence_and_source_lie_beside_it_in_the_package() -> None:
    folder = Path(tamis.__file__).with_name("sample")
    assert sorted(os.listdir(folder)) == ["LICENSE-APACHE-2.0.txt", "README.md", "cam_ts.nc"]
