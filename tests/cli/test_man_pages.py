"""The man pages are those of --help, and programs that show them find nothing wrong."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from importlib.metadata import files
from pathlib import Path
from types import ModuleType

import click
import needs
import pytest

from tamis.cli import main

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted((DOCS / "man").iterdir())
# Lines are not broken elsewhere than on other machines, and letters are the same everywhere.
ENVIRONMENT = os.environ | {"LC_ALL": "C.UTF-8", "MANWIDTH": "80"}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("man_pages", DOCS / "man_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_are_those_of_the_commands(script: ModuleType) -> None:
    assert {path.name: path.read_text() for path in PAGES} == script.texts(), "run: python docs/man_pages.py"


@needs.needs("mandoc")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_mandoc_finds_nothing_wrong(page: Path) -> None:
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def shown(page: Path) -> str:
    """Return a page as man shows it, with warnings of groff."""
    command = ["man", "--warnings", "-E", "UTF-8", "-l", page]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=ENVIRONMENT)
    assert done.stderr == ""
    return re.sub(".\b", "", done.stdout)  # what is bold on printers


@needs.needs("man")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_man_shows_each_option_without_a_warning(page: Path) -> None:
    text = shown(page)
    with main.make_context("tamis", [], resilient_parsing=True) as context:
        name = page.stem.removeprefix("tamis").removeprefix("-")
        command = main.get_command(context, name) if name else main
    assert command is not None
    options = [
        parameter for parameter in command.params if isinstance(parameter, click.Option) and not parameter.hidden
    ]
    assert not [option.opts[-1] for option in options if option.opts[-1] not in text]
    assert "Exit codes:" not in text
    assert not re.search(r"\\[(&e-]|\[u[0-9A-F]", text)  # what groff did not read


@needs.needs("man")
def test_examples_are_shown_as_they_are_typed() -> None:
    text = shown(DOCS / "man" / "tamis.1")
    assert "\n       tamis plan climate.nc --require 'TS:abs=0.1'\n" in text
    assert "\n       HDF5_PLUGIN_PATH=$(tamis plugin-path) ncdump -v TS small.nc\n" in text


def test_pages_are_where_man_looks_in_an_environment() -> None:
    installed = {file.name: file for file in files("tamis") or () if "share/man/man1" in file.as_posix()}
    assert {*installed} == {path.name for path in PAGES}
    folder = Path(str(installed["tamis.1"].locate())).resolve().parents[2]
    assert folder == Path(sys.prefix, "share").resolve()


@needs.needs("man")
def test_man_finds_the_page_of_a_command_by_the_path_of_the_shell() -> None:
    path = os.pathsep.join([str(Path(sys.prefix, "bin")), os.environ["PATH"]])
    kept = {name: value for name, value in ENVIRONMENT.items() if name != "MANPATH"}
    for words in (["tamis"], ["tamis", "repack"]):
        done = subprocess.run(
            ["man", "-w", *words], capture_output=True, text=True, check=True, env=kept | {"PATH": path}
        )
        assert Path(done.stdout.split()[0]).name == f"{'-'.join(words)}.1"
