"""Ask `_probe` in processes of their own: one that ends takes only the item with it at which it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tamis.system import how_it_ended

_SCRIPT = Path(__file__).with_name("_probe.py")
_SECONDS = 120.0  # timeout of all items of one process


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of an item."""

    value: Any = None  # None if it failed
    error: str = ""  # Why it failed; empty if it did not


def tried(task: str, items: Sequence[Any], *, without: Sequence[str] = ()) -> list[Tried]:
    """Try each item, in order; `without` names variables of the environment that the process must not have."""
    environment = {name: value for name, value in os.environ.items() if name not in without}
    found: list[Tried] = []
    while len(found) < len(items):
        found += _tried_once(task, items[len(found) :], environment)
    return found


def _tried_once(task: str, items: Sequence[Any], environment: Mapping[str, str]) -> list[Tried]:
    """Try items until the process ends; there is a result for at least the first one."""
    # -P: the folder of the script has modules with names of others.
    command = [sys.executable, "-P", str(_SCRIPT), task]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(environment)
    ) as process:
        try:
            printed, _ = process.communicate(json.dumps(items).encode(), _SECONDS)
            how = how_it_ended(process.returncode)
        except subprocess.TimeoutExpired:
            process.kill()
            printed, _ = process.communicate()
            how = f"did not answer within {_SECONDS:.0f} s"
    answers = [json.loads(line) for line in printed.decode("utf-8", "replace").splitlines() if line.startswith("{")]
    found = [Tried(answer.get("value"), answer.get("error", "")) for answer in answers]
    if len(found) < len(items):
        found.append(Tried(error=f"the process {how}"))
    return found
