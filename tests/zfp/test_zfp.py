"""The modes of tamis.zfp, and what `encode` takes and refuses. Decoding and headers: test_zfp_decode.py."""

from __future__ import annotations

import math
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tamis import DataError, ParameterError, zfp

pytestmark = pytest.mark.usefixtures("kernel")  # once for each

LOSSY = [zfp.Rate(8), zfp.Precision(16), zfp.Accuracy(1.0), zfp.Expert(), zfp.Expert(maxbits=400)]
REVERSIBLE = [zfp.Reversible(), zfp.Expert(minexp=-1075)]


@pytest.mark.parametrize(
    ("arguments", "made"),
    [
        ({"rate": 4.5}, zfp.Rate(4.5)),
        ({"rate": 8}, zfp.Rate(8)),
        ({"precision": 1}, zfp.Precision(1)),
        ({"precision": np.int32(64)}, zfp.Precision(64)),
        ({"accuracy": 5e-324}, zfp.Accuracy(5e-324)),
        ({"accuracy": np.float32(0.5)}, zfp.Accuracy(0.5)),
        ({"reversible": True}, zfp.Reversible()),
        ({"reversible": False, "rate": 1}, zfp.Rate(1)),
        ({"minbits": 0, "maxbits": 1}, zfp.Expert(0, 1)),
        ({"maxprec": 20, "minexp": -5}, zfp.Expert(1, 16658, 20, -5)),
    ],
    ids=str,
)
def test_mode_one_given_made(arguments: dict[str, Any], made: zfp.Mode) -> None:
    assert zfp.mode(**arguments) == made


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "expected exactly one ZFP mode, got none"),
        ({"reversible": False}, "expected exactly one ZFP mode, got none"),
        ({"rate": 8, "accuracy": 1e-3}, "expected exactly one ZFP mode, got rate and accuracy"),
        ({"rate": 8, "reversible": True}, "expected exactly one ZFP mode, got rate and reversible"),
        ({"precision": 8, "accuracy": 1, "rate": 3}, "got rate and precision and accuracy"),
        ({"precision": 8, "minbits": 3, "maxprec": 4}, r"got precision and expert \(minbits, maxprec\)"),
        ({"reversible": "yes"}, "expected reversible=True or False, got reversible='yes'"),
    ],
    ids=str,
)
def test_mode_not_exactly_one_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        zfp.mode(**arguments)


@pytest.mark.parametrize("rate", [0, 0.0, -1, -1e-9, math.nan, math.inf, True, "8", 1 + 0j, [8]])
def test_rate_not_above_0_and_finite_refused(rate: Any) -> None:
    with pytest.raises(ParameterError, match=r"expected a finite rate above 0 bits per value, got rate="):
        zfp.Rate(rate)


@pytest.mark.parametrize("precision", [0, 65, -1, 1.5, 16.0, True, math.nan, "16", 1 << 40])
def test_precision_not_whole_of_1_to_64_refused(precision: Any) -> None:
    with pytest.raises(ParameterError, match=r"expected a precision of 1 to 64 bit planes, got precision="):
        zfp.Precision(precision)


@pytest.mark.parametrize("accuracy", [0, 0.0, -0.0, np.float32(0)])
def test_accuracy_0_refused_with_reversible_suggested(accuracy: float) -> None:
    with pytest.raises(ParameterError, match="expected an accuracy above 0, got accuracy=0: use reversible=True"):
        zfp.Accuracy(accuracy)


@pytest.mark.parametrize("accuracy", [-1, -1e-300, math.nan, math.inf, -math.inf, True, "0.1"])
def test_accuracy_not_above_0_and_finite_refused(accuracy: Any) -> None:
    with pytest.raises(ParameterError, match="expected a finite accuracy above 0, got accuracy="):
        zfp.Accuracy(accuracy)


