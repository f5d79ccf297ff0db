"""Plans hold: repack takes the recipe, proves it, and the predicted ratio and error are those of the result."""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
from click.testing import CliRunner

import tamis
from tamis import FileError, ParameterError
from tamis.cli import main

Real = Callable[[str], Path]
FILL = np.float32(9.96921e36)


SZIP = "any HDF5 with szip, not NCO 5.1"


def smooth(shape: tuple[int, ...] = (12, 60, 80), seed: int = 2) -> Any:
    steps = np.random.default_rng(seed).standard_normal(shape)
    return (np.cumsum(np.cumsum(steps, -1), -2) / 20 + 280).astype("f4")


def make(path: Path, names: str = "ts", shape: tuple[int, ...] = (12, 60, 80), **attributes: Any) -> Path:
    with netCDF4.Dataset(path, "w") as file:
        for name, extent in zip(("time", "lat", "lon"), shape, strict=True):
            file.createDimension(name, extent)
            file.createVariable(name, "f8", (name,))[:] = np.arange(extent)
        for number, name in enumerate(names.split()):
            variable = file.createVariable(name, "f4", ("time", "lat", "lon"), fill_value=FILL, chunksizes=(3, 60, 80))
            variable.setncatts(attributes)
            variable[:] = smooth(shape, number)
    return path


@pytest.mark.matrix
@pytest.mark.parametrize(
    "requirement",
    [
        "abs=0.1",
        "range=0.001,corr=0.99999",
        "digits=4",
        "psnr=70",
        "information=0.99",
        "dssim=0.99",
        "ks=0.5,spectrum=0.1",
        "lossless",
    ],
)
def test_recipe_is_what_repack_makes_of_it(requirement: str, sample: Path, tmp_path: Path) -> None:
    plan = tamis.plan(sample, {"TS": requirement})
    result = tamis.repack(sample, tmp_path / "out.nc", plan.recipe)
    chosen = plan["TS"].chosen
    assert chosen is not None
    assert result["TS"].ratio == pytest.approx(chosen.ratio, rel=0.1)
    assert result["TS"].largest_error == pytest.approx(chosen.largest_error, rel=0.5)
    with tamis.open(sample) as before, tamis.open(tmp_path / "out.nc", unpack=True) as after:
        source, target = before["TS"][:].astype("f8"), after["TS"][:].astype("f8")
    errors = np.abs(source - target)
    psnr = 20 * np.log10(np.ptp(source) / np.sqrt(max((errors**2).mean(), 1e-300)))
    kept = {
        "abs=0.1": errors.max() <= 0.1,
        "range=0.001,corr=0.99999": errors.max() <= 0.001 * np.ptp(source),
        "digits=4": (errors / source).max() <= 5e-4,
        "psnr=70": psnr > 69.9,
        "lossless": errors.max() == 0,
    }
    assert kept.get(requirement, errors.max() > 0)
    assert (errors.max() > 0) == (requirement != "lossless")


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("readers", "allowed"),
    [
        ("any", {"any HDF5"}),
        ("netcdf", {"any HDF5", SZIP}),
        ("zfp", {"any HDF5", SZIP, "HDF5 with zfp"}),
        ("netcdf-plugins", {"any HDF5", SZIP, "HDF5 with zstd", "HDF5 with bzip2"}),
        ("zarr", {"zarr-python", "zarr-python and pcodec"}),
        (
            "all",
            {"any HDF5", SZIP}
            | {f"HDF5 with {name}" for name in ("zstd", "zfp", "bitshuffle", "lz4", "bzip2", "sperr", "sz3")},
        ),
    ],
)
def test_readers_limit_the_choice_and_others_get_offers(readers: Any, allowed: set[str], tmp_path: Path) -> None:
    planned = tamis.plan(make(tmp_path / "a.nc"), {"ts": "abs=0.1"}, readers=readers)["ts"]
    assert planned.chosen is not None
    assert {each.read_by for each in planned.candidates if not each.needs} <= allowed
    assert {each.read_by for each in planned.candidates if each.needs}.isdisjoint(allowed)
    assert all(each.ratio > planned.chosen.ratio for each in planned.candidates if each.needs)
    assert bool(planned.offers) <= (readers != "all")


