"""U68: threads that read, callbacks of h5py and forks do not wait for each other for ever.

`threads_and_forks.py` has the scenarios, each a process of its own that ends itself if it hangs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("threads_and_forks.py")
OFTEN = ("callbacks", "collector", "forks")
SCENARIOS = (
    *OFTEN,
    *("shared_file", "jobs", "stores", "datasets", "forks_at_first_use", "forks_of_forks", "forks_in_callbacks"),
    *("forks_of_jobs", "forks_of_stores", "forks_of_datasets", "pools"),
)


def run(scenario: str, rounds: int, seconds: int, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, scenario, str(rounds)],
        cwd=folder,
        env=os.environ | {"SECONDS": str(seconds)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-6000:]


@pytest.mark.parametrize("scenario", OFTEN)
def test_u68_threads_and_forks_end(scenario: str, tmp_path: Path) -> None:
    run(scenario, 3, 300, tmp_path)


@pytest.mark.check
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_u68_threads_and_forks_end_in_many_rounds(scenario: str, tmp_path: Path) -> None:
    run(scenario, 15, 900, tmp_path)


def test_u68_all_scenarios_are_run() -> None:
    text = SCRIPT.read_text()
    listed = text.partition("SCENARIOS: dict")[2].partition("if __name__")[0]
    assert {name for name in SCENARIOS if f"def {name}()" in text} == {*SCENARIOS}
    assert all(name in listed for name in SCENARIOS)
