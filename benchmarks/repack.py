"""Time and memory of `tamis repack` against h5repack and nccopy: ``python benchmarks/repack.py [ROUNDS]``.

Each program runs in a process of its own, in turns, page cache warm; figures are medians, ratios are theirs to ours in
the same run. tamis reads again and verifies what it wrote and makes it durable, the others do not. They run with our
plugin and with H5Z-ZFP's where Debian has put it. nccopy leaves a filter out where a variable is deflated, and so takes
two steps there. "tamis.repack" is the call from a Python that runs already, as in a script for many files; "tamis" is
the command, with Python's start, numpy and h5py. Files: 512 MiB of raw float32, generated, and those of shared/data
beside the repository, where they are.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

# What is heavy is imported by children: a child's memory at most is never less than that of its parent.
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
DEBIAN = Path("/usr/lib") / f"{os.uname().machine}-linux-gnu" / "hdf5" / "serial" / "plugins"
MIB = 1 << 20

PREPARE = """
import json, sys, h5py, numpy as np, tamis
values = np.random.default_rng(0).standard_normal((512, 512, 512), dtype="f4")
for axis in range(3):
    values = np.cumsum(values, axis=axis)
with h5py.File(sys.argv[1], "w") as file:
    made = file.create_dataset("x", data=values / values.std())
    for axis, name in enumerate("abc"):
        file[name] = np.arange(made.shape[axis], dtype="f4")
        file[name].make_scale(name)
        made.dims[axis].attach_scale(file[name])
words = {accuracy: tamis.Zfp(accuracy=float(accuracy)).requested for accuracy in sys.argv[2:]}
print(json.dumps([str(tamis.plugin_path()), words]))
"""

CALL = """
import json, resource, sys, time
import tamis
tamis.repack
words = json.loads(sys.argv[1])
began, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
tamis.repack(*words["files"], words["recipes"], chunks=words["chunks"], overwrite=True)
seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
processor = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
print(json.dumps([seconds, processor, after.ru_maxrss * 1024]))
"""

# The others leave a filter out without a word.
FILTERED = """
import sys, h5py
with h5py.File(sys.argv[1]) as file:
    plist = file[sys.argv[2]].id.get_create_plist()
    assert 32013 in [plist.get_filter(index)[0] for index in range(plist.get_nfilters())], sys.argv
"""


class Case(NamedTuple):
    """A variable of a file, what it shall become, and names of its dimensions."""

    source: Path
    name: str
    accuracy: float
    chunks: tuple[int, ...]
    dimensions: tuple[str, ...]
    deflated: bool


def commands(case: Case, words: list[int], target: Path, between: Path) -> dict[str, list[list[str]]]:
    """The command lines that do the same, by program."""
    shape = "x".join(map(str, case.chunks))
    source = str(case.source)
    recipe = ["-f", f"{case.name}:zfp(accuracy={case.accuracy})", "-c", f"{case.name}:{shape}", "--overwrite"]
    main = [str(Path(sys.executable).with_name("tamis")), "repack", source, str(target), *recipe]
    number = ",".join(f"{word}u" for word in words)
    sizes = ",".join(f"{name}/{step}" for name, step in zip(case.dimensions, case.chunks, strict=True))
    copy = ["nccopy", "-F", f"{case.name},32013,{number}", "-c", sizes]
    filters = f"{case.name}:UD=32013,0,{len(words)},{','.join(map(str, words))}"
    return {
        "tamis -j 1": [[*main, "-j", "1"]],
        "tamis": [main],
        "h5repack": [["h5repack", "-f", filters, "-l", f"{case.name}:CHUNK={shape}", source, str(target)]],
        "nccopy": [["nccopy", "-d", "0", source, str(between)], [*copy, str(between), str(target)]]
        if case.deflated
        else [[*copy, source, str(target)]],
    }


class Run(NamedTuple):
    """What one run of a program took: seconds of the clock, of the processor, and bytes of memory at most."""

    seconds: float
    processor: float
    memory: int


def run(steps: list[list[str]], plugins: str) -> Run:
    """Run command lines one after the other."""
    began, processor, memory = time.perf_counter(), 0.0, 0
    for step in steps:
        child = subprocess.Popen(step, env=os.environ | {"HDF5_PLUGIN_PATH": plugins}, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise SystemExit(f"expected {' '.join(step)} to succeed, got {child.returncode}")
        processor += used.ru_utime + used.ru_stime
        memory = max(memory, used.ru_maxrss * 1024)
    return Run(time.perf_counter() - began, processor, memory)


def called(case: Case, target: Path) -> Run:
    """Run repack from a Python that has imported it."""
    words = {
        "files": [str(case.source), str(target)],
        "recipes": {case.name: f"zfp(accuracy={case.accuracy})"},
        "chunks": {case.name: case.chunks},
    }
    return Run(*json.loads(python(CALL, json.dumps(words))))


def python(code: str, *arguments: str | Path) -> str:
    """Run code in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as folder:
        raw, target, between = (Path(folder) / name for name in ("raw.h5", "out.nc", "between.nc"))
        cases = [
            Case(raw, "x", 1e-3, (64, 64, 64), ("a", "b", "c"), deflated=False),
            Case(DATA / "cam_ts_100days.nc", "TS", 0.1, (1, 192, 288), ("time", "lat", "lon"), deflated=True),
            Case(DATA / "cam_ts_100days.nc", "TS", 0.1, (20, 96, 96), ("time", "lat", "lon"), deflated=True),
            Case(DATA / "pop_sst_60days.nc", "SST", 0.1, (60, 16, 16), ("time", "nlat", "nlon"), deflated=True),
        ]
        ours, words = json.loads(python(PREPARE, raw, *{str(case.accuracy) for case in cases}))
        for case in cases:
            if not case.source.exists():
                print(f"{case.source.name}: not here")
                continue
            print(f"{case.source.name} {case.name} -> zfp(accuracy={case.accuracy}) in {case.chunks}")
            found: dict[str, list[Run]] = {}
            for _ in range(rounds):
                target.unlink(missing_ok=True)
                found.setdefault("tamis.repack", []).append(called(case, target))
                for program, steps in commands(case, words[str(case.accuracy)], target, between).items():
                    for whose, plugins in (("", ours), (", H5Z-ZFP", str(DEBIAN))):
                        if whose and (program.startswith("tamis") or not DEBIAN.is_dir()):
                            continue
                        target.unlink(missing_ok=True)
                        between.unlink(missing_ok=True)
                        found.setdefault(program + whose, []).append(run(steps, plugins))
                        python(FILTERED, target, case.name)
            fastest = statistics.median(each.seconds for each in found["tamis"])
            for program, runs in found.items():
                seconds, processor, memory = (statistics.median(each) for each in zip(*runs, strict=True))
                print(
                    f"  {program:19} {seconds:6.2f} s  processor {processor:6.2f} s  {memory / MIB:4.0f} MiB"
                    f"  {seconds / fastest:5.2f}"
                )


if __name__ == "__main__":
    main()
