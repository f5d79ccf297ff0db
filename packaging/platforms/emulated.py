"""An environment of Python for another processor, on this machine: Debian's Python for it, which qemu runs.

No root is needed, and nothing of the system changes: packages of Debian are unpacked in a folder. The environment's
`python` is a script that starts qemu, and Python takes it for its program: what tests start as `sys.executable` is
emulated, too, without binfmt_misc. Other programs are found on `PATH` alone, which has emulated ones only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from zig import ROOT, run

SUITES = ("trixie", "stable")
"""Of Debian: a mirror may list files of a suite that it has not yet got, but have those of the other name."""

KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

TOOLS = {
    "hdf5-tools": ("h5diff", "h5dump", "h5ls", "h5repack", "h5stat"),
    "netcdf-bin": ("nccopy", "ncdump", "ncgen"),
}
"""Programs that tests run, by their package."""

BUILD = ("nanobind", "scikit-build-core")
"""What builds a wheel there, besides this machine's CMake and Ninja."""

TEST = ("pytest", "pytest-randomly", "pytest-xdist", "zarr")

NEEDED = (
    *("execnet", "iniconfig", "markdown-it-py", "mdurl", "packaging", "pathspec", "pluggy", "pygments"),
    "typing-extensions",
)
"""What these packages need in turn, where pip cannot find out: it would ask for wheels that PyPI has not."""


class Machine(NamedTuple):
    """A processor, as compilers and qemu name it, and where its packages come from."""

    name: str
    debian: str  # its name there
    model: str  # that qemu emulates
    packages: tuple[str, ...]  # of Python, from Debian
    wheels: tuple[str, ...]  # of PyPI, with what they need
    sources: tuple[str, ...]  # of PyPI, which have no wheel for it, and are compiled
    pure: tuple[str, ...]  # the same, which need not be compiled if their variables say so


MACHINES = {
    "aarch64": Machine(
        "aarch64",
        "arm64",
        "cortex-a76",  # without signed pointers, which make all four times slower
        (),
        (
            *(*BUILD, *TEST, "numpy", "h5py", "deflate", "click", "rich", "hypothesis", "imagecodecs", "zstandard"),
            *("hdf5plugin", "jsonschema", "netCDF4", "numcodecs[pcodec]", "zfpy"),
        ),
        (),
        (),
    ),
    # What PyPI has no wheels of for this processor. Other packages are pure Python.
    "s390x": Machine(
        "s390x",
        "s390x",
        "max",
        (
            "python3-numpy",
            "python3-h5py",
            "python3-hypothesis",
            "python3-netcdf4",
            "python3-numcodecs",
            "python3-yaml",
            "python3-zstandard",
        ),
        (*BUILD, *TEST, *NEEDED, "click", "rich", "donfig"),
        ("deflate",),
        ("google-crc32c",),
    ),
}


