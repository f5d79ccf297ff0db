"""All that names the version of tamis names the same one."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import tamis

ROOT = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
PLACES = {
    "CMakeLists.txt": r"project\(tamis VERSION (\S+) ",
    "CITATION.cff": r"^version: (\S+)$",
    "CHANGELOG.md": r"^## \[([\d.]+)\] - ",
    "docs/man/tamis.1": r"^\.TH TAMIS 1 \S+ \"tamis (\S+)\"",
    "docs/repack.md": r"^tamis (\d+\.\d+\.\d+): repack ",
    "docs/rounding.md": r"\"tamis version (\S+)\"",
    "native/capi/include/tamis.h": r"^/\* The version of tamis, such as \"(\d\S*)\"",
    "packaging/conda-forge/recipe.yaml": r"^  version: \"(\S+)\"$",
    "packaging/spack/spack_repo/tamis/packages/py_tamis/package.py": r"^    version\(\"(\S+)\"",
    "src/tamis/_native.pyi": r"^version: str = \"(\S+)\"$",
}


@pytest.mark.parametrize("name", PLACES)
def test_version_is_that_of_the_project(name: str) -> None:
    found = re.search(PLACES[name], (ROOT / name).read_text(), re.MULTILINE)
    assert found is not None
    assert found[1] == VERSION


def test_installed_version_is_that_of_the_project() -> None:
    assert tamis.__version__ == metadata.version("tamis") == VERSION


def test_date_of_the_citation_is_that_of_the_changelog() -> None:
    (date,) = re.findall(r"^date-released: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert f"\n## [{VERSION}] - {date}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_no_place_is_left_with_an_older_version() -> None:
    """A pip requirement or a spack archive with the version in its name."""
    spack = (ROOT / "packaging/spack/spack_repo/tamis/packages/py_tamis/package.py").read_text()
    assert {*re.findall(r"tamis-(\d+\.\d+\.\d+)", spack)} == {VERSION}
