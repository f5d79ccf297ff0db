"""Whatever goes wrong on the way: the target keeps its old bytes, nothing is left over, the source is as it was."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import h5py
import numpy as np
import pytest

import tamis
from tamis import BoundError, FileError, TamisError

OLD = b"what was there before"
RECIPE = {"TS": "zfp(accuracy=0.1)"}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "target.nc"
    path.write_bytes(OLD)
    return path


@pytest.fixture
def source(sample: Path, tmp_path: Path, sha256: Callable[[Path], str]) -> Iterator[Path]:
    """A copy of the sample beside the target, that has to be unchanged in the end."""
    path = tmp_path / "source.nc"
    shutil.copy(sample, path)
    yield path
    assert sha256(path) == sha256(sample)


def temporary(folder: Path) -> Path:
    (found,) = (folder / name for name in os.listdir(folder) if name.endswith(".tamis"))
    return found


def assert_untouched(target: Path) -> None:
    assert target.read_bytes() == OLD
    assert sorted(os.listdir(target.parent)) == ["source.nc", "target.nc"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("mine"), OSError("mine"), BoundError("mine")])
@pytest.mark.parametrize("when", [("writing /TS", 0), ("writing /TS", 7), ("verifying /TS", 0), ("verifying /TS", 30)])
def test_repack_interrupted_by_progress_keeps_old_target(
    when: tuple[str, int], error: BaseException, source: Path, old: Path
) -> None:
    def progress(what: str, done: int, total: int) -> None:
        assert old.read_bytes() == OLD
        if (what, done) == when:
            raise error

    with pytest.raises(type(error)):
        tamis.repack(source, old, RECIPE, overwrite=True, progress=progress)
    assert_untouched(old)


def test_repack_result_replaces_old_target_only_at_the_end(source: Path, old: Path) -> None:
    def progress(what: str, done: int, total: int) -> None:
        assert old.read_bytes() == OLD

    tamis.repack(source, old, RECIPE, overwrite=True, progress=progress)
    with h5py.File(old) as file:
        assert file["TS"].id.get_create_plist().get_filter(0)[0] == tamis.Zfp.id
    assert sorted(os.listdir(old.parent)) == ["source.nc", "target.nc"]


def damage(folder: Path, *, flip: bool) -> None:
    """Change the temporary file between writing and verifying, as a bad disk would."""
    path = temporary(folder)
    with h5py.File(path) as file:
        chunk = file["TS"].id.get_chunk_info(7)
    with path.open("r+b") as stream:
        stream.seek(chunk.byte_offset)
        data = stream.read(chunk.size)
        stream.seek(chunk.byte_offset)
        stream.write(bytes(255 - byte for byte in data) if flip else data[::-1])


def test_repack_target_damaged_before_verification_is_a_violated_bound(source: Path, old: Path) -> None:
    def progress(what: str, done: int, total: int) -> None:
        if (what, done) == ("verifying /TS", 0):
            damage(old.parent, flip=True)

    with pytest.raises(
        BoundError,
        match=r"^/TS: bytes or filter mask differ from what was written in the chunk at \(7, "
        r"0, 0\)",
    ):
        tamis.repack(source, old, RECIPE, overwrite=True, checksum=False, progress=progress)
    assert_untouched(old)


def test_repack_target_unreadable_in_verification_says_where(source: Path, old: Path) -> None:
    """It was written, and it is the reading that failed: the checksum noticed."""

    def progress(what: str, done: int, total: int) -> None:
        if (what, done) == ("verifying /TS", 0):
            damage(old.parent, flip=True)

    with pytest.raises(TamisError) as failed:
        tamis.repack(source, old, RECIPE, overwrite=True, progress=progress)
    assert_untouched(old)
    assert "/TS" in str(failed.value)
    assert "(7, 0, 0)" in str(failed.value)
    assert "cannot be written" not in str(failed.value)


def test_repack_source_chunk_that_cannot_be_read_says_which_file_dataset_and_chunk(
    sample: Path, tmp_path: Path
) -> None:
    source, target = tmp_path / "source.nc", tmp_path / "target.nc"
    shutil.copy(sample, source)
    target.write_bytes(OLD)
    with h5py.File(source) as file:
        chunk = file["TS"].id.get_chunk_info(7)
    with source.open("r+b") as stream:
        stream.seek(chunk.byte_offset)
        stream.write(bytes(chunk.size))
    with pytest.raises(FileError) as failed:
        tamis.repack(source, target, RECIPE, overwrite=True)
    assert_untouched(target)
    said = str(failed.value)
    assert "source.nc" in said
    assert "/TS" in said
    assert "(7, 0, 0)" in said
    assert "target.nc" not in said
    # What is not touched by a filter need not be read.
    (found,) = tamis.repack(source, target, {"lat": "deflate(9)"}, overwrite=True).datasets
    assert found.path == "/lat"


def test_repack_source_filter_that_is_not_there_says_so(tmp_path: Path) -> None:
    from h5py import h5d, h5p, h5s, h5t, h5z

    with h5py.File(tmp_path / "a.h5", "w") as file:
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_chunk((10,))
        plist.set_filter(400, h5z.FLAG_OPTIONAL, (1, 2))
        made = h5d.create(file.id, b"u", h5t.NATIVE_FLOAT, h5s.create_simple((20,)), plist)
        made.write_direct_chunk((0,), bytes(40), 0)
        file["v"] = np.arange(100.0)
    with pytest.raises(FileError) as failed:
        tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"u": "deflate"})
    assert os.listdir(tmp_path) == ["a.h5"]
    said = str(failed.value)
    assert "a.h5" in said
    assert "/u" in said
    assert "b.h5" not in said
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"v": "deflate"})
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["u"].id.get_chunk_info(0).filter_mask == 0
        assert file["u"].id.read_direct_chunk((0,)) == (0, bytes(40))


# Python 3.13.0 keeps compiled modules that the limit cut off.
FULL = """
import resource, sys, tamis
sys.dont_write_bytecode = True
limit = int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    tamis.repack(sys.argv[1], sys.argv[2], {"TS": "zfp(accuracy=0.1)"}, overwrite=True)
except tamis.FileError as error:
    print(error)
