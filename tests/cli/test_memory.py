"""Memory of one chunk is there for the next."""

from __future__ import annotations

import subprocess
import sys

COUNTED = """
import resource, sys
import numpy as np
from tamis.cli.ending import keep_freed_memory
if sys.argv[1] == "kept" and not keep_freed_memory():
    print("no glibc")
    sys.exit()
def work():
    arrays = [np.ones(1 << 18) for _ in range(4)]  # 8 MiB
work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def count(how: str) -> str:
    done = subprocess.run([sys.executable, "-c", COUNTED, how], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_keep_freed_memory_pages_of_arrays_are_used_again() -> None:
    kept = count("kept")
    # 2,048 pages of 4 KiB, or 4 huge ones, each time.
    assert kept == "no glibc" or int(kept) < int(count("given back")) / 2
