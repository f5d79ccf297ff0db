"""Folders of files: ``python benchmarks/many.py [--rounds N] [--large N] [--small N]``.

`tamis repack` with two processes, which proves every value, records what it did, and makes each file durable, against
nccopy in GNU parallel with two jobs, which does none of these: without loss, and with tamis' plugin for zfp. The files
are copies of the sample (3.9 MB), and small ones (22 kB). The table has the median of wall time, of the processor time
of all processes, and the largest number of bytes in the folder of targets, temporary files included.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
from machine import machine

import tamis

SAMPLE = Path(__file__).parents[1] / "examples" / "data" / "cam_ts.nc"
TAMIS = str(Path(sys.executable).parent / "tamis")
LOSSLESS, LOSSY = "shuffle|deflate(4)", "zfp(accuracy=0.1)"


class Cost(NamedTuple):
    """What a command took."""

    seconds: float
    processor: float
    peak_nbytes: int


def make(folder: Path, large: int, small: int) -> None:
    """Make the sources."""
    for number in range(large):
        (folder / "large").mkdir(parents=True, exist_ok=True)
        shutil.copy(SAMPLE, folder / "large" / f"{number:04}.nc")
    field = np.add.outer(np.sin(np.arange(64) / 9), np.cos(np.arange(64) / 7)).astype("f4") + 280
    for number in range(small):
        (folder / "small").mkdir(parents=True, exist_ok=True)
        with h5py.File(folder / "small" / f"{number:04}.nc", "w") as file:
            file["TS"] = field * (1 + number % 7)
            for axis, name in enumerate(("y", "x")):
                file[name] = np.arange(64.0)
                file[name].make_scale(name)
                file["TS"].dims[axis].attach_scale(file[name])


def cost_of(command: list[str], out: Path) -> Cost:
    """Run a command that writes to a new folder."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    peak, is_done = [0], threading.Event()

    def watch() -> None:
        while not is_done.wait(0.05):
            peak[0] = max(peak[0], nbytes_in(out))

    watcher = threading.Thread(target=watch)
    watcher.start()
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    seconds, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    is_done.set()
    watcher.join()
    if done.returncode:
        sys.exit(f"{' '.join(command[:5])} …: exit code {done.returncode}: {done.stderr[-500:]}")
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(seconds, processor, max(peak[0], nbytes_in(out)))


def environment() -> dict[str, str]:
    return {**os.environ, "HDF5_PLUGIN_PATH": str(tamis.plugin_path())}


def nbytes_in(folder: Path) -> int:
    """Return the bytes of files, some of which may go away meanwhile."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(place, name)).st_size
    return total


def commands(source: Path, out: Path) -> dict[str, list[str]]:
    """Return the commands by what they do."""
    each = ["parallel", "--will-cite", "-j2", "nccopy"]
    between = f"{out}/{{/}}.deflated-no-more"  # nccopy adds no filter to what is deflated
    files = [":::", *map(str, sorted(source.iterdir()))]
    words = ",".join(f"{word}u" for word in tamis.Zfp(accuracy=0.1).requested)
    steps = (
        f"nccopy -d0 {{}} {between}",
        f"nccopy -F TS,32013,{words} {between} {out}/{{/}}",
        f"rm {between}",
    )
    repack = [TAMIS, "repack", str(source), f"{out}/", "--quiet", "--workers", "2", "-j", "1"]
    return {
        "tamis repack, deflate": [*repack, "-f", f"*:{LOSSLESS}"],
        "parallel nccopy, deflate": [*each, "-s", "-d", "4", "{}", f"{out}/{{/}}", *files],
        "tamis repack, zfp": [*repack, "-f", f"TS:{LOSSY}"],
        "parallel nccopy, zfp": [*each[:-1], " && ".join(steps), *files],
    }


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large", type=int, default=24, help="number of files of 3.9 MB")
    parser.add_argument("--small", type=int, default=300, help="number of files of 22 kB")
    options = parser.parse_args()
    for program in ("parallel", "nccopy"):
        if shutil.which(program) is None:
            sys.exit(f"expected {program}, found none: apt-get install parallel netcdf-bin")
    print(machine())
    print("\n| files | command | seconds | processor seconds | peak MB |\n|---|---|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder / "in", options.large, options.small)
        for kind in sorted(path.name for path in (folder / "in").iterdir()):
            rows = commands(folder / "in" / kind, folder / "out")
            costs: dict[str, list[Cost]] = {label: [] for label in rows}
            for _ in range(options.rounds):
                for label, command in rows.items():
                    costs[label].append(cost_of(command, folder / "out"))
            for label, found in costs.items():
                seconds, processor, peak = map(statistics.median, zip(*found, strict=True))
                print(f"| {kind} | {label} | {seconds:.2f} | {processor:.2f} | {peak / 1e6:.1f} |", flush=True)


if __name__ == "__main__":
    main()
