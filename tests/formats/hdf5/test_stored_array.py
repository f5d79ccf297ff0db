"""Access to the values of datasets of any layout."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import h5py
import numpy as np
import pytest

from tamis import FileError
from tamis.arrays import ContiguousReader
from tamis.formats.hdf5.compare.elements import changed_fill
from tamis.formats.hdf5.lib.files import descriptor_of
from tamis.formats.hdf5.library_reader import LibraryReader
from tamis.formats.hdf5.stored_array import Hdf5Array


def test_open_values_of_scalar_reads_it(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["v"] = np.float32(2.5)
    with h5py.File(tmp_path / "a.h5") as file, closing(Hdf5Array.of(file["v"]).open_reader()) as values:
        assert isinstance(values, LibraryReader)
        assert (values.shape, values.chunk_shape, values.read(()).shape) == ((), None, ())
        assert values.read(()) == 2.5


def test_open_values_of_virtual_dataset_without_its_file_refused(tmp_path: Path) -> None:
    layout = h5py.VirtualLayout((4,), "f4")
    layout[...] = h5py.VirtualSource("gone.h5", "v", (4,))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_virtual_dataset("v", layout)
    with h5py.File(tmp_path / "a.h5") as file, pytest.raises(FileError, match=r"No such file or directory: gone\.h5"):
        Hdf5Array.of(file["v"]).open_reader()


def test_open_values_of_contiguous_dataset_reads_the_file_that_is_open_not_its_name(tmp_path: Path) -> None:
    for name in ("a.h5", "b.h5"):
        with h5py.File(tmp_path / name, "w") as file:
            file["v"] = np.full((3, 4000), ord(name[0]), "f4")
    with h5py.File(tmp_path / "a.h5") as file:
        (tmp_path / "b.h5").replace(tmp_path / "a.h5")
        with closing(Hdf5Array.of(file["v"]).open_reader()) as values:
            assert isinstance(values, ContiguousReader)
            assert (values.read((slice(0, 3), slice(0, 4000))) == ord("a")).all()
        with pytest.raises(FileError, match="the file is closed: open it again"):
            values.read((slice(0, 3), slice(0, 4000)))


@pytest.mark.parametrize("chunks", [None, (3, 4000)])
def test_open_values_that_the_disk_does_not_give_are_an_error_of_their_file(
    chunks: tuple[int, ...] | None, tmp_path: Path
) -> None:
    """Not one of whatever else was read or written at that moment."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=np.ones((3, 4000), "f4"), chunks=chunks)
    with h5py.File(tmp_path / "a.h5") as file, closing(Hdf5Array.of(file["v"]).open_reader()) as values:
        folder, found = os.open(tmp_path, os.O_RDONLY), descriptor_of(file)
        os.dup2(folder, found.number)  # what gives no bytes
        os.close(folder)
        with pytest.raises(FileError, match=r"a\.h5: /v: .* cannot be read: Is a directory"):
            values.read((slice(0, 3), slice(0, 4000)))


def test_missing_of_dataset_without_numbers_is_nothing(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["v"] = ["a", "b"]
        file["v"].attrs["_FillValue"] = -9
        assert Hdf5Array.of(file["v"]).meaning.missing.values == ()


def test_missing_of_big_endian_dataset_is_native(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        (found,) = Hdf5Array.of(file.create_dataset("v", (4,), ">f4", fillvalue=-9)).meaning.missing.values
        assert (found, found.dtype) == (-9, np.dtype("=f4"))


def test_changed_fill_says_both_values(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", (4,), "f4", fillvalue=-9)
        file.create_dataset("w", (4,), "f4")
        first, second = Hdf5Array(file, "/v"), Hdf5Array(file, "/w")
        assert changed_fill(first, first) == ""
        assert changed_fill(first, second) == "HDF5's fill value -9.0 became 0.0"


def test_arrays_of_the_same_dataset_are_described_once(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", (4, 4), "f4", chunks=(2, 2), compression="gzip")
        dataset = file["v"]
        assert Hdf5Array.of(dataset).facts is Hdf5Array.of(dataset).facts
        assert Hdf5Array.of(file["v"]).facts is not Hdf5Array.of(dataset).facts
    with h5py.File(tmp_path / "a.h5") as file:
        assert Hdf5Array.of(file["v"]).facts is Hdf5Array.of(file["v"]).facts  # by its form, which native code knows


def test_dataset_without_a_name_is_not_taken_for_another(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["None"] = np.zeros(3, "i2")
        array = Hdf5Array.of(file.create_dataset(None, (5,), "f8"))
        assert (array.type.numbers, array.shape) == (np.dtype("f8"), (5,))
