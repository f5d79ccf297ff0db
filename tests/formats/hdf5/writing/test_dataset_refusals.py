"""What write refuses or warns of, and that nothing is left then."""

from __future__ import annotations

import ctypes
import warnings
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t
from numpy.typing import NDArray

import tamis
from tamis import DataError, FileError, ParameterError
from tamis.hdf5 import create_dataset, pipeline_of, read_chunk, write

SMALL = "zfp(accuracy=0.1)"


def field(dtype: str = "f4", shape: tuple[int, ...] = (13, 21)) -> NDArray[Any]:
    return (50 * np.sin(np.arange(np.prod(shape)) / 11)).reshape(shape).astype(dtype)


class Endless:
    """64 MiB of values that are nowhere in memory."""

    shape, dtype = (256, 256, 256), np.dtype("f4")

    def __getitem__(self, key: tuple[slice, ...]) -> Any:
        return np.fromfunction(lambda z, y, x: z + y * x, [each.stop - each.start for each in key], dtype="f4")


def test_write_source_that_fails_leaves_nothing(file: h5py.File) -> None:
    class Broken(Endless):
        def __getitem__(self, key: tuple[slice, ...]) -> Any:
            if key[0].start:
                raise KeyboardInterrupt
            return super().__getitem__(key)

    with pytest.raises(KeyboardInterrupt):
        write(file, "x", Broken(), filters=SMALL, chunks=(64, 64, 64), threads=2)
    assert list(file) == []
    assert len(h5py.h5f.get_obj_ids(file.id, h5py.h5f.OBJ_DATASET)) == 0


def test_write_taken_name_refused_unless_to_be_replaced(file: h5py.File) -> None:
    first = write(file, "x", field(), chunks=(8, 8))
    with pytest.raises(FileError, match="'x' already exists"):
        write(file, "x", field())
    made = write(file, "x", 2 * field(), chunks=(8, 8), overwrite=True)
    np.testing.assert_array_equal(made, 2 * field())
    np.testing.assert_array_equal(first, field())
    file.create_group("g")
    with pytest.raises(FileError, match="'g' is not a dataset"):
        write(file, "g", field(), overwrite=True)


def test_write_file_open_for_reading_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        create_dataset(file, "x", (8,), "f4")
    with h5py.File(tmp_path / "a.h5") as file:
        for arguments in ((file, "y", field()), (file["x"], field(shape=(8,)))):
            with pytest.raises(FileError, match="the file is open for reading only"):
                write(*arguments)


@pytest.mark.parametrize(
    ("dtype", "options", "said"),
    [
        (">f4", {"filters": SMALL}, "expected native byte order"),
        ("u4", {"filters": SMALL}, "expected signed integers or floats"),
        ("f4", {"filters": SMALL, "chunks": (1, 1)}, "expected a chunk of more than one value"),
        ("f4", {"filters": "shuffle|zfp(rate=8)"}, "expected zfp first"),
        ("f4", {"chunks": (4,)}, "expected a chunk shape of 2 axes"),
        ("f4", {"chunks": (14, 4)}, r"expected chunks that fit in .*: use \(13, 4\)"),
        ("f4", {"maxshape": (12, None)}, "expected a maxshape that"),
        ("f4", {"fillvalue": [1, 2]}, "expected one fill value"),
        ("i2", {"fillvalue": 70000}, "expected a fill value that int16 can hold"),
        ("f4", {"threads": 0}, "expected 1 or more threads"),
        ("O", {}, "HDF5 cannot create a dataset of object"),
        ("U3", {}, "HDF5 cannot create a dataset of <U3"),
    ],
)
def test_write_what_cannot_be_refused_before_anything_is_written(
    dtype: str, options: dict[str, Any], said: str, file: h5py.File
) -> None:
    with pytest.raises((ParameterError, FileError), match=said):
        write(file, "x", field().astype(dtype), **options)
    assert list(file) == []


