"""Virtual datasets that show themselves: HDF5 calls itself until it crashes, so tamis refuses to read them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

import tamis
from tamis import FileError

RECORD = np.dtype([("x", "f4"), ("y", "i4")])


def show(file: h5py.File, name: str, inner: str, source: str = ".", dtype: object = "f8") -> None:
    """Create a virtual dataset of four values that shows another one."""
    layout = h5py.VirtualLayout((4,), dtype)
    layout[:] = h5py.VirtualSource(source, inner, (4,))
    file.create_virtual_dataset(name, layout)


def itself(file: h5py.File) -> None:
    show(file, "a", "a")


def each_other(file: h5py.File) -> None:
    show(file, "a", "b")
    show(file, "b", "a")


def by_a_link(file: h5py.File) -> None:
    show(file, "a", "s")
    file["s"] = h5py.SoftLink("/t")
    file["t"] = h5py.SoftLink("a")


def by_a_link_to_its_file(file: h5py.File) -> None:
    show(file, "a", "s")
    file["s"] = h5py.ExternalLink(Path(file.filename).name, "a")


def by_the_name_of_its_file(file: h5py.File) -> None:
    show(file, "a", "a", Path(file.filename).name)


def by_another_file(file: h5py.File) -> None:
    show(file, "a", "g/b", "other.h5")
    with h5py.File(Path(file.filename).with_name("other.h5"), "w") as other:
        show(other, "g/b", "a", Path(file.filename).name)


def of_records(file: h5py.File) -> None:
    show(file, "a", "b", dtype=RECORD)
    show(file, "b", "a", dtype=RECORD)


def of_texts(file: h5py.File) -> None:
    show(file, "a", "a", dtype="S3")


def by_the_number_of_a_block(file: h5py.File) -> None:
    space = h5py.h5s.create_simple((4,), (h5py.h5s.UNLIMITED,))
    space.select_hyperslab((0,), (h5py.h5s.UNLIMITED,), (1,), (1,))
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_virtual(space, b".", b"a%b", h5py.h5s.create_simple((1,)))
    whole = h5py.h5s.create_simple((4,), (h5py.h5s.UNLIMITED,))
    h5py.h5d.create(file.id, b"a0", h5py.h5t.IEEE_F64LE, whole, plist)
    show(file, "a", "a0")


READ = """
import sys, tamis
from tamis.errors import FileError
source, target = sys.argv[1:]
def tries(call):
    try:
        call()
    except FileError as error:
        assert "in a circle: " in str(error), error
        return 1
    return 0
with tamis.open(source) as file:
    refused = sum(tries(lambda: file["a"][key]) for key in (..., 0, [0, 1], slice(0, 4, 2)))
refused += tries(lambda: tamis.repack(source, target + ".zarr", {}, zarr_format=2))
refused += tries(lambda: tamis.repack(source, target, {}, self_contained=True))
tamis.repack(source, target, {})
try:
    tamis.verify(source, target)
except FileError:
    pass
print(refused)
"""


@pytest.mark.matrix
@pytest.mark.parametrize(
    "make",
    [
        itself,
        each_other,
        by_a_link,
        by_a_link_to_its_file,
        by_the_name_of_its_file,
        by_another_file,
        of_records,
        of_texts,
        by_the_number_of_a_block,
    ],
)
def test_values_in_a_circle_are_refused(make: Callable[[h5py.File], None], tmp_path: Path) -> None:
    with h5py.File(tmp_path / "circle.h5", "w") as file:
        make(file)
    words = [sys.executable, "-c", READ, str(tmp_path / "circle.h5"), str(tmp_path / "copy.h5")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stdout.strip()) == (0, "6"), done.stderr


def test_message_has_the_way_of_the_circle(tmp_path: Path) -> None:
    path = tmp_path / "circle.h5"
    with h5py.File(path, "w") as file:
        each_other(file)
    with tamis.open(path) as opened, pytest.raises(FileError, match=r"in a circle: /b shows /a shows /b$"):
        opened["a"][...]


def test_sources_that_two_datasets_share_are_no_circle(tmp_path: Path) -> None:
    path, values = tmp_path / "shared.h5", np.arange(4.0)
    with h5py.File(path, "w") as file:
        file["x"] = values
        show(file, "one", "x")
        show(file, "two", "x")
        layout = h5py.VirtualLayout((2, 4), "f8")
        layout[0], layout[1] = (h5py.VirtualSource(".", name, (4,)) for name in ("one", "two"))
        file.create_virtual_dataset("both", layout)
    with tamis.open(path) as opened:
        assert np.array_equal(opened["both"][...], [values, values])
    tamis.repack(path, tmp_path / "all.h5", {}, self_contained=True)
    with h5py.File(tmp_path / "all.h5") as copied:
        assert np.array_equal(copied["both"][...], [values, values])
