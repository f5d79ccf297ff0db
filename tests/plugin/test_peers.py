"""The same chunks and stored parameters as other writers of ZFP, byte for byte, and each reads the other's files."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

import tamis

Run = Callable[..., str]

DTYPES = ("f4", "f8", "i4", "i8")
# Shape and chunk; with partial chunks at the edges, and axes of one that ZFP does not see.
LAYOUTS = {
    "1d": ((100,), (32,)),
    "2d": ((13, 21), (8, 9)),
    "2d-unit": ((6, 50), (1, 20)),
    "3d": ((9, 7, 10), (5, 4, 6)),
    "3d-unit": ((3, 9, 2, 11, 6), (1, 5, 1, 4, 6)),
    "4d": ((5, 6, 7, 5), (3, 4, 5, 4)),
    "4d-unit": ((2, 5, 1, 6, 7, 5), (1, 3, 1, 5, 4, 5)),
}
MODES: dict[str, dict[str, Any]] = {
    "rate": {"rate": 8.3},
    "rate-below-header": {"rate": 2},
    "rate-long-header": {"rate": 40},
    "precision": {"precision": 14},
    "precision-full": {"precision": 64},
    "accuracy": {"accuracy": 1e-3},
    "accuracy-large": {"accuracy": 37.0},
    "expert": {"minbits": 40, "maxbits": 700, "maxprec": 22, "minexp": -9},
    "expert-reversible": {"minbits": 1, "maxbits": 16658, "maxprec": 64, "minexp": -1075},
    "reversible": {"reversible": True},
    "default": {},
}


def keywords_of(mode: str, dtype: str) -> dict[str, Any]:
    # Integers take no tolerance below 1, and zfp keeps none below 203, by which its transform may err.
    return {"accuracy": 300.0} if mode == "accuracy" and dtype[0] == "i" else MODES[mode]


def field(name: str, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    noise = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape)
    smooth = np.sin(np.linspace(0, 9, math.prod(shape))).reshape(shape)
    scale = {"f4": 30, "f8": 30, "i4": 4e6, "i8": 5e14}[dtype]
    return (scale * (smooth + 0.01 * noise)).astype(dtype)


def names() -> list[tuple[str, str, str, str]]:
    return [(f"{mode} {dtype} {rank}", mode, dtype, rank) for mode in MODES for dtype in DTYPES for rank in LAYOUTS]


def requested(keywords: dict[str, Any]) -> tuple[int, ...]:
    return tamis.Zfp(**keywords).requested if keywords else ()


def filter_of(dataset: h5py.Dataset) -> tuple[int, ...]:
    """Give the stored parameters without the bits that H5Z-ZFP leaves to chance."""
    plist = dataset.id.get_create_plist()
    assert plist.get_nfilters() == 1
    number, _, values, _ = plist.get_filter(0)
    assert number == 32013
    words = tuple(value & 0xFFFFFFFF for value in values)
    return words if len(words) < 6 else (*words[:5], words[5] & 0xFFFFF)


def chunks_of(dataset: h5py.Dataset) -> dict[tuple[int, ...], tuple[int, bytes]]:
    infos = [dataset.id.get_chunk_info(i) for i in range(dataset.id.get_num_chunks())]
    return {info.chunk_offset: dataset.id.read_direct_chunk(info.chunk_offset) for info in infos}


def assert_same_storage(expected: h5py.Dataset, found: h5py.Dataset) -> None:
    chunks = chunks_of(expected)
    assert len(chunks) == math.prod(-(-n // c) for n, c in zip(expected.shape, expected.chunks, strict=True))
    assert all(mask == 0 for mask, _ in chunks.values())
    assert chunks_of(found) == chunks


def repack_arguments(plain: Path, target: Path) -> list[str | Path]:
    """Ask h5repack for the filter of every dataset; 0 makes it required."""
    arguments: list[str | Path] = []
    for name, mode, dtype, _ in names():
        values = requested(keywords_of(mode, dtype))
        arguments += ["-f", f"{name}:UD=32013,0,{','.join(map(str, (len(values), *values)))}"]
    return [*arguments, plain, target]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with plain.h5, chunked without filters, ours.h5, the same by h5py with our filter, and its keywords."""
    folder = tmp_path_factory.mktemp("peers")
    with h5py.File(folder / "plain.h5", "w") as plain, h5py.File(folder / "ours.h5", "w") as ours:
        for name, mode, dtype, rank in names():
            shape, chunks = LAYOUTS[rank]
            data, keywords = field(name, shape, dtype), keywords_of(mode, dtype)
            zfp = tamis.Zfp(**keywords) if keywords else {"compression": 32013}
            plain.create_dataset(name, data=data, chunks=chunks)
            ours.create_dataset(name, data=data, chunks=chunks, **zfp)
    (folder / "keywords.json").write_text(
        json.dumps({name: keywords_of(mode, dtype) for name, mode, dtype, _ in names()})
    )
    return folder


@pytest.fixture(scope="module")
def with_hdf5plugin(folder: Path, python: Run) -> Path:
    python(Path(__file__).with_name("hdf5plugin_peer.py"), folder)
    return folder


@pytest.fixture(scope="module")
def with_debian(folder: Path, tool: Run, debian_plugins: Path) -> Path:
    tool("h5repack", *repack_arguments(folder / "plain.h5", folder / "debian.h5"), plugins=debian_plugins)
    return folder


