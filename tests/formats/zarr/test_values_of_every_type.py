"""Known defects U43, U44 and U50: values of every type in Zarr are those of h5py, and verify agrees with repack."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray
import zarr
from h5py import h5d, h5p, h5s, h5t
from inprocess import said_by_tamis
from numpy.typing import NDArray

import tamis
from tamis.formats.zarr.writing import target

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")

MEMBERS = {"SOLID": 0, "LIQUID": 1, "GAS": 2}
STORED: list[dict[str, Any]] = [{}, {"chunks": (3,), "compression": "gzip", "shuffle": True}]
FORMS = {"2": ["--zarr-format", "2"], "3": [], "sharded": ["--shards", "2"]}
INTEGERS = [f"{kind}{nbytes}" for kind in "iu" for nbytes in (1, 2, 4, 8)]


def write_types(path: Path) -> None:
    """Write a dataset of each type of a fixed size, stored in one run and in chunks, in both byte orders."""
    with h5py.File(path, "w") as file:
        for prefix, stored in zip(("run", "chunked"), STORED, strict=True):
            for order in "<>":
                name = f"{prefix}_{'little' if order == '<' else 'big'}"
                for kind in (*INTEGERS, "f2", "f4", "f8"):
                    file.create_dataset(f"{name}_{kind}", data=np.array([0, 1, 2, 100, 3], order + kind), **stored)
                for kind in INTEGERS:
                    enum = h5py.enum_dtype(MEMBERS, basetype=order + kind)
                    data = np.array([0, 1, 2, 1, 0], order + kind)
                    file.create_dataset(f"{name}_enum_{kind}", data=data, dtype=enum, **stored)
                for kind in ("c8", "c16"):
                    data = np.array([0, 1 + 2j, 2, np.nan, 1e30], order + kind)
                    file.create_dataset(f"{name}_{kind}", data=data, **stored)
            file.create_dataset(f"{prefix}_bool", data=np.array([0, 1, 1, 0, 1], bool), **stored)
            file.create_dataset(f"{prefix}_text", data=np.array([b"a", b"", b"hello", b"x", b"bcd"], "S5"), **stored)
            file.create_dataset(f"{prefix}_words", data=["a", "é", "", "xyz", "q"], dtype=h5py.string_dtype(), **stored)
            for words, padding in (("ended", h5t.STR_NULLTERM), ("spaces", h5t.STR_SPACEPAD)):
                write_padded(file, f"{prefix}_{words}", padding, chunked=bool(stored))


def write_padded(file: h5py.File, name: str, padding: int, *, chunked: bool) -> None:
    """Write texts whose bytes are not what h5py reads: up to a zero, or with blanks at the end."""
    kind, plist = h5t.C_S1.copy(), h5p.create(h5p.DATASET_CREATE)
    kind.set_size(5)
    kind.set_strpad(padding)
    if chunked:
        plist.set_chunk((3,))
        plist.set_deflate(3)
    dataset = h5d.create(file.id, name.encode(), kind, h5s.create_simple((5,)), plist)
    dataset.write(h5s.ALL, h5s.ALL, np.array([b"a    ", b"bcd  ", b"ab\0cd", b"hello", b"x"], "S5"), kind)


def values_of(owner: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the values of all arrays in native byte order, texts of varying length as text."""
    values = {}
    for name, array in owner.items():
        read = np.asarray(array[()])
        if read.dtype.kind in "OT":
            texts = [text.decode() if isinstance(text, bytes) else str(text) for text in read]
            values[name] = np.array(texts, object)
        else:
            values[name] = read.astype(read.dtype.newbyteorder("="))
    return values


def assert_equal(before: Mapping[str, NDArray[Any]], after: Mapping[str, NDArray[Any]]) -> None:
    assert before.keys() == after.keys()
    for name, values in before.items():
        assert after[name].dtype == values.dtype, name
        assert after[name].shape == values.shape, name
        np.testing.assert_array_equal(after[name], values, err_msg=name)


