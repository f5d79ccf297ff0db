"""Files and groups of arrays."""

from __future__ import annotations

import gc
import os
import pickle
from collections.abc import Mapping
from pathlib import Path

import h5py
import numpy as np
import pytest

import tamis
from tamis import FileError, ParameterError
from tamis.formats.hdf5.reader import DatasetArray as Array
from tamis.reading.file import File, Group


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with groups and links."""
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file.attrs["title"] = "all"
        file["TS"] = np.arange(6.0)
        file.create_dataset("g/inner/x", data=np.arange(9), chunks=(3,), compression="gzip").attrs["units"] = "K"
        file["g"].attrs["about"] = 7
        file["g/y"] = 1.0
        file["g/again"] = file["g/inner/x"]
        file["soft"], file["dangling"] = h5py.SoftLink("/g/inner/x"), h5py.SoftLink("/nowhere")
        file["kind"] = np.dtype("i4")
        file.create_group("empty")
    return tmp_path / "f.h5"


def test_open_mapping_of_paths_to_arrays(path: Path) -> None:
    with tamis.open(path) as file:
        assert isinstance(file, Mapping)
        assert list(file) == ["TS", "g/again", "g/y"]
        assert len(file) == 3
        assert {name: each.shape for name, each in file.items()} == {"TS": (6,), "g/again": (9,), "g/y": ()}
        for name in ("TS", "/TS", "g/inner/x", "/g/inner/x", "soft"):
            assert name in file
            assert isinstance(file[name], Array)
        assert file["soft"][4] == file["g/inner/x"][4] == 4
        assert file.attrs == {"title": "all"}
        assert file["g/inner/x"].attrs == {"units": "K"}
        assert repr(path) not in ("", repr(file))
        assert str(path) in repr(file)


def test_group_by_its_path_mapping_of_what_is_in_it(path: Path) -> None:
    with tamis.open(path) as file:
        group = file["g"]
        assert isinstance(group, Group)
        assert (group.name, group.attrs["about"]) == ("/g", 7)
        assert list(group) == ["again", "y"]
        assert group["inner/x"][2] == 2
        assert group["/TS"][2] == 2
        assert list(group["inner"]) == ["x"]
        assert list(file["empty"]) == []
        assert file["/"] is file
        assert "/g" in repr(group)
        assert group != file["empty"]
        assert len({group, file}) == 2


@pytest.mark.parametrize("name", ["nothing", "dangling", "g/nothing", "TS/x"])
def test_name_that_is_not_there_key_error_and_file_error(path: Path, name: str) -> None:
    with tamis.open(path) as file:
        assert name not in file
        assert file.get(name) is None
        with pytest.raises(KeyError, match=rf"f\.h5: expected an array or group at '{name}', found none"):
            file[name]
        with pytest.raises(FileError):
            file[name]


def test_name_of_a_type_refused(path: Path) -> None:
    with tamis.open(path) as file, pytest.raises(FileError, match="at 'kind', found a named type"):
        file["kind"]


def test_closed_file_nothing_can_be_read(path: Path) -> None:
    with tamis.open(path) as file:
        array, group, other = file["g/inner/x"], file["g"], file["TS"]
        assert array[0] == 0
        assert not file.closed
    assert file.closed
    file.close()
    for use in (
        lambda: array[0],
        array.read,
        lambda: array.attrs,
        lambda: other[0],
        lambda: file["TS"],
        lambda: list(file),
        lambda: "TS" in file,
        lambda: group["y"],
        lambda: group.attrs,
        file.__enter__,
    ):
        with pytest.raises(FileError, match=r"f\.h5: the file is closed: open it again"):
            use()
    assert array.shape == (9,)
    assert "closed" in repr(file)
    with h5py.File(path, "r+") as again:  # nothing holds it
        again["new"] = 1


def test_array_keeps_its_file_open(path: Path) -> None:
    assert tamis.open(path)["g/inner/x"][5] == 5


def test_files_given_up_no_descriptor_left(path: Path) -> None:
    def held() -> list[str]:
        folder = Path("/proc/self/fd")
        return [each for each in os.listdir(folder) if os.path.realpath(folder / each) == str(path)]

    gc.collect()
    gc.disable()
    try:
        file = tamis.open(path)
        array, group = file["g/inner/x"], file["g"]
        assert array[5] == 5
        assert held()
        del file, array, group
        assert not held()
    finally:
        gc.enable()


def test_array_of_a_file_asked_for_again_keeps_index_and_chunks(path: Path) -> None:
    with tamis.open(path) as file:
        assert file["g/inner/x"][4] == 4
        assert file.cache.nbytes == 3 * 8
        source = file.source("/g/inner/x", None)
        assert file["g"]["inner/x"][3] == 3
        assert file["/g/inner/x"]._file.source("/g/inner/x", None) is source
        assert file.cache.nbytes == 3 * 8
    assert file.cache.nbytes == 0


def test_external_links_followed_and_pickled(path: Path) -> None:
    with h5py.File(path.parent / "outer.h5", "w") as file:
        file["TS"] = np.zeros(3)
        file["array"], file["group"] = h5py.ExternalLink("f.h5", "/TS"), h5py.ExternalLink("f.h5", "/g")
    with tamis.open(path.parent / "outer.h5") as file:
        for each in (file["array"], file["group"]["/array"]):
            assert pickle.loads(pickle.dumps(each))[:].tolist() == [0, 1, 2, 3, 4, 5]
        again = pickle.loads(pickle.dumps(file["group"]["inner/x"]))
        assert (again.name, again[7]) == ("/group/inner/x", 7)
        assert list(pickle.loads(pickle.dumps(file["group"]))) == ["again", "y"]


def test_type_that_numpy_has_not_refused(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        h5py.h5d.create(file.id, b"date", h5py.h5t.UNIX_D32LE, h5py.h5s.create_simple((3,)))
    with tamis.open(path) as file, pytest.raises(FileError, match="/date: expected values of a type that NumPy has"):
        file["date"]


def test_pickle_file_group_and_array_from_another_folder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    with tamis.open(path.name, threads=3) as file:
        pickled = pickle.dumps((file, file["g"], file["g/inner/x"]))
    monkeypatch.chdir("/")
    file, group, array = pickle.loads(pickled)
    assert isinstance(file, File)
    assert (file.path, file.threads) == (str(path), 3)
    assert list(group) == ["again", "y"]
    assert array[3:5].tolist() == [3, 4]


def test_open_paths_of_any_kind(path: Path) -> None:
    for each in (path, str(path), os.fsencode(path)):
        with tamis.open(each) as file:  # type: ignore[arg-type]
            assert file["TS"][1] == 1


def test_open_name_that_is_no_utf8_read(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(3)
        file.id.links.move(b"x", file.id, b"caf\xe9")
    with tamis.open(tmp_path / "a.h5") as file:
        assert list(file) == ["caf\udce9"]
        assert file["caf\udce9"][1] == 1
        assert pickle.loads(pickle.dumps(file["caf\udce9"]))[2] == 2


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "No such file or directory"),
        (b"CDF\x01 and more", "header of a netCDF classic file"),
        (b"?", "got text that begins with"),
    ],
)
def test_open_no_hdf5_file_refused(tmp_path: Path, content: bytes | None, text: str) -> None:
    if content is not None:
        (tmp_path / "no.h5").write_bytes(content)
    with pytest.raises(FileError, match=rf"no\.h5: .*{text}"):
        tamis.open(tmp_path / "no.h5")


def test_open_no_number_of_threads_refused(path: Path) -> None:
    with pytest.raises(ParameterError, match="expected 1 or more threads, got threads=0"):
        tamis.open(path, threads=0)


def test_listing_a_damaged_file_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w", libver="earliest") as file:
        file["g/x"] = np.arange(3)
    data = (tmp_path / "a.h5").read_bytes()
    assert data.count(b"SNOD") == 2
    (tmp_path / "a.h5").write_bytes(data.replace(b"SNOD", b"NODS"))
    with tamis.open(tmp_path / "a.h5") as file, pytest.raises(FileError, match=r"a\.h5: /: damaged or incomplete"):
        list(file)
