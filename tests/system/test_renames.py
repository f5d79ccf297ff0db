"""Names that change in one step, with the calls of this system and without them."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from tamis.system import renames


@pytest.fixture(params=["here", "no call", "refused by the file system"])
def one_step(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the system renames: by its own call, or as if it had none, or none that this file system knows."""
    if request.param == "no call":
        monkeypatch.setattr(renames, "c_function", lambda name: None)
    elif request.param == "refused by the file system":
        monkeypatch.setattr(renames, "_rename", lambda path, other, flag: errno.EINVAL)
    return str(request.param)


@pytest.fixture(params=["links", "no links, but a call"])
def free_name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How a file gets a name that must be free, in one step."""

    def refuse(path: Path, name: Path) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    if request.param == "links":
        monkeypatch.setattr(renames, "c_function", lambda name: None)
    else:
        monkeypatch.setattr(os, "link", refuse)
    return str(request.param)


def test_free_name_is_taken(free_name: str, tmp_path: Path) -> None:
    (tmp_path / "new").write_bytes(b"new")
    renames.take_free_name(tmp_path / "new", tmp_path / "name")
    assert (tmp_path / "name").read_bytes() == b"new"


def test_name_of_another_file_is_not_taken(free_name: str, tmp_path: Path) -> None:
    (tmp_path / "new").write_bytes(b"new")
    (tmp_path / "name").write_bytes(b"other")
    with pytest.raises(OSError, match=r"File exists|not permitted"):
        renames.take_free_name(tmp_path / "new", tmp_path / "name")
    assert (tmp_path / "name").read_bytes() == b"other"
    assert (tmp_path / "new").read_bytes() == b"new"


def test_of_many_that_want_a_free_name_one_gets_it(free_name: str, tmp_path: Path) -> None:
    start, taken = threading.Barrier(8), []

    def take(number: int) -> None:
        (tmp_path / f"{number}").write_bytes(bytes([number]))
        start.wait()
        try:
            renames.take_free_name(tmp_path / f"{number}", tmp_path / "name")
        except OSError:
            return
        taken.append(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "name").read_bytes() == bytes(taken)


def test_free_name_is_taken_where_files_have_one_name_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, name: Path) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(renames, "c_function", lambda name: None)
    monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "new").write_bytes(b"new")
    renames.take_free_name(tmp_path / "new", tmp_path / "name")
    assert (tmp_path / "name").read_bytes() == b"new"
    (tmp_path / "newer").write_bytes(b"newer")
    with pytest.raises(OSError, match=os.strerror(errno.EPERM)):
        renames.take_free_name(tmp_path / "newer", tmp_path / "name")
    assert (tmp_path / "name").read_bytes() == b"new"


def test_folders_exchange_names(one_step: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    renames.exchange(tmp_path / "a", tmp_path / "b")
    assert {name: os.listdir(tmp_path / name) for name in os.listdir(tmp_path)} == {"a": ["b"], "b": ["a"]}


def test_folders_that_cannot_be_exchanged_keep_their_names(one_step: str, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "content").touch()
    with pytest.raises(FileNotFoundError):
        renames.exchange(tmp_path / "absent", tmp_path / "old")
    assert os.listdir(tmp_path) == ["old"]
    assert os.listdir(tmp_path / "old") == ["content"]


def test_link_leads_to_a_file_for_users_who_may_make_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: str, link: str) -> None:
        raise OSError(errno.EPERM, "A required privilege is not held by the client")

    monkeypatch.setattr(os, "symlink", refuse)
    (tmp_path / "file").write_bytes(b"content")
    renames.lead_to(str(tmp_path / "file"), str(tmp_path / "link"))
    assert (tmp_path / "link").read_bytes() == b"content"
    with pytest.raises(FileExistsError):
        renames.lead_to(str(tmp_path / "file"), str(tmp_path / "link"))


@pytest.mark.parametrize(
    ("name", "nbytes", "beginning"),
    [
        ("short.nc", 200, "short.nc"),
        ("température.nc", 5, "temp"),  # é has two bytes, of which the second does not fit
        ("température.nc", 6, "tempé"),
        ("日本.nc", 4, "日"),
        ("\udcbf" * 9, 4, "\udcbf" * 4),  # Latin-1, on Linux
    ],
)
def test_beginning_of_a_name_ends_with_a_whole_letter(name: str, nbytes: int, beginning: str) -> None:
    assert renames.beginning_of_name(name, nbytes) == beginning