@pytest.mark.parametrize(
    "numbers",
    [
        {"minbits": -1},
        {"minbits": 17, "maxbits": 16},
        {"minbits": 32769, "maxbits": 40000},
        {"minbits": 0, "maxbits": 0},
        {"maxbits": 1 << 32},
        {"maxprec": 0},
        {"maxprec": 65},
        {"minexp": 1 << 31},
        {"minexp": -(1 << 31) - 1},
    ],
    ids=str,
)
def test_expert_out_of_range_refused(numbers: dict[str, int]) -> None:
    with pytest.raises(ParameterError, match="expected 0 <= minbits <= maxbits, minbits <= 32768, maxbits >= 1"):
        zfp.Expert(**numbers)


@pytest.mark.parametrize("numbers", [{"minbits": 1.5}, {"maxprec": True}, {"minexp": "-5"}, {"maxbits": None}], ids=str)
def test_expert_not_whole_refused(numbers: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="expected whole numbers in expert mode, got minbits="):
        zfp.Expert(**numbers)


@pytest.mark.parametrize(
    ("tolerance", "kept"), [(1e-3, 2.0**-10), (0.5, 0.5), (0.75, 0.5), (1000, 512), (5e-324, 5e-324)]
)
def test_accuracy_effective_power_of_two_not_above(tolerance: float, kept: float) -> None:
    assert zfp.Accuracy(tolerance).effective == kept


@pytest.mark.parametrize("mode", [zfp.Rate(2049), zfp.Rate(8193), zfp.Rate(1e300)], ids=str)
def test_encode_rate_of_more_than_32768_bits_per_block_refused(mode: zfp.Mode) -> None:
    with pytest.raises(ParameterError, match=f"give 1 to 32768 bits per block, got {re.escape(str(mode))}"):
        zfp.encode(np.zeros((8, 8)), mode)


