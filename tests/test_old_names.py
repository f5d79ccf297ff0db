"""Old names of options, keywords, values and keys do what the new ones do, through command line, Python and recipes."""

from __future__ import annotations

import inspect
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import h5py
import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner
from inprocess import run_tamis

import tamis
import tamis_xarray  # noqa: F401 - the accessor
from tamis.cli import main
from tamis.filters import by_name
from tamis.formats.zarr.masked import MaskedPipeline
from tamis.jobs.plan.planned import PlannedVariable, Rung
from tamis.jobs.repack import Repacked, RepackOptions
from tamis.old_names import KEYS, KEYWORDS, OPTIONS, VALUES, OldOption, recorded_text, recorded_value

FILTERS = "zfp(accuracy=0.1)|shuffle|deflate(4)"
ARGUMENTS = {"--require": "v:abs=0.1"}
"""An argument of each option that had another name."""
FLAGS = [(option, old) for option in OPTIONS for old in option.old]
CASES = [(name, old, new) for name, values in VALUES.items() for old, new in values.items()]
MEASURED = {"seconds", "write_mbs", "read_mbs"}
"""Keys of plan's JSON that differ between equal runs."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with missing values in blocks of valid ones."""
    path = tmp_path_factory.mktemp("old") / "a.nc"
    values = np.random.default_rng(1).normal(size=(8, 48, 64)).cumsum(0).astype("f4")
    values[:, 5:9, 7:30] = np.nan
    xr.Dataset({"v": (("t", "y", "x"), values)}).to_netcdf(
        path, engine="h5netcdf", encoding={"v": {"_FillValue": np.float32(1e20), "chunksizes": (4, 48, 64)}}
    )
    return path


