"""Zarr hierarchies as stores: facts, values by tamis and by zarr-python, the data model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numcodecs
import numcodecs.zfpy
import numpy as np
import pytest
import xarray
import zarr

import tamis
from tamis.formats.zarr.stored.store import ZarrStore
from tamis.stores import is_zarr
from tamis.zarr import H5zZfp, PipelineCodec, Zfpy, codecs

SHAPE, CHUNKS = (9, 20, 30), (4, 20, 15)


def field() -> np.ndarray[Any, Any]:
    return (280 + np.sin(np.arange(np.prod(SHAPE)) / 9)).reshape(SHAPE).astype("f4")


def create(path: Path, **options: Any) -> ZarrStore:
    """A store with the array TS."""
    zarr.open_group(str(path), mode="a", zarr_format=options.get("zarr_format", 3))
    array = zarr.create_array(str(path / "TS"), shape=SHAPE, dtype=options.pop("dtype", "f4"), chunks=CHUNKS, **options)
    array[...] = field()
    return ZarrStore(path)


def values(array: Any, *, independent: bool = False) -> np.ndarray[Any, Any]:
    reader = array.open_reader(independent=independent)
    try:
        return reader.read(tuple(slice(0, extent) for extent in array.shape))
    finally:
        reader.close()


def version_2(filters: str, dtype: str = "f4") -> dict[str, Any]:
    """Arguments of an array of version 2 with these filters."""
    return {"zarr_format": 2, "dtype": dtype, **codecs(filters, dtype, CHUNKS, zarr_format=2)}


def h5z_zfp(filters: str) -> H5zZfp:
    """The codec of zfp streams without a header."""
    zfp = tamis.Pipeline.parse(filters).zfp
    assert zfp is not None
    return H5zZfp.of(zfp, "f4", CHUNKS)


ARRAYS = {
    "v2 zstd": ({"zarr_format": 2}, "zstd"),
    "v2 shuffle and zlib": (version_2("shuffle|deflate(4)|fletcher32"), "shuffle"),
    "v2 big-endian": (version_2("shuffle|deflate(4)", ">f4"), "shuffle"),
    "v2 h5z_zfp": (
        {"zarr_format": 2, "filters": [h5z_zfp("zfp(accuracy=0.1)")], "compressors": numcodecs.Zlib(1)},
        "zfp(accuracy=0.1)",
    ),
    "v2 zfpy": ({"zarr_format": 2, "compressors": Zfpy(tolerance=0.1)}, "zfp(accuracy=0.1)"),
    "v2 zfpy and zlib": (version_2("zfp(accuracy=0.1)|deflate(1)"), "zfp(accuracy=0.1)"),
    "v2 zfpy of numcodecs": (
        {"zarr_format": 2, "compressors": numcodecs.zfpy.ZFPY(tolerance=0.1)},
        "zfp(accuracy=0.1)",
    ),
    "v3 zstd": ({}, "zstd"),
    "v3 none": ({"compressors": None}, "none"),
    "v3 zfp": (codecs("zfp(rate=16)", "f4", CHUNKS), "zfp(rate=16"),
    "v3 numcodecs": (codecs("shuffle|bzip2(9)", "f4", CHUNKS), "shuffle"),
    "v3 pipeline": (
        {"serializer": PipelineCodec("scaleoffset(decimal,2)|shuffle|deflate(4)"), "compressors": None},
        "scaleoffset",
    ),
    "v3 gzip": ({"compressors": zarr.codecs.GzipCodec()}, None),
    "v3 shards": ({"shards": (8, 20, 30)}, "zstd"),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_values_by_tamis_are_those_of_zarr_python(name: str, tmp_path: Path) -> None:
    options, filters = ARRAYS[name]
    array = create(tmp_path / "a.zarr", **options).array("/TS")
    assert array.can_read_chunks == (filters is not None)
    assert str(array.storage.pipeline).startswith(filters or "gzip(")
    by_zarr = values(array, independent=True)
    np.testing.assert_array_equal(values(array), by_zarr)
    assert np.abs(by_zarr - field()).max() < 0.1
    files = [path for path in (tmp_path / "a.zarr" / "TS").rglob("*") if path.is_file() and path.suffix != ".json"]
    assert array.stored_nbytes == sum(path.stat().st_size for path in files if not path.name.startswith("."))


def test_chunks_with_other_masks_and_absent_ones(tmp_path: Path) -> None:
    changed = field()
    changed[0, 0, 0] = np.nan
    store = create(
        tmp_path / "a.zarr", serializer=PipelineCodec("zfp(accuracy=0.1)|deflate(4)"), compressors=None, fill_value=7
    )
    zarr.open_array(str(tmp_path / "a.zarr" / "TS"))[...] = changed
    (tmp_path / "a.zarr" / "TS" / "c" / "2" / "0" / "1").unlink()
    array = store.array("/TS")
    assert sum(array.chunk_index().mask_counts().values()) == 5
    assert array.chunk_index().mask_counts()[1] >= 1
    np.testing.assert_array_equal(values(array), values(array, independent=True))
    assert values(array)[8, 0, 29] == 7


def test_h5z_zfp_chunk_stored_as_it_is(tmp_path: Path) -> None:
    changed = field()
    changed[5, 5, 5] = np.inf
    store = create(tmp_path / "a.zarr", zarr_format=2, compressors=h5z_zfp("zfp(accuracy=0.1)"))
    zarr.open_array(str(tmp_path / "a.zarr" / "TS"))[...] = changed
    array = store.array("/TS")
    assert array.chunk_index().mask_counts()[1] == 1
    np.testing.assert_array_equal(values(array), values(array, independent=True))


def test_d22_shuffle_of_nczarr_read_right(tmp_path: Path) -> None:
    """NCZarr writes elementsize 0, for which numcodecs does nothing."""
    store = create(tmp_path / "a.zarr", **version_2("shuffle|deflate(4)"))
    metadata = tmp_path / "a.zarr" / "TS" / ".zarray"
    metadata.write_text(metadata.read_text().replace('"elementsize": 4', '"elementsize": 0'))
    assert '"elementsize": 0' in metadata.read_text()
    np.testing.assert_array_equal(values(ZarrStore(tmp_path / "a.zarr").array("/TS")), field())
    assert store.array("/TS").can_read_chunks


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("consolidated", [True, False])
def test_dataset_of_xarray_attributes_dimensions_roles(zarr_format: int, consolidated: bool, tmp_path: Path) -> None:
    variables = {
        "TS": (
            ("time", "lat", "lon"),
            field(),
            {"units": "K", "valid_range": np.array([0, 400], "f4"), "levels": [1, 2]},
        ),
        "packed": ("lat", np.arange(20, dtype="f8"), {}),
    }
    ds = xarray.Dataset(variables, coords={"lat": ("lat", np.linspace(-90, 90, 20))}, attrs={"title": "a", "n": 3})
    encoding = {
        "packed": {"dtype": "i2", "scale_factor": 0.5, "_FillValue": -1},
        "TS": {"_FillValue": np.float32(1e20)},
    }
    ds.to_zarr(tmp_path / "a.zarr", zarr_format=zarr_format, consolidated=consolidated, encoding=encoding)
    store = ZarrStore(tmp_path / "a.zarr")
    group = store.model.group("/")
    assert {name: dimension.size for name, dimension in group.dimensions.items()} == dict(
        zip(("time", "lat", "lon"), SHAPE, strict=True)
    )
    assert group.attributes == {"title": "a", "n": 3}
    ts = store.array("/TS")
    assert ts.attributes["units"] == "K"
    assert ts.attributes["_FillValue"].dtype == ts.attributes["valid_range"].dtype == np.dtype("f4")
    assert len(ts.meaning.missing.values) == 1
    assert ts.meaning.missing.high == 400
    assert (store.array("/packed").attributes["_FillValue"], store.array("/packed").meaning.packing.scale) == (-1, 0.5)
    assert (store.roles["/lat"].kind, store.roles["/TS"].kind) == ("coordinate", "data")


def test_groups_and_dimensions_of_groups_around(tmp_path: Path) -> None:
    root = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    root.create_array("x", data=np.arange(3.0), dimension_names=["x"])
    inner = root.create_group("g/h")
    inner.create_array("v", data=np.zeros((3, 3)), dimension_names=["x", None])
    store = ZarrStore(tmp_path / "a.zarr")
    assert store.model.group_paths() == ["/", "/g", "/g/h"]
    assert [*store.model.group("/g/h").dimensions] == ["phony_dim_0"]
    assert store.array("/g/h/v").dimensions == ("x", "phony_dim_0")


def test_dimension_of_two_lengths_is_that_of_the_first_array(tmp_path: Path) -> None:
    root = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    root.create_array("a", data=np.zeros(3), dimension_names=["x"])
    root.create_array("b", data=np.zeros(4), dimension_names=["x"])
    group = ZarrStore(tmp_path / "a.zarr").model.group("/")
    assert {name: dimension.size for name, dimension in group.dimensions.items()} == {"x": 3}
    assert (group.variables["a"].shape, group.variables["b"].shape) == ((3,), (4,))


def test_array_alone_and_array_without_axes(tmp_path: Path) -> None:
    zarr.create_array(str(tmp_path / "lonely.zarr"), data=np.arange(5, dtype="i2"))
    array = ZarrStore(tmp_path / "lonely.zarr").array("/lonely")
    np.testing.assert_array_equal(values(array), np.arange(5))
    assert array.stored_nbytes > 0
    root = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    root.create_array("scalar", data=np.array(3.5))
    assert values(ZarrStore(tmp_path / "a.zarr").array("/scalar")) == 3.5


@pytest.mark.parametrize("damage", ["json", "codec", "chunk", "mark"])
def test_damage_is_an_error_with_the_place(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "a.zarr"
    create(path, serializer=PipelineCodec("shuffle|deflate(4)"), compressors=None)
    metadata, chunk = path / "TS" / "zarr.json", path / "TS" / "c" / "0" / "0" / "0"
    document = json.loads(metadata.read_text())
    if damage == "json":
        metadata.write_text("{")
    elif damage == "codec":
        document["codecs"] = [{"name": "nosuch"}]
        metadata.write_text(json.dumps(document))
    elif damage == "chunk":
        chunk.write_bytes(chunk.read_bytes()[:-9])
    else:
        chunk.write_bytes(b"\x89tamis.mask\n\xff")
    with pytest.raises(
        tamis.FileError, match=r"metadata cannot be read|chunk at \(0, 0, 0\)|filter mask behind the mark"
    ) as caught:
        values(ZarrStore(path).array("/TS"))
    assert str(path) in str(caught.value)


def test_folder_is_known_by_its_metadata(tmp_path: Path) -> None:
    create(tmp_path / "a.zarr")
    assert is_zarr(tmp_path / "a.zarr")
    assert not is_zarr(tmp_path)
    assert not is_zarr(tmp_path / "a.zarr" / "zarr.json")
    assert not is_zarr(tmp_path / "nothing")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_consolidated_metadata_that_are_too_old_are_not_used(zarr_format: Any, tmp_path: Path) -> None:
    """Chunks are as the arrays' own metadata say: of what was written since, a copy would lack a part."""
    path = tmp_path / "a.zarr"
    group = zarr.open_group(path, mode="w", zarr_format=zarr_format)
    group.create_array("x", data=np.arange(6), chunks=(3,))
    group.create_array("text", data=np.array([b"a", b"b"]))
    zarr.consolidate_metadata(str(path), zarr_format=zarr_format)
    array = zarr.open_array(path / "x", mode="r+")
    array.resize((9,))
    array[6:] = [6, 7, 8]
    group.create_array("text", data=np.array([b"abc", b"defg"]), overwrite=True)
    group.create_array("new", data=np.arange(2))
    store = tamis.open(path)
    assert sorted(store) == ["new", "text", "x"]
    assert store["x"][...].tolist() == list(range(9))
    assert store["text"][...].tolist() == [b"abc", b"defg"]


