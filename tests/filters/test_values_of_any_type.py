"""Known defects U16 and U24: values that are no numbers, and filters that need only what their parameters say."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis
from tamis import Bitshuffle, FileError

Run = Callable[..., str]

TYPES = {
    "record": "[('a', '<f4'), ('b', '<i8'), ('c', '?'), ('d', 'S5'), ('e', '>i2', (3,))]",
    "bool": "'?'",
    "text": "'S7'",
    "long": "'S300'",
    "int8": "'i1'",
    "enum": "h5py.enum_dtype({'LOW': 0, 'HIGH': 1}, '>i2')",
    "array": "('<f4', (2,))",
    "complex": "'c8'",
}

WRITE = """
import sys, h5py, hdf5plugin, numpy as np
rng = np.random.default_rng(16)
filters = {
    "blosc": hdf5plugin.Blosc(), "blosc2": hdf5plugin.Blosc2(), "bzip2": hdf5plugin.BZip2(), "zstd": hdf5plugin.Zstd(),
    "bitshuffle": hdf5plugin.Bitshuffle(), "none": {},
}
with h5py.File(sys.argv[1], "w") as file:
    for name, dtype in {TYPES}.items():
        dtype = np.dtype(dtype)
        for shape, chunks in (((100,), (16,)), ((13, 21), (4, 8))):
            base, inner = dtype.subdtype or (dtype, ())
            count = int(np.prod(shape + inner))
            values = np.frombuffer(rng.integers(0, 2, count * base.itemsize, np.uint8).tobytes(), base)
            for label, filter in filters.items():
                d = file.create_dataset(f"{name}_{len(shape)}_{label}", shape, dtype, chunks=chunks, **filter)
                if label != "bzip2": d[...] = values.reshape(shape + inner)
                else: d[:8] = values.reshape(shape + inner)[:8]
""".replace("{TYPES}", "{" + ", ".join(f"{name!r}: {text}" for name, text in TYPES.items()) + "}")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, python: Run) -> Path:
    path = tmp_path_factory.mktemp("types") / "a.h5"
    python(WRITE, path)
    return path


@pytest.mark.matrix
@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("name", TYPES)
def test_u16_values_of_any_type_are_read_without_a_plugin(written: Path, name: str, rank: int) -> None:
    with h5py.File(written) as file:
        expected = file[f"{name}_{rank}_none"][()]
    with tamis.open(written) as file:
        for label in ("blosc", "blosc2", "zstd", "bitshuffle", "bzip2"):
            array = file[f"{name}_{rank}_{label}"]
            wanted = expected.copy()
            if label == "bzip2":
                wanted[8:] = np.zeros((), wanted.dtype)
            for read in (array[()], array.read(), np.asarray(array), pickle.loads(pickle.dumps(array))[()]):
                assert read.dtype == wanted.dtype
                assert read.tobytes() == wanted.tobytes(), label
            out = np.empty_like(wanted)
            assert array.read(out) is out
            assert out.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("key", [np.s_[3:90:7], np.s_[-1], np.s_[[0, 5, 50]], np.s_[...], np.s_[5:5]])
def test_u16_selections_of_any_type_are_those_of_h5py(written: Path, key: Any) -> None:
    with h5py.File(written) as plain, tamis.open(written) as file:
        for name in TYPES:
            expected, read = plain[f"{name}_1_none"][key], file[f"{name}_1_blosc"][key]
            np.testing.assert_array_equal(read, expected)
            assert type(read) is type(expected), name


@pytest.mark.parametrize("key", ["a", ("a", slice(3, 9)), ("a", "c"), ("e", 4), (slice(2, 8), "b", "d")])
def test_u16_fields_of_records_are_those_of_h5py(written: Path, key: Any) -> None:
    with h5py.File(written) as plain, tamis.open(written) as file:
        expected, read = plain["record_1_none"][key], file["record_1_blosc2"][key]
        assert np.asarray(read).dtype == np.asarray(expected).dtype
        np.testing.assert_array_equal(read, expected)


def test_u16_types_that_hdf5_converts_are_converted(tmp_path: Path) -> None:
    """Text that ends at a zero byte, as C programs write it, and integers of three bytes."""
    text, odd = h5py.h5t.C_S1.copy(), h5py.h5t.STD_I32BE.copy()
    text.set_size(6)
    text.set_strpad(h5py.h5t.STR_NULLTERM)
    odd.set_precision(20)
    odd.set_offset(3)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, kind, values in (("text", text, np.array([b"ab\0xy", b"cdefg"] * 8, "S6")), ("odd", odd, range(16))):
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_chunk((5,))
            plist.set_deflate(4)
            space = h5py.h5s.create_simple((16,))
            h5py.Dataset(h5py.h5d.create(file.id, name.encode(), kind, space, plist))[...] = values
    with h5py.File(tmp_path / "a.h5") as plain, tamis.open(tmp_path / "a.h5") as file:
        for name in plain:
            np.testing.assert_array_equal(file[name][()], plain[name][()])


def test_u16_values_of_varying_length_name_the_filter_and_what_to_do(tmp_path: Path, python: Run) -> None:
    code = """
import sys, h5py, hdf5plugin
with h5py.File(sys.argv[1], "w") as file:
    file.create_dataset("x", data=["a", "bc"], dtype=h5py.string_dtype(), chunks=(2,), **hdf5plugin.BZip2())
"""
    python(code, tmp_path / "a.h5")
    with tamis.open(tmp_path / "a.h5") as file, pytest.raises(FileError, match=r"lacks filter bzip2.*HDF5_PLUGIN_PATH"):
        file["x"][()]


@pytest.mark.matrix
@pytest.mark.parametrize(("compressor", "package"), [("lz4", "zstandard"), ("zstd", "imagecodecs"), ("none", "both")])
def test_u24_bitshuffle_needs_only_the_package_of_its_compressor(
    python: Run, tmp_path: Path, compressor: str, package: str
) -> None:
    values = np.cumsum(np.ones(4096, "f4"))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        tamis.hdf5.write(file, "x", values, filters=Bitshuffle(compressor), chunks=(64,))
    code = """
import importlib.util, sys
absent = {"both": ("zstandard", "imagecodecs")}.get(sys.argv[2], (sys.argv[2],))
true = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in absent else true(name, *rest)
for name in absent: sys.modules[name] = None
import tamis, numpy as np
with tamis.open(sys.argv[1]) as file:
    assert file["x"]._conversion is not None, "HDF5 would read it"
    assert file["x"][()].sum() == np.cumsum(np.ones(4096, "f4")).sum()
assert "tamis yes" in str(tamis.inspect(sys.argv[1]).datasets[0].readers)
"""
    python(code, tmp_path / "a.h5", package)


def test_u24_damaged_chunks_of_bitshuffle_are_refused_where_zstandard_is_not_installed(
    python: Run, tmp_path: Path
) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = tamis.hdf5.write(file, "x", np.arange(256, dtype="f4"), filters="bitshuffle", chunks=(64,))
        for at in range(0, 256, 64):
            mask, data = made.id.read_direct_chunk((at,))
            made.id.write_direct_chunk((at,), data[:5] + b"\x70" + data[6:], mask)
    code = """
import importlib.util, sys
true = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "zstandard" else true(name, *rest)
sys.modules["zstandard"] = None
import hdf5plugin, tamis
with tamis.open(sys.argv[1]) as file:
    for at in range(0, 256, 64):
        try: file["x"][at : at + 64]
        except tamis.TamisError as error: assert "invalid bitshuffle header" in str(error), error
        else: raise SystemExit("read")
"""
    python(code, tmp_path / "a.h5")
