"""tamis against other programs at one error: ``python benchmarks/peers.py [--enstools PROGRAM] [--bound B]``.

Each program compresses one variable of each file of the tests so that no value errs by more than the bound. NCO and
CDO round to bits of each value, and take no bound: they get the fewest bits with which it holds, found by trying,
and the time of that run alone. enstools gets the bound as its accuracy of ZFP. SZ3 and SPERR get it as their absolute
error, in the chunks of the source, by h5py and hdf5plugin in a process of their own. tamis plans and repacks by the
plan: in the chunks of the source, in chunks chosen for series and maps, and with missing values in a mask. Errors
are those of the values as tamis reads them, against the source; the elapsed time is that of whole commands, once.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np

import tamis

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
FIELDS = (("cam_ts_100days.nc", "TS"), ("cam_t_3months.nc", "T"), ("pop_sst_60days.nc", "SST"))
FOREIGN = """
import sys, h5py, hdf5plugin
source, target, name, plugin, bound = sys.argv[1:]
with h5py.File(source) as old, h5py.File(target, "w") as new:
    values, attributes = old[name][...], dict(old[name].attrs)
    marks = {"missing_value_mode": 2} if plugin == "Sperr" and abs(values).max() >= 1e35 else {}
    filters = getattr(hdf5plugin, plugin)(absolute=float(bound), **marks)
    shape = [min(pair) for pair in zip(old[name].chunks or values.shape, values.shape)]
    new.create_dataset(name, data=values, chunks=tuple(shape), **filters)
    for key in ("_FillValue", "missing_value"):
        if key in attributes:
            new[name].attrs[key] = attributes[key]
"""
TAMIS = str(Path(sys.executable).with_name("tamis"))
BITS = range(4, 20)
PROGRAMS = ("tamis", "tamis, --access", "tamis, --access, mask", "NCO", "CDO", "enstools", "SZ3", "SPERR")
Command = list[str]


def values_of(path: Path, name: str) -> np.ndarray:
    """Return all values in float64, NaN where one is missing."""
    with tamis.open(path) as file:
        array = file[name]
        values = np.ma.filled(np.ma.asarray(array[:]).astype("f8"), np.nan)
        for mark in ("_FillValue", "missing_value"):
            if mark in array.attrs:
                values[values == np.float64(array.attrs[mark])] = np.nan
    return np.asarray(values)


def found(source: Path, target: Path, name: str) -> tuple[float, float, bool]:
    """Return the ratio, the largest error, and whether the same values are missing."""
    before, after = values_of(source, name), values_of(target, name)
    with h5py.File(target) as file:
        dataset = file[name]
        stored = dataset.id.get_storage_size()
        companion = f"{name}_missing"
        stored += file[companion].id.get_storage_size() if companion in file else 0
        nbytes = dataset.size * dataset.dtype.itemsize
    with np.errstate(invalid="ignore"):
        error = float(np.nanmax(np.abs(before - after)))
    return nbytes / stored, error, bool((np.isnan(before) == np.isnan(after)).all())


def run(*commands: Command) -> tuple[float, str]:
    """Run commands; return the seconds, and what went wrong."""
    begin = time.perf_counter()
    for command in commands:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().splitlines()
            return time.perf_counter() - begin, lines[-1][:90] if lines else f"exit code {done.returncode}"
    return time.perf_counter() - begin, ""


def rounded(program: Callable[[int], Command], source: Path, target: Path, name: str, bound: float) -> str:
    """Return the result of the fewest bits that keep the bound."""
    problem = ""
    for bits in BITS:
        seconds, problem = run(program(bits))
        if problem:
            break
        ratio, error, same = found(source, target, name)
        if error <= bound or not same:
            return cell(ratio, error, seconds, same, f"{bits} bits")
    return problem or f"not in {BITS[-1]} bits"


def cell(ratio: float, error: float, seconds: float, same: bool, how: str = "") -> str:
    """Return one cell of the table."""
    notes = ", ".join(filter(None, [how, "" if same else "other values missing"]))
    # A bar would begin another cell.
    return f"{ratio:.2f}, {error:.7g}, {seconds:.1f} s{f' ({notes})' if notes else ''}".replace("|", "\\|")


def tamis_cell(source: Path, target: Path, name: str, bound: float, *options: str) -> str:
    """Return the result of a plan and of a repack by it."""
    recipe = target.with_suffix(".toml")
    required = ["-r", f"{name}:abs={bound!r}", "-o", str(recipe), "--overwrite", "-q"]
    seconds, problem = run(
        [TAMIS, "plan", str(source), *required, *options],
        [TAMIS, "repack", str(source), str(target), "--recipe", str(recipe), "--overwrite", "-q"],
    )
    if problem:
        return problem
    ratio, error, same = found(source, target, name)
    with h5py.File(target) as file:
        chunks = "x".join(map(str, file[name].chunks))
    return cell(ratio, error, seconds, same, f"{tamis.Recipe.load(recipe).filters[f'/{name}']} in {chunks}")


def column(source: Path, name: str, bound: float, folder: Path, enstools: str | None) -> list[str]:
    """Return the cells of one variable, by program."""
    target = folder / "out.nc"
    cells = [
        tamis_cell(source, target, name, bound),
        tamis_cell(source, target, name, bound, "--access", "series=0.5,map=0.5"),
        tamis_cell(source, target, name, bound, "--access", "series=0.5,map=0.5", "--missing", "mask"),
    ]
    nco = ["ncks", "-O", "-7", "-L", "9", "--baa=8"]
    cells.append(
        rounded(lambda bits: [*nco, "--ppc", f"{name}={bits}", str(source), str(target)], source, target, name, bound)
        if shutil.which("ncks")
        else "not here"
    )
    cdo = ["cdo", "-s", "-O", "-f", "nc4", "-z", "zip_9"]
    select = ["-selname," + name, str(source), str(target)]
    cells.append(
        rounded(lambda bits: [*cdo, f"-bitrounding,numbits={bits}", *select], source, target, name, bound)
        if shutil.which("cdo")
        else "not here"
    )
    if enstools is None:
        cells.append("not here")
    else:
        asked = ["--compression", f"lossy,zfp,accuracy,{bound!r}", "--variables", name]
        cells.append(measured([enstools, "compress", str(source), "-o", str(target), *asked], source, target, name))
    for plugin in ("SZ3", "Sperr"):
        command = [sys.executable, "-c", FOREIGN, str(source), str(target), name, plugin, repr(bound)]
        cells.append(measured(command, source, target, name))
    return cells


def measured(command: Command, source: Path, target: Path, name: str) -> str:
    """Return the result of a program that takes the bound."""
    target.unlink(missing_ok=True)
    seconds, problem = run(command)
    if problem:
        return problem
    ratio, error, same = found(source, target, name)
    return cell(ratio, error, seconds, same)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bound", type=float, default=0.1, metavar="B", help="largest error, in units of the variable")
    parser.add_argument("--enstools", metavar="PROGRAM", help="enstools-compression, of an environment of its own")
    options = parser.parse_args()
    columns = []
    for file, name in FIELDS:
        source = SHARED / file
        if not source.exists():
            print(f"{file}: left out, not here: {source}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            columns.append([f"{file} {name}", *column(source, name, options.bound, Path(folder), options.enstools)])
    print(f"| program | {' | '.join(cells[0] for cells in columns)} |")
    print("|---" * (len(columns) + 1) + "|")
    for program, cells in zip(PROGRAMS, zip(*(every[1:] for every in columns), strict=True), strict=True):
        print(f"| {program} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
