"""netCDF classic files: headers and values as the netCDF library reads them; damaged ones are refused."""

from __future__ import annotations

import tracemalloc
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest
import xarray
from hypothesis import given
from hypothesis import strategies as st
from in_memory import MemorySource

import tamis
from tamis import FileError
from tamis.formats.classic.header import read_header
from tamis.formats.classic.source import ClassicSource, open_classic
from tamis.stores.first_bytes import is_classic

FORMATS = {1: "NETCDF3_CLASSIC", 2: "NETCDF3_64BIT_OFFSET", 5: "NETCDF3_64BIT_DATA"}
KINDS = {1: "classic", 2: "64-bit offset", 5: "cdf5"}
OLD_TYPES = ("i1", "S1", "i2", "i4", "f4", "f8")
NEW_TYPES = ("u1", "u2", "u4", "i8", "u8")


def write(path: Path, version: int, *, records: int = 3, types: tuple[str, ...] = ()) -> Path:
    """Write a file with a record variable and a fixed one of each type; records hold odd numbers of bytes."""
    rng = np.random.default_rng(7)
    with netCDF4.Dataset(path, "w", format=FORMATS[version]) as file:
        file.createDimension("x", 5)
        file.createDimension("time", None)
        file.createDimension("bare", 4)
        file.setncattr("title", "Temperatur in °C")
        file.setncattr("empty", "")
        for dtype in types or (*OLD_TYPES, *(NEW_TYPES if version == 5 else ())):
            for name, axes in ((f"fixed_{dtype}", ("x",)), (f"record_{dtype}", ("time", "x"))):
                variable = file.createVariable(name, dtype, axes)
                shape = (5,) if len(axes) == 1 else (records, 5)
                raw = rng.integers(1, 127, (*shape, np.dtype(dtype).itemsize), np.uint8)
                variable[:] = raw.view(dtype).reshape(shape)
                if dtype != "S1":
                    variable.setncattr("one", np.array([3], dtype))
                    variable.setncattr("several", np.array([3, 4, 5], dtype))
        file.createVariable("scalar", "f8", ())[...] = 1.5
    return path


def expected(path: Path) -> dict[str, Any]:
    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        file.set_auto_chartostring(False)
        return {f"/{name}": np.asarray(variable[...]) for name, variable in file.variables.items()}


@pytest.mark.parametrize("version", FORMATS)
def test_store_of_each_format_reads_as_the_library(tmp_path: Path, version: int) -> None:
    path = write(tmp_path / "a.nc", version)
    with open_classic(path) as store:
        assert (ClassicSource(path).header.version, store.model.kind) == (version, KINDS[version])
        arrays = expected(path)
        assert list(store.arrays) == list(arrays)
        for name, values in arrays.items():
            array = store.array(name)
            with closing(array.open_reader()) as reader:
                read = reader.read(tuple(slice(0, extent) for extent in array.shape))
            assert read.tobytes() == values.tobytes()
            assert read.dtype.isnative
            assert array.shape == values.shape
        group = store.model.group("/")
        assert {name: (own.size, own.is_unlimited) for name, own in group.dimensions.items()} == {
            "x": (5, False),
            "time": (3, True),
            "bare": (4, False),
        }
        assert group.attributes == {"title": "Temperatur in °C", "empty": ""}
        several = group.variables["record_i2"].attributes["several"]
        assert several.dtype == np.int16
        assert several.tolist() == [3, 4, 5]
        assert store.array("/record_f4").maxshape == (None, 5)


@pytest.mark.parametrize("dtype", ["i1", "i2", "S1", "f8"])
@pytest.mark.parametrize("version", FORMATS)
def test_single_record_variable_is_not_padded(tmp_path: Path, version: int, dtype: str) -> None:
    path = write(tmp_path / "a.nc", version, types=(dtype,))
    store = open_classic(path)
    with closing(store.array(f"/record_{dtype}").open_reader()) as reader:
        assert reader.read((slice(0, 3), slice(0, 5))).tobytes() == expected(path)[f"/record_{dtype}"].tobytes()


def test_records_without_a_count_are_those_in_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.nc", 2)
    data = bytearray(path.read_bytes())
    data[4:8] = b"\xff" * 4  # a stream: the writer could not say
    path.write_bytes(data)
    assert open_classic(path).array("/record_f4").shape == (3, 5)


def test_file_without_records_has_arrays_without_values(tmp_path: Path) -> None:
    path = write(tmp_path / "a.nc", 1, records=0)
    assert open_classic(path).array("/record_f4").shape == (0, 5)


