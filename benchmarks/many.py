"""Folders of files, and one huge file, and opening many files.

``python benchmarks/many.py [--rounds N] [--large N] [--small N] [--huge GIB] [--open N]``

`tamis repack` with two processes, which proves every value, records what it did, and makes each file durable, against
nccopy in GNU parallel with two jobs, which does none of these: without loss, and with tamis' plugin for zfp. The files
are copies of the sample (3.9 MB), and small ones (22 kB). The table has the median of wall time, of the processor time
of all processes, the largest number of bytes in the folder of targets, temporary files included, and the memory of the
largest process.

The huge file is made by two threads of one process, and by two processes beside the one that writes, as netCDF-4 and as
Zarr; the targets of a format must have the same bytes. ``--huge 8`` needs 16 GB of room; ``--large 0 --small 0`` makes
no other files.

``--open N`` opens N files of one series by `xarray.open_mfdataset`, with two steps each, and also by engines that open
nothing, because all is in memory: less than these take, no engine can. All but netcdf4 also open them with
``parallel=True``, in Dask's threads, in which netcdf4 often ends the process.
"""

from __future__ import annotations

import argparse
import hashlib
import os
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
from tamis.safety.disk import sha256_of

SAMPLE = Path(__file__).parents[1] / "examples" / "data" / "cam_ts.nc"
TAMIS = str(Path(sys.executable).parent / "tamis")
LOSSLESS, LOSSY = "shuffle|deflate(4)", "zfp(accuracy=0.1)"


class Cost(NamedTuple):
    """What a command took."""

    seconds: float
    processor: float
    peak_nbytes: int
    memory_nbytes: int


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


def make_huge(path: Path, gib: float) -> None:
    """Make a file with a variable of so many GiB."""
    planes, steps = round(gib * 1024), 8
    field = np.random.default_rng(0).standard_normal((steps, 512, 512)).cumsum(axis=1).cumsum(axis=2)
    field = (field / 50 + 280).astype("f4")
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        variable = file.create_dataset("TS", (planes, 512, 512), "f4", chunks=(steps, 128, 128))
        for begin in range(0, planes, steps):
            variable[begin : begin + steps] = field[: planes - begin] * np.float32(1 + begin / 1e5)


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
    begin = time.perf_counter()
    with tempfile.TemporaryFile() as told:
        process = subprocess.Popen(command, stdout=told, stderr=told, env=environment())
        _, status, usage = os.wait4(process.pid, 0)  # with all processes that it waited for
        seconds, process.returncode = time.perf_counter() - begin, os.waitstatus_to_exitcode(status)
        is_done.set()
        watcher.join()
        told.seek(0)
        if process.returncode:
            sys.exit(f"{' '.join(command[:5])} …: exit code {process.returncode}: {told.read()[-500:].decode()}")
    return Cost(seconds, usage.ru_utime + usage.ru_stime, max(peak[0], nbytes_in(out)), usage.ru_maxrss << 10)


def environment() -> dict[str, str]:
    return {**os.environ, "HDF5_PLUGIN_PATH": str(tamis.plugin_path())}


def nbytes_in(folder: Path) -> int:
    """Return the bytes of files, some of which may go away meanwhile, or have two names."""
    sizes: dict[int, int] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                status = os.stat(os.path.join(place, name))
                sizes[status.st_ino] = status.st_size
    return sum(sizes.values())


def digest_of(target: Path) -> str:
    """Return a checksum of a file, or of all files of a folder with their paths."""
    files = [target] if target.is_file() else sorted(path for path in target.rglob("*") if path.is_file())
    return hashlib.sha256("".join(f"{path}: {sha256_of(path)}\n" for path in files).encode()).hexdigest()


def commands(source: Path, out: Path) -> dict[str, list[str]]:
    """Return the commands by what they do."""
    each = ["parallel", "--will-cite", "-j2", "nccopy"]
    if (path := source / "huge.nc").exists():
        rows = {}
        for label, name in (("", "huge.nc"), (", Zarr", "huge.zarr")):
            repack = [TAMIS, "repack", str(path), str(out / name), "--quiet", "-f", f"TS:{LOSSY}"]
            rows[f"two threads{label}"] = [*repack, "-j", "2"]
            rows[f"two workers{label}"] = [*repack, "--workers", "2", "-j", "1"]
        return rows
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