@pytest.mark.matrix
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("recipe", [[], ["-f", "*:shuffle|deflate(1)", "--min-size", 0, "--larger"]])
def test_u50_values_of_every_type_are_those_of_h5py(form: str, recipe: list[Any], tmp_path: Path) -> None:
    source, store, back = tmp_path / "a.h5", tmp_path / "a.zarr", tmp_path / "b.h5"
    write_types(source)
    said_by_tamis("repack", source, store, *FORMS[form], *recipe)
    with h5py.File(source) as file:
        expected = values_of(file)
    assert_equal(expected, values_of(dict(zarr.open_group(store, mode="r").arrays())))
    said_by_tamis("verify", source, store)
    with tamis.open(store) as opened:
        assert_equal(expected, values_of({name: opened[name] for name in opened}))
    said_by_tamis("repack", store, back)
    said_by_tamis("verify", store, back)
    with h5py.File(back) as file:
        assert_equal(expected, values_of({name: file[name] for name in expected}))


@pytest.mark.parametrize("stored", STORED, ids=["run", "chunks"])
def test_u50_wrong_byte_order_in_the_metadata_is_found(
    stored: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The witness reads the target by the target's metadata, whatever tamis meant to write."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        enum = h5py.enum_dtype(MEMBERS, basetype=">i4")
        file.create_dataset("phase", data=np.array([0, 1, 2, 1], ">i4"), dtype=enum, **stored)
    right = target.metadata_3

    def wrong(array: Any) -> dict[str, Any]:
        metadata = right(array)
        metadata["codecs"] = [{"name": "bytes", "configuration": {"endian": "little"}}, *metadata["codecs"][1:]]
        return metadata

    monkeypatch.setattr(target, "metadata_3", wrong)
    with pytest.raises(tamis.BoundError, match="values differ from those of the source"):
        tamis.repack(tmp_path / "a.h5", tmp_path / "a.zarr", {})
    assert not (tmp_path / "a.zarr").exists()


def test_u50_records_keep_their_fields_in_zarr_2(tmp_path: Path) -> None:
    source, store = tmp_path / "a.h5", tmp_path / "a.zarr"
    with h5py.File(source, "w") as file:
        for name, align in (("packed", False), ("gaps", True)):
            for order in "<>":
                record = np.dtype([("a", f"{order}i2"), ("b", f"{order}f8"), ("s", "S3")], align=align)
                file[f"{name}{order}"] = np.array([(1, 2.5, b"ab"), (3, -4, b"c")], record)
        file["tables"] = np.array([(1, [1, 2, 3])], [("a", "<i2"), ("t", "<i4", 3)])
    said_by_tamis("repack", source, store, "--zarr-format", 3, code=1)
    with h5py.File(source, "a") as file:
        del file["tables"]
    said_by_tamis("repack", source, store, "--zarr-format", 2)
    said_by_tamis("verify", source, store)
    with h5py.File(source) as file:
        for name, array in zarr.open_group(store, mode="r").arrays():
            assert array[:].tolist() == file[name][:].tolist(), name


@pytest.mark.parametrize("kind", ["kerchunk", "icechunk"])
def test_u50_references_give_the_values_of_h5py(kind: str, tmp_path: Path) -> None:
    source = tmp_path / "a.h5"
    with h5py.File(source, "w") as file:
        for prefix, stored in zip(("run", "chunked"), STORED, strict=True):
            enum = h5py.enum_dtype(MEMBERS, basetype=">i4")
            file.create_dataset(f"{prefix}_enum", data=np.array([0, 1, 2, 1, 0], ">i4"), dtype=enum, **stored)
            for words, padding in (("ended", h5t.STR_NULLTERM), ("spaces", h5t.STR_SPACEPAD)):
                write_padded(file, f"{prefix}_{words}", padding, chunked=bool(stored))
        expected = values_of(file)
    target = tmp_path / ("a.json" if kind == "kerchunk" else "repository")
    said_by_tamis("export", source, "--to", kind, "-o", target)
    if kind == "kerchunk":
        with xarray.open_dataset(str(target), engine="kerchunk", decode_cf=False) as dataset:
            assert_equal(expected, {str(name): dataset[name].values for name in dataset})
        return
    import icechunk

    storage = icechunk.local_filesystem_storage(str(target))
    nothing = getattr(icechunk.credentials, "LocalFileSystemAccess", None)  # Icechunk 1 has no such word
    access = icechunk.containers_credentials({f"file://{tmp_path}/": nothing})
    repository = icechunk.Repository.open(storage, authorize_virtual_chunk_access=access)
    group = zarr.open_group(repository.readonly_session("main").store, mode="r")
    assert_equal(expected, values_of(dict(group.arrays())))


@pytest.mark.parametrize("form", FORMS)
def test_u44_verify_accepts_what_repack_accepts(form: str, tmp_path: Path) -> None:
    source, store = tmp_path / "a.h5", tmp_path / "a.zarr"
    with h5py.File(source, "w") as file:
        file.create_dataset("phase", data=np.array([0, 1, 2], "u1"), dtype=h5py.enum_dtype(MEMBERS, basetype="u1"))
        file["switch"] = np.array([True, False])
    said_by_tamis("repack", source, store, *FORMS[form])
    said = said_by_tamis("verify", source, store)
    assert "/phase: enum of uint8 {GAS=2, LIQUID=1, SOLID=0} became uint8" in said
    assert "/switch: enum of int8 {FALSE=0, TRUE=1} became bool" in said
    array = zarr.open_group(store, mode="r+")["phase"]
    array[1] = 2
    assert "1 of 3 differ" in said_by_tamis("verify", source, store, code=3)


@pytest.mark.parametrize("form", FORMS)
def test_u43_texts_shorter_than_their_type(form: str, tmp_path: Path) -> None:
    source, store, back = tmp_path / "a.h5", tmp_path / "a.zarr", tmp_path / "b.h5"
    with h5py.File(source, "w") as file:
        file.create_dataset("StructMetadata.0", data=np.array(b"END", "S32000"))
        file.create_dataset("several", data=np.array([b"a", b"bcd"], "S7"))
        file.create_dataset("empty", data=np.array(b"", "S3"))
    said_by_tamis("repack", source, store, *FORMS[form])
    said_by_tamis("verify", source, store)
    said_by_tamis("repack", store, back)
    for path in (store, back):
        with tamis.open(path) as opened:
            assert opened["StructMetadata.0"][()] == b"END"
            assert opened["StructMetadata.0"].dtype == "S32000"
            assert opened["several"][:].tolist() == [b"a", b"bcd"]
            assert opened["empty"][()] == b""


@pytest.mark.parametrize("form", FORMS)
def test_u44_attributes_without_values_have_no_type_in_json(form: str, tmp_path: Path) -> None:
    source, store, back = tmp_path / "a.h5", tmp_path / "a.zarr", tmp_path / "b.h5"
    with h5py.File(source, "w") as file:
        file["x"] = np.arange(4)
        for name, kind in (("records", [("position", "f8")]), ("floats", "f4"), ("bits", "V2"), ("flags", "?")):
            file["x"].attrs.create(name, np.empty(0, kind))
    said_by_tamis("repack", source, store, *FORMS[form])
    said_by_tamis("verify", source, store)
    said_by_tamis("repack", store, back)
    said_by_tamis("verify", store, back)
    with h5py.File(back) as file:
        assert file["x"].attrs["records"].dtype == [("position", "f8")]
        assert file["x"].attrs["floats"].dtype == "f4"


def test_u43_array_attributes_in_verify(tmp_path: Path) -> None:
    source, store = tmp_path / "a.h5", tmp_path / "a.zarr"
    with h5py.File(source, "w") as file:
        file["x"] = np.arange(4)
        file["x"].attrs["m"] = np.arange(4).reshape(2, 2)
        file["x"].attrs["words"] = np.array([b"a", b"bc"])
    said_by_tamis("repack", source, store)
    said_by_tamis("verify", source, store)
    with h5py.File(source, "a") as file:
        file["x"].attrs["m"] = np.arange(4).reshape(4, 1)
    assert "attribute 'm'" in said_by_tamis("verify", source, store, code=3)


def test_u50_texts_of_zarr_in_the_engine(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("words", data=["a", "é", ""], dtype=h5py.string_dtype())
    said_by_tamis("repack", tmp_path / "a.h5", tmp_path / "a.zarr")
    with xarray.open_dataset(tmp_path / "a.zarr", engine="tamis") as dataset:
        assert dataset["words"].values.tolist() == ["a", "é", ""]
