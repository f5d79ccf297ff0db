"""Time xarray's engines: ``python benchmarks/xarray_engine.py [--quick] [--rounds N] [--threads N]``.

It prints one table. A variable of float32 is opened and read whole, from the page cache: by xarray alone, and in Dask's
threads, one task for each chunk. Engines take turns in one process; figures are medians of seconds, and ratios of
netcdf4 to each engine. What is read is compared. ZFP is read by the filter that each library has by then: since xarray
imports tamis when it looks for engines, that is tamis' own one in h5py and in netCDF4, where tamis registers it, too;
otherwise netCDF4 finds H5Z-ZFP of hdf5plugin.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from machine import machine
from turns import times_in_turns

ENGINES = ("netcdf4", "h5netcdf", "tamis")
FILTERS = ("shuffle|deflate(4)", "zfp(accuracy=0.001)")
SHAPE, QUICK_SHAPE, CHUNKS = (480, 384, 320), (48, 384, 320), (8, 384, 320)


def write(path: Path, filters: str, shape: tuple[int, ...]) -> None:
    """Write a field like temperature: smooth, with noise in the last digits."""
    import xarray

    import tamis

    noise = np.random.default_rng(0).normal(0, 0.01, shape).astype("f4")
    steps = [np.sin(np.linspace(0, 3 + axis, size, dtype="f4")) for axis, size in enumerate(shape)]
    values = 280 + 20 * steps[0][:, None, None] * steps[1][:, None] * steps[2] + noise
    ds = xarray.Dataset({"T": (("time", "lat", "lon"), values)})
    ds.to_netcdf(path, engine="h5netcdf", encoding=tamis.encoding(ds, {"T": filters}, chunks={"T": CHUNKS}))


def read(path: Path, engine: str, chunks: dict[str, int] | None, threads: int) -> np.ndarray:
    """Open a file and read the variable."""
    import dask
    import xarray

    keywords = {"threads": threads} if engine == "tamis" else {}
    with (
        dask.config.set(scheduler="threads", num_workers=threads),
        xarray.open_dataset(path, engine=engine, chunks=chunks, **keywords) as ds,
    ):
        return ds["T"].to_numpy()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the values, for one round")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2, help="of Dask, and of tamis")
    options = parser.parse_args()
    shape, rounds = (QUICK_SHAPE, 1) if options.quick else (SHAPE, options.rounds)
    print(f"{machine()}; {np.prod(shape) * 4 >> 20} MiB in chunks of {'×'.join(map(str, CHUNKS))}\n")
    print(f"| filters | read by | {' | '.join(ENGINES)} |")
    print(f"|---|---|{'---|' * len(ENGINES)}")
    with tempfile.TemporaryDirectory() as folder:
        for filters in FILTERS:
            path = Path(folder) / "field.nc"
            write(path, filters, shape)
            for name, chunks in {"xarray": None, f"{options.threads} threads of Dask": {}}.items():
                calls: list[Callable[[], np.ndarray]] = [
                    partial(read, path, engine, chunks, options.threads) for engine in ENGINES
                ]
                if not all(np.array_equal(call(), calls[-1]()) for call in calls):
                    raise SystemExit(f"expected the same values of all engines, got others: {filters}")
                times = [statistics.median(own) for own in times_in_turns(calls, rounds)]
                row = " | ".join(f"{own:.2f} s, {times[0] / own:.1f}×" for own in times)
                escaped = filters.replace("|", "\\|")
                print(f"| `{escaped}` | {name} | {row} |", flush=True)


if __name__ == "__main__":
    if "HDF5_PLUGIN_PATH" not in os.environ:  # libhdf5 reads it once, when it starts
        import hdf5plugin

        again = [sys.executable, *sys.argv]
        sys.exit(
            subprocess.run(again, check=False, env=os.environ | {"HDF5_PLUGIN_PATH": hdf5plugin.PLUGIN_PATH}).returncode
        )
    main()
