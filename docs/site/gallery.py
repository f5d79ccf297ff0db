"""The reports of the gallery: the commands of docs/gallery.md are run, and what they write is put below them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "gallery"
_BLOCK = re.compile(r"```sh\n(.*?)```\n", re.DOTALL)
_REPORT = re.compile(r"-o (\S+)\.html")


def write(pages: Path) -> None:
    """Run the blocks of the gallery in one folder, and add a frame with its report to each."""
    page = pages / "gallery.md"
    (pages / FOLDER).mkdir()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "examples", folder / "examples")

        def with_report(found: re.Match[str]) -> str:
            path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
            command = ["bash", "-euo", "pipefail", "-c", found[1]]
            environment = os.environ | {"PATH": path}
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"expected the commands of docs/gallery.md to run, got {done.stderr}:\n{found[1]}")
            report = _REPORT.search(found[1])
            return found[0] if report is None else found[0] + frame(report[1])

        page.write_text(_BLOCK.sub(with_report, page.read_text()))
        for path in folder.iterdir():
            if path.suffix == ".html":
                shutil.copy(path, pages / FOLDER)
                for beside in folder.glob(f"{path.stem}-*"):  # reports of the files of a folder
                    shutil.copytree(beside, pages / FOLDER / beside.name)


def frame(name: str) -> str:
    """Return a link to a report, and a frame that shows it."""
    address = f"{FOLDER}/{name}.html"
    return (
        f"\n[Open this report]({address})\n\n"
        f'<iframe src="{address}" title="The report {name}" loading="lazy" class="report"></iframe>\n'
    )
