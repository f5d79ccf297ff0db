"""Each benchmark starts and says what it does; the table of files and the picture are made of something small."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py") if "ArgumentParser" in path.read_text())
MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None
needs_matplotlib = pytest.mark.skipif(not MATPLOTLIB, reason="needs matplotlib: pip install '.[bench]'")

ROWS = """\
rank,dtype,field,mode,encode,encode_ratio,decode,decode_ratio,bits_per_value,machine,kernel,peer
3,float32,rough,rate 8,1800,8.0,900,4.0,8.0,a machine,avx2,zfpy 1.0.1
3,float32,smooth,rate 8,1600,2.0,900,4.0,8.0,a machine,avx2,zfpy 1.0.1
2,int32,rough,reversible,900,3.5,800,7.25,20.1,a machine,avx2,zfpy 1.0.1
"""


def run(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "HDF5_PLUGIN_PATH"}
    command = [sys.executable, str(FOLDER / name), *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True, env=environment, timeout=300)


@pytest.mark.check
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=needs_matplotlib) if name == "plot.py" else name for name in SCRIPTS]
)
def test_help_of_each_benchmark_says_how_it_is_called(name: str) -> None:
    done = run(name, "--help")
    assert done.returncode == 0, done.stderr
    assert f"python benchmarks/{name}" in " ".join(done.stdout.split())


def test_readme_names_every_script_with_its_command() -> None:
    text = (FOLDER / "README.md").read_text()
    commands = dict(re.findall(r"^\| `(\w+\.py)` \| [^|]+ \| `(python benchmarks/[^`]+)` \|$", text, re.MULTILINE))
    assert commands.keys() == set(SCRIPTS)
    for name, command in commands.items():
        assert f"``{command}``" in (FOLDER / name).read_text()
    assert set(re.findall(r"`(\w+\.py)`", text)) == {path.name for path in FOLDER.glob("*.py")}


@pytest.mark.check
@needs_matplotlib
def test_picture_of_the_readme_says_what_the_run_measured(tmp_path: Path) -> None:
    done = run("picture.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"sample-light.png", "sample-dark.png"}
    ratios = dict(re.findall(r"^(\w+): ratio ([\d.]+), largest error 0\.", done.stdout, re.MULTILINE))
    (described,) = re.findall(r'alt="([^"]+)"', (FOLDER.parent / "README.md").read_text())
    named = dict(re.findall(r"(\w+) ([\d.]+) times", described))
    assert {name.lower(): float(ratio) for name, ratio in named.items()} == pytest.approx(
        {name: float(ratio) for name, ratio in ratios.items()}, abs=0.06
    )


def test_makefile_runs_every_benchmark() -> None:
    assert set(re.findall(r"benchmarks/(\w+\.py)", (FOLDER.parent / "Makefile").read_text())) == set(SCRIPTS)


@pytest.mark.check
@needs_matplotlib
def test_plot_of_same_rows_same_picture_with_their_means(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(ROWS)
    for name in ("first.svg", "second.svg"):
        done = run("plot.py", tmp_path / "rows.csv", tmp_path / name)
        assert done.returncode == 0, done.stderr
    picture = (tmp_path / "first.svg").read_bytes()
    assert picture == (tmp_path / "second.svg").read_bytes()
    words = {"".join(each.itertext()).strip() for each in ElementTree.fromstring(picture).iterfind(".//{*}text")}
    assert {"3-D float32", "reversible, all", "4.0×", "3.5×", "7.2×"} <= words  # 4 is the geometric mean of 8 and 2
    assert "tamis, kernel avx2, against zfpy 1.0.1 on a machine" in words


@pytest.mark.check
@needs_matplotlib
def test_plot_of_other_columns_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("rank,dtype\n3,float32\n")
    done = run("plot.py", tmp_path / "rows.csv", tmp_path / "picture.svg")
    assert done.returncode == 1
    assert "got none called ['bits_per_value', 'decode'," in done.stderr
    assert not (tmp_path / "picture.svg").exists()


@pytest.mark.check
@pytest.mark.slow
@pytest.mark.peer
def test_files_of_small_arrays_prints_a_row_per_job_and_peer(tmp_path: Path) -> None:
    done = run(
        "files.py", "--quick", "--extent", 128, "--rounds", 1, "--data", tmp_path, "--csv", tmp_path / "rows.csv"
    )
    assert done.returncode == 0, done.stderr
    rows = [
        line.split(" | ") for line in done.stdout.splitlines() if line.startswith(("| write", "| read", "| repack"))
    ]
    peers = ["h5py"] * 7 + [name for name in ("h5repack", "nccopy") if shutil.which(name)]
    assert [row[1].split()[0] for row in rows] == peers
    assert all(len(row) == 6 and row[3].strip() and row[4].strip() for row in rows)
    assert "left out, not here" in done.stdout  # the files of climate models
    assert (tmp_path / "rows.csv").read_text().startswith("job,program,runs,seconds,")


def test_circles_of_a_package_count_imports_in_functions_by_name_and_for_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {
        "__init__.py": "from late import late_names\nget = late_names(globals(), {'x': 'toy.a'})",
        "_native.pyi": "",
        "a.py": "from toy import _native, b",
        "b.py": "def f():\n    from toy.a import g",
        "c.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from toy.d import D",
        "d.py": "from toy.c import C\nclass D:\n    shape: tuple\n    def f(self):\n        self.dtype = 1",
        "e.py": "from importlib import import_module\ndef f(name):\n    import_module(f'toy.{name}')\nf('f:Plain')",
        "f.py": "from toy.e import f\nfrom toy.d import D\nclass E(D):\n    chunks = ()",
    }
    (tmp_path / "toy").mkdir()
    for name, text in texts.items():
        (tmp_path / "toy" / name).write_text(text)
    monkeypatch.syspath_prepend(FOLDER)
    source_tree = importlib.import_module("source_tree")
    package = source_tree.Package(tmp_path / "toy")
    assert package.circles("at once") == []
    assert package.circles("at once", "late") == [["toy.a", "toy.b"], ["toy.e", "toy.f"]]
    assert package.circles("at once", "for types") == [["toy.c", "toy.d"]]
    assert package.members("toy.f.E") == {"shape", "f", "dtype", "chunks"}
