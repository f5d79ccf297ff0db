"""The command line: what it prints, where, and with which exit code."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import CliRunner, Result

import tamis
from tamis.cli import main
from tamis.filters import by_id
from tamis.stores import READABLE

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "data" / "cam_ts.nc"
TAMIS = Path(sys.executable).with_name("tamis")
RECIPE = ("-f", "TS:zfp(accuracy=0.1)")


def tamis_(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments], prog_name="tamis")


def assert_failed(result: Result, code: int, *said: str) -> None:
    """A message of ours on stderr, and no traceback behind it."""
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    for each in said:
        assert each in result.stderr


# What a terminal toolkit could take for markup, and what the notation could take for its own.
ODD = ["T[k]", "q:warning:r", "[/b]", "[bold]x", "sp ace", "ünï", "T(K)", "a:b", "n" * 150]


@pytest.fixture(params=ODD, ids=lambda name: name[:12])
def odd(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """A file with one dataset, and the name of that."""
    with h5py.File(tmp_path / "odd.h5", "w") as file:
        file[request.param] = np.arange(256.0).reshape(16, 16)
    return tmp_path / "odd.h5", request.param


def test_inspect_sample_prints_a_row_for_each_dataset() -> None:
    result = tamis_("inspect", SAMPLE)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == f"{SAMPLE} (3.88 MB, 6 datasets)"
    assert lines[1].split() == ["dataset", "shape", "type", "chunks", "filters", "stored", "ratio"]
    shuffled = "shuffle|deflate(2)"
    assert lines[2].split() == ["/TS", "30x192x288", "float32", "1x192x288", shuffled, "3.85", "MB", "1.72"]
    assert lines[5].split() == ["/nbnd", "2", ">f4", "contiguous", "0", "B"]
    assert lines[8:] == [
        "",
        "/TS, /lat, /lon, /time and 1 more",
        "  filters  shuffle | deflate level 2",
        "  read by  any HDF5",
    ]


def test_inspect_variables_selected_by_name_and_pattern() -> None:
    lines = tamis_("inspect", SAMPLE, "-v", "TS", "--variable", "time*").stdout.splitlines()
    assert [line.split(" ")[0] for line in lines[2:5]] == ["/TS", "/time", "/time_bnds"]
    assert_failed(tamis_("inspect", SAMPLE, "-v", "PS"), 1, f"tamis inspect: {SAMPLE}: expected a dataset named 'PS'")


def test_inspect_json_is_one_document_with_errors(tmp_path: Path) -> None:
    (tmp_path / "bad.nc").write_text("no")
    result = tamis_("inspect", "--json", SAMPLE, tmp_path / "bad.nc", "-v", "TS")
    assert result.exit_code == 1
    made = json.loads(result.stdout)
    assert made["schema"] == 1
    assert [each["path"] for each in made["files"]] == [str(SAMPLE)]
    assert [each["path"] for each in made["files"][0]["datasets"]] == ["/TS"]
    (error,) = made["errors"]
    assert error["path"] == str(tmp_path / "bad.nc")
    assert result.stderr == f"tamis inspect: {error['message']}\n"


@pytest.mark.parametrize(
    ("notation", "printed"),
    [
        ("h5repack", ["-f TS:SHUF", "-f TS:GZIP=2", "-l TS:CHUNK=1x192x288"]),
        ("nccopy", ["-F 'TS,2|1,2'", "-c TS:1,192,288"]),
        ("tamis", ["-f 'TS:shuffle|deflate(2)'", "-c TS:1x192x288"]),
        ("h5py", ["# /TS\n", "chunks=(1, 192, 288), shuffle=True, compression='gzip', compression_opts=2"]),
        ("ncgen", ["// /TS\n", 'TS:_Shuffle = "true" ;', "TS:_DeflateLevel = 2 ;"]),
        ("zarr", ['"/TS": [{', '"numcodecs.shuffle"']),
        (
            "zarr2",
            ['"/TS": {"filters": [{"id": "shuffle", "elementsize": 4}], "compressor": {"id": "zlib", "level": 2}}'],
        ),
        ("nczarr", ['"elementsize": 4']),
    ],
)
def test_inspect_as_prints_arguments_to_paste(notation: str, printed: list[str]) -> None:
    result = tamis_("inspect", SAMPLE, "-v", "TS", "--as", notation)
    assert result.exit_code == 0
    assert all(line.startswith("tamis inspect: note: ") for line in result.stderr.splitlines())
    for each in printed:
        assert each in result.stdout


def test_inspect_as_of_several_files_names_them_in_comments() -> None:
    lines = tamis_("inspect", SAMPLE, SAMPLE, "-v", "TS", "--as", "tamis").stdout.splitlines()
    assert lines[::2] == [f"# {SAMPLE}"] * 2


def test_inspect_as_what_a_notation_cannot_say_fails_and_prints_the_rest(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("bad", data=np.arange(9.0), chunks=(3,), compression=4, fletcher32=True)
        file.create_dataset("good", data=np.arange(9.0), chunks=(3,), compression=4)
    result = tamis_("inspect", tmp_path / "a.h5", "--as", "nccopy")
    assert result.exit_code == 1
    assert "-F good,1,4" in result.stdout
    assert "bad" not in result.stdout
    assert f"tamis inspect: {tmp_path}/a.h5: /bad: nccopy cannot express deflate(4)|fletcher32" in result.stderr


def test_inspect_json_and_as_at_once_is_wrong_use() -> None:
    result = tamis_("inspect", SAMPLE, "--json", "--as", "h5py")
    assert result.exit_code == 2
    assert "--json and --as cannot be combined" in result.stderr


def test_inspect_several_files_shows_the_good_and_fails_for_the_bad(tmp_path: Path) -> None:
    (tmp_path / "bad.nc").write_text("no")
    result = tamis_("inspect", tmp_path / "bad.nc", SAMPLE, tmp_path / "none.nc")
    assert result.exit_code == 1
    assert "/TS" in result.stdout
    assert result.stderr.splitlines() == [
        f"tamis inspect: {tmp_path}/bad.nc: expected {READABLE}, got text that begins with 'no'",
        f"tamis inspect: {tmp_path}/none.nc: No such file or directory",
    ]


@pytest.mark.parametrize("name", ["", "x" * 300, "folder"], ids=["empty", "long", "folder"])
def test_inspect_path_that_is_no_file_fails_with_a_message(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    path = str(tmp_path / name) if name else ""
    assert_failed(tamis_("inspect", path), 1, "tamis inspect: ")


def test_inspect_prints_names_of_datasets_as_they_are(odd: tuple[Path, str]) -> None:
    path, name = odd
    result = tamis_("inspect", path)
    assert result.exit_code == 0, result.exception
    assert f"\n/{name} " in result.stdout


@pytest.mark.parametrize("name", ["a[red].h5", "a:warning:.h5", "plain.h5"])
def test_inspect_prints_names_of_files_as_they_are(name: str, tmp_path: Path) -> None:
    h5py.File(tmp_path / name, "w").close()
    assert str(tmp_path / name) in tamis_("inspect", tmp_path / name).stdout


def test_repack_takes_and_prints_names_of_datasets_as_they_are(odd: tuple[Path, str], tmp_path: Path) -> None:
    path, name = odd
    result = tamis_("repack", path, tmp_path / "b.h5", "-f", f"{name}:zfp(rate=16)")
    assert result.exit_code == 0, result.output
    assert f"\n/{name} " in result.stdout


def test_inspect_long_row_through_a_pipe_is_not_cut(tmp_path: Path) -> None:
    path = "group_" + "n" * 120 + "/" + "variable_" * 8
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset(path, data=np.arange(64.0).reshape(8, 8), chunks=(4, 4), **tamis.Zfp(accuracy=0.1))
    result = tamis_("inspect", tmp_path / "a.h5")
    assert f"/{path} " in result.stdout
    assert "zfp accuracy, effective tolerance 2^-4 = 0.0625 (H5Z-ZFP 1.1.1, zfp 1.0.1)" in result.stdout


def test_inspect_chunks_without_a_filter_counted_in_words(tmp_path: Path) -> None:
    data = np.arange(256.0).reshape(16, 16)
    data[0, 0] = np.nan
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=data, chunks=(8, 8))
    done = tamis_("repack", tmp_path / "a.h5", tmp_path / "b.h5", "-f", "v:zfp(accuracy=0.1)")
    assert done.stdout.splitlines()[1].endswith(" 1 of 4")
    shown = tamis_("inspect", tmp_path / "b.h5").stdout
    assert "  chunks   3 of 4 chunks: zfp, fletcher32; 1: fletcher32 (zfp skipped)" in shown


def test_repack_sample_prints_sizes_error_bound_and_time(tmp_path: Path) -> None:
    target = tmp_path / "small.nc"
    result = tamis_("repack", SAMPLE, target, *RECIPE)
    assert result.exit_code == 0
    with h5py.File(SAMPLE) as old, h5py.File(target) as new:
        error = np.abs(old["TS"][()].astype("f8") - new["TS"][()].astype("f8")).max()
    row = next(line for line in result.stdout.splitlines() if "/TS" in line)
    cells = re.split("  +", row)
    assert cells[:3] == ["/TS", "zfp(accuracy=0.1)|fletcher32", "3.85 MB"]
    assert cells[4] == "2.18"
    assert cells[6:] == [f"{error:.3g}", "0.1", "0 of 30"]
    last = result.stdout.splitlines()[-1]
    assert last.startswith(f"{SAMPLE} (3.88 MB) -> {target} (1.8 MB) in ")
    assert last.endswith(" s: 1 dataset rewritten, read back and verified")


def test_repack_options_reach_the_job(tmp_path: Path) -> None:
    target = tmp_path / "b.nc"
    target.write_bytes(b"old")
    options = ("-c", "TS:4x96x144", "-f", "lat:shuffle|deflate(9)", "--no-checksum", "--overwrite")
    result = tamis_("repack", SAMPLE, target, *RECIPE, *options)
    assert result.exit_code == 0, result.output
    with h5py.File(target) as file:
        assert file["TS"].chunks == (4, 96, 144)
        assert [file["TS"].id.get_create_plist().get_nfilters(), file["lat"].compression_opts] == [1, 9]


def test_repack_pattern_lists_what_was_kept_and_converted(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["be"], file["flag"] = np.arange(64, dtype=">f4").reshape(8, 8), np.array([True, False])
    result = tamis_(
        "repack", tmp_path / "a.h5", tmp_path / "b.h5", "-f", "*:zfp(rate=16)", "--min-size", "0", "--larger"
    )
    assert result.exit_code == 0
    assert "/be: converted from >f4 to native <f4, which zfp needs\n" in result.stdout
    assert "/flag: kept as it is: expected numbers, got values of the type bool" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-f", "TS"), "expected NAME:FILTERS such as 'TS:zfp(accuracy=0.1)', got 'TS'"),
        (("-f", "TS:zfpp(rate=8)"), "  zfpp(rate=8)\n  ^"),
        (("-f", "TS:zfp(accuracy=x)"), "expected a finite accuracy above 0, got accuracy='x'"),
        (("-f", "TS:zfp(rate=8,accuracy=1)"), "expected exactly one ZFP mode, got rate and accuracy"),
        (("-f", "time:zfp(rate=8)"), "/time: expected a chunk of more than one value, got (1,)"),
        ((*RECIPE, *RECIPE), "expected each name once in -f"),
        ((*RECIPE, "-c", "TS:1x2x3", "-c", "TS:4x96x144"), "expected each name once in -c"),
        ((*RECIPE, "-c", "TS"), "4x96x144"),
        ((*RECIPE, "-c", "TS:4,96,144"), "expected a chunk shape such as 4x96x144, got '4,96,144'"),
        ((*RECIPE, "-c", "TS:4x4"), "/TS: expected chunks with 3 axes, got (4, 4)"),
        (("-c", "lat:500"), "/lat: expected chunks within the shape (192,), got (500,)"),
        ((*RECIPE, "--accuracy=1"), "No such option"),
    ],
    ids=str,
)
def test_repack_wrong_use_exits_2_with_a_message(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    assert_failed(tamis_("repack", SAMPLE, tmp_path / "b.nc", *arguments), 2, said)
    assert os.listdir(tmp_path) == []


def test_repack_failures_exit_1_with_a_message(tmp_path: Path) -> None:
    target = tmp_path / "b.nc"
    assert_failed(tamis_("repack", SAMPLE, target, "-f", "XX:deflate"), 1, "cam_ts.nc: expected a dataset named 'XX'")
    assert_failed(tamis_("repack", tmp_path / "no.nc", target, *RECIPE), 1, "no.nc: No such file or directory")
    assert_failed(tamis_("repack", SAMPLE, tmp_path / "no" / "b.nc", *RECIPE), 1, "there is no folder")
    assert_failed(tamis_("repack", SAMPLE, SAMPLE, *RECIPE), 1, "is the source itself")
    target.write_bytes(b"old")
    assert_failed(tamis_("repack", SAMPLE, target, *RECIPE), 1, "b.nc: File exists", "replace it: --overwrite")
    assert target.read_bytes() == b"old"


@pytest.mark.parametrize("option", [("plan", "-o"), ("inspect", "--html"), ("report", "-o")])
@pytest.mark.parametrize("more", [(), ("--overwrite",)])
def test_folder_in_place_of_a_file_to_write(option: tuple[str, str], more: tuple[str, ...], tmp_path: Path) -> None:
    command, word = option
    files = [SAMPLE] * (2 if command == "report" else 1)
    result = tamis_(command, *files, word, tmp_path, *more)
    assert_failed(result, 1, f"{tmp_path}: expected the name of a file to write, got a folder")


@pytest.mark.parametrize("command", ["inspect", "plan", "repack", "verify", "report", "copy", "status", "manifest"])
def test_empty_path_is_no_folder(command: str, tmp_path: Path) -> None:
    target = [tmp_path / "b.nc"] if command in ("repack", "verify", "report", "copy") else []
    result = tamis_(command, "", *target)
    assert result.exit_code
    assert "to be a path " in result.stderr
    assert "''" in result.stderr


def test_repack_target_that_is_a_folder_gets_the_file_by_its_name(tmp_path: Path) -> None:
    result = tamis_("repack", SAMPLE, tmp_path, *RECIPE)
    assert result.exit_code == 0, result.output
    assert (tmp_path / SAMPLE.name).is_file()


VIOLATE = """
import os, sys, h5py, tamis, tamis.cli
folder = os.path.dirname(sys.argv[3])
job = tamis.repack
def damaging(*arguments, progress, **options):
    def watched(what, done, total):
        if what == "verifying /TS" and done == 0:
            (name,) = (name for name in os.listdir(folder) if name.endswith(".tamis"))
            path = os.path.join(folder, name)
            with h5py.File(path) as file:
                chunk = file["TS"].id.get_chunk_info(3)
            with open(path, "r+b") as stream:
                stream.seek(chunk.byte_offset)
                stream.write(bytes(chunk.size))
        progress(what, done, total)
    return job(*arguments, progress=watched, **options)
