"""Whole arrays written in threads: values, bounds, masks, what is refused, and streams that are compressed already."""

from __future__ import annotations

import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import dask.array
import h5py
import numpy as np
import pytest
import xarray
from numpy.typing import NDArray

import tamis
from tamis import BoundError, DataError, FileError, ParameterError
from tamis.hdf5 import create_dataset, pipeline_of, write

SMALL = "zfp(accuracy=0.1)"


def field(dtype: str = "f4", shape: tuple[int, ...] = (13, 21)) -> NDArray[Any]:
    return (50 * np.sin(np.arange(np.prod(shape)) / 11)).reshape(shape).astype(dtype)


def masks(dataset: h5py.Dataset) -> dict[tuple[int, ...], int]:
    found: dict[tuple[int, ...], int] = {}
    dataset.id.chunk_iter(lambda each: found.update({each.chunk_offset: each.filter_mask}))
    return found


@pytest.mark.parametrize(
    ("text", "dtype", "error"),
    [
        ("none", "f4", 0),
        ("shuffle|deflate(4)|fletcher32", "i2", 0),
        ("deflate", "c16", 0),
        ("shuffle|deflate", ">f8", 0),
        ("shuffle|deflate", "?", 0),
        ("deflate", "S3", 0),
        ("deflate", [("a", "f4"), ("b", "i8")], 0),
        ("zfp(accuracy=0.1)", "f4", 0.1),
        ("zfp(accuracy=0.1)|shuffle|deflate(1)|fletcher32", "f8", 0.1),
        ("zfp(reversible=true)", "i4", 0),
        ("zfp(rate=16)|fletcher32", "f4", 0.01),
        ("zfp(accuracy=4)", "i8", 4),
        ("scaleoffset(kind=decimal,factor=2)", "f4", 0.01),
    ],
)
def test_write_any_filters_read_back_by_h5py(text: str, dtype: Any, error: float, file: h5py.File) -> None:
    values = np.zeros((13, 21), dtype)
    if values.dtype.names:
        values["a"], values["b"] = field(), field("i8")
    else:
        values[...] = field().astype(dtype)
    made = write(file, "g/x", values, filters=text, chunks=(8, 9), attrs={"units": "K"})
    assert (made.name, made.chunks, made.dtype, dict(made.attrs)) == ("/g/x", (8, 9), values.dtype, {"units": "K"})
    assert len(masks(made)) == 6
    if error:
        assert np.abs(made[()].astype("f8") - values.astype("f8")).max() <= error
    else:
        np.testing.assert_array_equal(made[()], values)


@pytest.mark.parametrize("text", [SMALL, "zfp(rate=8)|fletcher32", "shuffle|fletcher32"])
def test_write_chunks_same_as_h5py_writes(text: str, file: h5py.File) -> None:
    """Whole chunks: those at the edge are padded otherwise."""
    values = field(shape=(16, 24))
    ours = write(file, "ours", values, filters=text, chunks=(8, 8))
    theirs = create_dataset(file, "theirs", (16, 24), "f4", filters=text, chunks=(8, 8))
    theirs[...] = values
    file.flush()
    assert pipeline_of(ours) == pipeline_of(theirs)
    for origin in masks(ours):
        assert ours.id.read_direct_chunk(origin) == theirs.id.read_direct_chunk(origin)


def test_write_bytes_of_the_file_same_for_any_number_of_threads(tmp_path: Path) -> None:
    values = field(shape=(40, 50, 21))
    values[3, 3, 3] = np.nan
    found = set()
    for threads in (1, 2, 8, None):
        with h5py.File(tmp_path / f"{threads}.h5", "w") as file:
            write(file, "x", values, filters=f"{SMALL}|shuffle|deflate", chunks=(8, 8, 8), threads=threads)
        found.add((tmp_path / f"{threads}.h5").read_bytes())
    assert len(found) == 1


class Counted:
    """An array with chunks of its own, that counts how often each of its parts is read."""

    def __init__(self, values: NDArray[Any], chunks: tuple[int, ...]) -> None:
        self.values, self.chunks, self.shape, self.dtype = values, chunks, values.shape, values.dtype
        self.reads = np.zeros(values.shape, int)

    def __getitem__(self, key: Any) -> Any:
        self.reads[key] += 1
        return self.values[key]


@pytest.mark.parametrize("chunks", [(8, 8), (5, 7), (1, 21), (13, 1)])
def test_write_source_with_chunks_every_value_read_once(chunks: tuple[int, ...], file: h5py.File) -> None:
    source = Counted(field(), chunks)
    np.testing.assert_array_equal(write(file, "x", source, chunks=(4, 6)), source.values)
    assert (source.reads == 1).all()


