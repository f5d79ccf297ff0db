"""Time ``tamis inspect`` on files of many chunks and of many datasets: ``python benchmarks/inspection.py``.

Seconds of the whole command, the start of Python included, and of the processor in them; medians of five runs, page
cache warm.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np

CHUNKS, DATASETS, RUNS = 100_000, 5_000, 5


def write_chunks(path: Path, libver: str) -> None:
    """One dataset of many chunks, half of which skip a filter."""
    with h5py.File(path, "w", libver=libver) as file:
        made = file.create_dataset("v", (CHUNKS,), "f4", chunks=(1,), maxshape=(None,), compression=1, shuffle=True)
        for index in range(CHUNKS):
            made.id.write_direct_chunk((index,), b"12345", index % 2)


def write_datasets(path: Path) -> None:
    """Many datasets in groups of a hundred."""
    with h5py.File(path, "w") as file:
        for i in range(DATASETS):
            name = f"g{i // 100}/v{i}"
            file.create_dataset(name, data=np.arange(100.0), chunks=(25,), compression=1, shuffle=True)


def seconds(path: Path, *options: str) -> str:
    """Run the command; return the medians of its times."""
    command = [str(Path(sys.executable).with_name("tamis")), "inspect", str(path), *options]
    times: list[tuple[float, float]] = []
    for _ in range(RUNS):
        began, used = time.perf_counter(), processor()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append((time.perf_counter() - began, processor() - used))
    passed, used = (statistics.median(each) for each in zip(*times, strict=True))
    return f"{passed:.2f} s (processor {used:.2f} s)"


def processor() -> float:
    """Seconds that the processor worked for commands so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Print a line for each file."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.h5"
        for libver in ("earliest", "latest"):
            write_chunks(path, libver)
            print(f"{CHUNKS} chunks, file format {libver}: {seconds(path)}")
        write_datasets(path)
        print(f"{DATASETS} datasets: {seconds(path)}, as JSON {seconds(path, '--json')}")


if __name__ == "__main__":
    main()
