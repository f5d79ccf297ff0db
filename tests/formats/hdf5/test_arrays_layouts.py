"""Arrays of other layouts and types than chunks of numbers, which h5py reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis
from tamis import FileError
from tamis.formats.hdf5.stored_array import Hdf5Array


def outcome(array: Any, key: Any) -> Any:
    """What a selection gives: values, or the kind of error."""
    try:
        return array[key]
    except (IndexError, ValueError, TypeError) as error:
        return next(kind for kind in (IndexError, ValueError, TypeError) if isinstance(error, kind))


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, type):
        return ours is theirs
    return type(ours) is type(theirs) and ours.dtype == theirs.dtype and np.array_equal(ours, theirs)


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with what only h5py reads."""
    made = tmp_path_factory.mktemp("others") / "o.h5"
    with h5py.File(made, "w") as file:
        file["contiguous"] = np.arange(60.0).reshape(12, 5)
        file["scalar"], file["string"], file["strings"] = 3.5, "grün", ["a", "bc"]
        file["null"] = h5py.Empty("f4")
        file["flags"] = np.array([True, False])
        file.create_dataset("fixed", data=np.array([b"ab", b"c"]), chunks=(1,), compression="gzip")
        file.create_dataset("enum", data=np.arange(9) % 2, dtype=h5py.enum_dtype({"A": 0, "B": 1}), chunks=(4,))
        file.create_dataset("rows", data=np.ones(7, [("a", "i4"), ("b", ">f8")]), chunks=(3,), compression="gzip")
        file.create_dataset("complex", data=np.arange(7) * 1j, chunks=(3,))
        file.create_dataset("arrays", data=np.ones(4, [("m", "f4", (2, 3))]), chunks=(3,))
        file.create_dataset("vlen", (3,), h5py.vlen_dtype("i4"), chunks=(2,))[0] = [1, 2, 3]
        file.create_dataset("references", data=[file["scalar"].ref], dtype=h5py.ref_dtype, chunks=(1,))
        file.create_dataset("half", data=np.arange(9, dtype="f2"), chunks=(4,), compression="gzip")
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((4,))
        h5py.h5d.create(file.id, b"compact", h5py.h5t.NATIVE_INT32, space, compact).write(
            h5py.h5s.ALL, h5py.h5s.ALL, np.arange(4, dtype="i4")
        )
        layout = h5py.VirtualLayout((5,), "f8")
        layout[:] = h5py.VirtualSource(".", "contiguous", (12, 5))[2]
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("external", data=np.arange(4.0), external=[(str(made.with_suffix(".bin")), 0, 32)])
    return made


def test_other_layouts_and_types_as_h5py(others: Path) -> None:
    with h5py.File(others) as theirs, tamis.open(others) as ours:
        assert list(ours) == sorted(theirs)
        for name in theirs:
            if name == "null":
                continue
            found, expected = ours[name][()], theirs[name][()]
            assert type(found) is type(expected)
            if name == "references":
                assert theirs[found[0]].name == "/scalar"
                continue
            if name == "vlen":
                assert [list(each) for each in found] == [[1, 2, 3], [], []]
                continue
            assert np.array_equal(found, expected), name
            whole = ours[name].read()
            assert isinstance(whole, np.ndarray)
            assert np.array_equal(whole, expected), name
            assert whole.dtype == theirs[name].dtype, name
            if theirs[name].dtype.kind != "O":
                out = np.zeros(theirs[name].shape, theirs[name].dtype)
                assert np.array_equal(ours[name].read(out), expected), name


def test_other_layouts_selections_as_h5py(others: Path) -> None:
    with h5py.File(others) as theirs, tamis.open(others) as ours:
        for key in (2, (slice(1, 9, 3), 4), (0, 0), [1, 3], -13, (0, 0, 0), [3, 1], slice(None, None, -1)):
            assert same(outcome(ours["contiguous"], key), outcome(theirs["contiguous"], key)), key
        assert ours["rows"]["b"].tolist() == [1.0] * 7
        assert ours["half"][-1] == 8


def test_scalar_and_null_as_arrays(others: Path) -> None:
    with tamis.open(others) as file:
        assert file["scalar"].shape == ()
        assert file["scalar"].size == 1
        assert float(file["scalar"][()]) == 3.5
        with pytest.raises(TypeError, match="expected an array with axes, got a scalar"):
            len(file["scalar"])
        with pytest.raises(TypeError, match="expected an array with axes, got a scalar"):
            list(file["scalar"])
        null = file["null"]
        assert (null.shape, null.size, null.nbytes) == ((), 0, 0)
        assert isinstance(null[()], h5py.Empty)
        with pytest.raises(FileError, match="null: has no values, only a null dataspace"):
            null.read()


def test_half_floats_are_decoded_by_tamis(others: Path) -> None:
    with h5py.File(others) as file:
        assert Hdf5Array.of(file["half"]).can_read_chunks
        assert (
            Hdf5Array.of(file["rows"]).open_chunks().chunk.dtype == "V12"
        )  # bytes, which no array of numbers is made of


def test_filter_that_neither_has_file_error_names_it(tmp_path: Path) -> None:
    source = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    source.set_chunk((4,))
    source.set_filter(40_000, h5py.h5z.FLAG_OPTIONAL, (1, 2))
    with h5py.File(tmp_path / "u.h5", "w") as file:
        created = h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple((8,)), source)
        created.write_direct_chunk((0,), np.arange(4, dtype="i4").tobytes(), 1)
        created.write_direct_chunk((4,), b"?" * 16, 0)
    with tamis.open(tmp_path / "u.h5") as file:
        assert file["x"][:4].tolist() == [0, 1, 2, 3]  # by h5py: the filter was left out
        with pytest.raises(
            FileError, match=r"u\.h5: /x: cannot be read: HDF5 lacks filter \[40000\] 1,2, and so does tamis"
        ):
            file["x"][4:]


def test_file_open_for_writing_in_this_process_values_of_hdf5(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "w.h5", "w") as writer:
        data = writer.create_dataset("x", data=np.zeros(10), chunks=(5,), compression="gzip")
        reader = tamis.open(tmp_path / "w.h5")
        assert reader["x"][3] == 0
        data[:] = np.arange(10)
        assert reader["x"][3] == 3
        reader.close()


def test_filter_that_hdf5_lacks_in_the_process_that_writes(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        tamis.hdf5.create_dataset(
            file, "x", (0, 64), "u4", maxshape=(None, 64), chunks=(4, 64), filters="bitshuffle(lz4)"
        )
        with tamis.hdf5.Appender(file["x"]) as steps:
            steps.append(np.ones((4, 64), "u4"))
        file.flush()
        with pytest.raises(FileError, match="it reads what this process has open for writing: close the file"):
            tamis.open(tmp_path / "a.h5")["x"][:]
    assert (tamis.open(tmp_path / "a.h5")["x"][:4] == 1).all()
