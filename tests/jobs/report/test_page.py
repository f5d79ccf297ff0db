"""The page: one file that needs nothing else, with any names and any variables."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from inprocess import run_tamis

import tamis

SAMPLE = Path(__file__).resolve().parents[3] / "examples" / "data" / "cam_ts.nc"
TAMIS = Path(sys.executable).with_name("tamis")
VOID = {"meta", "input", "br", "use", "circle", "path"}


class Page(HTMLParser):
    """Tags and texts of a page; fails where tags are not nested."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.open += [] if tag in VOID else [tag]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def document_of(html: str) -> Any:
    found = re.search(r'<script type="application/json" id="tamis-report">(.*?)</script>', html, re.DOTALL)
    assert found
    return json.loads(found[1])


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "small.nc"
    tamis.repack(SAMPLE, path, {"TS": "zfp(accuracy=0.1)"})
    return path


@pytest.fixture(scope="module")
def result(small: Path) -> tamis.Report:
    return tamis.report(SAMPLE, small, time=(0, 5))


def test_page_is_one_file_within_its_budget(result: tamis.Report) -> None:
    page = Page(result.html)
    assert len(result.html) <= 250_000
    for tag, attributes in page.tags:
        assert tag not in ("link", "img", "iframe", "object")
        assert not attributes.get("src")
        assert (attributes.get("href") or "#").startswith("#")
    addresses = set(re.findall(r"https?://[^\s\"')]+", result.html))
    assert addresses <= {"https://github.com/leeoniya/uPlot"}  # in the comment with uPlot's licence
    assert re.findall(r"url\((?!data:image/png)", result.html) == []
    assert "<html lang=" in result.html


def test_page_has_all_sections_with_their_numbers(result: tamis.Report) -> None:
    document = document_of(result.html)
    assert document == result.to_dict()
    own = document["datasets"][0]
    assert [chart["key"] for chart in own["charts"]] == [
        *("histogram", "spectrum", "autocorrelation", "levels", "gradients", "steps", "rates", "chunks")
    ]
    assert {table["key"] for table in own["tables"]} == {"tails", "gradients", "rates", "missing"}
    assert "period 4: ZFP's blocks" in own["charts"][2]["words"]
    assert {"sha256 of source", "sha256 of target", "size of target", "tamis"} <= document["provenance"].keys()
    for chart in own["charts"]:
        assert all(len(series["values"]) == len(chart["x"]) for series in chart["series"])


def test_maps_are_those_of_the_field_with_coastlines(result: tamis.Report) -> None:
    first, second = result["TS"].maps
    assert (first.title, second.title) == ("time 0", "time 5")
    assert first.box is not None
    assert first.box.west == pytest.approx(-0.625)
    assert first.box.east == pytest.approx(359.375)
    assert first.directions.startswith("lat goes up")
    assert result.html.count('href="#coast"') > 2
    with h5py.File(SAMPLE) as file:
        assert first.low == pytest.approx(file["TS"][0].min())
    assert struct.unpack(">II", first.pair[16:24]) == (2 * first.width, first.height)
    pixels = zlib.decompress(first.pair[first.pair.index(b"IDAT") + 4 : -12 - 4])
    assert len(pixels) == first.height * (2 * first.width + 1)


def test_steps_that_a_variable_has_not_are_told(small: Path) -> None:
    dataset = tamis.report(SAMPLE, small, time=(-1, 30))["TS"]
    assert [drawn.title for drawn in dataset.maps] == ["time 29"]
    assert dataset.notes == ("It has 30 steps, and no map of 30.",)


def test_budget_takes_maps_away_and_says_so(small: Path) -> None:
    result = tamis.report(SAMPLE, small, budget=100_000)
    assert "Its maps are left out" in result.html
    assert "background-image:url" not in result.html
    assert Page(result.html)


def test_notebook_shows_the_page_in_a_frame(result: tamis.Report) -> None:
    html = result._repr_html_()
    assert html.startswith('<div class="tamis"><iframe srcdoc="&lt;!DOCTYPE html&gt;')
    assert 'sandbox="allow-scripts"' in html


HOSTILE = "<script>alert(1)</script>&\"'\u202e\u2066x"