@pytest.mark.parametrize(
    ("rate", "dtype", "rank", "effective"),
    [
        (9 / 256, "f4", 4, 9 / 256),
        (0.05, "f4", 2, 9 / 16),
        (0.05, "f8", 1, 3),
        (4.3, "f4", 1, 4.25),
        (8192, "f8", 1, 8192),
    ],
)
def test_rate_effective_is_that_of_the_stream(rate: float, dtype: str, rank: int, effective: float) -> None:
    assert zfp.Rate(rate).effective(np.dtype(dtype), rank) == effective
    assert len(zfp.encode(np.ones((4,) * rank, dtype), zfp.Rate(rate))) == -(-effective * 4**rank // 8)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("mode", LOSSY, ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_encode_non_finite_lossy_refused_with_first_index(dtype: str, mode: zfp.Mode, value: float) -> None:
    array = np.ones((6, 5, 9), dtype)
    array[4, 1, 8] = array[2, 3, 1] = array[2, 3, 7] = value
    message = rf"expected finite values with {mode}, found NaN or infinity at index \(2, 3, 1\): use reversible=True"
    with pytest.raises(DataError, match=message):
        zfp.encode(array, mode)
    with pytest.raises(DataError, match=r"at index \(3, 3, 0\)"):  # the index in the view, not in memory
        zfp.encode(array[::-1, :, 1::3][:, :, ::-1], mode)


@pytest.mark.parametrize(("dtype", "nbits"), [("i4", 30), ("i8", 62)])
@pytest.mark.parametrize("mode", LOSSY, ids=str)
def test_encode_integer_lossy_range_taken_up_to_its_border_and_refused_from_it(
    mode: zfp.Mode, dtype: str, nbits: int
) -> None:
    array = np.zeros((5, 6), dtype)
    array[4, 3], array[1, 1] = (1 << nbits) - 1, 1 - (1 << nbits)
    zfp.encode(array, mode)
    for refused in (1 << nbits, -(1 << nbits), np.iinfo(dtype).max, np.iinfo(dtype).min):
        array[3, 2] = refused
        with pytest.raises(DataError, match=rf"expected integers of magnitude below 2\^{nbits} .*at index \(3, 2\)"):
            zfp.encode(array, mode)


@pytest.mark.parametrize("mode", LOSSY, ids=str)
@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_encode_unsigned_lossy_refused(dtype: str, mode: zfp.Mode) -> None:
    with pytest.raises(ParameterError, match=f"expected signed integers or floats in a lossy mode, got {dtype} with"):
        zfp.encode(np.zeros((5, 6), dtype), mode)


@pytest.mark.parametrize("mode", REVERSIBLE, ids=str)
@pytest.mark.parametrize("dtype", ["u4", "u8", "i4", "i8", "f4", "f8"])
def test_encode_reversible_any_bits_exact(dtype: str, mode: zfp.Mode) -> None:
    array = np.frombuffer(np.random.default_rng(0).bytes(7 * 6 * 5 * int(dtype[1])), dtype).reshape(7, 6, 5)
    decoded = zfp.decode(zfp.encode(array, mode), array.shape, dtype, mode)
    assert decoded.dtype == array.dtype
    assert decoded.tobytes() == array.tobytes()


@pytest.mark.parametrize("tolerance", [0.5, 0.999, 1e-3, 5e-324])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_encode_integer_accuracy_below_1_refused_with_reversible_suggested(dtype: str, tolerance: float) -> None:
    with pytest.raises(ParameterError, match=f"expected an accuracy of 1 or more for {dtype}, got .*reversible=True"):
        zfp.encode(np.zeros(8, dtype), zfp.Accuracy(tolerance))


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_encode_integer_accuracy_from_1_on_same_bytes_whatever_the_tolerance(dtype: str, rank: int) -> None:
    # As libzfp, whose integer codec does not look at the tolerance: what Accuracy's documentation says of integers.
    array = np.random.default_rng(rank).integers(-(2**29), 2**29, (8,) * rank).astype(dtype)
    streams = {zfp.encode(array, zfp.Accuracy(tolerance)) for tolerance in (1, 16, 2.0**25)}
    assert len(streams) == 1
    error = np.abs(zfp.decode(streams.pop(), array.shape, dtype, zfp.Accuracy(1)) - array).max()
    assert 1 < error <= {1: 2, 2: 9, 3: 26, 4: 77}[rank]


@given(
    hnp.arrays(
        st.sampled_from(["f4", "f8"]),
        hnp.array_shapes(max_dims=4, max_side=6),
        elements=st.floats(-1e6, 1e6, width=32, allow_subnormal=False),
    ),
    st.integers(-6, 20).map(lambda exponent: 1.7 * 2.0**exponent),
)
def test_encode_accuracy_any_values_error_within(array: np.ndarray[Any, Any], tolerance: float) -> None:
    # Tolerances well above the last bit of a float32 of 10^6, which no mode can go below.
    mode = zfp.Accuracy(max(tolerance, 1.0) if array.dtype == "f4" else tolerance)
    decoded = zfp.decode(zfp.encode(array, mode), array.shape, array.dtype, mode)
    assert np.abs(decoded.astype("f8") - array.astype("f8")).max() <= mode.effective


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
@pytest.mark.parametrize("shape", [(13,), (5, 7), (3, 6, 9), (5, 4, 2, 6)])
def test_encode_rate_size_is_blocks_times_bits(dtype: str, shape: tuple[int, ...]) -> None:
    blocks = math.prod(-(-extent // 4) for extent in shape)
    bits = math.floor(4 ** len(shape) * 5.3 + 0.5)
    assert len(zfp.encode(np.ones(shape, dtype), zfp.Rate(5.3))) == -(-blocks * bits // 8)


@pytest.mark.parametrize(
    "dtype", ["bool", "i1", "u1", "i2", "u2", "f2", "g", "c8", "c16", "S4", "O", "M8[ns]", "m8[s]", "i4,f4"]
)
@pytest.mark.parametrize("mode", [zfp.Rate(8), zfp.Reversible()], ids=str)
def test_encode_other_type_refused(mode: zfp.Mode, dtype: str) -> None:
    with pytest.raises(ParameterError, match="expected int32, int64, float32 or float64 values, got "):
        zfp.encode(np.zeros(8, dtype), mode)


@pytest.mark.parametrize("shape", [(), (2,) * 5, (1,) * 6])
def test_encode_other_rank_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError, match=r"expected 1 to 4 axes, got shape \("):
        zfp.encode(np.zeros(shape), zfp.Rate(8))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4, 4), (2, 2, 0, 2)])
