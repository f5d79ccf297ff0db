"""``Dataset.tamis.plan``: the plan for a dataset is that for the file that holds it."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tamis
from tamis.jobs.plan.job import PlanOptions

xarray = pytest.importorskip("xarray")

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"


def smooth(shape: tuple[int, ...], dtype: str = "f4") -> Any:
    axes = np.meshgrid(*(np.linspace(0, 9, extent) for extent in shape), indexing="ij")
    return (280 + 20 * np.sin(sum(axes)) + np.random.default_rng(7).normal(0, 0.05, shape)).astype(dtype)


@pytest.mark.parametrize("chunks", [None, {}])
def test_plan_of_an_opened_file_has_the_candidates_of_the_file(chunks: dict[str, int] | None) -> None:
    with xarray.open_dataset(SAMPLE, engine="tamis", chunks=chunks) as dataset:
        planned = dataset.tamis.plan({"TS": "abs=0.1"}, readers="any")
    of_file = tamis.plan(SAMPLE, {"TS": "abs=0.1"}, readers="any")
    assert planned.recipe == of_file.recipe
    ratios = [{item.filters: item.ratio for item in plan["TS"].candidates} for plan in (planned, of_file)]
    assert ratios[0] == pytest.approx(ratios[1])
    assert planned["TS"].stored is None


def test_recipe_of_a_plan_saves_the_dataset_within_the_bound(tmp_path: Path) -> None:
    dataset = xarray.Dataset({"T": (("time", "y", "x"), smooth((6, 64, 80)))})
    plan = dataset.tamis.plan({"T": "abs=0.01"})
    result = dataset.tamis.to_netcdf(tmp_path / "small.nc", plan.recipe)
    assert 0 < result["T"].largest_error <= 0.01
    stored = str(tamis.inspect(tmp_path / "small.nc")["T"].pipeline)
    assert plan.filters["/T"].endswith(f"|{stored}")
    with xarray.open_dataset(tmp_path / "small.nc") as found:
        assert abs(found["T"].values.astype("f8") - dataset["T"].values).max() <= 0.01


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    shape=st.sampled_from([(70, 90), (4, 40, 50), (3, 2, 40, 50)]),
    dtype=st.sampled_from(["f4", "f8", "i4", "i2"]),
    bound=st.sampled_from([0.5, 0.03]),
    chunked=st.booleans(),
    lazy=st.booleans(),
)
def test_plan_of_a_dataset_is_that_of_its_file(
    tmp_path: Path, shape: tuple[int, ...], dtype: str, bound: float, chunked: bool, lazy: bool
) -> None:
    values = smooth(shape, dtype) if dtype[0] == "f" else np.round(smooth(shape) * 50).astype(dtype)
    dataset = xarray.Dataset({"T": ([f"d{axis}" for axis in range(len(shape))], values)})
    if chunked:
        dataset["T"].encoding["chunksizes"] = tuple(-(-extent // 2) for extent in shape)
    dataset.tamis.to_netcdf(tmp_path / "plain.nc", {"T": "none"}, overwrite=True)
    want = {"T": f"abs={bound}"}
    planned = (dataset.chunk() if lazy else dataset).tamis.plan(want, chunks="keep" if chunked else None)
    of_file = tamis.plan(tmp_path / "plain.nc", want, chunks="keep" if chunked else None)
    assert {item.filters for item in planned["T"].candidates} == {item.filters for item in of_file["T"].candidates}
    assert planned.filters == of_file.filters
    assert not chunked or planned.recipe == of_file.recipe


def test_plan_without_requirement_shows_bounds_to_paste() -> None:
    dataset = xarray.Dataset({"T": (("time", "y", "x"), smooth((6, 64, 80)))})
    text = str(dataset.tamis.plan())
    first = next(line for line in text.splitlines() if line.startswith("ds.tamis.plan("))
    again = eval(first, {"ds": dataset})
    assert again["T"].chosen is not None
    assert 'ds.tamis.to_netcdf("small.nc", plan.recipe)' in text
    assert "tamis repack" not in text
    assert "to_netcdf proves" in text


def test_values_that_went_through_a_lossy_filter_are_not_planned_again(tmp_path: Path) -> None:
    tamis.repack(SAMPLE, tmp_path / "lossy.nc", {"TS": "zfp(accuracy=0.1)"})
    with xarray.open_dataset(tmp_path / "lossy.nc", engine="tamis") as dataset:
        planned = dataset.tamis.plan({"TS": "abs=0.1"})
    assert dict(planned.kept)["/TS"].startswith("not planned: went through zfp(accuracy=0.0625)")


def test_plan_refuses_what_it_cannot_do() -> None:
    dataset = xarray.Dataset({"T": (("y", "x"), smooth((64, 80)))})
    with pytest.raises(tamis.ParameterError, match="confirm is for files: leave it out"):
        dataset.tamis.plan({"T": "abs=0.1"}, confirm=True)
    with pytest.raises(tamis.ParameterError, match="expected readers to be one of any, netcdf,"):
        dataset.tamis.plan({"T": "abs=0.1"}, readers="everybody")
    with pytest.raises(tamis.FileError, match="'Q'"):
        dataset.tamis.plan({"Q": "abs=0.1"})


def test_keywords_of_plan_and_its_options_are_the_same() -> None:
    keywords = [item for item in inspect.signature(tamis.plan).parameters.values() if item.kind == item.KEYWORD_ONLY]
    fields = {field.name: field.default for field in dataclasses.fields(PlanOptions)}
    assert fields == {item.name: item.default for item in keywords}


def test_accessor_and_opened_file_show_themselves_in_notebooks() -> None:
    with xarray.open_dataset(SAMPLE, engine="tamis") as dataset:
        assert "shuffle|deflate(2)" in repr(dataset.tamis)
        assert "<code>shuffle</code><br><code>deflate(2)</code>" in dataset.tamis._repr_html_()
    with tamis.open(SAMPLE) as file:
        html = file._repr_html_()
    assert "<td>TS</td><td>30x192x288</td><td>float32</td><td>1x192x288</td>" in html
    assert "closed" in file._repr_html_()
    assert tamis.Recipe({"a<b": "deflate(4)"})._repr_html_().count("a&lt;b") == 1


def test_plan_or_path_in_place_of_recipes_says_what_to_write(tmp_path: Path) -> None:
    dataset = xarray.Dataset({"T": (("y", "x"), smooth((64, 80)))})
    plan = dataset.tamis.plan({"T": "abs=0.1"})
    for wrong, text in ((plan, "got a Plan: give its recipe, plan.recipe"), ("r.toml", "read by tamis.Recipe.load")):
        with pytest.raises(tamis.ParameterError, match=text):
            dataset.tamis.to_netcdf(tmp_path / "a.nc", wrong)


def test_unknown_keyword_is_refused_with_those_that_plan_takes() -> None:
    ds = xarray.Dataset({"v": ("x", np.arange(9.0))})
    expected = r"^plan\(\) got an .* argument 'reader' \(did you mean readers\?\): it takes prefer, readers, "
    with pytest.raises(TypeError, match=expected) as raised:
        ds.tamis.plan({}, reader="any")
    assert "confirm" not in str(raised.value)
    with pytest.raises(TypeError, match=r"^report\(\) got .*'bound' \(did you mean bounds\?\): it takes variables, "):
        ds.tamis.report(ds, bound={"v": 1})
