"""What is made durable, with the call for whole file systems and without it."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from tamis.system import durability

_MANY = 100


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """Return a list that gets the inode of what is synced, and whether it is a folder."""
    calls: list[tuple[int, bool]] = []
    sync = os.fsync

    def noted(handle: int) -> None:
        status = os.fstat(handle)
        calls.append((status.st_ino, stat.S_ISDIR(status.st_mode)))
        sync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    return calls


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a folder with many files in two folders."""
    for number in range(_MANY):
        path = tmp_path / "tree" / f"{number % 2}" / f"{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    return tmp_path / "tree"


def inodes_of(tree: Path) -> set[tuple[int, bool]]:
    return {(path.stat().st_ino, path.is_dir()) for path in (tree, *tree.rglob("*"))}


def test_every_file_and_folder_is_synced_without_the_call_for_a_file_system(
    tree: Path, synced: list[tuple[int, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durability, "c_function", lambda name: None)
    assert durability.open_file_system(tree) is None
    durability.sync_tree(tree, None)
    assert set(synced) == inodes_of(tree)


def test_file_system_that_lacks_the_call_gets_every_file_synced(
    tree: Path, synced: list[tuple[int, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durability, "sync_file_system", lambda handle: False)
    durability.sync_tree(tree, 0)
    assert set(synced) == inodes_of(tree)


def test_folder_that_cannot_be_synced_is_no_error_but_a_bad_disk_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = errno.EINVAL

    def fail(handle: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    durability.sync_folder(tmp_path)
    number = errno.EIO
    with pytest.raises(OSError, match="Input/output error"):
        durability.sync_folder(tmp_path)
