"""Time, memory and size of reports: ``python benchmarks/report.py [--rounds N] [--threads N] [--huge GIB]``.

`tamis report` on pairs of files: the sample, ten variables of its kind, and a variable of 0.25 degrees with as many
steps as the huge file has room for, all stored by zfp. The table has seconds of the whole command and of the processor
in it (medians), the peak of memory, and the bytes of the page, with what they must stay below. ``--huge 4`` needs 6 GB
of room, and takes some minutes.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import netCDF4
import numpy as np
from machine import machine

import tamis

SAMPLE = Path(__file__).parents[1] / "examples" / "data" / "cam_ts.nc"
TAMIS = str(Path(sys.executable).with_name("tamis"))
FIELD = (721, 1440)

MEASURE = """
import json, resource, subprocess, sys, time
began = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss]))
"""
"""Run in a small process, because a child begins with the memory of its parent."""


class Case(NamedTuple):
    """A pair, and what its report must stay below."""

    name: str
    source: Path
    most_kib: int | None  # Of memory
    most_nbytes: int  # Of the page


def write(path: Path, names: list[str], step_count: int, field: Any) -> Path:
    """Write variables on a grid of latitudes and longitudes; `field` returns a step of one."""
    shape = field(0, 0).shape
    with netCDF4.Dataset(path, "w") as file:
        ends = {"time": (0, step_count - 1, "days since 2000-01-01"), "lat": (-90, 90, "degrees_north")}
        ends["lon"] = (0, 360 * (1 - 1 / shape[1]), "degrees_east")
        for (name, (low, high, units)), extent in zip(ends.items(), (step_count, *shape), strict=True):
            file.createDimension(name, extent)
            file.createVariable(name, "f8", (name,))[:] = np.linspace(low, high, extent)
            file[name].units = units
        for number, name in enumerate(names):
            variable = file.createVariable(name, "f4", tuple(ends), chunksizes=(1, *shape))
            variable.units = "K"
            for step in range(step_count):
                variable[step] = field(number, step)
    return path


def cases(folder: Path, gib: float) -> list[Case]:
    """Write the sources."""
    with netCDF4.Dataset(SAMPLE) as file:
        sample = file["TS"][:24].filled()
    rough = np.random.default_rng(1).normal(0, 0.3, FIELD).astype("f4")
    y, x = (np.arange(extent, dtype="f4") / 90 for extent in FIELD)

    def large(_: int, step: int) -> Any:
        return np.add.outer(280 + 20 * np.sin(y), 5 * np.cos(x + step / 10)) + np.roll(rough, step)

    steps = max(1, int(gib * 2**30 / (4 * math.prod(FIELD))))
    ten = write(folder / "ten.nc", [f"T{number}" for number in range(10)], 24, lambda n, step: sample[step - n])
    return [
        Case("1 variable", SAMPLE, None, 250_000),
        Case("10 variables", ten, None, 2_000_000),
        Case(f"{gib:g} GiB", write(folder / "large.nc", ["T"], steps, large), 128 << 10, 250_000),
    ]


def measured(case: Case, folder: Path, threads: int, rounds: int) -> str:
    """Return the row of a case."""
    target, page = folder / f"small-{case.source.name}", folder / "page.html"
    tamis.repack(case.source, target, {"T*": "zfp(accuracy=0.1)|shuffle|deflate(1)"})
    command = [TAMIS, "report", str(case.source), str(target), "-o", str(page), "--overwrite", "-q", "-j", str(threads)]
    small = [sys.executable, "-I", "-S", "-c", MEASURE, *command]
    costs = [json.loads(subprocess.run(small, check=True, capture_output=True).stdout) for _ in range(rounds)]
    seconds, processor, kib = (statistics.median(column) for column in zip(*costs, strict=True))
    memory = f"{kib / 1024:.0f} MiB" + (f" of {case.most_kib >> 10}" if case.most_kib else "")
    nbytes = page.stat().st_size
    is_bad = nbytes > case.most_nbytes or kib > (case.most_kib or math.inf)
    sizes = f"{nbytes / 1000:.0f} kB of {case.most_nbytes // 1000}"
    return f"{case.name:14}{seconds:9.2f} s{processor:11.2f} s{memory:>16}{sizes:>18}{'  too much' * is_bad}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="runs of each report")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="threads of each report")
    parser.add_argument("--huge", type=float, default=1.0, metavar="GIB", help="size of the large variable")
    options = parser.parse_args()
    print(machine())
    print(f"{'':14}{'seconds':>11}{'processor':>13}{'memory':>16}{'page':>18}")
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(Path(folder), options.huge):
            print(measured(case, Path(folder), options.threads, options.rounds), flush=True)


if __name__ == "__main__":
    main()
