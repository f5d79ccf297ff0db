"""Repack with a rounding in front of the filters: netCDF-C's values and attributes, proven, resumed, not repeated."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest

import tamis
from tamis import BitGroom, BitRound, Granular, ParameterError
from tamis.rounding import Rounding

Real = Callable[[str], Path]
Run = Callable[..., str]

RECIPES = [
    "bitround(keepbits=7)|shuffle|deflate(4)",
    "granular(digits=3)|shuffle|deflate(4)",
    "bitgroom(digits=3)|deflate(1)",
]
FILL = np.float32(9.96921e36)


def field() -> Any:
    return (280 + 30 * np.sin(np.arange(33 * 65) / 17)).reshape(33, 65).astype("f4")


def make(path: Path, data: Any, attributes: dict[str, Any] | None = None, **options: Any) -> Path:
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("v", data=data, **{"chunks": (8, 17)} | options)
        for name, value in (attributes or {}).items():
            dataset.attrs[name] = value
    return path


def values(path: Path, name: str = "v") -> Any:
    with h5py.File(path) as file:
        return file[name][()]


def by_netcdf(path: Path, data: Any, rounding: Rounding, fill: Any = None) -> Any:
    """Let netCDF-C write the whole variable rounded, in one call, and give its values and attributes."""
    with netCDF4.Dataset(path, "w") as file:
        dims = [f"d{axis}" for axis in range(data.ndim)]
        for dim, extent in zip(dims, data.shape, strict=True):
            file.createDimension(dim, extent)
        options = {"quantize_mode": rounding.quantize_mode, "significant_digits": rounding.number}
        variable = file.createVariable("v", data.dtype, dims, fill_value=fill, **options)
        variable.set_auto_maskandscale(False)
        variable[:] = data
    with h5py.File(path) as file:
        return file["v"][()], dict(file["v"].attrs)


@pytest.mark.parametrize(
    ("name", "variable", "text"),
    [
        ("cam_ts_100days.nc", "TS", "bitround(keepbits=7)|deflate(1)"),
        ("pop_sst_60days.nc", "SST", "granular(digits=3)|deflate(1)"),
        ("era5_levels_members.nc", "t", "bitgroom(digits=6)|shuffle|deflate(1)"),
    ],
)
@pytest.mark.matrix
def test_repack_writes_what_netcdf_quantizes(name: str, variable: str, text: str, real: Real, tmp_path: Path) -> None:
    rounding = tamis.Pipeline.parse(text).rounding
    assert rounding is not None
    (result,) = tamis.repack(real(name), tmp_path / "a.nc", {variable: text}).datasets
    with h5py.File(real(name)) as file:
        source, fill = file[variable][()], np.ravel(file[variable].attrs.get("_FillValue", np.nan))[0]
        scale = np.ravel(file[variable].attrs.get("scale_factor", 1))[0]
    expected, attributes = by_netcdf(tmp_path / "b.nc", source, rounding, fill)
    assert values(tmp_path / "a.nc", variable).tobytes() == expected.tobytes()
    with h5py.File(tmp_path / "a.nc") as file:
        ours = file[variable].attrs
        assert ours[rounding.attribute].dtype == attributes[rounding.attribute].dtype == np.dtype("i4")
        assert ours[rounding.attribute].tolist() == attributes[rounding.attribute].tolist() == [rounding.number]
    assert (result.pipeline, result.bound, result.relative_bound) == (
        text,
        None,
        rounding.relative_bound,
    )
    valid = np.isfinite(source) & (source != fill)
    assert (result.missing_values, result.unrounded_values) == (np.count_nonzero(~valid), 0)
    assert result.largest_error == pytest.approx(scale * np.abs(source.astype("f8") - expected)[valid].max())


def test_verify_checks_the_recorded_bound_of_a_rounding(sample: Path, tmp_path: Path) -> None:
    target = tmp_path / "a.nc"
    tamis.repack(sample, target, {"TS": RECIPES[0]})
    found = tamis.verify(sample, target, bounds="recorded")
    assert found.ok
    assert (found["TS"].status, found["TS"].bound, found["TS"].relative_bound) == ("within-bound", None, 2**-8)
    assert found["TS"].tally is not None
    assert 2**-9 < found["TS"].tally.stored_relative <= 2**-8
    assert "0.391 % recorded" in str(found)
    assert json.loads(found.to_json())["datasets"][0]["relative_bound"] in (None, 2**-8)
    assert not tamis.verify(sample, target).ok  # without a bound, bits must be the same
    with h5py.File(target, "r+") as file:
        file["TS"][3, 5, 6] *= 1.02
    (violation,) = [item for item in tamis.verify(sample, target, bounds="recorded").violations if item.code == "bound"]
    assert "expected relative errors of at most 0.00390625" in violation.text


def test_verify_of_values_rounded_before_wants_the_same_bits(sample: Path, tmp_path: Path) -> None:
    tamis.repack(sample, tmp_path / "a.nc", {"TS": RECIPES[0]})
    tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", {"TS": "shuffle|deflate(9)"})
    assert tamis.verify(tmp_path / "a.nc", tmp_path / "b.nc", bounds="recorded").ok
    with h5py.File(tmp_path / "b.nc", "r+") as file:
        file["TS"][3, 5, 6] *= 1.001
    assert not tamis.verify(tmp_path / "a.nc", tmp_path / "b.nc", bounds="recorded").ok


def test_repack_keeps_missing_values_zeros_and_validity_that_netcdf_spoils(tmp_path: Path) -> None:
    data = field()
    data[0, :9] = [FILL, np.nan, -np.nan, np.inf, -np.inf, 0, -0.0, 1e20, 1e-41]
    data[1, :3] = [299.9, FILL * np.float32(1.001), np.finfo("f4").max]
    data[1, 3:5] = [309, 311]  # both become 320
    attributes = {"_FillValue": FILL, "missing_value": np.float32(1e20), "valid_max": np.float32(310)}
    source = make(tmp_path / "a.h5", data, attributes)
    (result,) = tamis.repack(source, tmp_path / "b.h5", {"v": "bitround(keepbits=3)|shuffle|deflate(4)"}).datasets
    after = values(tmp_path / "b.h5")
    same = np.ascontiguousarray(data).view("u4") == np.ascontiguousarray(after).view("u4")
    assert same[0, :8].all()
    assert after[0, 8] == 0
    assert same[1, 1:4].all()
    assert after[1, 4] == 320
    absent = ~np.isfinite(data) | (data == FILL) | (data == np.float32(1e20))
    assert result.missing_values == absent.sum() == 6
    assert np.array_equal(data > 310, after > 310)
    expected = (~absent & same & (BitRound(3).round(data) != data)).sum()
    assert result.unrounded_values == expected + 1 > 100  # the largest float stays without a mark, too
    assert (
        f"{expected + 1} values not rounded, because rounding would make them missing or let them cross a limit"
        in str(result.notes)
    )
    assert tamis.verify(source, tmp_path / "b.h5", bounds="recorded").ok


@pytest.mark.parametrize("text", [*RECIPES, "bitgroom(digits=2)|zfp(reversible=true)"])
@pytest.mark.parametrize("chunks", [None, (5, 7), (1, 65)])
def test_repack_makes_the_same_values_for_any_threads_and_chunks(text: str, chunks: Any, tmp_path: Path) -> None:
    source = make(tmp_path / "a.h5", field(), maxshape=(None, 65))
    shapes = {} if chunks is None else {"v": chunks}
    for threads in (1, 3):
        tamis.repack(source, tmp_path / f"{threads}.h5", {"v": text}, chunks=shapes, threads=threads)
    assert (tmp_path / "1.h5").read_bytes() == (tmp_path / "3.h5").read_bytes()
    rounding = tamis.Pipeline.parse(text).rounding
    assert rounding is not None
    assert np.array_equal(values(tmp_path / "1.h5"), rounding.round(field()))


def test_repack_does_not_round_twice(sample: Path, tmp_path: Path) -> None:
    once, twice = tmp_path / "a.nc", tmp_path / "b.nc"
    tamis.repack(sample, once, {"TS": RECIPES[1]})
    (copied,) = tamis.repack(once, twice, {"TS": RECIPES[1]}).datasets
    assert copied.copied
    assert values(twice, "TS").tobytes() == values(once, "TS").tobytes()
    (anew,) = tamis.repack(once, twice, {"TS": "granular(digits=3)|zstd"}, overwrite=True).datasets
    assert (anew.pipeline, anew.bound, anew.largest_error) == ("zstd(3)", 0, 0)
    says = "its attribute _QuantizeGranularBitRoundNumberOfSignificantDigits says that its values are rounded by"
    assert f"{says} granular(digits=3): they are not rounded again" in anew.notes
    with pytest.raises(ParameterError, match="expected values that are not rounded yet for bitround"):
        tamis.repack(once, tmp_path / "c.nc", {"TS": RECIPES[0]})
    (kept,) = [
        reason for path, reason in tamis.repack(once, tmp_path / "c.nc", {"*": RECIPES[0]}).kept if path == "/TS"
    ]
    assert "expected values that are not rounded yet" in kept
    (lossy,) = tamis.repack(once, tmp_path / "d.nc", {"TS": "zfp(accuracy=1)"}).datasets
    note = "its values were already rounded by granular(digits=3): the new error adds to the old one"
    assert f"{note}, which is relative: no bound of both is recorded" in lossy.notes


def test_repack_resumes_only_chunks_of_the_same_rounding(sample: Path, tmp_path: Path) -> None:
    target, whole = tmp_path / "a.nc", tmp_path / "b.nc"

    def stop(step: object, done: int, total: int) -> None:
        if done == total // 2 > 0:
            raise KeyboardInterrupt

    def interrupted(text: str) -> None:
        with pytest.raises(KeyboardInterrupt):
            tamis.repack(sample, target, {"TS": text}, resume=True, threads=1, progress=stop)

    tamis.repack(sample, whole, {"TS": RECIPES[0]})
    interrupted(RECIPES[0])
    (result,) = tamis.repack(sample, target, {"TS": RECIPES[0]}, resume=True).datasets
    assert result.reused_chunks > 0
    assert target.read_bytes() == whole.read_bytes()
    assert tamis.repack(sample, target, {"TS": RECIPES[0]}, resume=True).done_already
    target.unlink()
    interrupted("bitround(keepbits=8)|shuffle|deflate(4)")
    again = tamis.repack(sample, target, {"TS": RECIPES[0]}, resume=True)
    assert "bitround(keepbits=8)" in str(again.notes)
    assert again.datasets[0].reused_chunks == 0
    assert target.read_bytes() == whole.read_bytes()


def test_preview_and_json_say_bound_and_rounding(sample: Path, tmp_path: Path) -> None:
    preview = tamis.preview_repack(sample, tmp_path / "a.nc", {"TS": RECIPES[0]})
    (planned,) = [item for item in preview.datasets if item.path == "/TS"]
    assert (planned.pipeline, planned.bound, planned.relative_bound) == (RECIPES[0], None, 2**-8)
    assert "0.391 %" in str(preview)
    result = tamis.repack(sample, tmp_path / "a.nc", {"TS": RECIPES[0]})
    entry = json.loads(result.to_json())["datasets"][0]
    assert (entry["pipeline"], entry["bound"], entry["relative_bound"]) == (RECIPES[0], None, 2**-8)
    (shown,) = [item for item in tamis.inspect(tmp_path / "a.nc").datasets if item.path == "/TS"]
    assert shown.rounding == BitRound(7)
    assert shown.values_in_words.startswith("rounded by bitround(keepbits=7): relative error at most 0.391 %")
    assert shown.to_dict()["rounding"] == {
        "text": "bitround(keepbits=7)",
        "attribute": "_QuantizeBitRoundNumberOfSignificantBits",
        "number": 7,
        "relative_bound": 2**-8,
        "absolute_bound": None,
    }
    assert str(shown.pipeline) == "shuffle|deflate(4)"


def test_repack_by_a_pattern_leaves_coordinates_and_integers(sample: Path, tmp_path: Path) -> None:
    result = tamis.repack(sample, tmp_path / "a.nc", {"*": RECIPES[0]})
    assert [item.path for item in result.datasets] == ["/TS"]
    assert "name it to store it lossily" in dict(result.kept)["/lat"]


@pytest.mark.parametrize(
    ("data", "recipe", "message"),
    [
        (np.arange(600, dtype="i2").reshape(20, 30), RECIPES[0], "expected float32 or float64 for bitround.*got int16"),
        (field(), "granular(digits=7)|deflate(4)", "expected digits of 1 to 6 for float32"),
        (field(), "zfp(accuracy=0.1)|bitround(keepbits=7)", "expected bitround.* before all filters, got zfp"),
    ],
)
def test_repack_refuses_what_cannot_be_rounded(data: Any, recipe: str, message: str, tmp_path: Path) -> None:
    source = make(tmp_path / "a.h5", data)
    with pytest.raises(ParameterError, match=message):
        tamis.repack(source, tmp_path / "b.h5", {"v": recipe})
    assert not (tmp_path / "b.h5").exists()


def test_repack_converts_other_byte_order_and_packed_floats(tmp_path: Path) -> None:
    source = make(tmp_path / "a.h5", field().astype(">f4"), {"scale_factor": 2.0, "add_offset": 5.0})
    (result,) = tamis.repack(source, tmp_path / "b.h5", {"v": RECIPES[0]}).datasets
    assert np.array_equal(values(tmp_path / "b.h5"), BitRound(7).round(field()))
    assert any("to native <f4, which bitround needs" in note for note in result.notes)
    assert any("relative to the stored values" in note for note in result.notes)
    assert tamis.verify(source, tmp_path / "b.h5", bounds="recorded").ok


def test_repack_with_companion_keeps_missing_values_in_place(tmp_path: Path) -> None:
    data = field()
    data[3:20] = FILL
    source = make(tmp_path / "a.h5", data, {"_FillValue": FILL})
    (result,) = tamis.repack(source, tmp_path / "b.h5", {"v": RECIPES[0]}, missing="mask").datasets
    assert (result.missing_mask, result.missing_values) == ("", 17 * 65)
    assert (values(tmp_path / "b.h5")[3:20] == FILL).all()


def test_other_programs_read_a_rounded_file(sample: Path, tmp_path: Path, tool: Run) -> None:
    target = tmp_path / "a.nc"
    tamis.repack(sample, target, {"TS": RECIPES[2]})
    assert "TS:_QuantizeBitGroomNumberOfSignificantDigits = 3 ;" in tool("ncdump", "-h", target)
    with netCDF4.Dataset(target) as file:
        assert file["TS"].quantization() == (3, "BitGroom")
        assert np.array_equal(file["TS"][:], BitGroom(3).round(values(sample, "TS")))


def test_repack_of_integers_in_a_pattern_says_why(tmp_path: Path) -> None:
    source = make(tmp_path / "a.h5", np.arange(20000, dtype="i4").reshape(100, 200))
    kept = dict(tamis.repack(source, tmp_path / "b.h5", {"*": str(Granular(3)) + "|deflate(4)"}).kept)
    assert "expected float32 or float64 for granular(digits=3), got int32" in kept["/v"]


def test_repack_rounds_a_classic_file(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_CLASSIC") as file:
        for dim, extent in (("y", 33), ("x", 65)):
            file.createDimension(dim, extent)
        file.createVariable("v", "f4", ("y", "x"))[:] = field()
    for text in RECIPES:
        rounding = tamis.Pipeline.parse(text).rounding
        assert rounding is not None
        tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", {"v": text}, overwrite=True)
        assert np.array_equal(values(tmp_path / "b.nc"), rounding.round(field()))
        with netCDF4.Dataset(tmp_path / "b.nc") as file:
            assert file["v"].quantization() == (rounding.number, rounding.quantize_mode)
        assert tamis.verify(tmp_path / "a.nc", tmp_path / "b.nc", bounds="recorded").ok
