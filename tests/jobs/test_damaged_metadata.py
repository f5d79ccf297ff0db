"""Known defect U11: damaged metadata ended repack, verify and open in errors of h5py, of many kinds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import tamis
from tamis.cli import main
from tamis.safety import reading

VALUES = np.arange(16 * 8, dtype="f4").reshape(16, 8)
Damaged = Callable[[str], Path]


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    path = tmp_path / "whole.h5"
    write(path)
    return path


def write(path: Path, libver: str | None = None) -> None:
    with h5py.File(path, "w", libver=libver) as file:
        made = file.create_dataset("x", data=VALUES, chunks=(4, 8), maxshape=(None, 8), compression=1)
        made.attrs["unit"] = "K"
        file["y"] = VALUES


@pytest.fixture
def damaged(tmp_path: Path) -> Damaged:
    """Damage the chunk index of ``x``, or what is before the name of its attribute."""

    def damage(what: str) -> Path:
        path = tmp_path / f"{what}.h5"
        write(path, "latest" if what == "index" else None)
        data = bytearray(path.read_bytes())
        if what == "index":
            data[data.index(b"EAIB") + 20] ^= 0xFF  # a block of addresses, which has a checksum
        else:
            data[data.index(b"unit\0") - 8] = 0xFF  # the version of the message
        path.write_bytes(data)
        return path

    return damage


def read(path: Path) -> None:
    with tamis.open(path) as file:
        array = file["x"]
        dict(array.attrs)
        array[...]


def append(path: Path) -> None:
    with h5py.File(path, "r+") as file, tamis.hdf5.Appender(file["x"]) as appender:
        appender.append(np.ones(8))


def fill(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        tamis.hdf5.write(file["x"], VALUES)


JOBS: dict[str, Callable[[Path], object]] = {
    "inspect": tamis.inspect,
    "repack": lambda path: tamis.repack(path, path.with_name("out.h5"), {"x": "deflate(2)"}),
    "repack lossy": lambda path: tamis.repack(path, path.with_name("out.h5"), {"x": "zfp(accuracy=1)"}),
    "companion": lambda path: tamis.repack(path, path.with_name("out.h5"), {"x": "zfp(accuracy=1)"}, missing="mask"),
    "chunks": lambda path: tamis.repack(path, path.with_name("out.h5"), {}, chunks={"x": (8, 4)}),
    "open": read,
    "append": append,
    "write": fill,
}


@pytest.mark.parametrize("what", ["index", "attribute"])
@pytest.mark.parametrize("job", JOBS)
def test_u11_damaged_metadata_is_a_file_error_that_names_file_and_dataset(
    job: str, what: str, damaged: Damaged, tmp_path: Path
) -> None:
    path = damaged(what)
    with pytest.raises(tamis.FileError, match=r"damaged or incomplete: |cannot") as refused:
        JOBS[job](path)
    assert str(path) in str(refused.value)
    assert "/x" in str(refused.value)
    assert sorted(each.name for each in tmp_path.iterdir()) == [path.name], "nothing is left"


@pytest.mark.parametrize("what", ["index", "attribute"])
def test_u11_verify_says_which_file_is_damaged_and_compares_the_rest(what: str, damaged: Damaged, whole: Path) -> None:
    path = damaged(what)
    for files in ((path, whole), (whole, path)):
        found = tamis.verify(*files)
        assert not found.ok
        assert any(str(path) in each.text and "damaged or incomplete" in each.text for each in found.problems)
        assert {each.path for each in found.problems} == {"/x"}
        assert found["y"].status == "equal"


@pytest.mark.parametrize("what", ["index", "attribute"])
@pytest.mark.parametrize(
    "arguments",
    [("inspect",), ("repack", "-f", "*:deflate(2)"), ("repack", "-f", "*:deflate(2)", "--dry-run"), ("verify",)],
    ids=" ".join,
)
def test_u11_commands_end_with_1_and_a_message(
    arguments: tuple[str, ...], what: str, damaged: Damaged, whole: Path
) -> None:
    path = damaged(what)
    command, *options = arguments
    files = {"inspect": [path], "repack": [path, path.with_name("out.h5")], "verify": [path, whole]}[command]
    result = CliRunner().invoke(main, [command, *map(str, files), *options])
    if "--dry-run" in options and what == "index":
        assert result.exit_code in (0, 1), "where chunks are is not looked at"
        return
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert f"{path}: /x: damaged or incomplete: " in result.output + result.stderr


def test_u11_dataset_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    write(path, "latest")
    data = bytearray(path.read_bytes())
    data[data.index(b"EAHD") + 8] ^= 0xFF  # what all of the index hangs on
    path.write_bytes(data)
    for job in (tamis.inspect, lambda path: tamis.verify(path, path), JOBS["repack"], JOBS["open"]):
        with pytest.raises(tamis.FileError, match="damaged or incomplete: ") as refused:
            job(path)
        assert str(refused.value).startswith(f"{path}: /x: ")


@pytest.mark.parametrize("nbytes", [60, 212, 5000])
@pytest.mark.parametrize("named", [False, True])
def test_u11_copied_chunk_of_another_size_than_its_values_is_refused(named: bool, nbytes: int, tmp_path: Path) -> None:
    """HDF5 wrote beyond its buffers, and the process ended by a signal later."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["type"] = np.dtype("f4")
        file.create_dataset("x", data=VALUES, chunks=(4, 8), dtype=file["type"] if named else "f4")
        file["y"] = VALUES
    data = bytearray(path.read_bytes())
    at = data.index(b"TREE\1") + 24  # the size of the first chunk in the tree of chunks
    assert int.from_bytes(data[at : at + 4], "little") == 128
    data[at : at + 4] = nbytes.to_bytes(4, "little")
    path.write_bytes(data)
    said = rf"cannot copy /x: damaged: expected 128 bytes in the chunk at \(0, 0\), found {nbytes}"
    with pytest.raises(tamis.FileError, match=said):
        tamis.repack(path, tmp_path / "b.h5", {"y": "deflate(1)"})
    assert not (tmp_path / "b.h5").exists()


