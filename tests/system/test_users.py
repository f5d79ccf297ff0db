"""Users, attributes, leases and memory, where the system has them and where it has not."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from second_copy import second_copy

from tamis.system import attributes, memory, users


def test_every_file_is_ones_own_where_there_are_no_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("geteuid", "getegid", "getgroups", "chown"):
        monkeypatch.delattr(os, name)
    windows = second_copy("tamis.system.users")
    assert (windows.user_id(), windows.group_ids()) == (0, (0,))
    assert windows.may_act_for(0)
    windows.give_to(tmp_path, 0, 0)


def test_root_and_the_owner_may_act_for_the_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = []
    for user in (0, 1000, 1001):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        answers.append(users.may_act_for(1000))
    assert answers == [True, True, False]


def test_attributes_are_refused_where_the_system_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "listxattr")
    without = second_copy("tamis.system.attributes")
    for call in (
        lambda: without.attribute_names(tmp_path),
        lambda: without.attribute(tmp_path, "user.a"),
        lambda: without.set_attribute(tmp_path, "user.a", b"1"),
        lambda: without.remove_attribute(tmp_path, "user.a"),
    ):
        with pytest.raises(OSError, match=os.strerror(errno.ENOTSUP)) as caught:
            call()
        assert caught.value.errno == errno.ENOTSUP


def test_attributes_are_set_and_removed_by_path_and_descriptor(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    try:
        attributes.set_attribute(path, "user.a", b"1\0")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    with path.open("rb") as stream:
        assert attributes.attribute(stream.fileno(), "user.a") == b"1\0"
        attributes.remove_attribute(stream.fileno(), "user.a")
    assert "user.a" not in attributes.attribute_names(path)


def test_leases_are_not_there_without_fcntl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    assert not second_copy("tamis.system.leases").can_tell(tmp_path)


def test_resident_memory_grows_by_what_is_written() -> None:
    before = memory.resident_nbytes()
    content = bytearray(os.urandom(1 << 20)) * 64
    assert 60 << 20 < memory.resident_nbytes() - before < 200 << 20
    assert len(content) == 64 << 20


@pytest.mark.parametrize("has_limits", [True, False])
def test_addresses_are_limited_where_they_can_be(has_limits: bool) -> None:
    code = f"import sys; sys.modules.update({{}} if {has_limits} else {{'resource': None}})\n"
    code += "from tamis.system import memory; memory.limit_addresses(4 << 30)\n"
    code += "try:\n    bytearray(6 << 30)\nexcept MemoryError:\n    print('refused')\nelse:\n    print('given')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["refused" if has_limits else "given"]
