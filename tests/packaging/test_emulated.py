"""`make check-aarch64` and `make check-s390x`, a part of them: the wheel for another processor, run by qemu."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import needs
import pytest

ROOT = Path(__file__).resolve().parents[2]
PLATFORMS = ROOT / "packaging" / "platforms"


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module that makes the environment, which imports another one beside it."""
    monkeypatch.syspath_prepend(str(PLATFORMS))
    spec = importlib.util.spec_from_file_location("emulated", PLATFORMS / "emulated.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_absent_program_is_named(emulated: ModuleType) -> None:
    with pytest.raises(SystemExit, match=r"expected no-such-qemu, found none: apt-get install qemu-user \(Debian, "):
        emulated.program("no-such-qemu", "qemu-user")


def test_environment_starts_python_by_the_emulator(
    emulated: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With this machine's own Python in place of another processor's, and a program that starts it in place of qemu."""

    def make_root(root: Path) -> None:
        (root / "usr/bin").mkdir(parents=True)
        (root / "usr/bin/python3").symlink_to(Path(sys.executable).resolve())

    root = tmp_path / "root"
    qemu = tmp_path / "qemu"
    qemu.write_text('#!/bin/sh\nexec python3 -c "import sys; print(sys.argv[1:])" "$@"\n')
    qemu.chmod(0o755)
    monkeypatch.setattr(emulated, "program", lambda name, package: str(qemu))
    monkeypatch.setattr(emulated.Emulated, "_get_wheels", lambda *_: None)
    monkeypatch.setattr(emulated.Emulated, "_pure_wheel", lambda *_: None)
    monkeypatch.setattr(emulated.Emulated, "_make_root", lambda made: make_root(made.root))
    machine = emulated.MACHINES["aarch64"]
    made = emulated.Emulated(machine, tmp_path)
    done = subprocess.run([made.python, "-c", "1"], capture_output=True, text=True, check=True)
    python = Path(sys.executable).resolve().name
    program = f"{root}/usr/bin/{python}"
    words = ["-cpu", machine.model, "-L", str(root), "-0", str(made.python), program, "-c", "1"]
    assert done.stdout == f"{words}\n"
    assert re.fullmatch(rf"home = {root}/usr/bin\n.*\n", (made.environment / "pyvenv.cfg").read_text())
    (root / "kept").touch()
    emulated.Emulated(machine, tmp_path)
    assert (root / "kept").exists()
    emulated.Emulated(machine._replace(model="other"), tmp_path)
    assert not (root / "kept").exists()


@pytest.mark.check
@pytest.mark.slow
@pytest.mark.peer
def test_wheel_for_another_processor_runs(share: Callable[[Sequence[str]], list[str]]) -> None:
    for processor in share(["aarch64", "s390x"]):
        for name in (f"qemu-{processor}", f"{processor}-linux-gnu-g++", "apt-get", "dpkg-deb"):
            needs.need(name)
        script = PLATFORMS / "check_emulated.py"
        command = [sys.executable, script, processor, ROOT / "build" / processor, "tests/jobs/test_each_kind.py"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        assert done.stdout.endswith(f"check-{processor}: all as it should be\n")
