"""`make check-fresh` says what it lacks, and leaves nothing mounted, however it ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import needs
import pytest
from other_user import can_become

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "packaging" / "check_fresh.sh"

as_root = [
    pytest.mark.check,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else"),
    pytest.mark.skipif(not can_become(), reason="no file system can be mounted here"),
]


def tools(folder: Path, **scripts: str) -> str:
    """Make programs that stand in for others; return a path that has them first."""
    folder.mkdir()
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/bash\n{script}\n")
        (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def without(folder: Path, *names: str) -> str:
    """Make a path that has all programs but some."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).glob("*"):
            if program.name not in names and not (folder / program.name).exists():
                (folder / program.name).symlink_to(program)
    return str(folder)


def run(*words: str | Path, path: str) -> tuple[int, str]:
    env = os.environ | {"PATH": path}
    done = subprocess.run([SCRIPT, *words], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read all")
def test_a_user_who_is_not_root_is_told_so(tmp_path: Path) -> None:
    said = "check-fresh: expected root, who alone may install a Debian in a folder and enter it\n"
    assert run(tmp_path, "trixie", path=os.environ["PATH"]) == (2, said)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_absent_debootstrap_is_named_with_its_package(tmp_path: Path) -> None:
    path = without(tmp_path / "bin", "debootstrap")
    assert run(tmp_path, "trixie", path=path) == (2, "check-fresh: no debootstrap here: apt-get install debootstrap\n")


# A Debian of nothing: a command in it runs outside, and says what is mounted.
DEBOOTSTRAP = 'for root; do [[ $root == *.new ]] && mkdir -p "$root"/{proc,dev,etc,home/user}; done; true'
CHROOT = """
if [[ $1 == --userspec=user ]]; then
    case "${*: -1}" in *"git -c"*) ;; *) grep -c " $2/" /proc/self/mountinfo; eval "$INSIDE" ;; esac
fi
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    needs.need("unshare")
    return tools(tmp_path / "bin", debootstrap=DEBOOTSTRAP, chroot=CHROOT)


def mounted(folder: Path) -> str:
    return "\n".join(line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(folder) in line)


class TestAsRoot:
    pytestmark = as_root

    def test_each_debian_is_tested_and_the_last_lines_are_printed(
        self, tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("INSIDE", "echo one; echo two; echo 'as expected'")
        code, said = run(tmp_path / "fresh", "trixie", "bookworm", path=path)
        assert code == 0, said
        log = tmp_path / "fresh" / "bookworm.log"
        assert said.endswith(f"bookworm: exit code 0, the last lines of {log}:\none\ntwo\nas expected\n")
        assert log.read_text().splitlines()[0] == "3"  # proc, dev, dev/pts
        assert {item.name for item in (tmp_path / "fresh").iterdir()} == {
            *("trixie", "trixie.log", "bookworm", "bookworm.log")
        }
        assert not mounted(tmp_path)
        shutil.rmtree(tmp_path / "fresh")

    def test_failure_in_one_debian_fails_and_the_others_are_tested(
        self, tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("INSIDE", "[[ $2 == */trixie ]] && exit 7; echo good")
        code, said = run(tmp_path / "fresh", "trixie", "bookworm", path=path)
        assert code == 1
        assert "trixie: exit code 7" in said
        assert "bookworm: exit code 0" in said

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
    def test_interrupt_leaves_nothing_mounted(
        self, number: signal.Signals, tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # A shell goes on if the command during which it is interrupted ends well.
        monkeypatch.setenv("INSIDE", f"(sleep 0.5; touch {tmp_path}/begun) & exec sleep 60")
        env = os.environ | {"PATH": path}
        process = subprocess.Popen(
            [SCRIPT, tmp_path / "fresh", "trixie"], cwd=ROOT, env=env, stdout=subprocess.DEVNULL, start_new_session=True
        )
        while not (tmp_path / "begun").exists() and process.poll() is None:
            time.sleep(0.02)
        assert not mounted(tmp_path)
        os.killpg(process.pid, number)
        assert process.wait(20) == -number
        assert not mounted(tmp_path)
        shutil.rmtree(tmp_path / "fresh")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_u65_debian_that_cannot_be_installed_is_not_taken_for_one(tmp_path: Path) -> None:
    path = tools(tmp_path / "bin", debootstrap=f"{DEBOOTSTRAP}; echo 'E: no such suite'; exit 1")
    code, said = run(tmp_path / "fresh", "nosuch", path=path)
    assert code == 2
    log = tmp_path / "fresh" / "nosuch.log"
    assert said.endswith(f"E: no such suite\ncheck-fresh: debootstrap cannot install nosuch: see {log}\n")
    assert not (tmp_path / "fresh" / "nosuch").exists()
