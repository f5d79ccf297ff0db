"""Damage files at random and give them to every job: ``python tests/jobs/damage.py [CASES] [SEED]``.

Each case changes a few bytes of a small file, mostly metadata, and then inspects, repacks, verifies, reads and appends
to it. A job must end as asked or with a TamisError. The jobs run in a process of its own, so that it is known which
case ended that by a signal, or never; it goes on after the case. Crashes and endless loops inside of libhdf5 are told
from ours by the Python stack that faulthandler prints.
"""

from __future__ import annotations

import faulthandler
import itertools
import os
import random
import resource
import select
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import tamis

SECONDS = 30
"""After which a job that says nothing is taken for one that never ends."""

_numbers = itertools.count()
_MEMORY = 4 << 30
_MOST_VALUES = 1 << 20  # of an array that are read


def make_files(folder: Path) -> list[Path]:
    """Make one small file of each kind."""
    values = (280 + np.sin(np.arange(16 * 24) / 7)).reshape(16, 24).astype("f4")
    gaps = values.copy()
    gaps[3:6, 5:20] = 9.97e36
    with h5py.File(folder / "plain.h5", "w") as file:
        made = file.create_dataset("x", data=values, chunks=(4, 8), compression=4, shuffle=True, fletcher32=True)
        made.attrs.update(units="K", _FillValue=np.float32(9.97e36), levels=np.arange(3))
        file["g/contiguous"], file["g/names"] = values, ["some", "text"]
        file["again"] = file["g/contiguous"]
        file["soft"], file["out"] = h5py.SoftLink("/g/contiguous"), h5py.ExternalLink("none.h5", "/x")
        file["reference"] = np.array([file["x"].ref, file["g"].ref], h5py.ref_dtype)
        file["record"] = np.array([(1, 2.5, b"ab")], [("a", "i4"), ("b", "f8"), ("c", "S2")])
    with h5py.File(folder / "latest.h5", "w", libver="latest", track_order=True) as file:
        file.create_dataset("fixed", data=values, chunks=(4, 8), compression=1)
        file.create_dataset("growing", data=values, chunks=(4, 8), maxshape=(None, 24), compression=1)
        file.create_dataset("both", data=values, chunks=(4, 8), maxshape=(None, None))
        file.create_dataset("one", data=values, chunks=(16, 24), compression=1)
        dense = file.create_group("dense")
        for i in range(20):
            dense[f"v{i}"] = i
            dense.attrs[f"a{i}"] = i
    with h5py.File(folder / "types.h5", "w") as file:
        file["float"], file["enum"] = np.dtype("f4"), h5py.enum_dtype({"A": 1, "B": 2}, "i1")
        file["record"] = np.dtype([("a", "f4"), ("b", h5py.string_dtype())])
        file.create_dataset("v", data=values, dtype=file["float"], chunks=(4, 8))
        file.create_dataset("e", data=np.ones(5, "i1"), dtype=file["enum"])
        file.create_dataset("r", (2,), dtype=file["record"])
        file["sequence"] = np.array([np.arange(3), np.arange(2)], object).astype(h5py.vlen_dtype("i4"))
        file["v"].attrs.create("named", 1, dtype=file["float"])
    layout = h5py.VirtualLayout((32, 24), "f4")
    for i in range(2):
        layout[16 * i : 16 * (i + 1)] = h5py.VirtualSource(folder / "plain.h5", "x", (16, 24))
    with h5py.File(folder / "virtual.h5", "w") as file:
        file.create_virtual_dataset("x", layout)
        file.create_dataset("raw", (16,), "f4", external=[("raw.bin", 0, 64)])
    with h5py.File(folder / "gaps.h5", "w") as file:
        file.create_dataset("t", data=gaps, chunks=(8, 8), fillvalue=9.97e36)
    tamis.repack(folder / "gaps.h5", folder / "companion.h5", {"t": "zfp(accuracy=0.01)"}, missing="mask")
    _make_netcdf(folder / "climate.nc", values)
    return sorted(path for path in folder.iterdir() if path.suffix in (".h5", ".nc"))


def _make_netcdf(path: Path, values: Any) -> None:
    import netCDF4

    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        for name, extent in (("lat", 4), ("lon", 6), ("none", 2)):
            file.createDimension(name, extent)
        for name, extent in (("time", 16), ("lat", 4), ("lon", 6)):
            file.createVariable(name, "f8", (name,))[:] = np.arange(extent)
        made = file.createVariable("ts", "f4", ("time", "lat", "lon"), zlib=True, fill_value=9.97e36)
        made[:] = values.reshape(16, 4, 6)
        made.setncatts({"units": "K", "coordinates": "lat lon"})
        file.createGroup("inner").createVariable("i", "i2", ("none",))[:] = 1


def damage(data: bytes, case: int) -> bytes:
    """Change one to four places of a file: a bit, a byte, or some bytes at once."""
    rng, changed = random.Random(case), bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(8, len(data))
        kind = rng.randrange(6)
        if kind < 2:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            changed[at] = rng.randrange(256)
        else:
            size = min(rng.choice((2, 4, 8)), len(data) - at)
            changed[at : at + size] = (b"\0", b"\xff", rng.randbytes(1))[kind - 3] * size
    return bytes(changed)


