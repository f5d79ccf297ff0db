"""What repack refuses, with its words; what a pattern keeps; which recipe and chunk shape holds."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t

import tamis
from tamis import FileError, ParameterError

FIELD = np.sin(np.arange(3 * 4 * 5 * 6 * 7) / 9)


@pytest.fixture(scope="session")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with one dataset of each kind that something may refuse."""
    path = tmp_path_factory.mktemp("odd") / "odd.h5"
    with h5py.File(path, "w") as file:
        file["float"], file["double"] = FIELD[:400].reshape(20, 20).astype("f4"), FIELD[:400].reshape(20, 20)
        file["scalar"], file["null"], file["empty"] = 1.5, h5py.Empty("f4"), np.zeros((0,), "f4")
        file.create_dataset("growing", (0, 8), "f4", maxshape=(None, 8), chunks=(4, 8))
        file["one"] = np.ones((1, 1, 1, 1, 1))
        file.create_dataset("five", data=FIELD.reshape(3, 4, 5, 6, 7), chunks=(3, 4, 5, 6, 7))
        file["five_contiguous"] = FIELD.reshape(3, 4, 5, 6, 7)
        file["compound"] = np.zeros(4, [("a", "f4"), ("b", "i4")])
        file["text"], file["texts"] = np.array([b"ab", b"c"]), ["a", "b"]
        file.create_dataset("ragged", (3,), h5py.vlen_dtype("f4"))
        file.create_dataset("enum", data=[0, 1], dtype=h5py.enum_dtype({"A": 0, "B": 1}, basetype="i1"))
        file["bool"], file["complex"] = np.array([True, False] * 8), np.arange(16).astype("c8")
        file.create_dataset("reference", data=np.array([file.ref] * 3, dtype=h5py.ref_dtype))
        for dtype in ("f2", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"):
            file[dtype] = np.arange(100).astype(dtype)
    return path


NO_NUMBERS = "expected numbers, got values of the type {}: use filters of bytes, such as shuffle and deflate"
NO_SIZE = "expected values of a fixed size, got {}: HDF5 stores such values elsewhere in the file, where filters do not"
REFUSED = {
    "scalar": "expected an array, got a scalar, which HDF5 cannot filter",
    "null": "expected an array, got a null dataspace, which has no values",
    "empty": r"expected an array that has values, or may grow, got shape \(0,\), which HDF5 cannot divide into chunks",
    "one": r"expected a chunk of more than one value, got \(1, 1, 1, 1, 1\): use chunks of .* axis \(-c\)",
    "five": r"expected a chunk with 1 to 4 axes longer than 1, got \(3, 4, 5, 6, 7\) with 5: use \(1, 4, 5, 6, 7\)",
    **{name: NO_NUMBERS.format(name) for name in ("compound", "bool")},
    **{
        name: NO_NUMBERS.format(dtype)
        for name, dtype in (("text", "string"), ("enum", "enum of int8 .*"), ("complex", "complex64"))
    },
    "texts": NO_SIZE.format("string"),
    "ragged": NO_SIZE.format("variable-length"),
    "reference": NO_SIZE.format("reference"),
    **{
        name: f"expected int32, int64, float32 or float64 values, got {dtype}: convert them, or use a lossless filter"
        for name, dtype in {"f2": "float16", "i1": "int8", "u1": "uint8", "i2": "int16", "u2": "uint16"}.items()
    },
    **{
        name: f"expected an accuracy of 1 or more for {dtype}, got accuracy=0.1: .*; use reversible=True"
        for name, dtype in {"i4": "int32", "i8": "int64"}.items()
    },
    **{
        name: f"expected signed integers or floats in a lossy mode, got {dtype} with accuracy=0.1: .*reversible=True"
        for name, dtype in {"u4": "uint32", "u8": "uint64"}.items()
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_repack_named_dataset_that_cannot_take_zfp_refused(name: str, odd: Path, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=f"^/{name}: {REFUSED[name]}"):
        tamis.repack(odd, tmp_path / "b.h5", {name: "zfp(accuracy=0.1)"})
    assert os.listdir(tmp_path) == []


@pytest.mark.matrix
@pytest.mark.parametrize("filters", ["pack(0.1)|shuffle|deflate(1)", "absolute(0.1)|deflate(1)", "shuffle|deflate(1)"])
@pytest.mark.parametrize("target", ["b.h5", "b.zarr"])
def test_repack_any_dataset_by_name_is_done_or_refused_in_words(
    filters: str, target: str, odd: Path, tmp_path: Path
) -> None:
    with h5py.File(odd) as file:
        names = [name for name in file if name != "null"]
    for name in names:
        others = [other for other in ("null", *names) if other != name]
        try:
            tamis.repack(odd, tmp_path / target, {name: filters}, drop=others, overwrite=True)
        except tamis.TamisError as error:
            refused = str(error)
        else:
            refused = ""
            assert tamis.verify(odd, tmp_path / target, bounds={"*": "recorded"}, drop=others).ok
        assert not refused or f"/{name}: " in refused
    with pytest.raises(ParameterError, match=r"^/null: expected an array, got a null dataspace"):
        tamis.repack(odd, tmp_path / "c.h5", {"null": filters})


def test_repack_pattern_keeps_what_cannot_take_zfp_and_lists_why(odd: Path, tmp_path: Path) -> None:
    result = tamis.repack(odd, tmp_path / "b.h5", {"*": "zfp(accuracy=0.1)"}, min_size=0, larger=True)
    assert [each.path for each in result.datasets] == ["/double", "/five_contiguous", "/float", "/growing"]
    assert {path for path, _ in result.kept} == {f"/{name}" for name in REFUSED}
    with h5py.File(odd) as old, h5py.File(tmp_path / "b.h5") as new:
        assert list(old) == list(new)
        for name in REFUSED:
            assert old[name].id.get_create_plist().get_nfilters() == new[name].id.get_create_plist().get_nfilters()
            assert old[name].dtype == new[name].dtype
            if name not in ("null", "ragged", "reference"):
                assert np.array_equal(old[name][()], new[name][()])


def test_repack_contiguous_data_of_many_axes_gets_chunks_that_zfp_takes(odd: Path, tmp_path: Path) -> None:
    tamis.repack(odd, tmp_path / "b.h5", {"five_contiguous": "zfp(accuracy=0.01)"})
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["five_contiguous"].chunks == (1, 4, 5, 6, 7)
        assert np.abs(file["five_contiguous"][()] - FIELD.reshape(3, 4, 5, 6, 7)).max() <= 0.01


def test_repack_empty_dataset_that_can_grow_takes_zfp_later(odd: Path, tmp_path: Path) -> None:
    (found,) = tamis.repack(odd, tmp_path / "b.h5", {"growing": "zfp(accuracy=0.1)"}).datasets
    assert (found.chunks, found.largest_error) == (0, 0.0)
    with h5py.File(tmp_path / "b.h5", "a") as file:
        file["growing"].resize((4, 8))
        file["growing"][...] = FIELD[:32].reshape(4, 8)
        assert file["growing"].id.get_chunk_info(0).size < 128
        assert np.abs(file["growing"][()] - FIELD[:32].reshape(4, 8)).max() <= 0.1


@pytest.mark.parametrize(
    ("recipes", "text"),
    [
        ({"TS": "zfp"}, "expected exactly one ZFP mode, got none"),
        ({"TS": "zfp(rate=8,accuracy=1)"}, "expected exactly one ZFP mode, got rate and accuracy"),
        ({"TS": "zfp(accuracy=0)"}, "expected an accuracy above 0, got accuracy=0: use reversible=True"),
        ({"TS": "zfp(accuracy=-1)"}, "expected a finite accuracy above 0, got accuracy=-1"),
        ({"TS": "zfp(precision=65)"}, "expected a precision of 1 to 64 bit planes, got precision=65"),
        ({"TS": "zfp(rate=0)"}, "expected a finite rate above 0 bits per value, got rate=0"),
        ({"TS": "zfp(maxbits=3)"}, "/TS: expected maxbits of at least 9 for float32, got minbits=1, maxbits=3"),
        ({"TS": "shuffle|zfp(rate=8)"}, "expected zfp first in a pipeline, got shuffle before it"),
        ({"TS": "zip"}, r"expected a filter .* at position 1, got 'zip'"),
        ({"TS": ""}, r"expected a filter \(.*\) at position 1, got the end"),
        ({"TS": "deflate(10)"}, "expected level of 0 to 9, got level=10"),
        ({"TS": "|".join(["deflate"] * 40)}, "expected .*filter"),
        ({"TS": "shuffle|shuffle"}, "expected .*shuffle"),
        ({"TS": 5}, "expected .*5"),
        ({"TS": None}, "expected .*None"),
        ("TS:zfp(rate=8)", "expected .*recipe"),
        (tamis.Zfp(rate=8), "expected "),
    ],
    ids=lambda value: str(value)[:40],
)
def test_repack_recipe_that_cannot_be_refused(recipes: Any, text: str, sample: Path, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=text):
        tamis.repack(sample, tmp_path / "b.nc", recipes)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((4,), r"/TS: expected chunks with 3 axes, got \(4,\)"),
        ((), r"/TS: expected chunks with 3 axes, got \(\)"),
        ((1, 193, 288), r"/TS: expected chunks within the shape \(30, 192, 288\), got \(1, 193, 288\)"),
        ((1, 1, 1), r"/TS: expected a chunk of more than one value, got \(1, 1, 1\)"),
        ((65537, 4, 4), r"/TS: expected extents of at most 65536 with 3 axes, .*, got shape \(65537, 4, 4\)"),
        ((0, 96, 144), r"expected .*\(0, 96, 144\)"),
        ((-1, 96, 144), r"expected .*\(-1, 96, 144\)"),
        ((4.5, 96, 144), r"expected .*\(4.5, 96, 144\)"),
        (4, "expected chunks with 3 axes, got 4|expected a chunk shape"),
        (True, "expected chunks with 3 axes, got True|expected a chunk shape"),
    ],
    ids=str,
)
def test_repack_chunk_shape_that_cannot_be_refused(shape: Any, text: str, sample: Path, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=text):
        tamis.repack(sample, tmp_path / "b.nc", {"TS": "zfp(accuracy=0.1)"}, chunks={"TS": shape})
    assert os.listdir(tmp_path) == []


def test_repack_chunk_beyond_what_hdf5_can_hold_refused(sample: Path, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="/TS: expected "):
        tamis.repack(sample, tmp_path / "b.nc", {"TS": "deflate"}, chunks={"TS": (1 << 48, 1, 4)})
    assert os.listdir(tmp_path) == []


@pytest.mark.matrix
@pytest.mark.parametrize("shape", [(4, 96, 144), (7, 50, 287), (30, 192, 288), (1, 1, 288), [4, 96, 144]], ids=str)
def test_repack_new_chunk_shape_is_stored_within_the_bound(
    shape: tuple[int, ...], sample: Path, tmp_path: Path
) -> None:
    (found,) = tamis.repack(sample, tmp_path / "b.nc", {"TS": "zfp(accuracy=0.1)"}, chunks={"TS": shape}).datasets
    with h5py.File(sample) as old, h5py.File(tmp_path / "b.nc") as new:
        assert new["TS"].chunks == tuple(shape)
        assert new["TS"].id.get_num_chunks() == found.chunks
        assert np.abs(old["TS"][()].astype("f8") - new["TS"][()].astype("f8")).max() == found.largest_error <= 0.1


def test_repack_chunks_for_unknown_name_refused(sample: Path, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="expected a dataset named 'XX', found only /TS, /lat"):
        tamis.repack(sample, tmp_path / "b.nc", {"TS": "deflate"}, chunks={"XX": (10,)})


@pytest.mark.parametrize(
    ("recipes", "taken"),
    [
        ({"TS": "deflate(9)", "*": "shuffle"}, {"/TS": "deflate(9)", "/lat": "shuffle"}),
        ({"T*": "deflate(9)", "*S": "shuffle"}, {"/TS": "deflate(9)"}),
        # What the first cannot take, the second may.
        ({"*": "zfp(reversible=true)", "t*": "deflate(9)"}, {"/time": "deflate(9)"}),
    ],
    ids=str,
)
def test_repack_of_several_recipes_the_first_that_fits_holds(
    recipes: Mapping[str, str], taken: dict[str, str], sample: Path, tmp_path: Path
) -> None:
    result = tamis.repack(sample, tmp_path / "b.nc", recipes, checksum=False, min_size=0, larger=True)
    found = {each.path: each.pipeline for each in result.datasets}
    assert found.items() >= taken.items()
    assert not found.keys() & {path for path, _ in result.kept}


def test_repack_chunk_shape_survives_a_recipe_that_does_not_fit(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["v"] = np.arange(400, dtype="u1").reshape(20, 20)
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"*": "zfp(rate=8)", "v*": "deflate"}, chunks={"v": (5, 5)})
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["v"].chunks == (5, 5)


