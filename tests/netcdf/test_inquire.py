"""Filters as netCDF-C lists them, typed, and the true pipeline beside that list."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis
from tamis import Blosc, Bzip2, Szip, Zstd, netcdf
from tamis.filters import Filter

from .conftest import RawLibrary, netCDF4, new_dataset, variable_of

TWINS: dict[str, tuple[Callable[[Any], object], Callable[[Any], object], object]] = {
    "szip": (lambda v: netcdf.def_var_szip(v, "ec", 16), netcdf.inq_var_szip, Szip("ec", 16)),
    "bzip2": (lambda v: netcdf.def_var_bzip2(v, 4), netcdf.inq_var_bzip2, Bzip2(4)),
    "zstandard": (lambda v: netcdf.def_var_zstandard(v, -7), netcdf.inq_var_zstandard, Zstd(-7)),
    "blosc": (lambda v: netcdf.def_var_blosc(v, "zlib", 3), netcdf.inq_var_blosc, Blosc("zlib", 3)),
    "deflate": (lambda v: netcdf.def_var_deflate(v, True, True, 6), netcdf.inq_var_deflate, (True, True, 6)),
    "shuffle": (netcdf.def_var_shuffle, netcdf.inq_var_shuffle, True),
    "fletcher32": (netcdf.def_var_fletcher32, netcdf.inq_var_fletcher32, True),
    "quantize": (lambda v: netcdf.def_var_quantize(v, "GranularBR", 4), netcdf.inq_var_quantize, ("GranularBR", 4)),
}


NEEDED = {"bzip2": "bzip2", "zstandard": "zstd", "blosc": "blosc"}


@pytest.mark.parametrize("case", TWINS)
def test_inq_var_twin_gives_what_was_defined_before_and_after_writing(
    case: str, tmp_path: Path, values: np.ndarray
) -> None:
    define, inquire, expected = TWINS[case]
    with new_dataset(tmp_path / "a.nc") as dataset:
        if not netcdf.inq_filter_avail(dataset, NEEDED.get(case, "deflate")):
            pytest.skip("this wheel has no such plugin")
        variable = variable_of(dataset)
        absent = inquire(variable)
        assert absent in (None, False, (False, False, 0), ("", 0))
        define(variable)
        assert inquire(variable) == expected
        variable[:] = values
    with netCDF4.Dataset(tmp_path / "a.nc") as dataset:
        assert inquire(dataset["v"]) == expected


def test_inq_var_filter_gives_the_first_and_id_0_without_filters(dataset: Any, raw: RawLibrary) -> None:
    variable = variable_of(dataset)
    number = ctypes.c_uint(7)
    assert raw("nc_inq_var_filter", variable, ctypes.byref(number), None, None) == number.value == 0
    assert netcdf.inq_var_filter(variable) == (0, ())
    assert netcdf.inq_var_filter(variable).filter is None
    netcdf.def_var_filter(variable, "zfp(accuracy=0.1)|fletcher32")
    assert netcdf.inq_var_filter(variable) == (3, ())
    info = netcdf.inq_var_filter_info(variable, "zfp")
    assert info.id == 32013
    assert info.filter == tamis.Zfp(accuracy=0.0625)  # the tolerance that a file has
    for same in (32013, tamis.Zfp, tamis.Zfp(rate=3)):
        assert netcdf.inq_var_filter_info(variable, same) == info


def test_inq_var_filter_info_absent_filter_is_an_error_as_in_netcdf_c(dataset: Any, raw: RawLibrary) -> None:
    variable = variable_of(dataset)
    netcdf.def_var_filter(variable, "deflate(4)")
    status = raw("nc_inq_var_filter_info", variable, ctypes.c_uint(307), None, None)
    with pytest.raises(netcdf.NetcdfError, match=r"expected bzip2 \(filter 307\), got deflate \(filter 1\)") as caught:
        netcdf.inq_var_filter_info(variable, "bzip2")
    assert caught.value.code == status == -136
    for wrong in ("bzip3", 3.5, None):
        with pytest.raises(tamis.ParameterError, match="expected"):
            netcdf.inq_var_filter_info(variable, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [1, 2, 3, 4, 307, 32013, 999, 0, 65535, 65536])
def test_inq_filter_avail_same_status_as_netcdf_c(number: int, dataset: Any, raw: RawLibrary) -> None:
    status = raw.library.nc_inq_filter_avail(dataset._grpid, ctypes.c_uint(number))
    if status in (0, -136):
        assert netcdf.inq_filter_avail(dataset, number) == (status == 0)
    else:
        with pytest.raises(netcdf.NetcdfError, match="expected a filter id of 1 to 65535, got 65536") as caught:
            netcdf.inq_filter_avail(dataset, number)
        assert caught.value.code == status


def test_inquiries_of_a_classic_file_find_no_filters(tmp_path: Path) -> None:
    with new_dataset(tmp_path / "a.nc", format="NETCDF3_CLASSIC") as dataset:
        variable = dataset.createVariable("v", "f4", ("z",))
        assert netcdf.inq_var_filter_ids(variable) == ()
        assert netcdf.filters(variable) == tamis.Pipeline()
        assert not netcdf.inq_filter_avail(dataset, "deflate")


def write_by_h5py(path: Path, *stages: tuple[int, int, tuple[int, ...]]) -> np.ndarray:
    """Write a dataset with any filters: id, flag and parameters."""
    values = np.arange(4096.0, dtype="f4").reshape(16, 16, 16)
    with h5py.File(path, "w", track_order=True) as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((8, 16, 16))
        for number, flag, words in stages:
            plist.set_filter(number, flag, words)
        group = file.create_group("g", track_order=True)
        space = h5py.h5s.create_simple(values.shape)
        kind = h5py.h5t.py_create(values.dtype)
        h5py.Dataset(h5py.h5d.create(group.id, b"v", kind, space, plist))[...] = values
    return values


@pytest.mark.parametrize("mode", ["r", "a"])
def test_filters_of_a_file_keep_order_flags_duplicates_and_unknown_ones(mode: str, tmp_path: Path) -> None:
    write_by_h5py(tmp_path / "a.nc", (2, 1, ()), (1, 1, (4,)), (3, 0, ()), (1, 0, (9,)), (40000, 1, (5, 6)))
    with h5py.File(tmp_path / "a.nc") as file:
        expected = tamis.hdf5.pipeline_of(file["g/v"])
    with netCDF4.Dataset(tmp_path / "a.nc", mode) as dataset:
        variable = dataset["g/v"]
        assert netcdf.filters(variable) == expected
        assert str(netcdf.filters(variable)) == "shuffle|deflate(4)|fletcher32|deflate(9)!|filter(40000,5,6)"
        assert [stage.stored for stage in netcdf.filters(variable).stages] == [(4,), (4,), (), (9,), (5, 6)]


def test_filters_of_a_variable_named_as_a_dimension_of_others(tmp_path: Path) -> None:
    with new_dataset(tmp_path / "a.nc") as dataset:
        netcdf.create_variable(dataset, "x", "f4", ("z", "y", "x"), "shuffle|deflate(3)")[:] = 1
    with netCDF4.Dataset(tmp_path / "a.nc", "a") as dataset, h5py.File(tmp_path / "b.h5", "w"):
        assert str(netcdf.filters(dataset["x"])) == "shuffle|deflate(3)"


def test_filters_of_datasets_in_memory_and_by_other_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_by_h5py(tmp_path / "a.nc", (2, 1, ()), (1, 1, (4,)))
    (tmp_path / "link.nc").symlink_to("a.nc")
    monkeypatch.chdir(tmp_path)
    for place in ("a.nc", tmp_path / "link.nc", f"{tmp_path}/./a.nc"):
        with netCDF4.Dataset(place) as dataset:
            assert str(netcdf.filters(dataset["g/v"])) == "shuffle|deflate(4)"
    with netCDF4.Dataset("memory", memory=(tmp_path / "a.nc").read_bytes()) as dataset:
        assert str(netcdf.filters(dataset["g/v"])) == "shuffle|deflate(4)"
    with new_dataset("diskless.nc", diskless=True) as dataset:
        variable = netcdf.create_variable(dataset, "v", "f4", "z", "deflate(2)")
        variable[:] = 1
        dataset.sync()
        assert str(netcdf.filters(variable)) == "deflate(2)"


@pytest.mark.parametrize("kind", [tamis.Zfp, tamis.Deflate])
def test_filters_of_a_new_variable_are_those_defined_so_far(kind: type[Filter], dataset: Any) -> None:
    variable = variable_of(dataset)
    assert netcdf.filters(variable) == tamis.Pipeline()
    netcdf.def_var_filter(variable, kind(rate=8) if kind is tamis.Zfp else kind(5))  # type: ignore[call-arg]
    (stage,) = netcdf.filters(variable).stages
    assert isinstance(stage.filter, kind)
    assert stage.stored is None
