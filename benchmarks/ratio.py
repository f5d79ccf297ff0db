"""The best ratio at a proven bound: ``python benchmarks/ratio.py [FILE:NAME …] [--bounds BOUND …]``.

For each variable and each largest error, the table has the ratio (bytes of the values for each stored byte), the
largest error, how many values err by more than the bound, and the seconds of whole commands. tamis plans and repacks
for each kind of reader, in chunks that it chooses; its results are read back and compared here like those of the
others. SZ3 and SPERR come from hdf5plugin in a process of its own, asked for the same error, in the chunks of the
source and in those that plan chose for hdf5plugin. NCO's ncpdq and CDO's ``-b I16`` pack to 16 bits, which no bound
decides. A bound ends in ``s`` if it is in standard deviations of the variable, as in ``0.01s``.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
from peers import FIELDS, SHARED, TAMIS, values_of

import tamis

PEER = """
import sys, h5py, hdf5plugin
source, target, name, plugin, bound, chunks = sys.argv[1:]
with h5py.File(source) as old, h5py.File(target, "w") as new:
    values = old[name][...]
    values = values.astype(values.dtype.newbyteorder("="))
    marks = {"missing_value_mode": 2} if plugin == "Sperr" and abs(values).max() >= 1e35 else {}
    swap = {"swap": True} if plugin == "Sperr" else {}
    filters = getattr(hdf5plugin, plugin)(absolute=float(bound), **marks, **swap)
    new.create_dataset(name, data=values, chunks=tuple(map(int, chunks.split("x"))), **filters)
    for key in ("_FillValue", "missing_value"):
        if key in old[name].attrs:
            new[name].attrs[key] = old[name].attrs[key]
