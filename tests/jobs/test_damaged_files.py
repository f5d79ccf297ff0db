"""Files with random damage: every job ends as asked or with a TamisError; `damage.py` tries it with thousands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

DAMAGE = Path(__file__).with_name("damage.py")


@pytest.mark.check
def test_jobs_on_damaged_files_end_as_asked_or_refuse(run_script: Callable[..., str], tmp_path: Path) -> None:
    """70 files, 8 jobs each."""
    assert "'refused': " in run_script(DAMAGE, "70", "0")
    assert not list(tmp_path.iterdir())
