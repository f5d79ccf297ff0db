"""Time xarray's engines: ``python benchmarks/xarray_engine.py [--quick] [--rounds N] [--threads N]``.

It prints one table. A variable of float32 is opened and read whole, from the page cache: by xarray alone, and in Dask's
threads, one task for each chunk. Figures are medians of seconds, and ratios of netcdf4 to each engine. What is read is
compared.

Each engine has a process of its own, and they take turns. netcdf4 and h5netcdf are as users have them today: tamis
cannot be imported there, and ZFP is read by the filter H5Z-ZFP of hdf5plugin. In the last column netcdf4 reads ZFP by
the filter of tamis, which ``import tamis`` gives it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
from machine import machine

FILTERS = ("shuffle|deflate(4)", "zfp(accuracy=0.001)")
SHAPE, QUICK_SHAPE, CHUNKS = (480, 384, 320), (48, 384, 320), (8, 384, 320)
WITH_FILTER = "netcdf4, filter of tamis"
READERS = ("netcdf4", "h5netcdf", "tamis", WITH_FILTER)


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


class Reader:
    """A process that reads by one engine whenever it is asked to."""

    def __init__(self, name: str, threads: int) -> None:
        import hdf5plugin

        self.name = name
        command = [sys.executable, __file__, "--threads", str(threads), "--read-by", name]
        environment = os.environ | {"HDF5_PLUGIN_PATH": hdf5plugin.PLUGIN_PATH}
        self._process = subprocess.Popen(
            command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def ask(self, path: Path, use_dask: bool) -> tuple[float, str]:
        """Return seconds and a digest of the values."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(int(use_dask), path, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline().split()
        if len(answer) != 2:
            raise SystemExit(f"{self.name}: cannot read {path}")
        return float(answer[0]), answer[1]


def answer(name: str, threads: int) -> None:
    """Read files whose paths come in, and print seconds and digests."""
    if name in ("netcdf4", "h5netcdf"):
        sys.modules["tamis"] = None  # type: ignore[assignment]
        import hdf5plugin  # noqa: F401 - gives h5py its filters
    elif name == WITH_FILTER:
        import tamis  # noqa: F401 - gives netCDF4 its filter
    warnings.filterwarnings("ignore", message="Engine 'tamis' loading failed")
    for line in sys.stdin:
        use_dask, path = line.rstrip("\n").split(" ", 1)
        begin = time.perf_counter()
        values = read(Path(path), name.partition(",")[0], {} if int(use_dask) else None, threads)
        seconds = time.perf_counter() - begin
        print(seconds, hashlib.blake2b(values).hexdigest(), flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the values, for one round")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2, help="of Dask, and of tamis")
    parser.add_argument("--read-by", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read_by:
        return answer(options.read_by, options.threads)
    shape, rounds = (QUICK_SHAPE, 1) if options.quick else (SHAPE, options.rounds)
    print(f"{machine()}; {np.prod(shape) * 4 >> 20} MiB in chunks of {'×'.join(map(str, CHUNKS))}\n")
    print(f"| filters | read by | {' | '.join(READERS)} |")
    print(f"|---|---|{'---|' * len(READERS)}")
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        readers = [stack.enter_context(Reader(name, options.threads)) for name in READERS]
        for filters in FILTERS:
            path = Path(folder) / "field.nc"
            write(path, filters, shape)
            for name, use_dask in {"xarray": False, f"{options.threads} threads of Dask": True}.items():
                calls = [partial(reader.ask, path, use_dask) for reader in readers]
                if len({call()[1] for call in calls}) != 1:
                    raise SystemExit(f"expected the same values of all engines, got others: {filters}")
                answers = [[call() for call in calls] for _ in range(rounds)]
                times = [statistics.median(seconds for seconds, _ in own) for own in zip(*answers, strict=True)]
                row = " | ".join(f"{own:.2f} s, {times[0] / own:.1f}×" for own in times)
                escaped = filters.replace("|", "\\|")
                print(f"| `{escaped}` | {name} | {row} |", flush=True)
    return None


if __name__ == "__main__":
    main()
