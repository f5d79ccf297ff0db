"""Descriptors on systems with and without reads and writes at offsets, checks for links and files in memory."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from second_copy import second_copy

_AT_OFFSETS = ("pread", "preadv", "pwrite", "pwritev")
_SEED = 20260


@pytest.fixture(params=["here", "without offsets"])
def files(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    if request.param == "without offsets":
        for name in _AT_OFFSETS:
            monkeypatch.delattr(os, name)
    return second_copy("tamis.system.files")


@pytest.fixture
def content() -> bytes:
    return random.Random(_SEED).randbytes(1 << 20)


@pytest.fixture
def path(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "content"
    path.write_bytes(content)
    return path


def in_threads(work: Callable[[random.Random], None]) -> None:
    """Do work in eight threads at once, each with numbers of its own."""
    errors: list[BaseException] = []

    def run(seed: int) -> None:
        try:
            work(random.Random(seed))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_threads_that_share_a_descriptor_read_what_is_at_their_offsets(
    files: ModuleType, path: Path, content: bytes
) -> None:
    with files.opened(path) as handle:

        def read(numbers: random.Random) -> None:
            for _ in range(500):
                offset, nbytes = numbers.randrange(len(content)), numbers.randrange(1, 5000)
                assert files.read_at(handle, nbytes, offset) == content[offset : offset + nbytes]
                room = bytearray(nbytes)
                count = files.read_into(handle, memoryview(room), offset)
                assert room[:count] == content[offset : offset + nbytes]

        in_threads(read)


def test_threads_that_share_a_descriptor_write_to_their_offsets(files: ModuleType, tmp_path: Path) -> None:
    path, nbytes = tmp_path / "new", 1000
    handle = files.open_file(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    numbers = iter(range(2000))

    def write(_: random.Random) -> None:
        while (number := next(numbers, None)) is not None:
            files.write_at(handle, number.to_bytes(2, "little") * (nbytes // 2), number * nbytes)

    in_threads(write)
    os.close(handle)
    assert path.read_bytes() == b"".join(number.to_bytes(2, "little") * (nbytes // 2) for number in range(2000))


def test_reads_and_writes_at_offsets_leave_the_position(files: ModuleType, path: Path, content: bytes) -> None:
    with files.opened(path, os.O_RDWR) as handle:
        os.lseek(handle, 7, os.SEEK_SET)
        files.read_at(handle, 10, 100)
        files.write_at(handle, b"xy", 1000)
        assert os.read(handle, 5) == content[7:12]


def test_read_at_the_end_returns_what_is_left(files: ModuleType, path: Path, content: bytes) -> None:
    with files.opened(path) as handle:
        assert files.read_at(handle, 100, len(content) - 3) == content[-3:]
        assert files.read_at(handle, 100, len(content) + 3) == b""
        assert files.read_into(handle, memoryview(bytearray(100)), len(content) - 3) == 3


def test_separate_descriptor_reads_without_the_position_of_the_first(
    files: ModuleType, path: Path, content: bytes
) -> None:
    """HDF5 remembers the position of its own descriptor, and is not asked when somebody moves it."""
    with files.opened(path) as first:
        other = files.separate(first, str(path))
        os.lseek(first, 5, os.SEEK_SET)
        in_threads(lambda numbers: [files.read_at(other, 64, numbers.randrange(1 << 19)) for _ in range(200)])
        assert os.lseek(first, 0, os.SEEK_CUR) == 5
        os.close(other)


def test_separate_descriptor_of_a_file_that_lost_its_name_is_never_one_of_another_file(
    files: ModuleType, path: Path, content: bytes
) -> None:
    with files.opened(path) as first:
        os.rename(path, path.with_name("moved"))
        path.write_bytes(b"another one")
        try:
            other = files.separate(first, str(path))
        except FileNotFoundError:
            return
        assert files.read_at(other, 10, 0) == content[:10]
        os.close(other)


@pytest.mark.parametrize("is_told", [True, False], ids=["the system refuses links", "open follows links"])
def test_link_is_not_opened(is_told: bool, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_told:
        monkeypatch.delattr(os, "O_NOFOLLOW")
    files = second_copy("tamis.system.files")
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(OSError, match="symbolic links"):
        files.open_unless_link(link)
    os.close(files.open_unless_link(path))


def test_file_of_a_folder_is_opened_by_its_path_where_folders_open_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "supports_dir_fd", set())
    files = second_copy("tamis.system.files")
    monkeypatch.setattr(files, "_path_of", lambda handle: os.readlink(f"/proc/self/fd/{handle}"))
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_bytes(b"inside")
    (folder / "link").symlink_to("file")
    with files.opened(folder) as handle:
        os.rename(folder, tmp_path / "renamed")
        with files.opened_below(handle, "file") as inside:
            assert os.read(inside, 10) == b"inside"
        with pytest.raises(OSError, match="symbolic links"), files.opened_below(handle, "link"):
            pass


@pytest.mark.parametrize("has_call", [True, False], ids=["memfd", "temporary file"])
def test_memory_file_has_what_is_written_and_no_name(
    has_call: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_call:
        monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    files = second_copy("tamis.system.files")
    handle = files.memory_file()
    os.ftruncate(handle, 1 << 30)
    files.write_at(handle, b"far", 1 << 29)
    assert files.read_at(handle, 3, 1 << 29) == b"far"
    assert os.fstat(handle).st_blocks * 512 < 1 << 20
    assert os.listdir(tmp_path) == []
    os.close(handle)