def test_choice_is_the_best_ratio_or_fast_and_near_it(tmp_path: Path) -> None:
    path = make(tmp_path / "a.nc")
    for prefer, least in (("size", 0.97), ("speed", 2 / 3)):
        planned = tamis.plan(path, {"ts": "abs=0.01"}, prefer=prefer)["ts"]  # type: ignore[arg-type]
        assert planned.chosen is not None
        most = max(
            each.ratio for each in planned.candidates if "sperr" not in each.filters and "sz3" not in each.filters
        )
        assert planned.chosen.ratio >= least * most
        assert [each.ratio for each in planned.candidates] == sorted(
            (e.ratio for e in planned.candidates), reverse=True
        )


def test_coordinates_and_small_variables_stay_without_loss(sample: Path) -> None:
    plan = tamis.plan(sample, {"*": "abs=0.5"})
    assert [*plan.filters] == ["/TS"]
    assert {path for path, _ in plan.kept} == {"/lat", "/lon", "/time", "/time_bnds", "/nbnd"}
    named = tamis.plan(sample, {"lat": "abs=0.5", "TS": "lossless"})
    assert named["lat"].requirement == "abs=0.5"
    assert named["TS"].requirement == "lossless"
    assert [*tamis.plan(sample)] == ["/TS"]


