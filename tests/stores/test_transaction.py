"""A new file gets its name when it is complete, or never."""

from __future__ import annotations

import errno
import itertools
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tamis import FileError
from tamis.safety import Transaction, remove, transaction
from tamis.safety.transaction import segments_of


def test_transaction_committed_gives_the_name_and_leaves_nothing(tmp_path: Path) -> None:
    target = tmp_path / "a.h5"
    with Transaction(target) as transaction:
        transaction.path.write_bytes(b"new")
        assert not target.exists()
        transaction.commit()
        assert target.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.h5"]


@pytest.mark.check
def test_segments_are_removed_while_a_worker_still_writes(tmp_path: Path) -> None:
    for _ in range(20):
        with Transaction(tmp_path / "a.zarr") as transaction:
            segment = segments_of(transaction.path) / "segment"
            segment.mkdir(parents=True)
            create = f"os.close(os.open(f'{segment}/{{at}}', os.O_CREAT | os.O_WRONLY))"
            code = f"import itertools, os\nfor at in itertools.count(): {create}"
            worker = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)
            while len(os.listdir(segment)) < 100:
                pass
        try:
            assert b"FileNotFoundError" in worker.communicate(timeout=60)[1]
        finally:
            worker.kill()
        assert not transaction.notes
        assert not os.listdir(tmp_path)


def test_interrupt_before_the_thread_of_the_sync_runs_is_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(thread: threading.Thread) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt), Transaction(tmp_path / "a.h5") as transaction:
        transaction.begin_sync()
    assert not os.listdir(tmp_path)


def test_transaction_committed_replaces_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "a.h5"
    target.write_bytes(b"old")
    with Transaction(target) as transaction:
        transaction.path.write_bytes(b"new")
        assert target.read_bytes() == b"old"
        transaction.commit()
    assert target.read_bytes() == b"new"


def test_transaction_whose_folder_cannot_be_synced_says_that_the_target_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def files_only(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(handle)

    monkeypatch.setattr(os, "fsync", files_only)
    with Transaction(tmp_path / "a.h5") as transaction:
        transaction.path.write_bytes(b"new")
        with pytest.raises(FileError, match=r"a\.h5: complete and verified, .*: Input/output error"):
            transaction.commit()
    assert (tmp_path / "a.h5").read_bytes() == b"new"


def test_transaction_whose_file_the_disk_did_not_take_early_keeps_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a.h5"
    target.write_bytes(b"old")
    sync, calls = os.fsync, []

    def first_fails(handle: int) -> None:  # as Linux does, which says once that bytes were lost
        calls.append(handle)
        if len(calls) == 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(handle)

    monkeypatch.setattr(os, "fsync", first_fails)
    with Transaction(target) as transaction:
        transaction.path.write_bytes(b"new")
        transaction.begin_sync()
        with pytest.raises(FileError, match=r"a\.h5: cannot be written: Input/output error"):
            transaction.commit()
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.h5"]


@pytest.mark.parametrize("error", [None, ValueError("x"), KeyboardInterrupt(), SystemExit(1)], ids=repr)
def test_transaction_without_commit_leaves_the_old(error: BaseException | None, tmp_path: Path) -> None:
    target = tmp_path / "a.h5"
    target.write_bytes(b"old")

    def work() -> None:
        with Transaction(target) as transaction:
            transaction.path.write_bytes(b"half")
            if error:
                raise error

    if error:
        with pytest.raises(type(error)):
            work()
    else:
        work()
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.h5"]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_interrupt_while_a_transaction_clears_up_leaves_nothing(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = itertools.count(1)

    def interrupted(path: Path) -> None:
        if next(calls) == number:
            raise KeyboardInterrupt
        remove(path)

    monkeypatch.setattr(transaction, "remove", interrupted)
    unfinished = Transaction(tmp_path / "a.nc")
    unfinished.path.write_text("new")
    unfinished.journal.write_text("journal")
    segments_of(unfinished.path).mkdir()
    with pytest.raises(KeyboardInterrupt):
        unfinished.__exit__(None, None, None)
    assert os.listdir(tmp_path) == []


def test_transaction_that_wrote_nothing_ends_quietly(tmp_path: Path) -> None:
    with Transaction(tmp_path / "a.h5"):
        pass
    assert os.listdir(tmp_path) == []


def test_transaction_path_is_in_the_folder_of_the_target_and_hidden(tmp_path: Path) -> None:
    """Only within one file system can a file take its name at one stroke."""
    path = Transaction(tmp_path / "a.h5").path
    assert path.parent == tmp_path
    assert path.name.startswith(".a.h5.")


def test_transaction_in_missing_folder_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"b\.h5: there is no folder .*/none$"):
        Transaction(tmp_path / "none" / "b.h5")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileError, match=r"there is no folder .*/file$"):
        Transaction(tmp_path / "file" / "b.h5")


@pytest.mark.parametrize("target", ["", "..", "/"])
def test_transaction_without_a_file_name_refused(target: str) -> None:
    with pytest.raises(FileError, match="expected "):
        Transaction(Path(target))


@pytest.mark.parametrize("leads", ["a.h5", "none/b.h5"])
def test_transaction_onto_a_link_that_leads_nowhere_refused_before_any_work(leads: str, tmp_path: Path) -> None:
    (tmp_path / "a.h5").symlink_to(leads)
    with pytest.raises(FileError, match=r"a\.h5: expected the name of a file to write, got a dangling link"):
        Transaction(tmp_path / "a.h5")


def test_transaction_onto_a_folder_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    with pytest.raises(FileError, match=r"sub: expected .*folder"):
        Transaction(tmp_path / "sub")


@pytest.mark.parametrize("linked", [False, True])
def test_transaction_onto_a_pipe_refused_which_stays(linked: bool, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    target = tmp_path / "link" if linked else pipe
    if linked:
        target.symlink_to(pipe)
    with pytest.raises(FileError, match=rf"{target.name}: expected the name of a file to write, got a pipe"):
        Transaction(target)
    assert pipe.is_fifo()


def test_transaction_onto_a_device_refused_before_any_work() -> None:
    # Made only: to enter it, or to commit, would risk the device where this is broken.
    with pytest.raises(FileError, match=r"/dev/null: expected the name of a file to write, got a device"):
        Transaction(Path("/dev/null"))


def test_transaction_error_inside_is_not_hidden_by_clearing_up(tmp_path: Path) -> None:
    """Nothing can be removed there: the name is too long for this file system."""

    def work() -> None:
        with Transaction(tmp_path / ("n" * 250)):
            raise FileError("what went wrong")

    with pytest.raises(FileError, match="what went wrong"):
        work()


def test_transactions_on_one_target_at_once_do_not_share_a_file(tmp_path: Path) -> None:
    with Transaction(tmp_path / "a.h5") as first, Transaction(tmp_path / "a.h5") as second:
        assert first.path != second.path