def test_u11_errors_that_never_passed_through_h5py_stay_what_they_are() -> None:
    """A mistake of ours is no damaged file."""
    with pytest.raises(KeyError), reading("a.h5"):
        raise KeyError("ours")
    with pytest.raises(tamis.FileError, match=r"^a\.h5: damaged or incomplete: "), reading("a.h5"):
        h5py.h5d.open(h5py.h5f.create(b"x", fapl=_in_memory()), b"none")


def _in_memory() -> h5py.h5p.PropFAID:
    plist = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    plist.set_fapl_core(backing_store=False)
    return plist


def test_u11_failing_reads_are_told_from_damage() -> None:
    def read_block() -> None:
        h5py.File("/proc/self/mem", "r")

    with pytest.raises(tamis.FileError, match=r"^a\.h5: cannot be read: "), reading("a.h5"):
        read_block()


def test_u11_header_and_references_of_a_file_with_a_damaged_root(tmp_path: Path) -> None:
    """A public SOFA file, found by a fuzzer, ended `inspect --cdl` and export in RuntimeErrors."""
    path = tmp_path / "root.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file["x"] = VALUES
        for index in range(20):  # more than the header of the object has
            file.attrs[f"a{index}"] = index
    data = bytearray(path.read_bytes())
    data[data.index(b"FRHP") + 20] ^= 0xFF
    path.write_bytes(data)
    for arguments in (["inspect", "--cdl", path], ["export", path, "--to", "kerchunk", "-o", tmp_path / "r.json"]):
        result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert result.exit_code == 1, result.output
        assert isinstance(result.exception, SystemExit)
        assert "root.h5: damaged or incomplete" in result.output