@pytest.fixture(scope="module")
def with_tools(folder: Path, tool: Run, plugins: Path) -> Path:
    tool("h5repack", *repack_arguments(folder / "plain.h5", folder / "tools.h5"), plugins=plugins)
    return folder


@pytest.fixture(scope="module")
def decoded(folder: Path) -> Path:
    """Give the file of the values that ours.h5 decodes to here, stored plainly."""
    path = folder / "decoded.h5"
    with h5py.File(folder / "ours.h5") as ours, h5py.File(path, "w") as target:
        for name, dataset in ours.items():
            target[name] = dataset[...]
    return path


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", MODES)
def test_writing_same_keywords_as_hdf5plugin_gives_same_bytes(with_hdf5plugin: Path, mode: str, dtype: str) -> None:
    with h5py.File(with_hdf5plugin / "ours.h5") as ours, h5py.File(with_hdf5plugin / "theirs.h5") as theirs:
        for rank in LAYOUTS:
            name = f"{mode} {dtype} {rank}"
            assert theirs[name].id.get_create_plist().get_filter(0)[3].startswith(b"H5Z-ZFP-1.1.1 (ZFP-1.0.1)")
            assert filter_of(ours[name]) == filter_of(theirs[name])
            assert_same_storage(theirs[name], ours[name])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", MODES)
def test_reading_files_exchanged_with_hdf5plugin_gives_same_values(
    with_hdf5plugin: Path, mode: str, dtype: str
) -> None:
    files = [h5py.File(with_hdf5plugin / f"{name}.h5") for name in ("plain", "ours", "theirs", "values")]
    lossless = mode in ("reversible", "expert-reversible")
    for rank in LAYOUTS:
        plain, ours, theirs, values = (file[f"{mode} {dtype} {rank}"][...] for file in files)
        assert values.tobytes() == ours.tobytes() == theirs.tobytes()
        assert (plain.tobytes() == ours.tobytes()) or not lossless
        # Of integers zfp keeps no bound, see D13.
        if mode == "accuracy" and dtype[0] == "f":
            assert np.abs(plain.astype("f8") - ours).max() <= 1e-3
    for file in files:
        file.close()


@pytest.mark.peer
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", MODES)
def test_writing_same_request_as_debian_h5repack_gives_same_bytes(with_debian: Path, mode: str, dtype: str) -> None:
    with h5py.File(with_debian / "ours.h5") as ours, h5py.File(with_debian / "debian.h5") as theirs:
        for rank in LAYOUTS:
            name = f"{mode} {dtype} {rank}"
            # The word of versions: Debian 12 has zfp 1.0.0, Debian 13 has 1.0.1.
            assert filter_of(theirs[name])[0] >> 12 in (0x10005, 0x10105)
            assert filter_of(ours[name])[0] == 0x10105111
            assert filter_of(ours[name])[1:] == filter_of(theirs[name])[1:]
            assert_same_storage(theirs[name], ours[name])


@pytest.mark.peer
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", MODES)
def test_writing_by_h5repack_gives_same_file_parts_as_h5py(with_tools: Path, mode: str, dtype: str) -> None:
    with h5py.File(with_tools / "ours.h5") as ours, h5py.File(with_tools / "tools.h5") as tools:
        for rank in LAYOUTS:
            name = f"{mode} {dtype} {rank}"
            assert b"tamis" in tools[name].id.get_create_plist().get_filter(0)[3]
            assert filter_of(tools[name]) == filter_of(ours[name])
            assert_same_storage(tools[name], ours[name])


@pytest.mark.peer
def test_h5diff_with_debian_plugin_finds_our_values(
    folder: Path, decoded: Path, tool: Run, debian_plugins: Path
) -> None:
    tool("h5diff", folder / "ours.h5", decoded, plugins=debian_plugins)


@pytest.mark.peer
def test_h5diff_with_our_plugin_finds_debian_values(with_debian: Path, decoded: Path, tool: Run, plugins: Path) -> None:
    tool("h5diff", with_debian / "debian.h5", decoded, plugins=plugins)


@pytest.mark.peer
def test_h5diff_with_our_plugin_on_other_values_finds_difference(
    folder: Path, decoded: Path, tool: Run, plugins: Path
) -> None:
    name = "accuracy f8 3d"
    same = tool("h5diff", folder / "ours.h5", decoded, name, name, plugins=plugins)
    other = tool("h5diff", folder / "plain.h5", decoded, name, name, plugins=plugins, code=1)
    assert "differences found" in other
    assert "differences found" not in same


@pytest.mark.peer
@pytest.mark.parametrize(("writer", "reader"), [("ours", "plugins"), ("ours", "debian_plugins"), ("debian", "plugins")])
def test_h5dump_of_each_writer_with_each_plugin_gives_values(
    with_debian: Path, decoded: Path, tool: Run, writer: str, reader: str, request: pytest.FixtureRequest
) -> None:
    with h5py.File(decoded) as file:
        for name in ("rate f4 4d", "accuracy i8 3d-unit", "default f8 2d", "expert i4 1d"):
            out = with_debian / "dumped.bin"
            folder: Path = request.getfixturevalue(reader)
            tool("h5dump", "-d", name, "-b", "NATIVE", "-o", out, with_debian / f"{writer}.h5", plugins=folder)
            assert out.read_bytes() == file[name][...].tobytes()


@pytest.mark.peer
def test_h5dump_without_plugin_fails(folder: Path, tool: Run) -> None:
    said = tool("h5dump", "-d", "accuracy f8 3d", folder / "ours.h5", plugins=None, code=1)
    assert "unable to print data" in said
