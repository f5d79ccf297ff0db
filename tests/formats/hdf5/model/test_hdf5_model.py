"""HDF5 files in netCDF's data model, compared with netCDF-C."""

from __future__ import annotations

from pathlib import Path

import h5py
import needs
import netCDF4
import numpy as np
import pytest

import tamis
from tamis import FileError, ParameterError
from tamis.stores import Dimension
from tamis.stores.data_model import NamedArray

FILES = ("cam_ts_100days.nc", "cam_t_3months.nc", "pop_sst_60days.nc", "era5_levels_members.nc")


def check_like_netcdf(path: Path) -> None:
    """Compare every group with what netCDF4-python says."""

    def check(theirs: netCDF4.Dataset) -> None:
        ours = model.group(theirs.path)
        assert list(ours.variables) == list(theirs.variables)
        for name, variable in theirs.variables.items():
            own = ours.variables[name]
            assert (own.dimensions, own.shape) == (variable.dimensions, variable.shape)
            check_attributes(own.attributes, variable)
        check_attributes(ours.attributes, theirs)
        sizes = {name: (own.size, own.is_unlimited) for name, own in ours.dimensions.items()}
        assert sizes == {name: (own.size, own.isunlimited()) for name, own in theirs.dimensions.items()}
        for group in theirs.groups.values():
            check(group)

    with netCDF4.Dataset(path) as file, tamis.open(path) as opened:
        model = opened.data_model()
        check(file)


def check_attributes(ours: object, theirs: netCDF4.Dataset | netCDF4.Variable) -> None:
    values = {name: theirs.getncattr(name) for name in theirs.ncattrs()}
    assert isinstance(ours, dict)
    assert list(ours) == list(values)
    for name, value in values.items():
        np.testing.assert_array_equal(ours[name], value)
        assert getattr(ours[name], "dtype", None) == getattr(value, "dtype", None)


@pytest.mark.parametrize("name", FILES)
def test_group_of_real_file_as_in_netcdf(name: str) -> None:
    check_like_netcdf(needs.real(name))


def test_group_of_netcdf_features_as_in_netcdf(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "f.nc", "w") as file:
        file.createDimension("time", None)
        file.createDimension("x", 3)
        file.createDimension("letters", 5)
        file.createDimension("only", 2)
        file.createVariable("z", "f4", ("time", "x"))[:] = np.ones((2, 3))
        file.createVariable("x", "f8", ("x",)).units = "m"
        file.createVariable("short", "i2", ("time",))[:] = [7]  # behind the others
        file.createVariable("time", "S1", ("time", "letters"))  # a coordinate of several dimensions
        file.createVariable("only", "i4", ("x",))  # has the name of a dimension, and is not its coordinate
        file.createVariable("scalar", "f8").setncatts({"one": np.int16(1), "two": [1.5, 2], "none": "", "word": "wörd"})
        file.setncattr_string("texts", ["a", "b"])
        inner = file.createGroup("g/h")
        inner.createDimension("x", 4)
        inner.createVariable("y", "u1", ("time", "x"))[:] = np.ones((6, 4))  # the longest of the unlimited dimension
    check_like_netcdf(tmp_path / "f.nc")
    with tamis.open(tmp_path / "f.nc") as opened:
        assert opened.data_model().group_paths() == ["/", "/g", "/g/h"]
        short = opened.data_model().group("/").variables["short"]
        assert (short.shape, short.stored_shape) == ((6,), (1,))


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A file of HDF5 with few dimension scales, in groups."""
    with h5py.File(tmp_path / "plain.h5", "w", track_order=True) as file:
        for path, shape in {"r": (3, 3), "zg/a": (4, 5), "zg/sub/b": (6,), "ag/c": (7, 7), "r2": (8, 3)}.items():
            file.create_dataset(path, data=np.zeros(shape), track_order=True)
        file["x"] = np.zeros(8)
        file["x"].make_scale("x")
        file.create_dataset("u", shape=(3,), maxshape=(None,), chunks=(2,), dtype="f4")
        file["r3"] = np.zeros((8, 3, 8))
    return tmp_path / "plain.h5"


def test_group_without_scales_numbers_dimensions_as_netcdf(plain: Path) -> None:
    check_like_netcdf(plain)


def test_group_without_scales_by_access_numbers_from_0(plain: Path) -> None:
    with tamis.open(plain) as opened:
        model = opened.data_model("access")
        assert model.group("ag").variables["c"].dimensions == ("phony_dim_0", "phony_dim_1")
        assert model.group("zg/sub").variables["b"].dimensions == ("phony_dim_2",)
        with pytest.raises(ParameterError, match="expected phony_dims to be 'sort' or 'access', got 'names'"):
            opened.data_model("names")


def test_group_with_scale_of_other_length_takes_no_such_dimension(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["edges"], file["v"] = np.zeros(4), np.zeros(3)
        file["edges"].make_scale("edges")
        file["v"].dims[0].attach_scale(file["edges"])
    with tamis.open(tmp_path / "f.h5") as opened:
        group = opened.data_model().group("/")
        assert group.variables["v"].dimensions == ("phony_dim_1",)
        assert group.dimensions == {"edges": Dimension(4), "phony_dim_1": Dimension(3)}


def test_group_of_special_objects_leaves_out_what_has_no_values(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["v"] = np.arange(3)
        file["v"].attrs["to"] = file["v"].ref
        file["null"] = h5py.Empty("f4")
        file.create_dataset("refs", (2,), h5py.ref_dtype)
        file["type"] = np.dtype("i4")
        file["soft"], file["nowhere"] = h5py.SoftLink("/v"), h5py.SoftLink("/absent")
        file["elsewhere"] = h5py.ExternalLink("other.h5", "/v")
        file["g/round"] = file["/"]
    with tamis.open(tmp_path / "f.h5") as opened:
        model = opened.data_model()
        group = model.group("/")
        assert set(group.variables) == {"v", "soft"}
        assert group.variables["v"].attributes == {}
        assert group.left_out == {
            "null": "expected an array or a scalar, got a null dataspace, which has no values",
            "refs": "expected numbers, characters or text, got references to objects, which mean nothing outside the"
            " file",
            "nowhere": "the link leads nowhere",
            "elsewhere": "the link leads nowhere",
        }
        assert model.group_paths() == ["/", "/g"]
        for path, kind in {"absent": "none", "v": "a dataset"}.items():
            with pytest.raises(FileError, match=f"expected a group at '/{path}', found {kind}"):
                model.group(path)


def test_group_with_companion_hides_it_if_missing_values_are_restored(tmp_path: Path) -> None:
    values = np.ones((8, 8), "f4")
    values[3, 3] = 1e20
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as file:
        file.createDimension("x", 8)
        file.createVariable("v", "f4", ("x", "x"), fill_value=1e20, chunksizes=(8, 8))[:] = values
    tamis.repack(tmp_path / "in.nc", tmp_path / "f.nc", {"v": "zfp(accuracy=0.1)"}, missing="mask")

    def variables(*, restore: bool) -> dict[str, NamedArray]:
        with tamis.open(tmp_path / "f.nc", restore=restore) as opened:
            return dict(opened.data_model().group("/").variables)

    assert list(variables(restore=True)) == ["v"]
    assert "ancillary_variables" not in variables(restore=True)["v"].attributes
    assert len(variables(restore=False)) == 2
    assert "ancillary_variables" in variables(restore=False)["v"].attributes