def test_write_arguments_of_neither_form_refused(file: h5py.File) -> None:
    there = create_dataset(file, "x", (13, 21), "f4")
    with pytest.raises(ParameterError, match=r"expected write\(group, name, data\), got 1 arguments"):
        write(file, field())  # type: ignore[call-overload]
    with pytest.raises(ParameterError, match=r"expected write\(dataset, data\), got 2 arguments"):
        write(there, "x", field())  # type: ignore[call-overload]
    with pytest.raises(ParameterError, match="an existing dataset has its own filters"):
        write(there, field(), filters=SMALL)  # type: ignore[call-overload]
    for name in ("compression", "compression_opts", "shuffle"):
        with pytest.raises(ParameterError, match=rf"write: expected .* got {name} \(did you mean filters\?\)"):
            write(file, "y", field(), **{name: 4})
    with pytest.raises(ParameterError, match=r"write: expected .* got chunk \(did you mean chunks\?\)"):
        write(file, "y", field(), chunk=(4, 4))  # type: ignore[call-overload]
    assert list(file) == ["x"]
    with pytest.raises(ParameterError, match=r"expected an h5py group, file or dataset, got 'a\.h5'"):
        write("a.h5", "x", field())  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("values", "dtype", "said"),
    [
        (np.array([1, 2.5]), "i4", "expected values of int32, got float64"),
        (np.array([1, 70000]), "i2", "expected values that int16 can hold"),
        (np.array([1, -1]), "u8", "expected values that uint64 can hold"),
        (np.array([1, 2**63], "u8"), "i8", "expected values that int64 can hold"),
        (
            np.array([1, 1e39]),
            "f4",
            r"float32 can hold, got float64 1e\+39 at index \(1,\), which would become inf",
        ),
    ],
)
def test_write_values_that_do_not_fit_the_type_refused(
    values: NDArray[Any], dtype: str, said: str, file: h5py.File
) -> None:
    with pytest.raises(DataError, match=said):
        write(file, "x", values, dtype=dtype)
    assert list(file) == []


def test_write_values_that_fit_another_type_converted(file: h5py.File) -> None:
    assert write(file, "a", np.array([1, np.inf, np.nan]), dtype="f4").dtype == "f4"
    assert write(file, "b", np.array([1, 255]), dtype="u1")[()].tolist() == [1, 255]
    assert write(file, "c", np.array([1, 2], "i4"), dtype="f8")[()].tolist() == [1, 2]


def test_write_masked_values_become_the_fill_value_or_are_refused(file: h5py.File) -> None:
    values = np.ma.masked_greater(field(), 40)
    made = write(file, "x", values, filters=SMALL, chunks=(8, 8), fillvalue=9e36)
    np.testing.assert_array_equal(made[()] == np.float32(9e36), values.mask)
    assert np.abs(np.where(values.mask, 0, made[()] - values.data)).max() <= 0.1
    with pytest.raises(DataError, match="masked values need a fill value: give a fillvalue"):
        write(file, "y", values, filters=SMALL)
    assert write(file, "z", np.ma.masked_greater(field(), 1000)).shape == (13, 21)


def test_write_into_dataset_that_cannot_be_written_so_refused(file: h5py.File) -> None:
    with pytest.raises(ParameterError, match="the dataset has no chunks"):
        write(file.create_dataset("a", (13, 21), "f4"), field())
    with pytest.raises(ParameterError, match=r"expected data of shape \(13, 22\), got \(13, 21\)"):
        write(file.create_dataset("b", (13, 22), "f4", chunks=(8, 8)), field())
    with pytest.raises(ParameterError, match="expected values of fixed size"):
        write(file.create_dataset("c", (4,), h5py.string_dtype(), chunks=(4,)), np.array(["a"] * 4))
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_chunk((8,))
    plist.set_deflate(1)
    assert ctypes.CDLL(h5p.__file__).H5Pset_chunk_opts(ctypes.c_int64(plist.id), 2) >= 0
    raw = h5py.Dataset(h5d.create(file.id, b"d", h5t.NATIVE_FLOAT, h5s.create_simple((13,)), plist))
    with pytest.raises(ParameterError, match="the dataset stores its edge chunks unfiltered"):
        write(raw, field(shape=(13,)))


@pytest.mark.parametrize("shape", [(8, 8), (16, 8), (8, 16)])
def test_write_into_dataset_masked_last_chunk_reads_right_at_once(shape: tuple[int, ...], file: h5py.File) -> None:
    """HDF5 2.0 takes the chunk that was written last for one with mask 0, as long as the dataset is open."""
    there = file.create_dataset("x", shape, "f4", chunks=(8, 8), **tamis.Zfp(accuracy=0.1))
    values = field(shape=shape)
    values[-1, -1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".* 1 of 1 chunk stored without zfp")  # where it is the only one
        write(there, values)
    np.testing.assert_array_equal(there[-8:, -8:], values[-8:, -8:])


def test_write_into_dataset_held_open_twice_warns_that_its_only_chunk_reads_wrong(file: h5py.File) -> None:
    there = file.create_dataset("x", (8, 8), "f4", chunks=(8, 8), **tamis.Zfp(accuracy=0.1))
    other = file["x"]
    with pytest.warns(UserWarning, match="another object holds"):
        write(there, np.full((8, 8), np.nan, "f4"))
    del other, there
    assert np.isnan(file["x"][()]).all()


@pytest.mark.parametrize("filters", ["zstd(3)", "zstd(3)!"])
def test_write_filter_that_libhdf5_lacks_read_by_tamis(filters: str, file: h5py.File) -> None:
    made = write(file, "x", field(), filters=filters, chunks=(8, 8))
    np.testing.assert_array_equal(read_chunk(made, (8, 16))[:5, :5], field()[8:, 16:])
    assert str(pipeline_of(made)) == filters
