"""What users rely on is compared with the release before, and each way to break it is found."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "packaging" / "check_api.py"

OLD = """
__all__ = ["LIMIT", "Shape", "gone", "open"]
LIMIT = 3
def gone() -> None: ...
def open(path: str, *, mode: str = "r", more: int = 1) -> Shape: ...
class Shape:
    rank: int
    def size(self, unit: str) -> int: ...
    def area(self) -> int: ...
"""
NEW = """
__all__ = ["LIMIT", "Shape", "fresh", "open"]
LIMIT = 4
def fresh() -> None: ...
def open(path: str, *, mode: str, name: str = "") -> Shape: ...
class Shape:
    def size(self, unit: str, scale: int) -> int: ...
    def area(self, exact: bool = True) -> int: ...
"""


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_api", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def package(folder: Path, source: str) -> Path:
    (folder / "tamis").mkdir(parents=True)
    (folder / "tamis" / "__init__.py").write_text(source)
    return folder


@pytest.mark.check
def test_nothing_that_was_promised_is_broken(check: ModuleType) -> None:
    assert [*check.problems()] == []


@pytest.mark.check
def test_breakage_behind_names_that_are_imported_is_found(check: ModuleType, tmp_path: Path) -> None:
    source = tmp_path / "src"
    shutil.copytree(SCRIPT.parents[1] / "src", source)
    module = source / "tamis" / "zfp" / "arrays.py"
    text, signature = module.read_text(), "def encode(array: ArrayLike, mode: Mode, *, threads: int = 1)"
    assert signature in text
    module.write_text(text.replace(signature, "def encode(array: ArrayLike, *, mode: Mode)"))
    found = [*check.broken_names(check.loaded(source), check.loaded(check.latest_frozen()))]
    assert {line.partition(": ")[0] for line in found} == {"tamis.zfp.arrays.encode"}
    assert len(found) == 2


def test_each_breakage_is_named_and_additions_are_not(check: ModuleType, tmp_path: Path) -> None:
    old, new = (check.loaded(package(tmp_path / name, text)) for name, text in (("old", OLD), ("new", NEW)))
    found = "\n".join(check.broken_names(new, old))
    for said in (
        "tamis.gone: was removed",
        "tamis.open: Parameter is now required",
        "tamis.open: Parameter was removed: more",
        "tamis.Shape.rank: Public object was removed",
        "tamis.Shape.size: Parameter was added as required",
    ):
        assert said in found, found
    assert not any(word in found for word in ("fresh", "LIMIT", "area", "name"))
    assert [*check.broken_names(old, old)] == []


def test_stub_of_a_module_has_all_that_is_compared(check: ModuleType, tmp_path: Path) -> None:
    old = check.loaded(package(tmp_path / "old", OLD))
    stubs = tmp_path / "stubs" / "tamis"
    stubs.mkdir(parents=True)
    for name, text in check.stubs(old, "__init__").items():
        (stubs / name).write_text(text)
    again = check.loaded(stubs.parent)
    assert [*check.broken_names(old, again)] == []
    new = check.loaded(package(tmp_path / "new", NEW))
    assert sorted(check.broken_names(new, again)) == sorted(check.broken_names(new, old))


def test_last_tag_of_the_history_is_what_is_compared_with(check: ModuleType, tmp_path: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True)

    git("init", "-q")
    package(tmp_path / "src", OLD)
    git("add", ".")
    git("commit", "-qm", "first")
    assert check.last_tag(tmp_path) is None
    git("tag", "v1.0.0")
    (tmp_path / "src" / "tamis" / "__init__.py").write_text(NEW)
    git("commit", "-qam", "second")
    assert check.last_tag(tmp_path) == "v1.0.0"
    found = [*check.broken_names(check.loaded(tmp_path / "src"), check.tagged("v1.0.0", tmp_path))]
    assert "tamis.gone: was removed" in found


def test_commands_and_keys_that_go_away_are_named(check: ModuleType) -> None:
    lines = check.command_lines()
    assert {"repack", "repack --filter", "verify --bound"} <= {*lines}
    assert check.gone([*lines, "repack --gone"], lines) == ["repack --gone"]
    keys = check.key_lines()
    assert "verify Verification ok: boolean" in keys
