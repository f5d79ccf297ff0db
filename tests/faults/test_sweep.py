"""System calls that fail, one at a time, and signals; `sweep.py` and `kills.py` beside this do it for longer."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import needs
import pytest

SWEEP = Path(__file__).with_name("sweep.py")
KILLS = Path(__file__).with_name("kills.py")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.check,
    pytest.mark.skipif(sys.platform != "linux", reason="needs Linux"),
    needs.needs("cc"),
]


def test_u105_failing_system_calls_end_in_a_message_and_a_complete_target_or_none(
    run_script: Callable[..., str], tmp_path: Path
) -> None:
    """A call of each kind in each job, chosen at random by a fixed seed."""
    printed = run_script(SWEEP, "1", "1")
    codes = re.search(r"^exit code 0: (\d+), 1: (\d+)$", printed, re.MULTILINE)
    assert codes is not None
    assert min(map(int, codes.groups())) >= 20  # otherwise these calls would show little
    for kind in ("open", "read", "write", "sync", "truncate", "link", "rename", "unlink", "close", "lock", "folder"):
        assert f"{kind} " in printed, kind
    assert os.listdir(tmp_path) == []


def test_jobs_ended_by_signals_leave_the_old_target_or_a_complete_one(
    run_script: Callable[..., str], tmp_path: Path
) -> None:
    """Half a minute of signals, at moments that are chosen by a fixed seed."""
    printed = run_script(KILLS, "30", "1")
    count = re.search(r"^(\d+) signals, 0 not as promised$", printed, re.MULTILINE)
    assert count is not None
    assert int(count[1]) >= 1  # a busy machine does few jobs in the time
    assert os.listdir(tmp_path) == []
