"""Time reading a dataset by tamis.open and by h5py with hdf5plugin: ``python benchmarks/reading.py [--rounds N]``.

256 MiB of float32 in chunks of 64³ (1 MiB), page cache warm, into an array that is there already. h5py reads in a
process of its own, since hdf5plugin changes what its process reads. The two take turns; figures are the best of all
rounds, since other work on a machine only adds to them, and bytes are those of the values. "CPU" is what all threads
took together. Parts of a dataset at a fixed rate are read from a file that was just opened.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

SHAPE, CHUNKS = (256, 512, 512), (64, 64, 64)
DATASETS = ("zfp(accuracy=0.001)", "shuffle|deflate(4)", "zfp(rate=8)")
PARTS = {"`x[100, 100, 100]`": (100, 100, 100), "`x[100]`": (100,), "`x[:, 100]`": (slice(None), 100)}


def write(path: Path) -> None:
    """Write one field with each pipeline."""
    import tamis

    values = np.random.default_rng(0).standard_normal(SHAPE, dtype="f4")
    for axis in range(3):
        np.cumsum(values, axis=axis, out=values)
    values /= values.std()
    with h5py.File(path, "w") as file:
        for name, keywords in zip(
            DATASETS,
            (tamis.Zfp(accuracy=1e-3), {"shuffle": True, "compression": "gzip"}, tamis.Zfp(rate=8)),
            strict=True,
        ):
            file.create_dataset(name, data=values, chunks=CHUNKS, **keywords)


def seconds(call: Callable[[], Any], calls: int = 1) -> tuple[float, float]:
    """Time of one call by the clock, and of the CPU."""
    began, cpu = time.perf_counter(), time.process_time()
    for _ in range(calls):
        call()
    return (time.perf_counter() - began) / calls, (time.process_time() - cpu) / calls


def by_h5py(path: Path) -> dict[str, tuple[float, float]]:
    """Seconds of each job by h5py with hdf5plugin, which must be this process's only ZFP."""
    import hdf5plugin  # noqa: F401 - registers its filters

    times = {}
    out = np.zeros(SHAPE, "f4")
    with h5py.File(path) as file:
        for name in DATASETS:
            times[name] = seconds(lambda x=file[name]: x.read_direct(out))
        for name, key in PARTS.items():
            times[name] = seconds(lambda key=key: file[DATASETS[2]][key], 5)
    return times


def by_tamis(path: Path) -> dict[str, tuple[float, float]]:
    """Seconds of each job by tamis, with one thread and with two."""
    import tamis

    times = {}
    out = np.zeros(SHAPE, "f4")
    for jobs in (1, 2):
        with tamis.open(path, jobs=jobs) as file:
            for name in DATASETS:
                times[f"{name} {jobs}"] = seconds(lambda x=file[name]: x.read(out))
    for name, key in PARTS.items():
        # A file opened anew keeps no decoded chunks; opening is not timed.
        arrays = iter([tamis.open(path, jobs=1)[DATASETS[2]] for _ in range(5)])
        times[name] = seconds(lambda arrays=arrays, key=key: next(arrays)[key], 5)
    return times


def main() -> None:
    """Print a line for each job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    best: dict[str, dict[str, list[float]]] = {"h5py": {}, "tamis": {}}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.h5"
        write(path)
        for _ in range(rounds):
            for library, times in best.items():
                command = [sys.executable, __file__, "--in-process", library, str(path)]
                said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
                for job, each in json.loads(said).items():
                    times[job] = [min(pair) for pair in zip(each, times.get(job, each), strict=True)]
    gigabytes = np.prod(SHAPE) * 4 / 1e9
    theirs, ours = best["h5py"], best["tamis"]
    print("| | h5py + hdf5plugin | tamis, 1 thread | tamis, 2 threads | CPU: h5py, tamis (1 thread) |")
    print("|---|---|---|---|---|")
    for job in DATASETS:
        first, (one, cpu), (two, _) = theirs[job], ours[f"{job} 1"], ours[f"{job} 2"]
        shown = job.replace("|", r"\|")  # as tables of Markdown want it
        print(
            f"| `{shown}` | {first[0]:.2f} s, {gigabytes / first[0]:.2f} GB/s | {one:.2f} s, {first[0] / one:.1f}×"
            f" | {two:.2f} s, {first[0] / two:.1f}× | {first[1]:.2f} s, {cpu:.2f} s |"
        )
    print(f"\n| part of `{DATASETS[2]}` | h5py + hdf5plugin | tamis, 1 thread |\n|---|---|---|")
    for job in PARTS:
        first, mine = theirs[job][0], ours[job][0]
        print(f"| {job} | {1e3 * first:.1f} ms | {1e3 * mine:.1f} ms, {first / mine:.1f}× |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--in-process"]:
        read = {"h5py": by_h5py, "tamis": by_tamis}[sys.argv[2]]
        print(json.dumps(read(Path(sys.argv[3]))))
    else:
        main()
