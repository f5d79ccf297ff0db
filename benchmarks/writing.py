"""Time writing a whole array: ``python benchmarks/writing.py [ACCURACY]``, by default 1e-3.

256 MiB of float32, 256×512×512, in chunks of 64³, page cache warm: h5py with hdf5plugin's filter, and
`tamis.hdf5.write` with 1 and 2 threads, which makes sure that every value keeps the bound. Each library works in
processes of its own, in turns; figures are the medians of all rounds. The last column is tamis' part that is not
encoding, and what the second thread gains.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import h5py
import numpy as np

SHAPE, CHUNK = (256, 512, 512), (64, 64, 64)
WRITERS = ("hdf5plugin", "tamis 1", "tamis 2", "codec")
PROCESSES, ROUNDS = 3, 3


def writer(name: str, accuracy: float) -> Callable[[h5py.File, Any], object]:
    """Return what is timed."""
    if name == "hdf5plugin":
        import hdf5plugin

        return lambda file, values: file.create_dataset(
            "x", data=values, chunks=CHUNK, **hdf5plugin.Zfp(accuracy=accuracy)
        )
    from tamis import zfp
    from tamis.hdf5 import write

    if name == "codec":
        mode = zfp.Accuracy(accuracy)
        starts = list(product(*(range(0, extent, step) for extent, step in zip(SHAPE, CHUNK, strict=True))))

        def code(file: h5py.File, values: Any) -> None:
            for start in starts:
                chunk = values[tuple(slice(at, at + step) for at, step in zip(start, CHUNK, strict=True))]
                zfp.encode(chunk, mode)

        return code
    jobs = int(name.split()[1])
    return lambda file, values: write(file, "x", values, filters=f"zfp(accuracy={accuracy!r})", chunks=CHUNK, jobs=jobs)


def rounds(name: str, accuracy: float, path: Path) -> list[float]:
    """Seconds of each round, in this process."""
    values = np.random.default_rng(0).standard_normal(SHAPE, dtype="f4")
    for axis in range(3):
        np.cumsum(values, axis=axis, out=values)
    values /= values.std()
    work = writer(name, accuracy)
    times = []
    for _ in range(ROUNDS):
        path.unlink(missing_ok=True)
        began = time.perf_counter()
        with h5py.File(path, "w") as file:
            work(file, values)
        times.append(time.perf_counter() - began)
    return times


def main(accuracy: float) -> None:
    found: dict[str, list[float]] = {name: [] for name in WRITERS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(PROCESSES):
            for name in WRITERS:
                command = [sys.executable, __file__, str(accuracy), name, f"{folder}/x.h5"]
                found[name] += json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    seconds = {name: statistics.median(times) for name, times in found.items()}
    theirs, codec = seconds["hdf5plugin"], seconds["codec"]
    print(f"256 MiB float32, accuracy {accuracy:g}; encoding alone, one thread: {codec:.2f} s")
    print(f"h5py + hdf5plugin           {theirs:.2f} s")
    for jobs in (1, 2):
        ours = seconds[f"tamis {jobs}"]
        share = f"  {1 - codec / ours:.0%} of it not codec" if jobs == 1 else f"  {seconds['tamis 1'] / ours:.2f}× one"
        print(f"tamis.hdf5.write, jobs={jobs}    {ours:.2f} s  {theirs / ours:.1f}×{share}")


if __name__ == "__main__":
    wanted = float(sys.argv[1]) if len(sys.argv) > 1 else 1e-3
    if len(sys.argv) == 4:
        print(json.dumps(rounds(sys.argv[2], wanted, Path(sys.argv[3]))))
    else:
        main(wanted)
