"""Kill runs over many files at random moments: ``python tests/tools/kill_many.py [FILES] [WORKERS] [RUNS] [SEED]``.

`WORKERS` processes that make files are killed (SIGKILL), and as many whole runs as `RUNS` says, each followed by
another run for the same folder. In the end the targets must have the bytes of single runs, each file that was complete
must not have been made again, and nothing else may be left.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np

import tamis
from tamis.jobs.many.state import State

RECIPE = {"x": "zfp(accuracy=0.01)|shuffle|deflate(4)", "*": "shuffle|deflate(4)"}
COMMAND = [
    str(Path(sys.executable).parent / "tamis"),
    "repack",
    "-q",
    "-f",
    f"x:{RECIPE['x']}",
    "-f",
    f"*:{RECIPE['*']}",
]


def make_sources(folder: Path, count: int) -> None:
    """Make files of several sizes, some of which no run can make."""
    values = np.random.default_rng(0).standard_normal((8, 96, 96)).cumsum(axis=1).cumsum(axis=2).astype("f4")
    for number in range(count):
        path = folder / f"{number % 4}" / f"{number:04}.nc"
        path.parent.mkdir(parents=True, exist_ok=True)
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=values[: 1 + number % 8] + number, chunks=(1, 96, 96))
            file["y"] = np.arange(1000 + number)
        if number % 10 == 9:
            os.truncate(path, 3000)


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file that is not ours."""
    files = [path for path in folder.rglob("*") if path.is_file() and ".tamis" not in path.relative_to(folder).parts]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(files)}


def children_of(process: int) -> list[int]:
    """Return the processes that a process started."""
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


def lines_of(out: Path) -> dict[str, int]:
    """Return how many times each file was made."""
    counts: dict[str, int] = {}
    for path in (out / ".tamis").glob("state-*.jsonl"):
        for line in path.read_bytes().splitlines():
            if b'"action": "repacked"' in line:
                name = line.split(b'"path": "', 1)[1].split(b'"', 1)[0].decode()
                counts[name] = counts.get(name, 0) + 1
    return counts


def check(files: int, worker_kills: int, run_kills: int, seed: int, *, replace: bool = False) -> list[str]:
    """Return what is wrong; nothing if all is right."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_sources(folder / "in", files)
        expected = folder / "expected"
        for path in sorted((folder / "in").rglob("*.nc")):
            target = expected / path.relative_to(folder / "in")
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                tamis.repack(path, target, RECIPE)
            except tamis.FileError:
                if replace:
                    shutil.copy2(path, target)
        before = {path: path.stat().st_mode for path in (folder / "in").rglob("*.nc")}
        out = folder / ("in" if replace else "out")
        words = [str(folder / "in"), "--replace", "--yes"] if replace else [str(folder / "in"), str(out)]
        killed_runs = killed_workers = 0
        while True:
            run = subprocess.Popen([*COMMAND, *words, "--retries", "5"], stderr=subprocess.DEVNULL)
            end = time.monotonic() + rng.uniform(1.5, 4.0) if killed_runs < run_kills else float("inf")
            while run.poll() is None and time.monotonic() < end:
                time.sleep(rng.uniform(0.3, 0.9))
                workers = children_of(run.pid)
                if killed_workers < worker_kills and workers:
                    os.kill(rng.choice(workers), signal.SIGKILL)
                    killed_workers += 1
            if run.poll() is not None:
                break
            run.kill()
            run.wait()
            killed_runs += 1
        problems = []
        if digests(out) != digests(expected):
            wrong = {key for key, value in (digests(out).items() ^ digests(expected).items())}
            problems.append(f"targets differ from single runs: {sorted(wrong)[:5]}")
        hidden = [str(path) for path in out.rglob(".*") if path.name != ".tamis" and ".tamis" not in path.parts]
        problems += [f"left: {path}" for path in hidden]
        problems += [f"left: {path}" for path in (out / ".tamis" / "claims").iterdir()]
        twice = {path: count for path, count in lines_of(out).items() if count > 1}
        if len(twice) > killed_runs + killed_workers:
            problems.append(f"made more than once: {twice}")
        state = State(out)
        state.refresh()
        failed = sum(known.action == "failed" for known in state.known.values())
        if failed != files // 10 or run.returncode != 1:
            problems.append(f"expected {files // 10} failed files and exit code 1, got {failed} and {run.returncode}")
        if replace and {path: path.stat().st_mode for path in (folder / "in").rglob("*.nc")} != before:
            problems.append("modes of files changed")
        print(f"{killed_workers} workers and {killed_runs} runs killed, {len(twice)} files made more than once")
        return problems


def main() -> None:
    """Run the check, and end with exit code 1 if something is wrong."""
    files, workers, runs, seed = (int(word) for word in [*sys.argv[1:], "100", "50", "20", "0"][:4])
    problems = check(files, workers, runs, seed) + check(files, workers, runs, seed + 1, replace=True)
    print("\n".join(problems) or "all is right")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
