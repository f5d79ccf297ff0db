"""Predictions of `tamis plan` against repack: ``python benchmarks/plans.py [FILE …] [--require WORDS …] [--all]``.

Each variable of data that plan would touch by a pattern is planned for each requirement, and repacked by its recipe
alone. A row has the predicted ratio, the real one, how much they differ, and the CPU seconds of the plan. At the end
come the median, the 95th percentile and the largest of the differences, and of the seconds. Without files, those that
the tests use are taken.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import tamis
from tamis.errors import TamisError

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
REQUIREMENTS = ("range=1e-3", "digits=3", "psnr=80", "information=0.99", "dssim=0.999", "lossless")


def variables(path: Path) -> list[str]:
    """Return the variables of data that a pattern reaches."""
    plan = tamis.plan(path, {"*": "lossless"}, sample=1_000_000)
    return [planned.path for planned in plan.datasets]


def row(path: Path, name: str, requirement: str, sample: int | None) -> tuple[float, float] | None:
    """Print a row; return how much the ratio differs, and the seconds of the plan; None if nothing was planned."""
    begin = time.process_time()
    plan = tamis.plan(path, {name: requirement}, sample=sample)
    seconds = time.process_time() - begin
    if not plan.filters or (chosen := plan[name].chosen) is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        result = tamis.repack(path, Path(folder) / f"a{path.suffix}", plan.recipe)[name]
    ratio = result.nbytes / result.target_nbytes
    difference = chosen.ratio / ratio - 1
    print(
        f"{path.name} {name} {requirement}: {chosen.filters}, predicted {chosen.ratio:.2f}, found {ratio:.2f},"
        f" {difference:+.1%}, {seconds:.2f} s",
        flush=True,
    )
    return abs(difference), seconds


def print_summary(label: str, values: list[float], form: str) -> None:
    """Print the median, the 95th percentile and the largest."""
    ordered = sorted(values)
    at_95 = ordered[min(int(0.95 * len(ordered)), len(ordered) - 1)]
    figures = (statistics.median(ordered), at_95, ordered[-1])
    print(f"{label}: median {figures[0]:{form}}, 95 % within {figures[1]:{form}}, all within {figures[2]:{form}}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--require", nargs="+", default=REQUIREMENTS, metavar="WORDS")
    parser.add_argument("--all", action="store_true", help="measure on all values")
    options = parser.parse_args()
    files = options.files or sorted(SHARED.glob("*.nc"))
    if not files:
        sys.exit(f"expected files, found none in {SHARED}")
    rows: list[tuple[float, float]] = []
    for path in files:
        try:
            for name in variables(path):
                found = (
                    row(path, name, requirement, None if options.all else 16_000_000) for requirement in options.require
                )
                rows += [each for each in found if each is not None]
        except TamisError as error:
            print(f"{path.name}: left out: {error}")
    if rows:
        differences, seconds = map(list, zip(*rows, strict=True))
        print(f"{len(rows)} plans")
        print_summary("difference of the ratio", differences, ".1%")
        print_summary("CPU seconds", seconds, ".2f")


if __name__ == "__main__":
    main()
