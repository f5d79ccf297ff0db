"""Filters in NCZarr stores, by netCDF-C itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tamis
from tamis import netcdf
from tamis.filters.zfp import has_nczarr_codec
from tamis.netcdf.library import has

from .conftest import CHUNKS, netCDF4, new_dataset, variable_of

pytestmark = pytest.mark.skipif(not has("nc_plugin_path_set"), reason="netcdf-c before 4.9.3")


def url(folder: Path) -> str:
    return f"file://{folder}#mode=zarr,file"


@pytest.fixture
def store(tmp_path: Path) -> Any:
    """A new NCZarr store, in which this netcdf-c has the usual codecs."""
    dataset = new_dataset(url(tmp_path / "a.zarr"))
    if not netcdf.inq_filter_avail(dataset, "deflate"):
        dataset.close()
        pytest.skip("this wheel has no codecs for NCZarr")
    return dataset


@pytest.mark.parametrize("by", ["deflate", "shuffle", "pipeline", "variable"])
def test_shuffle_in_nczarr_records_the_size_of_values(by: str, store: Any, tmp_path: Path, values: np.ndarray) -> None:
    if by == "variable":
        variable = netcdf.create_variable(store, "v", "f4", tuple("zyx"), "shuffle|deflate(4)", chunksizes=CHUNKS)
    else:
        variable = variable_of(store)
    if by == "deflate":
        netcdf.def_var_deflate(variable, shuffle=True, level=4)
    elif by == "shuffle":
        netcdf.def_var_shuffle(variable)
    elif by == "pipeline":
        netcdf.def_var_filter(variable, "shuffle|deflate(4)")
    expected = "shuffle" if by == "shuffle" else "shuffle|deflate(4)"
    assert str(netcdf.filters(variable)) == expected
    variable[:] = values
    store.close()
    found = json.loads((tmp_path / "a.zarr" / "v" / ".zarray").read_text())
    (shuffle,) = [codec for codec in (*(found["filters"] or ()), found["compressor"]) if codec["id"] == "shuffle"]
    assert int(shuffle["elementsize"]) == 4  # netcdf-c 4.9.3 writes numbers as text
    with netCDF4.Dataset(url(tmp_path / "a.zarr")) as dataset:
        assert np.array_equal(dataset["v"][:], values)
        assert str(netcdf.filters(dataset["v"])) == expected


def test_order_of_calls_is_kept_in_nczarr(store: Any) -> None:
    variable = variable_of(store)
    netcdf.def_var_filter(variable, "deflate(4)|shuffle")
    assert netcdf.inq_var_filter_ids(variable) == (1, 2)
    # Without a codec for it, zfp is refused first for that.
    with pytest.raises(tamis.TamisError, match="expected zfp first" if has_nczarr_codec() else "NC_ENOFILTER"):
        netcdf.def_var_filter(variable, "zfp(rate=8)")
    store.close()


@pytest.mark.skipif(not has_nczarr_codec(), reason="the plugin has no codec for NCZarr")
@pytest.mark.parametrize("filters", ["zfp(accuracy=0.1)", "zfp(accuracy=0.1)|shuffle|deflate(4)", "zfp(rate=16)"])
def test_zfp_in_nczarr_without_environment_variables(
    filters: str, store: Any, tmp_path: Path, values: np.ndarray
) -> None:
    netcdf.create_variable(store, "v", "f4", tuple("zyx"), filters, chunksizes=CHUNKS)[:] = values
    store.close()
    with netCDF4.Dataset(url(tmp_path / "a.zarr")) as dataset:
        assert np.abs(dataset["v"][:] - values).max() <= 0.1
        names = [member.name for member in netcdf.filters(dataset["v"]).filters]
        assert names == [part.partition("(")[0] for part in filters.split("|")]
