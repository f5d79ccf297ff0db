"""Missing values put back by `tamis.open`, and companions that are damaged, gone or in the way."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis
from tamis import FileError, ParameterError

Make = Callable[..., Any]

FILL = np.float32(9.96921e36)
RECIPE = {"TS": "zfp(accuracy=0.1)|shuffle|deflate(4)"}


@pytest.fixture(scope="module")
def ocean(make_ocean: Make, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """Source values, and the file with the companion."""
    folder = tmp_path_factory.mktemp("ocean")
    values = make_ocean(folder / "a.nc")
    tamis.repack(folder / "a.nc", folder / "b.nc", RECIPE, chunks={"TS": (10, 32, 48)}, missing="mask")
    return values, folder / "b.nc"


@pytest.fixture
def copy(ocean: tuple[Any, Path], tmp_path: Path) -> Path:
    return Path(shutil.copy(ocean[1], tmp_path / "copy.nc"))


def missing(values: Any) -> Any:
    return (values == FILL) | ~np.isfinite(values)


def bits(values: Any) -> Any:
    return np.asarray(values, "f4").view("u4")


def is_restored(found: Any, values: Any) -> bool:
    gaps = missing(values)
    with np.errstate(invalid="ignore"):
        near = np.abs(found - values)[~gaps].max(initial=0) <= 0.1
    return bool(near) and np.array_equal(bits(found)[gaps], bits(values)[gaps])


@pytest.mark.parametrize(
    "key",
    [
        ...,
        3,
        (slice(None), 60),
        (4, 60, 70),
        (3, 5, 6),
        (slice(2, 29, 3), slice(7), [1, 5, 100, 287]),
        (slice(None), [True, False] * 96),
        (slice(0, 0),),
    ],
)
def test_open_restores_any_selection(key: Any, ocean: tuple[Any, Path]) -> None:
    values, path = ocean
    with tamis.open(path, threads=2) as file:
        found = file["TS"][key]
        expected = (
            values[tuple(np.asarray(each) if isinstance(each, list) else each for each in key)]
            if isinstance(key, tuple)
            else values[key]
        )
        assert np.shape(found) == np.shape(expected)
        assert type(found) is type(expected)
        assert is_restored(np.atleast_1d(found), np.atleast_1d(expected))


def test_open_restores_by_a_mask_of_the_whole_shape(ocean: tuple[Any, Path]) -> None:
    values, path = ocean
    with tamis.open(path) as file:
        for mask in (missing(values), ~missing(values), np.random.default_rng(0).random(values.shape) < 0.01):
            assert is_restored(file["TS"][mask], values[mask])


@pytest.mark.parametrize(("dtype", "order"), [("f4", "C"), ("f4", "F"), ("f8", "C"), (">f4", "C")])
def test_open_restores_into_out(dtype: str, order: Any, ocean: tuple[Any, Path]) -> None:
    values, path = ocean
    with tamis.open(path) as file:
        out = np.empty(values.shape, dtype, order=order)
        assert file["TS"].read(out) is out
        assert np.array_equal(np.isnan(out), np.isnan(values))
        assert is_restored(out.astype("f4"), values)


def test_open_restores_across_pickle_threads_dask_and_xarray(ocean: tuple[Any, Path]) -> None:
    values, path = ocean
    with tamis.open(path) as file:
        array = file["TS"]
        assert is_restored(pickle.loads(pickle.dumps(array))[5], values[5])
        with ThreadPoolExecutor(4) as pool:
            for i, each in enumerate(pool.map(lambda i: array[i], range(30))):
                assert is_restored(each, values[i])
        dask = pytest.importorskip("dask.array")
        assert is_restored(dask.from_array(array, chunks=array.chunks)[3:7].compute(), values[3:7])


def test_open_without_restoring_gives_what_others_see(ocean: tuple[Any, Path]) -> None:
    values, path = ocean
    gaps = missing(values)
    with tamis.open(path) as file, tamis.open(path, restore=False) as raw:
        assert file["TS"][0, 100, 100] != raw["TS"][0, 100, 100] or not gaps[0, 100, 100]
        found = raw["TS"][:]
        assert np.isfinite(found).all()
        assert found.max() < 1e6
        assert np.array_equal(pickle.loads(pickle.dumps(raw["TS"]))[:], found)
        assert raw["TS"].__dask_tokenize__() != file["TS"].__dask_tokenize__()


def test_open_attributes_name_no_companion_where_values_stand_for_themselves(
    ocean: tuple[Any, Path], tmp_path: Path
) -> None:
    """Written elsewhere with their attributes, they are whole."""
    values, path = ocean
    with tamis.open(path) as file, tamis.open(path, restore=False) as raw, h5py.File(tmp_path / "c.h5", "w") as target:
        assert raw["TS"].attrs["missing_companion"] == b"/TS_missing"
        assert file["TS"].attrs["ancillary_variables"] == "TS_quality"
        attributes = {name: file["TS"].attrs[name] for name in file["TS"].attrs if name.islower()}
        tamis.hdf5.write(target, "TS", file["TS"], filters="deflate", chunks=(10, 32, 48), attrs=attributes)
    with tamis.open(tmp_path / "c.h5") as file:
        assert is_restored(file["TS"][:], values)


def test_open_restores_blocks_of_a_fixed_rate(make_ocean: Make, tmp_path: Path) -> None:
    """Of which only those are decoded that a selection touches."""
    values = make_ocean(tmp_path / "a.nc")
    recipes = {"TS": "zfp(rate=16)"}
    tamis.repack(
        tmp_path / "a.nc", tmp_path / "b.nc", recipes, chunks={"TS": (12, 64, 64)}, checksum=False, missing="mask"
    )
    with tamis.open(tmp_path / "b.nc") as file:
        whole = file["TS"][:]
        assert np.array_equal(bits(whole)[missing(values)], bits(values)[missing(values)])
        for key in ((3, 5), (slice(1, 2), 60, slice(55, 95)), (7, 100, 200)):
            assert np.array_equal(bits(file["TS"][key]), bits(whole[key]))


@pytest.mark.parametrize("options", [{"chunks": (7, 50, 100)}, {}])
def test_open_restores_from_a_companion_stored_otherwise(options: Any, ocean: tuple[Any, Path], copy: Path) -> None:
    """Other programs keep names and values, and store them as they like."""
    values, _ = ocean
    with h5py.File(copy, "r+") as file:
        flags, attributes = file["TS_missing"][()], dict(file["TS_missing"].attrs)
        del file["TS_missing"]
        made = file.create_dataset("TS_missing", data=flags, **options)
        made.attrs["flag_missing_values"] = attributes["flag_missing_values"]
        file["TS"].attrs["missing_companion"] = "/TS_missing"  # of variable length, as others write text
    with tamis.open(copy) as file:
        assert is_restored(file["TS"][:], values)
        assert is_restored(file["TS"][::3, 5], values[::3, 5])
        assert is_restored(file["TS"].read(), values)
    assert not tamis.verify(copy, copy).problems


def test_open_restores_where_hdf5_reads(ocean: tuple[Any, Path], copy: Path) -> None:
    """A file that is open for writing is read by h5py, and so are contiguous variables."""
    values, _ = ocean
    with tamis.open(copy) as file:
        found = file["TS"][:]
    with h5py.File(copy, "r+") as file:
        stored = np.where(missing(values), np.float32(1), found)
        attributes = {name: file["TS"].attrs[name] for name in ("missing_companion", "_FillValue")}
        del file["TS"]
        file["TS"] = stored
        file["TS"].attrs.update(attributes)
        file.flush()
        with tamis.open(copy) as other:
            assert np.array_equal(bits(other["TS"][2:5]), bits(found[2:5]))
    with tamis.open(copy) as other:
        assert np.array_equal(bits(other["TS"].read()), bits(found))
        assert bits(other["TS"][3, 5, 6]) == bits(found[3, 5, 6])


def test_open_finds_the_companion_of_a_moved_group(ocean: tuple[Any, Path], copy: Path) -> None:
    with h5py.File(copy, "r+") as file:
        group = file.create_group("moved")
        file.move("TS", "moved/TS")
        file.move("TS_missing", "moved/TS_missing")
        file["alias"] = group["TS"]
        file["here/TS"] = group["TS"]
    with tamis.open(copy) as file:
        assert is_restored(file["moved/TS"][4], ocean[0][4])
        with pytest.raises(FileError, match="/alias: its missing values are in the mask '/TS_missing'"):
            file["alias"]


def damage(name: str, file: h5py.File) -> None:
    flags = file["TS_missing"]
    table = flags.attrs["flag_missing_values"]
    if name == "gone":
        del file["TS_missing"]
    elif name == "renamed":
        file.move("TS_missing", "TS_mask")
    elif name in ("shape", "type", "group", "itself"):
        del file["TS_missing"]
        if name == "group":
            file.create_group("TS_missing")
            return
        data = np.zeros((30, 192) if name == "shape" else (30, 192, 288), "i4" if name == "type" else "u1")
        file["TS_missing"] = data
        file["TS_missing"].attrs["flag_missing_values"] = table
        if name == "itself":
            file["TS_missing"].attrs["missing_companion"] = "/TS_missing"
    elif name == "no table":
        del flags.attrs["flag_missing_values"]
    elif name == "empty table":
        flags.attrs["flag_missing_values"] = np.empty(0, "f4")
    elif name == "null table":
        flags.attrs["flag_missing_values"] = h5py.Empty("f4")
    elif name == "long double":
        del file["TS"]
        file.create_dataset("TS", (30, 192, 288), np.longdouble).attrs["missing_companion"] = "/TS_missing"
        flags.attrs["flag_missing_values"] = table.astype(np.longdouble)
    elif name == "other table":
        flags.attrs["flag_missing_values"] = table.astype("f8")
    elif name == "text table":
        flags.attrs["flag_missing_values"] = "1 2 3"
    elif name == "number":
        file["TS"].attrs["missing_companion"] = 3


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("name", "match"),
    [
        (
            "gone",
            "/TS: its missing values are in the mask '/TS_missing', which does not exist: restore or rename it",
        ),
        ("renamed", "which does not exist"),
        ("group", "which does not exist"),
        (
            "shape",
            r"/TS_missing: damaged, or not the missing-value mask of /TS: expected uint8 with 3 axes, as shape",
        ),
        ("type", "expected uint8 with 3 axes.*, found int32"),
        ("itself", "expected flags, found a dataset that has a missing-value mask itself"),
        ("no table", "expected the attribute 'flag_missing_values', found none"),
        ("empty table", "expected up to 250 values of float32 in 'flag_missing_values', found others"),
        ("null table", "expected up to 250 values of float32 in 'flag_missing_values', found others"),
        ("long double", "expected it to have numbers of 1, 2, 4 or 8 bytes, found float128"),
        ("other table", "expected up to 250 values of float32 in 'flag_missing_values', found others"),
        ("text table", "expected up to 250 values of float32 in 'flag_missing_values', found others"),
        ("number", "expected the path of its missing-value mask in the attribute 'missing_companion', found no text"),
    ],
)
def test_damaged_companion_is_an_error_wherever_values_are_read(name: str, match: str, copy: Path) -> None:
    with h5py.File(copy, "r+") as file:
        damage(name, file)
    with tamis.open(copy) as file, pytest.raises(FileError, match=match):
        file["TS"]
    with tamis.open(copy, restore=False) as file:
        assert np.isfinite(file["TS"][:]).all()
    with pytest.raises(FileError, match=match):
        tamis.repack(copy, copy.with_name("new.nc"), {"TS": "deflate"})
    found = tamis.verify(copy, copy)
    assert "/TS" in [each.path for each in found.problems]
    assert tamis.inspect(copy, ["TS"]).datasets[0].problem


def test_flag_that_stands_for_nothing_is_an_error(copy: Path) -> None:
    with h5py.File(copy, "r+") as file:
        file["TS_missing"][7, 100, 200] = 77
    with tamis.open(copy) as file:
        assert np.isfinite(file["TS"][15, 0, 0])
        with pytest.raises(FileError, match=r"/TS_missing: expected flags up to 6, got 77: damaged"):
            file["TS"][7]
    with pytest.raises(FileError, match="expected flags up to 6"):
        tamis.repack(copy, copy.with_name("new.nc"), {"TS": "deflate"})
    assert tamis.verify(copy, copy).problems


def test_damaged_chunk_of_a_companion_is_an_error(copy: Path) -> None:
    with h5py.File(copy, "r+") as file:
        place = file["TS_missing"].id.get_chunk_info(3)
    with copy.open("r+b") as raw:
        raw.seek(place.byte_offset + place.size // 2)
        raw.write(b"\xff\x00\xaa")
    with tamis.open(copy) as file, pytest.raises(FileError, match=r"/TS_missing: chunk at .* cannot be decoded"):
        file["TS"][:]


def test_writing_to_one_of_the_two_refused(copy: Path) -> None:
    with h5py.File(copy, "r+") as file:
        with pytest.raises(
            ParameterError, match="/TS: expected a dataset without a missing-value mask, got one whose missing"
        ):
            tamis.hdf5.Appender(file["TS"])
        with pytest.raises(ParameterError, match=r"/TS_missing: expected .* got the missing-value mask of"):
            tamis.hdf5.Appender(file["TS_missing"])
        with pytest.raises(ParameterError, match="/TS: expected a dataset without a missing-value mask"):
            tamis.hdf5.write(file["TS"], np.zeros((30, 192, 288), "f4"))


def test_inspect_says_what_is_a_companion(ocean: tuple[Any, Path]) -> None:
    found = {
        each.path: [note.text for note in each.notes if note.code == "companion"]
        for each in tamis.inspect(ocean[1]).datasets
    }
    assert found["/TS"] == [
        "its missing values are kept in /TS_missing: tamis restores them; other readers see invented values there"
    ]
    assert found["/TS_missing"][0].startswith("marks the missing values of another dataset")
    assert not any(notes for path, notes in found.items() if path not in ("/TS", "/TS_missing"))
