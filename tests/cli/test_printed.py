"""U20: tables, ratios, JSON and errors follow one rule each, and healthy files are quiet."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

import tamis
from tamis.cli import main
from tamis.cli.output import paint
from tamis.jobs.result import json_text

Lines = Callable[[int | None], Iterator[tuple[str, str]]]

CHAIN = "zfp(accuracy=0.1)|shuffle|deflate(4)"
TAMIS = Path(sys.executable).with_name("tamis")


def tamis_(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments], prog_name="tamis")


def shown(lines: Lines, width: int) -> list[str]:
    text = io.StringIO()
    paint(lines, Console(file=text, width=width, markup=False, emoji=False, highlight=False), width)
    return text.getvalue().splitlines()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file with values, text, and datasets without any values."""
    field = np.sin(np.arange(30 * 40 * 50) / 90).reshape(30, 40, 50).astype("f4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("sea_surface_temperature", data=field, chunks=(10, 40, 50))
        file.create_dataset("lat", data=np.arange(180.0), chunks=(180,))
        file.create_dataset("empty", (0, 40), "f4", chunks=(10, 40), maxshape=(None, 40))
        file["null"] = h5py.Empty("f4")
        file["scalar"] = 1.0
    return tmp_path / "a.h5"


@pytest.fixture
def done(source: Path) -> tamis.RepackResult:
    return tamis.repack(source, source.parent / "b.h5", {"s*": CHAIN, "*": "shuffle|deflate(4)"})


@pytest.mark.parametrize("width", [80, 100, 200])
def test_u20_tables_fold_and_never_cut_a_filter(width: int, source: Path, done: tamis.RepackResult) -> None:
    preview = tamis.preview_repack(source, source.parent / "c.h5", {"s*": CHAIN, "*": "shuffle|deflate(4)"})
    verified = tamis.verify(source, source.parent / "b.h5", bounds={"s*": 0.1})
    for result in (done, preview, verified):
        got = shown(result.lines, width)
        text = "\n".join(got)
        assert "…" not in text
        # Paths of files are the only words that may be longer than a line.
        assert max(len(line) for line in got if str(source.parent) not in line) <= width
    for whole in ("zfp(accuracy=0.1)|", "shuffle|", "fletcher32", "shuffle|deflate(4) "):
        assert any(whole in line for line in shown(done.lines, width))


def test_u20_result_through_a_pipe_has_a_line_for_each_dataset(done: tamis.RepackResult) -> None:
    (row,) = [line for line in str(done).splitlines() if line.startswith("/sea_surface_temperature ")]
    assert " zfp(accuracy=0.1)|fletcher32 " in row


def test_u20_columns_that_say_nothing_are_left_out(source: Path) -> None:
    lossless = tamis.repack(source, source.parent / "c.h5", {"lat": "shuffle|deflate(4)"})
    header = str(lossless).splitlines()[0].split("  ")
    assert "chunks without zfp" not in str(lossless)
    assert {"dataset", "filters"} < set(header)
    lossy = tamis.repack(source, source.parent / "d.h5", {"sea*": CHAIN, "lat": "deflate(4)"})
    rows = str(lossy).splitlines()
    assert rows[0].endswith("  chunks without zfp")
    assert [row.endswith(" 0 of 3") for row in rows[1:3]] == [row.startswith("/sea") for row in rows[1:3]]


def test_u20_ratio_of_a_dataset_without_bytes_is_none_everywhere(source: Path, done: tamis.RepackResult) -> None:
    (empty,) = [each for each in done.datasets if each.path == "/empty"]
    assert (empty.nbytes, empty.ratio, empty.to_dict()["ratio"]) == (0, None, None)
    (row,) = [line for line in str(done).splitlines() if line.startswith("/empty ")]
    assert row.split()[:6] == ["/empty", "shuffle|deflate(4)", "0", "B", "0", "B"]
    inspected = {each.path: each.ratio for each in tamis.inspect(source).datasets}
    assert (inspected["/empty"], inspected["/null"]) == (None, None)


def test_u20_print_of_results_is_text_for_people(source: Path, done: tamis.RepackResult) -> None:
    preview = tamis.preview_repack(source, source.parent / "c.h5", {"s*": CHAIN})
    verified = tamis.verify(source, source.parent / "b.h5")
    for each, start in (
        (done, "dataset  "),
        (preview, "dataset  "),
        (verified, f"{source} -> "),
        (tamis.inspect(source), str(source)),
    ):
        assert str(each).startswith(start)
        assert type(each).__name__ not in str(each)
        assert "(path=" not in str(each)


def test_u20_results_show_themselves_in_notebooks_with_names_escaped(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("<script>", data=np.linspace(0, 1, 4096), chunks=(512,))
    recipes = {"*": "zfp(accuracy=0.1)"}
    preview = tamis.preview_repack(tmp_path / "a.h5", tmp_path / "b.h5", recipes)
    result = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", recipes)
    verified = tamis.verify(tmp_path / "a.h5", tmp_path / "b.h5")
    for each in (preview, result, verified):
        html = each._repr_html_()
        assert "<td>/&lt;script&gt;</td>" in html
        assert "<script>" not in html
    assert "<code>fletcher32</code>" in result._repr_html_()


@pytest.mark.parametrize(
    ("command", "code", "kind", "dataset"),
    [
        (["repack", "IN", "OUT", "-f", "PS:deflate"], 1, "FileError", "PS"),
        (["repack", "IN", "OUT", "-f", "lat:zfp(accuracy=x)"], 2, "ParameterError", None),
        (["repack", "IN", "OUT", "-f", "scalar:deflate"], 2, "ParameterError", "/scalar"),
        (["repack", "IN", "OUT", "-f", "PS:deflate", "--dry-run"], 1, "FileError", "PS"),
        (["repack", "none.h5", "OUT", "-f", "PS:deflate"], 1, "FileError", None),
        (["repack", "IN", "IN", "-f", "lat:deflate"], 1, "FileError", None),
        (["repack", "IN"], 2, "ParameterError", None),
        (["repack", "IN", "OUT", "-f", "lat:deflate", "--lossy"], 2, "ParameterError", None),
        (["verify", "IN", "none.h5"], 1, "FileError", None),
        (["verify", "IN", "IN", "--bound", "PS:1"], 1, "FileError", "PS"),
        (["verify", "IN", "IN", "--bound", "PS:x"], 2, "ParameterError", None),
        (["spec", "nothing(1)"], 2, "ParameterError", None),
        (["filters", "nothing"], 2, "ParameterError", None),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_u20_json_on_failure_is_a_document_too(
    command: list[str], code: int, kind: str, dataset: str | None, source: Path, tmp_path: Path
) -> None:
    names = {"IN": source, "OUT": tmp_path / "out.h5"}
    result = tamis_(*(names.get(each, each) for each in command), "--json")
    assert result.exit_code == code
    document = json.loads(result.stdout)
    assert set(document) == {"schema", "error"}
    error = document["error"]
    assert (error["kind"], error["exit_code"], error["dataset"]) == (kind, code, dataset)
    assert error["message"].splitlines()[0] in result.stderr
    if kind == "FileError":
        assert error["path"] in (str(source), "none.h5")


def test_u20_json_of_inspect_names_kind_and_file_of_each_failure(source: Path, tmp_path: Path) -> None:
    result = tamis_("inspect", tmp_path / "none.h5", source, "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [each["path"] for each in document["files"]] == [str(source)]
    (error,) = document["errors"]
    assert (error["kind"], error["path"], error["dataset"]) == ("FileError", str(tmp_path / "none.h5"), None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (float("inf"), '"inf"'),
        (-np.inf, '"-inf"'),
        (np.float32("nan"), '"nan"'),
        (np.longdouble(0.5), "0.5"),
        (np.int64(2**62), str(2**62)),
        (np.bool_(True), "true"),
        (np.array([1.5, np.nan]), '[1.5, "nan"]'),
        ((1, None, "é"), '[1, null, "\\u00e9"]'),
        (Path("a") / "b", '"a/b"'),
        (b"caf\xe9", '"caf\\udce9"'),
        ({1: np.dtype("f4")}, '{"1": "float32"}'),
    ],
    ids=repr,
)
def test_u20_json_has_one_rule_for_what_it_cannot_hold(value: Any, text: str) -> None:
    assert json_text(value) == text


def test_u20_null_dataspace_is_null_and_a_scalar_is_scalar(source: Path) -> None:
    found = {each.path: each for each in tamis.inspect(source).datasets}
    assert (found["/null"].shape, found["/scalar"].shape) == (None, ())
    assert (found["/null"].to_dict()["shape"], found["/scalar"].to_dict()["shape"]) == (None, [])
    words = {line.split()[0]: line.split()[1] for line in str(tamis.inspect(source)).splitlines()[2:]}
    assert (words["/null"], words["/scalar"]) == ("null", "scalar")


def test_u20_inspect_has_no_notes_on_what_repack_wrote_as_recommended(source: Path, done: tamis.RepackResult) -> None:
    tamis.repack(source, source.parent / "c.h5", {"sea*": CHAIN}, chunks={"sea*": (8, 40, 48)})
    (zfp,) = tamis.inspect(source.parent / "c.h5", ["sea*"]).datasets
    assert zfp.chunk_groups[0].skipped == ()
    assert [each.code for each in zfp.notes if each.code == "unused"] == []


def test_u20_zfp_that_no_chunk_went_through_is_noted(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=np.full((64, 64), np.nan) * np.arange(64), chunks=(32, 32))
        file["v"][::3, ::5] = 1.0
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"v": CHAIN})
    (found,) = tamis.inspect(tmp_path / "b.h5").datasets
    assert [each.text for each in found.notes if each.code == "unused"] == [
        "zfp is in the pipeline but was skipped for every chunk"
    ]


def test_u20_companion_that_is_gone_is_a_problem_for_inspect(tmp_path: Path) -> None:
    values = np.sin(np.arange(4096) / 90).reshape(64, 64)
    values[::7, ::5] = np.nan
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=values, chunks=(32, 32))
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"v": CHAIN}, missing="mask")
    assert tamis_("inspect", tmp_path / "b.h5").exit_code == 0
    with h5py.File(tmp_path / "b.h5", "r+") as file:
        del file["v_missing"]
    result = tamis_("inspect", tmp_path / "b.h5")
    assert result.exit_code == 1
    assert "  problem  " in result.stdout
    assert "v_missing" in result.stdout
    result = tamis_("inspect", tmp_path / "b.h5", "--json")
    assert result.exit_code == 1
    assert "v_missing" in json.loads(result.stdout)["files"][0]["datasets"][0]["problem"]


def test_u20_companion_that_is_gone_is_shown_for_a_dataset_without_filters(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["v"] = np.arange(4.0)
        file["v"].attrs["missing_companion"] = "/gone"
    result = tamis_("inspect", tmp_path / "a.h5")
    assert result.exit_code == 1
    assert "/gone" in result.stdout


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}])
def test_u20_inspect_on_a_terminal(environment: dict[str, str], source: Path, tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    env |= {"TERM": "xterm-256color", "COLUMNS": "80"} | environment
    command = [TAMIS, "inspect", source.name, "-v", "sea*"]
    with subprocess.Popen(command, stdout=follower, cwd=tmp_path, env=env) as run:
        os.close(follower)
        seen = b""
        try:
            while part := os.read(leader, 4096):
                seen += part
        except OSError:  # the other end is closed
            pass
        run.wait()
    os.close(leader)
    assert b"/sea_surface_temperature" in seen
    assert b"\x1b[1m" in seen  # bold is no colour
