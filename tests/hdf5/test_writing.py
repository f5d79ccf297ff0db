"""Whole arrays written in threads: values, bounds, masks, what is refused, and streams that are compressed already."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tracemalloc
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.array
import h5py
import numpy as np
import pytest
import xarray
from h5py import h5d, h5p, h5s, h5t
from numpy.typing import NDArray

import tamis
from tamis import zfp
from tamis.errors import BoundError, DataError, FileError, MissingFilterError, ParameterError, StreamError
from tamis.hdf5 import create_dataset, pipeline_of, read_chunk, write, write_stream

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SMALL = "zfp(accuracy=0.1)"


@pytest.fixture
def file(tmp_path: Path) -> Iterator[h5py.File]:
    with h5py.File(tmp_path / "a.h5", "w") as made:
        yield made


def field(dtype: str = "f4", shape: tuple[int, ...] = (13, 21)) -> NDArray[Any]:
    return (50 * np.sin(np.arange(np.prod(shape)) / 11)).reshape(shape).astype(dtype)


def masks(dataset: h5py.Dataset) -> dict[tuple[int, ...], int]:
    found: dict[tuple[int, ...], int] = {}
    dataset.id.chunk_iter(lambda each: found.update({each.chunk_offset: each.filter_mask}))
    return found


def stock(program: str, *arguments: object) -> str:
    """Run an HDF5 program of the system, which has nothing of tamis but the plugin."""
    if shutil.which(program) is None and "CI" not in os.environ:
        pytest.skip(f"no {program} here")
    environment = os.environ | {"HDF5_PLUGIN_PATH": str(tamis.plugin_path())}
    command = [program, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


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
    for jobs in (1, 2, 8, None):
        with h5py.File(tmp_path / f"{jobs}.h5", "w") as file:
            write(file, "x", values, filters=f"{SMALL}|shuffle|deflate", chunks=(8, 8, 8), jobs=jobs)
        found.add((tmp_path / f"{jobs}.h5").read_bytes())
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
    with pytest.raises(ParameterError, match="expected an array with axes, which can have chunks, got a scalar"):
        write(file, "x", 3.0)


class Endless:
    """64 MiB of values that are nowhere in memory."""

    shape, dtype = (256, 256, 256), np.dtype("f4")

    def __getitem__(self, key: tuple[slice, ...]) -> Any:
        return np.fromfunction(lambda z, y, x: z + y * x, [each.stop - each.start for each in key], dtype="f4")


def test_write_large_array_memory_of_a_few_chunks(file: h5py.File) -> None:
    tracemalloc.start()
    try:
        write(file, "x", Endless(), filters=SMALL, chunks=(64, 64, 64), jobs=2)
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
        (9e36, "zfp(accuracy=0.1)!", BoundError, r"x: chunk at \(8, 16\): expected zfp\(accuracy=0.1\) to keep"),
    ],
)
def test_write_required_filter_that_fails_leaves_nothing(
    value: float, text: str, error: type[Exception], said: str, file: h5py.File
) -> None:
    values = field()
    values[9, 17] = value
    file["x"] = 3
    with pytest.raises(error, match=said):
        write(file, "x", values, filters=text, chunks=(8, 8), overwrite=True, jobs=2)
    assert file["x"][()] == 3
    with pytest.raises(error, match=said.replace("x:", "y:", 1)):
        write(file, "y", values, filters=text, chunks=(8, 8), jobs=1)
    assert list(file) == ["x"]


def test_write_source_that_fails_leaves_nothing(file: h5py.File) -> None:
    class Broken(Endless):
        def __getitem__(self, key: tuple[slice, ...]) -> Any:
            if key[0].start:
                raise KeyboardInterrupt
            return super().__getitem__(key)

    with pytest.raises(KeyboardInterrupt):
        write(file, "x", Broken(), filters=SMALL, chunks=(64, 64, 64), jobs=2)
    assert list(file) == []
    assert len(h5py.h5f.get_obj_ids(file.id, h5py.h5f.OBJ_DATASET)) == 0


def test_write_taken_name_refused_unless_to_be_replaced(file: h5py.File) -> None:
    first = write(file, "x", field(), chunks=(8, 8))
    with pytest.raises(FileError, match="expected a new name, got 'x', which is there"):
        write(file, "x", field())
    made = write(file, "x", 2 * field(), chunks=(8, 8), overwrite=True)
    np.testing.assert_array_equal(made, 2 * field())
    np.testing.assert_array_equal(first, field())
    file.create_group("g")
    with pytest.raises(FileError, match="expected a dataset to replace, got 'g'"):
        write(file, "g", field(), overwrite=True)


def test_write_file_open_for_reading_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        create_dataset(file, "x", (8,), "f4")
    with h5py.File(tmp_path / "a.h5") as file:
        for arguments in ((file, "y", field()), (file["x"], field(shape=(8,)))):
            with pytest.raises(FileError, match="expected a file that is open for writing"):
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
        ("f4", {"jobs": 0}, "expected 1 or more threads"),
        ("O", {}, "HDF5 makes no dataset of object"),
        ("U3", {}, "HDF5 makes no dataset of <U3"),
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
    with pytest.raises(ParameterError, match="expected no filters for a dataset that is there"):
        write(there, field(), filters=SMALL)  # type: ignore[call-overload]
    with pytest.raises(ParameterError, match=r"expected an h5py group, file or dataset, got 'a\.h5'"):
        write("a.h5", "x", field())  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("values", "dtype", "said"),
    [
        (np.array([1, 2.5]), "i4", "expected values of int32, got float64"),
        (np.array([1, 70000]), "i2", "expected values that int16 can hold"),
        (np.array([1, -1]), "u8", "expected values that uint64 can hold"),
        (np.array([1, 2**63], "u8"), "i8", "expected values that int64 can hold"),
        (np.array([1, 1e39]), "f4", "expected values that float32 can hold, got float64 ones beyond its largest"),
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
    with pytest.raises(DataError, match="expected values without a mask, got masked ones: give a fillvalue"):
        write(file, "y", values, filters=SMALL)
    assert write(file, "z", np.ma.masked_greater(field(), 1000)).shape == (13, 21)


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
    assert write(there, field(), jobs=2) is there
    assert np.abs(there[()] - field()).max() <= 0.1


def test_write_into_dataset_with_values_refused_even_if_hdf5_still_holds_them(file: h5py.File) -> None:
    there = file.create_dataset("x", (13, 21), "f4", chunks=(8, 8), **tamis.Zfp(accuracy=0.1))
    there[12, 20] = 1
    with pytest.raises(FileError, match=r"/x: expected a dataset without values, found a chunk at \(8, 16\)"):
        write(there, field())
    assert there[12, 20] == 1


def test_write_into_dataset_that_cannot_be_written_so_refused(file: h5py.File) -> None:
    with pytest.raises(ParameterError, match="expected a chunked dataset"):
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
    with pytest.raises(ParameterError, match="expected chunks at the edge to be filtered"):
        write(raw, field(shape=(13,)))


@pytest.mark.parametrize("shape", [(8, 8), (16, 8), (8, 16)])
def test_write_into_dataset_masked_last_chunk_reads_right_at_once(shape: tuple[int, ...], file: h5py.File) -> None:
    """HDF5 2.0 takes the chunk that was written last for one with mask 0, as long as the dataset is open."""
    there = file.create_dataset("x", shape, "f4", chunks=(8, 8), **tamis.Zfp(accuracy=0.1))
    values = field(shape=shape)
    values[-1, -1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write(there, values)
    np.testing.assert_array_equal(there[-8:, -8:], values[-8:, -8:])


def test_write_into_dataset_held_open_twice_warns_that_its_only_chunk_reads_wrong(file: h5py.File) -> None:
    there = file.create_dataset("x", (8, 8), "f4", chunks=(8, 8), **tamis.Zfp(accuracy=0.1))
    other = file["x"]
    with pytest.warns(UserWarning, match="held open by another object too"):
        write(there, np.full((8, 8), np.nan, "f4"))
    del other, there
    assert np.isnan(file["x"][()]).all()


def test_write_filter_that_libhdf5_lacks_read_by_tamis(file: h5py.File) -> None:
    made = write(file, "x", field(), filters="zstd(3)", chunks=(8, 8))
    np.testing.assert_array_equal(read_chunk(made, (8, 16))[:5, :5], field()[8:, 16:])
    with pytest.raises(MissingFilterError, match="to be known to HDF5"):
        write(file, "y", field(), filters="zstd(3)!")
    assert list(file) == ["x"]


def test_create_dataset_any_filters_and_room_to_grow(file: h5py.File) -> None:
    made = create_dataset(file, "g/x", (0, 8), "f4", maxshape=(None, 8), filters=f"{SMALL}|fletcher32", attrs={"a": 1})
    assert (made.name, made.shape, made.maxshape, made.chunks) == ("/g/x", (0, 8), (None, 8), (4, 8))
    assert str(pipeline_of(made)) == "zfp(accuracy=0.0625)|fletcher32"
    assert made.attrs["a"] == 1
    with pytest.raises(FileError, match="expected a new name, got 'g/x'"):
        create_dataset(file, "g/x", (8,), "f4")
    with pytest.raises(ParameterError, match="expected axes with values, or that can grow"):
        create_dataset(file, "y", 0, "f4")


def test_write_stream_read_back_by_stock_tools(tmp_path: Path) -> None:
    values, mode = field("f8", (16, 24)), zfp.Rate(10)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = create_dataset(file, "x", (16, 24), "f8", chunks=(8, 8), filters=f"zfp({mode})|fletcher32")
        for i in range(0, 16, 8):
            for j in range(0, 24, 8):
                stream = zfp.encode(values[i : i + 8, j : j + 8], mode)
                # libzfp's streams are whole words, which is as good.
                write_stream(made, (i, j), stream + bytes(-len(stream) % 8), mode)
        file.create_dataset("y", data=values, chunks=(8, 8), **tamis.Zfp(rate=10))
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["x"], file["y"])
        assert 0 < np.abs(file["x"][()] - values).max() < 0.5
    assert "differences" not in stock("h5diff", tmp_path / "a.h5", tmp_path / "a.h5", "/x", "/y")


def test_write_stream_of_another_mode_or_place_refused(file: h5py.File) -> None:
    made = create_dataset(file, "x", (13, 21), "f4", chunks=(8, 8), filters="zfp(rate=8)")
    stream = zfp.encode(field(shape=(8, 8)), zfp.Rate(8))
    with pytest.raises(ParameterError, match=r"expected a stream of rate=8\.0, got one of rate=9"):
        write_stream(made, (0, 0), zfp.encode(field(shape=(8, 8)), zfp.Rate(9)), zfp.Rate(9))
    with pytest.raises(ParameterError, match=r"expected a stream of 64 bytes .* got 56"):
        write_stream(made, (0, 0), stream[:-8], zfp.Rate(8))
    for origin in ((4, 0), (0,), (16, 0), (-8, 0)):
        with pytest.raises(ParameterError, match="expected an origin that is a multiple"):
            write_stream(made, origin, stream, zfp.Rate(8))
    write_stream(made, (0, 0), stream, zfp.Rate(8))
    with pytest.raises(FileError, match=r"expected no chunk at \(0, 0\) yet"):
        write_stream(made, (0, 0), stream, zfp.Rate(8))
    plain = create_dataset(file, "y", (8, 8), "f4", filters="deflate")
    with pytest.raises(ParameterError, match="expected zfp as the first filter, got deflate"):
        write_stream(plain, (0, 0), stream, zfp.Rate(8))
    assert list(masks(made)) == [(0, 0)]


def test_write_stream_cut_off_refused(file: h5py.File) -> None:
    made = create_dataset(file, "x", (8, 8), "f4", filters="zfp(accuracy=0.1)")
    mode = zfp.Accuracy(0.1)
    with pytest.raises(StreamError, match="truncated"):
        write_stream(made, (0, 0), zfp.encode(field(shape=(8, 8)), mode)[:10], mode)
    assert masks(made) == {}
    write_stream(made, (0, 0), zfp.encode(field(shape=(8, 8)), mode), mode)
    assert np.abs(made[()] - field(shape=(8, 8))).max() <= 0.1


@pytest.mark.parametrize(
    ("name", "datasets", "said"),
    [
        ("highd", ["across all axes", "along the smooth axes"], "largest error"),
        ("sixd", ["tensor"], "at the end 1 of 4 steps"),
        ("zfparr", ["tiled", "whole"], "tiled: 12 chunks"),
    ],
)
def test_example_read_back_by_h5dump(name: str, datasets: list[str], said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), str(path)]
    assert said in subprocess.run(command, check=True, capture_output=True, text=True).stdout
    with h5py.File(path) as file:
        assert sorted(file) == datasets
        for each in datasets:
            raw = tmp_path / "raw.bin"
            stock("h5dump", "-d", f"/{each}", "-b", "NATIVE", "-o", raw, path)
            np.testing.assert_array_equal(np.fromfile(raw, "f8").reshape(file[each].shape), file[each])
