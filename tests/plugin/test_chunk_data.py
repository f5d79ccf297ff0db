"""Known defects that show in the bytes of chunks: D7, D8, D12, D14, D19."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

import tamis
from tamis import DataError, ParameterError, StreamError

Run = Callable[..., str]
Craft = Callable[..., None]

SMOOTH = np.sin(np.arange(4000) / 90).reshape(40, 100) * 26
CHUNKS = (10, 100)

# Reads the chunk that starts at a row, in a process without filter 32013, as bytes in hexadecimal.
READ_CHUNK = """
import sys, h5py
with h5py.File(sys.argv[1]) as file:
    row = int(sys.argv[2])
    print(file["v"][row : row + 10].tobytes().hex())
"""


def double(number: float) -> tuple[int, int]:
    first, second = struct.unpack("=II", struct.pack("=d", number))
    return first, second


def masks(dataset: h5py.Dataset) -> list[int]:
    return [dataset.id.get_chunk_info(i).filter_mask for i in range(dataset.id.get_num_chunks())]


def long_header(dtype: str, nvalues: int, minbits: int, maxbits: int, maxprec: int, minexp: int) -> tuple[int, ...]:
    """Give stored parameters of an expert mode that our writer refuses."""
    kind = {"i4": 0, "i8": 1, "f4": 2, "f8": 3}[dtype]
    mode = (minbits - 1) | (maxbits - 1) << 15 | (maxprec - 1) << 30 | (minexp + 16495) << 37
    bits = int.from_bytes(b"zfp\x05", "little") | ((nvalues - 1) << 4 | kind) << 32 | 0xFFF << 84 | mode << 96
    return (0x10105111, *((bits >> 32 * i) & 0xFFFFFFFF for i in range(5)))


@pytest.mark.parametrize(("dtype", "least"), [("f4", 9), ("f8", 12)])
def test_d07_maxbits_below_block_header_is_refused_on_write(tmp_path: Path, dtype: str, least: int) -> None:
    """D7: refuse on write."""
    values = SMOOTH.astype(dtype)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for maxbits in (1, 4, least - 1):
            zfp = tamis.Zfp(minbits=1, maxbits=maxbits)
            with pytest.raises(ValueError, match=f"expected maxbits of at least {least}, which the header of a float"):
                file.create_dataset("v", data=values, chunks=CHUNKS, **zfp)
            with pytest.raises(ParameterError, match=f"expected maxbits of at least {least} for {values.dtype}"):
                tamis.zfp.encode(values, zfp.mode)
        # With minexp below -1074 the header is that of reversible blocks, and longer.
        longer = f"expected maxbits of at least {1 + least + 5 + (dtype == 'f8')}"
        for maxbits, message in ((1, longer), (0, "maxbits >= 1")):
            words = (4, 0, 0, maxbits, 64, 0xFFFFF000)
            with pytest.raises(ValueError, match=message):
                file.create_dataset("v", data=values, chunks=CHUNKS, compression=32013, compression_opts=words)
        assert list(file) == []
        file.create_dataset("v", data=values, chunks=CHUNKS, **tamis.Zfp(minbits=1, maxbits=least))


@pytest.mark.matrix
@pytest.mark.peer
@pytest.mark.parametrize("maxbits", [1, 4, 11])
def test_d07_file_with_maxbits_below_block_header_fails_cleanly_on_read(
    tmp_path: Path, craft: Craft, tool: Run, maxbits: int
) -> None:
    """D7: a file that has it fails cleanly on read."""
    path = tmp_path / "small.h5"
    craft(path, "f8", (64,), long_header("f8", 64, 1, maxbits, 64, -1074), b"\xff" * 100)
    with h5py.File(path) as file, pytest.raises(OSError, match="expected maxbits of at least 12"):
        file["v"][...]
    said = tool("h5dump", "--enable-error-stack", "-d", "v", path, code=1)
    assert "expected maxbits of at least 12, which the header of a float64 block takes" in said
    # Its neighbour is read.
    craft(path, "f8", (64,), long_header("f8", 64, 1, 12, 64, -1074), b"\0" * 100)
    with h5py.File(path) as file:
        assert not file["v"][...].any()


UNFIT = [
    ("f4", np.nan), ("f8", np.nan), ("f4", np.inf), ("f8", -np.inf),
    ("i4", 2**30), ("i4", -(2**30)), ("i4", -(2**31)), ("i8", 2**62), ("i8", -(2**63)),
]  # fmt: skip


def with_unfit(dtype: str, value: float) -> NDArray[Any]:
    values = (SMOOTH * {"f4": 1e3, "f8": 1e3, "i4": 1e7, "i8": 1e16}[dtype]).astype(dtype)
    values[23, 45] = value
    return values


@pytest.mark.matrix
@pytest.mark.parametrize(("dtype", "value"), UNFIT)
@pytest.mark.parametrize("zfp", [tamis.Zfp(accuracy=300), tamis.Zfp(rate=12), tamis.Zfp(precision=20)], ids=str)
def test_d08_and_d12_optional_filter_leaves_unfit_chunk_raw(
    tmp_path: Path, without_plugins: Run, zfp: tamis.Zfp, dtype: str, value: float
) -> None:
    """D8: an optional filter leaves that chunk raw by its mask (exact, readable everywhere)."""
    values, path = with_unfit(dtype, value), tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=values, chunks=CHUNKS, **zfp)
    with h5py.File(path) as file:
        assert masks(file["v"]) == [0, 0, 1, 0]
        assert file["v"].id.read_direct_chunk((20, 0)) == (1, values[20:30].tobytes())
        decoded = file["v"][...]
    assert decoded[20:30].tobytes() == values[20:30].tobytes()
    others = np.r_[0:20, 30:40]
    assert (decoded[others] != values[others]).any()
    assert np.allclose(decoded[others], values[others], rtol=0, atol=1e-2 * np.abs(values[others]).max())
    if zfp == tamis.Zfp(accuracy=300):
        assert bytes.fromhex(without_plugins(READ_CHUNK, path, "20")) == values[20:30].tobytes()


def test_d08_chunks_that_are_filtered_need_the_plugin(tmp_path: Path, python: Run) -> None:
    """What tells a raw chunk from the others in the test above."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=with_unfit("f8", np.nan), chunks=CHUNKS, **tamis.Zfp(accuracy=300))
    said = python(READ_CHUNK, tmp_path / "a.h5", "0", env={"HDF5_PLUGIN_PRELOAD": "::"}, exit_code=1)
    assert "filter plugins disabled" in said


