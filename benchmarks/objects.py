"""What small objects cost whole commands: ``python benchmarks/objects.py [--rounds N]``.

CPU seconds of `tamis repack` and `tamis verify` on files of 3,000 datasets of 256 B, also to Zarr, of 6,000 nested
groups, and of 1,000 datasets of 64 x 64 float32 through zfp and roundings, also with ``_FillValue`` and
``valid_range``, in turns with h5repack and h5diff, and their ratio; CPU milliseconds for each dataset or group; and CPU
and elapsed time of commands that do next to nothing. h5repack has zfp by the plugin of tamis. The start of Python is in
all of them. Least of all rounds.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import h5py
import numpy as np
from turns import times_in_turns

import tamis

DATASETS, LOSSY_DATASETS, GROUPS = 3000, 1000, 6000
OPTIONS = ("--min-size", "0", "--larger")
LOSSLESS = "shuffle|deflate(4)"
PEER_RECIPE = ("-f", "SHUF", "-f", "GZIP=4", "-m", "1")
# By pipeline the bound for verify; h5repack has no roundings, and gets shuffle and deflate alone instead.
LOSSY = {
    "zfp(accuracy=0.01)": 0.01,
    "zfp(rate=8)": 10,
    "zfp(accuracy=0.01)|shuffle|deflate(4)|fletcher32": 0.01,
    "absolute(0.01)|shuffle|deflate(4)": 0.01,
    "zfp(bound=0.01)": 0.01,
    "bitround(10)|shuffle|deflate(4)": 1,
}
NUMERIC_ATTRIBUTES = {"_FillValue": np.float32(-999), "valid_range": np.array([0, 1000], "f4")}
STARTS = (("--version",), ("--help",), ("spec", "zfp(rate=8)"))


def write_datasets(path: Path, attributes: int, libver: str) -> None:
    """Write datasets in fifty groups, each in two chunks."""
    values = np.arange(64.0, dtype="f4").reshape(8, 8)
    with h5py.File(path, "w", libver=libver) as file:
        for number in range(DATASETS):
            group = file.require_group(f"g{number % 50}")
            dataset = group.create_dataset(f"v{number}", data=values + number, chunks=(4, 8))
            for attribute in range(attributes):
                dataset.attrs[f"a{attribute}"] = f"text {attribute}"


def write_groups(path: Path) -> None:
    """Write groups in groups in groups, and one dataset, so that there is something to repack."""
    with h5py.File(path, "w") as file:
        for number in range(GROUPS):
            file.create_group(f"a{number // 600}/b{number // 60 % 10}/c{number % 60}")
        file.create_dataset("v", data=np.arange(100.0), chunks=(100,))


def write_lossy_datasets(path: Path, attributes: Mapping[str, object]) -> None:
    """Write smooth fields with a little noise, each in one chunk."""
    rows, columns = np.mgrid[0:64, 0:64]
    noise = 0.01 * np.random.default_rng(1).normal(size=(64, 64))
    with h5py.File(path, "w", libver="latest") as file:
        for number in range(LOSSY_DATASETS):
            values = 280 + np.sin(columns / 9 + number) * np.cos(rows / 7) + noise
            dataset = file.create_dataset(f"g{number % 50}/v{number}", data=values.astype("f4"), chunks=(64, 64))
            dataset.attrs.update(attributes)


def peer_recipe(pipeline: str) -> tuple[str, ...]:
    """Options of h5repack for a pipeline: zfp as it is, without the filters for chunks that zfp leaves."""
    filters = tamis.Pipeline.parse(pipeline).filters
    if not isinstance(filters[0], tamis.Zfp):
        return PEER_RECIPE
    zfp = tamis.Zfp(accuracy=filters[0].bound) if filters[0].bound else filters[0]
    values = [*zfp.requested]
    return ("-f", ",".join(map(str, ("UD=32013", 0, len(values), *values))), "-m", "1")


def processor() -> float:
    """CPU seconds of commands so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def command(*arguments: object) -> Callable[[], None]:
    """A call that runs a command."""
    words = [str(argument) for argument in arguments]
    # Otherwise each start could compile Python anew, where sources are newer than what was compiled.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["HDF5_PLUGIN_PATH"] = str(tamis.plugin_path())
    return lambda: subprocess.run(
        words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )


def compare(
    label: str,
    path: Path,
    count: int,
    rounds: int,
    pipeline: str = LOSSLESS,
    bound: float | None = None,
    suffix: str = ".out",
) -> None:
    """Print a line for repack and verify with one and two threads."""
    target, other = path.with_suffix(suffix), path.with_suffix(".peer")
    recipe = ("--overwrite", "-f", f"*:{pipeline}", *OPTIONS)
    bounds, delta = (("--bound", f"*:{bound}"), ("-d", bound)) if bound else ((), ())
    repacks = [command(TAMIS, "repack", path, target, *recipe, "-j", threads) for threads in (1, 2)]
    verifies = [command(TAMIS, "verify", path, target, *bounds, "-j", threads) for threads in (1, 2)]
    peer_options = peer_recipe(pipeline) if bound else PEER_RECIPE
    for name, calls, peer, peer_call in (
        ("repack", repacks, "h5repack", command("h5repack", *peer_options, path, other)),
        ("verify", verifies, "h5diff", command("h5diff", *delta, path, other)),
    ):
        *seconds, least = map(min, times_in_turns([*calls, peer_call], rounds, processor))
        for threads, cpu in enumerate(seconds, start=1):
            each = f"{cpu / count * 1e3:.2f} ms each"
            print(f"{label}: {name} -j{threads} {cpu:.2f} s, {each}, {cpu / least:.1f} x {peer} ({least:.2f} s)")


def start(rounds: int) -> None:
    """Print what the start of commands takes."""
    calls = [command(TAMIS, *arguments) for arguments in STARTS]
    cpu, clock = times_in_turns(calls, 3 * rounds, processor), times_in_turns(calls, 3 * rounds)
    for arguments, used, passed in zip(STARTS, cpu, clock, strict=True):
        print(f"tamis {arguments[0]}: CPU {min(used) * 1e3:.0f} ms, elapsed {min(passed) * 1e3:.0f} ms")


TAMIS = Path(sys.executable).with_name("tamis")


def main() -> None:
    """Make each file, and time commands on it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="of each command (default: %(default)s)")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.h5"
        write_groups(path)
        compare(f"{GROUPS} nested groups", path, GROUPS, rounds)
        for attributes, libver in ((0, "earliest"), (4, "earliest"), (1, "latest")):
            write_datasets(path, attributes, libver)
            label = f"{DATASETS} datasets of 256 B, {attributes} attributes, format {libver}"
            compare(label, path, DATASETS, rounds)
        compare(f"{label}, to Zarr", path, DATASETS, rounds, suffix=".zarr")
        for attributes in ({}, NUMERIC_ATTRIBUTES):
            write_lossy_datasets(path, attributes)
            for pipeline, bound in LOSSY.items():
                label = f"{LOSSY_DATASETS} datasets of 64 x 64 float32, {len(attributes)} attributes, {pipeline}"
                compare(label, path, LOSSY_DATASETS, rounds, pipeline, bound)
    start(rounds)


if __name__ == "__main__":
    main()
