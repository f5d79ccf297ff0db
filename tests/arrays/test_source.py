"""Sources of bytes."""

from __future__ import annotations

import os
from pathlib import Path
from weakref import ref

import pytest

from tamis.arrays import source
from tamis.arrays.source import Descriptor


def test_descriptor_dropped_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    descriptor = Descriptor(os.open(path, os.O_RDONLY))
    number = descriptor.number
    assert os.pread(number, 3, 0) == b"abc"
    del descriptor
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.pread(number, 3, 0)


def test_descriptor_being_closed_not_found_by_weak_references(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another thread would read by a number that is closed, or that another file gets."""
    found: list[object] = []

    def close(number: int) -> None:
        found.append(reference())
        os.close(number)

    monkeypatch.setattr(source, "close_handle", close)
    descriptor = Descriptor(os.open(tmp_path, os.O_RDONLY))
    reference = ref(descriptor)
    del descriptor
    assert found == [None]
