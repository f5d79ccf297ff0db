"""Damaged chunks and parameters: an error that says so, or other bytes where nothing tells; never anything else."""

from __future__ import annotations

import bz2
import os
import random
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import zstandard

from tamis import (
    Bitshuffle,
    Blosc,
    Blosc2,
    Bzip2,
    Deflate,
    Lz4,
    Lzf,
    Nbit,
    ParameterError,
    Scaleoffset,
    StreamError,
    Szip,
    Zstd,
)
from tamis.filters import ChunkType, Filter

CHUNK = ChunkType(np.dtype("i4"), (20, 30))
VALUES = (np.arange(600, dtype="i4") // 3 % 101).tobytes()
FILTERS: list[Filter] = [
    Deflate(4),
    Bzip2(1),
    Zstd(3),
    Lzf(),
    Lz4(),
    Lz4(500),
    Szip("nn", 8),
    Szip("ec", 32),
    Nbit(),
    Scaleoffset("integer", 0),
    *[Blosc(name, 5, shuffle) for name in ("blosclz", "lz4", "snappy", "zlib", "zstd") for shuffle in ("byte", "bit")],
    *[
        Blosc2(name, 5, shuffle)
        for name in ("blosclz", "lz4", "zlib", "zstd")
        for shuffle in ("byte", "bit", "bytedelta")
    ],
    *[Bitshuffle(name, block=block) for name in ("none", "lz4", "zstd") for block in (0, 8, 64)],
]
# A stream of these that is cut is known to be cut; the others have no end of their own, or no size.
ENDED = (Deflate, Bzip2, Zstd, Lzf, Lz4, Blosc, Blosc2)

WORDS = (0, 1, 2, 3, 7, 8, 16, 255, 256, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def sample(one: Filter) -> tuple[bytes, tuple[int, ...]]:
    stored = one.stored(CHUNK)
    return bytes(one.encode(VALUES, CHUNK, stored)), stored


@pytest.mark.parametrize("one", [each for each in FILTERS if isinstance(each, ENDED)], ids=str)
def test_decode_every_truncation_refused(one: Filter) -> None:
    data, stored = sample(one)
    for nbytes in range(len(data)):
        # Blosc2 has a trailer and offsets behind the chunk, that nothing needs.
        if isinstance(one, Blosc2) and nbytes >= len(data) - 80:
            break
        try:
            plain = one.decode(data[:nbytes], CHUNK, stored)
        except StreamError:
            continue
        # Between two tokens of lzf a cut cannot be seen, but by the size.
        assert isinstance(one, Lzf | Zstd), f"cut at {nbytes} of {len(data)}"
        assert len(plain) < CHUNK.nbytes


def mutations(data: bytes, stored: tuple[int, ...], count: int) -> Iterator[tuple[bytes, tuple[int, ...]]]:
    """Bits, bytes, words of the header, ends and parameters that are others."""
    source = random.Random(len(data))
    for _ in range(count):
        damaged, words = bytearray(data), list(stored)
        for _ in range(source.choice((1, 1, 2, 5))):
            match source.randrange(6):
                case 0 | 1:
                    damaged[source.randrange(len(damaged))] ^= 1 << source.randrange(8)
                case 2:
                    damaged = damaged[: source.randrange(1, len(damaged) + 1)]
                case 3 if len(damaged) > 8:
                    at = source.randrange(min(48, len(damaged) - 4))
                    damaged[at : at + 4] = struct.pack(source.choice("<>") + "I", source.choice(WORDS))
                case 4:
                    damaged += source.randbytes(source.randrange(40))
                case 5 if words:
                    words[source.randrange(len(words))] = source.choice(WORDS)
        yield bytes(damaged), tuple(words)


# Frames that are read by tamis itself: more of them here, and as many as TAMIS_MUTATIONS says.
OWN = (Lz4, Bitshuffle, Blosc2, Lzf, Szip)
USUAL, MANY = 600, int(os.environ.get("TAMIS_MUTATIONS", "2000"))


@pytest.mark.matrix
@pytest.mark.parametrize("one", FILTERS, ids=str)
def test_decode_mutated_chunks_and_parameters_error_or_bytes_within_bounds(one: Filter) -> None:
    data, stored = sample(one)
    refused = 0
    for damaged, words in mutations(data, stored, MANY if isinstance(one, OWN) else USUAL):
        try:
            plain = type(one).from_values(words).decode(damaged, CHUNK, words)
        except (StreamError, ParameterError):
            refused += 1
        else:
            assert len(plain) <= CHUNK.most_nbytes
    # Any bytes are a chunk of these: where bitshuffle compresses nothing, and where nbit leaves no bit out.
    assert refused or one.name in ("bitshuffle", "nbit")


BOMB = 1 << 31


@pytest.mark.parametrize(
    ("one", "data", "message"),
    [
        (Bzip2(), bz2.compress(bytes(10 << 20)), "bzip2 stream is truncated, or holds more than a chunk"),
        (Bzip2(), b"BZh9nonsense", "bzip2 stream is damaged: Invalid data stream"),
        (Zstd(), b"nonsense", "zstd frame is damaged: "),
        (Zstd(), bytes.fromhex("28b52ffda0000000800100000000"), "zstd frame claims 2147483648 bytes, more than the "),
        (Lz4(), b"short", "expected a header of 12 bytes of lz4, got 5 bytes"),
        (Lz4(), struct.pack(">QI", BOMB, BOMB) + bytes(99), f"lz4 header claims {BOMB} bytes in blocks of {BOMB}, for"),
        (Lz4(), struct.pack(">QI", 2400, 0) + bytes(99), "lz4 header claims 2400 bytes in blocks of 0"),
        (Lz4(), struct.pack(">QII", 2400, 2400, 100) + bytes(99), "a block needs 100 bytes, 99 are left"),
        (Lz4(), struct.pack(">QI", 2400, 1) + bytes(3), "it ends at byte 15, before the size of a block"),
        (Lz4(), struct.pack(">QII", 99, 99, 9) + bytes(9), "lz4 block is damaged|expected an lz4 block of 99 bytes"),
        (Lzf(), b"\x1fno", "lzf stream is truncated or damaged: "),
        (Blosc(), b"short", "expected a blosc header of 16 bytes, got 5 bytes"),
        (Blosc(), struct.pack("<BBBBIII", 5, 1, 1, 4, 99, 99, 50) + bytes(99), "expected format 1 or 2 of a blosc"),
        (Blosc(), struct.pack("<BBBBIII", 2, 1, 1, 4, 99, 99, 50), "blosc header claims 50 bytes here, got 16: trunc"),
        (Blosc(), struct.pack("<BBBBIII", 2, 1, 1, 4, BOMB, 99, 50) + bytes(99), f"claims {BOMB} bytes, more than the"),
        (Blosc(), struct.pack("<BBBBIII", 2, 1, 1, 4, 99, 0, 50) + bytes(99), "invalid blosc header: "),
        (Blosc(), struct.pack("<BBBBIII", 2, 1, 1, 4, 2400, 1, 50) + bytes(99), "invalid blosc header: "),
        (Blosc2(), b"nonsense", "expected a blosc2 frame, got bytes 6e 6f 6e"),
        (Blosc2(), b"\x9e\xa8b2frame\0\xd2", "blosc2 frame of 11 bytes is truncated or damaged: "),
        (Szip(), b"\1", "expected a size of 4 bytes in front of szip, got 1 bytes"),
        (Szip(), struct.pack("<I", BOMB) + bytes(99), f"szip header claims {BOMB} bytes, for 103 bytes here"),
        (Bitshuffle("lz4"), b"short", "expected a header of 12 bytes of bitshuffle, got 5 bytes"),
        (Bitshuffle("lz4"), struct.pack(">QI", BOMB, 64), f"invalid bitshuffle header: {BOMB} bytes in blocks of 64"),
        (Bitshuffle("lz4"), struct.pack(">QI", 2400, 0), "invalid bitshuffle header: 2400 bytes in blocks of 0"),
        (Bitshuffle("zstd"), struct.pack(">QI", 2400, 36), "invalid bitshuffle header: 2400 bytes in blocks of 36"),
        (Bitshuffle("zstd"), struct.pack(">QII", 2400, 2400 + 32, 7), "a block needs 7 bytes, 0 are left"),
        (Bitshuffle("lz4"), struct.pack(">QI", 8, 64), "bitshuffle stream is truncated: 0 bytes at the end, not 8"),
        (Bitshuffle("none"), bytes(7), "expected whole elements of 4 bytes from bitshuffle, got 7 bytes"),
        (Scaleoffset(), bytes(3), "scaleoffset chunk or its parameters are damaged: truncated"),
        (Szip(), struct.pack("<I", 7) + bytes(99), "expected whole pixels of 4 bytes from szip, got 7 bytes"),
    ],
)
def test_decode_damage_named(one: Filter, data: bytes, message: str) -> None:
    with pytest.raises(StreamError, match=message):
        one.decode(data, CHUNK, one.stored(CHUNK))


def test_nbit_truncated_where_bits_are_left_out_named() -> None:
    with pytest.raises(StreamError, match="nbit chunk or its parameters are damaged: truncated, at 1275"):
        Nbit().decode(bytes(3), CHUNK, (8, 0, 600, 1, 4, 0, 17, 3))


def frame_without_size(data: bytes) -> bytes:
    writer = zstandard.ZstdCompressor().compressobj()
    frame: bytes = writer.compress(data) + writer.flush()
    assert zstandard.frame_content_size(frame) == -1
    return frame


def test_zstd_frame_without_its_size_read_up_to_the_bound() -> None:
    one, chunk = Zstd(), ChunkType(np.dtype("u1"), (1,))
    for nbytes in (1, chunk.most_nbytes):
        assert one.decode(frame_without_size(bytes(nbytes)), chunk, (3,)) == bytes(nbytes)
    with pytest.raises(StreamError, match="zstd frame holds more than a chunk"):
        one.decode(frame_without_size(bytes(chunk.most_nbytes + 1)), chunk, (3,))


@pytest.mark.parametrize(
    ("one", "stored", "message"),
    [
        (Szip(), (169, 8), "expected four parameters of szip as stored"),
        (Szip(), (169, 8, 0, 600), "invalid parameters of szip: 8 pixels per block, 0 bits each, 600 of a scan line"),
        (Szip(), (169, 8, 32, 4), "invalid parameters of szip"),
        (Szip(), (169, 8, 32, 9000), "invalid parameters of szip"),
        (Lzf(), (4, 261, 0xFFFFFFFF), "expected chunks of 2400 bytes, got 4294967295 in the parameters of lzf"),
        (Bitshuffle(), (0, 4), "expected version and element size in the parameters of bitshuffle"),
        (Bitshuffle(), (0, 4, 0, 0, 2), "expected version and element size in the parameters of bitshuffle"),
        (Nbit(), (8, 0, 600, 9, 4, 0, 17, 3), "nbit chunk or its parameters are damaged: bad parameter, at 3"),
        (Scaleoffset(), (2, 0), "scaleoffset chunk or its parameters are damaged: bad parameter, at 2"),
    ],
)
def test_decode_damaged_parameters_named(one: Filter, stored: tuple[int, ...], message: str) -> None:
    with pytest.raises(StreamError, match=message):
        one.decode(bytes(100), CHUNK, stored)


BLOCK = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {absent}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocker())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in {absent} else found(name, package)
import numpy as np
from tamis.errors import MissingFilterError
from tamis.filters import *
chunk = ChunkType(np.dtype("f4"), (20, 30))
for one in ({made},):
    print(one.missing())
    try:
        print(one.decode({data!r}, chunk, one.stored(chunk)))
    except MissingFilterError as error:
        print(error)
"""


@pytest.fixture
def without() -> Callable[..., list[str]]:
    """Decode with filters in a process that lacks packages: what `missing` and the error say."""

    def run(absent: set[str], made: str, data: bytes) -> list[str]:
        code = BLOCK.format(absent=absent, made=made, data=data)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    return run


def test_package_missing_named_with_the_command(without: Callable[..., list[str]]) -> None:
    assert without({"imagecodecs"}, "Lzf(), Lz4()", bytes(16)) == [
        f"{name} needs imagecodecs, not installed here: pip install 'tamis[codecs]'"
        for name in ("lzf", "lz4")
        for _ in range(2)
    ]
    assert (
        without({"zstandard"}, "Zstd()", bytes(16))
        == [
            "zstd needs zstandard, not installed here: pip install 'tamis[codecs]'",
        ]
        * 2
    )


def test_hdf5plugin_missing_named_with_the_command(without: Callable[..., list[str]]) -> None:
    assert (
        without({"hdf5plugin"}, "Sz3('absolute', 0.1)", bytes(16))
        == ["sz3 needs hdf5plugin, not installed here: pip install 'tamis[hdf5plugin]'"] * 2
    )


def test_filters_without_packages_still_there(without: Callable[..., list[str]]) -> None:
    # bzip2, and bitshuffle that compresses nothing, need none.
    absent = {"imagecodecs", "zstandard", "hdf5plugin"}
    assert without(absent, "Bitshuffle('none')", bytes(2400))[1] == str(bytes(2400))
