"""Recipes as objects and as TOML files, whose wrong fields are refused where they stand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis import FileError, ParameterError
from tamis.cli import main
from tamis.jobs.recipes.fields import places_of

TEXT = """# what the analysis allows
schema = 1
missing = "mask"

[[variable]]
name = "TS"
filters = "zfp(bound=0.1)|shuffle|deflate(4)"
chunks = {time = 4, lat = 16} # lon stays
[variable.evidence]
largest_error = 0.07

[[variable]]
name = "/grp/P*"
chunks = [2, 8, 16]

[[variable]]
name = "*"
require = "abs=0.1,sign"
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    values = (280 + np.random.default_rng(3).standard_normal((8, 32, 16)).cumsum(1) / 100).astype("f4")
    values[0, 0, 0] = np.nan
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        for name, extent in (("time", None), ("lat", 32), ("lon", 16)):
            file.createDimension(name, extent)
        file.createVariable("TS", "f4", ("time", "lat", "lon"), chunksizes=(1, 32, 16))[:] = values
        file.createVariable("PS", "f4", ("time", "lat"), zlib=True, chunksizes=(1, 32))[:] = values[..., 0]
    return tmp_path / "a.nc"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["repack", *map(str, arguments)])


def stored(path: Path, name: str = "TS") -> tuple[Any, list[bytes]]:
    with h5py.File(path) as file:
        dataset = file[name]
        count = dataset.id.get_num_chunks()
        origins = [dataset.id.get_chunk_info(at).chunk_offset for at in range(count)]
        return dataset.chunks, [dataset.id.read_direct_chunk(origin)[1] for origin in origins]


