"""What the repository shows its readers is run: the demo, and each python and sh block of README and docs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from document_blocks import (
    DOCUMENTS,
    FIRST_PAGES,
    ROOT,
    Block,
    blocks,
    run_blocks,
    run_session,
    skip_without_programs,
    write_files,
)

import tamis  # noqa: F401 - lets h5py read what the demo wrote

OTHER_PAGES = [path for path in DOCUMENTS if path not in FIRST_PAGES]
SESSIONS = [
    (path, block) for path in OTHER_PAGES for block in blocks(path.read_text(encoding="utf-8")) if block.is_session
]


@pytest.mark.matrix
@pytest.mark.parametrize("path", OTHER_PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_document_every_block_runs(path: Path, tmp_path: Path) -> None:
    found = blocks(path.read_text(encoding="utf-8"))
    skip_without_programs(found)
    done = run_blocks(path.name, found, tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.check
@pytest.mark.matrix
@pytest.mark.parametrize(("path", "block"), SESSIONS, ids=lambda value: getattr(value, "name", ""))
def test_session_shows_what_its_commands_print(path: Path, block: Block, tmp_path: Path) -> None:
    skip_without_programs([block._replace(run=True)])
    shutil.copy(ROOT / "examples" / "data" / "cam_ts.nc", tmp_path)  # a session may follow a block that does
    write_files(blocks(path.read_text(encoding="utf-8")), tmp_path)
    path_of_commands = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    run_session(block, tmp_path, os.environ | {"PATH": path_of_commands})


_FILE = re.compile(r"(?<![\w./{}*-])[\w-]+\.(?:nc|h5|hdf5|zarr|toml|html|json|icechunk|parquet|cdl)\b")
_SHARED = {"cam_ts.nc", "tamis.hdf5", "tamis.zarr"}
"""The sample, which each page begins with, and names of modules."""


def test_documents_can_run_one_after_another_in_one_folder() -> None:
    pages: dict[str, set[str]] = {}
    for path in DOCUMENTS:
        found = [each for each in blocks(path.read_text(encoding="utf-8")) if each.run or each.is_session]
        for block in found:
            for name in _FILE.findall(block.text if block.language in ("python", "sh") else ""):
                pages.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    assert {"small.nc", "recipe.toml"} <= pages.keys()
    assert not {name: sorted(own) for name, own in pages.items() if len(own) > 1 and name not in _SHARED}


def test_documents_that_use_the_sample_begin_with_a_copy_of_it() -> None:
    for path in DOCUMENTS:
        run = [each for each in blocks(path.read_text(encoding="utf-8")) if each.run or each.is_session]
        used = [each.line for each in run if re.search(r"\bcam_(ts|\*)\.nc\b", each.text)]
        copied = [each.line for each in run if re.search(r"^(\$ )?tamis sample", each.text, re.MULTILINE)]
        assert not used or (copied and copied[0] <= used[0]), path
        assert not any("examples/data" in each.text for each in run), path


def test_readme_has_python_and_a_session() -> None:
    found = blocks((ROOT / "README.md").read_text(encoding="utf-8"))
    assert any(block.is_session for block in found)
    assert "python" in {block.language for block in found if block.run}


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
```c title="a.c"
int main(void) { return 0; }
```
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
        Block("c", 26, "int main(void) { return 0; }\n", True, file="a.c"),
        Block("text", 30, "```python\n```\n", True),
        Block("python", 34, "if x:\n    x = 2\n", True),
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
    done = run_blocks("doc.md", blocks(f"\n{block}\n"), tmp_path)
    assert done.returncode == 1
    assert said in done.stderr


@pytest.mark.parametrize("shown", ["word", "other"])
def test_session_finds_files_of_the_page_and_keeps_exported_variables(shown: str, tmp_path: Path) -> None:
    document = '```text title="a.txt"\nword\n```\n```sh\n$ export NAME=a.txt\n$ cat $NAME\n' + f"{shown}\n```\n"
    found = blocks(document)
    write_files(found, tmp_path)
    if shown == "word":
        run_session(found[1], tmp_path, {**os.environ})
    else:
        with pytest.raises(AssertionError, match="line 5: cat"):
            run_session(found[1], tmp_path, {**os.environ})


@pytest.mark.check
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
    done = run_blocks("doc.md", blocks(document), tmp_path)
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