def test_large_integers_are_planned_without_loss(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["count"] = np.arange(200 * 200, dtype="i4").reshape(200, 200)
    plan = tamis.plan(tmp_path / "a.h5", {"*": "abs=10"})
    assert plan["count"].requirement == "lossless"
    assert plan.chunks == {"/count": (200, 200)}
    result = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", plan.recipe)
    assert result["count"].largest_error == 0


def test_files_get_one_recipe_that_holds_in_all(tmp_path: Path) -> None:
    first, second = make(tmp_path / "a.nc", "ts only"), make(tmp_path / "b.nc", "ts")
    with netCDF4.Dataset(second, "a") as file:
        file["ts"][:] = smooth(seed=5) * 40
    alone = tamis.plan(first, {"ts": "range=0.001"}, readers="any").filters["/ts"]
    plan = tamis.plan([first, second], {"*": "range=0.001"}, readers="any")
    assert plan.filters["/ts"] != alone
    assert ("/only", "not planned: not in all of the files") in plan.kept
    for number, path in enumerate((first, second)):
        result = tamis.repack(path, tmp_path / f"out{number}.nc", plan.recipe)
        assert 0 < result["ts"].largest_error <= 0.001 * np.ptp(np.stack([smooth(), smooth(seed=5) * 40]))


@pytest.mark.parametrize("first", [True, False])
def test_a_file_without_steps_does_not_stop_the_plan_of_others(tmp_path: Path, first: bool) -> None:
    files = [tmp_path / f"{number}.h5" for number in range(3)]
    counts = (0, 12, 7) if first else (12, 7, 0)
    for path, count in zip(files, counts, strict=True):
        with h5py.File(path, "w") as file:
            file.create_dataset("ts", data=smooth()[:count], chunks=(1, 60, 80), maxshape=(None, 60, 80))
            rare = file.create_dataset("rare", (12, 60, 80), "f4", chunks=(1, 60, 80))
            rare[:count] = smooth()[:count]
            file.create_dataset("none", (0, 60, 80), "f4", chunks=(1, 60, 80), maxshape=(None, 60, 80))
    plan = tamis.plan(files, {"*": "abs=0.01"}, readers="any", confirm=True)
    assert set(plan.filters) == {"/ts", "/rare"}
    assert plan.kept == (("/none", "not planned: never written"),)
    assert plan["ts"].reason.endswith("; 1 of 3 files without values of it")
    for path in files:
        result = tamis.repack(path, tmp_path / f"new_{path.name}", plan.recipe)
        assert result["rare"].largest_error <= 0.01
        assert tamis.verify(path, tmp_path / f"new_{path.name}", bounds={"ts": 0.01, "rare": 0.01}).ok


def test_files_that_are_packed_differently_are_not_added_up(tmp_path: Path) -> None:
    for name, scale in (("a.h5", 1.0), ("b.h5", 1000.0)):
        with h5py.File(tmp_path / name, "w") as file:
            file["ts"] = smooth() / np.float32(scale)
            file["ts"].attrs["scale_factor"] = scale
    files = [tmp_path / "a.h5", tmp_path / "b.h5"]
    plan = tamis.plan(files, {"ts": "psnr=70"})
    assert not plan.filters
    assert "scale_factor or add_offset differ between the files" in dict(plan.kept)["/ts"]
    assert tamis.plan(files, {"ts": "lossless"}).filters
    assert tamis.plan(files[1:] * 2, {"ts": "psnr=70"}).filters


def test_files_with_other_axes_are_refused(tmp_path: Path) -> None:
    make(tmp_path / "a.nc")
    with h5py.File(tmp_path / "b.nc", "w") as file:
        file["ts"] = np.zeros((600, 800), "f4")
    with pytest.raises(ParameterError, match="/ts: expected the same type and number of axes in all files"):
        tamis.plan([tmp_path / "a.nc", tmp_path / "b.nc"], {"ts": "abs=1"})


@pytest.mark.parametrize("filters", ["zfp(accuracy=0.1)", "bitround(keepbits=9)|deflate(1)"])
def test_values_that_lost_something_before_stay_as_they_are(filters: str, tmp_path: Path) -> None:
    tamis.repack(make(tmp_path / "a.nc"), tmp_path / "b.nc", {"ts": filters})
    plan = tamis.plan(tmp_path / "b.nc", {"ts": "abs=1"})
    assert not plan.filters
    assert "before" in dict(plan.kept)["/ts"]
    assert plan.options == ""
    assert "nothing to change" in str(plan)


def test_candidate_that_cannot_keep_a_value_leaves_the_others(tmp_path: Path) -> None:
    """Packing has no code for values nearer to 0 than half a step, where zeros matter."""
    values = np.cumsum(np.random.default_rng(0).normal(0, 1, (12, 60, 80)), -1).astype("f4")
    values[:, :5] = 0
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=values, chunks=(1, 60, 80))
    plan = tamis.plan(tmp_path / "a.h5", {"v": "abs=0.1,zeros"})
    assert any("and zeros apart from others" in reason for _, reason in plan["v"].refused)
    assert plan["v"].chosen is not None
    result = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", plan.recipe)
    assert result["v"].largest_error <= 0.1  # type: ignore[operator]
    with tamis.open(tmp_path / "b.h5", unpack=True) as file:
        assert np.array_equal(file["v"][:] == 0, values == 0)


def test_values_beyond_any_packing_are_planned_without_it(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["huge"] = np.random.default_rng(0).normal(0, 1, (200, 200)) * 1e300
    plan = tamis.plan(tmp_path / "a.h5")
    assert "huge" not in dict(plan.kept)
    assert plan["huge"].noise == pytest.approx(1e300, rel=0.1)


def test_better_ratio_of_the_source_stays(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset(
            "v", data=np.zeros((400, 400), "i4"), chunks=(400, 400), compression="gzip", compression_opts=9
        )
    best = tamis.plan(tmp_path / "a.h5")["v"].candidates[0]  # the choice may depend on time, if ratios are close
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"v": best.filters})
    plan = tamis.plan(tmp_path / "b.h5")
    assert plan["v"].filters is None
    assert plan["v"].reason.startswith("stays as it is, because none of these beats its present ratio")


