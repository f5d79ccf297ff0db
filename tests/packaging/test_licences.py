"""A wheel names the licences of all that it contains, has their texts, and a list of it that is true."""

from __future__ import annotations

import json
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import needs
import pytest

import tamis

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(tamis.__file__).parent
TEXTS = {
    "BSD-3-Clause": ("LICENSE", "Redistribution and use in source and binary forms"),
    "Apache-2.0": ("examples/data/LICENSE-APACHE-2.0.txt", "Version 2.0, January 2004"),
    "MIT": ("packaging/licenses/robin-map.txt", "MIT License"),
    "ISC": ("src/tamis/jobs/report/page/NOTICE.txt", "Permission to use, copy, modify, and/or distribute"),
    "GPL-3.0-or-later": ("packaging/licenses/gcc-runtime.txt", "GNU GENERAL PUBLIC LICENSE"),
    "GCC-exception-3.1": ("packaging/licenses/gcc-runtime.txt", "GCC RUNTIME LIBRARY EXCEPTION"),
}
"""Where the text of each licence is, and words in it."""


def installed(pattern: str) -> list[Path]:
    """Return the installed files of tamis whose names match."""
    files = metadata.files("tamis") or ()
    return [Path(str(file.locate())) for file in files if re.search(pattern, file.as_posix())]


@pytest.fixture(scope="module")
def components() -> dict[str, dict[str, Any]]:
    (path,) = installed(r"\.dist-info/sboms/tamis\.cdx\.json$")
    document = json.loads(path.read_text())
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert document["metadata"]["component"]["version"] == tamis.__version__
    return {each["bom-ref"]: each for each in document["components"]}


def names_of(expression: str) -> set[str]:
    return {*re.split(r" AND | WITH ", expression)}


def licence_of(component: dict[str, Any]) -> str:
    (choice,) = component["licenses"]
    return str(choice.get("expression") or choice["license"]["id"])


def test_metadata_has_every_licence_and_its_text() -> None:
    about = metadata.metadata("tamis")
    assert names_of(about["License-Expression"]) == {*TEXTS}
    files = about.get_all("License-File") or []
    for file, words in TEXTS.values():
        assert file in files
        (path,) = installed(rf"\.dist-info/licenses/{re.escape(file)}$")
        assert words in path.read_text()
        assert path.read_text() == (ROOT / file).read_text()


def test_licences_of_the_list_are_those_of_the_metadata(components: dict[str, dict[str, Any]]) -> None:
    stated = names_of(metadata.metadata("tamis")["License-Expression"])
    assert {name for each in components.values() for name in names_of(licence_of(each))} == stated


def test_versions_in_the_list_are_true(components: dict[str, dict[str, Any]]) -> None:
    versions = {name: each["version"] for name, each in components.items()}
    nanobind = metadata.distribution("nanobind")
    assert versions["nanobind"] == nanobind.version
    header = Path(str(nanobind.locate_file("nanobind/ext/robin_map/include/tsl/robin_growth_policy.h"))).read_text()
    assert versions["robin-map"] == ".".join(re.findall(r"define TSL_RH_VERSION_\w+ (\d+)", header))
    notice = (PACKAGE / "jobs" / "report" / "page" / "NOTICE.txt").read_text()
    assert f"uPlot {versions['uplot']} " in notice
    assert f"world-atlas {versions['world-atlas']} " in notice
    assert f"ldcpy {versions['ldcpy-sample']} " in (PACKAGE / "sample" / "README.md").read_text()
    for each in components.values():
        if "purl" in each:
            assert each["purl"].rpartition("@")[2].removeprefix("v") == each["version"]


def test_licence_of_nanobind_is_that_of_its_package() -> None:
    texts = [
        Path(str(file.locate())).read_text() for file in metadata.files("nanobind") or () if file.name == "LICENSE"
    ]
    assert (ROOT / "packaging" / "licenses" / "nanobind.txt").read_text() in texts


@pytest.mark.peer
@needs.needs("readelf")
def test_runtime_that_is_linked_in_is_listed(components: dict[str, dict[str, Any]]) -> None:
    """The plugin needs no libstdc++ of the system, because it has its own, which its compiler brought."""
    (plugin,) = installed(r"hdf5_plugin/libh5ztamis\.so$")
    dynamic = subprocess.run(["readelf", "-d", plugin], capture_output=True, text=True, check=True).stdout
    assert "libstdc++" not in dynamic
    comment = subprocess.run(["readelf", "-p", ".comment", plugin], capture_output=True, text=True, check=True).stdout
    if "GCC: " in comment:
        assert components["gcc-runtime"]["version"] in comment


def test_nothing_of_others_is_in_the_package_but_what_is_listed() -> None:
    """A copyright that is not ours stands only where the list says."""
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file()
        and path.suffix in (".py", ".txt", ".md", ".h", ".F90", ".f90", ".js", ".css", ".pc", ".cmake")
        if re.search(r"copyright \(?c?\)? ?\d{4}", path.read_text(errors="replace"), re.IGNORECASE)
    }
    assert found <= {"jobs/report/page/NOTICE.txt", "sample/LICENSE-APACHE-2.0.txt"}
