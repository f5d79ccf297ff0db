"""Packing in memory: codes, steps, missing values, limits, and what cannot be packed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import tamis
from tamis import DataError, Pack, ParameterError, _native
from tamis.rounding import Codes, PackingRange
from tamis.rounding.pack import codes_of_more

NAN = math.nan
F4, F8 = np.dtype("f4"), np.dtype("f8")


def unpackings(codes: Codes, packed: Any) -> list[Any]:
    """The values of codes by each way in which readers unpack them, in both types and orders, fused or not."""
    scale, offset = np.float32(codes.scale), np.float32(codes.offset)
    wide = packed.astype("f8") * codes.scale + codes.offset
    ways = [wide]
    if codes.unpacked == F4:
        exact = packed.astype(np.longdouble) * np.longdouble(codes.scale) + np.longdouble(codes.offset)
        ways += [packed.astype("f4") * scale + offset, exact.astype("f4"), (packed * codes.scale).astype("f4") + offset]
    return ways


@pytest.mark.parametrize(
    ("bound", "step", "dtype"),
    [(0.1, 204 * 2.0**-10, "i2"), (0.5, 1.0, "i1"), (2.0, 4.0, "i1"), (0.013, 0.02587890625, "i2")],
)
def test_step_has_eight_bits_and_codes_the_smallest_type(bound: float, step: float, dtype: str) -> None:
    codes = Pack(bound).codes(F4, PackingRange(200.0, 330.0, (NAN,)))
    assert (codes.scale, codes.dtype, codes.low - codes.missing[0][1]) == (step, dtype, 1)
    assert bound * 0.99 < codes.scale / 2 <= bound
    assert (codes.offset / step).is_integer()


def test_float64_unpacks_the_same_in_float32_where_a_short_step_allows_it() -> None:
    for facts, same in ((PackingRange(200.0, 330.0), True), (PackingRange(1e5, 1e5 + 1), False)):
        codes = Pack(0.001).codes(F8, facts)
        packed = np.arange(codes.low, codes.high + 1)
        wide = codes.unpack(packed)
        narrow = packed.astype("f4") * np.float32(codes.scale) + np.float32(codes.offset)
        assert wide.dtype == F8
        assert (narrow == wide).all() == same
        assert 0.00097 < codes.scale / 2 <= 0.001


def test_codes_are_negative_only_where_they_would_not_fit_otherwise() -> None:
    for count, dtype, low in (
        (128, "i1", 0),
        (129, "i1", -128),
        (257, "i2", 0),
        (32769, "i2", -32768),
        (65537, "i4", 0),
    ):
        codes = Pack(0.5).codes(F8, PackingRange(0.0, count - 1.0))
        assert (codes.dtype, codes.low, codes.high - codes.low + 1) == (dtype, low, count)


def test_missing_values_get_codes_next_to_the_others() -> None:
    values = np.array([1e20, np.nan, 3.0, 1e20, 5.0], "f4")
    facts = PackingRange.of(values, [np.float32(1e20)])
    codes = Pack(0.5).codes(F4, facts)
    packed, error = codes.pack(values)
    assert packed.tolist() == [0, 1, 2, 0, 4]
    assert error == 0
    np.testing.assert_array_equal(codes.unpack(packed), values)
    with pytest.raises(ParameterError, match=r"at most 2 different missing values.*found -1, 1e\+20, nan"):
        Pack(0.5).codes(F4, facts.plus(PackingRange(0, 0, (-1.0,))))


@pytest.mark.parametrize("dtype", [F4, F8])
@pytest.mark.parametrize("marks", [(), (NAN,), (1e30, NAN)])
@pytest.mark.parametrize("count", [1, 100, 20000, 32000, 40000])
def test_values_that_follow_have_codes_on_both_sides(dtype: Any, marks: tuple[float, ...], count: int) -> None:
    codes = Pack(0.5).codes(dtype, PackingRange(250.0, 249.0 + count, marks), grows=True)
    own = [code for _, code in codes.missing]
    assert len(own) == max(len(marks), 1)
    assert codes.fill_code(NAN) in own
    # As many codes below the values and above them as they take, as far as 16 bits or exact numbers go.
    room = min(count, 10000)
    assert codes.low - room > max(own)
    assert codes.high + room <= np.iinfo(codes.dtype).max
    reserved = sorted(own)
    more = codes_of_more(codes.dtype, codes.unpacked, (codes.scale, codes.offset), 0.5, reserved, (None, None))
    assert more is not None
    later = np.array([250.0 - room, 249.0 + count + room], dtype)
    np.testing.assert_array_equal(more.unpack(more.pack(later)[0]), later)


def test_range_says_what_follows() -> None:
    asked = Pack(0.5, range=(250.0, 300.0))
    extent = PackingRange(260.0, 270.0)
    assert asked.codes(F4, extent, grows=True) == asked.codes(F4, extent)


@pytest.mark.matrix
@pytest.mark.parametrize("dtype", [F4, F8])
@pytest.mark.parametrize("marks", [(), (NAN,), (1e30, NAN)])
def test_no_value_is_the_number_that_is_the_code_of_missing_ones(dtype: Any, marks: tuple[float, ...]) -> None:
    for bound in (0.05, 0.1, 0.0625, 0.5, 1.0, 2.0, 0.7):
        for low, high in ((0.0, 8.5), (-3.0, 3.0), (-60.0, 60.0), (0.0, 120.0), (-127.0, 127.0), (-3e4, 3e4), (1, 9e4)):
            codes = Pack(bound).codes(dtype, PackingRange(low, high, marks))
            values = codes.unpack(np.arange(codes.low, codes.high + 1))
            assert not np.isin([code for _, code in codes.missing], values).any()
            info = np.iinfo(codes.dtype)
            assert info.min <= codes.low - len(marks) <= codes.high <= info.max


@pytest.mark.parametrize("bound", [1e26, 0.1, 0.0625, 1e-33])
def test_more_values_have_at_least_the_codes_of_the_range(bound: float) -> None:
    ends = (-3000 * bound, 4000 * bound)
    for dtype in (F4, F8):
        codes = Pack(bound, ends).codes(dtype, PackingRange())
        line, reserved = (codes.scale, codes.offset), [code for _, code in codes.missing]
        more = codes_of_more(codes.dtype, dtype, line, bound, reserved, (None, None))
        assert more is not None
        assert (more.low, more.missing) == (codes.low, codes.missing)
        assert more.high >= codes.high
        assert not np.isin(reserved, more.unpack(np.arange(more.low, more.high + 1))).any()


def test_zeros_stay_zeros_and_others_do_not_become_zero_where_asked() -> None:
    values = np.array([0.0, -0.0, 0.04, 0.3], "f4")
    codes = Pack(0.1).codes(F4, PackingRange.of(values, ()))
    assert codes.unpack(codes.pack(values)[0]).tolist()[:3] == [0, 0, 0]
    kept = Codes(codes.dtype, F4, codes.scale, codes.offset, codes.low, codes.high, 0.1, zeros=True)
    with pytest.raises(DataError, match=r"zeros apart from others, found 0\.0399"):
        kept.pack(values)
    wide = Codes(codes.dtype, F4, codes.scale, codes.offset, codes.low, codes.high, 0.2, zeros=True)
    assert wide.unpack(wide.pack(values)[0]).tolist()[2] > 0


def test_values_stay_on_their_side_of_limits() -> None:
    values = np.array([-0.3, 0.0, 0.02, 50.0, 99.99, 100.0, 100.4], "f4")
    codes = Pack(0.1).codes(F4, PackingRange.of(values, ())).within(0.0, 100.0)
    packed, _ = codes.pack(values)
    (_, low), (_, high) = codes.limits[0] or (0, 0), codes.limits[1] or (0, 0)
    assert ((packed < low) == (values < 0)).all()
    assert ((packed > high) == (values > 100)).all()
    close = np.append(values, np.float32(-1e-4))
    with pytest.raises(DataError, match=r"on its side of the valid range, found -9\.99"):
        codes.pack(close)


def test_range_gives_the_same_codes_whatever_the_values() -> None:
    fixed = Pack(0.1, range=(200, 330))
    first, second = (fixed.codes(F4, PackingRange(low, low + 1)) for low in (210.0, 280.0))
    assert first == second
    assert fixed.codes(F4, PackingRange(100.0, 340.0)).value_of(1) == pytest.approx(100, abs=0.1)
    with pytest.raises(ParameterError, match=r"expected values from 200 to 330, found 340\.5: give a wider range"):
        Pack(0.1, (200, 330), "error").codes(F4, PackingRange(210.0, 340.5))


@pytest.mark.parametrize(
    ("dtype", "facts", "bound"),
    [
        (F4, PackingRange(100000.0, 100010.0), 1e-4),
        (F4, PackingRange(-1e30, 1e30), 0.1),
        (F8, PackingRange(0, 1e12), 0.1),
    ],
)
def test_what_32_bits_or_the_type_cannot_keep_is_refused(dtype: Any, facts: PackingRange, bound: float) -> None:
    with pytest.raises(ParameterError, match=r"bound that integers of 32 bits can keep and float\d\d unpacks exactly"):
        Pack(bound).codes(dtype, facts)


def test_infinity_is_refused_unless_it_marks_missing_values() -> None:
    with pytest.raises(DataError, match="found an infinite one"):
        PackingRange.of(np.array([1.0, np.inf], "f4"), ())
    with pytest.raises(DataError, match="found inf"):
        Pack(0.1).codes(F4, PackingRange(0, 1)).pack(np.array([0.5, np.inf], "f4"))


def test_text_reads_back() -> None:
    for text in (
        "pack(bound=0.1)",
        "pack(bound=0.1,range=200.0:330.5)",
        "pack(bound=0.1,range=-1.0:1.0,outside=error)",
    ):
        assert str(tamis.Pipeline.parse(f"{text}|shuffle|deflate(4)")) == f"{text}|shuffle|deflate(4)"
    for text, message in (
        ("pack", "pack with bound"),
        ("pack(bound=0)", "above 0"),
        ("pack(0.1,range=3:1)", "the smaller one first"),
        ("pack(0.1,range=3:)", "a number after ':'"),
        ("pack(0.1,range=3)", "two numbers such as 200:330"),
        ("pack(0.1,outside=no)", "widen, error"),
        ("shuffle|pack(0.1)", "before all filters"),
        ("pack(0.1)|zfp(accuracy=1)", "lossless filters after"),
    ):
        with pytest.raises(ParameterError, match=message):
            tamis.Pipeline.parse(text)


MARK = 9.96921e36
SPECIAL = [0.0, -0.0, NAN, MARK, 1e20, 1e-300, 5e-324, 1e-40, -1e30, 0.05, 0.1, 0.15, 0.25, 1 / 3, 1e5, 16777216.0]


@settings(max_examples=400, deadline=None)
@given(
    data=st.data(),
    dtype=st.sampled_from([F4, F8]),
    bound=st.one_of(st.sampled_from([0.1, 0.125, 0.5, 1.0, 1e-3, 1e25]), st.floats(1e-6, 1e6)),
)
def test_no_value_breaks_the_bound_however_it_is_unpacked(data: st.DataObject, dtype: Any, bound: float) -> None:
    size = data.draw(st.integers(0, 40))
    scale = data.draw(st.sampled_from([1.0, 100 * bound, 1e4 * bound, 1e7 * bound, 1e20]))
    base = data.draw(st.sampled_from([0.0, 273.15, -1e5 * bound, 1e9 * bound]))
    with np.errstate(over="ignore"):
        values = (base + scale * data.draw(arrays.arrays(F8, size, elements=st.floats(-1, 1)))).astype(dtype)
    if size:
        for at in data.draw(st.lists(st.integers(0, size - 1), max_size=5)):
            with np.errstate(over="ignore"):
                values[at] = data.draw(st.sampled_from(SPECIAL))
        for at in data.draw(st.lists(st.integers(0, size - 1), max_size=5)):
            with np.errstate(all="ignore"):
                tie = np.rint(values[at] / bound) * bound
            values[at] = tie if np.isfinite(tie) else values[at]
    marks = [dtype.type(MARK), dtype.type(1e20)][: data.draw(st.integers(0, 2))]
    try:
        codes = Pack(bound).codes(dtype, PackingRange.of(values, marks))
        packed, error = codes.pack(values)
    except (ParameterError, DataError):
        return
    missing = np.isnan(values) | np.isin(values, marks)
    reserved = [code for _, code in codes.missing]
    np.testing.assert_array_equal(np.isin(packed, reserved), missing)
    np.testing.assert_array_equal(codes.unpack(packed)[missing], values[missing])
    assert error <= bound
    for unpacked in unpackings(codes, packed):
        assert (np.abs(unpacked[~missing].astype("f8") - values[~missing].astype("f8")) <= bound).all()


def test_fill_value_that_no_value_has_gets_no_code_of_one(tmp_path: Path) -> None:
    """The fill value of HDF5 is 0 by default, and was a code of values where these need all codes."""
    path, target = tmp_path / "a.h5", tmp_path / "b.h5"
    values = (np.arange(256 * 20) // 20 * 0.19921875 + 280).astype("f4")
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, chunks=(640,))
    tamis.repack(path, target, {"x": "pack(bound=0.1)|shuffle|deflate(4)"})
    assert tamis.verify(path, target, bounds={"x": 0.1}).ok
    with h5py.File(target) as file:
        assert not (file["x"][...] == file["x"].fillvalue).any()


NUMBERS = st.sampled_from([-9.0, -0.0, 0.0, 1.5, 1e20, -1e20, 250.0, 300.0, NAN])


@given(arrays.arrays(st.sampled_from([F4, F8, np.dtype(">f4")]), st.integers(0, 3000), elements=NUMBERS, fill=NUMBERS))
def test_range_is_that_of_numpy_without_missing_values(values: Any) -> None:
    marks = [1e20, 250.0, 7.0]
    found = PackingRange.of(values, marks)
    each = [float(np.asarray(mark, values.dtype)) for mark in marks]
    present = [mark for mark in each if (values == mark).any()]
    valid = values[~np.isnan(values) & ~np.isin(values, each)]
    assert found.missing[: len(present)] == tuple(present)
    assert len(found.missing) == len(present) + np.isnan(values).any()
    if valid.size:
        assert (found.low, found.high) == (valid.min(), valid.max())
    else:
        assert found.low > found.high


@given(st.data(), st.sampled_from(["i1", ">i2", "i4"]), st.sampled_from([F4, F8]), st.integers(0, 2))
def test_unpacking_is_that_of_numpy(data: st.DataObject, code: str, dtype: np.dtype[Any], count: int) -> None:
    packed = data.draw(arrays.arrays(code, st.integers(0, 40)))
    missing = tuple(zip((NAN, -9.0), data.draw(st.permutations([0, 1])), strict=True))[:count]
    codes = Codes(np.dtype(code).newbyteorder("="), dtype, 0.199, 20.1, -100, 100, 0.1, missing)
    expected = packed.astype(dtype) * dtype.type(0.199) + dtype.type(20.1)
    for mark, number in missing:
        expected[packed == number] = mark
    np.testing.assert_array_equal(codes.unpack(packed), expected)


@pytest.fixture
def use_kernel() -> Iterator[Callable[[str], object]]:
    before = _native.kernel()
    yield _native.use_kernel
    _native.use_kernel(before)


def test_all_kernels_give_the_same_codes(use_kernel: Callable[[str], object]) -> None:
    rng = np.random.default_rng(3)
    codes = Pack(0.1).codes(F4, PackingRange(0.0, 300.0, (1e20, NAN)))
    for number in range(400):
        dtype = (F4, F8)[number % 2]
        values = rng.uniform(0, 300, int(rng.integers(1, 3000))).astype(dtype)
        values[rng.random(values.size) < rng.choice([0, 0.01, 0.5])] = rng.choice(
            [1e20, NAN, 1e9 if number % 9 == 0 else 3.0]
        )
        ties = rng.random(values.size) < 0.1
        values[ties] = (np.round(values[ties] / codes.scale) + 0.5) * codes.scale
        chosen = replace(codes, dtype=np.dtype(("i2", "i4")[number % 3 == 0]))
        results = []
        for kernel in _native.kernels():
            use_kernel(kernel)
            try:
                packed, error = chosen.pack(values)
                results.append((packed.tobytes(), error))
            except DataError as refused:
                results.append((b"", str(refused)))
        assert results.count(results[0]) == len(results), (number, [error for _, error in results])
