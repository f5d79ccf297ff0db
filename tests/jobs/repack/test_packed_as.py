"""Packed values of Zarr stores, by codecs or with attributes: written, proven, read by others, and converted."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray
import zarr
from hostile_values import hostile
from hypothesis import given, settings
from hypothesis import strategies as st
from inprocess import run_tamis
from installation import make_installation
from needs import needs
from value_codec_readers import HAS_CODECS, needs_codecs, read_by_zarr_python, read_by_zarrita, zarrita_folder

import tamis
from tamis import BoundError, DataError, ParameterError

SHAPE = (6, 24, 36)
FILL = np.float32(1e20)
PACKED = "pack(bound=0.1)|shuffle|deflate(4)"
FACTORS = ("scale_factor", "add_offset")


def field(dtype: str = "f4") -> Any:
    steps = np.random.default_rng(3).standard_normal(SHAPE)
    values = (np.cumsum(np.cumsum(steps, -1), -2) / 10 + 280).astype(dtype)
    values[:, :3, :5] = FILL
    return values


def make(path: Path, values: Any, fill: Any = FILL, **attributes: Any) -> Path:
    """A netCDF-4 file with a variable."""
    with netCDF4.Dataset(path, "w") as file:
        for name, extent in zip(("time", "y", "x"), values.shape, strict=True):
            file.createDimension(name, extent)
        chunks = (1, *values.shape[1:])
        variable = file.createVariable("v", values.dtype, ("time", "y", "x"), fill_value=fill, chunksizes=chunks)
        variable.setncatts({"units": "K", **attributes})
        variable.set_auto_maskandscale(False)
        variable[:] = values
    return path


def to_codecs(source: Path, target: Path, filters: str = PACKED, **options: Any) -> tamis.RepackResult:
    return tamis.repack(source, target, {"v": filters}, packed_as="codecs", **options)


def document(store: Path, name: str = "v") -> dict[str, Any]:
    content: dict[str, Any] = json.loads((store / name / "zarr.json").read_text())
    return content


def names_of(content: dict[str, Any]) -> list[str]:
    return [codec["name"] for codec in content["codecs"]]


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def output_of(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def values_of(path: Path) -> Any:
    with tamis.open(path) as file:
        return file["v"][...]


@pytest.mark.parametrize("dtype", ["f4", "f8", ">f4"])
@pytest.mark.parametrize("filters", ["shuffle|deflate(4)", "zstd(3)", "blosc(zstd,5,byte)", ""])
def test_floats_keep_the_bound_and_missing_values(tmp_path: Path, dtype: str, filters: str) -> None:
    values = field(dtype)
    values[1, 10, 10] = np.nan
    source = make(tmp_path / "a.nc", values, fill=values.dtype.type(FILL), missing_value=values.dtype.type(FILL))
    result = to_codecs(source, tmp_path / "b.zarr", "|".join(filter(None, ["pack(bound=0.1)", filters])))
    assert 0.09 < (result["v"].largest_error or 0) <= 0.1 == result["v"].bound
    found = values_of(tmp_path / "b.zarr")
    native = values.astype(values.dtype.newbyteorder("="))
    missing = np.isnan(native) | (native == native.dtype.type(FILL))
    assert found.dtype == native.dtype
    assert found[missing].tobytes() == native[missing].tobytes()
    assert np.abs(found - native)[~missing].max() <= 0.1
    content = document(tmp_path / "b.zarr")
    assert content["data_type"] == native.dtype.name
    assert names_of(content)[:3] == ["cast_value", "scale_offset", "cast_value"]
    assert content["attributes"].keys() == {"_FillValue", "missing_value", "units", "quantization_bound"}
    assert tamis.verify(source, tmp_path / "b.zarr", bounds="recorded").ok


def test_plain_values_need_two_codecs_and_have_a_fill_value_of_no_other(tmp_path: Path) -> None:
    values = field()
    values[values == FILL] = 280
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=values, chunks=(1, 24, 36))
    to_codecs(tmp_path / "a.h5", tmp_path / "b.zarr")
    content = document(tmp_path / "b.zarr")
    assert names_of(content)[:2] == ["scale_offset", "cast_value"]
    assert content["fill_value"] == "NaN"
    assert content["attributes"].keys() == {"_FillValue", "quantization_bound"}


@needs_codecs
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_zarr_python_reads_the_same_bits_without_tamis(tmp_path: Path, dtype: str) -> None:
    values = field(dtype)
    values[1, 10, 10] = np.nan
    source = make(tmp_path / "a.nc", values, fill=values.dtype.type(FILL))
    result = to_codecs(source, tmp_path / "b.zarr", shards=3)
    assert not any("own decoding" in note for note in result["v"].notes)
    python = make_installation(tmp_path / "python", ["zarr", "cast-value-rs", "xarray"])
    found, fill = read_by_zarr_python(python, tmp_path / "b.zarr" / "v", tmp_path / "found.npz")
    assert found.tobytes() == values_of(tmp_path / "b.zarr").tobytes()
    assert fill == values.dtype.type(FILL)
    with xarray.open_dataset(tmp_path / "b.zarr", engine="zarr") as after, xarray.open_dataset(source) as before:
        assert after["v"].dtype == before["v"].dtype
        np.testing.assert_array_equal(np.isnan(after["v"]), np.isnan(before["v"]))
        assert np.nanmax(np.abs(after["v"] - before["v"])) <= 0.1


@pytest.mark.peer
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_zarrita_reads_the_same_bits(tmp_path: Path, dtype: str) -> None:
    folder = zarrita_folder()
    values = field(dtype)
    values[1, 10, 10] = np.nan
    to_codecs(make(tmp_path / "a.nc", values, fill=values.dtype.type(FILL)), tmp_path / "b.zarr", "pack(bound=0.1)")
    found = read_by_zarrita(folder, tmp_path / "b.zarr" / "v", tmp_path / "found")
    assert found.tobytes() == values_of(tmp_path / "b.zarr").tobytes()


def test_a_result_says_whether_zarr_python_could_confirm_it(tmp_path: Path) -> None:
    result = to_codecs(make(tmp_path / "a.nc", field()), tmp_path / "b.zarr")
    is_unconfirmed = any("its floats are proven by tamis' own decoding" in note for note in result["v"].notes)
    assert is_unconfirmed is not HAS_CODECS
    assert any("where zarr 3.2 and cast-value-rs are installed" in note for note in result["v"].notes)


def test_a_witness_reads_floats_or_says_what_it_lacks(tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc", field())
    if not HAS_CODECS:
        words = r"Unknown codec: 'cast_value': /v needs zarr 3\.2 and cast-value-rs, which is not installed here"
        with pytest.raises(BoundError, match=words):
            to_codecs(source, tmp_path / "b.zarr", witness="xarray")
        assert not (tmp_path / "b.zarr").exists()
        return
    result = to_codecs(source, tmp_path / "b.zarr", witness="xarray")
    assert result.witness is not None
    again = tamis.repack(tmp_path / "b.zarr", tmp_path / "c.nc", {}, witness="xarray")
    assert again.witness is not None
    tamis.repack(tmp_path / "c.nc", tmp_path / "d.zarr", {}, witness="xarray", packed_as="codecs")


def test_inspect_names_integers_step_bound_and_readers(tmp_path: Path) -> None:
    to_codecs(make(tmp_path / "a.nc", field()), tmp_path / "b.zarr")
    found = tamis.inspect(tmp_path / "b.zarr")["v"]
    words = "floats, packed to int8 by codecs: step 0.198242, proven bound 0.1, offset "
    assert found.values_in_words.startswith(words)
    assert str(found.readers) == "Zarr with zarr 3.2 and cast-value-rs"
    assert found.packed_to is not None
    about = found.to_dict()["packed_to"]
    assert about is not None
    assert (about["dtype"], about["step"]) == ("int8", 203 / 1024)
    assert found.packing is None
    tamis.repack(tmp_path / "a.nc", tmp_path / "c.zarr", {"v": PACKED})
    assert tamis.inspect(tmp_path / "c.zarr")["v"].packed_to is None


def test_a_plan_takes_codecs_for_the_packing_that_they_are(tmp_path: Path) -> None:
    to_codecs(make(tmp_path / "a.nc", field()), tmp_path / "b.zarr")
    plan = tamis.plan(tmp_path / "b.zarr", {"v": "abs=0.1"}, readers="zarr")
    assert "rounded before, by pack(bound=0.1)" in str(plan)


def test_stores_that_codecs_pack_are_joined(tmp_path: Path) -> None:
    for number in range(2):
        source = make(tmp_path / f"{number}.nc", field())
        to_codecs(source, tmp_path / f"{number}.zarr", "pack(bound=0.1,range=200:320)|deflate(1)")
    parts = [tmp_path / f"{number}.zarr" for number in range(2)]
    tamis.combine(parts, tmp_path / "all.zarr", {}, "time")
    one = values_of(parts[0])
    assert values_of(tmp_path / "all.zarr").tobytes() == np.concatenate([one, one]).tobytes()
    assert names_of(document(tmp_path / "all.zarr"))[:3] == ["cast_value", "scale_offset", "cast_value"]
    tamis.combine(parts, tmp_path / "all.nc", {}, "time")
    with h5py.File(tmp_path / "all.nc") as file:
        assert file["v"].dtype == np.int16


def test_a_folder_gets_one_packing_by_codecs(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(2):
        make(tmp_path / "in" / f"{number}.nc", np.where(field() == FILL, FILL, field() + np.float32(10 * number)))
    done = run_tamis(
        "repack", tmp_path / "in", tmp_path / "out", "-f", f"v:{PACKED}", "--packed-as", "codecs", "--to", "zarr"
    )
    assert done.returncode == 0, done.stderr
    both = [document(store)["codecs"] for store in sorted((tmp_path / "out").glob("*.zarr"))]
    assert len(both) == 2
    assert both[0] == both[1]
    assert both[0][1]["name"] == "scale_offset"


@pytest.mark.skipif(HAS_CODECS, reason="a zarr that has the codecs: older ones are tried with Python 3.11")
def test_zarr_python_3_1_refuses_floats_and_opens_the_rest_without_consolidated_metadata(tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc", field())
    for number, options in enumerate(({}, {"consolidated": False})):
        store = tmp_path / f"{number}.zarr"
        to_codecs(source, store, **options)
        with pytest.raises(Exception, match="Unknown codec: 'cast_value'"):
            zarr.open_array(store / "v", mode="r")
        if options:
            assert "v" not in dict(zarr.open_group(store, mode="r").attrs)
        else:
            with pytest.raises(Exception, match="Unknown codec: 'cast_value'"):
                zarr.open_group(store, mode="r")


@pytest.mark.peer
@needs("gdalmdiminfo")
@pytest.mark.parametrize("form", ["codecs", "attributes"])
def test_gdal_3_6_finds_nothing_in_zarr_3(tmp_path: Path, form: Any) -> None:
    tamis.repack(make(tmp_path / "a.nc", field()), tmp_path / "b.zarr", {"v": PACKED}, packed_as=form)
    if output_of("gdalinfo", "--version").startswith("GDAL 3.6"):
        assert "arrays" not in json.loads(output_of("gdalmdiminfo", tmp_path / "b.zarr"))


def test_marks_that_no_value_has_get_a_code_for_later_ones(tmp_path: Path) -> None:
    values = np.full(SHAPE, 3, "f4")
    to_codecs(make(tmp_path / "a.nc", values, missing_value=np.float32(-5)), tmp_path / "b.zarr")
    content = document(tmp_path / "b.zarr")
    assert content["codecs"][0]["configuration"]["scalar_map"]["encode"] == [[float(FILL), "NaN"], [-5, "Infinity"]]
    assert content["attributes"]["missing_value"] == -5
    tamis.repack(tmp_path / "b.zarr", tmp_path / "c.nc", {})
    with h5py.File(tmp_path / "c.nc") as file:
        assert file["v"].attrs["_FillValue"] != file["v"].attrs["missing_value"]


def test_whole_numbers_become_floats_with_their_missing_ones(tmp_path: Path) -> None:
    values = np.random.default_rng(1).integers(0, 30000, SHAPE).astype("i4")
    values[0, 0] = -2147483647
    to_codecs(make(tmp_path / "a.nc", values, fill=np.int32(-2147483647)), tmp_path / "b.zarr", "pack(bound=2)")
    found = values_of(tmp_path / "b.zarr")
    assert found.dtype == np.float64
    assert (found[0, 0] == -2147483647).all()
    assert np.abs(found - values).max() <= 2
    assert tamis.verify(tmp_path / "a.nc", tmp_path / "b.zarr", bounds={"v": 2}).ok


def test_chunks_that_were_never_written_have_the_fill_value(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("v", (4, 8), "f4", chunks=(1, 8), fillvalue=1e20)
        dataset.attrs["_FillValue"] = FILL
        dataset[1] = np.arange(8)
        zeros = file.create_dataset("zeros", (4, 8), "f4", chunks=(1, 8))
        zeros[1] = np.arange(8)
    recipe = {"*": "pack(bound=0.1)|deflate(1)"}
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.zarr", recipe, packed_as="codecs", min_size=0, larger=True)
    assert not (tmp_path / "b.zarr" / "v" / "c" / "0").exists()
    with h5py.File(tmp_path / "a.h5") as before, tamis.open(tmp_path / "b.zarr") as after:
        assert (after["v"][0] == FILL).all()
        for name in ("v", "zeros"):
            assert np.abs(after[name][...].astype("f8") - before[name][...]).max() <= 0.1


def test_valid_limits_stay_where_they_part_unpacked_values(tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc", field(), valid_min=np.float32(0.05), valid_max=np.float32(400))
    to_codecs(source, tmp_path / "b.zarr")
    attributes = document(tmp_path / "b.zarr")["attributes"]
    assert (attributes["valid_min"], attributes["valid_max"]) == (float(np.float32(0.05)), 400)
    values = np.random.default_rng(1).choice(np.array([-0.38, -0.18, 0.12, 0.22], "f4"), SHAPE)
    for limit, kept in ((0.12, True), (0.08, False)):  # the nearest code to the second one has the value 0
        make(tmp_path / "c.nc", values, fill=None, valid_min=np.float32(limit))
        to_codecs(tmp_path / "c.nc", tmp_path / "d.zarr", overwrite=True)
        found = document(tmp_path / "d.zarr")["attributes"]["valid_min"]
        assert (np.float32(found) == np.float32(limit)) == kept
        np.testing.assert_array_equal(values_of(tmp_path / "d.zarr") >= np.float32(found), values >= np.float32(limit))


@pytest.mark.parametrize("target", ["c.nc", "c.zarr"])
def test_codecs_become_attributes_with_the_same_integers(tmp_path: Path, target: str) -> None:
    source = make(tmp_path / "a.nc", field(), valid_max=np.float32(400))
    to_codecs(source, tmp_path / "b.zarr")
    options: Any = {"packed_as": "attributes"} if target.endswith("zarr") else {}
    result = tamis.repack(tmp_path / "b.zarr", tmp_path / target, {}, **options)
    assert result.target_nbytes < 2 * result.source_nbytes
    plain = tamis.repack(source, tmp_path / "plain.zarr", {"v": PACKED}, packed_as="codecs")
    assert plain["v"].largest_error is not None
    with tamis.open(tmp_path / target) as after:
        codes, own = after["v"][...], dict(after["v"].attrs)
    assert codes.dtype == np.int8 or codes.dtype == np.int16
    assert FACTORS[0] in own
    assert own["quantization_bound"] == 0.1
    factor, offset = (np.float32(own[name]) for name in FACTORS)
    floats = values_of(tmp_path / "b.zarr")
    valid = floats != FILL
    assert (codes.astype("f4") * factor + offset)[valid].tobytes() == floats[valid].tobytes()
    assert (codes[~valid] == own["_FillValue"]).all()
    assert tamis.verify(tmp_path / "b.zarr", tmp_path / target).ok
    assert tamis.verify(source, tmp_path / target, bounds={"v": 0.1}).ok


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("between", ["netCDF", "Zarr"])
def test_attributes_become_codecs_and_back_bit_by_bit(tmp_path: Path, dtype: str, between: str) -> None:
    floats = np.dtype(dtype).type
    codes = np.random.default_rng(1).integers(1, 3000, SHAPE).astype("i2")
    codes[0, 0, :5] = 0
    first = make(tmp_path / "a.nc", codes, fill=np.int16(0), scale_factor=floats(0.25), add_offset=floats(200))
    if between == "Zarr":
        tamis.repack(first, tmp_path / "a.zarr", {})
        first = tmp_path / "a.zarr"
    tamis.repack(first, tmp_path / "b.zarr", {}, packed_as="codecs")
    content = document(tmp_path / "b.zarr")
    assert (content["data_type"], content["fill_value"]) == (np.dtype(dtype).name, "NaN")
    found = values_of(tmp_path / "b.zarr")
    np.testing.assert_array_equal(np.isnan(found), codes == 0)
    assert found[codes != 0].tobytes() == (codes * floats(0.25) + floats(200))[codes != 0].tobytes()
    back = tmp_path / f"c{first.suffix}"
    options: Any = {"packed_as": "attributes"} if between == "Zarr" else {}
    tamis.repack(tmp_path / "b.zarr", back, {}, **options)
    assert values_of(back).tobytes() == codes.tobytes()
    assert tamis.verify(first, back).ok
    if between == "Zarr":
        assert files_of(first / "v") == files_of(back / "v")
    else:
        with netCDF4.Dataset(first) as before, netCDF4.Dataset(back) as after:
            for name in before["v"].ncattrs():
                one, other = (file["v"].getncattr(name) for file in (before, after))
                assert one == other
                assert np.asarray(one).dtype == np.asarray(other).dtype, name


def test_inexact_factors_stay_attributes_with_a_note(tmp_path: Path) -> None:
    codes = np.random.default_rng(1).integers(-3000, 3000, SHAPE).astype("i2")
    attributes = {"scale_factor": 0.0017398, "add_offset": 271.35}
    source = make(tmp_path / "a.nc", codes, fill=np.int16(-32767), **attributes)
    result = tamis.repack(source, tmp_path / "b.zarr", {}, packed_as="codecs")
    text = "/v: stays packed with attributes: float64 values by scale_offset, code / 574.778"
    assert any(text in note for note in result.notes)
    content = document(tmp_path / "b.zarr")
    assert content["data_type"] == "int16"
    assert content["attributes"]["scale_factor"] == 0.0017398


def write_foreign(path: Path, scale: float, **settings: Any) -> Any:
    """Floats of another program, packed by codecs, each chunk deflated."""
    values = np.round(np.linspace(0, 40, 4096).reshape(8, 512), 1).astype("f4")
    group = zarr.create_group(path)
    integers = group.create_array("v", shape=values.shape, chunks=(4, 512), dtype="i2", dimension_names=["y", "x"])
    integers[:] = np.rint(values * scale)
    content = document(path)
    content |= {"data_type": "float32", "fill_value": 0.0, **settings}
    cast = {"name": "cast_value", "configuration": {"data_type": "int16"}}
    content["codecs"] = [{"name": "scale_offset", "configuration": {"scale": scale}}, cast, *content["codecs"]]
    (path / "v" / "zarr.json").write_text(json.dumps(content))
    return values_of(path)


def test_codecs_of_others_become_attributes_where_these_are_exact(tmp_path: Path) -> None:
    exact = write_foreign(tmp_path / "a.zarr", 8)
    tamis.repack(tmp_path / "a.zarr", tmp_path / "a.nc", {})
    with netCDF4.Dataset(tmp_path / "a.nc") as file:
        assert (file["v"].dtype, file["v"].scale_factor, file["v"].add_offset) == (np.int16, 0.125, 0)
        assert np.ma.getdata(file["v"][:]).tobytes() == exact.tobytes()
    other = write_foreign(tmp_path / "b.zarr", 10)
    result = tamis.repack(tmp_path / "b.zarr", tmp_path / "b.nc", {})
    with netCDF4.Dataset(tmp_path / "b.nc") as file:
        assert file["v"].dtype == np.float32
        assert np.ma.getdata(file["v"][:]).tobytes() == other.tobytes()
    text = "/v: its codecs pack int16, but it is stored as floats: float32 values by scale_offset, code / 10 + 0, have"
    assert any(text in note for note in result.notes)
    tamis.repack(tmp_path / "b.zarr", tmp_path / "c.nc", {"v": "pack(bound=0.05)|deflate(4)"})
    assert tamis.verify(tmp_path / "b.zarr", tmp_path / "c.nc", bounds="recorded").ok


def test_zarr_to_zarr_keeps_every_byte_unless_something_is_asked(tmp_path: Path) -> None:
    to_codecs(make(tmp_path / "a.nc", field()), tmp_path / "b.zarr", shards=2)
    for number, options in enumerate(({}, {"packed_as": "codecs"})):
        copy = tmp_path / f"c{number}.zarr"
        tamis.repack(tmp_path / "b.zarr", copy, {}, **options)  # type: ignore[arg-type]
        assert files_of(tmp_path / "b.zarr" / "v") == files_of(copy / "v")
    tamis.repack(tmp_path / "b.zarr", tmp_path / "d.zarr", {"v": "zstd(3)"})
    before, after = document(tmp_path / "b.zarr"), document(tmp_path / "d.zarr")
    assert {name: value for name, value in before.items() if name not in ("codecs", "chunk_grid")} == {
        name: value for name, value in after.items() if name not in ("codecs", "chunk_grid")
    }
    assert names_of(after)[:3] == ["cast_value", "scale_offset", "cast_value"]
    assert names_of(after)[-1] == "zstd"
    assert values_of(tmp_path / "b.zarr").tobytes() == values_of(tmp_path / "d.zarr").tobytes()


def test_wide_integers_become_attributes_if_their_values_allow_it(tmp_path: Path) -> None:
    values = (np.arange(6 * 24 * 36).reshape(SHAPE) * 100).astype("f4")
    source = make(tmp_path / "a.nc", values, fill=None)
    to_codecs(source, tmp_path / "b.zarr", "pack(bound=0.5)")
    cast = document(tmp_path / "b.zarr")["codecs"][1]
    assert cast["configuration"]["data_type"] == "int32"
    tamis.repack(tmp_path / "b.zarr", tmp_path / "c.nc", {})
    with netCDF4.Dataset(tmp_path / "c.nc") as file:
        assert file["v"].dtype == np.int32


def test_packing_again_adds_both_errors_and_gives_nan(tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc", field())
    tamis.repack(source, tmp_path / "b.nc", {"v": PACKED})
    result = to_codecs(tmp_path / "b.nc", tmp_path / "c.zarr", "pack(bound=0.3)|deflate(1)")
    assert any("packed before" in note for note in result["v"].notes)
    content = document(tmp_path / "c.zarr")
    assert content["attributes"]["quantization_bound"] == pytest.approx(0.4)
    found = values_of(tmp_path / "c.zarr")
    np.testing.assert_array_equal(np.isnan(found), field() == FILL)


@pytest.mark.parametrize(
    ("target", "options", "words"),
    [
        ("b.nc", {"packed_as": "codecs"}, r"for packed_as, choose the name of a Zarr store, such as b\.zarr"),
        ("b.nc", {"packed_as": "attributes"}, r"for packed_as, choose the name of a Zarr store"),
        ("b.zarr", {"packed_as": "codecs", "zarr_format": 2}, "Zarr 2 has no codecs for packed values: leave out"),
        ("b.zarr", {"packed_as": "floats"}, "expected packed_as to be attributes or codecs or None, got 'floats'"),
    ],
)
def test_option_is_refused_where_it_does_not_apply(
    tmp_path: Path, target: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ParameterError, match=words):
        tamis.repack(make(tmp_path / "a.nc", field()), tmp_path / target, {"v": PACKED}, **options)
    assert not (tmp_path / target).exists()


def test_what_codecs_cannot_keep_is_refused_or_kept(tmp_path: Path) -> None:
    values = field()
    values[2, 5, 5] = np.array([0xFFC00000], "u4").view("f4")[0]
    source = make(tmp_path / "a.nc", values)
    with pytest.raises(DataError, match=r"/v: .*expected NaN with the bits 0x7fc00000, .* found 0xffc00000"):
        to_codecs(source, tmp_path / "b.zarr")
    result = tamis.repack(source, tmp_path / "b.zarr", {"*": PACKED}, packed_as="codecs")
    assert "found 0xffc00000" in dict(result.kept)["/v"]
    assert document(tmp_path / "b.zarr")["data_type"] == "float32"
    tamis.repack(source, tmp_path / "c.zarr", {"v": PACKED})
    assert document(tmp_path / "c.zarr")["data_type"] == "int8"


def test_an_interrupted_run_with_another_form_is_made_anew(tmp_path: Path) -> None:
    source = make(tmp_path / "a.nc", field())
    tamis.repack(source, tmp_path / "b.zarr", {"v": PACKED}, resume=True)
    done = tamis.repack(source, tmp_path / "b.zarr", {"v": PACKED}, resume=True)
    assert done.done_already
    other = to_codecs(source, tmp_path / "b.zarr", resume=True, overwrite=True)
    assert not other.done_already
    assert to_codecs(source, tmp_path / "b.zarr", resume=True).done_already
    assert document(tmp_path / "b.zarr")["data_type"] == "float32"


@pytest.mark.parametrize("offset", [0, 5000])
def test_shards_have_a_code_for_0_without_which_zarr_python_does_not_open_them(tmp_path: Path, offset: int) -> None:
    values = field() + np.float32(offset)
    source = make(tmp_path / "a.nc", values, fill=FILL)
    to_codecs(source, tmp_path / "b.zarr", shards=4)
    inner = document(tmp_path / "b.zarr")["codecs"][0]["configuration"]["codecs"]
    encode = dict(inner[2]["configuration"]["scalar_map"]["encode"])
    line = {name: np.float32(number) for name, number in inner[1]["configuration"].items()}
    assert encode[float(-line["offset"] * line["scale"])] == encode["NaN"]
    with tamis.open(tmp_path / "b.zarr") as file:
        assert np.abs(file["v"][...] - values)[values != FILL].max() <= 0.1
    tamis.repack(tmp_path / "b.zarr", tmp_path / "c.zarr", {"v": "zstd(3)"})  # of chunks without shards
    tamis.repack(tmp_path / "c.zarr", tmp_path / "d.zarr", {"v": "zstd(1)"}, shards=3)
    assert values_of(tmp_path / "d.zarr").tobytes() == values_of(tmp_path / "b.zarr").tobytes()
    if HAS_CODECS:
        found = zarr.open_array(tmp_path / "d.zarr" / "v", mode="r")[...]
        assert found.tobytes() == values_of(tmp_path / "b.zarr").tobytes()
    codes = (values * 0 + 7).astype("i1")
    make(tmp_path / "e.nc", codes, fill=None, scale_factor=np.float32(0.5), add_offset=np.float32(offset + 200))
    result = tamis.repack(tmp_path / "e.nc", tmp_path / "e.zarr", {}, packed_as="codecs", shards=4)
    assert any("only if there is a code for 0 or for missing values" in note for note in result.notes)


@pytest.mark.properties
@settings(max_examples=int(os.environ.get("PROPERTY_EXAMPLES", "15")))
@given(st.integers(0, 2**32 - 1), st.sampled_from(["f4", "f8", ">f4", "i2", "i4"]), st.integers(-6, 6), st.booleans())
def test_every_form_becomes_the_other_with_the_same_integers(
    seed: int, dtype: str, exponent: int, shards: bool
) -> None:
    random = np.random.default_rng(seed)
    scale = 10.0**exponent if dtype[-2] == "f" else 100.0
    values = random.choice([0, 1, 273]) * scale + scale * random.standard_normal((5, 7)) * random.choice([1, 30])
    values = values.astype(dtype)
    fill = values.dtype.type(random.choice([-999, 1000] if dtype[-2] == "i" else [-999, 1e20, 9.969209968386869e36]))
    values[random.random(values.shape) < 0.2] = fill
    if dtype[-2] == "f":
        values[random.random(values.shape) < 0.1] = np.nan
    bound = 2.0 if dtype[-2] == "i" else scale / 10
    options: Any = {"shards": 3} if shards else {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with h5py.File(folder / "a.h5", "w") as file:
            file.create_dataset("v", data=values, chunks=(2, 3)).attrs["_FillValue"] = fill
        to_codecs(folder / "a.h5", folder / "b.zarr", f"pack(bound={bound})|deflate(1)", **options)
        floats = values_of(folder / "b.zarr")
        missing = np.isnan(values.astype("f8")) | (values == fill)
        assert np.abs(floats.astype("f8") - values)[~missing].max(initial=0) <= bound
        assert floats[missing].tobytes() == values.astype(floats.dtype)[missing].tobytes()
        tamis.repack(folder / "b.zarr", folder / "c.nc", {})
        tamis.repack(folder / "c.nc", folder / "d.zarr", {}, packed_as="codecs", **options)
        tamis.repack(folder / "d.zarr", folder / "e.nc", {})
        again = values_of(folder / "d.zarr")
        assert again[~missing].tobytes() == floats[~missing].tobytes()
        assert np.isnan(again[missing]).all()
        assert values_of(folder / "c.nc").tobytes() == values_of(folder / "e.nc").tobytes()
        if HAS_CODECS:
            assert zarr.open_array(folder / "b.zarr" / "v", mode="r")[...].tobytes() == floats.tobytes()


@pytest.mark.check
def test_ten_million_hostile_values_through_the_codecs(tmp_path: Path) -> None:
    rows, count = 500, 400_000
    seen, refused = 0, dict[str, str]()
    for name, flat, attributes, bound in hostile(np.random.default_rng(12), count):
        values = flat.reshape(rows, -1)
        with h5py.File(tmp_path / "a.h5", "w") as file:
            dataset = file.create_dataset("v", data=values, chunks=(50, values.shape[1]))
            dataset.attrs.update(attributes)
        try:
            recipe = f"pack(bound={bound})|shuffle|deflate(1)"
            result = to_codecs(tmp_path / "a.h5", tmp_path / "b.zarr", recipe, overwrite=True)
        except (ParameterError, DataError) as error:
            refused[name] = str(error)
            continue
        assert (result["v"].largest_error or 0) <= bound
        missing = np.isnan(values)
        if "_FillValue" in attributes:
            missing |= values == attributes["_FillValue"]
        readings = {"tamis": values_of(tmp_path / "b.zarr")}
        if HAS_CODECS:
            readings["zarr-python"] = zarr.open_array(tmp_path / "b.zarr" / "v", mode="r")[...]
        for reader, found in readings.items():
            assert found.dtype == values.dtype
            assert found[missing].tobytes() == values[missing].tobytes(), (name, reader)
            errors = np.abs(found.astype("f8") - values)[~missing]
            assert errors.max(initial=0) <= bound, (name, reader, values.dtype)
            for mark in (attributes.get("_FillValue", np.nan), np.nan):
                assert not (found[~missing] == mark).any(), (name, reader)
        seen += values.size
    print(f"{seen} values: refused {refused}")
    possible = {"spikes", "heavy", "denormal", "large", "tiny", "far from zero", "around zero", "mark among values"}
    assert refused.keys() <= possible
    assert seen > 10_000_000
