"""What a benchmark ran on."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path


def machine() -> str:
    """Say it in words: the processor, where Linux tells its name, and how many of it this process may use."""
    told = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*: (.+)$", told.read_text(), re.MULTILINE) if told.exists() else None
    name = re.sub(r"\((R|TM|r|tm)\)", "", found[1]) if found else platform.processor()
    return f"{len(os.sched_getaffinity(0))} × {name or 'unknown'}, {platform.machine()}, {platform.system()}"
