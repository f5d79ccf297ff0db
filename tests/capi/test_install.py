"""`tamis config --install`: a folder as H5Z-ZFP installs it, for make, CMake and HDF5_PLUGIN_PATH."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import needs
import numpy as np
import pytest

import tamis

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TAMIS = Path(sys.executable).with_name("tamis")
RECORD = "share/tamis/h5z-zfp.sha256"
LAID_OUT = {
    *(f"include/H5Zzfp{part}.h" for part in ("", "_lib", "_plugin", "_props", "_version")),
    "lib/libh5zzfp.a",
    "lib/shared/libh5zzfp.so",
    "lib/cmake/h5z_zfp/h5z_zfp-config.cmake",
    "lib/cmake/h5z_zfp/h5z_zfp-config-version.cmake",
    "lib/pkgconfig/h5zzfp.pc",
    "plugin/libh5ztamis.so",
    "fortran/H5Zzfp_props_f.F90",
    RECORD,
}
# As programs with H5Z-ZFP have it: no run path, one -l, the compilers themselves.
MAKEFILE = """
modes: {examples}/c/modes.c
\th5cc -I$(H5Z_ZFP_HOME)/include -c $< -o modes.o
\th5cc modes.o -L$(H5Z_ZFP_HOME)/lib -lh5zzfp -lm -o $@
modes_f: {examples}/fortran/modes.f90
\th5fc -I$(H5Z_ZFP_HOME)/include -c $< -o modes_f.o
\th5fc modes_f.o -L$(H5Z_ZFP_HOME)/lib -lh5zzfp -lm -o $@
"""
Run = Callable[..., str]
pytestmark = pytest.mark.peer


def install(folder: Path, *options: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [TAMIS, "config", "--install", folder, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def test_u37_folder_is_laid_out_as_h5z_zfp_does_and_lists_its_files(run: Run, tmp_path: Path) -> None:
    preview = install(tmp_path / "zfp", "--dry-run").stdout
    assert not (tmp_path / "zfp").exists()
    printed = install(tmp_path / "zfp").stdout
    assert files_in(tmp_path / "zfp") == LAID_OUT
    assert {line.strip() for line in printed.splitlines() if line.startswith("  ")} == LAID_OUT
    assert preview.replace("would be written", "written") == printed
    assert f"HDF5_PLUGIN_PATH={tmp_path}/zfp/plugin" in printed
    run("env", "-C", tmp_path / "zfp", "sha256sum", "--check", "--strict", RECORD)


def test_lines_that_install_prints_build_a_program(run: Run, tmp_path: Path) -> None:
    needs.need("cc", "pkg-config", "h5cc")
    (tmp_path / "prog.c").write_text(
        '#include <hdf5.h>\n#include "H5Zzfp.h"\nint main(void) { return H5Z_zfp_initialize() != 1; }\n'
    )
    lines = install(tmp_path / "zfp").stdout.splitlines()
    commands = [line.partition(" ")[2].strip() for line in lines if "prog.c" in line]
    assert len(commands) == 2
    for command in commands:
        run("sh", "-c", f"cd {tmp_path} && {command} -o prog && ./prog && rm prog")


def test_u37_makefile_for_h5z_zfp_builds_c_and_fortran(run: Run, tmp_path: Path) -> None:
    needs.need("make", "h5cc", "h5fc")
    install(tmp_path / "first", "--fc", "h5fc")
    assert files_in(tmp_path / "first") == LAID_OUT | {"include/h5zzfp_props_f.mod"}
    moved = (tmp_path / "first").rename(tmp_path / "moved")
    (tmp_path / "Makefile").write_text(MAKEFILE.format(examples=EXAMPLES))
    run("make", "-C", tmp_path, f"H5Z_ZFP_HOME={moved}", "modes", "modes_f")
    shutil.rmtree(moved)  # the programs hold the library
    for name in ("modes", "modes_f"):
        assert "reversible_generic" in run(tmp_path / name, tmp_path / f"{name}.h5")
        with h5py.File(tmp_path / f"{name}.h5") as file:
            assert file["accuracy_properties"].id.get_create_plist().get_filter(0)[0] == 32013


def test_u37_plugin_of_a_moved_folder_serves_h5repack(run: Run, tmp_path: Path) -> None:
    needs.need("h5repack")
    install(tmp_path / "first")
    moved = (tmp_path / "first").rename(tmp_path / "moved")
    values = np.linspace(0, 9, 4000, dtype="f4").reshape(40, 100)
    with h5py.File(tmp_path / "plain.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(20, 50))
    accuracy = "UD=32013,0,4,3,0,3539053052,1062232653"  # 0.001
    run("h5repack", "-f", accuracy, tmp_path / "plain.h5", tmp_path / "zfp.h5", HDF5_PLUGIN_PATH=str(moved / "plugin"))
    with h5py.File(tmp_path / "zfp.h5") as file:
        assert file["x"].id.get_storage_size() < values.nbytes / 2
        np.testing.assert_allclose(file["x"][()], values, rtol=0, atol=0.001)


@pytest.mark.check
def test_u37_files_of_others_are_not_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "prefix"
    (folder / "include").mkdir(parents=True)
    header = folder / "include" / "H5Zzfp.h"
    header.write_text("of H5Z-ZFP")
    refused = install(folder, code=1)
    assert "has files of other programs where tamis installs its own, include/H5Zzfp.h" in refused.stderr
    assert "--overwrite" in refused.stderr
    assert "include/H5Zzfp.h" in install(folder, "--dry-run", code=1).stderr
    assert files_in(folder) == {"include/H5Zzfp.h"}
    assert header.read_text() == "of H5Z-ZFP"
    install(folder, "--overwrite")
    assert files_in(folder) == LAID_OUT
    assert header.read_text() == (tamis.config().include_path / "H5Zzfp.h").read_text()


def test_u37_installing_again_replaces_only_what_was_installed(tmp_path: Path) -> None:
    needs.need("h5fc")
    folder = tmp_path / "prefix"
    install(folder, "--fc", "h5fc")
    (folder / "lib" / "other.txt").write_text("of the user")
    again = install(folder)  # without the compiler: its module file is one of ours, and is no longer right
    assert "include/h5zzfp_props_f.mod (from an earlier installation)  removed" in again.stdout
    assert files_in(folder) == LAID_OUT | {"lib/other.txt"}
    (folder / "include" / "H5Zzfp.h").write_text("changed")
    assert "its own, include/H5Zzfp.h: choose" in install(folder, code=1).stderr
    assert (folder / "include" / "H5Zzfp.h").read_text() == "changed"
    (folder / RECORD).write_text("of somebody else\n")
    assert "is no record of installed files" in install(folder, code=1).stderr


def test_u37_record_that_names_files_elsewhere_removes_none(tmp_path: Path) -> None:
    folder, outside = tmp_path / "prefix", tmp_path / "outside"
    install(folder)
    outside.write_text("")
    digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # of no bytes
    with (folder / RECORD).open("a") as record:
        record.write(f"{digest}  ../outside\n{digest}  {outside}\n")
    assert "is no record of installed files" in install(folder, code=1).stderr
    install(folder, "--overwrite")
    assert outside.exists()


@pytest.mark.parametrize("name", ["file/prefix", "file"])
def test_u37_folder_that_cannot_be_written_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("a file")
    for options in ((), ("--dry-run",)):
        refused = install(tmp_path / name, *options, code=1)
        assert f"{tmp_path / 'file'} is a file: name a folder to install to" in refused.stderr
    assert files_in(tmp_path) == {"file"}


def test_u37_folder_that_holds_no_folder_where_one_is_needed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "prefix").mkdir()
    (tmp_path / "prefix" / "lib").write_text("a file")
    (tmp_path / "link").symlink_to("nowhere")
    for options in ((), ("--dry-run",), ("--overwrite",)):
        refused = install(tmp_path / "prefix", *options, code=1)
        assert f"prefix: {tmp_path / 'prefix' / 'lib'} is a file: name a folder to install to" in refused.stderr
        refused = install(tmp_path / "link", *options, code=1)
        assert f"link: {tmp_path / 'link'} is a link that leads nowhere: name" in refused.stderr
    assert files_in(tmp_path) == {"prefix/lib", "link"}


def test_u37_folder_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "prefix" / "lib" / "libh5zzfp.a").mkdir(parents=True)
    refused = install(tmp_path / "prefix", "--overwrite", code=1)
    assert "libh5zzfp.a: cannot be written: Is a directory" in refused.stderr
    assert files_in(tmp_path / "prefix") == set()


@pytest.mark.parametrize("is_new", [True, False])
def test_u37_full_disk_leaves_what_was_there(tmp_path: Path, is_new: bool) -> None:
    folder = tmp_path / "prefix"
    if not is_new:
        install(folder)
        for path in folder.rglob("*.h"):
            path.write_text("of others")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    limited = f"ulimit -f 100; exec {TAMIS} config --install {folder} --overwrite"  # libraries are larger
    done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "cannot be written: the file system, or ulimit -f, takes no file of that size" in done.stderr
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert folder.exists() == (not is_new)


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--fc", "no-such-compiler"), "'no-such-compiler': cannot be run to compile the Fortran module"),
        (("--fc", "false"), "'false' cannot compile the Fortran module (exit code 1): give a compiler"),
        (("--fc", "true"), "true wrote no module file h5zzfp_props_f.mod"),
        (("--fc", "'gfortran"), ": not a command: "),
        (("--cflags",), "--install goes only with"),
    ],
)
def test_u37_wrong_options_are_refused_and_nothing_is_written(
    tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    assert message in install(tmp_path / "prefix", *options, code=2).stderr
    assert not (tmp_path / "prefix").exists()


def test_u37_options_of_install_need_it() -> None:
    for options in (("--fc", "h5fc"), ("--overwrite",), ("--dry-run",)):
        done = subprocess.run([TAMIS, "config", *options], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "--fc, --overwrite and --dry-run need --install" in done.stderr
    empty = install(Path("x"), "--install", "", code=2)
    assert "expected the name of a folder to install to, got ''" in empty.stderr