"""


@pytest.mark.matrix
@pytest.mark.parametrize("limit", [100, 100_000, 1_500_000, 1_790_000])
def test_repack_disk_full_is_a_file_error_that_names_the_target(limit: int, source: Path, old: Path) -> None:
    """A limit of the file's size stands for a full disk; the file takes 1,796,898 bytes."""
    done = subprocess.run(
        [sys.executable, "-c", FULL, source, old, str(limit)], capture_output=True, text=True, check=False
    )
    assert_untouched(old)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{old}: cannot be written: ")
    assert "File too large" in done.stdout


def test_repack_with_enough_room_for_the_file_succeeds(source: Path, old: Path) -> None:
    """Otherwise the limits of the test above would show nothing."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    assert limit[0] == resource.RLIM_INFINITY or limit[0] > 2_000_000
    done = subprocess.run(
        [sys.executable, "-c", FULL, source, old, "2000000"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert 1_000_000 < old.stat().st_size < 2_000_000


KILLED = """
import os, signal, sys, tamis
def progress(what, done, total):
    if done == 5:
        os.kill(os.getpid(), getattr(signal, sys.argv[3]))
tamis.repack(sys.argv[1], sys.argv[2], {"TS": "zfp(accuracy=0.1)"}, overwrite=True, progress=progress)
"""


def test_repack_interrupted_by_control_c_leaves_nothing(source: Path, old: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, source, old, "SIGINT"], capture_output=True, check=False)
    assert done.returncode == -signal.SIGINT
    assert_untouched(old)


def test_repack_killed_keeps_old_target_and_works_again(source: Path, old: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, source, old, "SIGKILL"], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    assert old.read_bytes() == OLD
    tamis.repack(source, old, RECIPE, overwrite=True)
    with h5py.File(old) as file:
        assert file["TS"].shape == (30, 192, 288)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not write there")
def test_repack_folder_without_write_permission_is_a_file_error(sample: Path, tmp_path: Path) -> None:
    code = """
import os, sys, tamis
os.fchdir(os.open(sys.argv[2], os.O_RDONLY))
tamis.repack(sys.argv[1], sys.argv[3], {"TS": "zfp(rate=8)"})  # imports what is imported late: nobody may read it all
os.setgid(65534), os.setuid(65534)
try:
    tamis.repack(sys.argv[1], "x.nc", {"TS": "zfp(rate=8)"})
except tamis.FileError as error:
    print(error)
"""
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o555)
    with TemporaryDirectory() as readable:  # the folders around the sample may be for this user alone
        Path(readable).chmod(0o755)
        source = shutil.copy(sample, readable)
        command = [sys.executable, "-c", code, source, folder, tmp_path / "y.nc"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("x.nc: cannot be written: "), done.stdout + done.stderr
    assert "Permission denied" in done.stdout
    assert os.listdir(folder) == []


def test_repack_damaged_source_is_a_file_error(source: Path, old: Path) -> None:
    """Its superblock is right, and what follows is not."""
    bad = old.parent / "bad.nc"
    data = bytearray(source.read_bytes())
    with h5py.File(source) as file:
        address = h5py.h5o.get_info(file["lat"].id).addr
    data[address : address + 64] = b"\xff" * 64
    bad.write_bytes(data)
    with pytest.raises(FileError, match=r"bad\.nc"):
        tamis.repack(bad, old, RECIPE, overwrite=True)
    bad.unlink()
    assert_untouched(old)