def test_a_file_is_read_as_the_object_that_is_written_as_this_file(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(TEXT)
    recipe = tamis.Recipe.load(tmp_path / "r.toml")
    same = tamis.Recipe(
        {"TS": "zfp(bound=0.1)|shuffle|deflate(4)"},
        chunks={"TS": {"time": 4, "lat": 16}, "/grp/P*": (2, 8, 16)},
        require={"*": {"abs": 0.1, "sign": True}},
        missing="mask",
    )
    assert recipe == same
    recipe.dump(tmp_path / "again.toml")
    assert tamis.Recipe.load(tmp_path / "again.toml") == recipe
    with pytest.raises(FileError, match=r"again\.toml: File exists"):
        recipe.dump(tmp_path / "again.toml")
    with pytest.raises(FileError, match=r"none\.toml: cannot be read"):
        tamis.Recipe.load(tmp_path / "none.toml")


@pytest.mark.check
@settings(max_examples=40, deadline=None)
@given(
    name=st.text(min_size=1).filter(lambda name: name.isprintable() or "\n" in name or "\x7f" in name),
    dimension=st.text(min_size=1, max_size=5),
    extent=st.integers(1, 10**17),
)
def test_any_name_is_read_as_it_was_written(name: str, dimension: str, extent: int, tmp_path_factory: Any) -> None:
    if any("\ud800" <= sign <= "\udfff" for sign in name + dimension):
        return
    path = tmp_path_factory.mktemp("recipe") / "r.toml"
    recipe = tamis.Recipe({name: "none"}, chunks={name: {dimension: extent}, "x": [extent]})
    recipe.dump(path)
    assert tamis.Recipe.load(path) == recipe


def test_recipe_options_and_mapping_store_the_same(source: Path, tmp_path: Path) -> None:
    filters = "zfp(bound=0.1)|shuffle|deflate(4)"
    recipe = tamis.Recipe({"TS": filters}, chunks={"TS": {"time": 4, "lat": 16}}, missing="mask")
    recipe.dump(tmp_path / "r.toml")
    tamis.repack(source, tmp_path / "object.nc", recipe)
    assert run(source, tmp_path / "file.nc", "--recipe", tmp_path / "r.toml").exit_code == 0
    options = ["-f", f"TS:{filters}", "-c", "TS:4x16x16", "--missing", "mask"]
    assert run(source, tmp_path / "options.nc", *options, "--recipe-out", tmp_path / "o.toml").exit_code == 0
    assert run(source, tmp_path / "again.nc", "--recipe", tmp_path / "o.toml").exit_code == 0
    tamis.repack(
        source, tmp_path / "mapping.nc", {"TS": filters}, chunks={"TS": {"lat": 16, "time": 4}}, missing="mask"
    )
    expected = stored(tmp_path / "object.nc")
    assert expected[0] == (4, 16, 16)
    for name in ("file", "options", "again", "mapping"):
        assert stored(tmp_path / f"{name}.nc") == expected, name
        assert stored(tmp_path / f"{name}.nc", "TS_missing") == stored(tmp_path / "object.nc", "TS_missing")


def test_options_count_before_the_recipe(source: Path, tmp_path: Path) -> None:
    tamis.Recipe({"TS": "deflate(1)"}, chunks={"*": {"time": 2}}, missing="refuse").dump(tmp_path / "r.toml")
    arguments = [source, tmp_path / "b.nc", "--recipe", tmp_path / "r.toml", "-f", "TS:zfp(bound=0.1)", "--missing"]
    dry = run(*arguments, "exact", "--dry-run", "--recipe-out", tmp_path / "o.toml")
    assert dry.exit_code == 0, dry.output
    assert not (tmp_path / "b.nc").exists()
    assert tamis.Recipe.load(tmp_path / "o.toml") == tamis.Recipe(
        {"TS": "zfp(bound=0.1)"}, chunks={"*": {"time": 2}}, missing="exact"
    )
    assert run(*arguments, "exact", "--recipe-out", tmp_path / "o.toml").exit_code == 1  # the file exists
    assert run(*arguments, "exact", "--recipe-out", tmp_path / "o.toml", "--overwrite").exit_code == 0
    assert stored(tmp_path / "b.nc")[0] == (2, 32, 16)


def test_recipe_with_the_name_of_the_target_is_refused(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "b.nc"
    refused = run(source, target, "-f", "TS:deflate", "--recipe-out", target, "--overwrite")
    assert refused.exit_code == 2, refused.output
    assert "is an input or the target: choose another name for the recipe" in refused.output
    assert not target.exists()


def test_chunks_by_dimension_are_refused_for_a_variable_without_it_and_kept_by_a_pattern(
    source: Path, tmp_path: Path
) -> None:
    with pytest.raises(ParameterError, match=r"/PS: expected chunks for the dimensions time, lat, got lon"):
        tamis.repack(source, tmp_path / "b.nc", {}, chunks={"PS": {"lon": 4}})
    with pytest.raises(ParameterError, match=r"got lot; did you mean lon|got lot.*lon"):
        tamis.repack(source, tmp_path / "b.nc", {}, chunks={"TS": {"lot": 4}})
    result = tamis.repack(
        source, tmp_path / "b.nc", {"*S": "shuffle|deflate(1)"}, chunks={"*S": {"lon": 400}}, larger=True
    )
    assert [dataset.path for dataset in result.datasets] == ["/TS"]
    assert "expected chunks for the dimensions time, lat, got lon" in dict(result.kept)["/PS"]
    assert result.datasets[0].chunk_shape == (1, 32, 16)  # no longer than the dimension


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", (1, 1), "expected schema = 1, found none"),
        ("schema = 2", (1, 10), "expected schema = 1, the only version so far, found 2"),
        ("schema = true", (1, 10), "expected schema = 1"),
        (
            "schema = 1\nmising = 'exact'",
            (2, 1),
            "default, evidence, found 'mising' (did you mean",
        ),
        ("schema = 1\nmissing = 'no'", (2, 11), "expected one of exact, mask, refuse, found 'no'"),
        ("schema = 1\nvariable = 3", (2, 12), "expected tables [[variable]], found 3"),
        ("schema = 1\n[variable]\nname='x'", (2, 1), "expected tables [[variable]], found a table"),
        ("schema = 1\n\n[[variable]]\nfilters = 'none'", (3, 1), "expected name, the name or pattern of a dataset"),
        ("schema = 1\n[[variable]]\nname = 4", (3, 8), "found 4"),
        ("schema = 1\n[[variable]]\nstandard_name = ''\nfilters='none'", (3, 17), "expected standard_name, text"),
        ("schema = 1\n[[variable]]\nname='x'\nstandard_name='y'", (4, 15), "expected either name or standard_name"),
        ("schema = 1\n[[variable]]\nname='x'\nround='absolute(1)'\nchunks=[1]", (4, 7), "expected filters beside it"),
        ("schema = 1\n[[variable]]\nname='x'\nround=1\nfilters='none'", (4, 7), "expected text such as"),
        ("schema = 1\n[[variable]]\nname='x'\nround='lz4'\nfilters='none'", (4, 7), "expected a rounding such as"),
        (
            "schema = 1\n[[variable]]\nname='x'\nround='absolute(0)'\nfilters='none'",
            (4, 7),
            "expected bound above 0",
        ),
        (
            "schema = 1\n[[variable]]\nname='x'\nround='absolute(1)'\nfilters='bits(3)|deflate'",
            (4, 7),
            "expected only filters after the rounding absolute(bound=1.0), got bitround(keepbits=3)|deflate",
        ),
        ("schema = 1\n[[variable]]\nname='x'\nround='bits(3)'\nfilters='zfp(rate=8)'", (4, 7), "expected lossless"),
        ("schema = 1\ndefault = 1", (2, 11), "expected a table [default], found 1"),
        ("schema = 1\n[default]\nname = 'x'", (3, 1), "expected one of the fields round, filters"),
        ("schema = 1\n[default]\nchunks = 3", (3, 10), "expected a list such as"),
        (
            "schema = 1\n[default]\nfilters='none'\n[[variable]]\nname='*'\nchunks=[1]",
            (2, 1),
            "leave one of the two out",
        ),
        (
            "schema = 1\n[[variable]]\nname = 'x'",
            (2, 1),
            "expected filters, chunks or require for 'x', found none of them",
        ),
        (
            "schema = 1\n[[variable]]\nname = 'x'\nfilters = 'none'\n[[variable]]\nname = 'x'\nfilters = 'none'",
            (6, 8),
            "expected each name once, found 'x' again",
        ),
        ("schema = 1\n[[variable]]\nname = 'x'\n  filters = 5", (4, 13), "expected text such as"),
        ("schema = 1\n[[variable]]\nname = 'x'\nfilters = 'zpf(rate=1)'", (4, 11), "expected a filter"),
        ("schema = 1\n[[variable]]\nname = 'x'\nchunks = '4x4'", (4, 10), "expected a list such as [4, 96, 144], or"),
        ("schema = 1\n[[variable]]\nname = 'x'\nchunks = [4, true]", (4, 10), "found [4, True]"),
        ("schema = 1\n[[variable]]\nname = 'x'\nchunks = {lat = 0}", (4, 10), "expected whole numbers above 0"),
        ("schema = 1\n[[variable]]\nname = 'x'\nrequire = 0.1", (4, 11), 'expected text such as "abs=0.1,limits"'),
        ("schema = 1\n[[variable]]\nname = 'x'\n require = 'abc=1'", (4, 12), "got 'abc' (did you mean abs?)"),
        ("schema = 1\n[[variable]]\nname = 'x'\nfilters='none'\nmissing = 'exact'", (5, 1), "before the first"),
        ("schema = 1\n[[variable]]\n'na\\me' = '''x\n]'''\nname = 5", (3, 1), "found 'na\\\\me'"),
    ],
)
def test_wrong_fields_are_refused_with_their_place(
    text: str, place: tuple[int, int], message: str, tmp_path: Path
) -> None:
    (tmp_path / "r.toml").write_text(text)
    with pytest.raises(ParameterError) as caught:
        tamis.Recipe.load(tmp_path / "r.toml")
    assert f"{tmp_path / 'r.toml'}: line {place[0]}, column {place[1]}: " in str(caught.value)
    assert message in str(caught.value)


