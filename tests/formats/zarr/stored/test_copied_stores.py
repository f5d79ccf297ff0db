"""Known defects U74, U80, U82, U83, U92, U93, U95, U96, U116: between Zarr stores, what was not asked for is copied."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numcodecs
import numpy as np
import pytest
import xarray
import zarr
from inprocess import said_by_tamis
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, TransposeCodec, ZstdCodec

import tamis
import tamis.zarr

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")

STRUCTURED: dict[str, Any] = {
    "object": {"a": 1, "b": [1, 2, {"c": None}]},
    "objects": [{"axes": ["y", "x"], "scale": [1.0, 2.5]}],
    "null": None,
    "true": True,
    "false": False,
    "mixed": [1, "a", 2.5],
    "table": [[1, 2], [3, 4]],
    "ragged": [[1], [2, 3]],
    "nothing": {},
    "no items": [],
    "booleans": [True, False],
    "with null": [None, 1],
    "float": 1.0,
    "whole": 1,
    "2^63": 2**63,
    "2^70": 2**70,
    "one text": ["a"],
    "one number": [1.5],
    "one whole": [1],
    "text": "é",
    "text of JSON": '{"a": 1}',
    "text of a number": "1",
    "long": ["x" * 40] * 3,
}


def read_json(path: Path) -> Any:
    return json.loads(path.read_bytes())


def kinds(value: Any) -> str:
    """Return a value of JSON as text that tells 1, 1.0 and true apart."""
    return json.dumps(value)


def create(path: Path, zarr_format: Any, **others: Any) -> zarr.Group:
    return zarr.open_group(path, mode="w", zarr_format=zarr_format, **others)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("other", [2, 3])
def test_u80_attributes_of_every_kind_stay_in_zarr_and_come_back_from_hdf5(
    zarr_format: int, other: int, tmp_path: Path
) -> None:
    source, direct, file, back = (tmp_path / name for name in ("a.zarr", "b.zarr", "c.h5", "d.zarr"))
    group = create(source, zarr_format, attributes=STRUCTURED)
    group.create_array("x", shape=(4,), chunks=(2,), dtype="i4", attributes=STRUCTURED)[:] = 1
    said_by_tamis("repack", source, direct, "--zarr-format", other)
    said_by_tamis("repack", source, file)
    said_by_tamis("repack", file, back, "--zarr-format", other)
    for target in (direct, file, back):
        assert "equal" in said_by_tamis("verify", source, target)
    for target in (direct, back):
        copy = zarr.open_group(target, mode="r", use_consolidated=False)
        for owner in (copy, copy["x"]):
            assert {name: kinds(owner.attrs[name]) for name in STRUCTURED} == {
                name: kinds(value) for name, value in STRUCTURED.items()
            }
    with h5py.File(file) as opened:
        assert json.loads(opened["x"].attrs["object"]) == STRUCTURED["object"]
        assert opened["x"].attrs["2^63"] == 2**63


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_u80_open_and_engine_give_attributes_as_zarr_does(zarr_format: int, tmp_path: Path) -> None:
    group = create(tmp_path / "a.zarr", zarr_format, attributes=STRUCTURED)
    names: dict[str, Any] = {"dimension_names": ["t"]} if zarr_format == 3 else {}
    array = group.create_array("x", shape=(4,), dtype="i4", fill_value=None if zarr_format == 2 else 0, **names)
    array.attrs.update(STRUCTURED | ({"_ARRAY_DIMENSIONS": ["t"]} if zarr_format == 2 else {}))
    with tamis.open(tmp_path / "a.zarr") as file:
        owners = [file.attrs, file["x"].attrs]
    with xarray.open_dataset(tmp_path / "a.zarr", engine="tamis") as dataset:
        owners += [dataset.attrs, dataset["x"].attrs]
        dataset.load()
    for attributes in owners:
        assert {name: kinds(value) for name, value in attributes.items()} == {
            name: kinds(value) for name, value in STRUCTURED.items()
        }
    dataset.tamis.to_zarr(tmp_path / "b.zarr", {}, zarr_format=zarr_format)
    copy = zarr.open_group(tmp_path / "b.zarr", mode="r", use_consolidated=False)
    assert kinds({name: copy.attrs[name] for name in STRUCTURED}) == kinds(STRUCTURED)


def test_u80_verify_tells_kinds_of_json_apart(tmp_path: Path) -> None:
    pairs = (False, "false"), (1, 1.0), (1, True), ([1.5], 1.5), ({"a": 1}, '{"a": 1}'), (2**63, 2.0**63)
    for before, after in pairs:
        for name, value in (("a.zarr", before), ("b.zarr", after)):
            group = create(tmp_path / name, 3)
            group.create_array("x", shape=(2,), dtype="i4", attributes={"ordered": value})
        assert "attribute 'ordered'" in said_by_tamis("verify", tmp_path / "a.zarr", tmp_path / "b.zarr", code=3)


@pytest.mark.parametrize("recipe", [[], ["-f", "x:shuffle|deflate(1)", "--larger"]], ids=["kept", "rewritten"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_u80_documents_keep_numbers_order_and_unknown_members(
    zarr_format: int, recipe: list[str], tmp_path: Path
) -> None:
    group = create(tmp_path / "a.zarr", zarr_format)
    group.create_array("x", shape=(8,), chunks=(4,), dtype="f4", fill_value=2.0)[:] = np.arange(8)
    name = "zarr.json" if zarr_format == 3 else ".zarray"
    places = {"x": name, ".": "zarr.json" if zarr_format == 3 else ".zgroup"}
    for place, file in places.items():
        path = tmp_path / "a.zarr" / place / file
        content = {"z": {"must_understand": False, "n": "@"}} | read_json(path)
        attributes = {"one": "@", "a": {"z": "@", "b": [True, None]}}
        if zarr_format == 3:
            content["attributes"] = attributes
        else:
            path.with_name(".zattrs").write_text(json.dumps(attributes).replace('"@"', "1.50e+05"))
        path.write_text(json.dumps(content).replace('"@"', "1.50e+05"))
    said_by_tamis(
        "repack", tmp_path / "a.zarr", tmp_path / "b.zarr", "--zarr-format", zarr_format, "--no-history", *recipe
    )
    for place, file in places.items():
        before, after = (tmp_path / store / place / file for store in ("a.zarr", "b.zarr"))
        assert after.read_text().count("1.50e+05") >= before.read_text().count("1.50e+05") > 0
        assert [*read_json(after)][: len(read_json(before))] == [*read_json(before)]
        if zarr_format == 2:
            assert read_json(after.with_name(".zattrs")) == read_json(before.with_name(".zattrs"))
    copied = tmp_path / "b.zarr/x" / name
    assert (copied.read_bytes() == (tmp_path / "a.zarr/x" / name).read_bytes()) == (not recipe)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_u82_arrays_below_folders_without_metadata_are_copied(zarr_format: int, tmp_path: Path) -> None:
    group = create(tmp_path / "a.zarr", zarr_format)
    group.create_array("a/b/x", shape=(4,), dtype="i4")[:] = 7
    group.create_array("top", shape=(4,), dtype="i4")[:] = 1
    for folder in ("a", "a/b"):
        (tmp_path / "a.zarr" / folder / ("zarr.json" if zarr_format == 3 else ".zgroup")).unlink()
    (tmp_path / "a.zarr/notes/old").mkdir(parents=True)  # no group: there is nothing in it
    for target in ("b.h5", "b.zarr"):
        said_by_tamis("repack", tmp_path / "a.zarr", tmp_path / target)
        assert "2 datasets" in said_by_tamis("verify", tmp_path / "a.zarr", tmp_path / target)
        with tamis.open(tmp_path / target) as file:
            assert file["a/b/x"][:].tolist() == [7] * 4
            assert "notes" not in file


def write_sparse(path: Path, dtype: str, fill: Any) -> None:
    """Write an array with one chunk of 40."""
    with h5py.File(path, "w") as file:
        file.create_dataset("x", shape=(40, 500), chunks=(1, 500), dtype=dtype, fillvalue=fill)[0] = 1


@pytest.mark.matrix
@pytest.mark.parametrize(("dtype", "fill"), [("i4", 0), ("f4", 0.0), ("f4", np.nan), ("i2", -9), ("?", False)])
def test_u83_values_of_chunks_that_a_source_lacks_are_defined_in_zarr_2(dtype: str, fill: Any, tmp_path: Path) -> None:
    write_sparse(tmp_path / "a.h5", dtype, fill)
    said_by_tamis("repack", tmp_path / "a.h5", tmp_path / "b.zarr", "--zarr-format", 2)
    said_by_tamis("repack", tmp_path / "a.h5", tmp_path / "three.zarr")
    said_by_tamis("repack", tmp_path / "three.zarr", tmp_path / "c.zarr", "--zarr-format", 2)
    for name in ("b.zarr", "c.zarr"):
        stored = [path for path in (tmp_path / name / "x").iterdir() if not path.name.startswith(".")]
        assert len(stored) == 40 or read_json(tmp_path / name / "x/.zarray")["fill_value"] is not None
        with xarray.open_zarr(tmp_path / name) as dataset, h5py.File(tmp_path / "a.h5") as file:
            np.testing.assert_array_equal(dataset["x"], file["x"][:])  # zeros are not missing for xarray


@pytest.mark.check
def test_u83_chunks_too_many_to_be_written_have_a_fill_value_and_a_note(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", shape=(1 << 20, 8), chunks=(1, 8), dtype="i4")[0] = 1
    said = said_by_tamis("repack", tmp_path / "a.h5", tmp_path / "b.zarr", "--zarr-format", 2)
    assert read_json(tmp_path / "b.zarr/x/.zarray")["fill_value"] == 0
    assert "1048575 chunks are not stored" in said


def test_u83_references_have_a_fill_value_where_chunks_are_absent(tmp_path: Path) -> None:
    write_sparse(tmp_path / "a.h5", "i4", 0)
    said_by_tamis("export", tmp_path / "a.h5", "--to", "kerchunk", "-o", tmp_path / "a.json")
    assert json.loads(read_json(tmp_path / "a.json")["refs"]["x/.zarray"])["fill_value"] == 0


@pytest.mark.parametrize("recipe", [[], ["-f", "*:shuffle|deflate(1)", "--larger", "--min-size", "1"]])
def test_u83_fill_values_of_every_type_stay_in_zarr_2(recipe: list[str], tmp_path: Path) -> None:
    fills = {"?": True, "c8": 1 + 2j, "S4": b"ab", "<U3": "é", "M8[s]": "NaT", "f4": np.nan, "i2": -9, ">f8": 1e20}
    group = create(tmp_path / "a.zarr", 2)
    for number, (dtype, fill) in enumerate(fills.items()):
        group.create_array(f"x{number}", shape=(6,), chunks=(2,), dtype=dtype, fill_value=np.array(fill, dtype)[()])
    said_by_tamis("repack", tmp_path / "a.zarr", tmp_path / "b.zarr", "--zarr-format", 2, *recipe)
    copy = zarr.open_group(tmp_path / "b.zarr", mode="r", use_consolidated=False)
    for number in range(len(fills)):
        before, after = (read_json(tmp_path / name / f"x{number}/.zarray") for name in ("a.zarr", "b.zarr"))
        assert after["fill_value"] == before["fill_value"] or before["fill_value"] != before["fill_value"]
        np.testing.assert_array_equal(copy[f"x{number}"][:], group[f"x{number}"][:])


@pytest.mark.matrix
@pytest.mark.parametrize("other", [2, 3])
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("codec", ["blosc", "none", "zstd"])
def test_u92_scalars_with_compressors_are_copied(codec: str, zarr_format: int, other: int, tmp_path: Path) -> None:
    compressors: dict[tuple[str, int], Any] = {
        ("blosc", 2): numcodecs.Blosc(),
        ("blosc", 3): BloscCodec(),
        ("zstd", 2): numcodecs.Zstd(1),
        ("zstd", 3): ZstdCodec(),
    }
    group = create(tmp_path / "a.zarr", zarr_format)
    for name, stored in (("stored", True), ("not_stored", False)):
        for dtype in ("b1", "f4", "i8"):
            options = {"dtype": dtype, "compressors": compressors.get((codec, zarr_format)), "fill_value": 0}
            array = group.create_array(f"{name}_{dtype}", shape=(), **options)
            if stored:
                array[...] = 1
    said_by_tamis("repack", tmp_path / "a.zarr", tmp_path / "b.zarr", "--zarr-format", other)
    copy = zarr.open_group(tmp_path / "b.zarr", mode="r", use_consolidated=False)
    assert {name: array[...].item() for name, array in copy.arrays()} == {
        name: array[...].item() for name, array in group.arrays()
    }


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_u93_levels_of_a_pyramid_share_the_names_of_their_axes(zarr_format: int, tmp_path: Path) -> None:
    source = tmp_path / "a.zarr"
    group = create(source, zarr_format)
    for level in range(3):
        extent = 64 >> level
        names: dict[str, Any] = {"dimension_names": ["y", "x"]} if zarr_format == 3 else {}
        array = group.create_array(str(level), shape=(extent, extent), chunks=(16, 16), dtype="u2", **names)
        array[:] = level + 1
        if zarr_format == 2:
            array.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
    for other in (2, 3):
        target = tmp_path / f"{other}.zarr"
        said_by_tamis("repack", source, target, "--zarr-format", other)
        assert "equal" in said_by_tamis("verify", source, target)
        last = read_json(target / "2" / ("zarr.json" if other == 3 else ".zattrs"))
        assert last["dimension_names" if other == 3 else "_ARRAY_DIMENSIONS"] == ["y", "x"]
    said = said_by_tamis("repack", source, tmp_path / "b.h5")
    assert "dimension 'y' becomes 'y_32'" in said
    assert "equal" in said_by_tamis("verify", source, tmp_path / "b.h5")
    for command in (["inspect"], ["inspect", "--cdl"], ["plan", "--require", "*:rel=0.01"], ["verify", source]):
        said_by_tamis(command[0], source, *command[1:])
    with xarray.open_dataset(source, engine="tamis") as dataset:
        assert dataset["1"].sizes == {"y_32": 32, "x_32": 32}
    said_by_tamis("repack", source, tmp_path / "dropped.zarr", "--drop", "0")
    assert "equal" in said_by_tamis("verify", source, tmp_path / "dropped.zarr", "--drop", "0")


def test_u93_variable_of_the_name_keeps_it(tmp_path: Path) -> None:
    group = create(tmp_path / "a.zarr", 3)
    group.create_array("a", shape=(4, 3), dtype="i4", dimension_names=["x", "x"])
    group.create_array("x", shape=(3,), dtype="i4", dimension_names=["x"])
    for target in ("b.nc", "b.zarr"):
        said_by_tamis("repack", tmp_path / "a.zarr", tmp_path / target)
        assert "equal" in said_by_tamis("verify", tmp_path / "a.zarr", tmp_path / target)
    with netCDF4.Dataset(tmp_path / "b.nc") as file:
        assert file["a"].dimensions == ("x_4", "x")


ORDERS: dict[str, dict[str, Any]] = {
    "2, order F": {"zarr_format": 2, "order": "F", "compressors": None},
    "2, order F, blosc": {"zarr_format": 2, "order": "F", "compressors": numcodecs.Blosc()},
    "2, big-endian": {"zarr_format": 2, "dtype": ">i4", "compressors": numcodecs.Zlib(1)},
    "3, transposed": {"zarr_format": 3, "filters": [TransposeCodec(order=(1, 0))], "compressors": None},
    "3, big-endian": {"zarr_format": 3, "serializer": BytesCodec(endian="big"), "compressors": None},
    "3, big-endian, checksum": {"zarr_format": 3, "serializer": BytesCodec(endian="big"), "compressors": Crc32cCodec()},
    "2, delta": {"zarr_format": 2, "filters": [numcodecs.Delta("i4")], "compressors": None},
}


@pytest.mark.matrix
@pytest.mark.parametrize("name", ORDERS)
def test_u95_other_orders_of_values_and_bytes_lose_their_filters(name: str, tmp_path: Path) -> None:
    options = {"dtype": "i4", "shape": (8, 8), "chunks": (2, 8)} | ORDERS[name]
    values = np.arange(64, dtype="i4").reshape(8, 8)
    create(tmp_path / "a.zarr", options.pop("zarr_format")).create_array("x", **options)[:] = values
    for filters in ("*:none", "*:shuffle|deflate(1)", "x:deflate(1)"):
        for target, form in (("b.h5", []), ("two.zarr", ["--zarr-format", 2]), ("three.zarr", [])):
            said = ["-f", filters, "--larger", "--min-size", "1", "--overwrite"]
            said_by_tamis("repack", tmp_path / "a.zarr", tmp_path / target, *form, *said)
            with tamis.open(tmp_path / target) as file:
                np.testing.assert_array_equal(file["x"][:], values)


def address(path: Path) -> str:
    return f"{path.as_uri()}#mode=zarr,file"


def test_u96_stores_of_netcdf_with_characters_and_bytes_are_read_and_copied(tmp_path: Path) -> None:
    source = tmp_path / "a.zarr"
    with netCDF4.Dataset(address(source), "w") as file:
        file.createDimension("e", 4)
        file.createDimension("l", 5)
        kinds = {"byte": ("i1", 5), "ubyte": ("u1", 7), "char": ("S1", None), "filled": ("S1", "x"), "f": ("f8", None)}
        for name, (dtype, fill) in kinds.items():
            variable = file.createVariable(name, dtype, ("e", "l"), fill_value=fill, zlib=name == "f")
            variable[:] = np.array([[*"abcde"]] * 4, "S1") if dtype == "S1" else np.arange(20).reshape(4, 5)
    assert '">S1"' in (source / "char/.zarray").read_text()
    for target, options in (("b.zarr", {"zarr_format": 2}), ("three.zarr", {}), ("b.nc", {})):
        tamis.repack(source, tmp_path / target, {}, **options)
        assert tamis.verify(source, tmp_path / target).ok
        with tamis.open(tmp_path / target) as file:
            assert file["char"][0].tobytes() == b"abcde"
            np.testing.assert_array_equal(file["f"][:], np.arange(20.0).reshape(4, 5))
    with netCDF4.Dataset(address(source)) as before, netCDF4.Dataset(address(tmp_path / "b.zarr")) as after:
        for name, variable in before.variables.items():
            np.testing.assert_array_equal(after[name][:], variable[:])
    tamis.repack(source, tmp_path / "dropped.zarr", {}, zarr_format=2, drop=["char"])
    with netCDF4.Dataset(address(tmp_path / "dropped.zarr")) as file:
        assert "char" not in file.variables


ODD: dict[str, dict[str, Any]] = {
    "codec of nobody": {"codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "nosuch"}]},
    "complex32": {"data_type": "complex32", "fill_value": [0, 0]},
    "char": {"data_type": "char", "fill_value": 0},
    "no codecs": {"codecs": None},
    "grid": {"chunk_grid": {"name": "hexagonal"}},
    "attributes": {"attributes": [1]},
    "names of axes": {"dimension_names": ["a", "b"]},
}


@pytest.mark.matrix
@pytest.mark.parametrize("name", ODD)
def test_u116_one_odd_array_is_named_and_can_be_left_out(name: str, tmp_path: Path) -> None:
    group = create(tmp_path / "a.zarr", 3)
    for array in ("good", "odd"):
        group.create_array(array, shape=(4,), chunks=(2,), dtype="i4")[:] = 5
    path = tmp_path / "a.zarr/odd/zarr.json"
    path.write_text(json.dumps(read_json(path) | ODD[name]))
    assert "/odd" in said_by_tamis("inspect", tmp_path / "a.zarr", code=1)
    said_by_tamis("plan", tmp_path / "a.zarr", "--require", "*:abs=1")
    assert "--drop /odd" in said_by_tamis("repack", tmp_path / "a.zarr", tmp_path / "b.h5", code=1)
    for target in ("b.h5", "b.zarr"):
        said_by_tamis("repack", tmp_path / "a.zarr", tmp_path / target, "--drop", "odd")
        with tamis.open(tmp_path / target) as file:
            assert file["good"][:].tolist() == [5] * 4


def test_u116_codec_of_the_draft_is_read(tmp_path: Path) -> None:
    create(tmp_path / "a.zarr", 3).create_array("x", shape=(4,), dtype="i4", compressors=None)[:] = 5
    path = tmp_path / "a.zarr/x/zarr.json"
    path.write_text(path.read_text().replace('"bytes"', '"endian"'))
    assert read_json(path)["codecs"][0]["name"] == "endian"
    said_by_tamis("repack", tmp_path / "a.zarr", tmp_path / "b.h5")
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["x"][:].tolist() == [5] * 4
    said_by_tamis("repack", tmp_path / "a.zarr", tmp_path / "b.zarr")
    assert (tmp_path / "b.zarr/x/zarr.json").read_bytes() == path.read_bytes()


@pytest.mark.matrix
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
@pytest.mark.parametrize(
    "rest", [numcodecs.Zlib(1), numcodecs.Zstd(1), numcodecs.Fletcher32()], ids=lambda c: c.codec_id
)
def test_u74_raw_chunks_before_other_codecs_are_read(rest: Any, dtype: str, tmp_path: Path) -> None:
    values = (np.random.default_rng(0).random((32, 16, 16)) * 1000).astype(dtype)
    values[8:16] = 2**31 - 5 if dtype == "i4" else values[8:16] * 1e30
    if dtype != "i4":
        values[20, 3, 3] = np.nan
    first = tamis.zarr.H5zZfp.of(tamis.Zfp(accuracy=1), dtype, (8, 16, 16))
    options = {"shape": values.shape, "chunks": (8, 16, 16), "dtype": dtype}
    array = create(tmp_path / "a.zarr", 2).create_array("x", **options, filters=[first], compressors=rest)
    array[:] = values
    stored = array[:]
    assert stored.dtype.kind == "i" or np.abs(stored[8:16]).max() > 1e30
    with tamis.open(tmp_path / "a.zarr") as file:
        np.testing.assert_array_equal(file["x"][:], stored)
        np.testing.assert_array_equal(file["x"][9:21, 2:5], stored[9:21, 2:5])
    for filters in ([], ["-f", "x:zfp(accuracy=1)|shuffle|deflate(1)"], ["-f", "x:shuffle|deflate(1)"]):
        for target, form in (("b.h5", []), ("two.zarr", ["--zarr-format", 2]), ("three.zarr", [])):
            shutil.rmtree(tmp_path / target, ignore_errors=True)
            (tmp_path / "b.h5").unlink(missing_ok=True)
            said_by_tamis("repack", tmp_path / "a.zarr", tmp_path / target, *form, *filters)
            with tamis.open(tmp_path / target) as file, warnings.catch_warnings():
                np.testing.assert_allclose(file["x"][:].astype("f8"), stored.astype("f8"), rtol=0, atol=2)
