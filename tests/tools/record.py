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

from input_files import write_inputs

COMMAND = Path(sys.executable).parent / "tamis"

# Times and speeds, which no two runs share.
VOLATILE = (
    (re.compile(r"(\"seconds\": )[\d.e+-]+"), r"\1N"),
    (re.compile(r": done in [\d.]+ m?s$", re.MULTILINE), ": done"),
    (re.compile(r"\bin [\d.]+ m?s\b"), "in N s"),
    (re.compile(r" +[\d.]+ +[\d.]+(?= +(?:any HDF5|HDF5 with))"), " N N"),
)


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
