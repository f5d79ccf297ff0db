"""Known defects that show when a dataset is created: D1, D2, D4, D5, D6, D11, D13, and creation of D12."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import needs
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t

import tamis
from tamis import ParameterError

Run = Callable[..., str]
SMOOTH = np.sin(np.arange(4000) / 90).reshape(10, 20, 20) * 26


def double(number: float) -> tuple[int, int]:
    first, second = struct.unpack("=II", struct.pack("=d", number))
    return first, second


def refuses(path: Path, match: str, **keywords: Any) -> None:
    """Create a dataset that must be refused, and see that the file holds nothing and closes and opens well."""
    creation = {"shape": (10, 20, 20), "dtype": "f8", "chunks": (4, 6, 5), "compression": 32013} | keywords
    with h5py.File(path, "w") as file:
        with pytest.raises(ValueError, match=match):
            file.create_dataset("v", **creation)
        assert list(file) == []
        file["after"] = np.arange(3)
    with h5py.File(path) as file:
        assert list(file) == ["after"]


def create(file: h5py.File, chunks: tuple[int, ...], *filters: tuple[int, int, tuple[int, ...]]) -> h5py.Dataset:
    """Create a dataset of float64 with any chain of filters: number, flags, parameters."""
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_chunk(chunks)
    for each in filters:
        plist.set_filter(*each)
    return h5py.Dataset(h5d.create(file.id, b"v", h5t.IEEE_F64LE, h5s.create_simple(SMOOTH.shape), plist))


def test_d01_big_endian_type_is_refused_on_create(tmp_path: Path) -> None:
    """D1: refuse on create."""
    for dtype in (">f8", ">f4", ">i4"):
        refuses(tmp_path / "a.h5", "got big-endian; create the dataset with the native type", dtype=dtype)
    with pytest.raises(ParameterError, match=r"expected native byte order, got '>f8': .* use '<f8'"):
        tamis.Pipeline.parse("zfp(accuracy=0.1)").check(tamis.filters.ChunkType(np.dtype(">f8"), (4, 6, 5)))


def test_d01_big_endian_dataset_is_repacked_in_native_order_and_said_so(tmp_path: Path) -> None:
    """D1: repack converts to native order and says so."""
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.create_dataset("v", data=SMOOTH.astype(">f8"), chunks=(4, 6, 5))
    result = tamis.repack(tmp_path / "in.h5", tmp_path / "out.h5", {"v": "zfp(accuracy=1e-3)"})
    assert result.datasets[0].notes == ("converted from >f8 to native <f8, which zfp needs",)
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["v"].dtype == "<f8"
        assert 0 < np.abs(file["v"][...] - SMOOTH).max() <= 1e-3


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
def test_d01_file_of_big_endian_writer_is_read_right(tmp_path: Path, craft: Callable[..., None], dtype: str) -> None:
    """D1: files a big-endian writer made are read right."""
    values = (SMOOTH[0, :, :6] * 1000).astype(dtype)
    header = tamis.zfp.Header(np.dtype(dtype), values.shape, tamis.zfp.Reversible()).pack()
    words = (0x10105111, *np.frombuffer(header, ">u4").tolist())
    stream = tamis.zfp.encode(values, tamis.zfp.Reversible())
    craft(tmp_path / "big.h5", f">{dtype}", values.shape, words, stream)
    with h5py.File(tmp_path / "big.h5") as file:
        assert file["v"].dtype == f">{dtype}"
        assert np.array_equal(file["v"][...], values)


def test_d01_h5zzfp_file_of_big_endian_writer_is_read_right() -> None:
    """D1: files a big-endian writer made are read right."""
    with h5py.File(needs.real("h5zzfp/test_zfp_be.h5")) as file:
        assert file["compressed"].dtype == ">f8"
        assert np.array_equal(file["compressed"][...], file["original"][...])


@pytest.mark.parametrize(
    ("keywords", "match"),
    [
        ({"shape": (4,) * 5, "chunks": (4,) * 5}, "got 4x4x4x4x4 with 5; use 1x4x4x4x4"),
        ({"shape": (4,) * 6, "chunks": (4, 1, 4, 2, 3, 4)}, "got 4x1x4x2x3x4 with 5; use 1x1x4x2x3x4"),
        ({"chunks": (1, 1, 1)}, "more than one value, got 1x1x1; use chunks of at least 4 values along an axis"),
        ({"shape": (4097, 2, 2, 2), "chunks": (4097, 2, 2, 2)}, "axis of 4097, .* at most 4096 for 4 axes"),
        ({"shape": (2, 65537, 2), "chunks": (2, 65537, 2)}, "axis of 65537, .* at most 65536 for 3 axes"),
        ({"shape": (2, 2**24 + 1), "chunks": (2, 2**24 + 1)}, "axis of 16777217, .* at most 16777216 for 2 axes"),
        ({"dtype": bool}, "requires datatype class of H5T_FLOAT or H5T_INTEGER, got .*; use shuffle and deflate"),
        ({"dtype": "c16"}, "requires datatype class of H5T_FLOAT or H5T_INTEGER, got .*; use shuffle and deflate"),
    ],
)
def test_d02_chunk_or_type_is_refused_on_create(tmp_path: Path, keywords: dict[str, Any], match: str) -> None:
    """D2: refuse on create, with the chunk shape to use instead."""
    refuses(tmp_path / "a.h5", match, compression_opts=(5,), **keywords)
    kind = tamis.filters.ChunkType(np.dtype(keywords.get("dtype", "f8")), keywords.get("chunks", (4, 6, 5)))
    with pytest.raises(ParameterError, match=r"use|at most"):
        tamis.Zfp(reversible=True).check(kind)


@pytest.mark.parametrize("chunks", [(4096, 2, 2, 2), (2, 65536, 2), (1, 4097, 1, 2, 2, 1)])
def test_d02_longest_axes_that_the_header_holds_are_taken(tmp_path: Path, chunks: tuple[int, ...]) -> None:
    """D2: refuse chunk axes beyond 4096 (4-D) / 65536 (3-D); none that fits."""
    values = np.random.default_rng(2).standard_normal(chunks).astype("f4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=values, chunks=chunks, **tamis.Zfp(reversible=True))
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["v"].id.get_chunk_info(0).filter_mask == 0
        assert np.array_equal(file["v"][...], values)


BAD_REQUESTS = [
    ((1, 0, *double(-4)), "expected a finite rate above 0"),
    ((1, 0, *double(0)), "expected a finite rate above 0"),
    ((1, 0, *double(float("nan"))), "expected a finite rate above 0"),
    ((1, 0, *double(float("inf"))), "expected a finite rate above 0"),
    ((1, 0, *double(1e9)), "expected a finite rate above 0"),
    ((3, 0, *double(float("nan"))), "expected a finite accuracy"),
    ((3, 0, *double(-1e-3)), "expected a finite accuracy"),
    ((3, 0, *double(float("inf"))), "expected a finite accuracy"),
    ((4, 0, 900, 800, 64, 0), "expected minbits <= maxbits"),
    ((4, 0, 1, 800, 0, 0), "maxprec 1 to 64"),
    ((4, 0, 1, 800, 65, 0), "maxprec 1 to 64"),
    ((4, 0, 40000, 50000, 64, 0), "minbits <= 32768"),
    ((1,), "takes 4 cd_values, got fewer"),
    ((1, 0, 0), "takes 4 cd_values, got fewer"),
    ((2, 0), "takes 3 cd_values, got fewer"),
    ((3, 0, 0), "takes 4 cd_values, got fewer"),
    ((4, 0, 1, 800, 64), "takes 6 cd_values, got fewer"),
    ((0,), "expected mode 1 .* got 0"),
    ((6, 0, 0, 0), "expected mode 1 .* got 6"),
]


@pytest.mark.parametrize(("values", "match"), BAD_REQUESTS, ids=str)
def test_d04_and_d05_bad_parameters_fail_in_create(tmp_path: Path, values: tuple[int, ...], match: str) -> None:
    """D4: whatever can be known at H5Dcreate fails there. D5: refuse."""
    refuses(tmp_path / "a.h5", match, compression_opts=values)
    with h5py.File(tmp_path / "b.h5", "w") as file:
        with pytest.raises(ValueError, match=match):
            create(file, (4, 6, 5), (32013, 0, values))
        assert list(file) == []


def test_d04_refusals_leave_no_crash_at_close(tmp_path: Path, python: Run) -> None:
    """D4: whatever can be known at H5Dcreate fails there, and the process ends well."""
    code = """
