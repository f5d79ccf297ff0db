"""A folder with H5Z-ZFP's layout and the files of this package, for builds that look for such a folder."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tamis.access import take_access
from tamis.errors import FileError, ParameterError
from tamis.filters import plugin_path
from tamis.safety import disk_text
from tamis.system import shared_library_in, static_library_in, sync_file
from tamis.zfp import config

RECORD = "share/tamis/h5z-zfp.sha256"
"""Digests of the files that were installed, in the form of sha256sum, relative to the folder."""

_MODULE_SOURCE = "H5Zzfp_props_f.F90"
_RECORD_LINE = re.compile(r"(?P<digest>[0-9a-f]{64})  (?P<name>.+)")
_LAST_LINES = 6


@dataclass(frozen=True, slots=True)
class Installation:
    """The result of `install_interface`."""

    prefix: Path
    files: tuple[str, ...]  # Names of the files, relative to the folder
    removed: tuple[str, ...]  # Names of files of an earlier installation that this one does not have
    has_module_file: bool  # Whether the module file of a Fortran compiler is among the files


def install_interface(
    prefix: str | os.PathLike[str],
    *,
    fortran_compiler: Sequence[str] = (),
    overwrite: bool = False,
    preview: bool = False,
) -> Installation:
    """Write a folder with H5Z-ZFP's layout: ``include``, ``lib``, ``plugin``, and packages for CMake and pkg-config.

    All files are copies that find each other by relative paths, so the folder can be moved. After an error, the folder
    is unchanged.
    """
    if not os.fspath(prefix):
        raise ParameterError("expected the name of a folder to install to, got ''")
    folder = Path(os.path.abspath(prefix))
    with tempfile.TemporaryDirectory(prefix="tamis-") as scratch:
        files = _package_files()
        if fortran_compiler:
            files |= _compile_module(fortran_compiler, Path(scratch))
        digests = {name: _digest_of(path) for name, path in sorted(files.items())}
        earlier = _read_record(folder, overwrite=overwrite)
        _check_replaceable(folder, digests, earlier, overwrite=overwrite)
        removed = [name for name in earlier if name not in digests and _digest_of(folder / name) == earlier[name]]
        if not preview:
            record = Path(scratch, "record")
            record.write_text("".join(f"{digest}  {name}\n" for name, digest in digests.items()))
            _write(folder, {**files, RECORD: record}, removed)
    has_module_file = any(name.lower().endswith(".mod") for name in files)
    return Installation(folder, (*digests, RECORD), tuple(removed), has_module_file)


def _package_files() -> dict[str, Path]:
    """Return the files of this package by their names in the folder."""
    root = config().library_path.parent
    static, shared = static_library_in(root / "lib", "libh5zzfp"), shared_library_in(root / "lib", "libh5zzfp")
    if not static.is_file():
        raise FileError(f"{root / 'lib'}: has no library h5zzfp, because this tamis was built without libraries for C")
    return {
        **{f"include/{path.name}": path for path in root.glob("include/H5Zzfp*.h")},
        # Not next to the static library, which `-lh5zzfp` finds in H5Z-ZFP's folder: programs need no run path.
        # On Windows there is none.
        **({f"lib/shared/{shared.name}": shared} if shared is not None else {}),
        f"lib/{static.name}": static,
        **{f"lib/cmake/h5z_zfp/{path.name}": path for path in root.glob("lib/cmake/h5z_zfp/*.cmake")},
        "lib/pkgconfig/h5zzfp.pc": root / "lib/pkgconfig/h5zzfp.pc",
        f"fortran/{_MODULE_SOURCE}": root / "fortran" / _MODULE_SOURCE,
        **{f"plugin/{path.name}": path for path in plugin_path().glob("libh5ztamis.*")},
    }


def _compile_module(compiler: Sequence[str], scratch: Path) -> dict[str, Path]:
    """Compile the Fortran module; return its module file, and the static library with its object file."""
    source = config().fortran_path / _MODULE_SOURCE
    library = static_library_in(config().library_path, "libh5zzfp")
    compiled, archive = scratch / "h5zzfp_props_f.o", scratch / library.name
    _run([*compiler, "-c", "-fPIC", str(source), "-o", str(compiled)], scratch)
    modules = [path for path in scratch.iterdir() if path.suffix.lower() == ".mod"]
    if not modules:
        raise ParameterError(
            f"{compiler[0]} wrote no module file h5zzfp_props_f.mod: give a Fortran compiler, such as h5fc, or none"
        )
    shutil.copyfile(library, archive)
    _run(["ar", "rs", str(archive), str(compiled)], scratch)
    return {f"include/{modules[0].name}": modules[0], f"lib/{archive.name}": archive}


def _run(command: Sequence[str], folder: Path) -> None:
    """Run a program of the build in a folder."""
    try:
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        raise ParameterError(
            f"{command[0]!r}: cannot be run to compile the Fortran module: {disk_text(error)}"
        ) from error
    if done.returncode:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-_LAST_LINES:])
        raise ParameterError(
            f"{command[0]!r} cannot compile the Fortran module (exit code {done.returncode}): give a compiler"
            f" that finds HDF5's module, h5fc or 'gfortran -I FOLDER', or none\n{said}"
        )


def _digest_of(path: Path) -> str | None:
    """Return the SHA-256 of a file; None if there is none."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {disk_text(error)}").at(path=path) from error


