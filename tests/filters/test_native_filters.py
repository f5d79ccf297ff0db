"""The native filters against libhdf5, which writes what ours must read and reads what ours write."""

from __future__ import annotations

import ctypes
import itertools
import platform
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5f, h5p, h5s, h5t
from hypothesis import given
from hypothesis import strategies as st

from tamis import _native
from tamis._native import Failure

SHUFFLE, FLETCHER32, NBIT, SCALEOFFSET, BITSHUFFLE = 2, 3, 5, 6, 32008
UNDEFINED = "undefined"  # a fill value that is not even zero
COUNTS = (0, 1, 2, 7, 8, 15, 16, 17, 33, 127, 128, 1030)

like_hdf5 = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"),
    reason="HDF5 compiled for other processors multiplies and adds in one step, and converts infinity otherwise",
)


@dataclass
class Stored:
    """A chunk as libhdf5 stored it, its parameters, and what libhdf5 reads from it."""

    values: list[int]
    chunk: bytes
    plain: bytes


def set_undefined_fill(plist: h5p.PropDCID, of: h5t.TypeID) -> None:
    """Call H5Pset_fill_value with NULL, which h5py does not."""
    function = ctypes.CDLL(h5p.__file__).H5Pset_fill_value  # of the libhdf5 that h5py runs, not of another one
    function.argtypes = ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
    assert function(plist.id, of.id, None) >= 0


def dataset(file: h5f.FileID, of: h5t.TypeID, items: int, request: tuple[Any, ...], fill: Any = None) -> h5d.DatasetID:
    """Make a dataset of one chunk with a filter: its id and the parameters asked for."""
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_chunk((items,))
    if isinstance(fill, str):
        set_undefined_fill(plist, of)
    elif fill is not None:
        plist.set_fill_value(np.asarray(fill, of.dtype))
    plist.set_filter(request[0], h5py.h5z.FLAG_MANDATORY, tuple(value & 0xFFFFFFFF for value in request[1:]))
    return h5d.create(file, None, of, h5s.create_simple((items,)), plist)


def read(stored: h5d.DatasetID, nbytes: int) -> bytes:
    """Read without conversion."""
    out = np.empty(nbytes, np.uint8)
    stored.read(h5s.ALL, h5s.ALL, out, stored.get_type())
    return out.tobytes()


