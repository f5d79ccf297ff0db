"""U19: inputs of every usual kind are taken, or refused in words and at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray

import tamis
from tamis import FileError, ParameterError
from tamis.hdf5 import Appender, create_dataset, write, write_stream

X = np.linspace(0, 1, 64 * 64, dtype="f4").reshape(64, 64)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[h5py.File]:
    with h5py.File(tmp_path / "a.h5", "w") as opened:
        yield opened


@pytest.mark.parametrize("options", [{"rate": 8}, {"accuracy": 0.1}, {"precision": 9}, {"reversible": True}])
def test_u19_filter_is_taken_for_its_mode(options: dict[str, Any], file: h5py.File) -> None:
    both = tamis.Zfp(**options), tamis.zfp.mode(**options)
    streams = [tamis.zfp.encode(X, each, threads=np.int64(1)) for each in both]
    assert streams[0] == streams[1]
    plain, headed = (call(X, both[0]) for call in (tamis.zfp.encode, tamis.zfp.encode_with_header))
    expected = tamis.zfp.decode(plain, X.shape, X.dtype, both[1])
    np.testing.assert_array_equal(tamis.zfp.decode(plain, list(X.shape), "f4", both[0]), expected)
    np.testing.assert_array_equal(tamis.zfp.decode_with_header(headed, threads=np.int32(2)), expected)
    headers = [tamis.zfp.Header(np.dtype("f4"), X.shape, each).pack() for each in both]  # type: ignore[arg-type]
    assert headers[0] == headers[1]
    made = create_dataset(file, "x", X.shape, "f4", chunks=X.shape, filters=both[0])
    write_stream(made, (0, 0), plain, both[0])  # type: ignore[arg-type]
    np.testing.assert_array_equal(made[()], expected)


@pytest.mark.parametrize("mode", ["rate=8", {"rate": 8}, 8, None, tamis.zfp.Rate, Path()])
def test_u19_what_is_no_mode_is_refused(mode: Any) -> None:
    for call in (lambda: tamis.zfp.encode(X, mode), lambda: tamis.zfp.decode(b"", (4,), "f4", mode)):
        with pytest.raises(ParameterError, match="expected a mode such as tamis"):
            call()


@pytest.mark.parametrize("start", [0, 8, 64, 4096])
@pytest.mark.parametrize("mode", [tamis.zfp.Rate(8), tamis.zfp.Reversible(), tamis.zfp.Accuracy(1e-3)])
def test_u19_out_may_share_memory_with_the_stream(mode: Any, start: int) -> None:
    for call, decode in (
        (tamis.zfp.encode, lambda data, out: tamis.zfp.decode(data, X.shape, "f4", mode, out=out)),
        (tamis.zfp.encode_with_header, lambda data, out: tamis.zfp.decode_with_header(data, out=out)),
    ):
        stream = call(X, mode)
        room = np.zeros(X.nbytes + start + len(stream), "u1")
        room[start : start + len(stream)] = np.frombuffer(stream, "u1")
        out = room[: X.nbytes].view("f4").reshape(X.shape)
        expected = decode(stream, None)
        np.testing.assert_array_equal(decode(memoryview(room)[start : start + len(stream)], out), expected)


@pytest.mark.parametrize("name", ["p\0q", "\0", "g/p\0q", "", "/", b"x", 3, None])
def test_u19_names_that_hdf5_would_cut_are_refused(name: Any, file: h5py.File) -> None:
    for call in (lambda: write(file, name, X), lambda: create_dataset(file, name, (3,), "f4")):
        with pytest.raises(ParameterError, match="expected a name, text without zero bytes"):
            call()
    assert list(file) == []


def test_u19_names_of_attributes_with_zero_bytes_are_refused(file: h5py.File) -> None:
    with pytest.raises(ParameterError, match="expected names of attributes without zero bytes, got 'a\\\\x00b'"):
        write(file, "x", X, attrs={"a\0b": 1})
    assert list(file) == []


def test_u19_open_finds_no_name_with_zero_bytes(file: h5py.File, tmp_path: Path) -> None:
    write(file, "p", X)
    file.close()
    with tamis.open(os.fsencode(tmp_path / "a.h5")) as opened:
        assert "p\0q" not in opened
        with pytest.raises(KeyError, match=r"expected an array or group at 'p\\x00q', found none"):
            opened["p\0q"]
        for name in (b"p", 3, None):
            with pytest.raises(TypeError, match="expected a name or path as text"):
                opened[name]  # type: ignore[index]
        np.testing.assert_array_equal(opened[np.str_("p")][np.int64(-1)], X[-1])
    with pytest.raises(FileError, match=r"embedded null (byte|character)"):
        tamis.open("a\0b")


@pytest.mark.parametrize("number", [int, np.int64, np.uint8])
def test_u19_whole_numbers_of_any_kind(number: Any, file: h5py.File) -> None:
    row = X[0]
    assert write(file, "a", row, chunks=number(8), maxshape=number(100), threads=number(2)).chunks == (8,)
    assert file["a"].maxshape == (100,)
    assert write(file, "b", X, chunks=[number(8), number(16)]).chunks == (8, 16)
    assert create_dataset(file, "c", number(3), "f4").shape == (3,)
    made = create_dataset(file, "d", np.array([4, 0]), "f4", maxshape=(4, None))
    with Appender(made, number(1), threads=number(1)) as appender:
        appender.append(list(range(4)))
    np.testing.assert_array_equal(made[:, 0], range(4))
    with Appender(made, np.int8(-1)) as appender:
        assert appender.steps == 1
    with tamis.open(file.filename, threads=number(2)) as opened:
        assert opened.threads == 2


@pytest.mark.parametrize("value", [2.0, "8", (8.0, 8), (8, None), (True, 8), object()])
def test_u19_other_chunks_and_threads_are_refused(value: Any, file: h5py.File) -> None:
    with pytest.raises(ParameterError, match="expected whole numbers, one for each axis, got chunks="):
        write(file, "x", X, chunks=value)
    with pytest.raises(ParameterError, match="expected whole numbers, one for each axis, got maxshape="):
        write(file, "x", X, maxshape=value if value != (8, None) else (8.5, None))
    for call in (
        lambda: write(file, "x", X, threads=value),
        lambda: tamis.zfp.encode(X, tamis.Zfp(rate=8), threads=value),
    ):
        with pytest.raises(ParameterError, match="expected 1 or more threads"):
            call()
    assert list(file) == []


def test_u19_chunks_true_are_chosen_as_with_h5py(file: h5py.File) -> None:
    assert write(file, "x", X, chunks=True).chunks == write(file, "y", X).chunks


def test_u19_paths_as_bytes(file: h5py.File, tmp_path: Path) -> None:
    write(file, "x", X)
    file.close()
    source, target = os.fsencode(tmp_path / "a.h5"), os.fsencode(tmp_path / "b.h5")
    tamis.repack(source, target, {"x": "deflate(4)"}, threads=np.int64(1))  # type: ignore[arg-type]
    result = tamis.verify(source, target, threads=np.int64(1))  # type: ignore[arg-type]
    assert result.ok
    assert str(tmp_path / "b.h5") in str(result)
    assert tamis.inspect(target).path == str(tmp_path / "b.h5")  # type: ignore[arg-type]


def test_u19_encoding_of_a_tree_says_how(tmp_path: Path) -> None:
    data = xarray.Dataset({"TS": (("a", "b"), X)})
    tree = xarray.DataTree.from_dict({"/": xarray.Dataset(), "/g": data, "/h/i": data})
    with pytest.raises(
        ParameterError, match=r"got a DataTree, whose to_netcdf takes an encoding for each group: \{"
    ) as said:
        tamis.encoding(tree, {"TS": "zfp(accuracy=0.1)"})
    recipes: dict[str, Any] = {"/": None, "/g": {"TS": "zfp(accuracy=0.1)"}, "/h": None, "/h/i": {"*": "deflate(4)"}}
    advice = str(said.value).split("each group: ")[1]
    encoding = eval(advice, {"tamis": tamis, "tree": tree, "recipes": recipes})  # the advice itself
    tree.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding=encoding)
    found = {each.path: str(each.pipeline) for each in tamis.inspect(tmp_path / "a.nc").datasets}
    assert found["/g/TS"].startswith("zfp(accuracy=")
    assert found["/h/i/TS"] == "deflate(4)"
    with xarray.open_datatree(tmp_path / "a.nc", engine="h5netcdf") as again:
        kept = {node.path: tamis.encoding(node.to_dataset(inherit=False), group=node.path) for node in again.subtree}
    assert kept["/h/i"]["TS"]["compression"] == "gzip"


def test_u19_numpy_numbers_are_plain_in_filters() -> None:
    assert tamis.Zfp(accuracy=np.float32(0.5)) == tamis.Zfp(accuracy=0.5)
    assert repr(tamis.Zfp(rate=np.float64(8))) == repr(tamis.Zfp(rate=8.0))
