"""Whole commands that pack a file: ``python benchmarks/packing.py [--rounds N] [--mib N] [--threads N]``.

A smooth field of float32 with noise, without filters, becomes integers with szip by `tamis repack`, which proves the
bound of 0.1 for every value; 16-bit integers by NCO's ``ncpdq -P all_new``, and then ``nccopy -d 4 -s``; and stays
float32 by ``nccopy -d 4 -s``. The commands take turns. Medians of the elapsed seconds, of the processor seconds, and
the most memory; the ratio is that of the file sizes. nccopy has one thread.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
from machine import machine

TAMIS = str(Path(sys.executable).with_name("tamis"))
ROWS, COLUMNS = 1024, 2048


class Spent(NamedTuple):
    """What commands took, one after the other."""

    elapsed: float
    processor: float
    memory_mib: float


def write_field(path: Path, mib: int) -> None:
    """Write waves that move, with noise of 0.1, in chunks of a step."""
    random = np.random.default_rng(0)
    rows, columns = np.sin(np.arange(ROWS) / 80).astype("f4"), np.sin(np.arange(COLUMNS) / 50).astype("f4")
    steps = mib * 2**20 // (4 * ROWS * COLUMNS)
    with h5py.File(path, "w") as file:
        shape = (steps, ROWS, COLUMNS)
        dataset = file.create_dataset("TS", shape, "f4", chunks=(1, ROWS, COLUMNS))
        for step in range(steps):
            noise = 0.1 * random.standard_normal((ROWS, COLUMNS), dtype="f4")
            dataset[step] = 280 + 20 * np.sin(step / 9) * rows[:, None] * columns + noise


def run(*commands: Sequence[str | Path]) -> Spent:
    """Run commands one after the other."""
    elapsed, processor, memory = 0.0, 0.0, 0.0
    for command in commands:
        begin = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0, command
        elapsed += time.perf_counter() - begin
        processor += usage.ru_utime + usage.ru_stime
        memory = max(memory, usage.ru_maxrss / 1024)
    return Spent(elapsed, processor, memory)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="of each command")
    parser.add_argument("--mib", type=int, default=512, help="MiB of values")
    parser.add_argument("--threads", type=int, default=2, help="of tamis")
    options = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "source.nc"
        write_field(source, options.mib)
        packed, szip, copied, plain = (folder / f"{each}.nc" for each in ("packed", "szip", "copied", "plain"))
        recipe = "TS:pack(bound=0.1)|szip(nn,16)"
        deflate = ("nccopy", "-d", "4", "-s")
        jobs = {
            f"tamis repack, {recipe.partition(':')[2]}": (
                szip,
                [(TAMIS, "repack", source, szip, "-f", recipe, "--overwrite", "--threads", str(options.threads))],
            ),
            "ncpdq -P all_new, nccopy -d 4 -s": (
                copied,
                [("ncpdq", "-O", "-P", "all_new", source, packed), (*deflate, packed, copied)],
            ),
            "nccopy -d 4 -s": (plain, [(*deflate, source, plain)]),
        }
        spent: dict[str, list[Spent]] = {job: [] for job in jobs}
        for _ in range(options.rounds):
            for job, (_target, commands) in jobs.items():
                spent[job].append(run(*commands))
        first = statistics.median(each.elapsed for each in next(iter(spent.values())))
        print("\n| command | elapsed | x first | processor | memory | ratio |\n|---|---|---|---|---|---|")
        for job, (target, _commands) in jobs.items():
            elapsed, processor, memory = (statistics.median(column) for column in zip(*spent[job], strict=True))
            ratio = options.mib * 2**20 / target.stat().st_size
            cells = (f"{elapsed:.2f} s", f"{elapsed / first:.1f}", f"{processor:.2f} s", f"{memory:.0f} MiB")
            print(f"| {job.replace('|', chr(92) + '|')} | {' | '.join(cells)} | {ratio:.1f} |")


if __name__ == "__main__":
    main()
