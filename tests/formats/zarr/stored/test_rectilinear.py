"""Arrays whose chunks have several shapes (rectilinear chunk grids), which zarr-python 3.2 and newer write."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from inprocess import run_tamis

import tamis

if not hasattr(zarr.codecs, "CastValue"):
    pytest.skip("zarr before 3.2", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")

VALUES = (280 + 10 * np.sin(np.arange(366 * 100) / 500)).reshape(366, 100).astype("f4")
MONTHS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]


def write(path: Path, **options: Any) -> Path:
    """Write a store with a variable in months, and one in chunks of one shape."""
    with zarr.config.set({"array.rectilinear_chunks": True}):
        root = zarr.create_group(path)
        names: Any = {"dimension_names": ("time", "x")}
        months = root.create_array(
            "T", shape=VALUES.shape, dtype="f4", chunks=[MONTHS, [40, 60]], fill_value=-1, **{**names, **options}
        )
        months[:] = VALUES
        root.create_array("U", data=VALUES, chunks=(61, 50), **names)
    return path


def test_values_are_read_by_every_reader(tmp_path: Path) -> None:
    store = write(tmp_path / "a.zarr")
    with tamis.open(store) as file:
        array = file["T"]
        assert array.chunks is None
        np.testing.assert_array_equal(array[...], VALUES)
        np.testing.assert_array_equal(array[29:100:7, ::3], VALUES[29:100:7, ::3])
        np.testing.assert_array_equal(array[[3, 40, 365]], VALUES[[3, 40, 365]])
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(array))[60], VALUES[60])
    with xr.open_dataset(store, engine="tamis") as dataset:
        np.testing.assert_array_equal(dataset["T"].values, VALUES)
    assert not zarr.config.get("array.rectilinear_chunks")  # the setting of the process is its user's


def test_inspect_and_plan_know_the_array(tmp_path: Path) -> None:
    store = write(tmp_path / "a.zarr")
    (found,) = (item for item in tamis.inspect(store).datasets if item.path == "/T")
    assert (found.layout, found.chunks, found.shape, found.problem) == ("rectilinear", None, (366, 100), "")
    assert found.stored_nbytes == sum(file.stat().st_size for file in (store / "T/c").rglob("*") if file.is_file())
    assert "read by  Zarr with the setting array.rectilinear_chunks of zarr 3.2" in run_tamis("inspect", store).stdout
    assert tamis.plan(store, {"T": "abs=0.1"}).recipe


@pytest.mark.parametrize("target", ["b.nc", "b.zarr"])
def test_repack_with_filters_gives_chunks_of_one_shape(target: str, tmp_path: Path) -> None:
    store = write(tmp_path / "a.zarr")
    tamis.repack(store, tmp_path / target, {"T": "zfp(accuracy=0.1)"}, chunks={"T": (61, 50)})
    assert tamis.verify(store, tmp_path / target, bounds={"T": 0.1}).ok
    with tamis.open(tmp_path / target) as file:
        assert file["T"].chunks == (61, 50)
        assert np.abs(file["T"][...] - VALUES).max() <= 0.1


@pytest.mark.parametrize("serializer", [None, zarr.codecs.ShardingCodec(chunk_shape=(1, 20))])
def test_repack_without_filters_keeps_files_and_metadata(serializer: Any, tmp_path: Path) -> None:
    options = {} if serializer is None else {"serializer": serializer, "compressors": None}
    store = write(tmp_path / "a.zarr", **options)
    zarr.open_group(store)["U"].attrs["units"] = "K"
    result = tamis.repack(store, tmp_path / "b.zarr", {})
    copy = tmp_path / "b.zarr"
    assert tamis.verify(store, copy).ok
    files = sorted(file.relative_to(store) for file in (store / "T/c").rglob("*") if file.is_file())
    assert files
    for file in files:
        assert (copy / file).read_bytes() == (store / file).read_bytes()
    before, after = (json.loads((path / "T/zarr.json").read_text()) for path in (store, copy))
    assert after["chunk_grid"] == before["chunk_grid"]
    # With consolidated metadata, zarr-python would open nothing of the store
    assert any("no consolidated metadata, because chunks of /T have several shapes" in note for note in result.notes)
    assert "consolidated_metadata" not in json.loads((copy / "zarr.json").read_text())
    np.testing.assert_array_equal(zarr.open_group(copy, mode="r")["U"][:], VALUES)
    with zarr.config.set({"array.rectilinear_chunks": True}):
        np.testing.assert_array_equal(xr.open_zarr(copy)["T"].values, VALUES)


def test_chunks_that_are_not_stored_are_fill_values(tmp_path: Path) -> None:
    store = tmp_path / "a.zarr"
    with zarr.config.set({"array.rectilinear_chunks": True}):
        array = zarr.create_array(store, shape=(11, 7), dtype="i2", chunks=[[2, 5, 4], [4, 3]], fill_value=9)
        array[2:7, 4:] = 5
        array[7:, :4] = 6
        array.resize((10, 7))  # the last chunk reaches beyond it
        expected = array[:]
    with tamis.open(store) as file:
        np.testing.assert_array_equal(file["a"][...], expected)
    tamis.repack(store, tmp_path / "b.h5", {})
    assert tamis.verify(store, tmp_path / "b.h5").ok


def test_shape_without_values(tmp_path: Path) -> None:
    with zarr.config.set({"array.rectilinear_chunks": True}):
        root = zarr.create_group(tmp_path / "a.zarr")
        root.create_array("x", shape=(0, 7), dtype="i2", chunks=[[2, 5], [4, 3]])
    for target in ("b.h5", "b.zarr"):
        tamis.repack(tmp_path / "a.zarr", tmp_path / target, {})
        with tamis.open(tmp_path / target) as file:
            assert file["x"].shape == (0, 7)


def test_axis_of_very_many_chunks_takes_no_memory(tmp_path: Path) -> None:
    with zarr.config.set({"array.rectilinear_chunks": True}):
        root = zarr.create_group(tmp_path / "a.zarr")
        array = root.create_array("x", shape=(1 << 40, 7), dtype="i2", chunks=[1, [4, 3]], fill_value=9)
        array[5:7, 2:] = 8
        expected = array[3:9]
    with tamis.open(tmp_path / "a.zarr") as file:
        np.testing.assert_array_equal(file["x"][3:9], expected)
    assert tamis.inspect(tmp_path / "a.zarr").datasets[0].shape == (1 << 40, 7)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ([[[1, 10**12]], [40, 60]], "expected at most 16777216 chunks along an axis, found 1000000000000"),
        ([[10], [40, 60]], "sum to 10 but array shape extent is 366"),
        ([[0, 366], [40, 60]], "T/zarr.json"),
        ([[366]], "T/zarr.json"),
        ("all", "T/zarr.json"),
        ([[366], [[1, -1], 99]], "T/zarr.json"),
        ([[1 << 62, 366], [1 << 62]], "expected a largest chunk shape of less than 2"),
    ],
)
def test_grids_that_are_damaged_are_an_error_of_the_array(shapes: Any, words: str, tmp_path: Path) -> None:
    store = write(tmp_path / "a.zarr")
    file = store / "T/zarr.json"
    content = json.loads(file.read_text())
    content["chunk_grid"]["configuration"]["chunk_shapes"] = shapes
    file.write_text(json.dumps(content))
    with tamis.open(store) as opened:
        np.testing.assert_array_equal(opened["U"][...], VALUES)
        with pytest.raises(tamis.FileError, match=words):
            opened["T"]