def test_what_is_no_toml_is_refused_with_the_place(tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text("schema = 1\n[[variable]\n")
    with pytest.raises(ParameterError, match=r"r\.toml: expected a recipe in TOML, found an error: .*line 2"):
        tamis.Recipe.load(tmp_path / "r.toml")


def test_places_of_nested_quoted_and_commented_keys() -> None:
    text = 'a.b = 1 # c = 2\n[t."x.y"]\nk = [1,\n  {z = """\nq = 1""", w = 2}] # ]\n'
    text += "[[v]]\n[[v]]\ns.u = 1979-05-27 07:32:00\n[v.e]\nf = 1\n"
    keys, values = places_of(text)
    assert values["a", "b"] == (1, 7)
    assert keys["t", "x.y", "k"] == (3, 1)
    assert values["t", "x.y", "k", 1, "w"] == (5, 15)
    assert values["v", 1] == (7, 1)
    assert values["v", 1, "s", "u"] == (8, 7)
    assert values["v", 1, "e", "f"] == (10, 5)


CHOSEN = """schema = 1

[default]
filters = "deflate(1)"

[[variable]]
standard_name = "surface_*"
round = "absolute(0.125)"
filters = "shuffle|deflate(4)"
chunks = {time = 4}

[[variable]]
name = "P*"
filters = "deflate(2)"

[[variable]]
name = "Q"
filters = "deflate(3)"
"""


def test_variables_by_standard_name_default_and_round(tmp_path: Path) -> None:
    """Exact names come first, then patterns and standard names in their order, then the default."""
    names = {"TS": "surface_temperature", "PS": "surface_air_pressure", "P2": "", "Q": "surface_x", "W": "upward"}
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("time", 8)
        file.createDimension("x", 400)
        for name, standard_name in names.items():
            variable = file.createVariable(name, "f4", ("time", "x"), chunksizes=(1, 400))
            variable[:] = np.linspace(0, 9, 3200).reshape(8, 400)
            variable.setncatts({"standard_name": standard_name} if standard_name else {})
    (tmp_path / "r.toml").write_text(CHOSEN)
    recipe = tamis.Recipe.load(tmp_path / "r.toml")
    rounded = "absolute(bound=0.125)|shuffle|deflate(4)"
    same = tamis.Recipe(
        {"standard_name=surface_*": "shuffle|deflate(4)", "P*": "deflate(2)", "Q": "deflate(3)", "*": "deflate(1)"},
        round={"standard_name=surface_*": "absolute(0.125)"},
        chunks={"standard_name=surface_*": {"time": 4}},
    )
    assert recipe == same
    assert 'standard_name = "surface_*"' in str(recipe)
    recipe.dump(tmp_path / "again.toml")
    assert tamis.Recipe.load(tmp_path / "again.toml") == recipe
    result = tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", recipe)
    assert {dataset.path: dataset.pipeline for dataset in result.datasets} == {
        "/Q": "deflate(3)",
        "/TS": rounded,
        "/PS": rounded,
        "/P2": "deflate(2)",
        "/W": "deflate(1)",
    }
    assert {dataset.path: dataset.chunk_shape for dataset in result.datasets}["/PS"] == (4, 400)
    option = "standard_name=upward:zfp(bound=0.1)"
    assert run(tmp_path / "a.nc", tmp_path / "c.nc", "-f", option).exit_code == 0
    with pytest.raises(FileError, match=r"standard_name=up, found only surface_air_pressure, .*upward"):
        tamis.repack(tmp_path / "a.nc", tmp_path / "d.nc", {"standard_name=up": "deflate(1)"})
    xr = pytest.importorskip("xarray")
    with xr.open_dataset(tmp_path / "a.nc", engine="netcdf4") as ds:
        assert "TS" in tamis.encoding(ds, {"standard_name=surface_t*": "deflate(1)"}, engine="netcdf4")


def test_a_rounding_of_a_recipe_needs_filters() -> None:
    with pytest.raises(ParameterError, match="expected filters for 'x' after absolute"):
        tamis.Recipe({}, round={"x": tamis.Absolute(0.1)})
    recipe = tamis.Recipe({"x": "deflate(1)"}, round={"x": tamis.Absolute(0.1)})
    assert str(recipe.filters["x"]) == "absolute(bound=0.1)|deflate(1)"


def test_requirements_of_one_name_hold_together(sample: Path, tmp_path: Path) -> None:
    saved = tamis.Recipe({"/TS": "absolute(0.1)|deflate(1)", "lat": "deflate(2)"}, require={"/TS": "abs=0.1,sign"})
    called = tamis.Recipe({"/lat/": "deflate(3)"}, require={"TS": "psnr=20,abs=0.2"})
    both = called.before(saved)
    assert {name: str(value) for name, value in both.require.items()} == {"TS": "abs=0.2,sign,psnr=20.0"}
    assert {name: str(value) for name, value in both.filters.items()} == {
        "/lat/": "deflate(3)",
        "/TS": "absolute(bound=0.1)|deflate(1)",
    }
    saved.dump(tmp_path / "r.toml")
    arguments = ["repack", str(sample), str(tmp_path / "a.nc"), "--recipe", str(tmp_path / "r.toml")]
    arguments += ["--require", "TS:corr=0.99", "--require", "/TS:rmse=1"]
    result = CliRunner().invoke(main, [*arguments, "--json"])
    datasets = json.loads(result.stdout)["datasets"]
    assert [each["require"] for each in datasets if each["path"] == "/TS"] == ["abs=0.1,sign,rmse=1.0,corr=0.99"]


# Python 3.13.0 keeps compiled modules that the limit cut off.
FULL = """
import resource, sys, tamis
sys.dont_write_bytecode = True
resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))
try:
    tamis.Recipe({"TS": "zstd(5)"}).dump(sys.argv[1], overwrite=sys.argv[2] == "over")
except tamis.FileError as error:
    print(error)
"""


def test_recipe_is_written_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    old = tmp_path / "old.toml"
    tamis.Recipe({"TS": "deflate(9)"}).dump(old)
    text = old.read_text()
    for name, how in (("old.toml", "over"), ("new.toml", "once")):
        command = [sys.executable, "-c", FULL, tmp_path / name, how]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        assert "cannot be written" in done.stdout
    assert [each.name for each in tmp_path.iterdir()] == ["old.toml"]
    assert old.read_text() == text
    tamis.Recipe({"TS": "zstd(5)"}).dump(old, overwrite=True)
    assert tamis.Recipe.load(old).filters == {"TS": tamis.Pipeline.parse("zstd(5)")}
    tamis.Recipe({"TS": "zstd(5)"}).dump("/dev/null", overwrite=True)
