"""A machine that lacks what a build needs is told so in a sentence, with the package of Debian and Fedora."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import needs
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "packaging" / "check_requirements.sh"
CMAKE = Path(sys.executable).with_name("cmake")

PYTHON = "expected Python 3.11 or newer, found"
LACKING = {
    "no Python": (
        {},
        f"{PYTHON} no python3: apt-get install python3 python3-dev python3-venv (Debian, Ubuntu)"
        " or dnf install python3 python3-devel (Fedora)",
    ),
    "an old Python": (
        {"python3": 'case "$2" in *version_info*) exit 1 ;; *) echo 3.9.2 ;; esac'},
        f"{PYTHON} 3.9.2 (python3): install a newer one, and name it: make PYTHON=python3.12",
    ),
    "no venv": (
        {"python3": 'case "$2" in *ensurepip*) exit 1 ;; *version_info*) ;; *) echo 3.11.2 ;; esac'},
        "expected venv and ensurepip for Python 3.11.2, found none: apt-get install python3-venv (Debian, Ubuntu)"
        " or dnf install python3 (Fedora)",
    ),
    "no headers": (
        {"python3": 'case "$2" in *sysconfig*) echo /nowhere ;; *platform*) echo 3.11.2 ;; esac'},
        "expected the headers of Python 3.11.2, found no /nowhere/Python.h: apt-get install python3-dev"
        " (Debian, Ubuntu) or dnf install python3-devel (Fedora)",
    ),
    "no compiler": (
        {"python3": 'case "$2" in *sysconfig*) echo "$HEADERS" ;; *platform*) echo 3.11.2 ;; esac'},
        "expected a compiler for C++20, such as g++ 12, found no c++: apt-get install g++ (Debian, Ubuntu)"
        " or dnf install gcc-c++ (Fedora)",
    ),
    "an old compiler": (
        {
            "python3": 'case "$2" in *sysconfig*) echo "$HEADERS" ;; *platform*) echo 3.11.2 ;; esac',
            "g++": '[ "$1" = --version ] && printf "g++ (Debian) 10.2\\nmore" || exit 1',
        },
        "expected a compiler for C++20, such as g++ 12 or clang++ 16, found g++ (Debian) 10.2: install a newer one,"
        " and name it: make CXX=g++-12",
    ),
}


def check(folder: Path, scripts: dict[str, str], **variables: str) -> tuple[int, str]:
    """Run the script where there are no programs but some, and what stands in for others."""
    folder.mkdir(exist_ok=True)
    for name in ("sh", "dirname", "head"):
        (folder / name).symlink_to(shutil.which(name) or name)
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    env = {"PATH": str(folder), "HEADERS": str(folder), **variables}
    done = subprocess.run(["sh", SCRIPT, "python3"], env=env, capture_output=True, text=True, check=False)
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize("what", LACKING)
def test_u65_what_is_lacking_is_said_in_a_sentence_with_its_packages(what: str, tmp_path: Path) -> None:
    (tmp_path / "Python.h").touch()
    scripts, said = LACKING[what]
    assert check(tmp_path, scripts) == (1, f"make: {said}\n")


def test_compiler_that_the_user_names_is_the_one_that_is_asked(tmp_path: Path) -> None:
    (tmp_path / "Python.h").touch()
    scripts = {**LACKING["an old compiler"][0], "cached": "exit 0"}
    assert check(tmp_path, scripts, CXX="cached g++ -O1") == (0, "")
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "Python.h").touch()
    said = check(tmp_path / "none", scripts, CXX="g++-99")[1]
    assert said.startswith("make: expected a compiler for C++20, such as g++ 12, found no g++-99: apt-get install g++ ")


@pytest.mark.parametrize("python", [sys.executable])
def test_machine_that_runs_the_tests_has_everything(python: str) -> None:
    needs.need("c++")
    subprocess.run(["sh", SCRIPT, python], check=True)


@pytest.mark.parametrize(
    ("compiler", "said"),
    [
        (
            "none",
            "expected a compiler for C++20, such as g++ 12, found none: apt-get install g++ (Debian, Ubuntu)",
        ),
        ("old", "expected a compiler for C++20, such as g++ 12 or clang++ 16, found"),
    ],
)
def test_cmake_says_in_a_sentence_which_compiler_it_needs(compiler: str, said: str, tmp_path: Path) -> None:
    needs.need("c++")
    (tmp_path / "old").write_text('#!/bin/sh\nexec c++ -D__builtin_shufflevector=absent "$@"\n')
    (tmp_path / "old").chmod(0o755)
    options = ("-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={CMAKE.with_name('ninja')}")
    command = [CMAKE, "-S", ROOT, "-B", tmp_path / "build", *options]
    env = os.environ | {"CXX": str(tmp_path / compiler)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert said in done.stderr
    assert len(done.stderr.splitlines()) < 8
