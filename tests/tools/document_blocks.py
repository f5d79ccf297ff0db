"""The fenced blocks of README and docs, and how they are run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import needs

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
FIRST_PAGES = [ROOT / "README.md", ROOT / "docs" / "start.md"]
"""Pages that are run as printed, sessions included, with extras and without them: tests/test_installations.py."""

_FENCE = re.compile(r"""(?P<indent> *)(?P<fence>`{3,}|~{3,}) *(?P<language>[^\s`{]*)(\s+title="(?P<file>[\w.-]+)")?""")
_NOT_RUN = re.compile(r"\s*<!--\s*not run:\s*\S.*-->\s*")
_EXTRAS = re.compile(r"\s*<!--\s*extras:\s*\S.*-->\s*")


class Block(NamedTuple):
    """A block of a document: its language, the number of its first line, its text, and whether it is to be run."""

    language: str
    line: int
    text: str
    run: bool
    extras: bool = False
    """Whether it needs more than the base installation, or prints something else there."""
    file: str = ""
    """Name of the file that the block is: its title. Later blocks find it in their folder."""

    @property
    def is_session(self) -> bool:
        """True if commands after ``$ `` are followed by what they print."""
        return self.language == "sh" and self.text.lstrip().startswith("$ ")


def blocks(document: str) -> list[Block]:
    """Find the fenced blocks; those after ``<!-- not run: reason -->`` are not to be run, nor are sessions (``$ ``).

    Those after ``<!-- extras: names -->`` need extras.
    """
    found: list[Block] = []
    opened: re.Match[str] | None = None
    skip = extras = False
    start = 0
    lines: list[str] = []
    for number, line in enumerate(document.splitlines(), start=1):
        if opened is None:
            if opened := _FENCE.match(line):
                start, lines = number + 1, []
            elif line.strip():
                skip, extras = _NOT_RUN.fullmatch(line) is not None, _EXTRAS.fullmatch(line) is not None
        elif line.strip().startswith(opened["fence"]) and not line.strip(f" {opened['fence'][0]}"):
            text = "".join(f"{each}\n" for each in lines)
            session = opened["language"] == "sh" and text.lstrip().startswith("$ ")
            run = not skip and not session
            found.append(Block(opened["language"], start, text, run, extras, opened["file"] or ""))
            opened, skip, extras = None, False, False
        else:
            lines.append(line.removeprefix(opened["indent"]))
    if opened is not None:
        raise ValueError(f"expected the end of the block that starts at line {start - 1}, found none")
    return found


PROGRAMS = ("ncdump", "ncgen", "h5dump", "h5ls", "h5repack", "nccopy", "ncks", "h5cc", "h5fc", "gfortran", "pkg-config")
"""Programs of other packages that blocks run."""


def skip_without_programs(found: Sequence[Block]) -> None:
    """Skip the test if a block needs a program that is absent, which CI installs."""
    for program in PROGRAMS:
        if any(block.run and block.language == "sh" and re.search(rf"\b{program}\b", block.text) for block in found):
            needs.need(program)


def write_files(found: Sequence[Block], folder: Path) -> None:
    """Write the blocks that are files."""
    for block in found:
        if block.file:
            (folder / block.file).write_text(block.text)


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


def run_blocks(name: str, found: Sequence[Block], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run blocks in an empty folder, with the programs of .venv/ on the path, as somebody who has a wheel.

    Only blocks that need the programs in examples/ get them, as in a checkout.
    """
    if any("examples/" in block.text for block in found if block.run):
        shutil.copytree(ROOT / "examples", folder / "examples")
    (folder / ".venv").symlink_to(sys.prefix)
    write_files(found, folder)
    clean = {key: value for key, value in os.environ.items() if not key.startswith("HDF5_PLUGIN")}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    wanted = [each[:3] for each in found if each.run and each.language in ("python", "sh")]
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


# Times and speeds, which no two runs share.
_SECONDS = re.compile(r"\bin [\d.]+ s\b")
_SPEEDS = re.compile(r" \d+ \d+ (?=(?:any HDF5|(?:any )?HDF5 with \w+)(?:, not NCO 5.1)?$)")


def comparable(line: str) -> str:
    """Return a line of output without times, speeds and the width of columns."""
    return _SPEEDS.sub(" N N ", _SECONDS.sub("in N s", " ".join(line.split())))


def run_session(block: Block, folder: Path, environment: dict[str, str], *, compares: bool = True) -> None:
    """Run the commands of a session, and check that they print what it shows.

    Lines may be left out at a line "…", and stand in the order in which they are printed. Variables that are exported
    stay so.
    """
    exports = ""
    for session in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, *shown = session.splitlines()
        if command.startswith("export "):
            exports += f"{command}\n"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", f"{exports}{command}"],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        printed = iter([comparable(line) for line in done.stdout.splitlines()])
        missing = [line for line in shown if compares and line != "…" and comparable(line) not in printed]
        assert not missing, f"line {block.line}: {command}: {missing[0]}\n{done.stdout}"
