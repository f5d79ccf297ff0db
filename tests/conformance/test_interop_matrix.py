"""Every filter × type × byte order × partial chunks × masks: files of others decoded, our chunks read by others.

The files are written by h5py, hdf5plugin, netCDF4, PyTables, nccopy and h5repack. What libhdf5 reads from them, with
the filters of hdf5plugin and in a process without tamis, is what is expected, to the bit.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import needs
import netCDF4
import numpy as np
import pytest
from numpy.typing import NDArray

import tamis
from tamis.arrays import Grid, Parts, Region
from tamis.arrays.grid import region
from tamis.filters import ChunkType, Filter
from tamis.formats.hdf5.chunk_access import chunk_type, pipeline_of

pytestmark = [pytest.mark.check, pytest.mark.xdist_group("interop matrix")]  # its files are made once

HERE = Path(__file__).resolve().parent
SHAPES = {(50,): (16,), (13, 21): (8, 8), (5, 9, 11): (2, 4, 11)}
TYPES = ["i1", "u1", "<i2", ">i2", "<u4", "<i4", ">i4", "<i8", ">u8", "<f4", ">f4", "<f8", ">f8"]
OTHER_TYPES = ["<f2", "S5", "bool", "<i4,>f8"]  # netCDF has none of these

GZIP, SHUFFLE, CHECKSUM, NBIT = [1, 1, [4]], [2, 1, []], [3, 0, []], [5, 1, []]
SZIP_NN, SZIP_EC, SCALEOFFSET, LZF = [4, 1, [32, 8]], [4, 1, [4, 16]], [6, 1, []], [32000, 1, []]

# Filters by the name of the file, for h5py at its low level.
H5PY: dict[str, list[Any]] = {
    "shuffle": [SHUFFLE],
    "gzip": [GZIP],
    "fletcher32": [CHECKSUM],
    "shuffle+gzip+fletcher32": [SHUFFLE, GZIP, CHECKSUM],  # h5py's order
    "fletcher32+shuffle+gzip": [CHECKSUM, SHUFFLE, GZIP],  # netCDF's and SWIFT's
    "gzip+gzip": [GZIP, [1, 0, [9]]],
    "lzf": [LZF],
    "shuffle+lzf+fletcher32": [SHUFFLE, LZF, CHECKSUM],
    "szip-nn": [SZIP_NN],
    "szip-ec+fletcher32": [SZIP_EC, CHECKSUM],
    "nbit": [NBIT],
    "nbit+gzip": [NBIT, GZIP],
    "scaleoffset": [SCALEOFFSET],
    "scaleoffset+shuffle+gzip": [SCALEOFFSET, SHUFFLE, GZIP],
    "fletcher32+shuffle+lzf": [CHECKSUM, SHUFFLE, LZF],
    "shuffle+szip": [SHUFFLE, SZIP_NN],
    "shuffle+szip+gzip": [SHUFFLE, SZIP_EC, GZIP],
    # What nbit does not pack HDF5 hands on as the whole buffer, not the bytes in it: only this it reads back.
    "shuffle+nbit": [SHUFFLE, NBIT],
}
PLUGINS: dict[str, list[Any]] = {
    "bzip2": [["BZip2", {"blocksize": 5}]],
    "zstd": [["Zstd", {"clevel": 3}]],
    "shuffle+zstd+fletcher32": [SHUFFLE, ["Zstd", {"clevel": -5}], CHECKSUM],
    "lz4": [["LZ4", {}]],
    "lz4-blocks": [["LZ4", {"nbytes": 64}]],
    **{f"bitshuffle-{name}": [["Bitshuffle", {"cname": name}]] for name in ("none", "lz4", "zstd")},
    "bitshuffle-blocks+fletcher32": [["Bitshuffle", {"nelems": 16, "cname": "lz4"}], CHECKSUM],
    **{
        f"blosc-{name}": [["Blosc", {"cname": name, "clevel": 5, "shuffle": shuffle}]]
        for shuffle, name in enumerate(("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"), start=1)
        for shuffle in [shuffle % 3]
    },
    **{
        f"blosc2-{name}": [["Blosc2", {"cname": name, "clevel": 5, "filters": shuffle}]]
        for shuffle, name in enumerate(("blosclz", "lz4", "zlib", "zstd"))
        for shuffle in [shuffle % 3]
    },
    "sz3-absolute": [["SZ3", {"absolute": 0.01}]],
    "sz3-relative+shuffle+gzip": [["SZ3", {"relative": 0.001}], SHUFFLE, GZIP],
    "sperr-rate": [["Sperr", {"rate": 8}]],
    "sperr-absolute+fletcher32": [["Sperr", {"absolute": 0.01}], CHECKSUM],
    "zfp-reversible": [["Zfp", {"reversible": True}]],
    "zfp-accuracy": [["Zfp", {"accuracy": 0.01}]],
    "zfp-rate+gzip": [["Zfp", {"rate": 11}], GZIP],
    "zfp-precision+fletcher32": [["Zfp", {"precision": 14}], CHECKSUM],
}
NETCDF: dict[str, dict[str, Any]] = {
    "zlib": {"compression": "zlib", "complevel": 1},
    "zlib+shuffle+fletcher32": {"compression": "zlib", "shuffle": True, "fletcher32": True},
    "zstd": {"compression": "zstd", "complevel": 4},
    "bzip2+fletcher32": {"compression": "bzip2", "complevel": 9, "fletcher32": True},
    "szip": {"compression": "szip", "szip_coding": "ec", "szip_pixels_per_block": 4},
    "blosc_lz4+shuffle": {"compression": "blosc_lz4", "blosc_shuffle": 1, "shuffle": True},
    "blosc_zstd": {"compression": "blosc_zstd", "blosc_shuffle": 2},
}
PYTABLES: dict[str, dict[str, Any]] = {
    "zlib": {"complib": "zlib", "complevel": 3, "fletcher32": True},
    "bzip2": {"complib": "bzip2", "complevel": 5},  # with two words of its own behind the level
    "bzip2+shuffle": {"complib": "bzip2", "complevel": 9, "shuffle": True},
    "blosc": {"complib": "blosc", "complevel": 5, "shuffle": True},
    "blosc-zstd": {"complib": "blosc:zstd", "complevel": 1, "bitshuffle": True},
    "blosc2": {"complib": "blosc2:lz4", "complevel": 5, "shuffle": True},
}
NCCOPY = {
    "deflate": "1,6",
    "shuffle+deflate": "2|1,2",
    "fletcher32+deflate": "3|1,9",
    "zfp-rate": "32013,1,0,0,1076363264",
}
H5REPACK = {
    "gzip": ["GZIP=5"],
    "shuffle+gzip+fletcher32": ["SHUF", "GZIP=1", "FLET"],
    "szip": ["SZIP=8,NN"],
    "nbit": ["NBIT"],
    "scaleoffset": ["SOFF=0,IN"],
    "zfp-reversible": ["UD=32013,0,1,5"],
    "zfp-accuracy": ["UD=32013,0,4,3,0,0,1065646817"],
}
CASES = [
    (writer, name)
    for writer, cases in (
        ("h5py", H5PY),
        ("hdf5plugin", PLUGINS),
        ("netcdf4", NETCDF),
        ("pytables", PYTABLES),
        ("nccopy", NCCOPY),
        ("h5repack", H5REPACK),
    )
    for name in cases
]


def name_of(dtype: str, shape: tuple[int, ...]) -> str:
    text = "".join({"<": "le_", ">": "be_", ",": "_"}.get(letter, letter) for letter in dtype)
    return f"{text}_{'x'.join(map(str, shape))}"


def values_of(dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Something smooth, then noise, then zeros: what can be compressed well, not at all, and to next to nothing."""
    rng = np.random.default_rng(len(shape))
    size = int(np.prod(shape))
    smooth = np.sin(np.arange(size) / 9) * 50 + 60
    made = np.dtype(dtype)
    if made.kind in "iu":
        limits = np.iinfo(made)
        values = smooth.astype(made)
        noise = rng.integers(limits.min, limits.max, size, dtype=made.newbyteorder("="), endpoint=True)
    elif made.kind == "f":
        values, noise = smooth.astype(made), rng.standard_normal(size)
    elif made.kind == "b":
        values, noise = smooth > 60, rng.integers(0, 2, size)
    elif made.names:
        values = np.zeros(size, made)
        for name in made.names:
            values[name] = smooth
        noise = values[::-1]
    else:
        values = np.array([f"{value:.1f}" for value in smooth], made)
        noise = rng.integers(33, 126, (size, made.itemsize), dtype="u1").view(made).ravel()
    third = size // 3
    values[third : 2 * third] = noise[third : 2 * third].astype(made)
    values[2 * third :] = np.zeros(1, made)
    return values.reshape(shape)


