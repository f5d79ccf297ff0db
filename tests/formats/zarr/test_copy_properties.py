"""Copies of Zarr stores of any kind have their documents, files and values; ways through HDF5 keep kinds of JSON."""

from __future__ import annotations

import json
import math
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from zarr.storage import LocalStore
from zarr.testing.strategies import arrays

import tamis

pytestmark = pytest.mark.properties

EXAMPLES = settings(
    max_examples=int(os.environ.get("PROPERTY_EXAMPLES", "25")), suppress_health_check=[*HealthCheck]
)  # each takes a tenth of a second or more

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
NUMBERS = st.one_of(
    st.integers(-(1 << 70), 1 << 70),
    st.sampled_from([1 << 63, (1 << 64) - 1, 1 << 64, -(1 << 63) - 1, 0, 1]),
    st.floats(),
    st.sampled_from([0.0, -0.0, 1.0, 1e5, 1e300, 1e-320]),
)
LEAVES = st.one_of(st.none(), st.booleans(), TEXTS, NUMBERS)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3))
NAMES = TEXTS.filter(lambda name: name and not name.startswith(("_", ".")) and "/" not in name)
ATTRIBUTES = st.dictionaries(NAMES, VALUES, max_size=4)
LITERALS = st.sampled_from(
    ["1e5", "1E+2", "1.0", "-0.0", "1.50", "9007199254740993", "1e400", "0.1000", "-1e-5", "NaN"]
)
"""Numbers as programs write them: Python would print some of them otherwise."""


def same(one: Any, other: Any) -> bool:
    """Compare values of JSON, each of its kind."""
    if isinstance(one, dict) and isinstance(other, dict):
        return [*one] == [*other] and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or (
            one == other and math.copysign(1, one) == math.copysign(1, other)
        )
    return type(one) is type(other) and bool(one == other)


def documents(root: Path) -> dict[str, Any]:
    """Return the documents of a store, numbers as texts, without consolidated metadata."""
    found = {}
    for path in root.rglob("*"):
        if path.name in ("zarr.json", ".zarray", ".zgroup", ".zattrs") and path.is_file():
            content = json.loads(path.read_bytes(), parse_float=lambda text: f"float {text}", parse_constant=str)
            content.pop("consolidated_metadata", None)
            found[path.relative_to(root).as_posix()] = content
    return found


def chunk_files(root: Path) -> dict[str, bytes]:
    names = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")
    files = (path for path in root.rglob("*") if path.is_file() and path.name not in names)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def values_of(array: Any) -> np.ndarray[Any, Any]:
    return np.asarray(array[...])


def written(data: st.DataObject, root: Path, zarr_format: Literal[2, 3]) -> Any:
    """Write a store with an array of zarr-python's own strategy, and attributes of all kinds; return the array."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array = data.draw(arrays(stores=st.just(LocalStore(root)), zarr_formats=st.just(zarr_format), attrs=ATTRIBUTES))
        group = zarr.open_group(root, mode="a")
        group.attrs.update(data.draw(ATTRIBUTES))
    return array


def check_copy(data: st.DataObject, zarr_format: Literal[2, 3]) -> None:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source, target = Path(folder, "a.zarr"), Path(folder, "b.zarr")
        array = written(data, source, zarr_format)
        tamis.repack(source, target, {}, zarr_format=zarr_format, history=False)
        before, after = documents(source), documents(target)
        different = {name: (content, after.get(name)) for name, content in before.items() if after.get(name) != content}
        assert not different, different
        assert [[*after[name]] for name in before] == [[*content] for content in before.values()]  # the same order
        assert chunk_files(source) == chunk_files(target)
        copy = zarr.open_array(target, path=array.path, mode="r", zarr_format=zarr_format)
        np.testing.assert_array_equal(values_of(copy), values_of(array))
        assert tamis.verify(source, target).ok


@pytest.mark.matrix
@pytest.mark.parametrize("zarr_format", [2, 3])
@EXAMPLES
@given(data=st.data())
def test_copy_of_a_store_has_its_documents_and_files(zarr_format: Literal[2, 3], data: st.DataObject) -> None:
    check_copy(data, zarr_format)


def check_rewritten(attributes: dict[str, Any], literal: str, zarr_format: Literal[2, 3]) -> None:
    """Give an array other filters; everything but the chunks stays in its document."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "a.zarr"), Path(folder, "b.zarr")
        group = zarr.open_group(source, mode="w", zarr_format=zarr_format, attributes=attributes)
        array = group.create_array("x", shape=(8, 8), chunks=(4, 4), dtype="f4", fill_value=7, attributes=attributes)
        array[:4] = np.arange(32, dtype="f4").reshape(4, 8)
        names = {2: ("x/.zarray", "x/.zattrs"), 3: ("x/zarr.json", "x/zarr.json")}[zarr_format]
        for name in {*names}:
            content = json.loads((source / name).read_bytes())
            inner = content["attributes"] if name.endswith("zarr.json") else content
            inner["literal"] = "LITERAL"
            content["of another program"] = {"b": "LITERAL", "a": [True, None]}
            text = json.dumps(content).replace('"LITERAL"', literal)
            (source / name).write_text(text, encoding="utf-8")
        if zarr_format == 3:  # a member that readers may ignore
            path = source / "x/zarr.json"
            path.write_text(path.read_text().replace('"of another program": {', '"other": {"must_understand": false, '))
        before = documents(source)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tamis.repack(
                source, target, {"x": "shuffle|deflate(1)"}, zarr_format=zarr_format, history=False, larger=True
            )
        after = documents(target)
        changed = {"compressor", "filters", "codecs", "chunk_grid", "chunk_key_encoding"}
        for name, content in before.items():
            assert [*after[name]] == [*content]
            assert {key: value for key, value in after[name].items() if key not in changed} == {
                key: value for key, value in content.items() if key not in changed
            }


