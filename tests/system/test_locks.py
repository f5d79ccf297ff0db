"""Locks on open files, and what happens where there are none."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from second_copy import second_copy

from tamis.system import locks

HOLD = "import sys; from tamis.system.files import open_file; from tamis.system.locks import lock_at_once\n"
HOLD += "assert lock_at_once(open_file(sys.argv[1]), is_shared=len(sys.argv) > 2)\n"
HOLD += "print(flush=True); sys.stdin.readline()\n"


def holder(path: Path, *words: str) -> subprocess.Popen[bytes]:
    """Start a process that holds a lock on a file until it gets a line."""
    command = [sys.executable, "-c", HOLD, str(path), *words]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.touch()
    return path


def test_lock_of_another_process_is_not_taken_until_that_ends(path: Path) -> None:
    handle = os.open(path, os.O_RDWR)
    with holder(path) as process:
        assert locks.lock_at_once(handle) is False
        assert locks.lock_at_once(handle, is_shared=True) is False
        began = time.monotonic()
        process.communicate(b"\n")
        locks.wait_for_lock(handle)
        assert time.monotonic() - began < 30
    os.close(handle)


def test_shared_locks_are_held_side_by_side(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    with holder(path, "shared") as process:
        assert locks.lock_at_once(handle, is_shared=True) is True
        assert locks.lock_at_once(handle) is False
        process.communicate(b"\n")
    os.close(handle)


def test_system_without_locks_says_that_it_has_none(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    without = second_copy("tamis.system.locks")
    handle = os.open(path, os.O_RDWR)
    assert without.lock_at_once(handle) is None
    without.wait_for_lock(handle)
    os.close(handle)
