"""Settings that all tests share."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

import h5py
import needs
import numpy as np
import pytest
import skip_report
from hypothesis import HealthCheck, settings

import tamis
from tamis import _native
from tamis.formats.hdf5.stored_array import Hdf5Array
from tamis.formats.hdf5.writer import GrowingFile, Hdf5Writer, create_writer
from tamis.rewrite import ArrayPlan
from tamis.rewrite.outcome import Written
from tamis.rewrite.write import write as write_array

Case = TypeVar("Case")
Run = Callable[..., str]
HERE = Path(__file__).resolve().parent
SAMPLE = HERE.parent / "examples" / "data" / "cam_ts.nc"
CRAFT = HERE / "tools" / "craft.py"
OWN_PLUGINS = tamis.plugin_path()

# The same examples on every run and every machine, and no deadline: a loaded machine is no fault of the code.
settings.register_profile("tamis", derandomize=True, deadline=None, max_examples=60)
# `make check-properties` takes others, and more of them.
settings.register_profile(
    "properties",
    deadline=None,
    max_examples=int(os.environ.get("PROPERTY_EXAMPLES", "60")),
    database=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("properties" if "PROPERTY_EXAMPLES" in os.environ else "tamis")

# So that netCDF4, when a test imports it, does not put its own folder there: h5py would load filters from it.
os.environ["HDF5_PLUGIN_PATH"] = "/nonexistent"

# The programs that tests start need no threads of numpy's linear algebra: these cost 0.1 s of processor time a start.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A shell has its background jobs ignore interrupts, and so would the programs that tests run and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


# Collected tests live to the end: looking for garbage among them only takes time.
gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage from here on, among what tests make."""
    gc.freeze()
    gc.enable()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leave all cases of a matrix but the first to ``make check``."""
    if item.get_closest_marker("matrix") and any(item.callspec.indices.values()):  # type: ignore[attr-defined]
        item.add_marker("check")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the slow tests first: the last one would keep one processor busy while the others have nothing to do.

    Within both groups the order is random: pytest-randomly prints its seed, and ``--randomly-seed=N`` repeats it.
    """
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    if config.getoption("loadgroup", False):
        spread = [item.nodeid for item in items if item.get_closest_marker("xdist_group") and "@" not in item.nodeid]
        assert not spread, f"expected pytest-xdist to keep groups of tests together: {spread[0]}"
    cases_of: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("check") or item.get_closest_marker("starts"):
            cases_of.setdefault(item.nodeid.partition("[")[0], []).append(item)
    # The processes of a run have one seed, and must agree; the order may be another in each. A test of few cases, of
    # which one would run each time, runs every second time.
    kept = {
        item
        for name, cases in cases_of.items()
        for item in share_of(sorted(cases, key=lambda case: case.nodeid), config, name, most=2 * len(cases))
    }
    left_out = {item for cases in cases_of.values() for item in cases} - kept
    if left_out:
        config.hook.pytest_deselected(items=[*left_out])
        items[:] = [item for item in items if item not in left_out]


def share_of(cases: Sequence[Case], config: pytest.Config, name: str, most: int) -> list[Case]:
    """Choose every N-th of the cases where ``SHARE=1/N`` is in the environment, at most `most`; the seed says which."""
    part = min(int(os.environ.get("SHARE", "1/1").removeprefix("1/")), most)
    return [*cases[crc32(f"{seed_of(config)} {name}".encode()) % part :: part]]


def seed_of(config: pytest.Config) -> int:
    """Give the seed that pytest-randomly prints."""
    return int(config.getoption("randomly_seed", 0))


@pytest.fixture
def share(request: pytest.FixtureRequest) -> Callable[[Sequence[Case]], list[Case]]:
    """Give the cases of a long test that this run takes: all, or where ``SHARE=1/N`` says so a part, at least one."""
    return lambda cases: share_of(cases, request.config, request.node.nodeid, most=len(cases))


def pytest_configure(config: pytest.Config) -> None:
    """Account for the skips of the run."""
    skip_report.pytest_configure(config)


@pytest.fixture(autouse=True)
def hdf5plugin_in_a_process_of_its_own() -> None:
    """Fail where a test before has imported hdf5plugin, which changes what h5py of this process reads and writes."""
    assert "hdf5plugin" not in sys.modules


@pytest.fixture(scope="session")
def netcdf4_plugins() -> None:
    """Have NCZarr find the plugins that netCDF4 carries, and imagecodecs its own libraries.

    Every test that uses a filter of NCZarr in this process needs it: netCDF-C makes the symbols of plugins global, and
    imagecodecs, imported later, would call the c-blosc of a plugin.
    """
    pytest.importorskip("netCDF4")
    pytest.importorskip("imagecodecs._blosc")


