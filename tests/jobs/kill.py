"""Kill repack at random moments, and look at what is left: ``python tests/jobs/kill.py [RUNS] [SEED]``.

Each run is a process of its own, forked from one that has imported everything. It is killed (SIGKILL) after a random
time, or a random time after it came to write, to verify or to commit. Then the source must be what it was, the target
what it was or complete, and a run with ``resume`` must give the bytes of one that was never interrupted, and leave
nothing else; every third of these is killed too.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np

import tamis

OLD = b"what was there before"
RECIPES = {
    "x": "zfp(accuracy=0.01)|shuffle|deflate(4)",
    "grp/*": "shuffle|deflate(6)",
    "p": "pack(bound=0.01)|shuffle|deflate(4)",
    "s": "sperr(bound=0.01)|shuffle|deflate(4)",
}
CHUNKS = {"x": (4, 16, 16), "grp/y": (20, 32), "p": (4, 32, 32), "s": (4, 48, 48)}
_SCALE, _FASTER = 1.05, 0.7
PHASES = ("start", "write", "verify", "commit", "end")


def make_source(path: Path) -> None:
    """Make a file with what is stored anew, in other chunks too, what is copied, and what is around it."""
    values = np.random.default_rng(0).standard_normal((24, 96, 96)).cumsum(axis=1).cumsum(axis=2).astype("f4")
    values[:4, :16, :16] = np.nan
    with h5py.File(path, "w") as file:
        made = file.create_dataset("x", data=values, chunks=(1, 96, 96), compression="gzip", compression_opts=1)
        made.attrs["units"] = "K"
        file.create_dataset("p", data=values[:12] + 280, chunks=(1, 96, 96), compression="gzip", compression_opts=1)
        file.create_dataset("s", data=values[12:] / 8, chunks=(1, 96, 96))
        group = file.create_group("grp")
        group["y"] = np.arange(40_000, dtype="i4").reshape(200, 200)
        group.create_dataset("z", data=np.arange(20_000.0), chunks=(1000,), compression="gzip")
        file["kept"] = np.random.default_rng(1).integers(0, 256, 100_000, "u1")


def start(source: Path, target: Path, phase: mmap.mmap, threads: int, *, resume: bool) -> int:
    """Run repack in a process; the first byte of `phase` says how far it came, the next one what was taken over."""
    phase[:2] = b"\0\0"
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        datasets = len(RECIPES) + 1

        def progress(what: str, done: int, total: int) -> None:
            nonlocal datasets
            phase[0] = 1 if what.startswith("writing") else 2
            if phase[0] == 2 and done == total:
                datasets -= 1
                if not datasets:
                    phase[0] = 3

        found = tamis.repack(
            source, target, RECIPES, chunks=CHUNKS, overwrite=True, threads=threads, resume=resume, progress=progress
        )
        phase[1] = any(each.reused_chunks for each in found.datasets)
        phase[0] = 4
        code = 0
    finally:
        os._exit(code)


class Killer:
    """A source, a target, and what a run that is not interrupted makes of them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.source, self.target = folder, folder / "source.h5", folder / "target.h5"
        self.random = random.Random(seed)
        self.phase = mmap.mmap(-1, 2)
        make_source(self.source)
        self.checksum = self.sha256()
        self.complete = b""
        self.seconds = [0.0] * len(PHASES)
        self.scale = _SCALE
        for _ in range(3):
            self.time_phases()
        self.complete = self.target.read_bytes()
        self.seen: Counter[str] = Counter()

    def sha256(self) -> str:
        return hashlib.sha256(self.source.read_bytes()).hexdigest()

    def time_phases(self) -> None:
        """Find out how long each phase takes."""
        began, now = time.perf_counter(), 0
        child = start(self.source, self.target, self.phase, 2, resume=False)
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            if self.phase[0] != now:
                self.seconds[now] = max(self.seconds[now], time.perf_counter() - began)
                began, now = time.perf_counter(), self.phase[0]
            time.sleep(0.0002)
        assert self.phase[0] == 4, "repack failed"

    def kill(self, *, resume: bool) -> str:
        """Run, and kill at some moment; return the phase in which that was."""
        begin = self.random.choice((None, 1, 2, 3))
        seconds = self.scale * (sum(self.seconds) if begin is None else self.seconds[begin])
        child = start(self.source, self.target, self.phase, self.random.choice((1, 2)), resume=resume)
        while begin is not None and self.phase[0] < begin:
            time.sleep(0.0002)
            if os.waitpid(child, os.WNOHANG) != (0, 0):
                assert self.phase[0] == 4, "repack failed"
                return PHASES[4]
        time.sleep(self.random.uniform(0, seconds))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        # Where the machine was slower while phases were timed, all runs would end before they are killed.
        self.scale = _FASTER * self.scale if self.phase[0] == 4 else min(_SCALE, self.scale / _FASTER)
        return PHASES[self.phase[0]]

    def check(self) -> str:
        """Check what is there after a kill; return what the target is."""
        assert self.sha256() == self.checksum, "the source was changed"
        found = self.target.read_bytes()
        assert found in (OLD, self.complete), "the target is neither the old file nor complete"
        return "old" if found == OLD else "complete"

    def finish(self) -> str:
        """Resume to the end, and check that nothing shows what happened."""
        child = start(self.source, self.target, self.phase, self.random.choice((1, 2)), resume=True)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "resuming failed"
        assert self.sha256() == self.checksum, "the source was changed"
        assert self.target.read_bytes() == self.complete, "resumed to other bytes"
        left = sorted(os.listdir(self.folder))
        assert left == ["source.h5", "target.h5"], f"something is left: {left}"
        return "chunks taken over" if self.phase[1] else "nothing to take over"

    def round(self, number: int) -> None:
        """Kill once or twice, and resume."""
        self.target.write_bytes(OLD)
        self.seen[f"killed in: {self.kill(resume=False)}"] += 1
        self.seen[f"target then: {self.check()}"] += 1
        if number % 3 == 0:
            self.seen[f"killed again in: {self.kill(resume=True)}"] += 1
            self.check()
        self.seen[f"resumed: {self.finish()}"] += 1


def kill_runs(folder: Path, runs: int, seed: int, told: Callable[[int], None] = lambda _: None) -> Counter[str]:
    """Kill so many runs; return how often what was seen."""
    killer = Killer(folder, seed)
    for number in range(runs):
        killer.round(number)
        told(number + 1)
    return killer.seen


def main() -> None:
    """Kill, and print what was seen."""
    runs, seed = (int(each) for each in (*sys.argv[1:], *("1000", "0")[len(sys.argv) - 1 :]))
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        seen = kill_runs(Path(folder), runs, seed, lambda done: print(f"\r{done} of {runs}", end="", file=sys.stderr))
    print(f"\n{runs} runs killed, {time.perf_counter() - began:.0f} s; all as promised", file=sys.stderr)
    for what, count in sorted(seen.items()):
        print(f"{what:<40}{count:>6}")


if __name__ == "__main__":
    main()
