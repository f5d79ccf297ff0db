"""Where an error happened: its file, dataset, chunk and filter, from every way into tamis."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis
import tamis.hdf5
from tamis.errors import located
from tamis.jobs.result import error_dict

ZFP = "zfp(accuracy=0.001)|fletcher32"


@pytest.fixture
def values() -> np.ndarray[Any, Any]:
    return np.linspace(0, 1, 32 * 16, dtype="f4").reshape(32, 16)


@pytest.fixture
def file(tmp_path: Path, values: np.ndarray[Any, Any]) -> str:
    path = str(tmp_path / "a.h5")
    with h5py.File(path, "w") as made:
        tamis.hdf5.write(made.create_group("g"), "v", values, filters=ZFP, chunks=(8, 16), attrs={"units": "K"})
    return path


@pytest.fixture
def damaged(file: str) -> str:
    with h5py.File(file) as opened:
        offset = opened["g/v"].id.get_chunk_info_by_coord((16, 0)).byte_offset
    with Path(file).open("r+b") as stream:
        stream.seek(offset)
        first = stream.read(1)
        stream.seek(offset)
        stream.write(bytes([first[0] ^ 0xFF]))
    return file


def place(error: tamis.TamisError) -> tuple[Any, ...]:
    return error.path, error.dataset, error.chunk, error.filter


def raised(call: Callable[[], object]) -> tamis.TamisError:
    with pytest.raises(tamis.TamisError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize(
    "read",
    [
        lambda path: tamis.open(path)["g/v"][:],
        lambda path: tamis.open(path)["g/v"][17, 3],
        lambda path: tamis.hdf5.read_chunk(h5py.File(path)["g/v"], (16, 0)),
        lambda path: tamis.repack(path, path + ".b", {"/g/v": "shuffle|deflate(1)"}),
        lambda path: tamis.repack(path, path + ".b", {"/g/v": ZFP}, chunks={"/g/v": (4, 16)}),
    ],
    ids=["open", "open-one", "read-chunk", "repack", "repack-chunks"],
)
def test_damaged_chunk_place_is_file_dataset_chunk_and_filter(damaged: str, read: Callable[[str], object]) -> None:
    error = raised(lambda: read(damaged))
    assert isinstance(error, tamis.FileError)
    assert place(error) == (damaged, "/g/v", (16, 0), "fletcher32")
    assert str(error).startswith(
        f"{damaged}: /g/v: chunk at (16, 0) cannot be decoded: filter 2, fletcher32 (required)"
    )


def test_damaged_chunk_when_appended_to_place_is_complete(damaged: str, values: np.ndarray[Any, Any]) -> None:
    with h5py.File(damaged, "a") as opened:
        del opened["g/v"]
        made = tamis.hdf5.create_dataset(
            opened, "w", (6, 16), "f4", filters="deflate!|fletcher32", chunks=(8, 16), maxshape=(None, 16)
        )
        made[...] = values[:6]
    with h5py.File(damaged) as opened:
        offset = opened["w"].id.get_chunk_info_by_coord((0, 0)).byte_offset
    with Path(damaged).open("r+b") as stream:
        stream.seek(offset)
        stream.write(b"\0\0\0\0")
    with h5py.File(damaged, "a") as opened:
        error = raised(lambda: tamis.hdf5.Appender(opened["w"]))
    assert place(error) == (damaged, "/w", (0, 0), "fletcher32")


@pytest.mark.parametrize("filters", ["sz3(mode=psnr,bound=60)", "sz3(mode=norm2,bound=1)"])
def test_filter_that_cannot_be_encoded_place_has_it(file: str, tmp_path: Path, filters: str) -> None:
    name = filters.partition("(")[0]
    missing = raised(lambda: tamis.repack(file, tmp_path / "b.h5", {"/g/v": filters}))
    assert isinstance(missing, tamis.MissingFilterError)
    assert missing.path == file
    assert missing.dataset == "/g/v"
    assert (missing.filter or "").startswith(name)
    with h5py.File(tmp_path / "c.h5", "w") as made:
        written = raised(lambda: tamis.hdf5.write(made, "v", np.zeros((8, 8, 8), "f4"), filters=filters))
    assert isinstance(written, tamis.MissingFilterError)
    assert (written.path, written.dataset) == (str(tmp_path / "c.h5"), "/v")
    assert (written.filter or "").startswith(name)


def test_bound_broken_in_repack_place_is_chunk_and_filter(file: str, tmp_path: Path) -> None:
    with h5py.File(file, "a") as opened:
        values = np.ones((32, 16))
        values[20, 3] = 1e30
        opened["spike"] = values
    call = lambda: tamis.repack(  # noqa: E731
        file, tmp_path / "b.h5", {"spike": "zfp(accuracy=0.001)!"}, chunks={"spike": (8, 16)}
    )
    error = raised(call)
    assert isinstance(error, tamis.BoundError)
    assert place(error) == (file, "/spike", (16, 0), "zfp(accuracy=0.001)")


def test_bound_broken_in_write_place_is_chunk_and_filter(tmp_path: Path) -> None:
    values = np.ones((32, 16))
    values[20, 3] = 1e30
    with h5py.File(tmp_path / "a.h5", "w") as made:
        group = made.create_group("g")
        error = raised(lambda: tamis.hdf5.write(group, "x", values, filters="zfp(accuracy=0.001)!", chunks=(8, 16)))
    assert isinstance(error, tamis.BoundError)
    assert place(error) == (str(tmp_path / "a.h5"), "/g/x", (16, 0), "zfp(accuracy=0.001)")


def test_bound_broken_by_appended_steps_place_is_chunk_and_filter(tmp_path: Path) -> None:
    steps = np.ones((8, 16))
    steps[2, 3] = 1e30
    with h5py.File(tmp_path / "a.h5", "w") as made:
        dataset = tamis.hdf5.create_dataset(
            made, "x", (0, 16), "f8", filters="zfp(accuracy=0.001)!", chunks=(8, 16), maxshape=(None, 16)
        )
        appender = tamis.hdf5.Appender(dataset)
        error = raised(lambda: appender.append(steps))
    assert isinstance(error, tamis.BoundError)
    assert place(error)[:3] == (str(tmp_path / "a.h5"), "/x", (0, 0))
    assert (error.filter or "").startswith("zfp(accuracy=")


@pytest.mark.parametrize("make", [lambda: tamis.Zfp(rate=-1), lambda: tamis.Pipeline.parse("shuffle|zfp(rate=-1)")])
def test_wrong_parameter_place_is_the_filter(make: Callable[[], object]) -> None:
    assert place(raised(make)) == (None, None, None, "zfp")


@pytest.mark.parametrize("text", ["deflate(10)", "deflate(lvl=1)", "filter(1,99)", "32013,9,9"])
def test_wrong_parameter_of_any_notation_place_is_the_filter(text: str) -> None:
    assert raised(lambda: tamis.spec(text)).filter in ("deflate", "zfp")


def test_wrong_parameter_in_repack_place_is_the_filter(file: str, tmp_path: Path) -> None:
    assert raised(lambda: tamis.repack(file, tmp_path / "b.h5", {"/g/v": "zfp(rate=-1)"})).filter == "zfp"


def test_chunk_shape_that_a_filter_cannot_take_place_is_dataset_and_filter(file: str, tmp_path: Path) -> None:
    with h5py.File(file, "a") as opened:
        opened["five"] = np.zeros((2, 2, 2, 2, 2))
    error = raised(lambda: tamis.repack(file, tmp_path / "b.h5", {"five": "zfp(rate=8)"}, chunks={"five": (2,) * 5}))
    assert isinstance(error, tamis.ParameterError)
    assert place(error) == (file, "/five", None, "zfp(rate=8)")


def test_name_that_is_not_there_place_is_file_and_name(file: str, tmp_path: Path) -> None:
    for call in (
        lambda: tamis.repack(file, tmp_path / "b.h5", {"vv": ZFP}),
        lambda: tamis.verify(file, file, bounds={"vv": 0.1}),
        lambda: tamis.inspect(file, ["vv"]),
    ):
        assert place(raised(call)) == (file, "vv", None, None)


def test_name_that_is_not_in_an_open_file_place_is_file_and_name(file: str) -> None:
    with tamis.open(file) as opened:
        assert place(raised(lambda: opened["vv"])) == (file, "vv", None, None)
    assert place(raised(lambda: opened["g/v"])) == (file, None, None, None)


def test_stream_that_ends_early_place_is_the_chunk_to_write(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as made:
        dataset = tamis.hdf5.create_dataset(made, "x", (8, 16), "f4", filters="zfp(reversible=true)", chunks=(8, 16))
        error = raised(lambda: tamis.hdf5.write_stream(dataset, (0, 0), b"\xff" * 8, tamis.zfp.Reversible()))
    assert isinstance(error, tamis.StreamError)
    assert place(error)[:3] == (str(tmp_path / "a.h5"), "/x", (0, 0))


def test_kind_of_a_private_error_is_the_public_one() -> None:
    class _PlacedError(tamis.FileError):
        pass

    assert error_dict(_PlacedError("gone"))["kind"] == "FileError"


def test_file_that_is_not_there_place_is_its_path(file: str, tmp_path: Path) -> None:
    absent = str(tmp_path / "none.h5")
    for call in (
        lambda: tamis.open(absent),
        lambda: tamis.inspect(absent),
        lambda: tamis.verify(file, absent),
        lambda: tamis.repack(absent, tmp_path / "b.h5", {"v": ZFP}),
    ):
        assert place(raised(call)) == (absent, None, None, None)


def test_target_that_cannot_be_written_place_is_the_target(file: str, tmp_path: Path) -> None:
    target = str(tmp_path / "none" / "b.h5")
    assert place(raised(lambda: tamis.repack(file, target, {"/g/v": "deflate"}))) == (target, None, None, None)


def test_verify_of_damaged_chunk_problem_names_the_chunk(damaged: str, tmp_path: Path) -> None:
    good = tmp_path / "good.h5"
    with h5py.File(good, "w") as made:
        made["g/v"] = np.linspace(0, 1, 32 * 16, dtype="f4").reshape(32, 16)
    (problem,) = tamis.verify(good, damaged, bounds={"/g/v": 0.01}).problems
    assert problem.path == "/g/v"
    assert "chunk at (16, 0) cannot be decoded: filter 2, fletcher32" in problem.text


def test_error_pickled_keeps_text_and_place(damaged: str) -> None:
    error = raised(lambda: tamis.open(damaged)["g/v"][:])
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is tamis.FileError
    assert str(again) == str(error)
    assert place(again) == place(error) == (damaged, "/g/v", (16, 0), "fletcher32")


def test_located_innermost_place_wins_and_labels_go_before_the_text() -> None:
    with pytest.raises(tamis.StreamError) as caught, located("a.nc", path="a.nc", dataset="T"):  # noqa: SIM117
        with located(path="b.nc"), located("chunk at (0,)", chunk=(0,)):
            raise tamis.StreamError("truncated")
    assert str(caught.value) == "a.nc: chunk at (0,): truncated"
    assert place(caught.value) == ("b.nc", "T", (0,), None)


def test_error_raised_from_another_knows_its_place() -> None:
    def fail() -> None:
        try:
            raise tamis.MissingFilterError("no such filter").at(filter=tamis.Zfp(rate=8), chunk=(4,))
        except tamis.TamisError as error:
            raise tamis.FileError(f"cannot be decoded: {error}").at(path=Path("a.nc")) from error

    assert place(raised(fail)) == ("a.nc", None, (4,), "zfp(rate=8)")


def test_error_elsewhere_raised_has_no_place() -> None:
    assert place(tamis.TamisError("x")) == (None, None, None, None)