import sys, h5py, numpy as np, tamis
for turn, wrong in enumerate([{"dtype": ">f8"}, {"chunks": (1,)}, {"compression_opts": (9,)}, {"shuffle": True}]):
    file = h5py.File(f"{sys.argv[1]}{turn}.h5", "w")
    right = {"shape": 64, "dtype": "f8", "chunks": (16,), "compression": 32013, "compression_opts": (5,)}
    try:
        file.create_dataset("v", **(right | wrong))
    except ValueError as error:
        print("refused", error)
    file.create_dataset("v", **right)[...] = np.arange(64)
    file.close()
print("closed")
"""
    said = python(code, tmp_path / "turn")
    assert said.count("refused Unable to synchronously create dataset (zfp: ") == 4
    assert said.endswith("closed\n")
    with h5py.File(tmp_path / "turn3.h5") as file:
        assert np.array_equal(file["v"][...], np.arange(64))


@pytest.mark.parametrize(
    "keywords",
    [
        {"rate": -4}, {"rate": 0}, {"rate": float("nan")}, {"rate": float("inf")},
        {"accuracy": -1e-3}, {"accuracy": float("nan")}, {"accuracy": float("inf")}, {"accuracy": 0},
        {"precision": 0}, {"precision": 65}, {"precision": 3.5},
        {"minbits": 900, "maxbits": 800}, {"maxprec": 0}, {"maxprec": 65}, {"maxbits": 0}, {"minbits": -1},
    ],
    ids=str,
)  # fmt: skip
def test_d05_bad_numbers_are_refused_in_python(keywords: dict[str, Any]) -> None:
    """D5: refuse."""
    with pytest.raises(ParameterError, match=r"expected .* got"):
        tamis.Zfp(**keywords)


def test_d06_two_modes_are_refused() -> None:
    """D6: refuse: exactly one mode."""
    with pytest.raises(ParameterError, match="expected exactly one ZFP mode, got rate and accuracy"):
        tamis.Zfp(rate=8, accuracy=1e-3)
    with pytest.raises(ParameterError, match="expected exactly one ZFP mode, got accuracy and expert"):
        tamis.Zfp(accuracy=1e-3, maxprec=20)
    with pytest.raises(ParameterError, match="expected exactly one ZFP mode, got precision and reversible"):
        tamis.Zfp(precision=3, reversible=True)
    with pytest.raises(ParameterError, match="expected exactly one ZFP mode, got none"):
        tamis.Zfp()


ZFP = (32013, 1, (5,))
SHUFFLE, DEFLATE, FLETCHER32 = (2, 1, ()), (1, 1, (4,)), (3, 0, ())
LOSSY = (32013, 1, (3, 0, *double(1e-3)))


@pytest.mark.parametrize(
    ("filters", "match"),
    [
        ((SHUFFLE, ZFP), r"got filter 2 \(shuffle\) before it; put shuffle, deflate and fletcher32 after zfp"),
        ((FLETCHER32, ZFP), r"got filter 3 \(fletcher32\) before it"),
        ((DEFLATE, ZFP), r"got filter 1 \(deflate\) before it"),
        (((6, 1, (0, 2)), ZFP), r"got filter 6 \(scaleoffset\) before it"),
        ((ZFP, ZFP), "expected once in a pipeline, got it again as filter number 2"),
        ((ZFP, DEFLATE, ZFP), "expected once in a pipeline, got it again as filter number 3"),
    ],
)
def test_d11_filters_before_zfp_are_refused(tmp_path: Path, filters: tuple[Any, ...], match: str) -> None:
    """D11: refuse a pipeline in which zfp is not first."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        with pytest.raises(ValueError, match=match):
            create(file, (4, 6, 5), *filters)
        assert list(file) == []