def test_consolidated_metadata_of_what_is_not_there_are_not_used(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    group.create_array("x", data=np.arange(6))
    zarr.consolidate_metadata(str(tmp_path / "a.zarr"), zarr_format=2)
    metadata = json.loads((tmp_path / "a.zarr" / ".zmetadata").read_text())
    metadata["metadata"]["gone/.zattrs"] = {"foo": "bar"}
    (tmp_path / "a.zarr" / ".zmetadata").write_text(json.dumps(metadata))
    assert tamis.open(tmp_path / "a.zarr")["x"][...].tolist() == list(range(6))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_array_with_consolidated_metadata_alone_is_there(zarr_format: Any, tmp_path: Path) -> None:
    """zarr-python and xarray read it, so a copy must not lack it."""
    path = tmp_path / "a.zarr"
    group = zarr.open_group(path, mode="w", zarr_format=zarr_format)
    for name in ("x", "inner/y"):
        group.create_array(name, data=np.arange(6), chunks=(3,))
    zarr.consolidate_metadata(str(path), zarr_format=zarr_format)
    (path / "inner" / "y" / (".zarray" if zarr_format == 2 else "zarr.json")).unlink()
    store = tamis.open(path)
    assert (store["x"][...].tolist(), store["inner/y"][...].tolist()) == (list(range(6)), list(range(6)))
