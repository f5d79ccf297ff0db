"""A picture of a plan, by the command and in Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from inprocess import run_tamis

import tamis
from tamis.jobs.plan.plot import check_picture


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return run_tamis("plan", *arguments)


@pytest.mark.check
def test_picture_has_a_point_for_each_candidate(sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "plan.svg"
    done = command(sample, "-r", "TS:abs=0.1", "--readers", "any", "--plot", out)
    assert done.returncode == 0, done.stderr
    texts = [comment for comment in out.read_text().split("<!--") if "-->" in comment]
    words = "\n".join(text.split("-->")[0] for text in texts)
    rows = [line.split()[1:3] for line in done.stdout.splitlines() if line.startswith("/TS ") and "HDF5" in line]
    filters = [row[1] if row[0] in ("*", "offer", "unstable") else row[0] for row in rows]
    assert len(filters) > 3
    assert all(text in words for text in filters)
    assert words.count("(chosen)") == 1
    assert words.count("(offer)") == sum(row[0] == "offer" for row in rows) > 0
    assert ElementTree.parse(out).getroot().tag.endswith("svg")
    again = command(sample, "-r", "TS:abs=0.1", "--plot", out)
    assert (again.returncode, "File exists" in again.stderr) == (1, True)


@pytest.mark.check
def test_plot_returns_a_figure_with_a_row_for_each_variable(sample: Path) -> None:
    plan = tamis.plan(sample, {"TS": "abs=0.1", "lat": "lossless"}, readers="any")
    figure = plan.plot()
    assert [len(figure.axes), figure.axes[0].get_title(loc="left")] == [4, "/TS, abs=0.1"]
    labels = figure.axes[1].get_legend_handles_labels()[1]
    chosen = [label for label in labels if label.endswith("(chosen)")]
    assert len(labels) == len(plan.candidates["/TS"])
    assert [plan["TS"].filters in label for label in chosen] == [True]


def test_names_and_plans_without_a_picture_are_refused_before_the_work(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for options, message in (
        (["--plot", tmp_path / "a.txt"], "expected a picture whose name ends in .svg, .png, .pdf"),
        (["--plot", tmp_path / "a.svg", "-o", tmp_path / "a.svg"], "choose another name for the picture"),
    ):
        done = command(sample, "-r", "none:abs=1", *options)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "a.svg").exists()
    plan = tamis.plan(sample, {"lat": "lossless"}, readers="any")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(tamis.MissingFilterError, match=r"needs matplotlib, not installed here: .*tamis\[plot\]"):
        plan.plot()


def test_matplotlib_is_missed_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(tamis.MissingFilterError, match=r"needs matplotlib, not installed here: .*tamis\[plot\]"):
        check_picture("plan.svg")
