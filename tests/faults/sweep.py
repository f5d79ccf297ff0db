"""Let each system call fail once: ``python tests/faults/sweep.py [MOST] [SEED] [JOB]...``.

A library for LD_PRELOAD (`failing_calls.c`) counts the calls of a job on the files of a folder, and lets one of them
fail. For each a process, forked from one that has imported everything, does the job and ends as Python ends. With MOST,
so many calls of each kind and job are chosen at random; otherwise, and with 0, every call fails in every way.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
OLD = b"what was there before"
ZARR, OLD_IN_STORE = "target.zarr", "old"
PARTS = ("in/first.nc", "in/second.nc")
"""Files whose steps are those of the source, one after the other."""
SHORT = 0
ERRORS = {
    "open": (errno.EIO, errno.ENOSPC),
    "read": (errno.EIO, errno.EINTR, SHORT),
    "write": (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EINTR, SHORT),
    "sync": (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EINTR),
    "truncate": (errno.EIO, errno.ENOSPC),
    "rename": (errno.EIO, errno.EDQUOT),
    "link": (errno.EIO, errno.EPERM, errno.ENOSPC),
    "unlink": (errno.EIO,),
    "close": (errno.EIO, errno.EDQUOT, errno.EINTR),
    "lock": (errno.ENOLCK, errno.EIO),
    "attribute": (errno.ENOTSUP, errno.ENOSPC),
    "folder": (errno.EIO, errno.ENOSPC),
}
HARMLESS = {("read", errno.EINTR), ("read", SHORT), ("write", errno.EINTR), ("write", SHORT), ("sync", errno.EINTR)}
"""After these a program calls again."""

FILTERS = "zfp(accuracy=0.01)|shuffle|deflate(4)"
SHAPE, CHUNKS = (6, 64, 64), (2, 32, 32)


class Outcome(NamedTuple):
    """How a process ended: its exit code, negative for a signal, and what it printed."""

    code: int
    text: str


class Fault(NamedTuple):
    """Which call fails, counted from 0, and how; none if the number is negative."""

    kind: str
    number: int = -1
    error: int = 0

    def __str__(self) -> str:
        return f"{self.kind} {self.number}, {errno.errorcode.get(self.error, 'short')}"


class Job(NamedTuple):
    """What is done, what its target is before, the folder whose calls fail, and the name of the target."""

    name: str
    run: Callable[[Path], int]
    folder: str = "out"
    old: bytes | None = None
    resumed: bool = False
    target: str = "target.h5"


def tamis_command(*words: object) -> int:
    """Run the command line; return its exit code. What it raises ends in a traceback."""
    from tamis.cli import main

    try:
        main([str(word) for word in words], prog_name="tamis")
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def repack(
    *options: str, filters: str = "", target: str = "target.h5", chunks: str = "2x32x32"
) -> Callable[[Path], int]:
    """Run `tamis repack`."""
    arguments = ("-f", f"x:{filters or FILTERS}", "-c", f"x:{chunks}", "-j", 1, *options)
    return lambda folder: tamis_command("repack", folder / "in/source.h5", folder / "out" / target, *arguments)


def verify(folder: Path) -> int:
    """Run `tamis verify`."""
    return tamis_command("verify", folder / "in/source.h5", folder / "in/same.h5", "-j", 1)


def combine(target: str) -> Callable[[Path], int]:
    """Run `tamis repack --combine`."""
    arguments = ("--combine", "time", "-f", f"x:{FILTERS}", "-c", "x:2x32x32", "-j", 1, "--overwrite")
    return lambda folder: tamis_command(
        "repack", *(folder / part for part in PARTS), folder / "out" / target, *arguments
    )


def export(folder: Path) -> int:
    """Run `tamis export`."""
    return tamis_command(
        "export", folder / PARTS[0], "--to", "kerchunk", "-o", folder / "out/target.json", "--overwrite"
    )


def report(folder: Path) -> int:
    """Run `tamis report`."""
    return tamis_command(
        "report", folder / PARTS[0], folder / PARTS[0], "-o", folder / "out/target.html", "--overwrite"
    )


def copy(folder: Path) -> int:
    """Run `tamis copy`."""
    arguments = ("-F", "x,32013,3,0,0.01d", "-j", 1, "--overwrite")
    return tamis_command("copy", folder / "in/source.h5", folder / "out/target.nc", *arguments)


def plan(folder: Path) -> int:
    """Run `tamis plan`, which writes a recipe."""
    arguments = ("--want", "x:abs=0.01", "--overwrite", "-o", folder / "out/target.toml")
    return tamis_command("plan", folder / "in/source.h5", *arguments)


def page(folder: Path) -> int:
    """Run `tamis inspect`, which writes a page."""
    return tamis_command("inspect", folder / "in/source.h5", "--overwrite", "--html", folder / "out/target.html")


def save(target: str) -> Callable[[Path], int]:
    """Save a dataset of xarray, `Dataset.tamis.to_netcdf` or `to_zarr`."""

    def run(folder: Path) -> int:
        import xarray

        import tamis

        dataset = xarray.Dataset({"x": (("time", "y", "x_axis"), values())})
        path = folder / "out" / target
        try:
            if target == ZARR:
                dataset.tamis.to_zarr(path, {"x": FILTERS}, overwrite=True, threads=1)
            else:
                dataset.tamis.to_netcdf(path, {"x": FILTERS}, overwrite=True, threads=1)
        except tamis.TamisError as error:
            print(f"tamis: {error}", flush=True)
            return 1
        return 0

    return run


def with_file(action: Callable[[Any], None]) -> Callable[[Path], int]:
    """Do something with a new file of h5py, which may raise what it likes when it is opened and closed."""

    def run(folder: Path) -> int:
        import h5py

        from tamis import TamisError

        code = 0
        try:
            with h5py.File(folder / "out/target.h5", "w") as file:
                try:
                    action(file)
                except TamisError as error:
                    print(f"tamis: {error}", flush=True)
                    code = 1
                except Exception:  # tamis should have raised an error of its own
                    traceback.print_exc()
                    code = 1
        except (OSError, RuntimeError) as error:
            print(f"h5py: {error}", flush=True)
            code = 1
        return code

    return run


def write(file: Any) -> None:
    """Write a dataset."""
    import tamis

    tamis.hdf5.write(file, "x", values(), filters=FILTERS, chunks=CHUNKS, threads=1)


def append(file: Any) -> None:
    """Append steps to a dataset."""
    import tamis

    dataset = tamis.hdf5.create_dataset(
        file, "x", (0, *SHAPE[1:]), "f4", chunks=CHUNKS, maxshape=(None, *SHAPE[1:]), filters=FILTERS
    )
    with tamis.hdf5.Appender(dataset, threads=1) as appender:
        for step in values():
            appender.append(step)


def values() -> Any:
    """Return a field with missing values."""
    import numpy as np

    field = np.random.default_rng(0).standard_normal(SHAPE).cumsum(axis=1).astype("f4")
    field[0, 3, 4:9] = np.nan
    return field


def is_complete(path: Path) -> bool:
    """Tell whether a file has all that it shall have: all values within the bound, or the whole page or recipe."""
    if path.suffix == ".html":
        return path.read_text().rstrip().endswith("</html>")
    if path.suffix == ".toml":
        return [each["name"] for each in tomllib.loads(path.read_text()).get("variable", [])] == ["/x"]
    import numpy as np

    import tamis

    try:
        stored = np.asarray(tamis.open(path, unpack=True, allow_outside=path.suffix == ".json")["x"])
    except Exception:
        return False
    expected = values()[:3] if path.suffix == ".json" else values()
    return stored.shape == expected.shape and bool(np.allclose(stored, expected, rtol=0, atol=0.01, equal_nan=True))


JOBS = (
    Job("repack", repack()),
    Job("repack --overwrite", repack("--overwrite"), old=OLD),
    Job("repack --resume", repack("--resume"), resumed=True),
    Job("repack companion", repack("--missing", "mask")),
    Job("repack packed", repack(filters="pack(bound=0.01)|shuffle|deflate(4)")),
    Job("repack, source", repack(), "in"),
    # 96 chunks, each with a folder of its own, which are synced all at once.
    Job("repack to Zarr", repack("--overwrite", target=ZARR, chunks="1x16x16"), old=OLD, target=ZARR),
    Job("write", with_file(write)),
    Job("Appender", with_file(append)),
    Job("verify", verify, "in"),
    Job("combine", combine("target.nc"), old=OLD, target="target.nc"),
    Job("combine to Zarr", combine(ZARR), target=ZARR),
    Job("export", export, old=OLD, target="target.json"),
    Job("report", report, old=OLD, target="target.html"),
    Job("copy", copy, old=OLD, target="target.nc"),
    Job("plan", plan, old=OLD, target="target.toml"),
    Job("inspect", page, old=OLD, target="target.html"),
    Job("to_netcdf", save("target.nc"), old=OLD, target="target.nc"),
    Job("to_zarr", save(ZARR), old=OLD, target=ZARR),
)


def problem(job: Job, folder: Path, outcome: Outcome, fault: Fault) -> str:
    """Return what is wrong after a call failed; nothing if all is as promised."""
    if outcome.code not in (0, 1):
        return f"exit code {outcome.code}"
    if outcome.code and (fault.kind, fault.error) in HARMLESS:
        return "a failure where the system had to be asked again"
    if not outcome.code and fault.kind == "sync" and (fault.kind, fault.error) not in HARMLESS:
        return "a failing fsync that nothing reports"
    for word in ("Traceback", "Exception ignored", "closed twice"):
        if word in outcome.text:
            return word
    if outcome.code and "h5py: " not in outcome.text:
        if os.strerror(fault.error) not in outcome.text:
            return "the message has no cause"
        if str(folder) not in outcome.text:
            return "the message has no file"
    if job.name == "verify":
        return ""
    if job.name in ("write", "Appender"):
        complete = outcome.code or is_complete(folder / "out/target.h5")
        return "" if complete else "no error, and the values are not there"
    return target_problem(job, folder, outcome)


def target_problem(job: Job, folder: Path, outcome: Outcome) -> str:
    """Return what is wrong with the target of repack and the files beside it."""
    target = folder / "out" / job.target
    old = target / OLD_IN_STORE if job.target == ZARR else target
    content = (old.read_bytes() if old.exists() else b"") if target.exists() else None
    complete = content not in (None, job.old) and is_complete(target)
    if not complete and outcome.code == 0:
        return "exit code 0 without a complete target"
    if not complete and content != job.old:
        return "a target that is neither old nor complete"
    if complete and outcome.code == 1 and "complete" not in outcome.text:
        return "a complete target that the message does not mention"
    beside = leftovers(folder)
    # What cannot be removed is named, and what --resume takes.
    unnamed = [name for name in beside if name.removesuffix("-journal") not in outcome.text]
    return f"left over: {unnamed}" if unnamed else ""


def leftovers(folder: Path) -> list[str]:
    """List what is beside the target."""
    targets = {job.target for job in JOBS}
    return sorted(name for name in os.listdir(folder / "out") if name not in targets)


class Sweeper:
    """The library for LD_PRELOAD, which this process must have been started with, and a folder to work in."""

    def __init__(self, path: str, folder: Path) -> None:
        self._calls = ctypes.CDLL(path)
        self._calls.fault_arm.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_long, ctypes.c_int]
        self._calls.fault_count.argtypes, self._calls.fault_count.restype = [ctypes.c_char_p], ctypes.c_long
        self.folder = folder
        make_sources(folder)
        self.sources = self.read_sources()
        self.leave_something()

    def read_sources(self) -> list[bytes]:
        """Read the sources."""
        return [path.read_bytes() for path in sorted((self.folder / "in").iterdir())]

    def leave_something(self) -> None:
        """Keep what a run left that failed late, for others to resume."""
        job = next(job for job in JOBS if job.resumed)
        (self.folder / "left").mkdir()
        for number in reversed(range(self.count(job)["write"])):
            outcome = self.attempt(job, Fault("write", number, errno.ENOSPC))
            if len(leftovers(self.folder)) == 2 and "chunks" in outcome.text:
                shutil.rmtree(self.folder / "left")
                shutil.copytree(self.folder / "out", self.folder / "left")
                return
        raise AssertionError("no run left anything")

    def count(self, job: Job) -> dict[str, int]:
        """Do a job while nothing fails; return the number of its calls of each kind."""
        outcome = self.attempt(job, Fault(""))
        assert outcome.code == 0, (job.name, outcome)
        return dict(zip(ERRORS, map(int, (self.folder / "counted").read_text().split()), strict=True))

    def attempt(self, job: Job, fault: Fault, *, again: bool = False) -> Outcome:
        """Do a job in a process."""
        if not again:
            self.prepare(job)
        printed, counted = self.folder / "printed", self.folder / "counted"
        if not (child := os.fork()):
            handle = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(handle, 1)
            os.dup2(handle, 2)
            where = os.fsencode(self.folder / job.folder)
            self._calls.fault_arm(where, fault.kind.encode(), fault.number, fault.error)
            try:
                code = job.run(self.folder)
            finally:
                counted.write_text(" ".join(str(self._calls.fault_count(kind.encode())) for kind in ERRORS))
            raise SystemExit(code)  # and not os._exit: HDF5 closes what is open when Python ends
        status = self.wait(child)
        return Outcome(os.waitstatus_to_exitcode(status), printed.read_text(errors="replace"))

    def wait(self, child: int, seconds: float = 120.0) -> int:
        """Wait for a process, which is killed after some seconds; return how it ended."""
        status, limit = (0, 0), time.monotonic() + seconds
        while status == (0, 0):
            time.sleep(0.001)
            status = os.waitpid(child, os.WNOHANG)
            if status == (0, 0) and time.monotonic() > limit:
                os.kill(child, signal.SIGKILL)
        return status[1]

    def prepare(self, job: Job) -> None:
        """Make the folder of the target what a job begins with."""
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        if job.resumed:
            shutil.copytree(self.folder / "left", self.folder / "out")
            return
        (self.folder / "out").mkdir()
        if job.old is not None and job.target == ZARR:
            store = self.folder / "out" / ZARR
            store.mkdir()
            (store / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
            (store / OLD_IN_STORE).write_bytes(job.old)
        elif job.old is not None:
            (self.folder / "out" / job.target).write_bytes(job.old)

    def check(self, job: Job, fault: Fault) -> tuple[Outcome, str]:
        """Do a job while a call fails; return how it ended, and what is wrong with that."""
        outcome = self.attempt(job, fault)
        wrong = problem(job, self.folder, outcome, fault)
        if self.read_sources() != self.sources:
            wrong = "a source that changed"
        if not wrong and job.resumed and outcome.code and fault.kind != "unlink":
            again = self.attempt(job, Fault(""), again=True)
            if again.code or not is_complete(self.folder / "out/target.h5") or leftovers(self.folder):
                wrong = f"what is left cannot be resumed ({again.text[-300:]!r}, {leftovers(self.folder)})"
        return outcome, wrong

    def sweep(self, jobs: Sequence[Job], most: int, chosen: random.Random) -> Iterator[tuple[Job, Fault, Outcome, str]]:
        """Yield job, call, how it ended and what is wrong with that, for each call that fails."""
        counts = {job: self.count(job) for job in jobs}
        for job, (kind, errors) in itertools.product(jobs, ERRORS.items()):
            faults = [Fault(kind, number, error) for number in range(counts[job][kind]) for error in errors]
            if most and len(faults) > most:
                faults = chosen.sample(faults, most)
            for fault in faults:
                yield job, fault, *self.check(job, fault)


def make_sources(folder: Path) -> None:
    """Make two files with the same content, and two that have the first and the last steps."""
    import h5py
    import xarray

    (folder / "in").mkdir()
    for part, steps in zip(PARTS, (slice(0, 3), slice(3, 6)), strict=True):
        dataset = xarray.Dataset({"x": (("time", "y", "x_axis"), values()[steps])}, {"time": range(6)[steps]})
        dataset.to_netcdf(folder / part, engine="h5netcdf", unlimited_dims=["time"])
    with h5py.File(folder / "in/source.h5", "w", libver="v108") as file:
        file.create_dataset("x", data=values(), chunks=(3, 64, 64))
        file.create_group("group")["kept"] = b"kept"
        file["group/kept"].attrs["units"] = "K"
        for number in range(9):  # more than 8 are in a heap, whose end HDF5 cuts off when it closes the copy
            file["x"].attrs[f"note {number}"] = "x" * 100
    shutil.copy(folder / "in/source.h5", folder / "in/same.h5")


def start(script: str, arguments: list[str]) -> int:
    """Compile the library, and run a script in a process that is started with it."""
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/failing_calls.so"
        compiler = [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1"]
        subprocess.run([*compiler, "-o", library, HERE / "failing_calls.c", "-ldl"], check=True)
        environment = os.environ | {"LD_PRELOAD": library, "FAULT_LIBRARY": library, "OPENBLAS_NUM_THREADS": "1"}
        return subprocess.run([sys.executable, script, *arguments], env=environment, check=False).returncode


def begin(script: str) -> tuple[int, int, list[Job]]:
    """Run a script in a process that has the library and has imported all; return its numbers and jobs."""
    words = sys.argv[1:]
    if "FAULT_LIBRARY" not in os.environ:
        sys.exit(start(script, words))
    import_all()
    first, seed = (int(word) for word in (*words, "0", "0")[:2])
    return first, seed, jobs_of(words[2:])


@contextmanager
def own_folder() -> Iterator[Path]:
    """Yield a folder that this process, but none that is forked from it, removes at the end."""
    owner, folder = os.getpid(), Path(tempfile.mkdtemp())
    try:
        yield folder
    finally:
        if os.getpid() == owner:
            shutil.rmtree(folder)


def jobs_of(names: Sequence[str]) -> list[Job]:
    """Return the jobs of some names, or all."""
    jobs = [job for job in JOBS if job.name in names or not names]
    if not jobs:
        sys.exit(f"expected names of jobs, got {', '.join(names)}: {', '.join(job.name for job in JOBS)}")
    return jobs


def import_all() -> None:
    """Import what jobs need before they are forked, so that they cost little."""
    import tamis

    for name in ("copy", "export", "inspect", "plan", "repack", "report", "verify"):
        import_module(f"tamis.cli.commands.{name}")
    tamis.config()


def main() -> None:
    """Sweep, and print what was seen."""
    most, seed, jobs = begin(__file__)
    began = time.monotonic()
    seen: Counter[tuple[str, str]] = Counter()
    codes: Counter[int] = Counter()
    wrong = 0
    with own_folder() as folder:
        sweeper = Sweeper(os.environ["FAULT_LIBRARY"], folder)
        for job, fault, outcome, text in sweeper.sweep(jobs, most, random.Random(seed)):
            seen[job.name, fault.kind] += 1
            codes[outcome.code] += 1
            wrong += bool(text)
            if text:
                print(f"{job.name}: {fault}: {text}: exit code {outcome.code}, {outcome.text[-400:]!r}", flush=True)
        for job in jobs:
            kinds = ", ".join(f"{kind} {count}" for (name, kind), count in seen.items() if name == job.name)
            print(f"{job.name:<20}{kinds}")
        print(f"exit code 0: {codes[0]}, 1: {codes[1]}")
        print(f"{seen.total()} failing calls, {wrong} not as promised, {time.monotonic() - began:.0f} s")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
