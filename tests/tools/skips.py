"""Every reason for which a test may skip, and where it may: a run with any other skip fails.

A test that skips for a new reason needs a row here, with the condition that makes the reason true. CI (the environment
variable CI, which `.ci/run` sets) has all programs and packages, so that only what a machine is may skip tests there,
and only so many of them.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import needs
import processor
from needs import IN_CI


class Allowed(NamedTuple):
    """A reason, as a pattern; whether it is true here, asked with the match; how many tests may give it in CI."""

    reason: str
    is_true: Callable[[re.Match[str]], object]
    most: int


def is_absent(match: re.Match[str]) -> bool:
    """Return whether a program is absent, which CI installs, unless it is too large."""
    return (not IN_CI or match["name"] in needs.TOO_LARGE) and not needs.has(match["name"])


def is_not_installed(match: re.Match[str]) -> bool:
    """Return whether a package of Python is not installed, which `make test` installs."""
    return not IN_CI and importlib.util.find_spec(match["name"].split(".")[0]) is None


def version_of(package: str) -> tuple[int, ...]:
    """Return the first two numbers of the version of an installed package."""
    return tuple(map(int, importlib.metadata.version(package).split(".")[:2]))


def always(_: re.Match[str]) -> bool:
    """Return True."""
    return True


ALLOWED = (
    Allowed(r"this processor cannot run the kernel (?P<name>\S+)", lambda m: not processor.can_run(m["name"]), 4),
    Allowed(
        r"this compiler does not make the kernel (?P<name>\S+)", lambda m: not processor.compiler_makes(m["name"]), 1
    ),
    Allowed(r"the build was told to leave out the kernel (?P<name>\S+)", lambda m: processor.left_out(m["name"]), 3),
    Allowed(r"could not import '(?P<name>[\w.]+)'.*", is_not_installed, 40),
    Allowed(r"no (?P<name>\S+) here: apt-get install .+", is_absent, 5),
    Allowed(r"no Slurm answers here", always, 2),
    Allowed(
        r"could not import '(?P<name>dask_jobqueue|dask_mpi)'.*",
        lambda m: importlib.util.find_spec(m["name"]) is None,
        2,
    ),
    Allowed(re.escape(needs.NO_DATA), lambda m: not needs.DATA.is_dir(), 400),
    Allowed(re.escape(needs.NO_SHARED_MEMORY), lambda m: not needs.has_shared_memory(), 0),
    Allowed(r".* is not installed.*", lambda m: not IN_CI, 0),
    Allowed(r"netcdf-c before 4\.9\.3|this (?:wheel|netcdf-c) .*|the plugin has no codec .*", lambda m: not IN_CI, 40),
    Allowed(
        r"libzfp converts NaN in another way here",
        lambda m: platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc",
        1,
    ),
    Allowed(
        r"(netCDF-C|HDF5) compiled for other processors .*",
        lambda m: platform.machine().lower() not in ("x86_64", "amd64"),
        8,
    ),
    Allowed(r"needs matplotlib: .*", lambda m: importlib.util.find_spec("matplotlib") is None, 3),
    Allowed(r"only root can become somebody.*", lambda m: os.geteuid() != 0, 50),
    Allowed(r"root may read all", lambda m: os.geteuid() == 0, 40),
    Allowed(r"no file system can be mounted here", lambda m: not IN_CI or os.geteuid() != 0, 50),
    Allowed(r"no access lists here|no (?:such )?extended attributes here.*", lambda m: not IN_CI, 3),
    # Python 3.11 gets no newer one.
    Allowed(r"zarr before 3\.2(, which .+)?", lambda _: version_of("zarr") < (3, 2), 30),
    Allowed(r"a zarr that has the codecs: .+", lambda _: version_of("zarr") >= (3, 2), 5),
    Allowed(r"no zarrita\.js here: .+", lambda _: "ZARRITA" not in os.environ, 5),
    Allowed(r"no /dev/full here|.* as Linux does|needs Linux.*", lambda m: sys.platform != "linux", 20),
    Allowed(r".*changes bytes there", lambda m: sys.byteorder == "big", 4),
    # Tests of xarray's own suite (tests/xarray/test_own_cases.py), for its own reasons: files that its package lacks,
    # and what its engines lack.
    Allowed(
        r"requires netcdf|NetCDF backends don't support async loading|https://.*netcdf4-python/issues/1195", always, 4
    ),
)


def problems(reasons: Iterable[str]) -> list[str]:
    """Return a line for each reason that no row allows here, and in CI for each row that more tests give than may."""
    used: Counter[Allowed] = Counter()
    lines = []
    for reason, count in Counter(reasons).items():
        matches = ((row, re.fullmatch(row.reason, reason, re.DOTALL)) for row in ALLOWED)
        row = next((row for row, match in matches if match and row.is_true(match)), None)
        if row is None:
            lines.append(f"{count} skipped for a reason that tests/tools/skips.py does not allow here: {reason}")
        else:
            used[row] += count
    if IN_CI:
        lines += [
            f"{count} skipped where {row.most} may: {row.reason}" for row, count in used.items() if count > row.most
        ]
    return lines


def wanted(reasons: Mapping[str, int]) -> list[str]:
    """Return a table of the packages that would bring tests back, and the line that installs all of them."""
    counts: Counter[str] = Counter()
    names: dict[str, list[str]] = {}
    for reason, count in reasons.items():
        match = re.fullmatch(r"no (\S+) here: apt-get install (.+)", reason)
        if match is not None:
            counts[match[2]] += count
            names.setdefault(match[2], []).append(match[1])
    if not counts:
        return []
    rows = [(packages, ", ".join(sorted(names[packages])), count) for packages, count in counts.most_common()]
    width = max(len(packages) for packages, _, _ in rows)
    table = [f"{count:5} {packages:{width}}  {programs}" for packages, programs, count in rows]
    packages = sorted({package for line in counts for package in line.split()})
    return [*table, f"apt-get install {' '.join(packages)}"]
