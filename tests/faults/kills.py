"""End each job at random moments: ``python tests/faults/kills.py [SECONDS] [SEED] [JOB]...``.

A process does a job of `sweep.py`, and gets SIGKILL, SIGTERM or SIGINT at a moment of its usual duration. Then the
target must be as before, or complete; after SIGTERM and SIGINT the process must have ended soon, and left nothing
beside. Then the job runs again, undisturbed: it must end with a complete target, with nothing left beside it.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter

from sweep import OLD_IN_STORE, ZARR, Fault, Job, Outcome, Sweeper, begin, is_complete, leftovers, own_folder

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
SECONDS = 60
"""How long jobs are ended unless the command says otherwise."""
SOON = 10.0
"""Seconds in which a signal ends a job, on a machine that does much else."""

UNDISTURBED = Fault("")


class Killer(Sweeper):
    """A sweeper that ends jobs by signals, instead of failing calls."""

    moment, signal = 0.0, 0
    late = False
    """Whether the last job went on for long after its signal."""

    def wait(self, child: int, seconds: float = 120.0) -> int:
        """Send the chosen signal at the chosen moment, and wait for the end."""
        if not self.signal:
            return super().wait(child, seconds)
        time.sleep(self.moment)
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        os.kill(child, self.signal)
        began = time.monotonic()
        status = super().wait(child, seconds)
        self.late = time.monotonic() - began > SOON
        return status

    def ended(self, job: Job, moment: float, number: int) -> tuple[Outcome, str]:
        """End a job by a signal; return how it ended, and what is wrong."""
        self.moment, self.signal, self.late = moment, number, False
        outcome = self.attempt(job, UNDISTURBED)
        self.signal = 0
        wrong = self.problem(job, outcome, number)
        if self.read_sources() != self.sources:
            wrong = "a source that changed"
        return outcome, wrong

    def problem(self, job: Job, outcome: Outcome, number: int) -> str:
        """Return what is wrong after a signal, and after the job ran again."""
        if self.late:
            return f"it ended more than {SOON:.0f} s after the signal"
        if job.name in ("verify", "write", "Appender"):  # which have no target, or write into a file that is open
            return ""
        target = self.folder / "out" / job.target
        old = target / OLD_IN_STORE if job.target == ZARR else target
        content = (old.read_bytes() if old.exists() else b"") if target.exists() else None
        if content != job.old and not is_complete(target):
            return "a target that is neither old nor complete"
        is_command = job.name not in ("to_netcdf", "to_zarr")
        if number != signal.SIGKILL and is_command and not job.resumed and leftovers(self.folder):
            return f"left over: {leftovers(self.folder)}"
        is_new = content == job.old
        again = self.attempt(job, UNDISTURBED, again=True)
        if again.code and (is_new or "File exists" not in again.text):
            return f"the job cannot run again: {again.text[-300:]!r}"
        if not is_complete(target):
            return "no complete target after the job ran again"
        return f"left over after the job ran again: {leftovers(self.folder)}" if leftovers(self.folder) else ""


def main() -> None:
    """End jobs for some time, and print what was seen."""
    seconds, seed, jobs = begin(__file__)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets its background jobs ignore it
    chosen = random.Random(seed)
    seen: Counter[str] = Counter()
    codes: Counter[int] = Counter()
    wrong = 0
    with own_folder() as folder:
        killer = Killer(os.environ["FAULT_LIBRARY"], folder)
        durations = {}
        for job in jobs:
            began = time.monotonic()
            killer.count(job)
            durations[job] = time.monotonic() - began
        end = time.monotonic() + (seconds or SECONDS)
        while time.monotonic() < end:
            job, number = chosen.choice(jobs), chosen.choice(SIGNALS)
            moment = chosen.uniform(0, 1.1 * durations[job])
            outcome, text = killer.ended(job, moment, number)
            seen[job.name] += 1
            codes[outcome.code] += 1
            wrong += bool(text)
            if text:
                name = signal.Signals(number).name
                print(f"{job.name}: {name} after {moment:.4f} s: {text}: {outcome.code}, {outcome.text[-400:]!r}")
        print(", ".join(f"{name} {count}" for name, count in sorted(seen.items())))
        print("exit codes: " + ", ".join(f"{code}: {count}" for code, count in sorted(codes.items())))
        print(f"{seen.total()} signals, {wrong} not as promised")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