"""
TAMIS_ROWS = {
    "tamis, any reader": ("--readers", "any"),
    "tamis, netCDF-C": ("--readers", "netcdf"),
    "tamis, hdf5plugin": ("--readers", "hdf5plugin"),
    "tamis, hdf5plugin, SZ3 allowed": ("--readers", "hdf5plugin", "--allow", "unstable"),
    "tamis, companion": ("--readers", "hdf5plugin", "--missing", "companion"),
}


class Result(NamedTuple):
    """What a program made of a variable."""

    ratio: float
    error: float
    over: int  # values that err by more than the bound
    moved: int  # values that are missing on one side only
    seconds: float
    how: str

    def __str__(self) -> str:
        moved = f", **{self.moved} missing values changed**" if self.moved else ""
        over = f"**{self.over}**" if self.over else "0"
        how = self.how.replace("|", "\\|")
        return f"{self.ratio:.2f} | {self.error:.7g} | {over}{moved} | {self.seconds:.1f} | {how}"


def result(source: Path, target: Path, name: str, bound: float, seconds: float, how: str) -> Result:
    """Compare a target with its source, both unpacked."""
    before, after = values_of(source, name), unpacked(target, name)
    with h5py.File(target) as file:
        stored = file[name].id.get_storage_size()
        companion = f"{name}_missing"
        stored += file[companion].id.get_storage_size() if companion in file else 0
        chunks = "x".join(map(str, file[name].chunks or ()))
    with tamis.open(source) as opened:
        nbytes = opened[name].size * opened[name].dtype.itemsize
    with np.errstate(invalid="ignore"):
        errors = np.abs(before - after)
    moved = int((np.isnan(before) != np.isnan(after)).sum())
    largest = float(np.nanmax(errors))
    return Result(nbytes / stored, largest, int((errors > bound).sum()), moved, seconds, f"{how} in {chunks}")


def unpacked(path: Path, name: str) -> np.ndarray:
    """Return all values in units of the variable in float64, NaN where one is missing."""
    with tamis.open(path, unpack=True) as file:
        if np.dtype(file[name].dtype).kind == "f" and "scale_factor" in file[name].attrs:
            return np.ma.filled(np.ma.asarray(file[name][:]).astype("f8"), np.nan)
    return values_of(path, name)


def run(*commands: list[str]) -> tuple[float, str]:
    """Run commands; return the seconds, and what went wrong."""
    begin = time.perf_counter()
    for command in commands:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=900)
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().splitlines()
            return 0.0, lines[-1][:100] if lines else f"exit code {done.returncode}"
    return time.perf_counter() - begin, ""


def rows(source: Path, name: str, bound: float, folder: Path) -> Iterator[tuple[str, Result | str]]:
    """Yield the results of all programs."""
    target, recipe = folder / "target.nc", folder / "recipe.toml"
    with h5py.File(source) as file:
        own = file[name].chunks or file[name].shape
    chosen = "x".join(map(str, own))
    for label, options in TAMIS_ROWS.items():
        want = [
            "-w",
            f"{name}:abs={bound!r}",
            "-o",
            str(recipe),
            "--overwrite",
            "-q",
            "--chunks",
            "auto",
            "--prefer",
            "archive",
        ]
        seconds, problem = run(
            [TAMIS, "plan", str(source), *want, *options],
            [TAMIS, "repack", str(source), str(target), "--recipe", str(recipe), "--overwrite", "-q"],
        )
        how = "" if problem else tamis.Recipe.load(recipe).filters.get(f"/{name}", "as it was")
        yield label, problem or result(source, target, name, bound, seconds, str(how))
        if label == "tamis, hdf5plugin" and not problem:
            with h5py.File(target) as file:
                chosen = "x".join(map(str, file[name].chunks))
    for plugin in ("SZ3", "Sperr"):
        for chunks in dict.fromkeys(("x".join(map(str, own)), chosen)):
            arguments = [str(source), str(target), name, plugin, repr(bound), chunks]
            seconds, problem = run([sys.executable, "-c", PEER, *arguments])
            label = f"hdf5plugin, {plugin}"
            yield label, problem or result(source, target, name, bound, seconds, plugin)
    for label, command in {
        "NCO, ncpdq": ["ncpdq", "-O", "-P", "all_new", "-4", "-L", "9", "-v", name, str(source), str(target)],
        "CDO, -b I16": [
            *("cdo", "-s", "-O", "-f", "nc4", "-b", "I16", "-z", "zip_9", f"-selname,{name}", str(source), str(target))
        ],
    }.items():
        if shutil.which(command[0]):
            seconds, problem = run(command)
            yield label, problem or result(source, target, name, bound, seconds, "16 bits")


def bounds_of(source: Path, name: str, texts: list[str]) -> Iterator[float]:
    """Yield bounds in units of the variable, rounded to two digits if they are given in standard deviations."""
    deviation = float(np.nanstd(values_of(source, name)))
    for text in texts:
        yield float(f"{float(text[:-1]) * deviation:.2g}") if text.endswith("s") else float(text)


def main() -> None:
    """Print a table for each variable and bound."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    default = [f"{SHARED / file}:{name}" for file, name in FIELDS]
    parser.add_argument("variables", nargs="*", default=default, metavar="FILE:NAME")
    parser.add_argument("--bounds", nargs="+", default=["0.1"], help="largest errors, such as 0.1 or 0.01s")
    options = parser.parse_args()
    for variable in options.variables:
        path, _, name = variable.rpartition(":")
        for bound in bounds_of(Path(path), name, options.bounds):
            print(f"\n{Path(path).name}, {name}, largest error {bound:g}\n")
            print("| program | ratio | largest error | over | s | how |\n|---|---|---|---|---|---|")
            with tempfile.TemporaryDirectory() as folder:
                for label, outcome in rows(Path(path), name, bound, Path(folder)):
                    print(
                        f"| {label} | {outcome if isinstance(outcome, Result) else outcome + ' | | | |'} |", flush=True
                    )


if __name__ == "__main__":
    main()
