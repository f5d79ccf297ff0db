"""The best ratio at a proven bound: ``python benchmarks/ratio.py [FILE:NAME …] [--bounds BOUND …] [--enstools …]``.

For each variable and each largest error, the table has the ratio (bytes of the values for each stored byte), the
largest error, how many values err by more than the bound, and the seconds of whole commands. tamis plans and repacks
for each kind of reader, in chunks that it chooses; its results are read back and compared here like those of the
others. SZ3 and SPERR come from hdf5plugin in a process of its own, asked for the same error, in the chunks of the
source and in those that plan chose for hdf5plugin; enstools gets it as ZFP's accuracy. NCO's ncpdq and CDO's ``-b I16``
pack to 16 bits, which no bound decides. netCDF-C's BitRound gets the fewest bits that keep the bound, found by trying,
and netCDF4's least_significant_digit the fewest digits, both with shuffle and deflate(9) in the chunks of the source
and in those that plan chose for any reader. A bound ends in ``s`` if it is in standard deviations of the variable, as
in ``0.01s``.
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
NETCDF = """
import sys, netCDF4
source, target, name, kind, number, chunks = sys.argv[1:]
keywords = {"least_significant_digit": int(number)}
if kind == "BitRound":
    keywords = {"significant_digits": int(number), "quantize_mode": kind}
with netCDF4.Dataset(source) as old, netCDF4.Dataset(target, "w") as new:
    old.set_auto_maskandscale(False)
    variable = old[name]
    for dimension in variable.dimensions:
        new.createDimension(dimension, len(old.dimensions[dimension]))
    fill = getattr(variable, "_FillValue", None)
    shape = tuple(map(int, chunks.split("x")))
    settings = {"fill_value": fill, "zlib": True, "complevel": 9, "chunksizes": shape}
    created = new.createVariable(name, variable.dtype, variable.dimensions, **settings, **keywords)
    if hasattr(variable, "missing_value"):
        created.missing_value = variable.missing_value
    created.set_auto_maskandscale(kind != "BitRound")
    variable.set_auto_maskandscale(kind != "BitRound")
    created[:] = variable[:]
