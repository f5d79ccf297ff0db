"""Time writing, reading and repacking files: ``python benchmarks/files.py [--quick] [--csv F]`` prints one table.

512 MiB of float32, 512³ in chunks of 64³, accuracy 1e-3, page cache warm: h5py with hdf5plugin against
`tamis.hdf5.write` and `tamis.open`; h5repack and nccopy against `tamis repack`, which proves each chunk, reads the
file's bytes again and makes them durable (they do not), and against the call `tamis.repack` (2 threads) from a Python
that runs already, as in a script for many files. The peers run with H5Z-ZFP, of hdf5plugin or where Debian has put it,
and with tamis' plugin. nccopy leaves a filter out where a variable is deflated, and so takes two steps there. Deflated
files of climate models are those of shared/data beside the repository, or of ``--data``, where they are.

All take turns, hdf5plugin and each repack in processes of their own; figures are medians of the clock, ratios are those
of the first program of the row to the others, MiB are of memory at most. What is read is compared. Threads, where a
peer has any, are its own affair. About 2 GB of memory, and of disk in a temporary folder (``TMPDIR``), are needed.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from machine import machine

# What is heavy is imported by children: a child's memory at most is never less than that of its parent.
HERE = Path(__file__).resolve()
DATA = HERE.parents[2] / "shared" / "data"
DEBIAN = Path("/usr/lib") / f"{os.uname().machine}-linux-gnu" / "hdf5" / "serial" / "plugins"
MIB = 1 << 20
PEERS = ("h5py", "h5repack", "nccopy")
OURS = ", tamis' plugin"
COLUMNS = ("tamis 1", "tamis 2", "tamis.repack")


class Repack(NamedTuple):
    """A variable of a file, what it shall become, and names of its dimensions."""

    source: Path
    name: str
    accuracy: float
    chunks: tuple[int, ...]
    dimensions: tuple[str, ...]
    deflated: bool = True

    def __str__(self) -> str:
        shape = "×".join(map(str, self.chunks))
        source = f"{self.source.name} {self.name}, deflated" if self.deflated else "raw, contiguous"
        return f"repack {source} → `zfp(accuracy={self.accuracy})`, {shape}"

    def commands(self, words: list[int], target: Path, between: Path) -> dict[str, list[list[str]]]:
        """The command lines that do the same, by program."""
        shape = "x".join(map(str, self.chunks))
        source = str(self.source)
        recipe = ["-f", f"{self.name}:zfp(accuracy={self.accuracy})", "-c", f"{self.name}:{shape}", "--overwrite"]
        ours = [str(Path(sys.executable).with_name("tamis")), "repack", source, str(target), *recipe]
        sizes = ",".join(f"{name}/{step}" for name, step in zip(self.dimensions, self.chunks, strict=True))
        copy = ["nccopy", "-F", f"{self.name},32013,{','.join(f'{word}u' for word in words)}", "-c", sizes]
        filters = f"{self.name}:UD=32013,1,{len(words)},{','.join(map(str, words))}"
        return {
            "tamis 1": [[*ours, "-j", "1"]],
            "tamis 2": [[*ours, "-j", "2"]],
            "h5repack": [["h5repack", "-f", filters, "-l", f"{self.name}:CHUNK={shape}", source, str(target)]],
            "nccopy": [["nccopy", "-d", "0", source, str(between)], [*copy, str(between), str(target)]]
            if self.deflated
            else [[*copy, source, str(target)]],
        }


class Run(NamedTuple):
    """What one run took: seconds of the clock, of the processor, bytes of memory at most; what its result goes by."""

    seconds: float
    processor: float
    memory: float = 0
    result: int = 0


class Found:
    """Runs by job and program."""

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, list[Run]]] = {}

    def add(self, job: str, program: str, run: Run) -> None:
        """Take a run that had the same result as the others."""
        programs = self.jobs.setdefault(job, {})
        for other, runs in programs.items():
            if runs[0].result != run.result:
                raise SystemExit(f"expected the same of {program} and {other}, got other bytes: {job}")
        programs.setdefault(program, []).append(run)

    def medians(self, job: str) -> dict[str, Run]:
        return {
            program: Run(*(statistics.median(each) for each in zip(*runs, strict=True)))
            for program, runs in self.jobs[job].items()
        }


def job(name: str, *arguments: Any) -> Any:
    """Run a function of `file_jobs.py`."""
    command = [sys.executable, str(HERE.with_name("file_jobs.py")), name, json.dumps(arguments)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def run(steps: list[list[str]], plugins: str, *, may_fail: bool = False) -> Run | None:
    """Run command lines one after the other; return None if one fails that may."""
    began, processor, memory = time.perf_counter(), 0.0, 0
    for step in steps:
        child = subprocess.Popen(step, env=os.environ | {"HDF5_PLUGIN_PATH": plugins}, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode and may_fail:
            return None
        if child.returncode:
            raise SystemExit(f"expected {' '.join(step)} to succeed, got {child.returncode}")
        processor += used.ru_utime + used.ru_stime
        memory = max(memory, used.ru_maxrss * 1024)
    return Run(time.perf_counter() - began, processor, memory)


def repacked(found: Found, case: Repack, words: list[int], plugins: dict[str, str], folder: Path) -> None:
    """Have each program repack once."""
    target, between = folder / "repacked.nc", folder / "between.nc"
    recipe = {case.name: f"zfp(accuracy={case.accuracy})"}
    target.unlink(missing_ok=True)
    figures = job("repack", str(case.source), str(target), recipe, {case.name: case.chunks})
    found.add(str(case), "tamis.repack", Run(*figures))
    for program, steps in case.commands(words, target, between).items():
        if shutil.which(steps[0][0]) is None:
            continue
        for whose, where in plugins.items() if program in PEERS else [("", "")]:
            target.unlink(missing_ok=True)
            between.unlink(missing_ok=True)
            # tamis' plugin refuses to lose missing values where a program demands the filter, as nccopy does.
            timed = run(steps, where, may_fail=whose == OURS)
            if timed is None:
                continue
            found.add(str(case), program + whose, timed)
            if not job("filtered", str(target), case.name):
                raise SystemExit(f"expected {program}{whose} to leave ZFP on {case.name}, found none: {case}")


def measured(extent: int, processes: int, rounds: int, data: Path) -> Found:
    """Run everything."""
    found = Found()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases = [
            Repack(folder / "raw.h5", "x", 1e-3, (64, 64, 64), ("a", "b", "c"), deflated=False),
            Repack(data / "cam_ts_100days.nc", "TS", 0.1, (1, 192, 288), ("time", "lat", "lon")),
            Repack(data / "cam_ts_100days.nc", "TS", 0.1, (20, 96, 96), ("time", "lat", "lon")),
            Repack(data / "pop_sst_60days.nc", "SST", 0.1, (60, 16, 16), ("time", "nlat", "nlon")),
        ]
        prepared = job("prepare", name, extent, *{case.accuracy for case in cases})
        for _ in range(processes):
            for library in ("by_hdf5plugin", "by_tamis"):
                for which, program, *figures, result in job(library, name, rounds):
                    found.add(which, program, Run(*figures, result=result))
        plugins = ({"": str(DEBIAN)} if DEBIAN.is_dir() else {}) | {OURS: prepared["plugin"]}
        for case in cases:
            if not case.source.exists():
                print(f"{case}: left out, not here: {case.source}")
                continue
            for _ in range(max(rounds, processes)):
                repacked(found, case, prepared["words"][str(case.accuracy)], plugins, folder)
    return found


def cell(one: Run, first: Run | None = None) -> str:
    """Say seconds, how many times as fast as the first, and memory, where it is known."""
    said = [f"{one.seconds:.2f} s" if one.seconds >= 0.1 else f"{1e3 * one.seconds:.1f} ms"]
    if first:
        said.append(f"{first.seconds / one.seconds:.1f}×")
    if one.memory:
        said.append(f"{one.memory / MIB:.0f} MiB")
    return ", ".join(said)


def print_table(found: Found) -> None:
    """Print a row per job and peer."""
    print("\n| | peer with H5Z-ZFP | peer with tamis' plugin | tamis, 1 thread | tamis, 2 threads | `tamis.repack` |")
    print("|---|---|---|---|---|---|")
    for job in found.jobs:
        runs = found.medians(job)
        for peer in PEERS:
            first = runs.get(peer) or runs.get(peer + OURS)
            if first is None:
                continue
            cells = [f"{peer} {cell(runs[peer])}" if peer in runs else f"{peer}: none here"]
            cells.append(cell(runs[peer + OURS], first) if peer + OURS in runs else "refuses")
            cells += [cell(runs[each], first) if each in runs else "" for each in COLUMNS]
            print(f"| {job.replace('|', chr(92) + '|')} | {' | '.join(cells)} |")


def write_csv(found: Found, path: Path) -> None:
    """Write a line per job and program."""
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["job", "program", "runs", "seconds", "processor_seconds", "peak_bytes", "machine"])
        for job, programs in found.jobs.items():
            for program, (seconds, processor, memory, _) in found.medians(job).items():
                times = f"{seconds:.5f}", f"{processor:.5f}"
                writer.writerow([job, program, len(programs[program]), *times, f"{memory:.0f}", machine()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="125 MiB, 320³, and a third of the runs")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="runs in each process (%(default)s)")
    parser.add_argument("--extent", type=int, metavar="N", help="N³ values, at least 128 (512, or 320)")
    parser.add_argument("--csv", type=Path, metavar="F", help="write all medians to a file, processor and memory too")
    parser.add_argument("--data", type=Path, default=DATA, metavar="D", help="where deflated files are (%(default)s)")
    options = parser.parse_args()
    extent = (320 if options.quick else 512) if options.extent is None else options.extent
    if extent < 128:
        parser.error(f"expected --extent of 128 or more, got {extent}")
    if options.rounds < 1:
        parser.error(f"expected --rounds of 1 or more, got {options.rounds}")
    print(f"{machine()}; {extent**3 * 4 / MIB:.0f} MiB of float32, {extent}³ in chunks of 64³", flush=True)
    for program in PEERS[1:]:
        if shutil.which(program) is None:
            print(f"{program}: left out, not here")
    found = measured(extent, 1 if options.quick else 3, options.rounds, options.data)
    print_table(found)
    if options.csv:
        write_csv(found, options.csv)


if __name__ == "__main__":
    main()
