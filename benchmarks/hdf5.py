"""Time a ZFP dataset through h5py, with our filter and with hdf5plugin's: ``python benchmarks/hdf5.py``.

Each library works in processes of its own, in turns, since only one can be filter 32013 of a process. 256³ float32 in
chunks of 64³, accuracy 1e-3, page cache warm, one thread; figures are the medians of all rounds.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np

LIBRARIES = ("hdf5plugin", "tamis")
PROCESSES, ROUNDS = 3, 3


def rounds(library: str, path: Path) -> dict[str, list[float]]:
    """Seconds of each write and read, in this process."""
    keywords: Any = __import__(library).Zfp(accuracy=1e-3)
    values = np.random.default_rng(0).standard_normal((256, 256, 256), dtype="f4")
    for axis in range(3):
        values = np.cumsum(values, axis=axis)
    values /= values.std()
    out = np.empty_like(values)
    times: dict[str, list[float]] = {"write": [], "read": []}
    for _ in range(ROUNDS):
        began = time.perf_counter()
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=values, chunks=(64, 64, 64), **keywords)
        times["write"].append(time.perf_counter() - began)
        began = time.perf_counter()
        with h5py.File(path) as file:
            file["x"].read_direct(out)
        times["read"].append(time.perf_counter() - began)
    return times


def main() -> None:
    found: dict[str, dict[str, list[float]]] = {library: {"write": [], "read": []} for library in LIBRARIES}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(PROCESSES):
            for library in LIBRARIES:
                command = [sys.executable, __file__, library, f"{folder}/x.h5"]
                said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                for job, times in json.loads(said).items():
                    found[library][job] += times
    for job in ("write", "read"):
        theirs, ours = (statistics.median(found[library][job]) for library in LIBRARIES)
        print(f"h5py {job:5}  hdf5plugin {theirs:.3f} s  tamis {ours:.3f} s  {theirs / ours:.1f}×")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(rounds(sys.argv[1], Path(sys.argv[2]))))
    else:
        main()