def jobs(path: Path, whole: Path, target: Path) -> dict[str, Callable[[], object]]:
    """List what is done with a damaged file; the last two change a copy."""

    def repack(recipes: dict[str, str], missing: Any = "exact") -> None:
        target.unlink(missing_ok=True)
        tamis.repack(path, target, recipes, missing=missing, threads=1)

    def read() -> None:
        with tamis.open(path, threads=1) as file:
            for name in file:
                dict(file[name].attrs)
                if file[name].size <= _MOST_VALUES:
                    file[name][()]
            dict(file.attrs)

    def append(dataset: h5py.Dataset) -> None:
        with tamis.hdf5.Appender(dataset) as appender:
            appender.append(np.ones((1, *dataset.shape[1:]), dataset.dtype))

    def write(dataset: h5py.Dataset) -> None:
        tamis.hdf5.write(dataset.parent, "new", np.ones((16, 24), "f4"), filters="shuffle|deflate(1)", threads=1)

    def changing(job: Callable[[h5py.Dataset], None]) -> None:
        """Call a job with a dataset that h5py gives, if it does; a file that HDF5 cannot close is not used again."""
        problems: list[BaseException] = []
        copy = path.with_name(f"{next(_numbers)}.h5")
        shutil.copyfile(path, copy)
        with suppress(Exception), h5py.File(copy, "r+") as file:
            dataset = next(file[name] for name in ("growing", "x", "ts", "t", "v") if name in file)
            try:
                job(dataset)
            except BaseException as error:
                problems.append(error)
        copy.unlink()
        for problem in problems:
            raise problem

    return {
        "inspect": lambda: (str(found := tamis.inspect(path)), found.to_json()),
        "open": read,
        "verify": lambda: str(tamis.verify(path, whole, threads=1)),
        "verify from": lambda: tamis.verify(whole, path, bounds="recorded", threads=1).to_json(),
        "repack": lambda: repack({"*": "shuffle|deflate(1)"}),
        "repack zfp": lambda: repack({"*": "zfp(accuracy=0.1)|deflate(1)"}, "mask"),
        "append": lambda: changing(append),
        "write": lambda: changing(write),
    }


def work(folder: Path, first: int, last: int, *, strict: bool) -> None:
    """Run cases and print what becomes of each job: ``case file job result``."""
    if strict:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable()
    files = sorted((folder / "whole").iterdir())
    files = [path for path in files if path.suffix in (".h5", ".nc")]
    for case in range(first, last):
        whole = files[case % len(files)]
        path = folder / "damaged" / whole.name
        path.write_bytes(damage(whole.read_bytes(), case))
        for name, job in jobs(path, whole, folder / "target.h5").items():
            print(f"{case}\t{whole.name}\t{name}", flush=True)
            print("\t" + _result(job), flush=True)


def _result(job: Callable[[], object]) -> str:
    try:
        job()
    except tamis.TamisError:
        return "refused"
    except BaseException:
        return "raised: " + repr(traceback.format_exc())
    return "done"


@dataclass
class Report:
    """What became of all jobs, and each that ended in no way it should."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Take note of one that did not, and print it."""
        self.wrong.append(text)
        print(text, flush=True)


def run(folder: Path, cases: int, seed: int, *, strict: bool = True) -> Report:
    """Run cases, in as many processes one after the other as it takes."""
    (folder / "whole").mkdir()
    (folder / "damaged").mkdir()
    make_files(folder / "whole")
    report, case = Report(), seed
    while case < seed + cases:
        case = _run_until_it_ends(folder, case, seed + cases, report, strict)
    return report


def _run_until_it_ends(folder: Path, first: int, last: int, report: Report, strict: bool) -> int:
    """Run cases in a process; return the case to go on with where that ends too early."""
    with (folder / "stderr").open("w+b") as errors:
        command = [sys.executable, __file__, "--work", str(folder), str(first), str(last), str(int(strict))]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
        case, place = first, f"{first}\tstart"
        ended = ""
        for line in _lines(process):
            if line is None:
                process.send_signal(6)  # faulthandler says where
                ended = "never ended"
                break
            if not line.startswith("\t"):
                place, case = line, int(line.split("\t")[0])
                continue
            kind, _, text = line[1:].partition(": ")
            report.counts[kind] += 1
            if text:
                report.add(f"{place}: {kind}: {text}")
        code = process.wait()
        if code == 0 and not ended:
            return last
        errors.seek(0)
        kind = ended or f"ended by signal {-code}"
        report.counts[kind] += 1
        report.add(f"{place}: {kind}: {errors.read().decode(errors='replace')[-3000:]!r}")
    return case + 1


def _lines(process: subprocess.Popen[bytes]) -> Iterator[str | None]:
    """Yield lines of a process, and None where none comes for too long."""
    assert process.stdout is not None
    rest = b""
    while True:
        if not select.select([process.stdout], [], [], SECONDS)[0]:
            yield None
            return
        if not (got := os.read(process.stdout.fileno(), 65536)):
            return
        *lines, rest = (rest + got).split(b"\n")
        yield from (line.decode() for line in lines)


def main(arguments: list[str]) -> None:
    """Run cases, or be the process that does."""
    if arguments[:1] == ["--work"]:
        work(Path(arguments[1]), int(arguments[2]), int(arguments[3]), strict=arguments[4] == "1")
        return
    cases, seed = (*map(int, arguments), *(1000, 0)[len(arguments) :])
    folder = Path(tempfile.mkdtemp())
    try:
        report = run(folder, cases, seed)
    finally:
        shutil.rmtree(folder)
    print(dict(report.counts))
    sys.exit(bool(report.wrong))


if __name__ == "__main__":
    main(sys.argv[1:])