DATA = {name_of(dtype, shape): values_of(dtype, shape) for dtype in TYPES + OTHER_TYPES for shape in SHAPES}
NUMBERS = [name_of(dtype, shape) for dtype in TYPES for shape in SHAPES]
FLOATS = [name for name in NUMBERS if DATA[name].dtype.kind == "f" and DATA[name].dtype.isnative]


def run(*command: str | Path, plugins: Path | None = None) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HDF5_PLUGIN")}
    env = clean | ({} if plugins is None else {"HDF5_PLUGIN_PATH": str(plugins)})
    needs.need(command[0])
    done = subprocess.run([str(each) for each in command], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command} gave {done.returncode}: {done.stderr[-3000:]}"
    return done.stdout


def peer(folder: Path, plain: Path, read: list[Path], write: dict[str, list[Any]]) -> None:
    """Have a process with hdf5plugin, and without tamis, write and read files."""
    tasks = folder / "tasks.json"
    tasks.write_text(json.dumps({"plain": str(plain), "write": write, "read": [str(path) for path in read]}))
    assert "read all" in run(sys.executable, HERE / "interop_peer.py", tasks)


def write_netcdf(folder: Path) -> Path:
    """Let netCDF4 write its files, and one without filters."""
    plain = folder / "plain.nc"
    files: dict[str, Any] = {str(folder / f"netcdf4-{name}.h5"): keywords for name, keywords in NETCDF.items()}
    chunks = {name: SHAPES[DATA[name].shape] for name in NUMBERS}
    work = folder / "netcdf"
    work.mkdir()
    (work / "tasks.json").write_text(json.dumps({"files": {**files, str(plain): {}}, "chunks": chunks}))
    np.savez(work / "values.npz", **{name: DATA[name] for name in NUMBERS})
    run(sys.executable, HERE / "interop_netcdf.py", work, plugins=Path(netCDF4.__file__).parent / "plugins")
    return plain


