"""What cannot be copied is an error, and a damaged file does not take the process down."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import h5py
import pytest

from tamis.errors import FileError
from tamis.hdf5.tree.copy import copy_tree, create_target

DAMAGED = Path(__file__).with_name("damaged-named-type.h5")  # a file made by h5py with a few bits flipped
REPACK = "import sys, tamis; tamis.repack(sys.argv[1], sys.argv[2], {'*': 'zfp(accuracy=0.2)'})"


def test_copy_tree_damaged_named_type_ends_no_process(tmp_path: Path) -> None:
    command = [sys.executable, "-c", REPACK, DAMAGED, tmp_path / "b.h5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr or "tamis.errors." in done.stderr
    assert [path.name for path in tmp_path.iterdir()] in ([], ["b.h5"])


def copy(source: Path, target: Path) -> None:
    with h5py.File(source) as old, create_target(old, target) as new:
        copy_tree(old, new, {})


def test_copy_tree_refuses_references_in_raw_files(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("r", (2,), h5py.ref_dtype, external=str(tmp_path / "raw"))[0] = file.ref
    with pytest.raises(FileError, match="cannot copy /r: expected references inside the HDF5 file"):
        copy(tmp_path / "a.h5", tmp_path / "b.h5")


def test_copy_tree_refuses_a_reference_to_an_object_without_links(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        # Two groups that hold each other, cut off from the root: they live on.
        file["a/b/a"] = h5py.SoftLink("/")
        del file["a/b/a"]
        file["a/b/a"] = file["a"]
        file.attrs["lost"] = file["a/b"].ref
        del file["a"]
    with pytest.raises(FileError, match=r"cannot copy / \(attribute 'lost'\): expected a reference to an object"):
        copy(tmp_path / "a.h5", tmp_path / "b.h5")
