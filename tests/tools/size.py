"""How large the package is: files, lines, and what each command loads. ``make size`` prints a table.

The limits make a change that adds a room, or an import that a command does not need, a decision: raise one only with
the reason in the commit. Times depend on the machine, so they are printed and have no limit.
"""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "tamis"
SAMPLE = ROOT / "examples" / "data" / "cam_ts.nc"

MOST_FILES = 280
MOST_LINES = 63_150
MOST_CODE_LINES = 43_135
MOST_MODULES = {
    "import tamis": 27,
    "--help": 29,
    "spec": 48,
    "filters": 40,
    "inspect": 78,
    "plan": 126,
    "repack": 133,
    "verify": 113,
    "report": 133,
    "copy": 141,
    "export": 103,
}
"""Modules of tamis that each command may load, on the sample."""

_LOADED = """
import sys
{run}
print(sum(name.partition(".")[0] == "tamis" for name in sys.modules), file=sys.stderr)
"""
_RUN = "import tamis_command\ntry:\n    tamis_command.main()\nexcept SystemExit as end:\n    assert not end.code"


@dataclass(frozen=True)
class Lines:
    """Lines of files: all, and those of code alone, without docstrings, comments and blank lines."""

    files: int
    total: int
    code: int


def lines() -> Lines:
    """Count the lines of the package."""
    paths = sorted(PACKAGE.rglob("*.py"))
    texts = [path.read_text(encoding="utf-8") for path in paths]
    return Lines(len(paths), sum(len(text.splitlines()) for text in texts), sum(map(_code_lines, texts)))


def _code_lines(text: str) -> int:
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            documented.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    rows = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(bool(row) and not row.startswith("#") and number not in documented for number, row in rows)


def arguments(folder: Path) -> dict[str, list[str]]:
    """Return a typical call of each command."""
    repack = ["repack", str(SAMPLE), str(folder / "repacked.nc"), "-f", "TS:zfp(accuracy=0.1)", "--overwrite"]
    return {
        "--help": ["--help"],
        "spec": ["spec", "zfp(rate=8)"],
        "filters": ["filters", "zfp"],
        "inspect": ["inspect", str(SAMPLE)],
        "plan": ["plan", str(SAMPLE), "--want", "TS:abs=0.1"],
        "repack": repack,
        "report": ["report", str(SAMPLE), str(SAMPLE), "--json"],
        "verify": ["verify", str(SAMPLE), str(folder / "repacked.nc"), "--bound", "TS:0.1"],
        "copy": ["copy", str(SAMPLE), str(folder / "copied.nc")],
        "export": ["export", str(SAMPLE), "--to", "kerchunk", "-o", str(folder / "references.json")],
    }


def loaded_modules(folder: Path) -> dict[str, int]:
    """Count the modules of tamis that each command loads, in a process of its own."""
    counts = {"import tamis": _loaded("import tamis", [])}
    return counts | {name: _loaded(_RUN, call) for name, call in arguments(folder).items()}


def _loaded(run: str, call: list[str]) -> int:
    command = [sys.executable, "-c", _LOADED.format(run=run), *call]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stderr.split()[-1])


def seconds(*commands: list[str], runs: int = 7) -> list[float]:
    """Return the median time of each command, run in turns."""
    times: list[list[float]] = [[] for _ in commands]
    for _ in range(runs):
        for command, its_times in zip(commands, times, strict=True):
            begin = time.perf_counter()
            subprocess.run(command, capture_output=True, check=True)
            its_times.append(time.perf_counter() - begin)
    return [statistics.median(its_times) for its_times in times]


def main() -> None:
    """Print the table."""
    size = lines()
    print(f"{'what':14}{'here':>8}{'at most':>9}")
    for name, here, most in (
        ("files", size.files, MOST_FILES),
        ("lines", size.total, MOST_LINES),
        ("lines of code", size.code, MOST_CODE_LINES),
    ):
        print(f"{name:14}{here:8}{most:9}")
    print("\nmodules of tamis that are loaded by")
    with TemporaryDirectory() as folder:
        for name, count in loaded_modules(Path(folder)).items():
            print(f"{name:14}{count:8}{MOST_MODULES[name]:9}")
    inspect, libraries = seconds(
        [str(Path(sys.executable).with_name("tamis")), "inspect", str(SAMPLE)],
        [sys.executable, "-c", "import numpy, h5py"],
    )
    print(
        f"\ntamis inspect takes {inspect:.3f} s, import numpy, h5py {libraries:.3f} s: {inspect / libraries:.2f} times"
    )


if __name__ == "__main__":
    main()