def _read_record(folder: Path, *, overwrite: bool) -> dict[str, str]:
    """Return the digests of an earlier installation by name; empty if there is none."""
    path = folder / RECORD
    try:
        lines = path.read_text().splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(f"{path}: cannot be read: {disk_text(error)}").at(path=path) from error
    matches = [_RECORD_LINE.fullmatch(line) for line in lines]
    earlier = {match["name"]: match["digest"] for match in matches if match and _is_inside(match["name"])}
    if len(earlier) < len(lines) and not overwrite:
        raise FileError(f"{path}: is no record of installed files: choose another folder, or --overwrite").at(path=path)
    return earlier


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts


def _check_replaceable(
    folder: Path, digests: Mapping[str, str | None], earlier: Mapping[str, str], *, overwrite: bool
) -> None:
    """Refuse folders that cannot be written, and to replace files that no earlier installation wrote."""
    for target in (folder / name for name in digests):
        parent = next(place for place in target.parents if os.path.lexists(place))
        if not os.path.isdir(parent):
            found = "a link that leads nowhere" if os.path.islink(parent) else "a file"
            raise FileError(f"{folder}: {parent} is {found}: name a folder to install to").at(path=folder)
        with _write_errors(target):
            if target.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if not os.access(parent, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    foreign = [
        name for name, digest in digests.items() if _digest_of(folder / name) not in (None, digest, earlier.get(name))
    ]
    if foreign and not overwrite:
        raise FileError(
            f"{folder}: has files of other programs where tamis installs its own, {', '.join(foreign)}: "
            "choose another folder, or --overwrite to replace them"
        ).at(path=folder)


def _write(folder: Path, files: Mapping[str, Path], removed: Sequence[str]) -> None:
    """Copy files into a folder under their names, and remove others; after an error, nothing has changed."""
    replaced = []
    with ExitStack() as undo:
        copies = {folder / name: _copy_beside(folder / name, source, undo) for name, source in files.items()}
        for target in (*copies, *(folder / name for name in removed)):
            with _write_errors(target):
                if os.path.lexists(target):
                    replaced.append(target.with_name(f".{target.name}.tamis-old"))
                    _rename(target, replaced[-1], undo)
                if target in copies:
                    _rename(copies[target], target, undo)
        undo.pop_all()
    for path in replaced:
        with _write_errors(path):
            path.unlink()


def _copy_beside(target: Path, source: Path, undo: ExitStack) -> Path:
    """Copy a file to a temporary name next to its target, creating folders as needed; return its path."""
    with _write_errors(target):
        for folder in reversed(target.parents):
            if not folder.exists():
                folder.mkdir()
                undo.callback(folder.rmdir)
        copy = target.with_name(f".{target.name}.tamis-new")
        undo.callback(copy.unlink, missing_ok=True)
        shutil.copyfile(source, copy)
        if target.exists():
            take_access(copy, target)
        sync_file(copy)
        return copy


def _rename(path: Path, other: Path, undo: ExitStack) -> None:
    os.rename(path, other)
    undo.callback(os.rename, other, path)


@contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    """Turn errors of the file system into those of tamis."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {disk_text(error)}").at(path=path) from error