@pytest.mark.parametrize("missing", ["exact", "mask"])
def test_missing_values_are_no_part_of_the_plan(missing: Any, tmp_path: Path) -> None:
    path = make(tmp_path / "a.nc")
    with netCDF4.Dataset(path, "a") as file:
        file["ts"][:, 20:40, 10:50] = np.ma.masked
    plan = tamis.plan(path, {"ts": "abs=0.1,psnr=50"}, missing=missing, readers="zfp")
    result = tamis.repack(path, tmp_path / "b.nc", plan.recipe)
    chosen = plan["ts"].chosen
    assert chosen is not None
    assert result["ts"].ratio == pytest.approx(chosen.ratio, rel=0.1)
    with netCDF4.Dataset(tmp_path / "b.nc") as file:
        assert np.ma.count_masked(file["ts"][:]) == 12 * 20 * 40
    assert ("--missing mask" in plan.options) == (missing == "mask")


@pytest.mark.parametrize("missing", ["exact", "mask"])
def test_chunks_that_the_array_cuts_are_planned(missing: Any, tmp_path: Path) -> None:
    values = smooth((10, 70, 50))
    values[3, :20, :20] = np.nan
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=values, chunks=(4, 33, 17))
    plan = tamis.plan(tmp_path / "a.h5", {"v": "psnr=60"}, missing=missing, readers="zfp")
    result = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", plan.recipe)
    assert result["v"].ratio == pytest.approx(plan["v"].chosen.ratio, rel=0.1)


def test_packed_values_have_bounds_in_units_of_the_variable(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        for name, extent in zip(("time", "lat", "lon"), (12, 60, 80), strict=True):
            file.createDimension(name, extent)
        variable = file.createVariable("ts", "f4", ("time", "lat", "lon"), chunksizes=(3, 60, 80))
        variable.scale_factor, variable.add_offset = 0.01, 280.0
        variable[:] = smooth()
    planned = tamis.plan(tmp_path / "a.nc", {"ts": "abs=0.01"}, readers="zfp")["ts"]
    lossy = [each.filters for each in planned.candidates if each.largest_error]
    assert any("absolute" in filters for filters in lossy)
    for filters in (*lossy, "zfp(bound=0.01)"):
        result = tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", {"ts": filters}, overwrite=True)
        assert 0.001 < result["ts"].largest_error <= 0.01


def test_netcdf_classic_file_is_planned(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_CLASSIC") as file:
        for name, extent in zip(("time", "lat", "lon"), (12, 60, 80), strict=True):
            file.createDimension(name, extent)
        file.createVariable("ts", "f4", ("time", "lat", "lon"))[:] = smooth()
    plan = tamis.plan(tmp_path / "a.nc", {"ts": "abs=0.1"})
    result = tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", plan.recipe)
    assert 0 < result["ts"].largest_error <= 0.1
    assert plan["ts"].chosen is not None
    assert result["ts"].ratio == pytest.approx(plan["ts"].chosen.ratio, rel=0.1)


def test_result_has_text_json_and_html(sample: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    plan = tamis.plan(sample, {"TS": "abs=0.1"}, progress=lambda *step: steps.append(step))
    assert steps[-1][0] == "planning /TS"
    assert steps[-1][1] == steps[-1][2]
    assert all(done < total for _, done, total in steps[:-1])
    document = json.loads(plan.to_json())
    assert document == plan.to_dict()
    assert document["recipe"] == plan.filters
    assert document["datasets"][0]["candidates"][0]["ratio"] == plan.candidates["/TS"][0].ratio
    assert plan.options in str(plan)
    assert "Candidates (" in plan._repr_html_()
    assert str(plan["TS"]) == f"/TS abs=0.1: {plan.filters['/TS']}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prefer": "best"}, "expected prefer to be one of size, speed, archive, got 'best'"),
        ({"readers": "h5py"}, "expected readers to be one of any, netcdf, netcdf-plugins, zfp, hdf5plugin"),
        ({"missing": "refuse"}, "expected missing to be one of exact, mask"),
        ({"sample": 1000}, "expected a sample of 1000000 bytes or more, got 1000"),
    ],
)
def test_wrong_argument_is_refused(options: dict[str, Any], message: str, sample: Path) -> None:
    with pytest.raises(ParameterError, match=message):
        tamis.plan(sample, {"TS": "abs=0.1"}, **options)


