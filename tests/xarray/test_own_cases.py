"""xarray's own tests of netCDF-4 files: what its engine netcdf4 writes, the engine "tamis" reads as they expect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
from xarray.tests import test_backends as cases


@pytest.fixture(params=["s", "ns"])
def time_unit(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[False, True])
def use_dask(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


class TestReading(cases.TestNetCDF4Data):  # type: ignore[misc]
    @contextmanager
    def open(self, path: str, **keywords: Any) -> Iterator[xr.Dataset]:
        with xr.open_dataset(path, engine="tamis", **keywords) as ds:
            yield ds

    @contextmanager
    def roundtrip(
        self,
        data: xr.Dataset,
        save_kwargs: dict[str, Any] | None = None,
        open_kwargs: dict[str, Any] | None = None,
        allow_cleanup_failure: bool = False,
    ) -> Iterator[xr.Dataset]:
        with cases.create_tmp_file(allow_cleanup_failure=allow_cleanup_failure) as path:
            self.save(data, path, **(save_kwargs or {}))
            with self.open(path, **(open_kwargs or {})) as ds:
                yield ds

    @pytest.mark.parametrize("compression", [None, "zlib", "szip"])
    def test_compression_encoding(self, compression: str | None) -> None:
        """Codecs of plugins are left to test_engine: xarray looks for them before tamis makes them known to netCDF4."""
        super().test_compression_encoding(compression)

    def test_byte_attrs(self, tmp_path: Path) -> None:
        """The engine netcdf4 replaces characters that are not UTF-8, and so does xarray's case; this one keeps them."""
        raw = bytes(range(1, 256))
        xr.Dataset({"x": 1}).assign_attrs(raw=raw).to_netcdf(tmp_path / "a.nc", engine="netcdf4")
        with self.open(str(tmp_path / "a.nc")) as ds:
            assert ds.attrs["raw"] == raw