tamis.repack = damaging
tamis.cli.main()
"""


def test_repack_violated_bound_exits_3(tmp_path: Path) -> None:
    """The disk loses a chunk between writing and verifying."""
    arguments = ["repack", SAMPLE, tmp_path / "b.nc", *RECIPE, "--no-checksum"]
    done = subprocess.run([sys.executable, "-c", VIOLATE, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    steps = "tamis repack: writing ", "tamis repack: decoding "
    (said,) = [line for line in done.stderr.splitlines() if not line.startswith(steps)]
    assert said.startswith("tamis repack: /TS: bytes or filter mask differ from what was written")
    assert "in the chunk at (3, 0, 0)" in said
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("elements", [1, 249, 250, 249_925, 250_000])
def test_repack_sizes_have_three_digits(elements: int, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["v"] = np.zeros(elements, "f4")
    result = tamis_("repack", tmp_path / "a.h5", tmp_path / "b.h5", "-f", "v:deflate(1)")
    row = next(line for line in result.stdout.splitlines() if "/v" in line)
    expected = {1: "4 B", 249: "996 B", 250: "1 kB", 249_925: "1 MB", 250_000: "1 MB"}
    assert re.split("  +", row)[2] == expected[elements]


def test_plugin_path_prints_the_folder_with_the_plugin() -> None:
    result = tamis_("plugin-path")
    assert (result.exit_code, result.stdout) == (0, f"{tamis.plugin_path()}\n")
    assert any(path.suffix == ".so" for path in Path(result.stdout.strip()).iterdir())


def test_config_prints_what_a_build_needs() -> None:
    config = tamis.config()
    assert tamis_("config", "--cflags", "--libs").stdout == f"{config.cflags} {config.libs()}\n"
    assert tamis_("config", "--libs", "--static", "--codec").stdout == f"{config.libs(codec=True, static=True)}\n"
    for options in (("--fortran",), ("--fortran", "--codec"), ("--plugin-path",), ("--pkg-config-path",)):
        assert Path(tamis_("config", *options).stdout.strip()).exists()
    assert (Path(tamis_("config", "--cmake-path").stdout.strip()) / "lib/cmake/h5z_zfp/h5z_zfp-config.cmake").exists()
    everything = tamis_("config").stdout.splitlines()
    assert everything[0] == str(config)
    assert len(everything) == 7
    refused = tamis_("config", "--cflags", "--static")
    assert (refused.exit_code, "--static needs --libs" in refused.stderr) == (2, True)


def test_version_names_package_codec_and_kernel() -> None:
    assert tamis_("--version").stdout == f"{tamis.config()}\n"
    assert str(tamis.config()).startswith(f"tamis {tamis.__version__}, ZFP codec 5, kernel {tamis.config().kernel}")


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        (
            [],
            [
                "  tamis inspect climate.nc",
                "  tamis repack climate.nc small.nc -f 'TS:zfp(accuracy=0.1)'",
                "  HDF5_PLUGIN_PATH=$(tamis plugin-path) ncdump -v TS small.nc",
            ],
        ),
        (["inspect"], ["  tamis inspect climate.nc -v TS --as h5repack"]),
        (
            ["repack"],
            [
                "    zfp(accuracy=0.1)        largest absolute error, in units of the variable",
                "    zfp(rate=8)              bits per value; also precision=16, reversible=true",
                "    shuffle|deflate(4)       lossless",
            ],
        ),
        (["plugin-path"], ["  export HDF5_PLUGIN_PATH=$(tamis plugin-path --with-others)"]),
    ],
    ids=lambda value: " ".join(value[:1]),
)
def test_help_teaches_by_lines_to_copy(command: list[str], lines: list[str]) -> None:
    result = tamis_(*command, "--help")
    assert result.exit_code == 0
    assert tamis_(*command, "-h").stdout == result.stdout
    shown = [line.strip() for line in result.stdout.splitlines()]
    for line in lines:
        assert line.strip() in shown
    assert "\\b" not in result.stdout


def test_help_commands_and_exit_codes_told() -> None:
    text = " ".join(tamis_("--help").stdout.split())
    for command in ("inspect", "repack", "plugin-path"):
        assert command in text
    assert "0 done as asked, 1 failed, 2 wrong usage, 3 the bound was violated" in text


@pytest.mark.parametrize("arguments", [(), ("inspect",), ("repack",), ("repack", "a"), ("inspekt", "a")], ids=str)
def test_arguments_missing_or_unknown_exit_2(arguments: tuple[str, ...]) -> None:
    result = tamis_(*arguments)
    assert result.exit_code == 2
    assert "Usage: tamis" in result.stderr


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TAMIS, *arguments], capture_output=True, text=True, errors="replace", check=False, env=os.environ | environment
    )


def test_filters_listed_and_with_a_name_explained() -> None:
    listed = run("filters").stdout
    assert "32013  zfp          floats and integers, lossy or not (must be first)\n" in listed
    explained = run("filters", "zfp", "deflate").stdout
    assert explained.splitlines()[1].strip() == "level=4: 0 to 9; 0 stores, 1 is fastest, 9 smallest"
    ids = [each["id"] for each in json.loads(run("filters", "--json").stdout)["filters"]]
    assert ids == [*sorted(by_id()), None]  # pcodec, which only Zarr has


def test_filters_of_unknown_name_refused() -> None:
    done = run("filters", "zip")
    assert (done.returncode, done.stdout) == (2, "")
    assert "tamis filters: expected a filter (absolute, bitgroom, " in done.stderr