"""
READERS = ("any reader", "hdf5plugin")
NUMBERS = {"BitRound": range(1, 24), "least_significant_digit": range(-4, 8)}
TAMIS_ROWS = {
    "tamis, any reader": ("--readers", "netcdf"),
    "tamis, netCDF-C": ("--readers", "netcdf-plugins"),
    "tamis, hdf5plugin": ("--readers", "hdf5plugin"),
    "tamis, hdf5plugin, SZ3 allowed": ("--readers", "hdf5plugin", "--allow", "unstable"),
    "tamis, zarr": ("--readers", "zarr"),
    "tamis, mask": ("--readers", "hdf5plugin", "--missing", "mask"),
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
    stored, chunks = stored_nbytes(target, name), "x".join(map(str, chunks_of(target, name)))
    with tamis.open(source) as opened:
        nbytes = opened[name].size * opened[name].dtype.itemsize
    with np.errstate(invalid="ignore"):
        errors = np.abs(before - after)
    moved = int((np.isnan(before) != np.isnan(after)).sum())
    largest = float(np.nanmax(errors))
    return Result(nbytes / stored, largest, int((errors > bound).sum()), moved, seconds, f"{how} in {chunks}")


def stored_nbytes(path: Path, name: str) -> int:
    """Return the bytes of the chunks of a variable and of its missing-value mask."""
    if path.suffix == ".zarr":
        files = (file for file in (path / name).rglob("*") if file.is_file() and file.name[0] not in ".z")
        return sum(file.stat().st_size for file in files)
    with h5py.File(path) as file:
        return sum(file[one].id.get_storage_size() for one in (name, f"{name}_missing") if one in file)


def chunks_of(path: Path, name: str) -> tuple[int, ...]:
    """Return the chunk shape of a variable; its shape if it has no chunks."""
    with tamis.open(path) as file:
        return tuple(file[name].chunks or file[name].shape)


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


def by_tamis(
    source: Path, name: str, bound: float, folder: Path, options: tuple[str, ...]
) -> tuple[Result | str, Path]:
    """Plan and repack; return the result and the target."""
    recipe, target = folder / "recipe.toml", folder / ("target.zarr" if "zarr" in options else "target.nc")
    required = ["-r", f"{name}:abs={bound!r}", "-o", str(recipe), "--overwrite", "-q"]
    seconds, problem = run(
        [TAMIS, "plan", str(source), *required, "--chunks", "auto", "--prefer", "archive", *options],
        [TAMIS, "repack", str(source), str(target), "--recipe", str(recipe), "--overwrite", "-q"],
    )
    if problem:
        return problem, target
    how = str(tamis.Recipe.load(recipe).filters.get(f"/{name}", "as it was"))
    return result(source, target, name, bound, seconds, how), target


def by_netcdf(source: Path, target: Path, name: str, bound: float, kind: str, chunks: str) -> Result | str:
    """Return the result of the smallest number of bits or digits that keeps the bound."""
    outcome: Result | str = "no number of bits keeps the bound"
    for number in NUMBERS[kind]:
        arguments = [str(source), str(target), name, kind, str(number), chunks]
        seconds, problem = run([sys.executable, "-c", NETCDF, *arguments])
        if problem:
            return problem
        outcome = result(source, target, name, bound, seconds, f"{kind}={number}")
        if not outcome.over and not outcome.moved:
            break
    return outcome


def rows(
    source: Path, name: str, bound: float, folder: Path, enstools: str | None
) -> Iterator[tuple[str, Result | str]]:
    """Yield the results of all programs."""
    target, shapes = folder / "target.nc", {"source": "x".join(map(str, chunks_of(source, name)))}
    for label, options in TAMIS_ROWS.items():
        outcome, written = by_tamis(source, name, bound, folder, options)
        if isinstance(outcome, Result):
            shapes[label] = "x".join(map(str, chunks_of(written, name)))
        yield label, outcome
    ours = {reader: {shapes["source"], shapes.get(f"tamis, {reader}", shapes["source"])} for reader in READERS}
    for plugin in ("SZ3", "Sperr"):
        for chunks in sorted(ours["hdf5plugin"]):
            arguments = [str(source), str(target), name, plugin, repr(bound), chunks]
            seconds, problem = run([sys.executable, "-c", PEER, *arguments])
            label = f"hdf5plugin, {plugin}"
            yield label, problem or result(source, target, name, bound, seconds, plugin)
    for kind in NUMBERS:
        for chunks in sorted(ours["any reader"]):
            yield "netCDF-C, deflate(9)", by_netcdf(source, target, name, bound, kind, chunks)
    commands = {
        "NCO, ncpdq": ["ncpdq", "-O", "-P", "all_new", "-4", "-L", "9", "-v", name, str(source), str(target)],
        "CDO, -b I16": [
            *("cdo", "-s", "-O", "-f", "nc4", "-b", "I16", "-z", "zip_9", f"-selname,{name}", str(source), str(target))
        ],
    }
    if enstools is not None:
        asked = ["--compression", f"lossy,zfp,accuracy,{bound!r}", "--variables", name]
        commands["enstools"] = [enstools, "compress", str(source), "-o", str(target), *asked]
    for label, command in commands.items():
        if shutil.which(command[0]):
            target.unlink(missing_ok=True)
            seconds, problem = run(command)
            how = "ZFP" if label == "enstools" else "16 bits"
            yield label, problem or result(source, target, name, bound, seconds, how)


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
    parser.add_argument("--enstools", help="the program enstools-compression")
    options = parser.parse_args()
    for variable in options.variables:
        path, _, name = variable.rpartition(":")
        for bound in bounds_of(Path(path), name, options.bounds):
            print(f"\n{Path(path).name}, {name}, largest error {bound:g}\n")
            print("| program | ratio | largest error | over | s | how |\n|---|---|---|---|---|---|")
            with tempfile.TemporaryDirectory() as folder:
                for label, outcome in rows(Path(path), name, bound, Path(folder), options.enstools):
                    print(
                        f"| {label} | {outcome if isinstance(outcome, Result) else outcome + ' | | | |'} |", flush=True
                    )


if __name__ == "__main__":
    main()
