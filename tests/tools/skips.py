"""Every reason for which a test may skip, and where it may: a run with any other skip fails.

A test that skips for a new reason needs a row here, with the condition that makes the reason true. CI (the environment
variable CI, which `.ci/run` sets) has all programs and packages, so that only what a machine is may skip tests there.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import processor

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
IN_CI = "CI" in os.environ


class Allowed(NamedTuple):
    """A reason, as a pattern; whether it is true here, asked with the match; how many tests may give it."""

    reason: str
    is_true: Callable[[re.Match[str]], object]
    most: int


def is_absent(match: re.Match[str]) -> bool:
    """Return whether a program is absent, which CI installs."""
    return not IN_CI and shutil.which(match["name"]) is None


def is_not_installed(match: re.Match[str]) -> bool:
    """Return whether a package of Python is not installed, which `make test` installs."""
    return not IN_CI and importlib.util.find_spec(match["name"].split(".")[0]) is None


def always(_: re.Match[str]) -> bool:
    """Return True."""
    return True


ALLOWED = (
    Allowed(r"this processor cannot run the kernel (?P<name>\S+)", lambda m: not processor.can_run(m["name"]), 3),
    Allowed(
        r"this compiler does not make the kernel (?P<name>\S+)", lambda m: not processor.compiler_makes(m["name"]), 1
    ),
    Allowed(r"the build was told to leave out the kernel (?P<name>\S+)", lambda m: processor.left_out(m["name"]), 3),
    Allowed(r"could not import '(?P<name>[\w.]+)'.*", is_not_installed, 40),
    Allowed(r"no (?P<name>[\w-]+) here", is_absent, 200),
    # Open MPI and Slurm are too large for CI.
    Allowed(r"no (?P<name>h5pcc|mpirun) here .*", lambda m: shutil.which(m["name"]) is None, 2),
    Allowed(r"no sinfo here, or no Slurm that answers it", always, 2),
    Allowed(
        r"could not import '(?P<name>dask_jobqueue|dask_mpi)'.*",
        lambda m: importlib.util.find_spec(m["name"]) is None,
        2,
    ),
    Allowed(r".*shared.*", lambda m: not DATA.is_dir(), 400),
    Allowed(r"(?:no (?:h5repack or H5Z-ZFP|cmake, make or h5fc) here|.* is not installed.*)", lambda m: not IN_CI, 40),
    Allowed(r"netcdf-c before 4\.9\.3|this (?:wheel|netcdf-c) .*|the plugin has no codec .*", lambda m: not IN_CI, 40),
    Allowed(r"no H5Z-ZFP test files here", lambda m: not DATA.is_dir(), 40),
    Allowed(r"needs matplotlib: .*", lambda m: importlib.util.find_spec("matplotlib") is None, 3),
    Allowed(r"only root can become somebody.*", lambda m: os.geteuid() != 0, 2),
    Allowed(r"root may read all", lambda m: os.geteuid() == 0, 1),
    Allowed(r"no file system can be mounted here", lambda m: not IN_CI or os.geteuid() != 0, 4),
    Allowed(r"no access lists here|no (?:such )?extended attributes here.*", lambda m: not IN_CI, 3),
    Allowed(r"no /dev/full here|.* as Linux does|needs Linux.*", lambda m: sys.platform != "linux", 20),
    Allowed(r".*changes bytes there", lambda m: sys.byteorder == "big", 4),
    # Tests of xarray's own suite (tests/xarray/test_own_cases.py), for its own reasons: files that its package lacks,
    # and what its engines lack.
    Allowed(
        r"requires netcdf|NetCDF backends don't support async loading|https://.*netcdf4-python/issues/1195", always, 4
    ),
)


def problems(reasons: Iterable[str]) -> list[str]:
    """Return a line for each reason that no row allows here, and for each row that more tests give than may."""
    used: Counter[Allowed] = Counter()
    lines = []
    for reason, count in Counter(reasons).items():
        matches = ((row, re.fullmatch(row.reason, reason, re.DOTALL)) for row in ALLOWED)
        row = next((row for row, match in matches if match and row.is_true(match)), None)
        if row is None:
            lines.append(f"{count} skipped for a reason that tests/tools/skips.py does not allow here: {reason}")
        else:
            used[row] += count
    lines += [f"{count} skipped where {row.most} may: {row.reason}" for row, count in used.items() if count > row.most]
    return lines
