"""h5py makes an array of HDF5's memory from a fill value of varying length, which both then free."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t

from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.stored_array import Hdf5Array

MEMBER = 16
"""Bytes of a length and an address."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    numbers = np.array([1, 2, 3], "i1")
    raw = np.array([3, numbers.ctypes.data], np.uintp).tobytes()
    sequence, pair = h5t.vlen_create(h5t.STD_I8LE), h5t.create(h5t.COMPOUND, MEMBER)
    pair.insert(b"inner", 0, sequence)
    named, name = h5t.create(h5t.COMPOUND, MEMBER), ctypes.create_string_buffer(b"nobody")
    named.insert(b"number", 0, h5t.STD_I64LE)
    named.insert(b"name", 8, h5t.py_create(h5py.string_dtype(), logical=True))
    text = np.array([-1, ctypes.addressof(name)], np.intp).tobytes()
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for path, datatype, fill in ((b"v", sequence, raw), (b"pairs", pair, raw), (b"texts", named, text)):
            plist = h5p.create(h5p.DATASET_CREATE)
            plist.set_chunk((10,))
            calls.set_fill_bytes(plist, datatype, fill)
            h5d.create(file.id, path, datatype, h5s.create_simple((4,), (h5s.UNLIMITED,)), plist)
    return tmp_path / "a.h5"


def test_fill_value_is_a_copy(path: Path) -> None:
    with h5py.File(path) as file:
        assert Hdf5Array(file, "/v").fill.value[()].tolist() == [1, 2, 3]


@pytest.mark.matrix
@pytest.mark.parametrize("command", [("inspect", "--cdl"), ("inspect", "--json"), ("repack",), ("verify",)])
def test_no_command_frees_it_twice(path: Path, command: tuple[str, ...], tmp_path: Path) -> None:
    others = {"repack": [str(tmp_path / "b.h5")], "verify": [str(path)]}.get(command[0], [])
    done = subprocess.run(
        [sys.executable, "-m", "tamis", *command, str(path), *others], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
