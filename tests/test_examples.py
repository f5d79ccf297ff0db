"""What the repository shows its readers is run: the demo, and each python and sh block of README and docs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
import pytest

import tamis  # noqa: F401 - lets h5py read what the demo wrote

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]

_FENCE = re.compile(r"(?P<indent> *)(?P<fence>`{3,}|~{3,}) *(?P<language>[^\s`{]*)")
_NOT_RUN = re.compile(r"\s*<!--\s*not run:\s*\S.*-->\s*")


class Block(NamedTuple):
    """A block of a document: its language, the number of its first line, its text, and whether it is to be run."""

    language: str
    line: int
    text: str
    run: bool


def blocks(document: str) -> list[Block]:
    """Find the fenced blocks; those after ``<!-- not run: reason -->`` are not to be run, nor are sessions (``$ ``)."""
    found: list[Block] = []
    opened: re.Match[str] | None = None
    skip = False
    start = 0
    lines: list[str] = []
    for number, line in enumerate(document.splitlines(), start=1):
        if opened is None:
            if opened := _FENCE.match(line):
                start, lines = number + 1, []
            elif line.strip():
                skip = _NOT_RUN.fullmatch(line) is not None
        elif line.strip().startswith(opened["fence"]) and not line.strip(f" {opened['fence'][0]}"):
            text = "".join(f"{each}\n" for each in lines)
            session = opened["language"] == "sh" and text.lstrip().startswith("$ ")
            found.append(Block(opened["language"], start, text, not skip and not session))
            opened, skip = None, False
        else:
            lines.append(line.removeprefix(opened["indent"]))
    if opened is not None:
        raise ValueError(f"expected the end of the block that starts at line {start - 1}, found none")
    return found


# Blocks of a document build on each other: one interpreter and one folder for all of them, in their order.
RUN = """
import json, subprocess, sys
namespace = {"__name__": "__main__"}
for language, line, text in json.load(sys.stdin):
    where = f"{sys.argv[1]}:{line}"
    print(f"--- {where} ({language})", flush=True)
    if language == "python":
        exec(compile("\\n" * (line - 1) + text, sys.argv[1], "exec"), namespace)
    elif code := subprocess.run(["bash", "-euo", "pipefail", "-c", text]).returncode:
        sys.exit(f"{where}: the block gave exit code {code}:\\n{text}")
"""


def run_blocks(name: str, document: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a document as in a checkout that is set up: with examples/, and .venv/ whose programs are on the path."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    (folder / ".venv").symlink_to(sys.prefix)
    clean = {key: value for key, value in os.environ.items() if not key.startswith("HDF5_PLUGIN")}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    wanted = [each[:3] for each in blocks(document) if each.run and each.language in ("python", "sh")]
    return subprocess.run(
        [sys.executable, "-c", RUN, name],
        input=json.dumps(wanted),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        cwd=folder,
        env=clean | {"PATH": path, "TMPDIR": str(folder)},
    )


@pytest.mark.matrix
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_document_every_block_runs(path: Path, tmp_path: Path) -> None:
    document = path.read_text(encoding="utf-8")
    for command in ("ncdump", "h5dump", "h5repack", "nccopy", "h5cc", "h5fc"):
        needed = any(each.run and each.language == "sh" and command in each.text for each in blocks(document))
        if needed and shutil.which(command) is None and "CI" not in os.environ:
            pytest.skip(f"no {command} here")
    done = run_blocks(path.name, document, tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


SESSIONS = [
    (path, block)
    for path in DOCUMENTS
    for block in blocks(path.read_text(encoding="utf-8"))
    if block.language == "sh" and block.text.lstrip().startswith("$ ")
]
# Times and speeds, which no two runs share.
_SECONDS = re.compile(r"\bin [\d.]+ s\b")
_SPEEDS = re.compile(r" \d+ \d+ (?=(?:any HDF5|(?:any )?HDF5 with \w+)$)")


def comparable(line: str) -> str:
    """Return a line of output without times, speeds and the width of columns."""
    return _SPEEDS.sub(" N N ", _SECONDS.sub("in N s", " ".join(line.split())))


@pytest.mark.check
@pytest.mark.matrix
@pytest.mark.parametrize(("path", "block"), SESSIONS, ids=lambda value: getattr(value, "name", ""))
def test_session_shows_what_its_commands_print(path: Path, block: Block, tmp_path: Path) -> None:
    """Lines may be left out at a line "…", and stand in the order in which they are printed."""
    shutil.copy(ROOT / "examples" / "data" / "cam_ts.nc", tmp_path)
    environment = os.environ | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])}
    for session in block.text.split("$ ")[1:]:
        command, *shown = session.splitlines()
        before = {*tmp_path.iterdir()}
        # plan chooses by measured speeds, which other work on the machine distorts.
        for _ in range(3 if command.startswith("tamis plan") else 1):
            for path_made in {*tmp_path.iterdir()} - before:
                path_made.unlink()
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", command],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            printed = iter([comparable(line) for line in done.stdout.splitlines()])
            missing = [line for line in shown if line != "…" and comparable(line) not in printed]
            if not missing:
                break
        assert not missing, f"{path.name}: {command}: {missing[0]}\n{done.stdout}"


def test_readme_has_python_and_a_session() -> None:
    assert "README.md" in {path.name for path, _ in SESSIONS}
    languages = {block.language for block in blocks((ROOT / "README.md").read_text(encoding="utf-8")) if block.run}
    assert "python" in languages


DOCUMENT = """# Title
```python
x = 1
```
Words.

