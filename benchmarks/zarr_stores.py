"""Time netCDF-4 files made Zarr stores: ``python benchmarks/zarr_stores.py [--quick] [--rounds N] [--threads N]``.

It prints one table. `tamis repack in.nc out.zarr` proves what it wrote, and makes it durable; xarray's ``to_zarr``, in
Dask's threads, does neither. Filters are zstd in both, chunks the same or others: for these xarray rechunks by Dask, in
memory. (rechunker needs zarr 2, which xarray no longer takes.) Rows of tamis alone: chunks of deflate copied as they
are, and ZFP.

Each run is a process of its own, which reads from the page cache; runs take turns. Figures are medians of elapsed
seconds and of CPU seconds, and peak memory.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

from machine import machine
from xarray_engine import QUICK_SHAPE, SHAPE, write

OTHER = {"time": 48, "lat": 96, "lon": 80}
BY_XARRAY = """
import sys, dask, xarray
source, target, threads, *chunks = sys.argv[1:]
with (
    dask.config.set(scheduler="threads", num_workers=int(threads)),
    xarray.open_dataset(source, engine="netcdf4", chunks={}) as ds,
):
    if chunks:
        ds = ds.chunk(dict(zip(("time", "lat", "lon"), map(int, chunks), strict=True)))
        ds["T"].encoding = {}
    ds["T"].encoding.pop("chunksizes", None)
    ds.to_zarr(target, zarr_format=3)
"""


def commands(source: Path, target: Path, threads: int) -> dict[str, list[str]]:
    """Return the command of each row."""
    repack = [sys.executable, "-m", "tamis", "repack", str(source), str(target), "-j", str(threads)]
    xarray = [sys.executable, "-c", BY_XARRAY, str(source), str(target), str(threads)]
    other = "T:" + "x".join(map(str, OTHER.values()))
    return {
        "same chunks: tamis": [*repack, "-f", "T:zstd(0)"],
        "same chunks: xarray": xarray,
        "other chunks: tamis": [*repack, "-f", "T:zstd(0)", "-c", other],
        "other chunks: xarray": [*xarray, *map(str, OTHER.values())],
        "chunks kept: tamis": repack,
        "zfp(accuracy=0.001): tamis": [*repack, "-f", "T:zfp(accuracy=0.001)"],
    }


def run(command: list[str]) -> tuple[float, float, float]:
    """Run a command; return elapsed seconds, CPU seconds and peak MiB."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command[:4])} failed:\n{errors[-2000:]}")
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Run all rows in turns, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the values, one round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    shape = QUICK_SHAPE if options.quick else SHAPE
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in.nc"), Path(folder, "out.zarr")
        with get_context("spawn").Pool(1) as pool:  # else the peak memory of this process counts for all it starts
            pool.apply(write, (source, "shuffle|deflate(4)", shape))
        rows = commands(source, target, options.threads)
        figures: dict[str, list[tuple[float, float, float]]] = {name: [] for name in rows}
        sizes: dict[str, int] = {}
        for _ in range(1 if options.quick else options.rounds):
            for name, command in rows.items():
                figures[name].append(run(command))
                sizes[name] = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
                shutil.rmtree(target)
    count = shape[0] * shape[1] * shape[2] * 4 >> 20
    print(f"{machine()}; {count} MiB of float32 in {options.threads} threads\n")
    print("| | elapsed | CPU | peak memory | store |\n|---|---|---|---|---|")
    for name, runs in figures.items():
        elapsed, cpu, memory = (statistics.median(column) for column in zip(*runs, strict=True))
        print(f"| {name} | {elapsed:.2f} s | {cpu:.2f} s | {memory:.0f} MiB | {sizes[name] / 1e6:.0f} MB |")


if __name__ == "__main__":
    main()