def test_repack_dataset_in_nested_group_by_path_or_pattern(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for path in ("g/h/deep", "g/flat", "ünï:c (x)"):
            file[path] = FIELD[:100].reshape(10, 10)
    for name, found in [
        ("g/h/deep", ["/g/h/deep"]),
        ("/g/*", ["/g/flat", "/g/h/deep"]),
        ("ünï:c (x)", ["/ünï:c (x)"]),
    ]:
        result = tamis.repack(
            tmp_path / "a.h5", tmp_path / "b.h5", {name: "zfp(rate=8)"}, overwrite=True, min_size=0, larger=True
        )
        assert [each.path for each in result.datasets] == found


Make = Callable[[], Any]


def _narrow() -> Any:
    made = h5t.STD_I16LE.copy()
    made.set_precision(12)
    made.set_offset(4)
    return made


def _three_bytes() -> Any:
    made = h5t.STD_I32LE.copy()
    made.set_precision(24)
    made.set_size(3)
    return made


def _bfloat16() -> Any:
    made = h5t.IEEE_F32LE.copy()
    made.set_fields(15, 7, 8, 0, 7)
    made.set_precision(16)
    made.set_size(2)
    made.set_ebias(127)
    return made


@pytest.mark.parametrize("kind", [_narrow, _three_bytes, _bfloat16], ids=lambda kind: kind.__name__)
def test_repack_number_that_numpy_stores_otherwise_is_bytes(kind: Make, tmp_path: Path) -> None:
    """Bytes of numpy's type are no chunk of such a dataset; it is a matter of the type, and known before writing."""
    recipe = "zfp(reversible=true)"
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = h5d.create(file.id, b"v", kind(), h5s.create_simple((16,)), h5p.create(h5p.DATASET_CREATE))
        made.write(h5s.ALL, h5s.ALL, np.arange(16, dtype="i4"), h5t.NATIVE_INT32)
        file["w"] = FIELD[:16]
    result = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"*": recipe}, min_size=0, larger=True)
    assert [each.path for each in result.datasets] == ["/w"]
    assert [path for path, _ in result.kept] == ["/v"]
    with pytest.raises(ParameterError, match=r"^/v: expected "):
        tamis.repack(tmp_path / "a.h5", tmp_path / "c.h5", {"v": recipe})
    tamis.repack(tmp_path / "a.h5", tmp_path / "c.h5", {"v": "shuffle|deflate(4)"})
    with h5py.File(tmp_path / "a.h5") as old, h5py.File(tmp_path / "c.h5") as new:
        assert new["v"].id.get_type().equal(old["v"].id.get_type())
        assert new["v"].compression == "gzip"
        read = [np.zeros(16, "i4"), np.zeros(16, "i4")]
        for each, values in zip((old, new), read, strict=True):
            each["v"].id.read(h5s.ALL, h5s.ALL, values, h5t.NATIVE_INT32)
        assert np.array_equal(*read)


