"""`tamis.open` of Zarr stores: arrays that are sliced, in groups, and sparse ones."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import dask.array
import numpy as np
import pytest
import xarray
import zarr

import tamis
from tamis import FileError

SHAPE, CHUNKS = (9, 20, 30), (4, 20, 15)
FIELD = (280 + np.sin(np.arange(np.prod(SHAPE)) / 9)).reshape(SHAPE).astype("f4")
BIG = zarr.codecs.BytesCodec(endian="big")
ARRAYS: dict[str, tuple[Any, dict[str, Any]]] = {
    "plain": (FIELD, {}),
    "zfp": (FIELD, tamis.zarr.codecs("zfp(rate=8)", "f4", CHUNKS)),
    "big-endian": (FIELD.astype(">f8"), {"serializer": BIG, "compressors": None}),
    "shards": (FIELD, {"shards": (8, 20, 30)}),
    "gzip": (FIELD, {"compressors": zarr.codecs.GzipCodec()}),
    "bool": (FIELD > 280, {}),
    "complex": (FIELD + 1j, {"serializer": BIG}),
    "time": (FIELD.astype("M8[s]"), {"zarr_format": 2}),
    "version 2": (FIELD.astype(">f4"), {"zarr_format": 2, "order": "F"}),
    "nested keys": (FIELD, {"zarr_format": 2, "chunk_key_encoding": {"name": "v2", "separator": "/"}}),
}
KEYS = [(), (slice(1, 7), 3), (slice(None, None, 2), [1, 5], slice(2, 4)), (..., -1), (0, 0, 0), slice(3, 3)]


@pytest.mark.parametrize("name", ARRAYS)
def test_array_read_as_zarr_python_reads_it(name: str, tmp_path: Path) -> None:
    values, options = ARRAYS[name]
    expected = zarr.create_array(str(tmp_path / "a.zarr"), data=values, chunks=CHUNKS, **options)[...]
    with tamis.open(tmp_path / "a.zarr", threads=2) as file:
        array = file["a"]
        assert (array.shape, array.dtype, array.chunks) == (SHAPE, expected.dtype.newbyteorder("="), CHUNKS)
        for key in KEYS:
            np.testing.assert_array_equal(array[key], expected[key])
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(array)).read(), expected)
        out = np.empty(SHAPE, expected.dtype)
        assert array.read(out) is out
        np.testing.assert_array_equal(dask.array.from_array(array, chunks=array.chunks).compute(), out)


def test_groups_attributes_scalars_and_texts(tmp_path: Path) -> None:
    root = zarr.open_group(str(tmp_path / "a.zarr"), mode="w", attributes={"title": "t"})
    inner = root.create_group("g/h", attributes={"n": 2})
    inner.create_array("TS", data=FIELD, chunks=CHUNKS, attributes={"units": "K"}, dimension_names=["t", "y", "x"])
    root.create_array("s", data=np.float32(3))
    root.create_array("text", shape=(2,), dtype=str)[:] = ["x", "yyy"]
    with tamis.open(tmp_path / "a.zarr") as file:
        assert (list(file), file.attrs) == (["g/h/TS", "s", "text"], {"title": "t"})
        assert file["s"][()] == 3
        assert list(file["text"][()]) == ["x", "yyy"]
        group = file["g"]["h"]
        assert (group.name, list(group), group.attrs, group["TS"].attrs) == ("/g/h", ["TS"], {"n": 2}, {"units": "K"})
        assert group["../h/TS"].name == pickle.loads(pickle.dumps(group))["TS"].name == "/g/h/TS"
        assert "x" not in group
        with pytest.raises(KeyError, match="expected an array or group at 'none', found TS"):
            group["none"]
        array = file["s"]
    with pytest.raises(FileError, match="the file is closed: open it again"):
        array[()]
    (tmp_path / "a.zarr" / "zarr.json").write_text("{")
    with pytest.raises(FileError, match="metadata cannot be read"):
        tamis.open(tmp_path / "a.zarr")


def test_sparse_array_of_a_million_chunks(tmp_path: Path) -> None:
    """Nothing is done for each chunk of the grid: that would take a minute here."""
    array = zarr.create_array(str(tmp_path / "a.zarr"), shape=(1000, 1000), chunks=(1, 1), dtype="f4", fill_value=5)
    array[3, 4:6] = [1, 2]
    (tmp_path / "a.zarr" / "c" / "3" / "1000").write_bytes(b"beyond the array")
    (tmp_path / "a.zarr" / "c" / "3" / "04").write_bytes(b"no chunk")
    with tamis.open(tmp_path / "a.zarr") as file:
        values = file["a"][()]
        assert values[3, 4:7].tolist() == [1, 2, 5]
        assert np.count_nonzero(values != 5) == 2
        assert file["a"][2:4, 5:7].tolist() == [[5, 5], [2, 5]]


def test_engine_of_xarray_reads_zarr(tmp_path: Path) -> None:
    expected = xarray.Dataset({"TS": (("t", "y", "x"), FIELD)}, coords={"y": np.arange(20.0)}, attrs={"a": "b"})
    expected.to_zarr(tmp_path / "a.zarr")
    with xarray.open_dataset(tmp_path / "a.zarr", engine="tamis", chunks={}) as ds:
        xarray.testing.assert_identical(ds.compute(), expected)


def test_naming_an_array_does_not_look_at_its_codecs(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "a.zarr", name="v", data=np.arange(12.0).reshape(3, 4), chunks=(2, 4))
    with tamis.open(tmp_path / "a.zarr") as file:
        array = file["v"]
        assert (array.shape, array.dtype, array.chunks) == ((3, 4), np.dtype("f8"), (2, 4))
        assert "storage" not in vars(array._array)
        assert array[2, 3] == 11
        assert array._array.storage.chunk_shape == array.chunks