class Emulated:
    """A processor's environment in a folder, which is made where it is not there yet."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        self.machine = machine
        self.root = folder / "root"
        self.environment = folder / "environment"
        self.python = self.environment / "bin" / "python"
        self._folder = folder
        self._qemu = program(f"qemu-{machine.name}", "qemu-user")
        folder.mkdir(parents=True, exist_ok=True)
        made_of = folder / "made_of"
        text = f"{machine}\n{TOOLS}\n{(ROOT / 'constraints.txt').read_text()}"
        if not made_of.exists() or made_of.read_text() != text:
            for old in (self.root, self.environment):
                shutil.rmtree(old, ignore_errors=True)
            made_of.write_text(text)
        if not self.root.exists():
            self._make_root()
        self._version = self.root.joinpath("usr/bin/python3").resolve().name  # python3.13
        self._site = self.environment / "lib" / self._version / "site-packages"
        if not self.environment.exists():
            self._make_environment()

    def run(self, *words: str | Path) -> int:
        """Run Python, which sees no programs of this machine; returns its exit code."""
        return subprocess.run([self.python, *words], env=self._variables(), cwd=ROOT, check=False).returncode

    def output(self, *words: str | Path) -> str:
        """Run Python, and return what it printed; exits with that if it fails."""
        done = subprocess.run(
            [self.python, *words], env=self._variables(), cwd=ROOT, capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}\nexit code {done.returncode}")
        return done.stdout

    def _variables(self) -> dict[str, str]:
        plugins = self._site / "tamis" / "hdf5_plugin"
        return {
            **_clean_variables(),
            "PATH": str(self.python.parent),
            "LANG": "C.UTF-8",
            "HDF5_PLUGIN_PATH": str(plugins),
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONWARNINGS": "ignore::RuntimeWarning:google_crc32c",  # which is pure Python where that must do
        }

    def build_wheel(self, source: Path) -> Path:
        """Build a wheel of the project, or of a package's source, by the compiler for this processor."""
        built, wheels = self._folder / "build" / source.name, self._folder / "wheels" / source.name
        shutil.rmtree(wheels, ignore_errors=True)
        code = (
            "import sys\nfrom scikit_build_core.build import build_wheel\n"
            "build_wheel(sys.argv[1], {'build-dir': sys.argv[2]})"
        )
        here = Path(sys.executable).parent
        done = subprocess.run(
            [self.python, "-c", code, wheels, built],
            env={
                **_clean_variables(),
                # CMake and Ninja are those of this machine: their files say which processor they are for.
                "PATH": os.pathsep.join([str(here), os.environ["PATH"]]),
                "CMAKE_ARGS": f"-DCMAKE_TOOLCHAIN_FILE={self._toolchain()}",
                "CMAKE_GENERATOR": "Ninja",
            },
            cwd=source,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(f"cannot build {source.name} for {self.machine.name}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
        (wheel,) = wheels.glob("*.whl")
        return wheel

    def install(self, wheel: Path) -> None:
        """Install a wheel in place of the one before; the project's brings the command `tamis`."""
        self._get_wheels(self._site, "--no-deps", "--upgrade", wheel)
        command = self.python.with_name("tamis")
        command.write_text(f"#!{self.python}\nfrom tamis_command import main\n\nmain()\n")
        command.chmod(0o755)

    def _make_root(self) -> None:
        """Unpack Debian's packages."""
        for suite in SUITES:
            apt = Apt(self._folder / "apt", self.machine.debian, suite)
            failed = apt.download("base-files", "libstdc++6", "python3", *TOOLS, *self.machine.packages)
            if not failed:
                break
        else:
            sys.exit(failed)
        made = self._folder / "root.new"
        shutil.rmtree(made, ignore_errors=True)
        apt.unpack(made)
        # Of Python alone the headers, without those of C that they ask for: the compiler has its own. pyconfig.h
        # includes the one of the processor, from a folder that the compiler does not know.
        name = made.joinpath("usr/bin/python3").resolve().name
        apt.unpack_alone(f"lib{name}-dev", made)
        (own,) = made.glob(f"usr/include/*-linux-gnu/{name}/pyconfig.h")
        shutil.copy2(own, made / "usr/include" / name)
        # Paths that the root has are found there before those of this machine; tests shall see /tmp as it is.
        for each in made.iterdir():
            if each.name not in ("bin", "etc", "lib", "lib64", "sbin", "usr"):
                shutil.rmtree(each)
        libraries = next(made.glob("usr/lib/*-linux-gnu"))
        for library in (*libraries.glob("blas/*.so.*"), *libraries.glob("lapack/*.so.*")):
            libraries.joinpath(library.name).symlink_to(library.relative_to(libraries))
        made.rename(self.root)

    def _make_environment(self) -> None:
        """Make what `python -m venv` makes, and install packages in it."""
        made = self._folder / "environment.new"
        shutil.rmtree(made, ignore_errors=True)
        site = made / "lib" / self._version / "site-packages"
        site.mkdir(parents=True)
        programs = made / "bin"
        programs.mkdir()
        for name in ("python", "python3"):
            self._program(programs / name, self.root / "usr/bin" / self._version)
        for name in (name for names in TOOLS.values() for name in names):
            self._program(programs / name, self.root / "usr/bin" / name)
        for name in ("env", "sh"):  # of this machine
            programs.joinpath(name).symlink_to(program(name, "coreutils dash"))
        (made / "pyvenv.cfg").write_text(
            f"home = {self.root}/usr/bin\ninclude-system-site-packages = {str(bool(self.machine.packages)).lower()}\n"
        )
        # With what they need, unless Debian has some of it.
        self._get_wheels(site, *(["--no-deps"] if self.machine.packages else []), *self.machine.wheels)
        made.rename(self.environment)
        for wheel in (*map(self._wheel_of_source, self.machine.sources), *map(self._pure_wheel, self.machine.pure)):
            self.install(wheel)

    def _program(self, path: Path, emulated: Path) -> None:
        path.write_text(
            f'#!/bin/sh\nexec {self._qemu} -cpu {self.machine.model} -L {self.root} -0 "$0" {emulated} "$@"\n'
        )
        path.chmod(0o755)

    def _get_wheels(self, site: Path, *words: str | Path) -> None:
        """Unpack wheels for this processor, or for all, by this machine's pip: emulated, it takes minutes."""
        version = self._version.removeprefix("python")
        target = [f"--target={site}", f"--python-version={version}", "--only-binary=:all:"]
        options = ["--quiet", "--disable-pip-version-check", "--no-compile", "-c", ROOT / "constraints.txt"]
        platforms = [
            f"--platform={kind}_{self.machine.name}"
            for kind in ("linux", "manylinux_2_28", "manylinux_2_17", "manylinux2014")
        ]
        run([sys.executable, "-m", "pip", "install", *options, *target, *platforms, *words])

    def _wheel_of_source(self, name: str) -> Path:
        """Get a package's source from PyPI, and build it for this processor."""
        sources = self._folder / "sources"
        shutil.rmtree(sources, ignore_errors=True)
        words = ["download", "--no-deps", "--no-build-isolation", f"--no-binary={name}", "--dest", sources]
        run([sys.executable, "-m", "pip", "--quiet", *words, "-c", ROOT / "constraints.txt", name])
        (archive,) = sources.glob("*.tar.gz")
        run(["tar", "--extract", f"--file={archive}", f"--directory={sources}"])
        return self.build_wheel(archive.with_name(archive.name.removesuffix(".tar.gz")))

    def _pure_wheel(self, name: str) -> Path:
        """Build a wheel without compiled code from a package's source."""
        wheels = self._folder / "wheels" / name
        shutil.rmtree(wheels, ignore_errors=True)
        words = ["wheel", "--no-deps", f"--no-binary={name}", "--wheel-dir", wheels]
        run([sys.executable, "-m", "pip", "--quiet", *words, name], CRC32C_PURE_PYTHON="1")
        (wheel,) = wheels.glob("*-none-any.whl")
        return wheel

    def _toolchain(self) -> Path:
        """Write what CMake reads of the compiler for this processor."""
        path, name = self._folder / "toolchain.cmake", self.machine.name
        lines = [
            "set(CMAKE_SYSTEM_NAME Linux)",
            f"set(CMAKE_SYSTEM_PROCESSOR {name})",
            f"set(CMAKE_C_COMPILER {program(f'{name}-linux-gnu-gcc', f'gcc-{name}-linux-gnu')})",
            f"set(CMAKE_CXX_COMPILER {program(f'{name}-linux-gnu-g++', f'g++-{name}-linux-gnu')})",
        ]
        path.write_text("\n".join([*lines, ""]))
        return path


class Apt:
    """Debian's packages for another processor, by lists and files of their own in a folder."""

    def __init__(self, folder: Path, architecture: str, suite: str) -> None:
        self._folder = folder
        self._archives = folder / "archives"
        for each in (folder / "lists" / "partial", self._archives / "partial", folder / "apt.conf.d"):
            each.mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        if not KEYS.exists():
            sys.exit(f"expected {KEYS}, found none: apt-get install debian-archive-keyring (Debian, Ubuntu)")
        (folder / "sources.list").write_text(f"deb [signed-by={KEYS}] {mirror()} {suite} main\n")
        settings = {
            "APT::Architecture": architecture,
            "APT::Architectures": architecture,
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "root",  # where root calls: another user may not write here
            "Dir::State": folder,
            "Dir::State::status": folder / "status",
            "Dir::Cache": folder,
            "Dir::Etc": folder,
            "Dir::Etc::sourceparts": "/dev/null",
        }
        lines = [f'{name} "{value}";' for name, value in settings.items()]
        (folder / "apt.conf").write_text("\n".join([*lines, ""]))

    def download(self, *packages: str) -> str:
        """Download packages with what they need; returns what failed."""
        for old in self._archives.glob("*.deb"):
            old.unlink()
        for words in (["update"], ["--download-only", "-y", "install", *packages]):
            done = self._get(*words)
            if done.returncode:
                return done.stderr
        return ""

    def unpack(self, folder: Path) -> None:
        """Unpack what was downloaded: first what says where programs and libraries are."""
        archives = sorted(self._archives.glob("*.deb"), key=lambda path: not path.name.startswith("base-files_"))
        for archive in archives:
            run(["dpkg-deb", "--extract", archive, folder])

    def unpack_alone(self, package: str, folder: Path) -> None:
        """Download and unpack a package without what it needs."""
        done = self._get("download", package)
        if done.returncode:
            sys.exit(done.stderr)
        (archive,) = self._folder.glob(f"{package}_*.deb")
        run(["dpkg-deb", "--extract", archive, folder])

    def _get(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program("apt-get", "apt"), "-q", *words],
            env={**os.environ, "APT_CONFIG": str(self._folder / "apt.conf"), "LC_ALL": "C"},
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
        )


def mirror() -> str:
    """Return the address that this machine gets Debian's packages from, or Debian's own."""
    for path in sorted(Path("/etc/apt/sources.list.d").glob("*.sources")):
        for line in path.read_text().splitlines():
            if line.startswith("URIs:") and line.rstrip("/").endswith("/debian"):
                return line.split()[1]
    return "http://deb.debian.org/debian"


def program(name: str, package: str) -> str:
    """Return the path of a program of this machine."""
    path = shutil.which(name)
    if path is None:
        sys.exit(f"expected {name}, found none: apt-get install {package} (Debian, Ubuntu)")
    return path


def _clean_variables() -> dict[str, str]:
    """Return the environment without what is said to this machine's programs alone, and without CI's."""
    known = ("HDF5_PLUGIN", "LD_", "PYTEST_", "PYTHON")
    return {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith(known)}
