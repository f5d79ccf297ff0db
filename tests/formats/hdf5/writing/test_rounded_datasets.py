"""Rounding by `write` and `Appender`: values are rounded once, as they come, and an attribute records it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis
import tamis.hdf5
from tamis import BoundError, ParameterError
from tamis.rounding import ROUNDING_ATTRIBUTES

RECIPES = [
    "bitround(keepbits=7)|shuffle|deflate(4)",
    "granular(digits=3)|deflate(1)",
    "bitgroom(digits=3)|zfp(reversible=true)",
]


def field() -> Any:
    return (280 + 30 * np.sin(np.arange(30 * 7 * 9) / 17)).reshape(30, 7, 9).astype("f4")


def rounded(text: str, values: Any, **options: Any) -> Any:
    rounding = tamis.Pipeline.parse(text).rounding
    assert rounding is not None
    return rounding.round(values, **options)


@pytest.mark.parametrize("text", RECIPES)
@pytest.mark.parametrize("threads", [1, 3])
def test_write_rounds_and_records(text: str, threads: int, tmp_path: Path) -> None:
    values = field()
    values[3, 2, 1], values[4, 5, 6] = 1e20, np.nan
    with h5py.File(tmp_path / "a.h5", "w") as file:
        attrs = {"_FillValue": np.float32(1e20)}
        dataset = tamis.hdf5.write(file, "v", values, filters=text, chunks=(4, 5, 6), attrs=attrs, threads=threads)
        assert sum(name in dataset.attrs for name in ROUNDING_ATTRIBUTES) == 3  # that of netCDF-C, and two of CF
    with tamis.open(tmp_path / "a.h5") as file:
        read = file["v"][...]
    expected = rounded(text, values, missing_values=[1e20])
    assert read.tobytes() == expected.tobytes()
    assert read[3, 2, 1] == np.float32(1e20)


@pytest.mark.parametrize("text", RECIPES[:2])  # zfp takes no values of another byte order
def test_write_rounds_values_of_another_byte_order(text: str, tmp_path: Path) -> None:
    values = field().astype(field().dtype.newbyteorder("S"))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = tamis.hdf5.write(file, "v", values, filters=text, chunks=(4, 5, 6))
        assert dataset.dtype == values.dtype
        assert np.array_equal(dataset[...], rounded(text, field()))


@pytest.mark.parametrize("text", RECIPES)
def test_appender_rounds_each_step_once_also_after_a_restart(text: str, tmp_path: Path) -> None:
    """Granular makes 100 of 99.96 and 104 of 100: a second rounding would show."""
    values = field()
    values[:, 0, 0] = 99.96
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        tamis.hdf5.create_dataset(file, "v", (0, 7, 9), "f4", filters=text, chunks=(8, 7, 9), maxshape=(None, 7, 9))
    for start, stop in ((0, 3), (3, 13), (13, 30)):
        with h5py.File(path, "r+") as file, tamis.hdf5.Appender(file["v"]) as appender:
            for step in values[start:stop]:
                appender.append(step)
    with tamis.open(path) as file:
        assert np.array_equal(file["v"][...], rounded(text, values))


def test_write_into_a_dataset_that_netcdf_quantizes(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("v", (30, 7, 9), "f4", chunks=(4, 5, 6), compression="gzip")
        dataset.attrs.create("_QuantizeBitRoundNumberOfSignificantBits", np.array([5], "i4"))
        tamis.hdf5.write(dataset, field())
        assert np.array_equal(dataset[...], tamis.BitRound(5).round(field()))


def test_appender_along_another_axis_refuses_bitgroom(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, text in (("groom", "bitgroom(digits=3)|deflate(1)"), ("granular", "granular(digits=3)|deflate(1)")):
            tamis.hdf5.create_dataset(file, name, (7, 0), "f4", filters=text, chunks=(7, 8), maxshape=(7, None))
        with pytest.raises(ParameterError, match="expected steps along axis 0 for bitgroom"):
            tamis.hdf5.Appender(file["groom"], axis=1)
        with tamis.hdf5.Appender(file["granular"], axis=1) as appender:
            appender.append(field()[0])
        assert np.array_equal(file["granular"][...], tamis.Granular(3).round(field()[0]))


def test_creation_refuses_integers_a_second_rounding_and_groups(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        with pytest.raises(ParameterError, match="expected float32 or float64 for bitround"):
            tamis.hdf5.write(file, "v", np.arange(100), filters=RECIPES[0])
        attrs = {"_QuantizeBitGroomNumberOfSignificantDigits": 3}
        with pytest.raises(ParameterError, match="expected values that are not rounded yet"):
            tamis.hdf5.write(file, "v", field(), filters=RECIPES[0], attrs=attrs)
        with pytest.raises(ParameterError, match="expected filters of links, got bitround"):
            tamis.hdf5.create_group(file, "g", filters=RECIPES[0])
        assert len(file) == 0


@pytest.mark.parametrize("append", [False, True])
def test_absolute_keeps_its_bound_from_the_given_values(append: bool, tmp_path: Path) -> None:
    bound = 0.125
    middles = bound * (2 * np.arange(-200, 200) + 1)  # between two multiples of the step, 0.25
    values = np.ma.MaskedArray([*(middles + 1e-9), *(middles - 1e-9), *middles, -9999.9, 0.3, np.nan, 7.0])
    values[-1] = np.ma.masked
    options: dict[str, Any] = {"filters": f"absolute({bound})|shuffle", "dtype": "f4", "fillvalue": np.float32(-9999.9)}
    options["attrs"] = {"valid_max": np.float32(40.01)}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        if append:
            tamis.hdf5.create_appender(file, "v", values, chunks=(100,), **options).close()
        else:
            tamis.hdf5.write(file, "v", values, chunks=(100,), **options)
        read = file["v"][...]
    given = values[:-4].data
    assert (np.abs(given.astype("f4").astype("f8") - given) > 0).any()
    assert np.abs(read[:-4] - given).max() <= bound
    assert (read[:-4] % 0.25 == 0)[np.abs(given - 40.01) > 0.25].all()
    assert (read[[-4, -1]] == np.float32(-9999.9)).all()
    assert read[-3] == 0.25
    assert np.isnan(read[-2])
    assert ((read[:-4] > 40.01) == (given > 40.01)).all()


@pytest.mark.parametrize("create", [tamis.hdf5.write, tamis.hdf5.create_appender])
def test_absolute_refuses_a_type_that_is_too_coarse_for_its_bound(create: Any, tmp_path: Path) -> None:
    values, message = (
        np.array([1.0, 1e9 + 3]),
        r"at most 0\.0625, got float64 1000000003\.0 at index \(1,\).* store float64",
    )
    with h5py.File(tmp_path / "a.h5", "w") as file:
        with pytest.raises(BoundError, match=message):
            create(file, "v", values, filters="absolute(0.1)", chunks=(2,), dtype="f4")
        assert not len(file)