# h5py may crash once a required filter has failed (it does with HDF5 2.0), so what matters is said before.
REQUIRED = """
import os, sys
import h5py, numpy as np, tamis
from h5py import h5d, h5p, h5s, h5t
path, values = sys.argv[1], np.load(sys.argv[2])
plist = h5p.create(h5p.DATASET_CREATE)
plist.set_chunk((10, 100))
plist.set_filter(32013, 0, tamis.Zfp(accuracy=300).requested)
file = h5py.File(path, "w")
dataset = h5py.Dataset(h5d.create(file.id, b"v", h5t.py_create(values.dtype), h5s.create_simple((40, 100)), plist))
try:
    dataset[...] = values
    file.flush()
except (OSError, RuntimeError) as error:
    print("failed:", error)
else:
    print("written")
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("dtype", "value", "message"),
    [
        ("f8", np.nan, "zfp: NaN or infinity at value 345 of the chunk"),
        ("f4", -np.inf, "zfp: NaN or infinity at value 345 of the chunk"),
        ("i4", 2**30, r"zfp: integer out of range at value 345 of the chunk: lossy modes take magnitudes below 2^30"),
        (
            "i8",
            -(2**63),
            r"zfp: integer out of range at value 345 of the chunk: lossy modes take magnitudes below 2^62",
        ),
    ],
)
def test_d08_and_d12_required_filter_fails_with_message(
    tmp_path: Path, python: Run, dtype: str, value: float, message: str
) -> None:
    """D8: a required one fails with the message."""
    values = with_unfit(dtype, value)
    np.save(tmp_path / "values.npy", values)
    said = python(REQUIRED, tmp_path / "a.h5", tmp_path / "values.npy")
    assert said.startswith("failed: ")
    assert message in said


def test_d08_required_filter_leaves_no_wrong_values(tmp_path: Path, python: Run) -> None:
    """D8: a required one fails; what is in the file after it is right or not there."""
    values = with_unfit("f8", np.nan)
    np.save(tmp_path / "values.npy", values)
    # Left to close as it can: h5py with HDF5 2.0 dies of it, which is no affair of ours.
    lines = [line for line in REQUIRED.splitlines() if line != "os._exit(0)"]
    survive = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', *sys.argv[1:]])\n"
    said = python(survive, "\n".join(lines), tmp_path / "a.h5", tmp_path / "values.npy")
    assert "failed: " in said
    with h5py.File(tmp_path / "a.h5") as file:
        offsets = [file["v"].id.get_chunk_info(i).chunk_offset for i in range(file["v"].id.get_num_chunks())]
        assert (20, 0) not in offsets
        assert set(masks(file["v"])) <= {0}
        decoded = file["v"][...]
    for row, _ in offsets:
        assert np.abs(decoded[row : row + 10] - values[row : row + 10]).max() <= 300


def test_d08_codec_names_first_index() -> None:
    """D8: codec: error naming the first index."""
    with pytest.raises(DataError, match=r"found NaN or infinity at index \(23, 45\): use reversible=True"):
        tamis.zfp.encode(with_unfit("f4", np.inf), tamis.zfp.Accuracy(0.1))


@pytest.mark.matrix
@pytest.mark.parametrize(("dtype", "value"), UNFIT)
def test_d08_and_d12_repack_stores_unfit_chunk_without_loss(
    tmp_path: Path, without_plugins: Run, dtype: str, value: float
) -> None:
    """D8, D12: per chunk fall back to lossless in repack."""
    values = with_unfit(dtype, value)
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.create_dataset("v", data=values, chunks=CHUNKS)
    result = tamis.repack(tmp_path / "in.h5", tmp_path / "out.h5", {"v": "zfp(accuracy=64)|shuffle|deflate(4)"})
    assert result.datasets[0].lossless_chunks == 1
    assert 0 < result.datasets[0].largest_error <= 64
    with h5py.File(tmp_path / "out.h5") as file:
        assert masks(file["v"]) == [6, 6, 1, 6]
        assert file["v"][20:30].tobytes() == values[20:30].tobytes()
    assert bytes.fromhex(without_plugins(READ_CHUNK, tmp_path / "out.h5", "20")) == values[20:30].tobytes()


@pytest.mark.parametrize(("dtype", "value"), [*UNFIT, ("f8", -0.0)])
def test_d08_and_d12_reversible_keeps_every_bit(tmp_path: Path, dtype: str, value: float) -> None:
    """D12: reversible is fine."""
    values = with_unfit(dtype, value)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=values, chunks=CHUNKS, **tamis.Zfp(reversible=True))
    with h5py.File(tmp_path / "a.h5") as file:
        assert masks(file["v"]) == [0] * 4
        assert file["v"][...].tobytes() == values.tobytes()


@pytest.mark.peer
@pytest.mark.parametrize(
    "zfp", [tamis.Zfp(accuracy=1e-3), tamis.Zfp(rate=9), tamis.Zfp(precision=20), tamis.Zfp(reversible=True)], ids=str
)
def test_d14_truncated_chunk_is_an_error(tmp_path: Path, tool: Run, zfp: tamis.Zfp) -> None:
    """D14: truncation is an error."""
    stream = tamis.zfp.encode(SMOOTH[:10], zfp.mode)
    for keep in (1, 2, len(stream) // 2, len(stream) - 1):
        with h5py.File(tmp_path / f"{keep}.h5", "w") as file:
            made = file.create_dataset("v", (10, 100), "f8", chunks=CHUNKS, **zfp)
            made.id.write_direct_chunk((0, 0), stream[:keep])
        with h5py.File(tmp_path / f"{keep}.h5") as file, pytest.raises(OSError, match="chunk is truncated or damaged"):
            file["v"][...]
        with pytest.raises(StreamError, match="truncated"):
            tamis.zfp.decode(stream[:keep], CHUNKS, "f8", zfp.mode)
    said = tool("h5dump", "--enable-error-stack", "-d", "v", tmp_path / f"{len(stream) - 1}.h5", code=1)
    assert "zfp: chunk is truncated or damaged: its data end inside block 74" in said


def test_d14_zeros_after_a_stream_are_no_error(tmp_path: Path) -> None:
    """D14: libzfp with 64-bit words leaves up to seven bytes after the stream."""
    stream = tamis.zfp.encode(SMOOTH[:10], tamis.zfp.Reversible())
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = file.create_dataset("v", (10, 100), "f8", chunks=CHUNKS, **tamis.Zfp(reversible=True))
        made.id.write_direct_chunk((0, 0), stream + bytes(7))
    with h5py.File(tmp_path / "a.h5") as file:
        assert np.array_equal(file["v"][...], SMOOTH[:10])


@pytest.mark.peer
def test_d14_repack_adds_checksum_that_finds_damage(tmp_path: Path, tool: Run) -> None:
    """D14: checksum (fletcher32 after zfp) is repack's default for lossy output."""
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.create_dataset("v", data=SMOOTH, chunks=CHUNKS)
    result = tamis.repack(tmp_path / "in.h5", tmp_path / "out.h5", {"v": "zfp(accuracy=1e-3)"})
    assert result.datasets[0].pipeline == "zfp(accuracy=0.001)|fletcher32"
    with h5py.File(tmp_path / "out.h5") as file:
        plist = file["v"].id.get_create_plist()
        assert [plist.get_filter(i)[0] for i in range(plist.get_nfilters())] == [32013, 3]
        info = file["v"].id.get_chunk_info(1)
    damaged = bytearray((tmp_path / "out.h5").read_bytes())
    damaged[info.byte_offset + info.size // 2] ^= 0x10
    (tmp_path / "damaged.h5").write_bytes(damaged)
    with h5py.File(tmp_path / "damaged.h5") as file:
        assert np.abs(file["v"][:10] - SMOOTH[:10]).max() <= 1e-3
        with pytest.raises(OSError, match="read"):
            file["v"][10:20]
    assert "checksum" in tool("h5dump", "--enable-error-stack", "-d", "v", tmp_path / "damaged.h5", code=1)


# Five axes and an optional filter: hdf5plugin leaves the parameters as requested and every chunk raw.
FIVE_AXES = """
import sys, h5py, hdf5plugin, numpy as np
values = np.load(sys.argv[2])
with h5py.File(sys.argv[1], "w") as file:
    file.create_dataset("v", data=values, maxshape=(None, 4, 4, 4, 8), chunks=(4,) * 5, **hdf5plugin.Zfp(accuracy=1e-3))
"""


@pytest.fixture
def five_axes(tmp_path: Path, python: Run) -> tuple[Path, NDArray[Any]]:
    values = np.random.default_rng(19).standard_normal((4, 4, 4, 4, 8))
    np.save(tmp_path / "values.npy", values)
    python(FIVE_AXES, tmp_path / "five.h5", tmp_path / "values.npy")
    return tmp_path / "five.h5", values


@pytest.mark.peer
def test_d19_file_whose_filter_was_never_set_up_is_read(five_axes: tuple[Path, NDArray[Any]], tool: Run) -> None:
    """D19: our filter itself declines cleanly."""
    path, values = five_axes
    with h5py.File(path) as file:
        assert file["v"].id.get_create_plist().get_filter(0)[2][:2] == (3, 0)
        assert masks(file["v"]) == [1, 1]
        assert np.array_equal(file["v"][...], values)
    tool("h5dump", "-d", "v", "-b", "NATIVE", "-o", path.with_suffix(".bin"), path)
    assert path.with_suffix(".bin").read_bytes() == values.tobytes()


def test_d19_file_whose_filter_was_never_set_up_is_written_exactly(five_axes: tuple[Path, NDArray[Any]]) -> None:
    """D19: our filter itself declines cleanly."""
    path, values = five_axes
    with h5py.File(path, "r+") as file:
        file["v"][0] = 2 * values[0]
        file["v"].resize(8, 0)
        file["v"][4:] = 3 * values
    values[0] *= 2
    with h5py.File(path) as file:
        assert np.array_equal(file["v"][:4], values)
        assert masks(file["v"]) == [1, 1, 1, 1]


@pytest.mark.parametrize("kind", ["<f4", [("n", "u1"), ("x", "<f8")]])
def test_edge_chunk_without_its_end_is_read_as_by_hdf5(kind: Any, tmp_path: Path) -> None:
    """Some programs (seen in fast5 files) store only what is inside the dataset."""
    numbers = np.arange(77.0).reshape(7, 11)
    values = np.zeros((7, 11), kind)
    values[... if kind == "<f4" else "x"] = numbers
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("x", values.shape, kind, chunks=(4, 6), compression="gzip", shuffle=False)
        for origin in ((0, 0), (0, 6), (4, 0), (4, 6)):
            rows, columns = min(4, 7 - origin[0]), min(6, 11 - origin[1])
            chunk = np.zeros((4, 6), kind)
            chunk[:rows, :columns] = values[origin[0] : origin[0] + rows, origin[1] : origin[1] + columns]
            count = (rows - 1) * 6 + columns
            dataset.id.write_direct_chunk(origin, zlib.compress(chunk.reshape(-1)[:count].tobytes()))
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["x"][()].tobytes() == values.tobytes()
    with tamis.open(tmp_path / "a.h5") as file:
        assert file["x"][()].tobytes() == file["x"][0:7].tobytes() == values.tobytes()
        assert file["x"][6, 10] == values[6, 10]
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"x": "shuffle|deflate"}, larger=True)
    assert tamis.verify(tmp_path / "a.h5", tmp_path / "b.h5").ok
    with h5py.File(tmp_path / "a.h5", "a") as file:
        file["x"].id.write_direct_chunk((4, 6), zlib.compress(values.tobytes()[:5]))
    with tamis.open(tmp_path / "a.h5") as file, pytest.raises(tamis.FileError, match="expected a chunk of"):
        file["x"][()]
