"""Texts from Zarr to Zarr keep their type, chunks, shards, filters and fill value where the version has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr

import tamis

TEXTS = ["a", "häh", "", "x" * 6, "日本"]
FORMS: list[dict[str, Any]] = [{"shards": 2}, {"zarr_format": 3}, {"zarr_format": 2}]


def _store(path: Path, version: int, dtype: str, **more: Any) -> list[str]:
    """Write a store with an array of 40 texts, of which 20 are stored, and return them."""
    group = zarr.open_group(path, mode="w", zarr_format=version)  # type: ignore[arg-type]
    about: dict[str, Any] = {"shape": (40,), "chunks": (10,), "dtype": dtype, "fill_value": "none"} | more
    array = group.create_array("u", **about)
    array[:20] = np.array(TEXTS * 4, object if dtype == "str" else dtype)
    return [str(text) for text in array[:]]


def _same_texts(path: Path, expected: list[str]) -> Any:
    array = zarr.open_group(path, mode="r")["u"]
    assert isinstance(array, zarr.Array)
    assert [str(text) for text in array[:]] == expected
    return array


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["<U6", "str"])
def test_type_chunks_and_fill_value_are_kept(tmp_path: Path, dtype: str, version: int, form: dict[str, Any]) -> None:
    source, target = tmp_path / "a.zarr", tmp_path / "b.zarr"
    expected = _store(source, version, dtype)
    result = tamis.repack(source, target, {}, **form)
    array, before = _same_texts(target, expected), zarr.open_group(source, mode="r")["u"]
    assert tamis.verify(source, target).ok
    assert (array.dtype, array.chunks) == (before.dtype, (10,))
    assert array.shards == ((20,) if "shards" in form else None)
    lost = [note for note in result.notes if "fill value" in note]
    if array.metadata.zarr_format < version:
        assert (array.fill_value, lost) == (None, [next(iter(lost))])
        assert lost[0].startswith("/u: its fill value 'none' is left out")
    else:
        assert (array.fill_value, lost) == ("none", [])
        assert array.nchunks_initialized == 2


@pytest.mark.parametrize("byte_order", "<>")
@pytest.mark.parametrize(("version", "other"), [(2, 3), (3, 2), (3, 3)])
def test_characters_of_both_byte_orders(tmp_path: Path, byte_order: str, version: int, other: Any) -> None:
    source, target = tmp_path / "a.zarr", tmp_path / "b.zarr"
    expected = _store(source, version, f"{byte_order}U6")
    tamis.repack(source, target, {}, zarr_format=other, shards=4 if other == 3 else None)
    assert _same_texts(target, expected).dtype.newbyteorder("=") == np.dtype("U6")
    tamis.repack(target, tmp_path / "c.nc", {})
    assert tamis.verify(source, tmp_path / "c.nc").ok


@pytest.mark.parametrize("dtype", ["<U6", "str"])
@pytest.mark.parametrize(("version", "other"), [(2, 3), (3, 2)])
def test_filters_of_both_versions_are_kept(tmp_path: Path, dtype: str, version: int, other: Any) -> None:
    source, target = tmp_path / "a.zarr", tmp_path / "b.zarr"
    filters = {2: numcodecs.Zlib(level=7), 3: zarr.codecs.numcodecs.Zlib(level=7)}[version]
    expected = _store(source, version, dtype, compressors=filters)
    result = tamis.repack(source, target, {}, zarr_format=other)
    compressor = _same_texts(target, expected).compressors[0]
    text = str(compressor if other == 2 else compressor.to_dict()).lower()
    assert "zlib" in text
    assert "7" in text
    assert not [note for note in result.notes if "became" in note]


@pytest.mark.parametrize("dtype", ["<U6", "str"])
def test_filters_that_the_version_lacks_are_named(tmp_path: Path, dtype: str) -> None:
    source, target = tmp_path / "a.zarr", tmp_path / "b.zarr"
    expected = _store(source, 2, dtype, compressors=numcodecs.LZMA())
    result = tamis.repack(source, target, {}, zarr_format=3)
    _same_texts(target, expected)
    assert [note for note in result.notes if note.startswith("/u: lzma") and "became" in note]


def test_a_resharded_array_keeps_what_its_metadata_have(tmp_path: Path) -> None:
    source, target = tmp_path / "a.zarr", tmp_path / "b.zarr"
    expected = _store(source, 3, "str", dimension_names=["x"], attributes={"a": [1.5]})
    document = source / "u/zarr.json"
    content = json.loads(document.read_text()) | {"own": {"must_understand": False, "name": "of another program"}}
    document.write_text(json.dumps(content))
    tamis.repack(source, target, {}, shards=4)
    new = json.loads((target / "u/zarr.json").read_text())
    changed = {name for name in new if new[name] != content.get(name)}
    assert changed <= {"chunk_grid", "codecs", "chunk_key_encoding"}
    with tamis.open(target) as file:
        assert [str(text) for text in file["u"][:]] == expected


@pytest.mark.parametrize("dtype", ["<U6", "str"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
@pytest.mark.parametrize("form", FORMS)
def test_texts_of_any_shape(tmp_path: Path, dtype: str, shape: tuple[int, ...], form: dict[str, Any]) -> None:
    source, target = tmp_path / "a.zarr", tmp_path / "b.zarr"
    group = zarr.open_group(source, mode="w", zarr_format=3)
    array = group.create_array("u", shape=shape, dtype=dtype, fill_value="f")
    if not shape:
        array[...] = "abc"
    tamis.repack(source, target, {}, **form)
    found = zarr.open_group(target, mode="r")["u"]
    assert found.shape == shape
    assert found.dtype == array.dtype
    assert tamis.verify(source, target).ok
    assert shape or str(found[()]) == "abc"


def test_fill_values_of_big_endian_complex_numbers(tmp_path: Path) -> None:
    source, target = tmp_path / "a.zarr", tmp_path / "b.zarr"
    array = zarr.open_group(source, mode="w", zarr_format=2).create_array(
        "u", shape=(8,), chunks=(4,), dtype=">c16", fill_value=1 + 2j
    )
    array[:2] = 3
    tamis.repack(source, target, {})
    assert zarr.open_group(target, mode="r")["u"][:].tolist() == array[:].tolist()


@pytest.mark.parametrize("dtype", ["<U6", "str"])
def test_filters_for_texts_are_refused_in_words_of_zarr(tmp_path: Path, dtype: str) -> None:
    _store(tmp_path / "a.zarr", 3, dtype)
    with pytest.raises(tamis.ParameterError, match="tamis chooses no filters for texts of Zarr"):
        tamis.repack(tmp_path / "a.zarr", tmp_path / "b.zarr", {"u": "shuffle|deflate(4)"})