def write_pytables(folder: Path) -> None:
    """Let PyTables write its files."""
    files = {str(folder / f"pytables-{name}.h5"): keywords for name, keywords in PYTABLES.items()}
    work = folder / "pytables"
    work.mkdir()
    native = [name for name in NUMBERS if DATA[name].dtype.isnative]  # others it would swap
    tasks = {"files": files, "chunks": {name: SHAPES[DATA[name].shape] for name in native}}
    (work / "tasks.json").write_text(json.dumps(tasks))
    np.savez(work / "values.npz", **{name: DATA[name] for name in NUMBERS})
    run(sys.executable, HERE / "interop_pytables.py", work)


def write_tools(folder: Path, plain: Path, plain_netcdf: Path) -> None:
    """Let nccopy and h5repack write theirs, ZFP with our plugin."""
    plugins = tamis.plugin_path()
    for name, spec in NCCOPY.items():
        only = "&".join(FLOATS) if "32013" in spec else "*"
        run("nccopy", "-F", f"{only},{spec}", plain_netcdf, folder / f"nccopy-{name}.h5", plugins=plugins)
    for name, filters in H5REPACK.items():
        only = ",".join(FLOATS) + ":" if "zfp" in name else ""
        only = ",".join(NUMBERS) + ":" if name in ("szip", "nbit", "scaleoffset") else only
        options = [part for each in filters for part in ("-f", f"{only}{each}")]
        run("h5repack", *options, plain, folder / f"h5repack-{name}.h5", plugins=plugins)


