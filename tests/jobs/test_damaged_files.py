"""Files with random damage: every job ends as asked or with a TamisError; `damage.py` tries it with thousands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

DAMAGE = Path(__file__).with_name("damage.py")


def test_jobs_on_damaged_files_end_as_asked_or_refuse(tmp_path: Path) -> None:
    """70 files, 8 jobs each."""
    done = subprocess.run(
        [sys.executable, DAMAGE, "70", "0"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "'refused': " in done.stdout
    assert not list(tmp_path.iterdir())
