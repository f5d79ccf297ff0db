"""netCDF4 datasets to define filters in, and netCDF-C itself to compare with."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

netCDF4 = pytest.importorskip("netCDF4")  # noqa: N816 - its name

SHAPE, CHUNKS = (8, 16, 16), (4, 16, 16)


@pytest.fixture(autouse=True, scope="session")
def plugins_of_netcdf4(netcdf4_plugins: None) -> None:
    """Let the libraries of netCDF4 find the plugins of its wheel in all tests of this folder."""


class RawLibrary:
    """Functions of netCDF-C without anything of tamis in between."""

    def __init__(self) -> None:
        self.library = ctypes.PyDLL(netCDF4._netCDF4.__file__)

    def __call__(self, name: str, variable: Any, *arguments: Any) -> int:
        """Call a function with the ids of a variable; give its status."""
        return int(getattr(self.library, name)(variable._grpid, variable._varid, *arguments))

    def define(self, variable: Any, number: int, *values: int) -> int:
        words = (ctypes.c_uint * max(len(values), 1))(*values)
        return self("nc_def_var_filter", variable, ctypes.c_uint(number), ctypes.c_size_t(len(values)), words)

    def listed(self, variable: Any) -> list[tuple[int, tuple[int, ...]]]:
        """Give ids and parameters of all filters."""
        count = ctypes.c_size_t()
        assert self("nc_inq_var_filter_ids", variable, ctypes.byref(count), None) == 0
        ids = (ctypes.c_uint * max(count.value, 1))()
        assert self("nc_inq_var_filter_ids", variable, ctypes.byref(count), ids) == 0
        return [(number, self._parameters(variable, number)) for number in ids[: count.value]]

    def _parameters(self, variable: Any, number: int) -> tuple[int, ...]:
        count, room = ctypes.c_size_t(), (ctypes.c_uint * 300)()
        wanted = (ctypes.c_uint(number), ctypes.byref(count), room)
        assert self("nc_inq_var_filter_info", variable, *wanted) == 0
        return tuple(room[: count.value])


@pytest.fixture(scope="session")
def raw() -> RawLibrary:
    return RawLibrary()


def new_dataset(path: Path | str, **settings: Any) -> Any:
    dataset = netCDF4.Dataset(path, "w", **settings)
    for name, extent in zip("zyx", SHAPE, strict=True):
        dataset.createDimension(name, extent)
    return dataset


@pytest.fixture
def dataset(tmp_path: Path) -> Iterator[Any]:
    """A netCDF-4 file that is open for writing."""
    opened = new_dataset(tmp_path / "a.nc")
    yield opened
    with suppress(RuntimeError):  # netCDF-C accepts some parameters on a second call, which HDF5 refuses at the end
        opened.close()


@pytest.fixture
def values() -> np.ndarray:
    z, y, x = np.indices(SHAPE)
    return (280 + 10 * np.sin(z / 3 + y / 5) * np.cos(x / 4)).astype("f4")


def variable_of(dataset: Any, name: str = "v", dtype: Any = "f4", dimensions: str = "zyx") -> Any:
    """Create a variable without filters, whose filters can be defined."""
    chunks = CHUNKS if dimensions == "zyx" else None
    return dataset.createVariable(name, dtype, tuple(dimensions), chunksizes=chunks)