def test_values_that_were_never_written(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, written in (("none", 0), ("some", 3)):
            data = file.create_dataset(name, shape=(12, 60, 80), dtype="f4", chunks=(1, 60, 80))
            data[:written] = smooth()[:written]
    plan = tamis.plan(tmp_path / "a.h5", {"*": "abs=0.1"})
    assert dict(plan.kept)["/none"] == "not planned: never written"
    result = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", plan.recipe)
    assert plan["some"].chosen is not None
    assert result["some"].ratio == pytest.approx(plan["some"].chosen.ratio, rel=0.05)


@pytest.mark.matrix
@pytest.mark.parametrize("dtype", ["f2", ">f4", "i8", "f8"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0])
def test_odd_types_and_values_have_a_plan_that_repack_takes(dtype: str, value: float, tmp_path: Path) -> None:
    data = smooth()
    data[:, :20] = value if dtype != "i8" else 0
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=data.astype(dtype), chunks=(3, 60, 80))
    for requirement in ("abs=0.1", "rel=0.01,information=0.9", "corr=0.999,dssim=0.9,psnr=40"):
        plan = tamis.plan(tmp_path / "a.h5", {"v": requirement})
        result = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", plan.recipe, overwrite=True)
        assert plan["v"].chosen is not None
        assert result["v"].ratio == pytest.approx(plan["v"].chosen.ratio, rel=0.05)


def test_field_larger_than_the_sample_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", shape=(1000, 2000), dtype="f4", chunks=(100, 100))[:] = 1
        file["line"] = np.arange(1e5, dtype="f4")
    plan = tamis.plan(tmp_path / "a.h5", {"*": "dssim=0.9"}, sample=1_000_000)
    assert "expected a sample of at least one field for dssim" in dict(plan.kept)["/v"]
    assert {each.largest_error for each in plan["line"].candidates} == {0}


def test_nothing_to_plan_is_refused(sample: Path) -> None:
    with pytest.raises(ParameterError, match="expected at least one path, got none"):
        tamis.plan([])
    with pytest.raises(FileError, match="expected a dataset named 'T'"):
        tamis.plan(sample, {"T": "abs=0.1"})


def test_want_that_only_lossless_filters_keep_is_told(tmp_path: Path) -> None:
    path = make(tmp_path / "a.nc")
    note = "; no lossy filters meet the requirement on the sample"
    assert note in tamis.plan(path, {"ts": "abs=1e-9"})["ts"].reason
    assert note not in tamis.plan(path, {"ts": "abs=0.1"})["ts"].reason
    assert note not in tamis.plan(path, {"ts": "lossless"})["ts"].reason


def test_file_without_datasets_has_nothing_to_plan(tmp_path: Path) -> None:
    h5py.File(tmp_path / "none.h5", "w").close()
    plan = tamis.plan(tmp_path / "none.h5")
    assert not plan.filters
    assert plan.kept == (("*", "not planned: this pattern matches no dataset"),)


def test_command_prints_options_that_repack_takes(sample: Path, tmp_path: Path) -> None:
    arguments = ["plan", str(sample), "--require", "TS:abs=0.1", "--readers", "any", "--sample", "4MB"]
    printed = CliRunner().invoke(main, arguments)
    assert printed.exit_code == 0, printed.output
    assert "any HDF5" in printed.stdout
    document = json.loads(CliRunner().invoke(main, [*arguments, "--json"]).stdout)
    target = tmp_path / "out.nc"
    done = CliRunner().invoke(main, ["repack", str(sample), str(target), *shlex.split(document["options"])])
    assert done.exit_code == 0, done.output
    check = shlex.split(printed.stdout.splitlines()[-1])
    assert check == ["tamis", "verify", str(sample), "OUT", "--bound", "/TS:0.1"]
    verified = CliRunner().invoke(main, ["verify", str(sample), str(target), *check[4:]])
    assert verified.exit_code == 0, verified.output


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("requirement", "bounds"),
    [
        ("lossless", []),
        ("digits=4", ["--bound", "recorded"]),
        ("range=1e-3,sign", ["--bound", "recorded"]),
        ("corr=0.9", None),
    ],
)
def test_plan_prints_how_to_verify(requirement: str, bounds: list[str] | None, sample: Path, tmp_path: Path) -> None:
    plan = tamis.plan(sample, {"TS": requirement}, sample=4_000_000)
    if bounds is None:  # a rate records no bound
        plan = replace(plan, datasets=(replace(plan["TS"], filters="zfp(rate=8)|shuffle|deflate(4)"),))
        assert "tamis verify" not in str(plan)
        return
    check = shlex.split(str(plan).splitlines()[-1])
    assert check == ["tamis", "verify", str(sample), "OUT", *bounds]
    tamis.repack(sample, tmp_path / "out.nc", plan.recipe)
    verified = CliRunner().invoke(main, ["verify", str(sample), str(tmp_path / "out.nc"), *bounds])
    assert verified.exit_code == 0, verified.output