def test_write_from_every_kind_of_array(file: h5py.File, tmp_path: Path) -> None:
    values = field(shape=(40, 30))
    with h5py.File(tmp_path / "source.h5", "w") as source:
        source.create_dataset("c", data=values, chunks=(7, 9), **tamis.Zfp(reversible=True))
        source["raw"] = values
    with h5py.File(tmp_path / "source.h5") as source:
        arrays = {
            "dask": dask.array.from_array(values, chunks=(11, 30)) + 1 - 1,
            "xarray": xarray.DataArray(values, dims=("y", "x")),
            "xarray of dask": xarray.DataArray(dask.array.from_array(values, chunks=(40, 4)), dims=("y", "x")),
            "h5py": source["c"],
            "h5py contiguous": source["raw"],
            "tamis": tamis.open(tmp_path / "source.h5")["c"],
            "list": values.tolist(),
            "other strides": np.asfortranarray(values),
            "view": np.repeat(values, 2, axis=1)[:, ::2],
        }
        for name, array in arrays.items():
            np.testing.assert_allclose(write(file, name, array, filters="deflate", chunks=(8, 8)), values, rtol=1e-6)


def test_write_scalar_refused(file: h5py.File) -> None:
    with pytest.raises(ParameterError, match="expected an array with axes, got a scalar"):
        write(file, "x", 3.0)


class Endless:
    """64 MiB of values that are nowhere in memory."""

    shape, dtype = (256, 256, 256), np.dtype("f4")

    def __getitem__(self, key: tuple[slice, ...]) -> Any:
        return np.fromfunction(lambda z, y, x: z + y * x, [each.stop - each.start for each in key], dtype="f4")