def test_repack_pattern_with_undecodable_name_in_file_filters_the_others(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        h5d.create(file.id, b"lat\xff", h5t.NATIVE_FLOAT, h5s.create_simple((20,)))
        file["w"] = FIELD[:16]
    result = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"*": "zfp(rate=16)"}, min_size=0, larger=True)
    assert "/w" in [each.path for each in result.datasets]


def _exists(folder: Path, source: Path) -> tuple[Path, Path]:
    shutil.copy(source, folder / "there.nc")
    return source, folder / "there.nc"


def _itself(folder: Path, source: Path) -> tuple[Path, Path]:
    shutil.copy(source, folder / "a.nc")
    return folder / "a.nc", folder / "a.nc"


def _linked(folder: Path, source: Path) -> tuple[Path, Path]:
    shutil.copy(source, folder / "a.nc")
    (folder / "link.nc").symlink_to("a.nc")
    return folder / "a.nc", folder / "link.nc"


def _hard_linked(folder: Path, source: Path) -> tuple[Path, Path]:
    shutil.copy(source, folder / "a.nc")
    (folder / "link.nc").hardlink_to(folder / "a.nc")
    return folder / "link.nc", folder / "a.nc"


def _folder(folder: Path, source: Path) -> tuple[Path, Path]:
    (folder / "sub").mkdir()
    return source, folder / "sub"


