"""Use wheels as a stranger does, with each Python at hand that they are for: ``try_wheels.py WHEEL...``.

- The wheel alone, in an empty environment where no compiler is on the path: it is installed, the demo runs, and so does
  the command, on the sample that it brings.
- In a second environment, with the packages that tests need: the tests that ``--quick`` names, programs in C and
  Fortran, h5repack and ncdump with the plugin, and hdf5plugin, netCDF4 and h5py in one process, imported in any order.

Everything is tried; the exit code is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from pythons import Python, pythons

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
COMPILERS = ("cc", "gcc", "g++", "c++", "clang", "clang++", "gfortran", "cmake", "ninja", "make")

# Where these are named, HDF5 and the linker would find a tamis or a filter that is not the wheel's.
FOREIGN = ("HDF5_PLUGIN_PATH", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")


class StepError(Exception):
    """A step did not do what it should; what was said."""


class Environment:
    """A virtual environment with programs of its own, and those of the system unless it is said to be alone."""

    def __init__(self, python: Python, folder: Path, *, alone: bool) -> None:
        self.folder = folder
        self.path = str(folder / "bin") if alone else os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
        self.python = python

    def create(self) -> None:
        """Make it anew."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._run([self.python.program, "-m", "venv", self.folder])

    def run(self, *command: str | Path) -> str:
        """Run a program of the environment; return what it printed."""
        return self._run([self.folder / "bin" / command[0], *command[1:]])

    def pip_install(self, *packages: str) -> None:
        """Install packages that need no compiler, at the versions of constraints.txt."""
        options = ("--quiet", "--disable-pip-version-check", "--only-binary=:all:", "--constraint", CONSTRAINTS)
        self.run("python", "-m", "pip", "install", *options, *packages)

    def _run(self, command: Sequence[str | Path]) -> str:
        kept = {name: value for name, value in os.environ.items() if name not in FOREIGN}
        kept["PATH"] = self.path
        done = subprocess.run(
            command, cwd=ROOT, env=kept, capture_output=True, text=True, errors="replace", check=False
        )
        if done.returncode:
            said = "\n".join((done.stdout + done.stderr).splitlines()[-40:])
            raise StepError(f"{' '.join(map(str, command))}\n{said}\nexit code {done.returncode}")
        return done.stdout


Step = Callable[[Environment, Path], str]
"""What is done in an environment with a wheel; returns what to say of it."""


def install_alone(environment: Environment, wheel: Path) -> str:
    """Install the wheel with what it needs, without a compiler."""
    if found := [name for name in COMPILERS if shutil.which(name, path=environment.path)]:
        raise StepError(f"expected no compiler on the path, found {', '.join(found)}")
    environment.create()
    environment.pip_install(str(wheel))
    return f"{len(environment.run('python', '-m', 'pip', 'list', '--format=freeze').splitlines())} packages"


def run_demo(environment: Environment, _: Path) -> str:
    """Run the first thing that README shows, and the command."""
    environment.run("python", "-I", ROOT / "examples" / "demo.py")
    return environment.run("tamis", "--version").strip()


def use_sample(environment: Environment, _: Path) -> str:
    """Copy the sample that the wheel brings, as README does, make it smaller, and verify that."""
    folder = environment.folder / "sample"
    folder.mkdir()
    environment.run("tamis", "sample", folder)
    source, small = folder / "cam_ts.nc", folder / "small.nc"
    environment.run("tamis", "repack", source, small, "-f", "TS:zfp(accuracy=0.1)")
    environment.run("tamis", "verify", source, small, "--bound", "TS:0.1")
    if not small.stat().st_size < source.stat().st_size:
        raise StepError(f"expected {small} to be smaller than {source}")
    return f"{source.stat().st_size:,} -> {small.stat().st_size:,} bytes"


def find_files(environment: Environment, _: Path) -> str:
    """See that what the command names is there, and belongs to this environment."""
    plugins = Path(environment.run("tamis", "plugin-path").strip())
    libraries = Path(environment.run("tamis", "config", "--pkg-config-path").strip()).parent
    found = [*plugins.glob("libh5ztamis.*"), *libraries.glob("libtamis.*"), *libraries.glob("pkgconfig/*.pc")]
    if len(found) != 5 or any(environment.folder not in path.parents for path in found):
        raise StepError(f"expected plugin, libraries and package files in {environment.folder}, found {found}")
    return f"{len(found)} files"


def install_for_tests(environment: Environment, wheel: Path) -> str:
    """Install the wheel with the packages that tests need."""
    environment.create()
    environment.pip_install(f"{wheel}[test]")
    return ""


def run_tests(options: Sequence[str], environment: Environment, _: Path) -> str:
    """Run tests of the checkout with the installed package; return pytest's last line."""
    return environment.run("python", "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *options).splitlines()[
        -1
    ]


ALL = ("-m", "")
"""Those that `make test` leaves to `make check`, too."""

ALONE = {
    "installed without a compiler": install_alone,
    "demo and command": run_demo,
    "sample": use_sample,
    "files for HDF5 and C": find_files,
}

WITH_TESTS = {
    "packages of the tests": install_for_tests,
    "C and Fortran": partial(run_tests, (*ALL, "tests/capi/test_programs.py", "tests/capi/test_packages.py")),
    "h5repack and ncdump": partial(
        run_tests, (*ALL, "tests/capi/test_h5repack_recipes.py", "tests/plugin/test_netcdf_tools.py")
    ),
    "beside hdf5plugin, netCDF4, h5py": partial(
        run_tests, (*ALL, "tests/plugin/test_import_order.py", "tests/plugin/test_libraries.py")
    ),
}


def try_steps(steps: dict[str, Step], environment: Environment, wheel: Path, version: str) -> list[str]:
    """Take steps, and print how each ended; return those that failed. Without the first one there are no others."""
    failed: list[str] = []
    for title, step in steps.items():
        start = time.monotonic()
        name = f"{version}: {title}"
        try:
            said = step(environment, wheel)
        except StepError as error:
            failed.append(name)
            print(f"FAILED {name}\n{error}", flush=True)
            if len(failed) == 1 and title == next(iter(steps)):
                break
        else:
            print(f"ok     {name:<42} {time.monotonic() - start:4.0f} s  {said}", flush=True)
    return failed


def main(words: Sequence[str]) -> int:
    """Try wheels; 1 if anything failed, or none is for a Python at hand."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--quick", default="", metavar="FILES", help="tests to run; without, there is no second environment"
    )
    parser.add_argument("--pythons", default="", metavar="NAMES", help="instead of all at hand")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "build" / "check-wheel", help="where environments are made"
    )
    parser.add_argument("wheels", nargs="+", type=Path, metavar="WHEEL")
    given = parser.parse_args(words)
    start = time.monotonic()
    found = pythons(given.pythons.split())
    pairs = [(python, wheel.resolve()) for python in found for wheel in given.wheels if python.fits(wheel)]
    with_tests = {**WITH_TESTS, "quick tests": partial(run_tests, given.quick.split())} if given.quick else {}
    failed: list[str] = []
    for python, wheel in pairs:
        folder = given.folder.resolve() / python.version
        failed += try_steps(ALONE, Environment(python, folder / "alone", alone=True), wheel, python.version)
        if with_tests:
            failed += try_steps(with_tests, Environment(python, folder / "tests", alone=False), wheel, python.version)
    minutes = (time.monotonic() - start) / 60
    versions = ", ".join(python.version for python, _ in pairs) or "no Python"
    print(f"check-wheel: tried with {versions} in {minutes:.0f} minutes; failed: {', '.join(failed) or 'nothing'}")
    return 1 if failed or not pairs else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