def through_hdf5(path: Path, of: h5t.TypeID, request: tuple[Any, ...], data: bytes, fill: Any = None) -> Stored:
    """Write a chunk of raw items through libhdf5."""
    with h5py.File(path, "w") as file:
        made = dataset(file.id, of, len(data) // of.get_size(), request, fill)
        made.write(h5s.ALL, h5s.ALL, np.frombuffer(data, np.uint8), of)
        h5py.h5o.link(made, file.id, b"x")
    with h5py.File(path) as file:
        made = file["x"].id
        mask, chunk = made.read_direct_chunk((0,))
        assert mask == 0
        values = [value & 0xFFFFFFFF for value in made.get_create_plist().get_filter(0)[2]]
        return Stored(values, chunk, read(made, len(data)))


def read_by_hdf5(path: Path, of: h5t.TypeID, request: tuple[Any, ...], chunk: bytes, nbytes: int, fill: Any) -> bytes:
    """Give what libhdf5 reads from a chunk of ours."""
    with h5py.File(path, "w") as file:
        made = dataset(file.id, of, nbytes // of.get_size(), request, fill)
        made.write_direct_chunk((0,), chunk)
        h5py.h5o.link(made, file.id, b"x")
    with h5py.File(path) as file:
        return read(file["x"].id, nbytes)


def garbage(nbytes: int, seed: int = 0) -> bytes:
    return np.random.default_rng(seed).bytes(nbytes)


@pytest.mark.parametrize("itemsize", [2, 3, 4, 5, 8, 9, 12, 16, 31, 100])
@pytest.mark.parametrize("count", [1, 2, 16, 37, 1000])
def test_shuffle_gives_the_chunk_of_hdf5(tmp_path: Path, itemsize: int, count: int) -> None:
    data = garbage(itemsize * count)
    stored = through_hdf5(tmp_path / "x.h5", h5t.py_create(np.dtype(f"V{itemsize}")), (SHUFFLE,), data)
    assert stored.values == [itemsize]
    assert _native.shuffle(data, itemsize) == stored.chunk
    assert _native.unshuffle(stored.chunk, itemsize) == data


@pytest.mark.parametrize("itemsize", [1, 2, 3, 4, 6, 7, 8, 11, 16, 24, 33, 40000])
def test_shuffle_of_any_length_is_a_transposition_with_the_rest_behind(itemsize: int) -> None:
    for count, rest in itertools.product(COUNTS, {0, 1, itemsize - 1} - {itemsize}):
        data = garbage(itemsize * min(count, 2_000_000 // itemsize) + rest)
        whole = len(data) // itemsize * itemsize
        table = np.frombuffer(data, np.uint8, whole).reshape(-1, itemsize)
        assert _native.shuffle(data, itemsize) == table.T.tobytes() + data[whole:]
        assert _native.unshuffle(_native.shuffle(data, itemsize), itemsize) == data


def test_shuffle_takes_any_contiguous_buffer_and_no_other() -> None:
    values = np.arange(100.0)
    assert _native.shuffle(values, 8) == _native.shuffle(values.tobytes(), 8) == _native.shuffle(memoryview(values), 8)
    with pytest.raises(BufferError):
        _native.shuffle(memoryview(values)[::2], 8)
    with pytest.raises(TypeError, match="bytes-like"):
        _native.shuffle("text", 8)


@pytest.mark.parametrize("function", ["shuffle", "unshuffle"])
@pytest.mark.parametrize("itemsize", [0, 2**20 + 1, 2**63])
def test_shuffle_with_a_size_that_no_item_has_says_so(function: str, itemsize: int) -> None:
    check_failure(getattr(_native, function)(b"abcd", itemsize), "bad_itemsize", itemsize)


def check_failure(result: object, code: str, where: int) -> None:
    assert isinstance(result, Failure)
    assert (result.code, result.where) == (code, where)


@pytest.mark.parametrize("nbytes", [1, 2, 3, 15, 16, 17, 5775, 5776, 5777, 5792, 11553, 100_000])
@pytest.mark.parametrize("pattern", [b"\0", b"\xff", b"\x80\0\x01", None], ids=repr)
def test_fletcher32_gives_the_checksum_of_hdf5(tmp_path: Path, nbytes: int, pattern: bytes | None) -> None:
    data = garbage(nbytes) if pattern is None else (pattern * nbytes)[:nbytes]
    stored = through_hdf5(tmp_path / "x.h5", h5t.STD_U8LE, (FLETCHER32,), data)
    assert _native.fletcher32(data).to_bytes(4, "little") == stored.chunk[-4:]


@given(st.binary(max_size=200), st.integers(0, 3000))
def test_fletcher32_of_any_bytes_is_the_plain_definition(data: bytes, zeros: int) -> None:
    data += bytes(zeros)
    low = high = 0
    for (word,) in struct.iter_unpack(">H", data + bytes(len(data) % 2)):
        low = (low + word) % 65535 or (65535 if low + word else 0)
        high = (high + low) % 65535 or (65535 if high + low else 0)
    assert _native.fletcher32(data) == high << 16 | low


def test_fletcher32_of_the_largest_sums_does_not_overflow() -> None:
    assert _native.fletcher32(b"\xff" * 10_000_000) == 0xFFFFFFFF  # each word is zero modulo 65535
    assert _native.fletcher32(b"\xff" * 10_000_001) == 0xFF00FF00


@pytest.mark.parametrize("itemsize", [1, 2, 5, 8, 13, 300, 40000])
def test_bitshuffle_of_any_length_is_a_transposition_of_bits(itemsize: int) -> None:
    for count, block in itertools.product(COUNTS, (8, 120, 1024, 2**62)):
        data = garbage(itemsize * min(count, 1_000_000 // itemsize))
        rows = np.frombuffer(data, np.uint8).reshape(-1, itemsize)
        expected, whole = b"", len(rows) // 8 * 8
        for start in range(0, whole, block):
            bits = np.unpackbits(rows[start : min(start + block, whole)], axis=1, bitorder="little")
            expected += np.packbits(bits.T, axis=1, bitorder="little").tobytes()
        assert _native.bitshuffle(data, itemsize, block) == expected + rows[whole:].tobytes()
        assert _native.bitunshuffle(_native.bitshuffle(data, itemsize, block), itemsize, block) == data


@pytest.mark.parametrize("function", [_native.bitshuffle, _native.bitunshuffle])
def test_bitshuffle_with_sizes_that_do_not_fit_says_which(function: Any) -> None:
    check_failure(function(b"abcd", 0, 8), "bad_itemsize", 0)
    check_failure(function(b"abcd", 2, 0), "bad_block", 0)
    check_failure(function(b"abcd", 2, 12), "bad_block", 12)
    check_failure(function(b"abcde", 2, 8), "wrong_nbytes", 4)


def number(base: h5t.TypeID, nbytes: int, order: str, precision: int, offset: int) -> h5t.TypeID:
    """Give a type that uses only some of its bits."""
    made = base.copy()
    made.set_size(max(nbytes, made.get_size()))
    made.set_order(h5t.ORDER_BE if order == ">" else h5t.ORDER_LE)
    made.set_offset(0)
    made.set_precision(precision)
    made.set_size(nbytes)
    made.set_offset(offset)
    return made


def record(nbytes: int, *members: tuple[int, h5t.TypeID]) -> h5t.TypeID:
    made = h5t.create(h5t.COMPOUND, nbytes)
    for index, (offset, of) in enumerate(members):
        made.insert(b"m%d" % index, offset, of)
    return made


# libhdf5 takes no number that leaves the upper half of its bits unused.
NUMBERS = [
    number(h5t.STD_I8LE, n, order, precision, offset)
    for order, n in itertools.product("<>", (1, 2, 3, 4, 5, 8, 16))
    for precision, offset in ((1, 8 * n - 1), (4 * n + 1, 2), (8 * n - 1, 0), (8 * n - 1, 1), (4 * n + 3, 4 * n - 3))
]
INNER = number(h5t.STD_U32LE, 4, ">", 13, 7)
PACKED = record(9, (0, h5t.STD_U8LE), (3, INNER))
TEXT, PAIR = h5t.py_create(np.dtype("S5")), h5t.array_create(INNER, (2,))
# Long doubles of some processors have no bits to leave out.
LONG_DOUBLES = [each for each in [h5t.NATIVE_LDOUBLE] if each.get_precision() < 8 * each.get_size()]
TYPES = [
    *LONG_DOUBLES,
    h5t.array_create(INNER, (3, 5)),
    h5t.array_create(PAIR, (3,)),
    h5t.array_create(PACKED, (4,)),
    record(40, (1, PACKED), (12, PAIR), (30, h5t.IEEE_F64BE)),
    record(16, (8, INNER), (0, h5t.STD_I64LE)),  # members out of order
    record(24, (0, TEXT), (6, INNER), (11, h5t.py_create(np.dtype("V9")))),
    record(20, (0, h5t.array_create(TEXT, (3,))), (15, INNER)),
]


@pytest.mark.parametrize("of", NUMBERS + TYPES)
def test_nbit_gives_the_chunk_of_hdf5_and_reads_it(tmp_path: Path, of: h5t.TypeID) -> None:
    for items in (1, 2, 3, 8, 101):
        data = garbage(items * of.get_size())
        stored = through_hdf5(tmp_path / "x.h5", of, (NBIT,), data)
        assert stored.values[1] == 0, "the type is packed"
        assert _native.nbit_encode(data, stored.values) == stored.chunk
        assert _native.nbit_decode(stored.chunk, stored.values, len(data)) == stored.plain
        assert _native.nbit_decode(stored.chunk + b"more", stored.values, len(data)) == stored.plain
        needed = _native.nbit_decode(b"", stored.values, len(data))
        assert isinstance(needed, Failure)
        assert len(stored.chunk) - needed.where in (0, 1)
        assert _native.nbit_decode(stored.chunk[: needed.where], stored.values, len(data)) == stored.plain
        check_failure(
            _native.nbit_decode(stored.chunk[: needed.where - 1], stored.values, len(data)), "truncated", needed.where
        )


@pytest.mark.parametrize("of", [h5t.STD_I32BE, h5t.IEEE_F64LE, h5t.py_create(np.dtype("S5"))])
def test_nbit_of_a_type_that_uses_all_bits_changes_nothing(tmp_path: Path, of: h5t.TypeID) -> None:
    data = b"abcde" * 40
    stored = through_hdf5(tmp_path / "x.h5", of, (NBIT,), data)
    assert stored.values[1] == 1
    assert stored.chunk == _native.nbit_encode(data, stored.values) == data
    assert _native.nbit_decode(stored.chunk, stored.values, len(data)) == data
    # Of any length: another filter may stand before it.
    assert _native.nbit_decode(data[:-1], stored.values, len(data)) == data[:-1]


@pytest.mark.parametrize(
    ("values", "code", "where"),
    [
        ([], "bad_parameter", 0),
        ([9, 0, 5, 1, 4, 0, 13, 7], "bad_parameter", 0),
        ([8, 0, 6, 1, 4, 0, 13, 7], "wrong_nbytes", 24),
        ([8, 0, 0xFFFFFFFF, 1, 0xFFFFFFFF, 0, 13, 7], "wrong_nbytes", 0xFFFFFFFF**2),
        ([8, 0, 5, 6, 4, 0, 13, 7], "bad_parameter", 3),
        ([5, 0, 5, 4, 4], "bad_parameter", 3),
        ([8, 0, 5, 1, 0, 0, 13, 7], "bad_parameter", 3),
        ([8, 0, 5, 1, 4, 2, 13, 7], "bad_parameter", 5),
        ([8, 0, 5, 1, 4, 0, 0, 7], "bad_parameter", 6),
        ([8, 0, 5, 1, 4, 0, 13, 20], "bad_parameter", 7),
        ([8, 0, 5, 1, 4, 0, 0xFFFFFFF0, 0x20], "bad_parameter", 6),
        ([7, 0, 5, 1, 4, 0, 13], "bad_parameter", 5),
        ([9, 0, 5, 1, 4, 0, 13, 7, 0], "bad_parameter", 8),
        ([10, 0, 5, 2, 4, 1, 3, 0, 13, 7], "bad_parameter", 4),
        ([12, 0, 5, 3, 4, 1, 1, 1, 4, 0, 13, 7], "bad_parameter", 6),
        ([12, 0, 5, 3, 4, 2, 0, 1, 4, 0, 13, 7], "bad_parameter", 12),
        ([3 + 2 * 40, 0, 5] + [2, 4] * 40, "bad_parameter", 3 + 2 * 32),
    ],
)
def test_nbit_with_values_that_no_writer_stores_names_the_one(values: list[int], code: str, where: int) -> None:
    check_failure(_native.nbit_encode(bytes(20), values), code, where)
    check_failure(_native.nbit_decode(bytes(20), values, 20), code, where)


FILLS = (None, 3, 100, UNDEFINED)


def check_scaleoffset(tmp_path: Path, values: np.ndarray[Any, Any], request: tuple[int, ...], fill: Any) -> None:
    """Compare both directions with libhdf5."""
    data, of = values.tobytes(), h5t.py_create(values.dtype)
    stored = through_hdf5(tmp_path / "x.h5", of, request, data, fill)
    assert _native.scaleoffset_decode(stored.chunk, stored.values, len(data)) == stored.plain
    chunk = _native.scaleoffset_encode(data, stored.values)
    assert isinstance(chunk, bytes)
    if stored.chunk[:4] == bytes(4):  # libhdf5 leaves the only byte behind the header as it finds it
        assert (chunk[:-1], len(chunk)) == (stored.chunk[:-1], len(stored.chunk))
    else:
        assert chunk == stored.chunk
    assert read_by_hdf5(tmp_path / "x.h5", of, request, chunk, len(data), fill) == stored.plain


@pytest.mark.matrix
@pytest.mark.parametrize("dtype", [order + kind + size for order in "<>" for kind in "iu" for size in "1248"])
@pytest.mark.parametrize("fill", FILLS)
def test_scaleoffset_of_integers_is_that_of_hdf5(tmp_path: Path, dtype: str, fill: Any) -> None:
    info, rng = np.iinfo(dtype), np.random.default_rng(0)
    for integers in (
        rng.integers(0, 20, 37),
        rng.integers(max(info.min, -30), 101, 77),
        np.full(11, 7),
        np.full(4, 3),  # nothing but one fill value
        rng.integers(info.min, info.max, 50, np.dtype(dtype).newbyteorder("=")),
        *([info.min, info.max - less, 3] for less in range(4)),
        [0, info.max // 2, info.max // 2 + 1],
        [1, 100, 127],
    ):
        values = np.array([value % 2**info.bits for value in map(int, integers)], f"<u{info.bits // 8}")
        values = values.view(dtype.replace(">", "<")).astype(dtype)
        for nbits in (0, 1, 5, info.bits - 1, info.bits):
            check_scaleoffset(tmp_path, values, (SCALEOFFSET, 2, nbits), fill)


@like_hdf5
@pytest.mark.matrix
@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", ">f8"])
@pytest.mark.parametrize("fill", [None, -9999.0, 2.5, np.nan, UNDEFINED])
def test_scaleoffset_of_floats_is_that_of_hdf5(tmp_path: Path, dtype: str, fill: Any) -> None:
    rng = np.random.default_rng(0)
    for values in (
        rng.normal(size=101) * 50,
        rng.normal(size=20) * 1e30,
        np.full(9, 1.25),
        np.full(4, -9999.0),
        np.arange(64) / 8,
        [1.5, -9999, 2.5, -9999.0, 3.25],
        *([0, 2.0**n - less] for n in (31, 63) for less in (0, 2.0 ** (n - 23), 2.0 ** (n - 52))),
        [0, np.inf, 1, np.nan],
    ):
        for digits in (0, 1, 2, 5, -1, -3, 12):
            if np.isinf(values).any() and digits < 0:
                continue  # what libhdf5 writes then, it does not read
            check_scaleoffset(tmp_path, np.array(values, dtype), (SCALEOFFSET, 0, digits), fill)


@like_hdf5
@pytest.mark.parametrize("values", [[1.25, 2.5], [np.inf, np.inf], [np.nan, 1.0]])
def test_scaleoffset_of_floats_where_hdf5_writes_what_it_cannot_read_keeps_all(
    tmp_path: Path, values: list[float]
) -> None:
    data, request = np.array(values, "f4").tobytes(), (SCALEOFFSET, 0, 40)
    with pytest.raises(OSError, match="filter returned failure"):
        through_hdf5(tmp_path / "x.h5", h5t.IEEE_F32LE, request, data)
    with h5py.File(tmp_path / "x.h5") as file:
        stored = [value & 0xFFFFFFFF for value in file["x"].id.get_create_plist().get_filter(0)[2]]
        theirs = file["x"].id.read_direct_chunk((0,))[1]
    check_failure(_native.scaleoffset_decode(theirs, stored, 8), "bad_minbits", 64)
    chunk = _native.scaleoffset_encode(data, stored)
    assert isinstance(chunk, bytes)
    assert read_by_hdf5(tmp_path / "x.h5", h5t.IEEE_F32LE, request, chunk, 8, None) == data


INTEGERS = [2, 0, 5, 0, 4, 1, 0, 1, 3, *[0] * 11]
FLOATS = [0, 1, 5, 1, 4, 0, 0, 1, 0, *[0] * 11]


def changed(values: list[int], index: int, value: int) -> list[int]:
    return [*values[:index], value, *values[index + 1 :]]


@pytest.mark.parametrize(
    ("values", "index", "value"),
    [
        *((values, index, value) for values in (INTEGERS, FLOATS) for index, value in ((0, 1), (0, 3), (3, 2))),
        *((values, 4, nbytes) for values in (INTEGERS, FLOATS) for nbytes in (0, 3, 16)),
        (INTEGERS, 5, 2),  # libhdf5 looks neither at the sign of floats nor at other fill values than those of 1
    ],
)
def test_scaleoffset_with_values_that_no_writer_stores_names_the_one(values: list[int], index: int, value: int) -> None:
    damaged = changed(values, index, value)
    check_failure(_native.scaleoffset_encode(bytes(20), damaged), "bad_parameter", index)
    check_failure(_native.scaleoffset_decode(bytes(30), damaged, 20), "bad_parameter", index)


def test_scaleoffset_with_sizes_that_do_not_fit_says_which() -> None:
    chunk = _native.scaleoffset_encode(np.arange(5, dtype="<i4"), INTEGERS)
    assert isinstance(chunk, bytes)
    decode = _native.scaleoffset_decode
    check_failure(decode(chunk, INTEGERS[:19], 20), "bad_parameter", 19)
    check_failure(decode(chunk, changed(INTEGERS, 1, 33), 20), "bad_parameter", 1)
    check_failure(decode(chunk, changed(FLOATS, 4, 2), 10), "bad_parameter", 4)
    check_failure(decode(chunk, INTEGERS, 24), "wrong_nbytes", 20)
    assert decode(chunk, changed(INTEGERS, 1, 32), 20) == chunk  # all bits: of any length
    check_failure(decode(chunk[:20], INTEGERS, 20), "truncated", 21)
    check_failure(decode(chunk[:22], INTEGERS, 20), "truncated", 23)
    check_failure(decode(b"\x21" + chunk[1:], INTEGERS, 20), "bad_minbits", 33)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scaleoffset_of_a_value_that_would_come_back_as_a_number_names_it(bad: float) -> None:
    values = np.array([1, 2, bad, bad, 5], "<f4")
    result = _native.scaleoffset_encode(values, FLOATS)
    if np.isnan(bad):
        check_failure(result, "non_finite", 2)
    else:  # the range is infinite, and all bits are kept
        assert isinstance(result, bytes)
        assert _native.scaleoffset_decode(result, FLOATS, 20) == values.tobytes()