def test_command_refuses_wrong_usage(sample: Path) -> None:
    for options, message in (
        (["-r", "TS:kurtosis=3"], "expected a requirement, one of abs, rel"),
        (["-r", "abs=0.1"], "expected NAME:REQUIREMENT"),
        (["--sample", "much"], "expected a size such as 16MB"),
        (["--sample", "4MB", "--all"], "--sample and --all cannot be combined"),
        (["-r", "TS:abs=1", "-r", "TS:abs=2"], "expected each name once in --require"),
    ):
        failed = CliRunner().invoke(main, ["plan", str(sample), *options])
        assert failed.exit_code == 2
        assert message in failed.output


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["era5_levels_members.nc"])
def test_predicted_ratio_of_real_data_within_a_tenth(name: str, real: Real, tmp_path: Path) -> None:
    plan = tamis.plan(real(name), {"*": "range=0.0005"}, sample=8_000_000)
    result = tamis.repack(real(name), tmp_path / "out.nc", plan.recipe)
    assert plan.filters
    for planned in plan.datasets:
        assert planned.chosen is not None
        assert result[planned.path].ratio == pytest.approx(planned.chosen.ratio, rel=0.1)


@pytest.mark.check
def test_recipe_file_of_the_command_is_what_repack_takes(sample: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    arguments = ["plan", str(sample), "-r", "TS:abs=0.1", "-o", str(recipe), "--json"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    loaded = tamis.Recipe.load(recipe)
    # Another plan may choose others, which are as good, by the speed that it measures.
    assert {name: str(filters) for name, filters in loaded.filters.items()} == json.loads(done.stdout)["recipe"]
    assert CliRunner().invoke(main, arguments).exit_code == 1  # the file exists
    assert CliRunner().invoke(main, [*arguments, "--overwrite"]).exit_code == 0
    out = tmp_path / "b.nc"
    assert CliRunner().invoke(main, ["repack", str(sample), str(out), "--recipe", str(recipe)]).exit_code == 0
    assert tamis.verify(sample, out, bounds={"TS": 0.1}).ok


def test_recipe_file_has_evidence_that_decides_nothing(tmp_path: Path) -> None:
    path = make(tmp_path / "a.nc", "ts b")
    plan = tamis.plan(path, {"ts": "abs=0.1,corr=0.9", "b": "lossless"})
    plan.dump(tmp_path / "r.toml")
    assert tamis.Recipe.load(tmp_path / "r.toml") == plan.recipe
    with (tmp_path / "r.toml").open("rb") as file:
        entries = {each["name"]: each for each in tomllib.load(file)["variable"]}
    chosen = plan["ts"].chosen
    assert chosen is not None
    evidence = entries["/ts"]["evidence"]
    assert (evidence["requirement"], evidence["reason"]) == ("abs=0.1,corr=0.9", plan["ts"].reason)
    assert evidence["ratio"] == pytest.approx(chosen.ratio, abs=1e-4)
    assert evidence["ratio_low"] <= evidence["ratio"] <= evidence["ratio_high"]
    assert evidence["largest_error"] == pytest.approx(chosen.largest_error)
    assert evidence["planned_by"] == f"tamis {tamis.__version__}"
    assert entries["/b"]["evidence"]["requirement"] == "lossless"
    with pytest.raises(FileError, match="File exists"):
        plan.dump(tmp_path / "r.toml")
    CliRunner().invoke(main, ["plan", str(path), "-r", "ts:abs=0.1,corr=0.9", "-o", str(tmp_path / "s.toml")])
    assert "[variable.evidence]" in (tmp_path / "s.toml").read_text()


def test_spectrum_of_series_and_of_files_with_rows_of_other_lengths(tmp_path: Path) -> None:
    paths = [tmp_path / f"{extent}.h5" for extent in (9001, 8000)]
    for path, extent in zip(paths, (9001, 8000), strict=True):
        with h5py.File(path, "w") as file:
            file.create_dataset("v", data=smooth((1, 10, 1000)).reshape(-1)[:extent], chunks=(4000,))
            file.create_dataset("w", data=smooth((1, 8, extent // 8))[0], chunks=(8, 1000))
    plan = tamis.plan(paths, {"v": "spectrum=0.1", "w": "spectrum=0.1"})
    assert not plan.kept
    for path in paths:
        tamis.repack(path, tmp_path / "out.h5", plan.recipe, overwrite=True, require={"*": "spectrum=0.2"})


def test_share_of_the_range_of_equal_values_leaves_nothing_to_lose(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=np.full((40, 50), 3, "f4"), chunks=(10, 50))
    plan = tamis.plan(tmp_path / "a.h5", {"v": "range=0.1,sign"})
    assert plan["v"].filters is not None
    assert tamis.Pipeline.parse(plan["v"].filters).error_bound == 0


@pytest.mark.parametrize(("readers", "tried"), [("hdf5plugin", True), ("netcdf", False)])
def test_archives_for_hdf5plugin_try_bytedelta(sample: Path, readers: Any, tried: bool) -> None:
    plan = tamis.plan(sample, {"TS": "lossless"}, prefer="archive", readers=readers, sample=1_000_000)
    names = [str(candidate.filters) for candidate in plan.candidates["/TS"]]
    assert any("bytedelta" in name for name in names) == tried


def test_measures_that_the_recipe_does_not_have_are_named(sample: Path) -> None:
    result = tamis.plan(sample, {"TS": "abs=0.1,rmse=0.02,corr=0.9"})
    assert result.require == {"/TS": "abs=0.1"}
    assert "/TS: rmse=0.02, corr=0.9: measured on the sample, and not in the recipe" in str(result)
    assert "measured on the sample" not in str(tamis.plan(sample, {"TS": "abs=0.1"}))


def test_packing_for_zarr_can_be_codecs(sample: Path, tmp_path: Path) -> None:
    text = "; in Zarr 3, --packed-as codecs makes them floats for readers without CF"
    assert text not in tamis.plan(sample, {"TS": "abs=0.1"})["TS"].reason
    store = tmp_path / "a.zarr"
    tamis.repack(sample, store, {})
    planned = tamis.plan(store, {"TS": "abs=0.1"}, readers="netcdf")["TS"]
    assert planned.filters.startswith("pack(")
    assert text in planned.reason


@pytest.mark.parametrize("requirement", ["rmse=0.02", "psnr=80", "rmse=1e-9", "corr=0.9999999"])
def test_measures_of_many_values_are_met_by_packings(tmp_path: Path, requirement: str) -> None:
    """Tight rungs of the ladder, for which 32 bits are too few, do not hide the looser ones that meet it."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("ts", data=280 + 10 * smooth(), chunks=(3, 60, 80))
    planned = tamis.plan(path, {"ts": requirement}, readers="any", confirm=True)["ts"]
    packed = [item for item in planned.candidates if item.filters.startswith("pack(")]
    if requirement == "rmse=1e-9":
        assert not packed
        assert any(text.startswith("pack(") for text, _ in planned.refused)
        return
    assert packed
    assert not any(text.startswith("pack(") for text, _ in planned.refused)
    assert planned.confirmed is not None
    assert not planned.confirmed.missed
    result = tamis.repack(path, tmp_path / "b.h5", {"ts": packed[0].filters}, require={"ts": requirement})
    assert result["ts"].packing is not None
