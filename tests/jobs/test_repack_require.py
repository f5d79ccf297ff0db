"""Repack with requirements: they hold for every value and dataset, whatever the filters promise."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray
import zarr
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis import BoundError, FileError, ParameterError
from tamis.accuracy import Spectra, dssim, ks_probability
from tamis.cli import main
from tamis.jobs.repack import new_target, required
from tamis.rewrite.surveys import measured_fields

Make = Callable[..., Path]
Run = Callable[..., str]

LOOSE = "zfp(accuracy=0.25)|shuffle|deflate(4)"
ROUNDED = "bitround(keepbits=8)|shuffle|deflate(1)"


def field(shape: tuple[int, ...] = (24, 32, 32), mean: float = 280.0) -> Any:
    """Return a smooth field with noise, a part of which is rough."""
    rng = np.random.default_rng(7)
    waves: Any = sum(np.sin(at / (5 + axis)) for axis, at in enumerate(np.indices(shape)))
    values = mean + 10 * waves + 0.05 * rng.standard_normal(shape)
    values[: shape[0] // 3] += rng.standard_normal(values[: shape[0] // 3].shape)
    return values.astype("f4")


@pytest.fixture
def source(tmp_path: Path, make: Make) -> Path:
    return make(tmp_path / "a.h5", x={"data": field(), "chunks": (8, 16, 16)})


def repacked(source: Path, target: Path, require: Any, filters: str = LOOSE, **options: Any) -> Any:
    (result,) = tamis.repack(source, target, {"x": filters}, require={"x": require}, **options).datasets
    return result


def values_of(path: Path) -> Any:
    with h5py.File(path) as file:
        return file["x"][()]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["repack", *map(str, arguments)])


def test_looser_filter_keeps_the_required_error_in_fewer_bytes(source: Path, tmp_path: Path) -> None:
    before = repacked(source, tmp_path / "own.h5", "abs=0.1", LOOSE.replace("0.25", "0.1"))
    result = repacked(source, tmp_path / "b.h5", "abs=0.1")
    assert result.ratio > 1.1 * before.ratio
    assert (result.bound, result.tolerance, result.require) == (0.1, 0.25, "abs=0.1")
    assert 0.0625 / 2 < np.abs(values_of(tmp_path / "b.h5") - field()).max() == result.largest_error <= 0.1
    assert (before.bound, before.tolerance) == (0.1, None)  # the accuracy promises more
    assert before.missed_chunks == result.missed_chunks == 0


@pytest.mark.parametrize("filters", [LOOSE.replace("0.25", "1"), "zfp(rate=7)|shuffle|deflate(1)", ROUNDED])
def test_chunks_that_miss_are_stored_without_loss_and_counted(filters: str, source: Path, tmp_path: Path) -> None:
    result = repacked(source, tmp_path / "b.h5", "abs=0.2", filters)
    after, before = values_of(tmp_path / "b.h5"), field()
    assert np.abs(after - before).max() == result.largest_error <= 0.2 == result.bound
    chunks = [
        (slice(t, t + 8), slice(y, y + 16), slice(x, x + 16)) for t in (0, 8, 16) for y in (0, 16) for x in (0, 16)
    ]
    exact = sum(np.array_equal(after[chunk], before[chunk]) for chunk in chunks)
    assert result.missed_chunks == exact
    if filters == ROUNDED:
        assert (exact, result.lossless_chunks) == (12, 0)  # 280 in steps of 1 errs by up to 0.5
        assert "filters that lose less may take fewer bytes" in str(result.notes)
    else:
        assert 0 < exact == result.lossless_chunks < 12
        assert f"{exact} of 12 chunks stored without loss, because zfp" in str(result.notes)
        assert "does not keep abs=0.2 there" in str(result.notes)


@settings(max_examples=30, deadline=None)
@given(
    words=st.lists(
        st.sampled_from(["abs=0.03", "rel=0.01", "range=1e-3", "std=0.02", "digits=2", "bits=5", "sign", "zeros"]),
        min_size=1,
        max_size=3,
        unique=True,
    ),
    filters=st.sampled_from(
        [LOOSE, "zfp(bound=0.5)|shuffle", "zfp(precision=9)|deflate(1)", ROUNDED, "absolute(0.1)|shuffle"]
    ),
    shape=st.sampled_from([(9, 13), (40,), (6, 8, 8)]),
    missing=st.booleans(),
    companion=st.booleans(),
)
def test_what_is_required_of_each_value_holds_for_any_field(
    words: list[str], filters: str, shape: tuple[int, ...], missing: bool, companion: bool, tmp_path_factory: Any
) -> None:
    folder, values = tmp_path_factory.mktemp("require"), field(shape, 0.0)
    values[np.abs(values) < 4] = 0
    values[-2:] = np.nan if missing else values[-2:]
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=tuple(min(extent, 8) for extent in shape))
    result = repacked(
        folder / "a.h5", folder / "b.h5", ",".join(words), filters, missing="mask" if companion else "exact"
    )
    with tamis.open(folder / "b.h5") as opened:
        decoded = opened["x"][()]
    assert np.array_equal(np.isnan(decoded), np.isnan(values))
    before, after = values[np.isfinite(values)].astype("f8"), decoded[np.isfinite(values)].astype("f8")
    error = np.abs(after - before)
    assert error.max() == result.largest_error
    held = {
        "abs": error.max() <= 0.03,
        "rel": (error <= 0.01 * np.abs(before)).all(),
        "range": error.max() <= 1e-3 * (before.max() - before.min()) * (1 + 1e-12),
        "std": error.max() <= 0.02 * before.std() * (1 + 1e-12),
        "digits": (error <= 0.05 * np.abs(before)).all(),
        "bits": (error <= 2**-6 * np.abs(before)).all(),
        "sign": (before * after >= 0).all() and (after[before == 0] >= 0).all(),
        "zeros": np.array_equal(before == 0, after == 0),
    }
    assert not [word for word in words if not held[word.partition("=")[0]]]


def test_tolerance_for_a_bound_follows_a_smaller_required_error(source: Path, tmp_path: Path) -> None:
    result = repacked(source, tmp_path / "b.h5", "abs=0.1", "zfp(bound=4)|shuffle|deflate(4)")
    assert (result.bound, result.tolerance) == (0.1, 0.25)
    same = repacked(source, tmp_path / "c.h5", "abs=9", "zfp(bound=0.1)|shuffle|deflate(4)")
    assert (same.bound, same.tolerance) == (0.1, 0.25)


def test_integers_keep_an_error_below_one(tmp_path: Path, make: Make) -> None:
    source = make(tmp_path / "a.h5", x={"data": (100 * field()).astype("i4"), "chunks": (8, 16, 16)})
    for filters in ("zfp(bound=5)|shuffle", "zfp(precision=8)|shuffle"):
        result = repacked(source, tmp_path / "b.h5", "abs=0.5", filters, overwrite=True)
        assert (result.bound, result.largest_error) == (0.5, 0)


def test_packed_values_keep_what_is_required_in_units_of_the_variable(tmp_path: Path, make: Make) -> None:
    values = ((field(mean=0.0) + 30) / -0.5).astype("f4")  # 30 is 0 in units of the variable
    attributes = {".scale_factor": -0.5, ".add_offset": -30.0, ".units": "K"}
    source = make(tmp_path / "a.h5", x={"data": values, "chunks": (8, 16, 16), **attributes})
    result = repacked(source, tmp_path / "b.h5", "abs=0.1,sign,rmse=1,dssim=0.1", "zfp(accuracy=1)|shuffle|deflate(1)")
    before, after = (array.astype("f8") * -0.5 - 30 for array in (values, values_of(tmp_path / "b.h5")))
    assert np.abs(after - before).max() == pytest.approx(result.largest_error)
    assert result.largest_error <= result.bound == 0.1
    assert not ((before >= 0) & (after < 0)).any()
    assert result.measures["rmse"] == pytest.approx(np.sqrt(np.mean((after - before) ** 2)))
    assert result.measures["dssim"] == min(map(dssim, before, after))


def test_constant_data_have_no_range_and_stay_as_they_are(tmp_path: Path, make: Make) -> None:
    source = make(tmp_path / "a.h5", x={"data": np.full((8, 8), 0.3, "f4"), "chunks": (8, 8)})
    result = repacked(source, tmp_path / "b.h5", "range=0.1,psnr=9,corr=0.5")
    assert (result.bound, result.largest_error, result.lossless_chunks) == (0, 0, 1)


def test_required_zfp_that_misses_is_an_error(source: Path, tmp_path: Path) -> None:
    with h5py.File(source, "a") as file:
        file["x"][:] = field(mean=0.0)
    with pytest.raises(BoundError, match=r"/x: chunk at .*zfp\(accuracy=64\) cannot keep the sign of each value"):
        repacked(source, tmp_path / "b.h5", "sign", "zfp(accuracy=64)!|deflate(1)")
    assert not (tmp_path / "b.h5").exists()


MISSED = [
    ("rmse=0.001", r"expected rmse of at most 0\.001, reached 0\.0"),
    ("psnr=90,corr=0.5", r"expected psnr of at least 90\.0, reached [67]"),
    ("corr=0.99999999", r"expected corr of at least 0\.99999999, reached 0\.99999"),
    ("spectrum=1e-6", r"expected spectrum of at most 1e-06, reached 0\.0"),
    ("dssim=0.999999", r"expected dssim of at least 0\.999999, reached 0\.9"),
]


@pytest.mark.parametrize(("require", "message"), MISSED)
def test_missed_measure_of_a_dataset_leaves_no_target_and_exits_3(
    require: str, message: str, source: Path, tmp_path: Path
) -> None:
    with pytest.raises(BoundError, match=rf"^/x: {message}\d* with zfp.*; nothing was kept|^/x: {message}") as caught:
        repacked(source, tmp_path / "b.h5", require)
    assert caught.value.dataset == "/x"
    assert [path.name for path in tmp_path.iterdir()] == ["a.h5"]
    done = run(source, tmp_path / "b.h5", "-f", f"x:{LOOSE}", "--require", f"x:{require}", "--json")
    assert done.exit_code == 3
    assert json.loads(done.stdout)["error"]["dataset"] == "/x"
    assert [path.name for path in tmp_path.iterdir()] == ["a.h5"]


def test_a_miss_ends_a_run_before_other_datasets_are_written(tmp_path: Path, make: Make) -> None:
    data = {"data": field(), "chunks": (8, 32, 32)}
    source = make(tmp_path / "a.h5", a=data, b=data)
    steps: list[str] = []

    def repack(require: str, **options: Any) -> None:
        steps.clear()
        recipes, progress = {"a": LOOSE, "b": LOOSE}, lambda step, *_: steps.append(str(step))
        tamis.repack(source, tmp_path / "b.h5", recipes, require={"a": require}, progress=progress, **options)

    for word in ("rmse=1e-9", "corr=1", "dssim=1", "spectrum=1e-9"):
        with pytest.raises(BoundError, match=f"^/a: expected {word.partition('=')[0]}"):
            repack(word)
        assert steps
        assert not any("/b" in step for step in steps)
    with pytest.raises(BoundError, match=r"^/a: expected dssim"):
        repack("dssim=1", chunks={"a": (8, 16, 32)})  # which is known when the file is read again
    assert any("writing /b" in step for step in steps)
    assert [path.name for path in tmp_path.iterdir()] == ["a.h5"]


@pytest.mark.parametrize("companion", [False, True])
def test_measures_that_hold_are_those_of_the_values(companion: bool, tmp_path: Path, make: Make) -> None:
    values = field()
    values[::5, :3, 4] = np.nan
    source = make(tmp_path / "a.h5", x={"data": values, "chunks": (8, 16, 16)})
    options = {"missing": "mask"} if companion else {}
    result = repacked(source, tmp_path / "b.h5", "rmse=1,psnr=9,corr=0.9,dssim=0.5,ks=0.5,spectrum=1", **options)
    with tamis.open(tmp_path / "b.h5") as file:
        decoded = file["x"][()]
    before, after = (array[np.isfinite(values)].astype("f8") for array in (values, decoded))
    rmse = np.sqrt(np.mean((after - before) ** 2))
    expected = {"rmse": rmse, "psnr": 20 * np.log10(np.ptp(before) / rmse), "corr": np.corrcoef(before, after)[0, 1]}
    assert {word: result.measures[word] for word in expected} == pytest.approx(expected, rel=1e-9)
    assert result.measures["ks"] == 1  # two samples of so few values differ by more
    fields = [dssim(one, two, np.isfinite(one)) for one, two in zip(values, decoded, strict=True)]
    assert result.measures["dssim"] == min(fields) < 1
    rows = np.isfinite(values).all(axis=-1)
    power, other = (np.abs(np.fft.rfft(each[rows].astype("f8")))[:, 1:9] ** 2 for each in (values, decoded))
    assert result.measures["spectrum"] == pytest.approx(np.abs(other.sum(0) / power.sum(0) - 1).max(), rel=1e-9)
    assert f"dssim {min(fields):.9g} (0.5 required), spectrum" in result.notes[-1]
    preview = tamis.preview_repack(source, "none.h5", {"x": LOOSE}, require={"x": "abs=0.1,sign,rmse=1"}).datasets[0]
    assert "every value is proven to keep abs=0.1,sign; chunks" in preview.notes[-2]
    assert "measured before the target gets its name: rmse=1.0" in preview.notes[-1]


def test_probability_of_one_distribution_is_that_of_the_values(source: Path, tmp_path: Path) -> None:
    rounded = ROUNDED.replace("8", "7")  # to steps of 2
    result = repacked(source, tmp_path / "b.h5", "ks=1e-99", rounded)
    before, after = field(), values_of(tmp_path / "b.h5")
    steps = np.sort(np.concatenate([before, after], axis=None))
    shares = (np.searchsorted(np.sort(each, axis=None), steps, "right") for each in (before, after))
    probability = ks_probability(np.abs(np.subtract(*shares)).max() / before.size, before.size)
    assert result.measures["ks"] == pytest.approx(probability, rel=0.01)
    assert 0 < result.measures["ks"] <= probability < 0.05
    with pytest.raises(BoundError, match=r"expected ks of at least 0\.05, reached [0-9.]+(e-[0-9]+)? with bitround"):
        repacked(source, tmp_path / "c.h5", "ks=0.05", rounded)


@pytest.mark.parametrize(
    ("chunks", "read"), [((2, 32, 32), ""), ((2, 40, 32), ""), ((4, 8, 32), "dssim"), ((4, 32, 16), "dssim spectrum")]
)
@pytest.mark.parametrize("companion", [False, True])
def test_fields_in_one_chunk_are_measured_as_all_fields_are(
    chunks: tuple[int, ...], read: str, companion: bool, tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = field()
    values[::5, :3, 4] = values[7] = np.nan
    attributes = {".scale_factor": -0.5, ".add_offset": 3.0}
    source = make(tmp_path / "a.h5", x={"data": values, "chunks": (8, 16, 16), "maxshape": (None, None, 32)})
    with h5py.File(source, "r+") as file:
        file["x"].attrs.update({name[1:]: value for name, value in attributes.items()})
    words: list[list[str]] = []
    monkeypatch.setattr(new_target, "measured_fields", lambda *args: words.append(args[3]) or measured_fields(*args))
    options = {"chunks": {"x": chunks}, "missing": "mask" if companion else "exact", "overwrite": True}
    require = "dssim=0.1,spectrum=9,corr=0.5"
    found = repacked(source, tmp_path / "b.h5", require, **options).measures
    assert words == ([read.split()] if read else [])
    monkeypatch.setattr(required, "_FIELDS_NBYTES", 0)
    again = repacked(source, tmp_path / "b.h5", require, **options).measures
    assert words[-1] == ["dssim", "spectrum"]
    assert found["dssim"] == again["dssim"] < 1
    assert found["spectrum"] == pytest.approx(again["spectrum"], rel=1e-12)


def test_fields_that_were_never_written_are_measured(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", (64, 32, 32), "f4", chunks=(8, 32, 32))[:8] = field((8, 32, 32))
    found = repacked(tmp_path / "a.h5", tmp_path / "b.h5", "dssim=0.1,spectrum=9").measures
    after, before = values_of(tmp_path / "b.h5"), values_of(tmp_path / "a.h5")
    assert found["dssim"] == min(dssim(one, two) for one, two in zip(before, after, strict=True))
    assert found["spectrum"] == pytest.approx(Spectra.of(before, after).difference, rel=1e-12)


def test_values_that_were_never_written_count_in_measures(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", (64, 32, 32), "f4", chunks=(8, 16, 16))[:8] = field((8, 32, 32))
    result = repacked(tmp_path / "a.h5", tmp_path / "b.h5", "rmse=1,psnr=9")
    after, before = values_of(tmp_path / "b.h5"), values_of(tmp_path / "a.h5")
    rmse = np.sqrt(np.mean((after.astype("f8") - before) ** 2))
    assert result.measures == pytest.approx({"rmse": rmse, "psnr": 20 * np.log10(np.ptp(before) / rmse)})


def test_copied_and_lossless_values_keep_everything(source: Path, tmp_path: Path) -> None:
    lossless = repacked(source, tmp_path / "l.h5", "abs=1e-9,corr=1", "shuffle|deflate(1)")
    assert (lossless.require, lossless.measures, lossless.bound) == ("abs=1e-09,corr=1.0", {}, 0)
    repacked(source, tmp_path / "z.h5", "abs=1")
    copied = repacked(tmp_path / "z.h5", tmp_path / "c.h5", "abs=1e-9,corr=1")
    assert (copied.copied, copied.largest_error) == (True, 0)
    streams = repacked(tmp_path / "z.h5", tmp_path / "s.h5", "abs=1e-9,corr=1", LOOSE.replace("shuffle|", ""))
    assert (streams.copied, streams.bound, streams.lossless_chunks) == (False, 0, 0)


def test_resumed_run_measures_taken_over_chunks_and_is_not_taken_for_another(
    source: Path, tmp_path: Path, python: Run
) -> None:
    target, require = tmp_path / "b.h5", "abs=0.03,rmse=0.5,psnr=9,ks=0.5,dssim=0.5,spectrum=9"
    options: dict[str, Any] = {"chunks": {"x": (2, 32, 32)}}
    stop = "lambda step, done, count: os._exit(3) if step.startswith('writing') and done == 9 else None"
    asked = f"require={{'x': '{require}'}}, chunks={{'x': (2, 32, 32)}}"
    call = f"tamis.repack(*sys.argv[1:], {{'x': '{LOOSE}'}}, {asked}, progress={stop})"
    python(f"import os, sys, tamis; {call}", source, target, exit_code=3)
    result = repacked(source, target, require, resume=True, **options)
    whole = repacked(source, tmp_path / "whole.h5", require, **options)
    assert result.reused_chunks >= 4
    assert target.read_bytes() == (tmp_path / "whole.h5").read_bytes()
    assert result.measures == pytest.approx(whole.measures, rel=1e-12)
    assert 0 < result.missed_chunks == whole.missed_chunks < 12

    def again(require: str | None, path: Path = target) -> Any:
        asked = None if require is None else {"x": require}
        return tamis.repack(source, path, {"x": LOOSE}, require=asked, resume=True, **options)

    assert again(require).done_already
    copied = tmp_path / "copied.h5"  # without the record of the run
    copied.write_bytes(target.read_bytes())
    with pytest.raises(FileError, match="nothing records that it meets the requirements"):
        again(require, copied)
    with pytest.raises(BoundError, match="expected rmse"):
        again("abs=0.1,rmse=1e-3")
    assert again(require).done_already  # the error left the target as it was
    assert not again("abs=0.09,rmse=0.5").done_already
    assert not again(None).done_already


def test_zarr_and_netcdf_of_xarray_keep_requirements(source: Path, tmp_path: Path) -> None:
    result = repacked(source, tmp_path / "b.zarr", "abs=0.1,corr=0.9")
    tamis.zarr.codecs  # noqa: B018  # registers the codecs
    assert np.abs(zarr.open_array(tmp_path / "b.zarr" / "x", mode="r")[:] - field()).max() <= 0.1
    assert result.measures["corr"] > 0.9
    dataset = xarray.Dataset({"x": (("t", "lat", "lon"), field())})
    options: dict[str, Any] = {"recipes": {"x": LOOSE}, "chunks": {"x": (8, 16, 16)}}
    saved = dataset.tamis.to_netcdf(tmp_path / "b.nc", require={"x": "abs=0.1,corr=0.9"}, **options)
    assert (saved["x"].tolerance, saved["x"].measures) == (0.25, result.measures)
    with pytest.raises(BoundError, match="expected corr"):
        dataset.tamis.to_netcdf(tmp_path / "c.nc", require={"x": {"corr": 1.0}}, **options)
    assert not (tmp_path / "c.nc").exists()


def test_names_come_before_patterns_and_options_before_the_recipe(source: Path, tmp_path: Path) -> None:
    recipe = tamis.Recipe({"x": LOOSE}, require={"*": "abs=0.1", "x": "abs=0.2,limits"})
    recipe.dump(tmp_path / "r.toml")
    (result,) = tamis.repack(source, tmp_path / "b.h5", tamis.Recipe.load(tmp_path / "r.toml")).datasets
    assert (result.require, result.bound) == ("abs=0.2,limits", 0.2)
    arguments = [source, tmp_path / "c.h5", "--recipe", tmp_path / "r.toml", "--require", "x:abs=0.05", "--json"]
    preview = json.loads(run(*arguments, "--dry-run", "--recipe-out", tmp_path / "o.toml").stdout)["datasets"][0]
    assert (preview["require"], preview["bound"]) == ("abs=0.05,limits", 0.05)
    assert 'require = "abs=0.05,limits"' in (tmp_path / "o.toml").read_text()
    done = json.loads(run(*arguments).stdout)["datasets"][0]
    assert (done["require"], done["measures"]) == ("abs=0.05,limits", {})
    assert done["missed_chunks"] == done["lossless_chunks"] > 0


@pytest.mark.parametrize(
    ("require", "filters", "error", "message"),
    [
        ({"x": "abc=1"}, {"x": LOOSE}, ParameterError, r"x: require: expected a requirement, one of abs"),
        ({"y": "abs=1"}, {"x": LOOSE}, FileError, r"expected a dataset named 'y'"),
        ({"x": "abs=1"}, {"z": LOOSE}, ParameterError, r"/x: expected filters or chunks for a dataset of which abs=1"),
        (
            {"z": "dssim=0.5"},
            {"z": LOOSE},
            ParameterError,
            r"expected at least 11 x 11 values along the last two axes for dssim",
        ),
        (
            {"w": "spectrum=0.5"},
            {"w": ROUNDED},
            ParameterError,
            r"expected at least 4 values along the last axis for spectrum",
        ),
        ("abs=1", {"x": LOOSE}, ParameterError, r"expected requirements by name such as \{'TS': 'abs=0.1'\}"),
        ({"x": "abs=1e-310"}, {"x": LOOSE}, ParameterError, r"expected abs of more than 0"),
    ],
)
def test_requirements_that_cannot_be_are_refused(
    require: Any, filters: dict[str, str], error: type[Exception], message: str, source: Path, tmp_path: Path
) -> None:
    with h5py.File(source, "a") as file:
        file.create_dataset("z", data=np.zeros((8, 8), "f4"), chunks=(8, 8))
        file.create_dataset("w", data=np.zeros((64, 3), "f4"), chunks=(8, 3))
    with pytest.raises(error, match=message):
        tamis.repack(source, tmp_path / "b.h5", filters, require=require)


def test_pattern_keeps_datasets_that_cannot_be_measured(source: Path, tmp_path: Path) -> None:
    with h5py.File(source, "a") as file:
        file.create_dataset("z", data=np.linspace(0, 1, 5000), chunks=(1000,))
    result = tamis.repack(source, tmp_path / "b.h5", {"*": LOOSE}, require={"*": "dssim=0.1"})
    assert [dataset.path for dataset in result.datasets] == ["/x"]
    assert "expected at least 11 x 11" in dict(result.kept)["/z"]