def command(*words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = run_tamis(*words)
    assert done.returncode == code, done.stderr
    return done


def plain(document: Any) -> Any:
    """Return JSON without what is measured in time, and without the names of files."""
    if isinstance(document, dict):
        return {key: plain(value) for key, value in document.items() if key not in MEASURED}
    return [*map(plain, document)] if isinstance(document, list) else document


def commands() -> Iterator[click.Command]:
    for name in main.list_commands(click.Context(main)):
        found = main.get_command(click.Context(main), name)
        assert found is not None
        yield found


@pytest.mark.parametrize(("option", "old"), FLAGS, ids=lambda each: str(getattr(each, "new", each)))
def test_old_option_does_what_the_new_one_does(option: OldOption, old: str, source: Path) -> None:
    argument = ARGUMENTS[option.new]
    before = command(option.command, source, old, argument, "--json", "-q")
    after = command(option.command, source, option.new, argument, "--json", "-q")
    assert plain(json.loads(before.stdout)) == plain(json.loads(after.stdout))
    assert not before.stderr
    both = command(option.command, source, old, argument, option.new, argument, code=2)
    assert f"expected {option.new} or its old name {option.old[-1]}, got both" in both.stderr


def test_help_shows_no_old_name() -> None:
    for found in commands():
        text = CliRunner().invoke(main, [str(found.name), "--help"]).stdout.split()
        assert "Usage:" in text
        hidden = [old for option in OPTIONS if option.command == found.name for old in option.old]
        assert not {*hidden, "WANT", "NAME:WANT", "want", "companion", "gaps", "roundings"} & {
            word.strip(",.;:()|[]") for word in text
        }, found.name


@pytest.mark.parametrize(("name", "old", "new"), CASES)
def test_old_value_of_an_option_gives_the_same_file(
    name: str, old: str, new: str, source: Path, tmp_path: Path
) -> None:
    takers = [found.name for found in commands() if any(f"--{name}" in option.opts for option in found.params)]
    assert takers == ["copy", "plan", "repack"]
    ways: dict[str, Callable[[str, Path], object]] = {
        "copy": lambda value, out: command("copy", source, out, "-F", "v,32013,3,0,0.1d", f"--{name}", value),
        "repack": lambda value, out: command("repack", source, out, "-f", f"v:{FILTERS}", f"--{name}", value),
        "plan": lambda value, out: command("plan", source, "-r", "v:abs=0.1", "-o", out, f"--{name}={value}"),
    }
    for taker, way in ways.items():
        targets = [tmp_path / f"{taker}-{value}.nc" for value in (old, new)]
        for value, target in zip((old, new), targets, strict=True):
            way(value, target)
        assert targets[0].read_bytes() == targets[1].read_bytes()
        assert f'{name} = "{old}"' not in targets[0].read_text("latin-1")


@pytest.mark.check
@pytest.mark.parametrize(("name", "old", "new"), CASES)
def test_old_value_of_a_keyword_and_a_recipe_gives_the_same_file(
    name: str, old: str, new: str, source: Path, tmp_path: Path
) -> None:
    def by_recipe(out: Path, value: str) -> None:
        recipe = tmp_path / f"{value}.toml"
        recipe.write_text(f'schema = 1\n{name} = "{value}"\n\n[[variable]]\nname = "v"\nfilters = "{FILTERS}"\n')
        assert str(tamis.Recipe.load(recipe)).startswith(f'schema = 1\n{name} = "{new}"\n')
        tamis.repack(source, out, tamis.Recipe.load(recipe))

    def by_xarray(out: Path, value: str) -> None:
        with xr.open_dataset(source, engine="tamis") as data:
            data.tamis.to_netcdf(out, {"v": FILTERS}, **{name: value})

    def by_folder(out: Path, value: str) -> None:
        tamis.repack_many([source], out.with_suffix(""), {"v": FILTERS}, **{name: value})  # type: ignore[arg-type]
        out.with_suffix("").joinpath(source.name).rename(out)

    ways: dict[str, Callable[[Path, str], object]] = {
        "repack": lambda out, value: tamis.repack(source, out, {"v": FILTERS}, **{name: value}),  # type: ignore[arg-type]
        "copy": lambda out, value: tamis.copy(source, out, filters=["v,32013,3,0,0.1d"], **{name: value}),
        "recipe": by_recipe,
        "xarray": by_xarray,
        "folder": by_folder,
    }
    for way, make in ways.items():
        targets = [tmp_path / f"{way}-{value}.nc" for value in (old, new)]
        for value, target in zip((old, new), targets, strict=True):
            make(target, value)
        assert targets[0].read_bytes() == targets[1].read_bytes(), way
        with h5py.File(targets[0]) as file:
            assert "v_missing" in file
    plans = [tamis.plan(source, {"v": "abs=0.1"}, **{name: value}) for value in (old, new)]  # type: ignore[arg-type]
    assert plans[0].recipe == plans[1].recipe
    assert (plans[0].missing, plans[0].to_dict()[name]) == (new, new)


def test_old_keywords_of_functions_give_the_same_result(source: Path) -> None:
    values: dict[str, object] = {"require": {"v": "abs=0.1"}}
    functions = [name for name in KEYWORDS if name not in by_name()]
    assert functions == ["plan"]
    for name in functions:
        function = getattr(tamis, name)
        for old, new in KEYWORDS[name].items():
            assert new in inspect.signature(function).parameters
            before, after = function(source, **{old: values[new]}), function(source, **{new: values[new]})
            assert plain(before.to_dict()) == plain(after.to_dict())
            with pytest.raises(tamis.ParameterError, match=f"expected {new} or its old name {old}, got both"):
                function(source, **{old: values[new], new: values[new]})


@pytest.mark.parametrize("name", [name for name in KEYWORDS if name in by_name()])
def test_old_parameters_of_filters_give_the_same_filter(name: str) -> None:
    kind = by_name()[name]
    for old, new in KEYWORDS[name].items():
        for value in kind.parameters()[new].choices:
            one = kind(**{new: value})
            assert kind(**{old: value}) == one
            assert getattr(one, old) == getattr(one, new) == value
            texts = [f"{name}({word}={value})|deflate(4)" for word in (old, new)]
            pipeline, other = map(tamis.Pipeline.parse, texts)
            assert pipeline == other
            assert str(pipeline) == str(other)
            assert f"{old}=" not in str(pipeline)
            # Zarr stores keep the text that they always had.
            config = {"filters": f"{name}(mode=rate,quality=8.0,{old}={value},order=swapped)"}
            assert MaskedPipeline.from_config(config).to_config() == config
        with pytest.raises(tamis.ParameterError, match=f"expected {new} or its old name {old}, got both"):
            kind(**{old: "nan", new: "nan"})
        with pytest.raises(tamis.ParameterError, match=f"expected parameters of {name} once each"):
            tamis.Pipeline.parse(f"{name}({old}=nan,{new}=nan)")


def test_old_keys_of_results_have_the_same_values(source: Path, tmp_path: Path) -> None:
    planned = tamis.plan(source)["v"]
    stored = tamis.repack(source, tmp_path / "b.nc", {"v": FILTERS}, missing="mask")["v"]
    results = {type(each).__name__: each for each in (planned, planned.ladder[0], stored)}
    assert KEYS.keys() == results.keys() == {kind.__name__ for kind in (PlannedVariable, Rung, Repacked)}
    document = json.loads(tamis.plan(source).to_json())["datasets"][0]
    documents = {
        "PlannedVariable": document,
        "Rung": document["ladder"][0],
        "Repacked": json.loads(command("repack", source, tmp_path / "c.nc", "-f", f"v:{FILTERS}", "--json").stdout)[
            "datasets"
        ][0],
    }
    assert (stored.missing_mask, stored.missing_mask_nbytes > 0) == ("/v_missing", True)
    for kind, names in KEYS.items():
        for old, new in names.items():
            assert getattr(results[kind], old) == getattr(results[kind], new)
            assert documents[kind][old] == documents[kind][new]


def test_checksums_of_recipes_are_those_of_old_names() -> None:
    """A folder whose run began before the names changed is continued, not made anew."""
    for name, values in VALUES.items():
        for old, new in values.items():
            key = RepackOptions.asked({"v": FILTERS}, **{name: new}).target_key  # type: ignore[arg-type]
            assert f'{name} = "{old}"' in key
            assert recorded_value(name, new) == old
            assert recorded_text(str(tamis.Recipe({"v": FILTERS}, **{name: new}))).startswith(
                f'schema = 1\n{name} = "{old}"'
            )  # type: ignore[arg-type]
    for name in filter(by_name().__contains__, KEYWORDS):
        for old, new in KEYWORDS[name].items():
            text = f"{name}({new}=nan)"
            assert f"{old}=nan" in RepackOptions.asked({"v": text}).target_key
            assert f"{new}=" not in RepackOptions.asked({"v": text}).target_key