@given(st.data())
def test_any_part_is_read_as_the_library_does(data: st.DataObject) -> None:
    path, values = _large()
    store = open_classic(path)
    name = data.draw(st.sampled_from(["/interleaved", "/fixed"]))
    part = []
    for extent in values[name].shape:
        start = data.draw(st.integers(0, extent - 1))
        part.append(slice(start, data.draw(st.integers(start + 1, extent))))
    with closing(store.array(name).open_reader()) as reader:
        assert np.array_equal(reader.read(tuple(part)), values[name][tuple(part)])
        out = np.zeros([axis.stop - axis.start for axis in part], "f8")
        assert np.array_equal(reader.read(tuple(part), out), values[name][tuple(part)])


_LARGE: dict[str, Any] = {}


def _large() -> tuple[Path, dict[str, Any]]:
    return _LARGE["path"], _LARGE["values"]


@pytest.fixture(scope="module", autouse=True)
def large(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Write two arrays whose records are longer than what is read at a time."""
    path = tmp_path_factory.mktemp("large") / "large.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
        for name, extent in (("t", None), ("y", 40), ("x", 150)):
            file.createDimension(name, extent)
        file.createVariable("fixed", "f4", ("y", "x"))[:] = np.arange(6000).reshape(40, 150)
        file.createVariable("interleaved", "f4", ("t", "y", "x"))[:] = np.arange(30000).reshape(5, 40, 150)
        file.createVariable("other", "i2", ("t",))[:] = np.arange(5)
    _LARGE["path"], _LARGE["values"] = path, expected(path)


@pytest.mark.parametrize("version", FORMATS)
def test_truncated_file_is_refused_with_its_expected_size(tmp_path: Path, version: int) -> None:
    path = write(tmp_path / "a.nc", version, types=("f4",))
    data = path.read_bytes()
    path.write_bytes(data[:-4])
    with pytest.raises(FileError, match=rf"its header promises {len(data)} bytes, and it has {len(data) - 4} "):
        open_classic(path)


@pytest.mark.parametrize("version", FORMATS)
def test_every_truncated_or_flipped_header_is_read_or_refused(tmp_path: Path, version: int) -> None:
    path = write(tmp_path / "a.nc", version, types=("i2",))
    data = path.read_bytes()
    length = min(variable.offset for variable in read_header(MemorySource(data), "a").variables)
    for end in range(5, length):
        with pytest.raises(FileError):
            read_header(MemorySource(data[:end]), "a")
    opened = 0
    for at in range(3, length):
        for bits in (0x01, 0x80, 0xFF):
            flipped = bytearray(data)
            flipped[at] ^= bits
            with suppress(FileError):  # and no other error
                header = read_header(MemorySource(bytes(flipped)), "a")
                opened += 1
                sizes = [np.prod(own.shape, dtype=object) * own.dtype.itemsize for own in header.variables]
                assert max(sizes, default=0) <= len(data)
    assert opened


def test_huge_counts_allocate_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    path.write_bytes(b"CDF\x05" + bytes(8) + b"\0\0\0\x0a" + b"\x7f" + b"\xff" * 7 + bytes(64))
    tracemalloc.start()
    with pytest.raises(FileError, match="expected dimensions in the 64 bytes that are left"):
        open_classic(path)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_other_files_and_pipes_are_not_classic(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"CDF\x03" + bytes(40))
    (tmp_path / "b").write_bytes(b"CD")
    assert not any(is_classic(path) for path in (tmp_path / "a", tmp_path / "b", tmp_path, tmp_path / "c", "/dev/null"))


@pytest.mark.parametrize("mark", [b"\0", b"x"])
def test_character_that_marks_missing_ones_is_that_of_netcdf4(mark: bytes, tmp_path: Path) -> None:
    """Exodus files mark names that were never written by zero."""
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_64BIT_OFFSET") as dataset:
        dataset.createDimension("n", 2)
        dataset.createDimension("length", 4)
        names = dataset.createVariable("names", "S1", ("n", "length"), fill_value=mark)
        names[:] = np.array([[b"a", b"b", mark, mark], [mark] * 4])
    values = []
    for engine in ("netcdf4", "tamis"):
        with xarray.open_dataset(tmp_path / "a.nc", engine=engine, decode_cf=False) as dataset:
            assert bytes(dataset["names"].attrs["_FillValue"]).rstrip(b"\0") == mark.rstrip(b"\0")
        with xarray.open_dataset(tmp_path / "a.nc", engine=engine) as dataset:
            values.append(repr(dataset["names"].values))
    assert values[0] == values[1]
    for target in ("a.h5", "a.zarr"):
        tamis.repack(tmp_path / "a.nc", tmp_path / target, {})
        assert tamis.verify(tmp_path / "a.nc", tmp_path / target).ok
