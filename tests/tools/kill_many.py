"""Kill runs over many files at random moments: ``python tests/tools/kill_many.py [FILES] [WORKERS] [RUNS] [SEED]``.

`WORKERS` processes that make files are killed (SIGKILL), and as many whole runs as `RUNS` says, each followed by
another run for the same folder; then the same in place, with whole runs only. In the end the targets must have the
bytes of single runs, each file that was complete must not have been made again, files that are replaced keep mode,
owner and access lists, and nothing else may be left. Every tenth file is damaged.

At full size, with files made from real ones, and with a disk that is full twice (a tmpfs, so as root)::

    python tests/tools/kill_many.py 1000 50 20 --in-place 50 --full 2 --data FOLDER
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import h5py
import numpy as np

import tamis
from tamis.jobs.many.state import State

LOSSY, LOSSLESS = "zfp(accuracy=0.01)|shuffle|deflate(4)", "shuffle|deflate(4)"
RECIPE = {"x": LOSSY, "*": LOSSLESS}
RECIPE_OF_REAL = {"*": LOSSY}
TAMIS = str(Path(sys.executable).parent / "tamis")
SIGNATURES = b"\x89HDF", b"CDF"
ACCESS = "system.posix_acl_access"
# Version, and tag, permissions and user of each entry: owner, user 1234, group, mask, others.
ACCESS_LIST = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", *entry)
    for entry in ((1, 6, 0xFFFFFFFF), (2, 4, 1234), (4, 4, 0xFFFFFFFF), (16, 4, 0xFFFFFFFF), (32, 0, 0xFFFFFFFF))
)


def make_sources(folder: Path, count: int, real: Sequence[Path] = ()) -> None:
    """Make files of several sizes, some of which no run can make."""
    values = np.random.default_rng(0).standard_normal((8, 96, 96)).cumsum(axis=1).cumsum(axis=2).astype("f4")
    for number in range(count):
        path = folder / f"{number % 4}" / f"{number:04}.nc"
        path.parent.mkdir(parents=True, exist_ok=True)
        if real:
            make_part(real[number % len(real)], path, number)
        else:
            with h5py.File(path, "w") as file:
                file.create_dataset("x", data=values[: 1 + number % 8] + number, chunks=(1, 96, 96))
                file["y"] = np.arange(1000 + number)
        if number % 10 == 9:
            damage(path, number // 10 if real else 0)
        path.chmod((0o644, 0o600, 0o664)[number % 3])
        if os.geteuid() == 0:
            os.chown(path, 1000 + number % 5, 1000)
        if number % 4 == 0:
            with suppress(OSError):  # a file system without access lists
                os.setxattr(path, ACCESS, ACCESS_LIST)


def make_part(source: Path, path: Path, number: int) -> None:
    """Make a small file of a real one: one step along the first dimension of its largest variable."""
    if source.stat().st_size < 1 << 20:
        path.write_bytes(source.read_bytes())
        return
    import netCDF4

    with netCDF4.Dataset(source) as file, netCDF4.Dataset(path, "w") as new:
        along = max(file.variables.values(), key=lambda variable: variable.size).dimensions[0]
        step = number % len(file.dimensions[along])
        for name, dimension in file.dimensions.items():
            new.createDimension(name, 1 if name == along else len(dimension))
        for name, variable in file.variables.items():
            attributes = {key: variable.getncattr(key) for key in variable.ncattrs()}
            fill = attributes.pop("_FillValue", None)
            made = new.createVariable(
                name, variable.dtype, variable.dimensions, fill_value=fill, zlib=variable.size > 1
            )
            made.setncatts(attributes)
            variable.set_auto_maskandscale(False)
            made.set_auto_maskandscale(False)
            made[...] = variable[
                tuple(slice(step, step + 1) if key == along else slice(None) for key in variable.dimensions)
            ]
        new.setncatts({key: file.getncattr(key) for key in file.ncattrs()})


def damage(path: Path, number: int) -> None:
    """Damage a file in one of several ways."""
    data = path.read_bytes()
    middle, noise = len(data) // 3, np.random.default_rng(number).bytes(500)
    ways = (data[:3000], data[: len(data) * 3 // 5], data[:8] + noise, data[:middle] + noise + data[middle + 500 :])
    path.write_bytes((*ways, b"", b"no file of this kind")[number % 6])


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


def facts(folder: Path) -> dict[Path, tuple[object, ...]]:
    """Return mode, owner and access list of each file."""
    found: dict[Path, tuple[object, ...]] = {}
    for path in folder.rglob("*.nc"):
        status, access = path.stat(), b""
        with suppress(OSError):
            access = os.getxattr(path, ACCESS)
        found[path] = status.st_mode, status.st_uid, status.st_gid, access
    return found


def command_of(recipe: dict[str, str], *words: object) -> list[str]:
    """Return the command of a run."""
    filters = [word for name, text in recipe.items() for word in ("-f", f"{name}:{text}")]
    return [TAMIS, "repack", "-q", *filters, *map(str, words)]


@contextmanager
def small_disk(folder: Path, sizes: Sequence[int], command: list[str]) -> Iterator[int]:
    """Make the folder of targets a disk of some sizes, on each of which a run ends; then enlarge it."""
    if not sizes:
        yield 0
        return
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={sizes[0]}", "tmpfs", folder], check=True)
    try:
        for size in sizes:
            subprocess.run(["mount", "-o", f"remount,size={size}", folder], check=True)
            assert subprocess.run([*command, "--retries", "0"], stderr=subprocess.DEVNULL, check=False).returncode == 1
        found = tamis.status(folder).failures
        subprocess.run(["mount", "-o", f"remount,size={1 << 34}", folder], check=True)
        yield sum("full" in failure.message or "No space" in failure.message for failure in found)
    finally:
        subprocess.run(["umount", folder], check=True)


def check(
    files: int,
    worker_kills: int,
    run_kills: int,
    seed: int,
    *,
    replace: bool = False,
    real: Sequence[Path] = (),
    full: int = 0,
) -> list[str]:
    """Return what is wrong; nothing if all is right."""
    rng = random.Random(seed)
    recipe = RECIPE_OF_REAL if real else RECIPE
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_sources(folder / "in", files, real)
        expected, refused, nbytes = folder / "expected", 0, 0
        for path in sorted((folder / "in").rglob("*.nc")):
            target = expected / path.relative_to(folder / "in")
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                nbytes += tamis.repack(path, target, recipe).target_nbytes
            except tamis.TamisError:
                refused += path.read_bytes().startswith(SIGNATURES)  # others are skipped
                if replace:
                    target.write_bytes(path.read_bytes())
        before = facts(folder / "in")
        out = folder / ("in" if replace else "out")
        words = [folder / "in", "--replace", "--yes"] if replace else [folder / "in", out]
        command = command_of(recipe, *words, "--retries", "5")
        sizes = [nbytes * (number + 1) // (full + 1) for number in range(full)]
        with small_disk(out, sizes, command) as found_full:
            killed_workers, killed_runs, code = kill(command, worker_kills, run_kills, rng)
            problems = problems_of(out, expected, refused, killed_workers + killed_runs + full)
            if code != (1 if refused else 0):
                problems.append(f"expected exit code 1, got {code}")
            if full and not found_full:
                problems.append("no file failed because the disk was full")
            if replace and facts(folder / "in") != before:
                problems.append("mode, owner or access list of files changed")
            lists = sum(bool(access) for *_, access in before.values())
            print(
                f"{killed_workers} workers and {killed_runs} runs killed, disk full {full} times ({found_full} files),"
                f" {refused} of {files} files refused, {lists} with access lists,"
                f" {sum(count > 1 for count in lines_of(out).values())} files made more than once"
            )
            return problems


def kill(command: list[str], worker_kills: int, run_kills: int, rng: random.Random) -> tuple[int, int, int]:
    """Run until nothing more is killed; return the numbers of killed workers and runs, and the last exit code."""
    killed_runs = killed_workers = 0
    while True:
        run = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        end = time.monotonic() + rng.uniform(1.5, 4.0) if killed_runs < run_kills else float("inf")
        while run.poll() is None and time.monotonic() < end:
            time.sleep(rng.uniform(0.3, 0.9))
            workers = children_of(run.pid)
            if killed_workers < worker_kills and workers:
                os.kill(rng.choice(workers), signal.SIGKILL)
                killed_workers += 1
        if run.poll() is not None:
            return killed_workers, killed_runs, run.returncode
        run.kill()
        run.wait()
        killed_runs += 1


def problems_of(out: Path, expected: Path, refused: int, interruptions: int) -> list[str]:
    """Return what is wrong with the targets and the state of a folder."""
    problems = []
    if digests(out) != digests(expected):
        wrong = {key for key, value in (digests(out).items() ^ digests(expected).items())}
        problems.append(f"targets differ from single runs: {sorted(wrong)[:5]}")
    hidden = [str(path) for path in out.rglob(".*") if path.name != ".tamis" and ".tamis" not in path.parts]
    problems += [f"left: {path}" for path in hidden]
    problems += [f"left: {path}" for path in (out / ".tamis" / "claims").iterdir()]
    twice = {path: count for path, count in lines_of(out).items() if count > 1}
    if len(twice) > interruptions:
        problems.append(f"made more than once: {twice}")
    state = State(out)
    state.refresh()
    failed = sum(known.action == "failed" for known in state.known.values())
    return [*problems, f"expected {refused} failed files, got {failed}"] if failed != refused else problems


def main() -> None:
    """Run the check, and end with exit code 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for word, default in (("files", 100), ("workers", 50), ("runs", 20), ("seed", 0)):
        parser.add_argument(word, nargs="?", type=int, default=default)
    parser.add_argument("--in-place", type=int, help="runs that are killed in place; as many as others by default")
    parser.add_argument("--full", type=int, default=0, help="number of times that the disk is full")
    parser.add_argument("--data", type=Path, help="folder with real files, of which small ones are made")
    given = parser.parse_args()
    real = sorted(path for path in given.data.rglob("*") if path.is_file()) if given.data else []
    problems = check(given.files, given.workers, given.runs, given.seed, real=real, full=given.full)
    in_place = given.runs if given.in_place is None else given.in_place
    problems += check(given.files, 0, in_place, given.seed + 1, replace=True, real=real)
    print("\n".join(problems) or "all is right")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