```sh
echo one
```

<!-- not run: needs a network -->

```sh
curl example.org
```
```sh
$ tamis inspect a.nc
a.nc
```
<!-- not run: left out -->
But then came words.
~~~python
y = "```"
~~~
1. In a list:
   ````text
   ```python
   ```
   ````
   ```python
   if x:
       x = 2
   ```
"""


def test_blocks_of_a_document_found_with_language_line_and_whether_to_run() -> None:
    assert blocks(DOCUMENT) == [
        Block("python", 3, "x = 1\n", True),
        Block("sh", 8, "echo one\n", True),
        Block("sh", 14, "curl example.org\n", False),
        Block("sh", 17, "$ tamis inspect a.nc\na.nc\n", False),
        Block("python", 23, 'y = "```"\n', True),
        Block("text", 27, "```python\n```\n", True),
        Block("python", 31, "if x:\n    x = 2\n", True),
    ]


@pytest.mark.parametrize("comment", ["<!-- not run -->", "<!-- not run: -->", "<!-- run: why -->"])
def test_blocks_not_run_without_a_reason_run(comment: str) -> None:
    assert [each.run for each in blocks(f"{comment}\n```sh\ntrue\n```\n")] == [True]


def test_blocks_without_end_refused() -> None:
    with pytest.raises(ValueError, match="expected the end of the block that starts at line 2, found none"):
        blocks("\n```python\nx = 1\n")


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("```python\nassert 1 == 2\n```", 'File "doc.md", line 3'),
        ("```sh\nfalse\ntrue\n```", "doc.md:3: the block gave exit code 1"),
        ("```sh\nfalse | cat\n```", "doc.md:3: the block gave exit code 1"),
        ("```python\nx = 1\n```\n```python\nassert x == 1\nassert y\n```", 'File "doc.md", line 7'),
    ],
)
def test_run_blocks_wrong_block_fails_with_its_line(block: str, said: str, tmp_path: Path) -> None:
    done = run_blocks("doc.md", f"\n{block}\n", tmp_path)
    assert done.returncode == 1
    assert said in done.stderr


def test_run_blocks_sample_and_command_are_where_a_checkout_has_them(tmp_path: Path) -> None:
    document = """
```python
import tamis
tamis.repack("examples/data/cam_ts.nc", "small.nc", {"TS": "zfp(accuracy=0.1)"})
```
```sh
tamis inspect small.nc | grep 'effective tolerance'
.venv/bin/tamis inspect examples/data/cam_ts.nc
rm examples/data/cam_ts.nc
```
"""
    done = run_blocks("doc.md", document, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("/TS") == 2
    assert (ROOT / "examples" / "data" / "cam_ts.nc").exists()


def test_demo_prints_ratio_and_bound_that_are_right(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "demo.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    (target,) = tmp_path.glob("tamis-demo-*/*.nc")
    with h5py.File(ROOT / "examples" / "data" / "cam_ts.nc") as old, h5py.File(target) as new:
        error = np.abs(old["TS"][()].astype("f8") - new["TS"][()].astype("f8")).max()
        ratio = old["TS"].nbytes / new["TS"].id.get_storage_size()
    assert f"{error:.4f} K of 0.1 K allowed" in done.stdout
    assert f"{ratio:.2f}" in done.stdout
    assert error <= 0.1
    # What it tells the reader to do next can be done.
    commands = [line.strip() for line in done.stdout.split("Next:")[1].splitlines() if ".venv/bin/" in line]
    assert len(commands) >= 3
    (tmp_path / ".venv").symlink_to(sys.prefix)
    for command in commands:
        if "YOUR.nc" in command or ("ncdump" in command and shutil.which("ncdump") is None):
            continue
        subprocess.run(["bash", "-euc", command], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
