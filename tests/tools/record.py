"""Record what 700 runs of the command print and write, to compare before and after a change that must change nothing.

``python tests/tools/record.py before.json`` records. After the change, ``python tests/tools/record.py after.json
--against before.json`` records again, prints what differs, and exits with 1 if anything does. Times and speeds are left
out, and of a plan the candidates that were not chosen, because time decides which of them are measured.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import zarr

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"
COMMAND = Path(sys.executable).parent / "tamis"

# Times and speeds, which no two runs share.
VOLATILE = (
    (re.compile(r"(\"seconds\": )[\d.e+-]+"), r"\1N"),
    (re.compile(r": done in [\d.]+ m?s$", re.MULTILINE), ": done"),
    (re.compile(r"\bin [\d.]+ m?s\b"), "in N s"),
    (re.compile(r" +[\d.]+ +[\d.]+(?= +(?:any HDF5|HDF5 with))"), " N N"),
)


def field(shape: tuple[int, ...], dtype: str = "f4") -> Any:
    """Return a smooth field with noise, the same in every run."""
    axes = np.meshgrid(*(np.linspace(0, 4, extent) for extent in shape), indexing="ij")
    noise = np.random.default_rng(1).normal(size=shape)
    return (280 + 20 * np.sin(sum(axes)) + 0.1 * noise).astype(dtype)


def write_inputs(folder: Path) -> None:
    """Write a file of each kind."""
    shutil.copy(SAMPLE, folder / "cam.nc")
    (folder / "cam.nc").chmod(0o644)
    write_hdf5(folder)
    write_netcdf(folder)
    write_zarr(folder)
    (folder / "text.nc").write_text("no scientific file\n")
    (folder / "empty.h5").write_bytes(b"")
    (folder / "short.h5").write_bytes((folder / "fields.h5").read_bytes()[:5000])


def write_hdf5(folder: Path) -> None:
    with h5py.File(folder / "fields.h5", "w") as file:
        for dtype in ("f4", "f8", "i4", "i8", ">f4", "u2", "f2"):
            file.create_dataset(f"g/{dtype}", data=field((10, 33, 47), dtype), chunks=(4, 16, 16), compression="gzip")
        file.create_dataset("contiguous", data=field((40, 50)))
        file.create_dataset("scalar", data=3.5)
        file.create_dataset("nothing", data=h5py.Empty("f4"))
        file.create_dataset("growing", data=field((8, 9)), maxshape=(None, 9), chunks=(2, 9), fletcher32=True)
        file["soft"], file["hard"] = h5py.SoftLink("/g/f4"), file["contiguous"]
        file["outside"] = h5py.ExternalLink("types.h5", "/text")
        file.attrs["title"], file["g"].attrs["list"] = "recorded", np.arange(6).reshape(2, 3)
    with h5py.File(folder / "types.h5", "w") as file:
        file["text"] = ["a", "bc", "def"]
        file["fixed"] = np.array([b"ab", b"cd"], "S4")
        file["record"] = np.array([(1, 2.5)] * 5, [("a", "i4"), ("b", "f8")])
        file["complex"] = np.arange(4) * (1 + 2j)
        file["flag"] = np.array([True, False])
        file.create_dataset("enum", data=[0, 1, 1], dtype=h5py.enum_dtype({"NO": 0, "YES": 1}, "u1"))
        file["opaque"] = np.array([b"12345678"], "V8")
        file["reference"] = np.array([file["text"].ref], h5py.ref_dtype)
        ragged = file.create_dataset("ragged", (2,), h5py.vlen_dtype("i4"))
        ragged[0], ragged[1] = [1, 2], [3]
    with h5py.File(folder / "gaps.h5", "w") as file:
        values = field((12, 40, 52))
        values[:, 8:23, 9:30] = 9.96921e36
        gaps = file.create_dataset("sst", data=values, chunks=(4, 20, 26), compression="gzip", fillvalue=9.96921e36)
        gaps.attrs["_FillValue"], gaps.attrs["units"] = np.float32(9.96921e36), "K"
        packed = file.create_dataset("packed", data=np.round(field((6, 30, 30)) * 10).astype("i2"), chunks=(3, 15, 15))
        packed.attrs["scale_factor"], packed.attrs["add_offset"] = 0.1, 0.0
        rain = file.create_dataset("rain", data=np.maximum(field((6, 32, 32)) - 290, 0), chunks=(3, 16, 16))
        rain.attrs["valid_min"] = np.float32(0)
    layout = h5py.VirtualLayout((2, 40, 50), "f4")
    for i in range(2):
        layout[i] = h5py.VirtualSource("fields.h5", "contiguous", (40, 50))
    with h5py.File(folder / "virtual.h5", "w") as file:
        file.create_virtual_dataset("both", layout, fillvalue=-1)
    field((30, 30)).tofile(folder / "raw.bin")
    with h5py.File(folder / "external.h5", "w") as file:
        file.create_dataset("outside", (30, 30), "f4", external=[("raw.bin", 0, h5py.h5f.UNLIMITED)])


def write_netcdf(folder: Path) -> None:
    kinds = {"classic.nc": "NETCDF3_CLASSIC", "cdf5.nc": "NETCDF3_64BIT_DATA", "groups.nc": "NETCDF4"}
    for name, kind in kinds.items():
        with netCDF4.Dataset(folder / name, "w", format=kind) as file:
            for dimension, length in {"time": None, "lat": 24, "lon": 36}.items():
                file.createDimension(dimension, length)
            file.Conventions, file.history = "CF-1.8", "made"
            place = file.createGroup("ocean") if kind == "NETCDF4" else file
            variable = place.createVariable("ta", "f4", ("time", "lat", "lon"), fill_value=-999.0)
            variable[:], variable.units, variable.standard_name = field((6, 24, 36)), "K", "air_temperature"
            file.createVariable("lat", "f8", ("lat",))[:] = np.linspace(-80, 80, 24)
            file.createVariable("time", "f8", ("time",))[:] = np.arange(6)


def write_zarr(folder: Path) -> None:
    for version in (2, 3):
        group = zarr.open_group(folder / f"v{version}.zarr", mode="w", zarr_format=version)
        names = {"dimension_names": ("t", "y", "x")} if version == 3 else {}
        array = group.create_array("ta", shape=(6, 30, 40), chunks=(3, 15, 20), dtype="f4", fill_value=0, **names)
        array[:], array.attrs["units"] = field((6, 30, 40)), "K"
        group.create_array("ids", data=np.arange(10))


FILES = (
    *("cam.nc", "fields.h5", "types.h5", "gaps.h5", "virtual.h5", "external.h5", "classic.nc", "cdf5.nc", "groups.nc"),
    *("v2.zarr", "v3.zarr", "text.nc", "empty.h5", "short.h5", "absent.h5"),
)
NOTATIONS = ("h5repack", "nccopy", "ncgen", "h5py", "zarr", "zarr2", "zarr3", "nczarr", "tamis")
FILTERS = (
    *("zfp(accuracy=0.1)", "zfp(rate=8)", "zfp(precision=16)", "zfp(reversible=true)", "zfp(bound=0.1)"),
    *("zfp(accuracy=0.1)|shuffle|deflate(4)", "absolute(bound=0.1)|shuffle|deflate(4)", "bitround(7)|zstd(3)"),
    *("shuffle|deflate(4)|fletcher32", "lz4", "bitshuffle", "bzip2(9)", "none", "shuffle|zfp(rate=8)", "unknown(3)"),
)
COMMANDS = (
    "config",
    "copy",
    "export",
    "filters",
    "inspect",
    "plan",
    "plugin-path",
    "repack",
    "repair",
    "spec",
    "verify",
)


def runs() -> Iterator[list[list[str]]]:
    """Yield sequences of runs that share a folder, each with the arguments of ``tamis``."""
    yield [["--help"], *([command, "--help"] for command in COMMANDS), ["filters", "--json"], ["nonsense"]]
    for text in FILTERS:
        yield [["spec", text, "--chunks", "4x16x16", "--dtype", "f4", *more] for more in ([], ["--json"])]
    for name in FILES:
        yield [["inspect", name], ["inspect", name, "--json"], ["inspect", name, "--cdl"]]
        yield [["inspect", name, "--as", notation] for notation in NOTATIONS]
        yield [["plan", name], ["plan", name, "--want", "*:abs=0.1"]]
        yield [["plan", name, "-w", "*:psnr=60", "-w", "*:limits", "--access", "series", "-o", "r.toml"]]
        yield [["repack", name, "a.h5"], ["verify", name, "a.h5"]]
        for target in ("b.h5", "b.zarr"):
            lossy = ["repack", name, target, "-f", "*:zfp(accuracy=0.1)", "--larger", "--min-size", "0"]
            yield [[*lossy, "--dry-run"], lossy, ["verify", name, target, "--bound", "recorded"], ["inspect", target]]
            yield [[*lossy, "--json"], [*lossy, "--resume"], lossy, ["verify", name, target, "--json"]]
        yield [["repack", name, "v2.store", "-f", "*:shuffle|deflate(1)", "--zarr-format", "2"], ["repair", name]]
        yield [["export", name, "--to", "kerchunk", "-o", "k.json"], ["inspect", "k.json"]]
        yield [["copy", name, "c.nc", "-d", "4", "-s"], ["copy", name, "d.nc", "-F", "*,none", "--json"]]
    for text in FILTERS:
        yield [["repack", "gaps.h5", "a.h5", "-f", f"*:{text}"], ["verify", "gaps.h5", "a.h5", "--bound", "recorded"]]
        yield [["repack", "cam.nc", "a.nc", "-f", f"TS:{text}", "-c", "TS:10x32x32", "--json"], ["inspect", "a.nc"]]
    for word in ("abs=0.1,sign", "psnr=70", "dssim=0.99", "limits", "rel=1e-3", "ks=0.01", "psnr=200", "nonsense"):
        yield [["repack", "cam.nc", "a.nc", "-f", "TS:zfp(accuracy=0.25)", "--require", f"TS:{word}"]]
    for missing in ("exact", "companion", "refuse"):
        yield [["repack", "gaps.h5", "a.h5", "-f", "sst:zfp(accuracy=0.1)", "--missing", missing], ["inspect", "a.h5"]]


def run_all(number: int, arguments: list[list[str]], inputs: Path) -> dict[str, dict[str, Any]]:
    """Run the command in a folder of copies, and return what each run printed, wrote and exited with."""
    folder = shutil.copytree(inputs, inputs.with_name(str(number)))
    try:
        return {f"{number}: {' '.join(words)}": run(words, folder) for words in arguments}
    finally:
        shutil.rmtree(folder)


def run(words: list[str], folder: Path) -> dict[str, Any]:
    before = digests(folder)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("TAMIS", "HDF5"))}
    done = subprocess.run(
        [COMMAND, *words],
        cwd=folder,
        env=environment | {"COLUMNS": "100", "TMPDIR": str(folder.parent)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    after = digests(folder)
    written = {name: digest for name, digest in after.items() if before.get(name) != digest}
    if "virtual.h5" in words:  # HDF5 leaves bytes of its memory between the names of the sources
        written = dict.fromkeys(written, "")
    texts = {"stdout": lines(done.stdout, folder), "stderr": lines(done.stderr, folder)}
    if words[0] == "plan":
        texts["stdout"] = [line for line in texts["stdout"] if not line.startswith(("dataset", "/")) or " * " in line]
    return {"exit code": done.returncode, **texts, "written": written, "gone": sorted(before.keys() - after.keys())}


def lines(text: str, folder: Path) -> list[str]:
    """Return the lines of an output without what no two runs share."""
    text = text.replace(str(folder), "FOLDER")
    for pattern, instead in VOLATILE:
        text = pattern.sub(instead, text)
    return [" ".join(line.split()) for line in text.splitlines()]


def digests(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def record(processes: int) -> dict[str, dict[str, Any]]:
    """Run all, in a folder of the same name each time, because some targets name their sources by it."""
    parent = Path(tempfile.gettempdir()) / "tamis-record"
    parent.mkdir()
    try:
        inputs = parent / "inputs"
        inputs.mkdir()
        write_inputs(inputs)
        with ThreadPoolExecutor(processes) as pool:
            results = pool.map(lambda sequence: run_all(*sequence, inputs), list(enumerate(runs())))
            return {words: result for recorded in results for words, result in recorded.items()}
    finally:
        shutil.rmtree(parent)


def differences(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a unified diff of each run that differs."""
    for words in sorted(before.keys() | after.keys()):
        texts = [
            json.dumps(recorded.get(words), indent=1, ensure_ascii=False).splitlines() for recorded in (before, after)
        ]
        if texts[0] != texts[1]:
            yield f"=== tamis {words}"
            yield from list(difflib.unified_diff(*texts, lineterm="", n=0))[2:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="the JSON file to write")
    parser.add_argument("--against", type=Path, metavar="BEFORE", help="a file recorded before, to compare with")
    parser.add_argument("-j", "--processes", type=int, default=2, metavar="N", help="runs at a time")
    options = parser.parse_args()
    recorded = record(options.processes)
    options.output.write_text(json.dumps(recorded, indent=1, ensure_ascii=False))
    if options.against is None:
        print(f"{len(recorded)} runs recorded in {options.output}")
        return 0
    different = list(differences(json.loads(options.against.read_text()), recorded))
    print("\n".join(different) or f"{len(recorded)} runs: nothing differs")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
