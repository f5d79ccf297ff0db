"""tamis copy: nccopy's options for filters and chunks, compared with nccopy where that is right."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import h5py
import needs
import netCDF4
import numpy as np
import pytest
from click.testing import CliRunner, Result
from h5py import h5d, h5p, h5s, h5t, h5z

import tamis
from tamis import FileError, ParameterError
from tamis.cli import main
from tamis.jobs.copy import CopyOptions, preview_copy, run_copy

Run = Callable[..., str]

CDL = r"""
netcdf t {
dimensions: time = UNLIMITED ; lat = 48 ; lon = 96 ; n = 5 ; odd\,name = 6 ;
variables:
  float v1(time, lat, lon) ; v1:_ChunkSizes = 2, 24, 96 ;
  float v2(lat, lon) ; v2:_Storage = "contiguous" ;
  float v3(time, lat, lon) ; v3:_ChunkSizes = 1, 48, 96 ; v3:_Shuffle = "true" ; v3:_DeflateLevel = 4 ;
  float v4(lat, lon) ; v4:_ChunkSizes = 24, 48 ; v4:_Filter = "307,5" ;
  float v5(lat, lon) ; v5:_ChunkSizes = 24, 48 ; v5:_Fletcher32 = "true" ; v5:_DeflateLevel = 2 ;
  float a\,b\&c(lat, lon) ; a\,b\&c:_ChunkSizes = 24, 48 ;
  float größe(lat, lon) ; größe:_ChunkSizes = 24, 48 ;
  double s ; string st(n) ; double lat(lat) ; double time(time) ; int odd\,name(odd\,name) ;
group: g { dimensions: y = 40 ; variables: float w(y, lon) ; w:_ChunkSizes = 20, 48 ; }
}
"""
FIELDS = ("v1", "v2", "v3", "v4", "v5", "a,b&c", "größe", "g/w")


def netcdf_plugins() -> str:
    """Our plugin and those of the wheel of netCDF4, which has bzip2 for Debian's programs."""
    spec = find_spec("netCDF4")
    assert spec is not None
    assert spec.origin is not None
    return os.pathsep.join([str(tamis.plugin_path()), str(Path(spec.origin).parent / "plugins")])


