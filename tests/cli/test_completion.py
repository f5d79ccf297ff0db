"""Shells complete commands, options, names of files and filters, as `tamis completion` sets them up."""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click
import needs
import pytest
from click.testing import CliRunner

from tamis.cli import main

SHELLS = ("bash", "zsh", "fish")
MOST_SECONDS = 120.0
ENVIRONMENT = os.environ | {
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    "TERM": "dumb",
    "LC_ALL": "C.UTF-8",
}
# Each line sets a shell up as its user would, and prints a word when it is ready for what is typed.
BEGIN = {
    "bash": 'bind "set enable-bracketed-paste off"; eval "$(tamis completion bash)"; echo rea""dy',
    "zsh": "unsetopt zle_bracketed_paste; "
    'autoload -Uz compinit; compinit -u -D; eval "$(tamis completion zsh)"; echo rea""dy',
}
START = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}


@pytest.fixture(params=["bash", pytest.param("zsh", marks=needs.needs("zsh"))])
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextmanager
def terminal(shell: str, folder: Path) -> Iterator[int]:
    """Start a shell on a terminal of its own, set up to complete; yield the end to type at."""
    own, its = pty.openpty()
    with subprocess.Popen(
        START[shell], cwd=folder, env=ENVIRONMENT, stdin=its, stdout=its, stderr=its, start_new_session=True
    ) as process:
        os.close(its)
        try:
            os.write(own, f"{BEGIN[shell]}\n".encode())
            read_until(own, b"\nready")
            yield own
        finally:
            process.kill()
            os.close(own)


def read_until(handle: int, word: bytes) -> None:
    """Read what a terminal shows until a word comes."""
    shown, deadline = b"", time.monotonic() + MOST_SECONDS
    while word not in shown:
        assert time.monotonic() < deadline, shown.decode()
        shown += os.read(handle, 4096)


def typed(shell: str, folder: Path, keys: str) -> str:
    """Type keys and return what the line, which ends by writing a file, wrote."""
    with terminal(shell, folder) as handle:
        os.write(handle, f"{keys} > written; mv written out\n".encode())
        deadline = time.monotonic() + MOST_SECONDS
        while not (folder / "out").exists():
            assert time.monotonic() < deadline
            with suppress(BlockingIOError):
                os.set_blocking(handle, False)
                os.read(handle, 4096)
            time.sleep(0.05)
    return (folder / "out").read_text()


def test_shell_completes_a_command_and_its_values(shell: str, tmp_path: Path) -> None:
    expected = CliRunner().invoke(main, ["completion", "fish"], prog_name="tamis").stdout
    assert typed(shell, tmp_path, "tamis completi\tfis\t") == expected


def test_shell_completes_an_option_and_the_name_of_a_file(shell: str, tmp_path: Path) -> None:
    (tmp_path / "a_folder").mkdir()
    (tmp_path / "a_folder" / "cam_ts.nc").touch()
    assert "licence: Apache-2.0" in typed(shell, tmp_path, "tamis sample --over\ta_fo\t")
    assert (tmp_path / "a_folder" / "cam_ts.nc").stat().st_size


def test_shell_completes_the_name_of_a_filter(shell: str, tmp_path: Path) -> None:
    assert "32008  bitshuffle" in typed(shell, tmp_path, "tamis filters bitsh\t")


def test_shell_completes_a_filter_behind_the_name_of_a_dataset(shell: str, tmp_path: Path) -> None:
    assert "-f TS:UD=32008" in typed(shell, tmp_path, "tamis spec TS:bitsh\t")


def test_shell_completes_a_filter_behind_a_name_and_a_line_in_quotes(shell: str, tmp_path: Path) -> None:
    assert "shuffle|bitshuffle" in typed(shell, tmp_path, "tamis spec 'TS:shuffle|bitsh\t")


def of_bash(line: str, *words: str) -> list[str]:
    """Return what bash puts in place of the last word, as bash splits the line."""
    script = (
        'eval "$(tamis completion bash)"; compopt() { :; }; COMP_LINE=$1; COMP_POINT=${#1}; shift; COMP_WORDS=("$@"); '
        'COMP_CWORD=$(($# - 1)); _tamis_completion tamis; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    command = ["bash", "-c", script, "bash", line, *words]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]


@pytest.mark.parametrize(
    ("line", "words", "offered"),
    [
        ("tamis spec zf", ["zf"], ["zfp"]),
        ("tamis spec TS:z", ["TS", ":", "z"], ["zfp", "zstd"]),
        ("tamis repack a b -f TS:zf", ["a", "b", "-f", "TS", ":", "zf"], ["zfp"]),
        ("tamis repack a b --filter=TS:zf", ["a", "b", "--filter", "=", "TS", ":", "zf"], ["zfp"]),
        ("tamis repack a b -f 'T S:zf", ["a", "b", "-f", "'T S:zf"], ["T S:zfp"]),
        ("tamis repack a b -f 'TS:shuffle|defl", ["a", "b", "-f", "'TS:shuffle|defl"], ["TS:shuffle|deflate"]),
        ("tamis inspect --js", ["--js"], ["--json"]),
        ("tamis doc", [], ["doctor"]),
    ],
)
def test_bash_completes_what_follows_the_last_colon(line: str, words: list[str], offered: list[str]) -> None:
    command, *_ = line.split()[1:]
    assert of_bash(line, "tamis", command, *words) == offered


def test_bash_completes_all_filters_behind_a_colon() -> None:
    offered = of_bash("tamis spec TS:", "tamis", "spec", "TS", ":")
    assert {"zfp", "deflate", "bitround"} <= {*offered}


def of_fish(line: str, folder: Path) -> list[str]:
    """Return what fish offers at the end of a line."""
    command = f"tamis completion fish | source; complete -C {shlex.quote(line)}"
    done = subprocess.run(
        ["fish", "--no-config", "-c", command], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    return [offer.split("\t")[0] for offer in done.stdout.splitlines()]


@needs.needs("fish")
def test_fish_completes_commands_options_files_and_filters(tmp_path: Path) -> None:
    (tmp_path / "a_file.nc").touch()
    (tmp_path / "b,c.nc").touch()
    with click.Context(main) as context:
        commands = main.list_commands(context)
    assert of_fish("tamis ", tmp_path) == commands
    assert "--variable" in of_fish("tamis inspect --va", tmp_path)
    assert "a_file.nc" in of_fish("tamis inspect a_", tmp_path)
    assert of_fish("tamis inspect b,", tmp_path) == ["b,c.nc"]
    assert of_fish("tamis filters bitsh", tmp_path) == ["bitshuffle"]
    assert of_fish("tamis spec zf", tmp_path) == ["zfp"]
    assert of_fish("tamis repack a.nc b.nc -f TS,PS:zf", tmp_path) == ["TS,PS:zfp"]
    assert of_fish("tamis repack a.nc b.nc -f TS:zf", tmp_path) == ["TS:zfp"]
    assert of_fish("tamis repack a.nc b.nc -f 'TS:shuffle|defl", tmp_path) == ["TS:shuffle|deflate"]


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_is_of_the_shell_that_was_asked_for(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell], prog_name="tamis")
    assert (result.exit_code, result.stderr) == (0, "")
    assert f"{shell}_complete" in result.stdout


def test_completion_of_another_shell_is_wrong_use() -> None:
    result = CliRunner().invoke(main, ["completion", "tcsh"], prog_name="tamis")
    assert result.exit_code == 2
    assert "'tcsh' is not one of" in result.stderr
