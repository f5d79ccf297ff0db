"""Settings that all tests share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tamis import _native

# The same examples on every run and every machine, and no deadline: a loaded machine is no fault of the code.
settings.register_profile("tamis", derandomize=True, deadline=None, max_examples=100)
settings.load_profile("tamis")

# So that netCDF4, when a test imports it, does not put its own folder there: h5py would load filters from it.
os.environ["HDF5_PLUGIN_PATH"] = "/nonexistent"


@pytest.fixture(autouse=True)
def hdf5plugin_in_a_process_of_its_own() -> None:
    """Fail where a test before has imported hdf5plugin, which changes what h5py of this process reads and writes."""
    assert "hdf5plugin" not in sys.modules


@pytest.fixture(scope="module", params=_native.kernels())
def kernel(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each kernel of the codec that this machine can run, in use while the tests of a module run."""
    before = _native.use_kernel(request.param)
    yield request.param
    _native.use_kernel(before)
