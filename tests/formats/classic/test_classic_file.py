"""`tamis.open` of netCDF classic files, and xarray's engine on them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import dask.array
import netCDF4
import numpy as np
import pytest
import xarray

import tamis
from tamis import FileError, ParameterError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_64BIT_DATA") as file:
        for name, size in {"t": None, "y": 40, "x": 30, "n": 3}.items():
            file.createDimension(name, size)
        file.title = "classic"
        t = file.createVariable("T", "f4", ("t", "y", "x"), fill_value=np.float32(-1))
        t[:] = np.arange(12000).reshape(10, 40, 30)
        t[2, 3, 4] = np.ma.masked
        t.units = "K"
        file.createVariable("t", "i8", ("t",))[:] = np.arange(10)
        file.createVariable("name", "S1", ("y", "n"))[:] = np.resize([b"a", b"b", b"c", b"d"], (40, 3))
        file.createVariable("one", "i2", ())[...] = 7
    return tmp_path / "a.nc"


KEYS: list[Any] = [
    (),
    3,
    (-1, 5, 6),
    slice(2, 9, 3),
    (slice(None), 7),
    (..., slice(1, 20, 4)),
    ([1, 4, 8], slice(3, 4)),
    (slice(0, 0),),
    (slice(None), np.arange(40) % 3 == 0),
    np.arange(12000).reshape(10, 40, 30) % 11 == 0,
]


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
@pytest.mark.parametrize("piece_nbytes", [1 << 22, 500])
def test_selections_are_those_of_numpy(
    path: Path, key: Any, piece_nbytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tamis.reading.listed._PIECE_NBYTES", piece_nbytes)
    expected = np.arange(12000, dtype="f4").reshape(10, 40, 30)
    expected[2, 3, 4] = -1
    with tamis.open(path, threads=2) as file:
        values = file["T"][key]
        assert values.dtype == np.float32
        assert np.array_equal(values, expected[key])


def test_file_is_a_mapping_of_names_to_arrays(path: Path) -> None:
    with tamis.open(path) as file:
        assert list(file) == ["T", "t", "name", "one"]
        assert file.attrs == {"title": "classic"}
        assert file["/T"].attrs == {"_FillValue": np.float32(-1), "units": "K"}
        assert (file["T"].shape, file["T"].ndim, file["T"].nbytes, len(file["T"])) == ((10, 40, 30), 3, 48000, 10)
        assert file["one"][()] == 7
        assert file["name"][1].tolist() == [b"d", b"a", b"b"]
        assert np.array_equal(np.asarray(file["t"]), np.arange(10))
        assert file["T"].read(np.empty((10, 40, 30), "f8"))[9, 0, 0] == 10800
        assert "T" in file
        assert "U" not in file
        with pytest.raises(KeyError, match=r"a\.nc: expected an array or group at 'U', found T, t, name, one"):
            file["U"]
        with pytest.raises(ParameterError, match="expected out of float32 and shape"):
            file["T"].read(np.empty((1, 2)))
        with pytest.raises(IndexError, match="expected an index of -10 to 9 along axis 0"):
            file["T"][10]
        array = file["T"]
    with pytest.raises(FileError, match="the file is closed: open it again"):
        array[0]


def test_arrays_are_pickled_and_read_by_dask(path: Path) -> None:
    file = tamis.open(path)
    array = pickle.loads(pickle.dumps(file["T"]))
    assert array[9, 39, 29] == 11999
    assert dask.array.from_array(file["T"], chunks=(5, 40, 30)).max().compute() == 11999
    assert len(pickle.loads(pickle.dumps(file))) == 4
    assert repr(file["T"]) == f"<tamis array /T (10, 40, 30) float32 of {path}>"


def test_xarray_engine_reads_as_engine_netcdf4(path: Path) -> None:
    with xarray.open_dataset(path, engine="netcdf4") as expected, xarray.open_dataset(path, engine="tamis") as ds:
        xarray.testing.assert_identical(ds.load(), expected.load())
        assert ds.encoding["unlimited_dims"] == {"t"}
        assert np.isnan(ds["T"][2, 3, 4])
        assert ds["name"].dtype == expected["name"].dtype
    with xarray.open_dataset(path, engine="tamis", chunks={"t": 5}) as ds:
        assert ds["T"].isel(t=slice(3, 7)).sum().compute() > 0


def test_file_that_was_cut_after_opening_is_an_error(path: Path) -> None:
    with tamis.open(path) as file:
        with path.open("r+b") as stream:
            stream.truncate(path.stat().st_size - 3000)
        with pytest.raises(FileError, match=r"/T: expected \d+ bytes at \d+, got \d+: the file is truncated"):
            file["T"][...]