def test_hostile_names_and_units_are_only_text(tmp_path: Path) -> None:
    for name, shift in (("a.nc", 0.0), ("b.nc", 0.01)):
        with h5py.File(tmp_path / name, "w") as file:
            own = file.create_dataset(HOSTILE.replace("/", "|"), data=np.arange(600.0).reshape(20, 30) + shift)
            own.attrs["units"] = "</script><img src=x onerror=alert(1)>" * 300
            own.attrs["long_name"] = HOSTILE
    result = tamis.report(tmp_path / "a.nc", tmp_path / "b.nc")
    page = Page(result.html)
    assert sum(tag == "script" for tag, _ in page.tags) == 3
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert not set(result.html) & set("\u202e\u2066")
    assert len(result.html) < 400_000
    assert document_of(result.html)["datasets"][0]["long_name"] == HOSTILE


def odd(kind: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(12, 16)).astype("f4")
    six = rng.normal(size=(2, 2, 2, 3, 8, 9))
    missing = np.full((12, 16), np.nan, "f4")
    holes = np.where(values > 0, values, np.float32(np.nan))
    return {
        "constant": (np.full((8, 9), 5.0), np.full((8, 9), 5.001)),
        "empty": (np.zeros((0, 5), "f4"), np.zeros((0, 5), "f4")),
        "all missing": (missing, missing),
        "all become missing": (values, missing),
        "0-d": (np.float64(2.5), np.float64(2.25)),
        "1-d": (np.cumsum(values.ravel()), np.cumsum(values.ravel()).round(2)),
        "6-d": (six, six.round(3)),
        "holes": (holes, holes + np.float32(0.01)),
        "integers": (np.arange(200, dtype="i4").reshape(10, 20), np.arange(200, dtype="i4").reshape(10, 20) + 1),
        "large integers": (np.arange(9, dtype="i8") + 2**62, np.arange(9, dtype="i8") + 2**62 + 3),
        "huge": (values * np.float32(1e38), values * np.float32(1.0001e38)),
        "tiny": (values.astype("f8") * 1e-320, values.astype("f8") * 1.1e-320),
        "infinite": (np.where(values > 0, values, np.inf), np.where(values > 0, values, -np.inf)),
        "two rows": (values[:2], values[:2].round(1)),
        "texts": (np.array([b"one", b"two"]), np.array([b"one", b"six"])),
        "booleans": (values > 0, values > 0.1),
        "half": (values.astype("f2"), values.round(1).astype("f2")),
        "complex": (values * 1j, values * 2j),
        "big-endian": (values.astype(">f4"), values.round(1).astype(">f4")),
    }[kind]


@pytest.mark.parametrize(
    "kind",
    [
        *("constant", "empty", "all missing", "all become missing", "0-d", "1-d", "6-d", "holes", "integers"),
        *("large integers", "huge", "tiny", "infinite", "two rows", "texts", "booleans", "half", "complex"),
        "big-endian",
    ],
)
@pytest.mark.filterwarnings("error")
def test_every_kind_of_variable_has_a_page(kind: str, tmp_path: Path) -> None:
    for name, values in zip("ab", odd(kind), strict=True):
        with h5py.File(tmp_path / f"{name}.nc", "w") as file:
            file["x"] = values
    result = tamis.report(tmp_path / "a.nc", tmp_path / "b.nc")
    assert Page(result.html)
    assert document_of(result.html)["datasets"][0]["path"] == "/x"
    if kind not in ("infinite", "all become missing"):  # whose values are told
        assert not re.search(r"\b(nan|inf)\b", result.html.partition("<script")[0], re.IGNORECASE)


def test_report_of_packed_files_is_in_units(tmp_path: Path) -> None:
    tamis.repack(SAMPLE, tmp_path / "packed.nc", {"TS": "pack(bound=0.05)|shuffle|deflate(4)"})
    result = tamis.report(SAMPLE, tmp_path / "packed.nc")
    assert result["TS"].outcome == "met"
    assert 0.04 < result["TS"].compared.tally.error <= 0.05
    assert result["TS"].maps[0].low > 150


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run_tamis("report", *arguments)