def program(*command: str | Path, code: int = 0) -> str:
    """Run a program of netCDF."""
    needs.need(command[0])
    env = os.environ | {"HDF5_PLUGIN_PATH": netcdf_plugins()}
    done = subprocess.run([*map(str, command)], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with each kind of storage, made by ncgen."""
    folder = tmp_path_factory.mktemp("copy")
    (folder / "t.cdl").write_text(CDL)
    program("ncgen", "-4", "-o", folder / "empty.nc", folder / "t.cdl")
    # Values by netCDF, for the filters of the wheel of netCDF4.
    code = """
import sys, netCDF4, numpy as np
rng = np.random.default_rng(1)
with netCDF4.Dataset(sys.argv[1], "a") as file:
    for name in sys.argv[2:]:
        extents = {"time": 4, "lat": 48, "lon": 96, "y": 40}
        shape = [extents[dimension] for dimension in file[name].dimensions]
        file[name][:] = rng.normal(size=shape).cumsum(-1)
    file["time"][:], file["lat"][:], file["s"][...], file["odd,name"][:] = range(4), np.arange(48) / 3, 3, range(6)
    file["st"][:] = np.array(list("abcde"), object)
"""
    env = os.environ | {"HDF5_PLUGIN_PATH": netcdf_plugins()}
    subprocess.run([sys.executable, "-c", code, folder / "empty.nc", *FIELDS], env=env, check=True)
    return folder / "empty.nc"


def filters_of(path: Path) -> dict[str, str]:
    """The filters of each field, as stored."""
    datasets = {dataset.path[1:]: dataset for dataset in tamis.inspect(path).datasets}
    return {name: "|".join(f"{stage.filter}" for stage in datasets[name].pipeline.stages) for name in FIELDS}


def chunks_of(path: Path) -> dict[str, tuple[int, ...] | None]:
    with h5py.File(path) as file:
        return {name: file[name].chunks for name in FIELDS}


def nccopied(source: Path, target: Path, *options: str) -> dict[str, str]:
    program("nccopy", "-M", "0", *options, source, target)
    return filters_of(target)


def copied(source: Path, target: Path, **options: object) -> dict[str, str]:
    run_copy(source, target, CopyOptions.asked(**options))  # type: ignore[arg-type]
    return filters_of(target)


def changed(before: dict[str, str], **filters: str) -> dict[str, str]:
    return before | filters


ROWS = {
    "nothing": ([], {}),
    "none": (["none"], dict.fromkeys(FIELDS, "")),
    "*,none": (["*,none"], dict.fromkeys(FIELDS, "")),
    "*,NONE": (["*,NONE"], dict.fromkeys(FIELDS, "")),
    "one none": (["v4,none"], {"v4": ""}),
    "one without filters": (["v1,307,9"], {"v1": "bzip2(9)"}),
    "with other filters": (["v4,1,3"], {"v4": "deflate(3)"}),
    "several": (["v1&v4,307,9"], {"v1": "bzip2(9)", "v4": "bzip2(9)"}),
    "chain in netCDF's order": (["v1,1,4|2"], {"v1": "shuffle|deflate(4)"}),
    "the same again": (["v1,307,9", "v1,307,3"], {"v1": "bzip2(3)"}),
    "another again": (["v1,1,4", "v1,3"], {"v1": "fletcher32|deflate(4)"}),
    "in a group": (["/g/w,307,9"], {"g/w": "bzip2(9)"}),
    "escapes": ([r"a\,b\&c,307,9"], {"a,b&c": "bzip2(9)"}),
    "unicode": (["größe,307,9"], {"größe": "bzip2(9)"}),
}
"""Rows of netCDF's table of -F that nccopy does as documented."""

WRONG_ROWS = {
    "none and one": (["none", "v1,307,9"], {**dict.fromkeys(FIELDS, ""), "v1": "bzip2(9)"}),
    "filtered in the input": (["v3,307,9"], {"v3": "bzip2(9)"}),
}
"""Rows that nccopy does otherwise, with exit code 0."""


@pytest.mark.matrix
@pytest.mark.parametrize("row", ROWS)
def test_documented_row_gives_the_filters_of_nccopy(source: Path, tmp_path: Path, row: str) -> None:
    arguments, filters = ROWS[row]
    options = [part for argument in arguments for part in ("-F", argument)]
    ours = copied(source, tmp_path / "ours.nc", filters=arguments)
    theirs = nccopied(source, tmp_path / "theirs.nc", *options)
    assert ours == theirs == changed(filters_of(source), **filters)
    assert "odd\\,name = 0, 1, 2, 3, 4, 5 ;" in program("ncdump", tmp_path / "ours.nc")
    assert values_alike(source, tmp_path / "ours.nc")
    # With -F, nccopy chunks contiguous variables that are not named. We do not.
    assert chunks_of(tmp_path / "ours.nc")["v2"] is None


@pytest.mark.parametrize("row", WRONG_ROWS)
def test_d17_row_that_nccopy_ignores_is_done(source: Path, tmp_path: Path, row: str) -> None:
    arguments, filters = WRONG_ROWS[row]
    options = [part for argument in arguments for part in ("-F", argument)]
    assert copied(source, tmp_path / "ours.nc", filters=arguments) == changed(filters_of(source), **filters)
    assert nccopied(source, tmp_path / "theirs.nc", *options) != changed(filters_of(source), **filters)


def values_alike(one: Path, other: Path) -> bool:
    return all(np.array_equal(tamis.open(one)[name][()], tamis.open(other)[name][()]) for name in FIELDS)


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("options", "filters"),
    [
        ({"filters": ["*,307,9"]}, dict.fromkeys(FIELDS, "bzip2(9)")),
        ({"filters": ["*,307,9", "v1,1,3"]}, {**dict.fromkeys(FIELDS, "bzip2(9)"), "v1": "deflate(3)"}),
        ({"filters": ["*,307,9", "v1,none"]}, {**dict.fromkeys(FIELDS, "bzip2(9)"), "v1": ""}),
        ({"filters": ["none", "*,307,9"]}, dict.fromkeys(FIELDS, "bzip2(9)")),
        ({"level": 3}, {**dict.fromkeys(FIELDS, "deflate(3)"), "v5": "fletcher32|deflate(3)"}),
        ({"level": 3, "filters": ["none"]}, dict.fromkeys(FIELDS, "deflate(3)")),
        (
            {"level": 3, "shuffle": True, "filters": ["v4,none", "v2,307,9"]},
            {
                **dict.fromkeys(FIELDS, "shuffle|deflate(3)"),
                "v5": "fletcher32|shuffle|deflate(3)",
                "v4": "",
                "v2": "bzip2(9)",
            },
        ),
        ({"level": 0}, {"v3": "", "v5": "fletcher32"}),
        ({"level": 0, "filters": ["v1,307,9"]}, {"v1": "bzip2(9)", "v3": "", "v5": "fletcher32"}),
        ({"filters": ["v1,32013,3,0,0.1d"]}, {"v1": "zfp(accuracy=0.0625)"}),
        ({"filters": ["v3,32013,5|2|1,4|3"]}, {"v3": "zfp(reversible=True)|fletcher32"}),
    ],
    ids=str,
)
def test_rules_of_all_options_together(
    source: Path, tmp_path: Path, options: dict[str, object], filters: dict[str, str]
) -> None:
    result = copied(source, tmp_path / "o.nc", larger=True, **options)
    assert result == changed(filters_of(source), **filters)


