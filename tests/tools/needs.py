"""What tests need beyond pip's packages: where it is absent they skip and say how to get it, and in CI they fail.

A name is that of a program, of a shared library, or of an HDF5 plugin that Debian has as a package.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import re
import shutil
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest

IN_CI = "CI" in os.environ
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
"""Real files, which are not in the repository."""

PLUGIN = "libh5zzfp.so"
"""H5Z-ZFP as Debian has it, where libhdf5 looks for it."""

PACKAGES = {
    "R": "r-base-core",
    "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu",
    "apt-get": "apt",
    "c++": "g++",
    "cc": "gcc",
    "cdo": "cdo",
    "chromium": "chromium",
    "dpkg-deb": "dpkg",
    "env": "coreutils",
    "fish": "fish",
    "g++": "g++",
    "gcc": "gcc",
    "gdal_translate": "gdal-bin",
    "gdalinfo": "gdal-bin",
    "gdalmdiminfo": "gdal-bin",
    "gfortran": "gfortran",
    "h5cc": "libhdf5-dev",
    "h5clear": "hdf5-tools",
    "h5diff": "hdf5-tools",
    "h5dump": "hdf5-tools",
    "h5fc": "libhdf5-dev gfortran",
    "h5ls": "hdf5-tools",
    "h5pcc": "libhdf5-openmpi-dev openmpi-bin",
    "h5repack": "hdf5-tools",
    "h5stat": "hdf5-tools",
    PLUGIN: "hdf5-filter-plugin-zfp-serial",
    "libzfp.so.1": "libzfp-dev",
    "make": "make",
    "man": "man-db",
    "mandoc": "mandoc",
    "mpirun": "openmpi-bin",
    "nccopy": "netcdf-bin",
    "ncdump": "netcdf-bin",
    "ncgen": "netcdf-bin",
    "ncks": "nco",
    "ncra": "nco",
    "nm": "binutils",
    "objdump": "binutils",
    "octave": "octave octave-netcdf",
    "parallel": "parallel",
    "pvpython": "paraview python3-paraview",
    "pkg-config": "pkg-config",
    "qemu-aarch64": "qemu-user",
    "qemu-s390x": "qemu-user",
    "s390x-linux-gnu-g++": "g++-s390x-linux-gnu",
    "readelf": "binutils",
    "Rscript": "r-base-core r-cran-ncdf4 r-cran-hdf5r r-cran-terra",
    "sinfo": "slurm-wlm",
    "unshare": "util-linux",
    "zfp": "zfp",
    "zsh": "zsh",
}
"""Debian's packages, by what they have. Other systems have other names for some."""

TOO_LARGE = frozenset(("h5pcc", "mpirun", "sinfo"))
"""Programs that CI lacks, too: Open MPI and Slurm."""

NO_DATA = "no ../shared/data here, whose files are not in the repository"
NO_SHARED_MEMORY = "no /dev/shm here that this user may write to, by which processes share memory"


@cache
def has(name: str) -> bool:
    """Return whether a program, library or plugin is there."""
    if name == PLUGIN:
        return debian_plugins() is not None
    if re.search(r"\.so(\.\d+)*$", name):
        try:
            ctypes.CDLL(name)
        except OSError:
            return False
        return True
    return shutil.which(name) is not None


def debian_plugins() -> Path | None:
    """Return the folder in which Debian's libhdf5 looks for plugins, if H5Z-ZFP is there."""
    found = sorted(Path("/usr/lib").glob(f"*/hdf5/serial/plugins/{PLUGIN}"))
    return found[0].parent if found else None


def reason(name: str) -> str:
    """Return the line to paste that brings the tests back which skip for want of a program."""
    return f"no {name} here: apt-get install {PACKAGES[name]}"


def absent(name: str) -> NoReturn:
    """Skip a test for want of a program; in CI it fails."""
    (pytest.fail if IN_CI and name not in TOO_LARGE else pytest.skip)(reason(name))


def need(*names: str | os.PathLike[str]) -> None:
    """Skip a test that needs what is not there; in CI it fails."""
    for name in map(os.fspath, names):
        if not has(name):
            absent(name)


def needs(*names: str) -> pytest.MarkDecorator:
    """Return a mark for tests that need programs."""
    lacking = [name for name in names if not has(name)]
    return pytest.mark.skipif(bool(lacking), reason=reason(lacking[0]) if lacking else "")


def real(name: str) -> Path:
    """Return the path of a real file; skip a test where it is not."""
    path = DATA / name
    if not path.exists():
        pytest.skip(NO_DATA)
    return path


@cache
def has_shared_memory() -> bool:
    """Return whether processes of Python can share a lock."""
    try:
        multiprocessing.get_context("spawn").Lock()
    except OSError:
        return False
    return True


def need_shared_memory() -> None:
    """Skip a test whose processes share memory, as a pool of multiprocessing and MPI do."""
    if not has_shared_memory():
        (pytest.fail if IN_CI else pytest.skip)(NO_SHARED_MEMORY)
