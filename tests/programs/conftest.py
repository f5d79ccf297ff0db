"""Files that other programs get, and what they are run by: docs/programs.md says what comes out."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import h5py
import needs
import numpy as np
import pytest
import xarray as xr
from numpy.typing import NDArray

import tamis

BOUND = 0.01
RECIPES = {
    "zfp": f"zfp(accuracy={BOUND})|shuffle|deflate(4)",
    "masks": f"zfp(accuracy={BOUND})|shuffle|deflate(4)",
    "rounded": f"absolute({BOUND})|shuffle|deflate(4)",
    "packed": f"pack({BOUND})|shuffle|deflate(4)",
    "zeros": f"pack({BOUND})|shuffle|deflate(4)",
}
SHAPE, CHUNK = (8, 24, 32), (4, 12, 16)


class Target(NamedTuple):
    """A file of tamis, and the values of its variable ``t``, NaN where they are missing."""

    path: Path
    values: NDArray[np.float32]

    def check(self, values: NDArray[np.floating]) -> None:
        """Check that values are those of the file within the bound, in the order of the file."""
        assert values.size == self.values.size
        np.testing.assert_allclose(values.ravel(), self.values.ravel(), rtol=0, atol=BOUND + 1e-4, equal_nan=True)


@pytest.fixture(scope="session")
def targets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Target]:
    """Files of ``repack``: through zfp, the same with a chunk stored without it, rounded, and packed."""
    folder = tmp_path_factory.mktemp("programs")
    gaps = without_gaps()
    gaps[:, :6, :5] = np.nan
    found = {}
    for name, recipe in RECIPES.items():
        values = without_gaps() if name == "zfp" else np.maximum(gaps - 280, 0) if name == "zeros" else gaps
        found[name] = make_target(folder / f"{name}.nc", values, recipe)
    return found


def without_gaps() -> NDArray[np.float32]:
    """Return values that vary like a temperature, all valid."""
    values = np.random.default_rng(3).standard_normal(SHAPE).cumsum(axis=0).astype("f4") / 10 + 280
    return np.asarray(values, np.float32)


def make_target(path: Path, values: NDArray[np.float32], recipe: str) -> Target:
    """Write values as a netCDF-4 file beside the target, and repack it."""
    source = path.with_suffix(".source.nc")
    ds = xr.Dataset(
        {"t": (("time", "lat", "lon"), values, {"units": "K"})},
        coords={
            "time": ("time", np.arange(8.0), {"units": "days since 2000-01-01"}),
            "lat": ("lat", np.linspace(80, -80, 24), {"units": "degrees_north"}),
            "lon": ("lon", np.linspace(0, 348.75, 32), {"units": "degrees_east"}),
        },
    )
    encoding = {"t": {"chunksizes": CHUNK, "_FillValue": np.float32(9.969209968386869e36)}}
    ds.to_netcdf(source, engine="netcdf4", unlimited_dims=["time"], encoding=encoding)
    tamis.repack(source, path, {"t": recipe})
    return Target(path, values)


class Done(NamedTuple):
    """What a program left behind."""

    code: int
    output: str
    """All that it printed, with its errors."""
    values: str
    """What it printed on standard output."""


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a program in an empty folder, with tamis' plugin, without plugins, or with those of a folder."""

    def call(*command: str | Path, plugin: bool | Path = True) -> Done:
        needs.need(command[0])
        folder = plugin if isinstance(plugin, Path) else tamis.plugin_path() if plugin else "/nonexistent"
        env = os.environ | {"HDF5_PLUGIN_PATH": str(folder)}
        done = subprocess.run([*map(str, command)], env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
        return Done(done.returncode, done.stdout + done.stderr, done.stdout)

    return call


def filters(path: Path, name: str = "t") -> list[int]:
    """Return the numbers of the filters of a variable."""
    with h5py.File(path) as file:
        plist = file[name].id.get_create_plist()
        return [plist.get_filter(at)[0] for at in range(plist.get_nfilters())]