def test_d11_h5py_keywords_that_come_before_zfp_are_refused(tmp_path: Path) -> None:
    """D11: refuse a pipeline in which zfp is not first."""
    refuses(tmp_path / "a.h5", r"got filter 2 \(shuffle\) before it", shuffle=True, compression_opts=(5,))
    refuses(tmp_path / "a.h5", r"got filter 6 \(scaleoffset\) before it", scaleoffset=3, compression_opts=(5,))
    with pytest.raises(ParameterError, match="expected zfp first in a pipeline, got shuffle before it"):
        tamis.Pipeline.parse("shuffle|zfp(accuracy=0.1)")


@pytest.mark.peer
@pytest.mark.parametrize("after", [(FLETCHER32,), (DEFLATE,), (SHUFFLE, DEFLATE, FLETCHER32)], ids=str)
def test_d11_filters_after_zfp_are_allowed(tmp_path: Path, tool: Run, after: tuple[Any, ...]) -> None:
    """D11: allow fletcher32, deflate, … after it."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        create(file, (4, 6, 5), LOSSY, *after)[...] = SMOOTH
    with h5py.File(path) as file:
        decoded = file["v"][...]
        assert file["v"].id.get_chunk_info(0).filter_mask == 0
    assert 0 < np.abs(decoded - SMOOTH).max() <= 1e-3
    tool("h5dump", "-d", "v", "-b", "NATIVE", "-o", tmp_path / "out.bin", path)
    assert (tmp_path / "out.bin").read_bytes() == decoded.tobytes()


@pytest.mark.parametrize("dtype", ["u4", "u8"])
def test_d12_lossy_mode_on_unsigned_integers_is_refused(tmp_path: Path, dtype: str) -> None:
    """D12: refuse lossy on unsigned; reversible is fine."""
    for values in ((1, 0, *double(8)), (2, 0, 12), (3, 0, *double(4)), (4, 0, 1, 900, 20, 0), None):
        refuses(
            tmp_path / "a.h5", "unsigned integers as signed, .*; use reversible", dtype=dtype, compression_opts=values
        )
    numbers = np.array([0, 1, 2, np.iinfo(dtype).max, np.iinfo(dtype).max // 2] * 16, dtype)
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file.create_dataset("v", data=numbers, chunks=(20,), **tamis.Zfp(reversible=True))
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["v"].id.get_chunk_info(0).filter_mask == 0
        assert np.array_equal(file["v"][...], numbers)


@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_d13_tolerance_below_one_on_integers_is_refused(tmp_path: Path, dtype: str) -> None:
    """D13: refuse, and suggest reversible."""
    for tolerance in (0.999, 0.5, 1e-3):
        opts = (3, 0, *double(tolerance))
        refuses(tmp_path / "a.h5", "accuracy below 1 .*; use reversible", dtype=dtype, compression_opts=opts)
        with pytest.raises(ParameterError, match=r"accuracy of 1 or more .*; use reversible=True"):
            tamis.zfp.encode(np.arange(16, dtype=dtype), tamis.zfp.Accuracy(tolerance))


@pytest.mark.parametrize("tolerance", [1, 2, 5])
def test_d13_repack_of_integers_keeps_the_tolerance(tmp_path: Path, tolerance: int) -> None:
    """D13: integers with a tolerance are not exact by zfp alone; repack keeps the bound whatever zfp does."""
    numbers = np.random.default_rng(3).integers(-(2**29), 2**29, (40, 40), "i4")
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.create_dataset("v", data=numbers, chunks=(20, 20))
    result = tamis.repack(tmp_path / "in.h5", tmp_path / "out.h5", {"v": f"zfp(accuracy={tolerance})|deflate(1)"})
    with h5py.File(tmp_path / "out.h5") as file:
        error = np.abs(file["v"][...].astype("i8") - numbers).max()
    assert error == result.datasets[0].largest_error <= tolerance
