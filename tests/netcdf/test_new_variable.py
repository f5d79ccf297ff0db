"""`create_variable`: what it writes is what was asked for, and what it refuses leaves no trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis
from tamis import netcdf

from .conftest import CHUNKS, SHAPE, netCDF4, new_dataset

LOSSY = "zfp(accuracy=0.1)|shuffle|deflate(4)|fletcher32"


def masks(path: Path, name: str) -> set[int]:
    with h5py.File(path) as file:
        dataset = file[name].id
        return {dataset.get_chunk_info(i).filter_mask for i in range(dataset.get_num_chunks())}


@pytest.mark.parametrize("model", ["NETCDF4", "NETCDF4_CLASSIC"])
@pytest.mark.parametrize("filters", [LOSSY, "zfp(accuracy=0.1)|fletcher32", "fletcher32|shuffle|deflate(4)", "none"])
def test_create_variable_writes_the_pipeline(model: str, filters: str, tmp_path: Path, values: np.ndarray) -> None:
    path = tmp_path / "a.nc"
    with new_dataset(path, format=model) as dataset:
        variable = netcdf.create_variable(dataset, "TS", "f4", ("z", "y", "x"), filters=filters, chunksizes=CHUNKS)
        variable.units = "K"
        variable[:] = values
        assert dataset["TS"] is variable
        assert variable.chunking() == list(CHUNKS)
    with h5py.File(path) as file:
        stored = str(tamis.hdf5.pipeline_of(file["TS"]))
        assert stored.replace("0.0625", "0.1").replace("!", "") == filters
    assert masks(path, "TS") == {0}
    with netCDF4.Dataset(path) as dataset:
        assert np.abs(dataset["TS"][:] - values).max() <= 0.1
        assert dataset["TS"].units == "K"


def test_create_variable_default_chunks_suit_zfp_and_growing_dimensions(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as dataset:
        dataset.createDimension("time", None)
        dataset.createDimension("y", 30)
        dataset.createDimension("x", 50)
        variable = netcdf.create_variable(dataset, "v", "f4", ("time", "y", "x"), tamis.Zfp(accuracy=0.1))
        assert variable.chunking()[1:] == [30, 50]
        assert variable.chunking()[0] % 4 == 0
        values = np.linspace(0, 9, 2 * variable.chunking()[0] * 1500, dtype="f4").reshape(-1, 30, 50)
        variable[:] = values
        assert np.abs(variable[:] - values).max() <= 0.1
    assert masks(path, "v") == {0}


def test_create_variable_fill_value_is_kept_beside_lossy_values(tmp_path: Path, values: np.ndarray) -> None:
    path = tmp_path / "a.nc"
    values[:4, 3:7] = -999
    with new_dataset(path) as dataset:
        variable = netcdf.create_variable(
            dataset, "v", "f4", ("z", "y", "x"), "zfp(accuracy=0.1)", chunksizes=CHUNKS, fill_value=-999.0
        )
        dataset.sync()
        if not netcdf.filters(variable).stages[0].optional:
            pytest.skip("this netcdf-c makes zfp required, which cannot store such a chunk")
        variable[:] = values
    with netCDF4.Dataset(path) as dataset:
        read = dataset["v"][:]
        assert np.array_equal(np.ma.getmaskarray(read), values == -999)
        assert np.abs(read - values).max() <= 0.1
    with h5py.File(path) as file:
        assert file["v"].attrs["_FillValue"] == -999


def test_create_variable_in_groups_with_dimensions_around_them(tmp_path: Path, values: np.ndarray) -> None:
    with new_dataset(tmp_path / "a.nc") as dataset:
        group = dataset.createGroup("g")
        group.createDimension("n", 5)
        inside = netcdf.create_variable(group, "v", "f4", ("z", "y", "x"), LOSSY)
        path = netcdf.create_variable(dataset, "g/h/w", "f8", ("n", "y"), "shuffle|deflate(1)")
        inside[:], path[:] = values, 1
        dataset.sync()
        assert path.group().path == "/g/h"
        assert str(netcdf.filters(path)) == "shuffle|deflate(1)"
        assert netcdf.filters(inside).zfp is not None


def test_create_variable_of_user_defined_types_takes_lossless_filters(dataset: Any) -> None:
    point = dataset.createCompoundType(np.dtype([("a", "f4"), ("b", "i2")]), "point")
    colour = dataset.createEnumType("u1", "colour", {"red": 0, "green": 1})
    for name, kind in (("p", point), ("c", colour), ("s", "S1")):
        variable = netcdf.create_variable(dataset, name, kind, "x", "shuffle|deflate(4)")
        assert [member.name for member in netcdf.filters(variable).filters] == ["shuffle", "deflate"]


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "text": ({"filters": "zfp(rate=)"}, tamis.ParameterError, "at position"),
    "two_modes": ({"filters": "zfp(rate=8,accuracy=1)"}, tamis.ParameterError, "exactly one ZFP mode"),
    "order": ({"filters": "shuffle|deflate(4)|fletcher32"}, tamis.ParameterError, r"write fletcher32\|shuffle"),
    "flag": ({"filters": "zfp(rate=8)!"}, tamis.ParameterError, "netCDF cannot express flags"),
    "plugin": ({"filters": "33000"}, netcdf.NetcdfError, r"has no plugin for filter 33000.*NC_ENOFILTER, -136"),
    "dtype": ({"dtype": "i1"}, tamis.ParameterError, "float32"),
    "unsigned": ({"dtype": "u4"}, tamis.ParameterError, "use reversible=True or a signed type"),
    "big_endian": ({"dtype": ">f4"}, tamis.ParameterError, "native byte order"),
    "endian": ({"endian": "big"}, tamis.ParameterError, "native byte order"),
    "strings": ({"dtype": str}, netcdf.NetcdfError, r"outside the chunks.*NC_EFILTER, -132"),
    "long_strings": ({"dtype": "S8"}, netcdf.NetcdfError, "outside the chunks"),
    "scalar": ({"dimensions": ()}, netcdf.NetcdfError, r"a scalar.*NC_EINVAL, -36"),
    "dimension": ({"dimensions": ("z", "w")}, tamis.ParameterError, "got 'w': it has z, y, x: createDimension"),
    "dimension_alone": ({"dimensions": "w", "filters": "none"}, tamis.ParameterError, "got 'w': it has z, y, x"),
    "sizes": ({"dimensions": (4, 16), "filters": "none"}, tamis.ParameterError, "expected dimensions by name, got 4"),
    "chunks": ({"chunksizes": (4, 16, 17)}, tamis.ParameterError, r"use \(4, 16, 16\)"),
    "chunk_count": ({"chunksizes": (4, 16)}, tamis.ParameterError, "expected 3 chunk sizes"),
    "type": ({"dtype": "nonsense"}, tamis.ParameterError, "expected a type of netCDF4, got 'nonsense'"),
    "fill_value": ({"fill_value": "x"}, tamis.ParameterError, "expected a fill value that float32 can hold, got 'x'"),
    "one_value": ({"chunksizes": (1, 1, 1)}, tamis.ParameterError, "more than one value"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("model", ["NETCDF4", "NETCDF4_CLASSIC"])
def test_create_variable_refused_leaves_no_variable(case: str, model: str, tmp_path: Path) -> None:
    changes, kind, message = REFUSED[case]
    settings = {"dtype": "f4", "dimensions": ("z", "y", "x"), "filters": "zfp(rate=8)", "chunksizes": None} | changes
    with new_dataset(tmp_path / "a.nc", format=model) as dataset:
        with pytest.raises(kind, match=message) as caught:
            netcdf.create_variable(dataset, "v", **settings)
        assert isinstance(caught.value, tamis.TamisError)
        assert caught.value.path == str(tmp_path / "a.nc")
        assert not dataset.variables
        assert netcdf.create_variable(dataset, "v", "f4", ("z", "y", "x"), "zfp(rate=8)").shape == SHAPE
        with pytest.raises(netcdf.NetcdfError, match=r"a new name.*\(NC_ENAMEINUSE, -42\)"):
            netcdf.create_variable(dataset, "v", "f4", ("z", "y", "x"), "zfp(rate=8)")


def test_create_variable_in_file_that_takes_none_refused(tmp_path: Path) -> None:
    with new_dataset(tmp_path / "classic.nc", format="NETCDF3_CLASSIC") as dataset:
        with pytest.raises(netcdf.NetcdfError, match=r"got NETCDF3_CLASSIC, which has no filters \(NC_ENOTNC4, -111\)"):
            netcdf.create_variable(dataset, "v", "f4", "x", "deflate(4)")
        assert netcdf.create_variable(dataset, "v", "f4", "x").name == "v"
    new_dataset(tmp_path / "a.nc").close()
    with (
        netCDF4.Dataset(tmp_path / "a.nc") as dataset,
        pytest.raises(netcdf.NetcdfError, match=r"got a read-only one \(NC_EPERM, -37\)"),
    ):
        netcdf.create_variable(dataset, "v", "f4", "x", "deflate(4)")
    with pytest.raises(netcdf.NetcdfError, match=r"the dataset is closed \(NC_EBADID, -33\)"):
        netcdf.create_variable(dataset, "v", "f4", "x", "deflate(4)")
    with pytest.raises(tamis.ParameterError, match="expected a dataset or group of netCDF4, got str"):
        netcdf.create_variable("a.nc", "v", "f4", "x")


@pytest.mark.parametrize(
    "text", ["bitround(keepbits=7)|shuffle|deflate(4)", "granular(digits=3)", "bitgroom(digits=3)|deflate(1)"]
)
def test_create_variable_with_a_rounding_lets_netcdf_quantize(text: str, tmp_path: Path) -> None:
    rounding = tamis.Pipeline.parse(text).rounding
    assert rounding is not None
    values = np.linspace(1, 300, 1000, dtype="f4")
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("x", 1000)
        variable = netcdf.create_variable(file, "v", "f4", "x", text)
        variable[:] = values
        assert netcdf.inq_var_quantize(variable).digits == rounding.number
        assert variable[:].tolist() == rounding.round(values).tolist()
        with pytest.raises(tamis.ParameterError, match="expected float32 or float64"):
            netcdf.create_variable(file, "w", "i4", "x", text)
        assert "w" not in file.variables
