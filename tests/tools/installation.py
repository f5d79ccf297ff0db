"""A virtual environment with a few of the packages that are installed here, and no others: what their users see."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

SITE = Path("lib", f"python{sys.version_info.major}.{sys.version_info.minor}", "site-packages")


def make_installation(folder: Path, packages: Iterable[str]) -> Path:
    """Make a virtual environment with packages, such as ``tamis[zarr]``, and all that they need; return its Python.

    It has links to what is installed here, so that it takes a second, and no network. Raise PackageNotFoundError if a
    package is not installed.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    for found in _with_needs(packages):
        for name in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            link = folder / SITE / name
            if not link.exists():
                link.symlink_to(Path(str(found.locate_file(name))))
        for script in found.entry_points.select(group="console_scripts"):
            _write_script(folder / "bin" / script.name, python, script.module, script.attr)
    return python


def environment_of(python: Path) -> dict[str, str]:
    """Return the variables of a shell in which such an environment is active, without those of HDF5's plugins."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HDF5_PLUGIN", "PYTHON"))}
    return kept | {"PATH": os.pathsep.join([str(python.parent), os.environ.get("PATH", "")])}


def _with_needs(packages: Iterable[str]) -> Iterator[Distribution]:
    """Yield the distributions of packages and of all that they need, each once."""
    known: set[tuple[str, str]] = set()
    left = [Requirement(package) for package in packages]
    while left:
        wanted = left.pop()
        name = re.sub(r"[-_.]+", "-", wanted.name).lower()
        found = distribution(name)
        if (name, "") not in known:
            yield found
        for extra in {"", *wanted.extras} - {extra for known_name, extra in known if known_name == name}:
            known.add((name, extra))
            needed = [Requirement(text) for text in found.requires or ()]
            left += [need for need in needed if need.marker is None or need.marker.evaluate({"extra": extra})]


def _write_script(path: Path, python: Path, module: str, function: str) -> None:
    path.write_text(f"#!{python}\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n")
    path.chmod(0o755)