def test_command_writes_the_page_and_exits_by_the_outcome(small: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = run(SAMPLE, small, "-o", page, "-v", "TS")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("small.nc keeps what was asked of 1 variable")
    assert Page(page.read_text(encoding="utf-8"))
    again = run(SAMPLE, small, "-o", page)
    assert again.returncode == 1
    assert "File exists" in again.stderr
    missed = run(SAMPLE, small, "-o", page, "--overwrite", "--bound", "TS:0.001", "-q")
    assert missed.returncode == 3
    assert "misses what was asked of /TS" in missed.stderr
    assert "Not as asked" in page.read_text(encoding="utf-8")


def test_command_prints_json_without_a_page(small: Path, tmp_path: Path) -> None:
    done = run(SAMPLE, small, "--json", "--time", "0,3", "--also", "zfp(accuracy=0.5)")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["schema"] == 1
    assert document["datasets"][0]["maps"][1]["title"] == "time 3"
    rows = next(table["rows"] for table in document["datasets"][0]["tables"] if table["key"] == "rates")
    assert [row[1] for row in rows if row[0] == "also"] == ["zfp(accuracy=0.5)"]
    assert not list(small.parent.glob("*.html"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--time", "soon"], "expected --time worst, or indices such as 0,5"),
        (["--bound", "TS"], "expected"),
        (["--time", "30,99"], "expected steps that a variable has (time), got 30, 99: the longest variable has 30"),
        (["--budget", "many"], "expected"),
        (["--also", "zfpp"], "expected"),
        (["--each", "2"], "--each needs two folders"),
    ],
)
def test_command_refuses_wrong_options(options: list[str], words: str, small: Path, tmp_path: Path) -> None:
    done = run(SAMPLE, small, "-o", tmp_path / "a.html", *options)
    assert done.returncode == 2
    assert words in done.stderr
    assert not (tmp_path / "a.html").exists()


def test_command_refuses_a_file_and_a_folder(small: Path, tmp_path: Path) -> None:
    for pair in ((SAMPLE, small.parent), (small.parent, small)):
        done = run(*pair, "-o", tmp_path / "a.html")
        assert done.returncode == 2
        assert f"expected two files or two folders, only {small.parent} is a folder" in done.stderr
    assert not (tmp_path / "a.html").exists()


def test_inspect_writes_a_page_of_chunks_and_sizes(tmp_path: Path) -> None:
    target, page = tmp_path / "small.nc", tmp_path / "page.html"
    tamis.repack(SAMPLE, target, {"TS": "shuffle|deflate(1)"}, chunks={"TS": (10, 48, 96)})
    inspect = [str(TAMIS), "inspect", str(target), "--html", str(page)]
    done = subprocess.run(inspect, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{target} (")
    html = page.read_text(encoding="utf-8")
    assert Page(html)
    assert "/TS takes " in html
    assert "Chunk map" in html
    document = document_of(html)
    assert document["file"] == tamis.inspect(target).to_dict()
    bars = document["datasets"][0]["charts"][0]
    with h5py.File(target) as file:
        sizes = [file["TS"].id.get_chunk_info(number).size for number in range(file["TS"].id.get_num_chunks())]
    assert bars["series"][0]["values"] == pytest.approx(sizes, rel=1e-5)
    assert subprocess.run(inspect, capture_output=True, check=False).returncode == 1
    assert subprocess.run([*inspect, "--overwrite"], capture_output=True, check=False).returncode == 0
    assert subprocess.run([*inspect, str(SAMPLE)], capture_output=True, check=False).returncode == 2


@pytest.mark.check
def test_memory_is_bounded_by_a_few_fields(tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(280, 5, (721, 1440)).astype("f4")
    for name, shift in (("a.nc", 0.0), ("b.nc", 0.01)):
        with h5py.File(tmp_path / name, "w") as file:
            own = file.create_dataset("T", (8, *values.shape), "f4", chunks=(1, *values.shape))
            for step in range(8):
                own[step] = values + np.float32(step + shift)
    code = "import os, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL);"
    code += "import resource; print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    command = [str(TAMIS), "report", str(tmp_path / "a.nc"), str(tmp_path / "b.nc"), "--json", "-q", "-j", "2"]
    done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 128 << 10  # KiB; a file has 33 MB, and a field as many values as ERA5