def _below_file(folder: Path, source: Path) -> tuple[Path, Path]:
    (folder / "file").write_bytes(b"x")
    return source, folder / "file" / "b.nc"


def _no_source(folder: Path, source: Path) -> tuple[Path, Path]:
    (folder / "old.nc").write_bytes(b"old")
    return folder / "none.nc", folder / "old.nc"


SAME = "is the source itself"
PLACES = [
    (_exists, False, "there.nc: File exists: choose another name, or replace it"),
    (_itself, True, f"a.nc: {SAME}"),
    (_linked, True, f"link.nc: {SAME}"),
    (_hard_linked, True, f"a.nc: {SAME}"),
    (_itself, False, f"a.nc: {SAME}"),
    (_folder, False, "sub: "),
    (_folder, True, "sub: expected .*folder"),
    (_below_file, False, "b.nc: there is no folder "),
    (_no_source, False, "none.nc: No such file or directory"),
    (_no_source, True, "none.nc: No such file or directory"),
    (lambda folder, source: (source, folder / "missing" / "b.nc"), False, "there is no folder"),
    (lambda folder, source: (source, Path()), True, "expected .*folder"),
    (lambda folder, source: (source, folder / ("n" * 300)), False, "[Nn]ame too long"),
    (lambda folder, source: (folder / ("n" * 300), folder / "b.nc"), False, "[Nn]ame too long"),
]


