"""U21, U22: messages in plain English, one word for each option, help that is enough, progress off a terminal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import CliRunner, Result

import tamis
from tamis.cli import main
from tamis.formatting import did_you_mean, plural

TAMIS = Path(sys.executable).with_name("tamis")
COMMANDS = ["inspect", "repack", "verify", "spec", "filters", "plugin-path"]


def tamis_(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments], prog_name="tamis")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name in ("TS", "PS"):
            file.create_dataset(name, data=np.sin(np.arange(4096.0) / 9), chunks=(512,))
        file["grp/U10"] = np.arange(9.0)
    return tmp_path / "a.h5"


@pytest.mark.parametrize("name", ["none.h5", "gone/none.h5", "link.h5"])
@pytest.mark.parametrize("command", ["inspect", "repack", "verify"])
def test_u21_file_that_is_not_there_says_no_such_file(command: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "link.h5").symlink_to("nowhere.h5")
    path = tmp_path / name
    others = {"inspect": [], "repack": [tmp_path / "b.h5", "-f", "TS:deflate"], "verify": [path]}[command]
    result = tamis_(command, path, *others)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"tamis {command}: {path}: No such file or directory\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read all")
def test_u21_file_that_may_not_be_read_says_permission_denied(source: Path) -> None:
    source.chmod(0)
    assert tamis_("inspect", source).stderr == f"tamis inspect: {source}: Permission denied\n"


@pytest.mark.parametrize(
    ("name", "meant"), [("ts", "TS"), ("TSS", "TS"), ("u10", "U10"), ("grp/U1", "/grp/U10"), ("zzz", "")]
)
def test_u21_name_like_a_dataset_is_asked_for(name: str, meant: str, source: Path) -> None:
    for arguments in (
        ("inspect", source, "-v", name),
        ("repack", source, source.parent / "b.h5", "-f", f"{name}:deflate"),
        ("verify", source, source, "--bound", f"{name}:1"),
    ):
        result = tamis_(*arguments)
        assert result.exit_code == 1
        assert f"expected a dataset named {name!r}, found only /PS, /TS, /grp/U10" in result.stderr
        assert ("did you mean" in result.stderr) == bool(meant)
        assert not meant or f"(did you mean {meant}?)" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["filters", "zpf"], "zfp"),
        (["filters", "Deflate"], "deflate"),
        (["spec", "shufle|deflate"], "shuffle"),
        (["spec", "zfp(acuracy=0.1)"], "accuracy"),
        (["spec", "--from", "h5py", "compresion='gzip'"], "compression"),
        (["repac", "a", "b"], "repack"),
        (["repack", "a", "b", "--overwrit"], "--overwrite"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_u21_filters_parameters_and_options_are_asked_for(arguments: list[str], meant: str) -> None:
    result = tamis_(*arguments)
    assert result.exit_code == 2
    assert re.search(rf"[Dd]id you mean (one of: )?'?{meant}", result.stderr), result.stderr


def test_u21_one_of_a_thing_has_no_s() -> None:
    assert (plural(0, "chunk"), plural(1, "chunk"), plural(2, "chunk")) == ("0 chunks", "1 chunk", "2 chunks")
    assert did_you_mean("x", []) == ""


@pytest.mark.parametrize("command", ["inspect", "verify", "spec"])
def test_u22_variable_is_the_same_option_in_every_command(command: str) -> None:
    assert "-v, --variable NAME" in tamis_(command, "--help").stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_u22_help_points_to_no_file_of_the_checkout_and_fits_80_columns(command: str) -> None:
    done = subprocess.run([TAMIS, command, "--help"], capture_output=True, text=True, check=True)
    assert "docs/" not in done.stdout
    assert ".md" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_u22_progress_off_a_terminal_is_a_line_for_each_dataset_as_it_is_done(source: Path, tmp_path: Path) -> None:
    command = [TAMIS, "repack", source, tmp_path / "b.h5", "-f", "TS:zfp(rate=16)", "-f", "PS:deflate"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    steps = [line.partition(": done")[0] for line in done.stderr.splitlines()]
    assert [line[-8:] for line in steps[:2]] == ["(1 of 2)", "(2 of 2)"]
    assert {line[:-9] for line in steps[:2]} == {"tamis repack: writing /PS", "tamis repack: writing /TS"}
    assert steps[2:] == ["tamis repack: verifying 2 datasets"]
    assert "writing" not in done.stdout


def test_u22_verify_counts_datasets(source: Path) -> None:
    said = tamis_("verify", source, source).stderr.splitlines()
    assert [line.split(": ")[1] for line in said] == [
        f"comparing {path} ({i} of 3)" for i, path in enumerate(("/PS", "/TS", "/grp/U10"), 1)
    ]


def test_u22_quiet_prints_only_what_went_wrong(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "b.h5"
    result = tamis_("repack", source, target, "-f", "TS:zfp(accuracy=0.01)", "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    result = tamis_("verify", source, target, "--bound", "TS:0.01", "-q")
    assert (result.exit_code, result.output) == (0, "")
    result = tamis_("verify", source, target, "--bound", "TS:1e-9", "-q")
    assert (result.exit_code, result.stdout) == (3, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("tamis verify: /TS: expected an error of at most 1e-09, found ")
    result = tamis_("repack", source, target, "-f", "TS:deflate", "--quiet")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "File exists" in result.stderr


def test_u22_log_appends_lines_with_times(source: Path, tmp_path: Path) -> None:
    log, target = tmp_path / "log.txt", tmp_path / "b.h5"
    arguments = ("repack", source, target, "-f", "TS:zfp(accuracy=0.1)", "-q", "--log", log)
    assert tamis_(*arguments).exit_code == 0
    first = log.read_text()
    assert tamis_(*arguments).exit_code == 1
    assert log.read_text().startswith(first)
    texts = []
    for line in log.read_text().splitlines():
        match = re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d tamis repack\[\d+\]: (.*)", line)
        assert match, line
        texts.append(match[1])
    assert any(text.startswith("writing /TS (1 of 1): done") for text in texts)
    assert any(text.startswith("verifying 1 dataset: done") for text in texts)
    assert any(text.startswith("/TS ") and " 0.1 " in text for text in texts)
    assert texts[-1] == f"{target}: File exists: choose another name, or replace it: --overwrite"


@pytest.mark.parametrize(("name", "code", "said"), [("", 1, "cannot be opened"), ("a.h5", 2, "cannot be the log")])
def test_u22_log_that_cannot_be_is_refused_before_any_work(
    name: str, code: int, said: str, source: Path, tmp_path: Path
) -> None:
    before = source.read_bytes()
    result = tamis_("repack", source, tmp_path / "b.h5", "-f", "TS:deflate", "--log", tmp_path / name)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr
    assert source.read_bytes() == before
    assert not (tmp_path / "b.h5").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_u22_log_on_a_full_disk_ends_but_not_the_work(source: Path, tmp_path: Path) -> None:
    command = [TAMIS, "repack", source, tmp_path / "b.h5", "-f", "TS:deflate", "-q", "--log", "/dev/full"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    line = r"tamis repack\[\d+\]: the log cannot be written and ends here: No space left on device\n"
    assert re.fullmatch(line, done.stderr)
    assert tamis.verify(source, tmp_path / "b.h5").ok


@pytest.mark.parametrize(("environment", "coloured"), [({}, False), ({"FORCE_COLOR": "1", "TERM": "xterm"}, True)])
def test_u22_colours_through_a_pipe_only_where_forced(
    environment: dict[str, str], coloured: bool, source: Path
) -> None:
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    done = subprocess.run([TAMIS, "inspect", source], capture_output=True, text=True, check=True, env=env | environment)
    assert ("\x1b[" in done.stdout) == coloured
    assert "/TS" in done.stdout