@pytest.fixture(scope="session")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all files, each with what libhdf5 reads from it beside it."""
    folder = tmp_path_factory.mktemp("interop")
    plain = folder / "plain.h5"
    with h5py.File(plain, "w") as file:
        for name, values in DATA.items():
            file.create_dataset(name, data=values, chunks=SHAPES[values.shape])
    write_tools(folder, plain, write_netcdf(folder))
    write_pytables(folder)
    made: dict[str, list[Any]] = {
        str(folder / f"{writer}-{name}.h5"): filters
        for writer, cases in (("h5py", H5PY), ("hdf5plugin", PLUGINS))
        for name, filters in cases.items()
    }
    peer(folder, plain, [folder / f"{writer}-{name}.h5" for writer, name in CASES], made)
    return folder


def chunks_of(found: h5py.Dataset) -> Iterator[tuple[tuple[int, ...], bytes, int]]:
    infos = [found.id.get_chunk_info(index) for index in range(found.id.get_num_chunks())]
    for info in infos:
        yield info.chunk_offset, found.id.read_direct_chunk(info.chunk_offset)[1], info.filter_mask


def filtered(path: Path) -> Iterator[tuple[str, h5py.Dataset, bytes]]:
    """Datasets with filters, and what libhdf5 reads from them."""
    with h5py.File(path) as file, h5py.File(f"{path}.values") as values:
        for name in DATA:
            if name in file and file[name].id.get_create_plist().get_nfilters():
                yield name, file[name], values[name][...].tobytes()


@pytest.mark.parametrize(("writer", "name"), CASES)
def test_decode_file_of_another_library_as_libhdf5_reads_it(theirs: Path, writer: str, name: str) -> None:
    count = 0
    for at, found, expected in filtered(theirs / f"{writer}-{name}.h5"):
        pipeline, chunk = pipeline_of(found), chunk_type(found)
        assert not pipeline.missing()
        values = np.zeros(found.shape, chunk.dtype)
        for origin, data, mask in chunks_of(found):
            part = region(origin, found.shape, chunk.shape)
            values[part] = pipeline.decode(data, mask, chunk)[tuple(slice(each.stop - each.start) for each in part)]
        assert values.tobytes() == expected, f"{at}: {pipeline}"
        count += 1
    assert count >= 4


# The other way


LOSSY = ("zfp-accuracy", "zfp-rate", "zfp-precision", "scaleoffset", "sperr", "sz3")


def rewrite(path: Path, target: Path) -> dict[str, bytes]:
    """Put chunks encoded by us in place of all chunks of a file, each without other filters; give what they hold."""
    shutil.copyfile(path, target)
    held: dict[str, bytes] = {}
    with h5py.File(target, "r+") as file:
        for turn, name in enumerate(DATA):
            if name in file and file[name].id.get_create_plist().get_nfilters():
                held[name] = rewrite_dataset(file[name], turn)
    return held


def rewrite_dataset(found: h5py.Dataset, turn: int) -> bytes:
    shape, pipeline, chunk = found.shape, pipeline_of(found), chunk_type(found)
    assert not pipeline.missing()
    values = np.zeros(shape, chunk.dtype)
    # Chunks that were there would keep their masks (D20).
    found.id.set_extent((0,) * len(shape))
    found.id.set_extent(shape)
    kinds: list[type[Filter]] = [type(each) for each in pipeline.filters]
    parts = Parts(Grid(shape, chunk.shape))
    for at, part in enumerate(parts, start=turn):
        skip = [(), kinds[:1], kinds[-1:], kinds, ()][at % 5]
        data, mask = pipeline.encode(whole(found.name.strip("/"), part, chunk), skip=skip)
        assert all(mask >> i & 1 for i, kind in enumerate(kinds) if kind in skip)
        found.id.write_direct_chunk(tuple(each.start for each in part), data, mask)
        again = pipeline.decode(data, mask, chunk)
        values[part] = again[tuple(slice(each.stop - each.start) for each in part)]
    return values.tobytes()


def whole(name: str, part: Region, chunk: ChunkType) -> NDArray[Any]:
    """The values of a chunk, with zeros beyond the array."""
    made = np.zeros(chunk.shape, chunk.dtype)
    made[tuple(slice(each.stop - each.start) for each in part)] = DATA[name][part]
    return made


@dataclass(frozen=True)
class Ours:
    """A file with our chunks: what they hold by our decoder, or what went wrong."""

    path: Path
    held: dict[str, bytes]
    problem: Exception | None = None


@pytest.fixture(scope="session")
def ours(theirs: Path) -> dict[tuple[str, str], Ours]:
    """A file with our chunks for each of theirs, read by the peer, all in one process."""
    made: dict[tuple[str, str], Ours] = {}
    for writer, name in CASES:
        target = theirs / f"ours-{writer}-{name}.h5"
        try:
            made[writer, name] = Ours(target, rewrite(theirs / f"{writer}-{name}.h5", target))
        except Exception as error:  # told by the test of this file
            made[writer, name] = Ours(target, {}, error)
    peer(theirs, theirs / "plain.h5", [each.path for each in made.values() if not each.problem], {})
    return made


@pytest.mark.parametrize(("writer", "name"), CASES)
def test_encode_into_file_of_another_library_libhdf5_reads_what_we_hold(
    ours: dict[tuple[str, str], Ours], writer: str, name: str
) -> None:
    file = ours[writer, name]
    if file.problem:
        raise file.problem
    assert len(file.held) >= 4
    masks: set[int] = set()
    for at, found, read in filtered(file.path):
        assert file.held[at] == read, f"{at}: {pipeline_of(found)}"
        masks |= {mask for *_, mask in chunks_of(found)}
        if not name.startswith(LOSSY):
            assert read == DATA[at].tobytes(), f"{at}: {pipeline_of(found)}"
    # It needs larger chunks than these: see tests/filters/library_files.py.
    if name.startswith("blosc-snappy"):
        assert all(mask & 1 for mask in masks)
    else:
        assert 0 in masks  # where every filter works
        assert len(masks) > 1


STANDARD = [(writer, name) for writer, name in CASES if writer in ("h5py", "h5repack") and "lzf" not in name]


@pytest.mark.peer
@pytest.mark.parametrize(("writer", "name"), STANDARD)
def test_encode_into_file_of_another_library_an_older_libhdf5_reads_it_too(
    ours: dict[tuple[str, str], Ours], writer: str, name: str, tmp_path: Path
) -> None:
    """h5repack takes all filters off."""
    file = ours[writer, name]
    if file.problem:
        raise file.problem
    plain = tmp_path / "plain.h5"
    run("h5repack", "-f", "NONE", file.path, plain, plugins=tamis.plugin_path())
    with h5py.File(plain) as read:
        for at, held in file.held.items():
            assert not read[at].id.get_create_plist().get_nfilters()
            assert read[at][...].tobytes() == held, at