def test_example_of_the_help_stores_each_variable_as_it_says(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "o.nc"
    result = run_copy(
        source,
        target,
        CopyOptions.asked(["v1,32013,3,0,0.1d", "*,none"], chunks=["time/2,lat/24"], level=4, shuffle=True),
    )
    rest = dict.fromkeys(FIELDS, "shuffle|deflate(4)")
    assert filters_of(target) == rest | {"v1": "zfp(accuracy=0.0625)"}
    assert chunks_of(target) | {} == {
        **{"v1": (2, 24, 96), "v2": (24, 96), "v3": (2, 24, 96), "v4": (24, 48), "v5": (24, 48)},
        **{"a,b&c": (24, 48), "größe": (24, 48), "g/w": (20, 48)},
    }
    error = np.abs(tamis.open(source)["v1"][()] - tamis.open(target)["v1"][()]).max()
    assert 0 < error <= 0.1
    assert error == result["v1"].largest_error
    kept = dict(result.kept)
    assert "scalar" in kept["/s"]
    assert "fixed size, got string" in kept["/st"]
    assert "less than 4096 B" in kept["/lat"]
    assert "/lon" not in kept  # a dimension without a variable


@pytest.mark.matrix
@pytest.mark.parametrize(
    "options",
    [["time/2,lat/"], ["lat/24,lon/48,/g/y/10", "v2:10,20"], ["lon/,time/3", "v1:1,2,3"]],
    ids=str,
)
def test_chunk_options_give_the_shapes_of_nccopy(source: Path, tmp_path: Path, options: list[str]) -> None:
    arguments = [part for argument in options for part in ("-c", argument)]
    program("nccopy", "-M", "0", *arguments, source, tmp_path / "theirs.nc")
    # By a program, because h5py of this process lacks bzip2, which netCDF makes a required filter.
    program(Path(sys.executable).with_name("tamis"), "copy", *arguments, source, tmp_path / "ours.nc")
    assert chunks_of(tmp_path / "ours.nc") == chunks_of(tmp_path / "theirs.nc")
    assert filters_of(tmp_path / "ours.nc") == filters_of(tmp_path / "theirs.nc")


def test_min_size_decides_about_unnamed_variables(source: Path, tmp_path: Path) -> None:
    run_copy(source, tmp_path / "o.nc", CopyOptions.asked(chunks=["lat/24"], min_size=100))
    with h5py.File(tmp_path / "o.nc") as file:
        assert file["lat"].chunks == (24,)
    preview = preview_copy(source, tmp_path / "p.nc", CopyOptions.asked(chunks=["lat/24"], level=1, min_size=10**6))
    assert {dataset.action for dataset in preview.datasets} == {"keep"}


def test_u05_lossy_filters_for_all_leave_out_coordinates_and_list_them(source: Path, tmp_path: Path) -> None:
    result = run_copy(source, tmp_path / "o.nc", CopyOptions.asked(["*,32013,3,0,0.1d"], min_size=0))
    assert filters_of(tmp_path / "o.nc") == dict.fromkeys(FIELDS, "zfp(accuracy=0.0625)")
    kept = dict(result.kept)
    assert {"/lat", "/time", "/odd,name", "/s", "/st"} == kept.keys()
    assert "name it to store it lossily" in kept["/lat"]
    run_copy(source, tmp_path / "named.nc", CopyOptions.asked(["lat,32013,3,0,0.1d"]))
    assert tamis.inspect(tmp_path / "named.nc")["lat"].pipeline.zfp is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"filters": ["nosuch,1,4"]}, r"a variable at '/nosuch' \(-F\), found none; there are /v1, /v2, "),
        ({"filters": ["w,1,4"]}, "there is /g/w: write the whole path"),
        ({"filters": ["V1,1,4"]}, r"did you mean v1\?"),
        ({"filters": ["v*,1,4"]}, r"patterns are not supported, except \* alone"),
        ({"chunks": ["nosuch/4"]}, r"a dimension at '/nosuch' \(-c\), found none"),
        ({"chunks": ["y/4"]}, "there is /g/y: write the whole path"),
        ({"chunks": ["nosuch:4"]}, r"a variable at '/nosuch' \(-c\), found none"),
    ],
    ids=str,
)
def test_d17_name_that_leads_to_nothing_is_refused(
    source: Path, tmp_path: Path, options: dict[str, object], message: str
) -> None:
    with pytest.raises(FileError, match=message):
        copied(source, tmp_path / "o.nc", **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"filters": ["s,1,4"]}, "scalar"),
        ({"filters": ["st,1,4"]}, "fixed size, got string"),
        ({"filters": ["v1,1,4", "v1,none"]}, "-F gives '/v1' both filters and none"),
        ({"filters": ["*,1,4"], "level": 3}, r"-d and -F '\*,…' both give filters"),
        ({"filters": ["v1,1,4|32013,3,0,0.1d"]}, "expected zfp first"),
        ({"filters": ["v1,1.5"]}, "a filter id"),
        ({"shuffle": True}, "-s needs -d 1 to 9"),
        ({"shuffle": True, "level": 0}, "-s needs -d 1 to 9"),
        ({"level": 10}, "a level of 0 to 9"),
        ({"chunks": ["lat/49"]}, "at most 48 for lat"),
        ({"chunks": ["lat/4", "lat/8"]}, "one chunk length for '/lat'"),
        ({"chunks": ["v2:4,4", "/v2:8,8"]}, "one chunk shape for '/v2'"),
        ({"chunks": ["v2:10"]}, "chunks with 2 axes"),
        ({"chunks": ["/"]}, "h5repack -l CONTI, or nccopy -c /"),
        ({"chunks": ["v2:"]}, "h5repack -l v2:CONTI, or nccopy -c v2:"),
        ({"chunks": ["v2:compact"]}, "h5repack -l v2:COMPA, or nccopy -c v2:compact"),
        ({"kind": "nc7"}, "copy keeps the kind of the file, 'netCDF-4', but"),
        ({"kind": "classic"}, "no chunks and no filters: use nccopy"),
        ({"min_size": -1}, "min_size to be a whole number, 0 or more"),
    ],
    ids=str,
)
def test_option_that_cannot_be_done_is_refused(
    source: Path, tmp_path: Path, options: dict[str, object], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        copied(source, tmp_path / "o.nc", **options)
    assert not list(tmp_path.iterdir())


def test_orders_of_filters_that_tamis_does_not_write_are_replaced_or_named(tmp_path: Path) -> None:
    values = np.arange(5000, dtype="i4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_chunk((500,))
        plist.set_deflate(1)
        plist.set_fletcher32()
        plist.set_filter(h5z.FILTER_NBIT, 0, ())
        h5d.create(file.id, b"x", h5t.STD_I32LE, h5s.create_simple((5000,)), plist).write(h5s.ALL, h5s.ALL, values)
    run_copy(tmp_path / "a.h5", tmp_path / "b.nc", CopyOptions.asked(level=9))
    with h5py.File(tmp_path / "b.nc") as file:
        assert file["x"].compression_opts == 9
        np.testing.assert_array_equal(file["x"][...], values)
    with pytest.raises(ParameterError, match=r"^/x: expected nbit first in a pipeline, got fletcher32 before it"):
        run_copy(tmp_path / "a.h5", tmp_path / "c.nc", CopyOptions.asked(level=0))


def test_kind_that_the_file_has_is_accepted(source: Path, tmp_path: Path) -> None:
    copied(source, tmp_path / "o.nc", kind="netCDF-4")
    assert program("ncdump", "-k", tmp_path / "o.nc").strip() == "netCDF-4"


@pytest.mark.parametrize("kind", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA"])
def test_classic_file_gets_filters_and_chunks(tmp_path: Path, kind: str) -> None:
    values = np.random.default_rng(0).normal(size=(5, 48, 96)).cumsum(-1).astype("f4")
    with netCDF4.Dataset(tmp_path / "c.nc", "w", format=kind) as file:
        for name, extent in (("time", None), ("lat", 48), ("lon", 96)):
            file.createDimension(name, extent)
        file.createVariable("T", "f4", ("time", "lat", "lon"))[:] = values
        file.createVariable("P", "f4", ("lat", "lon"))[:] = 2
    program("nccopy", "-d4", "-s", "-c", "time/2,lat/24", tmp_path / "c.nc", tmp_path / "theirs.nc")
    run_copy(
        tmp_path / "c.nc",
        tmp_path / "ours.nc",
        CopyOptions.asked(chunks=["time/2,lat/24"], level=4, shuffle=True, kind="nc4"),
    )
    theirs, ours = tamis.inspect(tmp_path / "theirs.nc"), tamis.inspect(tmp_path / "ours.nc")
    for name in ("T", "P"):
        assert ours[name].chunks == theirs[name].chunks
        assert ours[name].filters == theirs[name].filters == ("shuffle", "deflate level 4")
    assert np.array_equal(tamis.open(tmp_path / "ours.nc")["T"][()], values)


# The command


def command(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["copy", *map(str, arguments)], prog_name="tamis")


def test_command_copies_and_prints_what_it_did(source: Path, tmp_path: Path) -> None:
    result = command(source, tmp_path / "o.nc", "-F", "v1,32013,3,0,0.1d", "-F", "*,none", "-c", "time/2", "-d4", "-s")
    assert result.exit_code == 0, result.output
    assert re.search(r"/v1 +zfp\(accuracy=0.1\)", result.stdout)
    assert "read back and verified" in result.stdout
    again = command(source, tmp_path / "o.nc", "-d4")
    assert (again.exit_code, "File exists" in again.stderr) == (1, True)
    assert command(source, source, "-d4", "--overwrite").exit_code == 1
    assert command(source, tmp_path / "o.nc", "-d", "4", "--overwrite", "-q", "-4").exit_code == 0


def test_command_previews_and_gives_json(source: Path, tmp_path: Path) -> None:
    preview = command(source, tmp_path / "o.nc", "-d4", "--dry-run")
    assert "dry run, nothing was written" in preview.stdout
    assert not list(tmp_path.iterdir())
    failed = command(source, tmp_path / "o.nc", "-F", "nosuch,1", "--json")
    assert (failed.exit_code, '"kind": "FileError"' in failed.stdout) == (1, True)


@pytest.mark.parametrize("option", ["-u", "-w", "-r", "-3", "-5", "-6"])
def test_flag_of_nccopy_that_is_refused_says_what_to_do(source: Path, tmp_path: Path, option: str) -> None:
    result = command(source, tmp_path / "o.nc", option, "-d", "4")
    assert result.exit_code == 2
    assert f"{option} is an option of nccopy that tamis copy does not have: " in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["-v", "-V", "-g", "-G", "-m", "-e", "-L"])
def test_option_of_nccopy_that_is_refused_says_what_to_do(source: Path, tmp_path: Path, option: str) -> None:
    result = command(source, tmp_path / "o.nc", option, "v1")
    assert result.exit_code == 2
    assert f"{option} is an option of nccopy that tamis copy does not have: " in result.stderr
    assert not list(tmp_path.iterdir())


def test_function_writes_what_the_command_writes(source: Path, tmp_path: Path) -> None:
    done = command("-F", "v1,32013,3,0,0.1d", "-c", "lat/16", "-d", "4", "-s", source, tmp_path / "a.nc")
    assert done.exit_code == 0, done.output
    tamis.copy(source, tmp_path / "b.nc", "v1,32013,3,0,0.1d", chunks="lat/16", level=4, shuffle=True)
    assert (tmp_path / "a.nc").read_bytes() == (tmp_path / "b.nc").read_bytes()


def test_function_refuses_unknown_options(source: Path, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"^copy\(\) got an unexpected keyword argument 'squeeze'"):
        tamis.copy(source, tmp_path / "b.nc", squeeze=True)  # type: ignore[call-arg]
    assert not (tmp_path / "b.nc").exists()