@pytest.mark.parametrize(("places", "overwrite", "text"), PLACES)
def test_repack_place_that_cannot_be_refused_and_nothing_touched(
    places: Callable[[Path, Path], tuple[Path, Path]], overwrite: bool, text: str, sample: Path, tmp_path: Path
) -> None:
    source, target = places(tmp_path, sample)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(FileError, match=text):
        tamis.repack(source, target, {"TS": "zfp(rate=8)"}, overwrite=overwrite)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_repack_target_name_as_long_as_the_file_system_takes_written(sample: Path, tmp_path: Path) -> None:
    target = tmp_path / ("n" * 252 + ".nc")
    tamis.repack(sample, target, {"TS": "zfp(rate=8)"})
    assert os.listdir(tmp_path) == [target.name]


def test_target_that_exists_is_refused_before_values_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = tmp_path / "a.h5", tmp_path / "b.h5"
    with h5py.File(source, "w") as file:
        file["v"] = np.linspace(0, 1, 9000)
    target.write_text("mine")

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("read")

    monkeypatch.setattr("tamis.jobs.repack.survey.ReadSurvey.packing_range", fail)
    with pytest.raises(tamis.FileError, match=r"b\.h5: File exists: choose another name"):
        tamis.repack(source, target, {"v": "pack(bound=0.1)"})
    assert target.read_text() == "mine"