def print_opening(count: int, rounds: int) -> None:
    """Print a table of what it takes to open many files as one dataset."""
    import memory_engine
    import xarray as xr

    engines = {
        "tamis": "tamis",
        "netcdf4": "netcdf4",
        "all in memory, xarray decodes it": memory_engine.DecodedByXarray,
        "datasets that exist": memory_engine.Ready,
    }
    joined = {"data_vars": "minimal", "coords": "minimal", "compat": "override", "join": "override"}
    with tempfile.TemporaryDirectory() as name, xr.open_dataset(SAMPLE, engine="tamis", decode_times=False) as ds:
        files = [f"{name}/{number:04}.nc" for number in range(count)]
        first = ds.isel(time=slice(0, 2)).load()
        for number, file in enumerate(files):
            first.assign_coords(time=first["time"] + 2 * number).to_netcdf(file, engine="netcdf4")
            for known, decoded in ((memory_engine.STORED, False), (memory_engine.DECODED, True)):
                with xr.open_dataset(file, engine="tamis", decode_cf=decoded) as opened:
                    known[file] = opened.load()
        rows = [(label, False) for label in engines] + [(label, True) for label in engines if label != "netcdf4"]
        costs: dict[tuple[str, bool], list[tuple[float, float]]] = {row: [] for row in rows}
        for _ in range(rounds):
            for label, parallel in rows:
                how = {**joined, "engine": engines[label], "parallel": parallel}
                begin, processor = time.perf_counter(), time.process_time()
                opened = xr.open_mfdataset(files, combine="nested", concat_dim="time", **how)
                costs[label, parallel].append((time.perf_counter() - begin, time.process_time() - processor))
                opened.close()
    print("\n| engine | ms a file | processor ms a file |\n|---|--:|--:|")
    for (label, parallel), found in costs.items():
        seconds, processor = (statistics.median(column) / count for column in zip(*found, strict=True))
        print(f"| {label}{', parallel=True' * parallel} | {seconds * 1e3:.1f} | {processor * 1e3:.1f} |")


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large", type=int, default=24, help="number of files of 3.9 MB")
    parser.add_argument("--small", type=int, default=300, help="number of files of 22 kB")
    parser.add_argument("--huge", type=float, default=0.5, help="GiB of values in the huge file")
    parser.add_argument("--open", type=int, metavar="N", help="only open so many files as one dataset of xarray")
    options = parser.parse_args()
    if options.open:
        print(machine())
        print_opening(options.open, options.rounds)
        return
    for program in ("parallel", "nccopy"):
        if shutil.which(program) is None:
            sys.exit(f"expected {program}, found none: apt-get install parallel netcdf-bin")
    print(machine())
    print("\n| files | command | seconds | processor seconds | peak MB | memory MB |\n|---|---|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder / "in", options.large, options.small)
        if options.huge:
            make_huge(folder / "in" / "huge" / "huge.nc", options.huge)
        sums: dict[str, set[str]] = {}
        for kind in sorted(path.name for path in (folder / "in").iterdir()):
            rows = commands(folder / "in" / kind, folder / "out")
            costs: dict[str, list[Cost]] = {label: [] for label in rows}
            for _ in range(options.rounds):
                for label, command in rows.items():
                    costs[label].append(cost_of(command, folder / "out"))
                    for target in (folder / "out").glob("huge.*"):
                        sums.setdefault(target.suffix, set()).add(digest_of(target))
            for label, found in costs.items():
                seconds, processor, peak, memory = map(statistics.median, zip(*found, strict=True))
                numbers = f"{seconds:.2f} | {processor:.2f} | {peak / 1e6:.1f} | {memory / 1e6:.0f}"
                print(f"| {kind} | {label} | {numbers} |", flush=True)
        if any(len(found) > 1 for found in sums.values()):
            sys.exit("expected the same bytes by threads and by workers, found different ones")


if __name__ == "__main__":
    main()