def test_encode_empty_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError, match="expected at least one value along each axis, got shape"):
        zfp.encode(np.zeros(shape), zfp.Rate(8))


@pytest.mark.parametrize("mode", [zfp.Rate(11), zfp.Accuracy(2), zfp.Reversible()], ids=str)
@pytest.mark.parametrize("dtype", ["i4", "i8", "f4", "f8"])
def test_encode_other_byte_order_same_bytes(dtype: str, mode: zfp.Mode) -> None:
    array = np.random.default_rng(1).integers(-1000, 1000, (5, 7)).astype(dtype)
    assert zfp.encode(array.astype(array.dtype.newbyteorder()), mode) == zfp.encode(array, mode)


@pytest.mark.parametrize("dtype", ["i4", "i8", "f4", "f8"])
def test_encode_unaligned_same_bytes(dtype: str) -> None:
    array = np.random.default_rng(1).integers(-1000, 1000, (5, 7)).astype(dtype)
    packed = np.zeros((5, 7), [("pad", "u1"), ("value", dtype)])
    packed["value"] = array
    assert zfp.encode(packed["value"], zfp.Precision(20)) == zfp.encode(array, zfp.Precision(20))


def test_encode_sequence_taken_as_array() -> None:
    assert zfp.encode([1.0, 2.0, 3.5], zfp.Rate(16)) == zfp.encode(np.array([1, 2, 3.5]), zfp.Rate(16))


def test_encode_source_not_changed() -> None:
    array = np.random.default_rng(1).standard_normal((7, 9))
    before = array.tobytes()
    for mode in (*LOSSY, *REVERSIBLE):
        zfp.encode(array, mode)
    assert array.tobytes() == before


def test_encode_and_decode_lock_released_while_coding() -> None:
    """With a switch interval without end, another thread runs only if the codec lets go of the interpreter's lock."""
    array = np.random.default_rng(2).standard_normal((64, 64, 16))
    stream, out = zfp.encode(array, zfp.Rate(16)), np.empty_like(array)
    calls = {
        "encode": lambda: zfp.encode(array, zfp.Rate(16)),
        "decode": lambda: zfp.decode(stream, array.shape, array.dtype, zfp.Rate(16), out),
    }
    interval = sys.getswitchinterval()
    for name, call in calls.items():
        started, noticed = threading.Event(), threading.Event()
        alone: list[bool] = []

        def work(call: Any = call, started: Any = started, noticed: Any = noticed, alone: Any = alone) -> None:
            started.set()
            for _ in range(300):
                call()
                if noticed.is_set():
                    return
            alone.append(True)

        worker = threading.Thread(target=work)
        sys.setswitchinterval(1000)
        try:
            worker.start()
            started.wait()
            noticed.set()
            worker.join()
        finally:
            sys.setswitchinterval(interval)
        assert not alone, f"{name} held the lock through 300 calls"


def test_encode_and_decode_8_threads_same_results() -> None:
    arrays = [
        np.random.default_rng(seed).standard_normal((23, 18, 21)).astype("f4" if seed % 2 else "f8")
        for seed in range(8)
    ]
    modes = [zfp.Rate(7.5), zfp.Precision(19), zfp.Accuracy(1e-3), zfp.Reversible()] * 2

    def code(i: int) -> tuple[bytes, bytes]:
        array, mode = arrays[i % 8], modes[i // 2 % 8]
        stream = zfp.encode(array, mode)
        return stream, zfp.decode(stream, array.shape, array.dtype, mode).tobytes()

    alone = [code(i) for i in range(64)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(code, range(64))) == alone
