"""Each group and array of a Zarr hierarchy is opened by its own metadata: one odd array never closes the others."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import zarr
from inprocess import run_tamis

import tamis
from tamis.formats.zarr.stored.hierarchy import LocalFiles, StoreFiles, hierarchy_of, store_path

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

VALUES = np.arange(24.0).reshape(4, 6)


def write(path: Path, zarr_format: Any = 3) -> Path:
    """Write a store with a group, two arrays and one that no version of zarr-python knows."""
    root = zarr.create_group(path, zarr_format=zarr_format, overwrite=True)
    root.create_array("good", data=VALUES, chunks=(2, 3))
    root.create_group("inner").create_array("deep", data=VALUES.astype("i2"))
    root["inner"].create_array("odd", data=VALUES.astype("f4"), attributes={"units": "K"})
    name, key = (".zarray", "dtype") if zarr_format == 2 else ("zarr.json", "data_type")
    change(path / "inner/odd" / name, key, "bfloat16")
    return path


def change(file: Path, key: str, value: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), key: value}))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_array_that_zarr_python_does_not_know_closes_no_other(zarr_format: Any, tmp_path: Path) -> None:
    store = write(tmp_path / "a.zarr", zarr_format)
    with tamis.open(store) as file:
        assert sorted(file) == ["good", "inner/deep", "inner/odd"]
        np.testing.assert_array_equal(file["good"][...], VALUES)
        np.testing.assert_array_equal(file["inner/deep"][...], VALUES)
        name = "zarr.json" if zarr_format == 3 else ".zarray"
        with pytest.raises(tamis.FileError, match=rf"inner/odd: .* cannot be read .*\(inner/odd/{name}\): .*bfloat16"):
            file["inner/odd"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_commands_name_the_array_and_go_on(zarr_format: Any, tmp_path: Path) -> None:
    store = write(tmp_path / "a.zarr", zarr_format)
    reason = f"/inner/odd: its Zarr metadata cannot be read by zarr {zarr.__version__}"
    shown = run_tamis("inspect", store)
    assert shown.returncode == 1  # as for a dataset of HDF5 that cannot be read
    assert "bfloat16" in shown.stdout
    assert "/good" in shown.stdout
    (odd,) = (item for item in tamis.inspect(store).datasets if item.path == "/inner/odd")
    assert (odd.shape, odd.dtype) == ((4, 6), "bfloat16")
    assert "cannot be read" in odd.problem
    for target in ("b.nc", "b.zarr"):
        refused = run_tamis("repack", store, tmp_path / target)
        assert refused.returncode == 1
        assert reason in refused.stderr
        assert "must be left out (drop)" in refused.stderr
        assert not (tmp_path / target).exists()
        assert run_tamis("repack", store, tmp_path / target, "--drop", "/inner/odd").returncode == 0
        assert run_tamis("verify", store, tmp_path / target, "--drop", "/inner/odd").returncode == 0
        with tamis.open(tmp_path / target) as file:
            np.testing.assert_array_equal(file["good"][...], VALUES)
    compared = run_tamis("verify", store, store)
    assert compared.returncode != 0
    assert reason in compared.stdout + compared.stderr
    planned = run_tamis("plan", store, "--require", "*:abs=0.1", "--min-size", "0")
    assert "Traceback" not in planned.stderr
    for done in (shown, compared, planned):
        assert "Traceback" not in done.stderr + done.stdout


@pytest.mark.parametrize("consolidated", [False, True])
def test_store_at_an_address_names_the_array_and_goes_on(consolidated: bool, tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    store = write(tmp_path / "a.zarr")
    if consolidated:
        root = json.loads((store / "zarr.json").read_text())
        names = ("good", "inner", "inner/deep", "inner/odd")
        metadata = {name: json.loads((store / name / "zarr.json").read_text()) for name in names}
        root["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": metadata}
        (store / "zarr.json").write_text(json.dumps(root))
    place = f"test_hierarchy_{consolidated}.zarr"
    files = fsspec.filesystem("memory")
    files.put(str(store), f"/{place}", recursive=True)
    try:
        with tamis.open(f"memory://{place}") as file:
            np.testing.assert_array_equal(file["good"][...], VALUES)
            np.testing.assert_array_equal(file["inner/deep"][...], VALUES)
            with pytest.raises(tamis.FileError, match=r"inner/odd: .*bfloat16"):
                file["inner/odd"]
    finally:
        files.rm(f"/{place}", recursive=True)


def test_references_name_the_array_and_go_on(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    store = write(tmp_path / "a.zarr", 2)
    references = {
        str(file.relative_to(store)): f"base64:{base64.b64encode(file.read_bytes()).decode()}"
        for file in store.rglob("*")
        if file.is_file()
    }
    (tmp_path / "a.json").write_text(json.dumps({"version": 1, "refs": references}))
    with tamis.open(tmp_path / "a.json") as file:
        np.testing.assert_array_equal(file["good"][...], VALUES)
        with pytest.raises(tamis.FileError, match=r"inner/odd: .*bfloat16"):
            file["inner/odd"]
    shown = run_tamis("inspect", tmp_path / "a.json")
    assert "bfloat16" in shown.stdout
    assert "Traceback" not in shown.stderr


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("codecs", [{"name": "endian", "configuration": {"endian": "little"}}, {"name": "nosuch"}], "(nosuch|endian)"),
        ("data_type", "char", "char"),
        ("data_type", "complex_bfloat16", "complex_bfloat16"),
        ("data_type", {"name": "struct", "configuration": {"fields": 7}}, "(struct|not iterable)"),
        ("chunk_grid", {"name": "hexagonal", "configuration": {}}, "hexagonal"),
        ("chunk_key_encoding", {"name": "hashed"}, "hashed"),
        ("extension", {"name": "new", "must_understand": True}, "extension"),
        ("codecs", [{"name": "cast_value", "configuration": {"data_type": "int3"}}, {"name": "bytes"}], "int3"),
        ("codecs", [{"name": "scale_offset", "configuration": {"scale": 0}}, {"name": "bytes"}], "scale"),
    ],
)
def test_metadata_of_other_programs_are_refused_in_words(key: str, value: Any, words: str, tmp_path: Path) -> None:
    store = write(tmp_path / "a.zarr")
    change(store / "inner/deep/zarr.json", key, value)
    with tamis.open(store) as file:
        np.testing.assert_array_equal(file["good"][...], VALUES)
        # zarr-python refuses it on opening, or tamis' codec on reading.
        with pytest.raises(tamis.TamisError, match=rf"inner/deep.*{words}"):
            file["inner/deep"][...]


def test_engine_of_xarray_warns_of_the_array(tmp_path: Path) -> None:
    store = write(tmp_path / "a.zarr")
    with pytest.warns(UserWarning, match="odd is left out: its Zarr metadata cannot be read"):
        dataset = xr.open_dataset(store, engine="tamis", group="inner")
    assert list(dataset.data_vars) == ["deep"]


@pytest.mark.parametrize("data", [b"{", b"[1]", b'{"zarr_format": 3}', b'{"zarr_format": 3, "node_type": "table"}'])
def test_metadata_that_are_no_document_of_an_array(data: bytes, tmp_path: Path) -> None:
    store = write(tmp_path / "a.zarr")
    (store / "inner/odd/zarr.json").write_bytes(data)
    with tamis.open(store) as file:
        np.testing.assert_array_equal(file["good"][...], VALUES)
        with pytest.raises(tamis.FileError, match=r"cannot be read \(inner/odd/zarr\.json\)"):
            file["inner/odd"]
    assert "/inner/odd" in str(tamis.inspect(store))


@pytest.mark.parametrize("data", [b"{", b"[1]", b'{"zarr_format": 3, "node_type": "group", "attributes": 7}'])
def test_metadata_of_a_group_that_are_damaged_are_an_error_of_the_store(data: bytes, tmp_path: Path) -> None:
    store = write(tmp_path / "a.zarr")
    (store / "zarr.json").write_bytes(data)
    with pytest.raises(tamis.FileError, match="its Zarr metadata cannot be read"):
        tamis.open(store)


def test_array_whose_chunks_are_elsewhere_is_refused(tmp_path: Path) -> None:
    """Read without the transformer, it would have fill values alone."""
    store = write(tmp_path / "a.zarr")
    change(store / "good/zarr.json", "storage_transformers", [{"name": "chunk-manifest-json"}])
    with tamis.open(store) as file:
        np.testing.assert_array_equal(file["inner/deep"][...], VALUES)
        with pytest.raises(tamis.FileError, match=r"it has storage transformers, .*chunk-manifest-json"):
            file["good"]


def test_array_alone_that_zarr_python_does_not_know_is_an_error(tmp_path: Path) -> None:
    store = write(tmp_path / "a.zarr")
    with pytest.raises(tamis.FileError, match=r"its Zarr metadata cannot be read: .*bfloat16"):
        tamis.open(store / "inner/odd")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_files_here_and_elsewhere_give_the_same_documents(zarr_format: Any, tmp_path: Path) -> None:
    store = write(tmp_path / "a.zarr", zarr_format)
    zarr.open_group(store).create_group("last")
    here = hierarchy_of(LocalFiles(store), prefer_consolidated=False)
    elsewhere = hierarchy_of(StoreFiles(store_path(str(store))), prefer_consolidated=False)
    assert here == elsewhere
    assert list(here.documents) == ["", "good", "inner", "inner/deep", "inner/odd", "last"]
    assert [document.is_array for document in here.documents.values()] == [False, True, False, True, True, False]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_consolidated_metadata_are_used_where_they_are_preferred(zarr_format: Any, tmp_path: Path) -> None:
    store = tmp_path / "a.zarr"
    root = zarr.create_group(store, zarr_format=zarr_format)
    root.create_group("g").create_array("x", data=VALUES, attributes={"a": 1})
    zarr.consolidate_metadata(store, zarr_format=zarr_format)
    zarr.open_array(store / "g/x").attrs["a"] = 2
    for preferred in (True, False):
        documents, consolidated = hierarchy_of(LocalFiles(store), prefer_consolidated=preferred)
        assert consolidated >= {"g", "g/x"}
        assert list(documents) == ["", "g", "g/x"]
        assert documents["g/x"].attributes == {"a": 1 if preferred else 2}


def test_groups_without_metadata_of_their_own_have_the_consolidated_ones(tmp_path: Path) -> None:
    store = tmp_path / "a.zarr"
    root = zarr.create_group(store, zarr_format=2)
    root.create_group("g", attributes={"title": "t"}).create_array("x", data=VALUES)
    zarr.consolidate_metadata(store, zarr_format=2)
    for file in (".zgroup", "g/.zgroup", "g/.zattrs", "g/x/.zarray"):
        (store / file).unlink()
    with tamis.open(store) as file:
        np.testing.assert_array_equal(file["g/x"][...], VALUES)
        assert file["g"].attrs == {"title": "t"}
    tamis.repack(store, tmp_path / "b.zarr", {})
    np.testing.assert_array_equal(zarr.open_group(tmp_path / "b.zarr")["g/x"][...], VALUES)


def test_unknown_arrays_of_both_stores_are_never_equal(tmp_path: Path) -> None:
    store = write(tmp_path / "a.zarr")
    change(store / "inner/odd/zarr.json", "shape", "unknown")
    result = tamis.verify(store, store)
    assert not result.ok
    assert [item.path for item in result.problems] == ["/inner/odd"]
    assert next(item for item in tamis.inspect(store).datasets if item.path == "/inner/odd").shape is None