def test_write_large_array_memory_of_a_few_chunks(file: h5py.File) -> None:
    tracemalloc.start()
    try:
        write(file, "x", Endless(), filters=SMALL, chunks=(64, 64, 64), threads=2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 << 20


def test_write_nan_masks_that_chunk_only(file: h5py.File) -> None:
    values = field()
    values[12, 20] = np.nan
    made = write(file, "x", values, filters=f"{SMALL}|fletcher32", chunks=(8, 8))
    assert {origin: mask for origin, mask in masks(made).items() if mask} == {(8, 16): 1}
    np.testing.assert_array_equal(made[8:, 16:], values[8:, 16:])
    assert np.nanmax(np.abs(made[()] - values)) <= 0.1


def test_write_value_that_ruins_its_block_goes_lossless_and_the_rest_keeps_the_bound(file: h5py.File) -> None:
    values = field()
    values[0, 0] = 9.96921e36
    made = write(file, "x", values, filters=f"{SMALL}|shuffle|deflate(4)|fletcher32", chunks=(8, 8))
    # Without loss by shuffle and deflate, or by zfp without these; the checksum always.
    assert set(masks(made).values()) == {0b0110, 0b0001}
    assert masks(made)[0, 0] == 0b0001
    assert np.abs(made[()] - values).max() <= 0.1
    np.testing.assert_array_equal(made[:8, :8], values[:8, :8])


def test_write_required_filters_behind_zfp_are_not_left_out(file: h5py.File) -> None:
    made = write(file, "x", field(), filters=f"{SMALL}|shuffle!|deflate", chunks=(8, 8))
    assert set(masks(made).values()) == {0b100}
    assert np.abs(made[()] - field()).max() <= 0.1


def test_write_edge_chunks_fill_value_harms_no_value(file: h5py.File) -> None:
    """D10: HDF5 pads with the fill value, which here would cost the neighbours everything."""
    values = field()
    made = write(file, "x", values, filters=SMALL, chunks=(8, 8), fillvalue=9.96921e36)
    assert set(masks(made).values()) == {0}
    assert np.abs(made[()] - values).max() <= 0.1
    assert made.fillvalue == np.float32(9.96921e36)


def test_write_lossless_edge_chunks_padded_with_the_fill_value_as_hdf5_does(file: h5py.File) -> None:
    made = write(file, "x", field(), filters="deflate", chunks=(8, 8), maxshape=(None, 21), fillvalue=-1)
    made.resize((16, 21))
    assert (made[13:] == -1).all()


@pytest.mark.parametrize(
    ("value", "text", "error", "said"),
    [
        (np.nan, "zfp(accuracy=0.1)!", DataError, r"x: chunk at \(8, 16\): .*expected finite values"),
        (9e36, "zfp(accuracy=0.1)!", BoundError, r"x: chunk at \(8, 16\): zfp\(accuracy=0.1\) cannot keep"),
    ],
)
def test_write_required_filter_that_fails_leaves_nothing(
    value: float, text: str, error: type[Exception], said: str, file: h5py.File
) -> None:
    values = field()
    values[9, 17] = value
    file["x"] = 3
    with pytest.raises(error, match=said):
        write(file, "x", values, filters=text, chunks=(8, 8), overwrite=True, threads=2)
    assert file["x"][()] == 3
    with pytest.raises(error, match=said.replace("x:", "y:", 1)):
        write(file, "y", values, filters=text, chunks=(8, 8), threads=1)
    assert list(file) == ["x"]


@pytest.mark.parametrize(
    "options", [{"fillvalue": -99.9}, {"attrs": {"_FillValue": np.float32(-99.9)}}, {"attrs": {"missing_value": -99.9}}]
)
def test_write_missing_values_are_what_they_were(options: dict[str, Any], file: h5py.File) -> None:
    """D9: within the bound is not enough for them, or a reader's comparison with the fill value fails."""
    values = field()
    values[2, 3] = np.float32(-99.9)
    made = write(file, "x", values, filters=SMALL, chunks=(8, 8), **options)
    assert made[2, 3] == values[2, 3]
    assert masks(made) == {(0, 0): 1, (0, 8): 0, (0, 16): 0, (8, 0): 0, (8, 8): 0, (8, 16): 0}
    assert set(masks(write(file, "y", values, filters=SMALL, chunks=(8, 8))).values()) == {0}


def test_write_masked_values_become_0_exactly_where_that_is_the_fill_value(file: h5py.File) -> None:
    values = np.ma.masked_greater(field(), 40)
    made = write(file, "x", values, filters=SMALL, chunks=(8, 8), fillvalue=0)
    assert (made[()][values.mask] == 0).all()


def test_write_into_empty_dataset(file: h5py.File) -> None:
    there = file.create_dataset("x", (13, 21), "f4", chunks=(8, 8), **tamis.Zfp(accuracy=0.1))
    assert write(there, field(), threads=2) is there
    assert np.abs(there[()] - field()).max() <= 0.1


def test_write_into_dataset_with_values_refused_even_if_hdf5_still_holds_them(file: h5py.File) -> None:
    there = file.create_dataset("x", (13, 21), "f4", chunks=(8, 8), **tamis.Zfp(accuracy=0.1))
    there[12, 20] = 1
    with pytest.raises(FileError, match=r"/x: has values already, in a chunk at \(8, 16\)"):
        write(there, field())
    assert there[12, 20] == 1


def test_create_dataset_any_filters_and_room_to_grow(file: h5py.File) -> None:
    made = create_dataset(file, "g/x", (0, 8), "f4", maxshape=(None, 8), filters=f"{SMALL}|fletcher32", attrs={"a": 1})
    assert (made.name, made.shape, made.maxshape, made.chunks) == ("/g/x", (0, 8), (None, 8), (2048, 8))
    assert str(pipeline_of(made)) == "zfp(accuracy=0.0625)|fletcher32"
    assert made.attrs["a"] == 1
    with pytest.raises(FileError, match="'g/x' already exists"):
        create_dataset(file, "g/x", (8,), "f4")
    with pytest.raises(ParameterError, match="expected axes with values, or that can grow"):
        create_dataset(file, "y", 0, "f4")


@pytest.mark.parametrize("fills", [False, True])
def test_write_warns_if_most_chunks_skip_zfp(tmp_path: Path, fills: bool) -> None:
    values, filters = np.linspace(0, 1, 4 * 16 * 16, dtype="f4").reshape(4, 16, 16), "zfp(accuracy=0.01)|deflate(4)"
    for gaps in (3, 2):
        data = values.copy()
        data[:gaps, 0, 0] = np.nan
        with h5py.File(tmp_path / f"{gaps}.h5", "w") as file, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if fills:
                write(create_dataset(file, "a", data.shape, "f4", filters=filters, chunks=(1, 16, 16)), data)
            else:
                write(file, "a", data, filters=filters, chunks=(1, 16, 16))
            texts = [str(item.message) for item in caught]
        said = [text for text in texts if "a: 3 of 4 chunks stored without zfp, which takes more room" in text]
        assert len(said) == len(texts) == (gaps == 3)
        assert all(item.filename == __file__ for item in caught)