@pytest.fixture(scope="session")
def make_ocean() -> Callable[..., Any]:
    """Write a file with missing values, made of the field that the repository ships, and give the values of its TS."""

    def make(path: Path, *, other_nan: bool = False) -> Any:
        fill = np.float32(9.96921e36)
        shutil.copy(SAMPLE, path)
        path.chmod(0o644)
        with h5py.File(path, "r+") as file:
            values = file["TS"][()]
            lat, lon = np.indices(values.shape[1:])
            values[:, np.sin(lat / 17) + np.cos(lon / 23) > 0.7] = fill  # land, which stays where it is
            values[3, 5, 6], values[3, 5, 7], values[4, 60, 60:90], values[:, -1, -1] = np.nan, -np.nan, np.inf, -np.inf
            if other_nan:
                values[7, 40, 100:101].view("u4")[...] = 0x7FC0BEEF
            file["TS"][...] = values
            file["TS"].attrs["_FillValue"] = np.array([fill])
            file["TS"].attrs["ancillary_variables"] = np.bytes_("TS_quality")
        return values

    return make


def run(command: list[str | Path], variables: dict[str, str], code: int) -> str:
    """Run a command with such variables in place of those of HDF5's plugins, and give what it said."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HDF5_PLUGIN")}
    done = subprocess.run(command, env=clean | variables, capture_output=True, text=True, errors="replace", check=False)
    said = done.stdout + done.stderr
    assert done.returncode == code, f"{command[:3]} gave {done.returncode}: {said[-3000:]}"
    return said


@pytest.fixture(scope="session")
def tool() -> Run:
    """Run a program of HDF5 or netCDF with the plugins of a folder, or none, check its exit code, give what it said."""

    def call(*command: str | Path, plugins: Path | None = OWN_PLUGINS, code: int = 0) -> str:
        needs.need(command[0])
        variables = {"HDF5_PLUGIN_PRELOAD": "::"} if plugins is None else {"HDF5_PLUGIN_PATH": str(plugins)}
        return run([*command], variables, code)

    return call


@pytest.fixture(scope="session")
def python() -> Run:
    """Run Python code, or a script, in an interpreter of its own; without plugins unless `env` or `plugins` says so."""

    def call(
        code: str | Path,
        *arguments: str | Path,
        plugins: Path | None = None,
        env: dict[str, str] | None = None,
        exit_code: int = 0,
    ) -> str:
        variables = dict(env or {})
        if plugins is not None:
            variables["HDF5_PLUGIN_PATH"] = str(plugins)
        start: list[str | Path] = [code] if isinstance(code, Path) else ["-c", code]
        return run([sys.executable, *start, *arguments], variables, exit_code)

    return call


@pytest.fixture(scope="session")
def without_plugins(python: Run) -> Run:
    """Run Python code where no filter 32013 is to be had."""
    return lambda *arguments: python(*arguments, env={"HDF5_PLUGIN_PRELOAD": "::"})


@pytest.fixture(scope="session")
def craft(without_plugins: Run) -> Callable[..., None]:
    """Create a dataset ``v`` of one chunk with any cd_values, type and chunk bytes, past any filter."""

    def call(
        path: Path, dtype: str, shape: tuple[int, ...], values: tuple[int, ...], chunk: bytes, mask: int = 0
    ) -> None:
        words = [value & 0xFFFFFFFF for value in values]
        without_plugins(CRAFT, path, json.dumps([dtype, shape, words, chunk.hex(), mask]))

    return call


@pytest.fixture
def run_script(tmp_path: Path) -> Callable[..., str]:
    """Run a Python script with its temporary files in `tmp_path`, check its exit code, and give what it printed."""

    def run(script: Path, *arguments: str) -> str:
        command = [sys.executable, script, *arguments]
        environment = os.environ | {"TMPDIR": str(tmp_path)}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def write_beside() -> Callable[..., tuple[h5py.Dataset, Written]]:
    """Write the dataset of a plan into the file of its source, by such a name."""

    def write(
        plan: ArrayPlan, source: h5py.Dataset, file: h5py.File, name: str, progress: Any, threads: int = 1
    ) -> tuple[h5py.Dataset, Written]:
        array, end, writers = Hdf5Array.of(source), GrowingFile(file.filename), list[Hdf5Writer]()

        def create(plan: ArrayPlan) -> Hdf5Writer:
            if writers:
                writers.pop().discard()
            writers.append(create_writer(plan, array, file, name, end))
            return writers[0]

        written = write_array(plan, array, create, progress, threads)
        return writers[0].dataset, written

    return write


@pytest.fixture(scope="module", params=_native.kernels())
def kernel(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each kernel of the codec, in use while the tests of a module run; `test_u33_…` looks for absent ones."""
    before = _native.use_kernel(request.param)
    yield request.param
    _native.use_kernel(before)