@pytest.mark.matrix
@pytest.mark.parametrize("zarr_format", [2, 3])
@EXAMPLES
@given(attributes=ATTRIBUTES, literal=LITERALS)
def test_rewritten_array_keeps_the_rest_of_its_document(
    zarr_format: Literal[2, 3], attributes: dict[str, Any], literal: str
) -> None:
    check_rewritten(attributes, literal, zarr_format)


def as_numbers(value: Any) -> Any:
    """Return a value as HDF5 gives it back: a list of whole and other numbers has numbers of one type."""
    is_mixed = isinstance(value, list) and {type(item) for item in value} == {int, float}
    if is_mixed and all(isinstance(item, float) or float(item) == item for item in value):
        return [float(item) for item in value]
    return value


def check_ways(attributes: dict[str, Any], first: Literal[2, 3], second: Literal[2, 3]) -> None:
    """Send attributes from one version of Zarr to the other, and to HDF5 and back."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source, direct, file, back = (Path(folder, name) for name in ("a.zarr", "b.zarr", "c.h5", "d.zarr"))
        group = zarr.open_group(source, mode="w", zarr_format=first, attributes=attributes)
        array = group.create_array("x", shape=(3,), dtype="i2", attributes=attributes, fill_value=0)
        array[:] = 1
        tamis.repack(source, direct, {}, zarr_format=second, history=False)
        tamis.repack(source, file, {}, history=False)
        tamis.repack(file, back, {}, zarr_format=second, history=False)
        for target in (direct, file, back):
            assert tamis.verify(source, target).ok
        with tamis.open(source) as opened:
            for owner in (opened, opened["x"]):
                assert same({name: value for name, value in owner.attrs.items() if name in attributes}, attributes)
        for target, change in ((direct, lambda value: value), (back, as_numbers)):
            copy = zarr.open_group(target, mode="r", use_consolidated=False)
            expected = {name: change(value) for name, value in attributes.items()}
            for owner in (copy, copy["x"]):
                assert same({name: owner.attrs[name] for name in expected}, expected)


@pytest.mark.matrix
@pytest.mark.parametrize("first", [2, 3])
@pytest.mark.parametrize("second", [2, 3])
@EXAMPLES
@example(attributes={"n": [0, 1 << 63], "m": [-1, 1 << 63], "i": [(1 << 53) + 1, 1 << 64]})
@given(attributes=ATTRIBUTES)
def test_attributes_of_all_kinds_survive_the_other_version_and_hdf5(
    first: Literal[2, 3], second: Literal[2, 3], attributes: dict[str, Any]
) -> None:
    check_ways(attributes, first, second)
