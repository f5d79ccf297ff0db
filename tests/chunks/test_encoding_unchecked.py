"""Chunks that are written without being decoded are within the bound all the same; verification would find others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.chunks.difference import Missing, largest_error
from tamis.filters import ChunkType
from tamis.hdf5.rewriting.encoding import encode_chunk
from tamis.hdf5.rewriting.plans import Plan
from tamis.pipeline import Pipeline

SPARED = {"f4": 18, "f8": 44}


def plan(accuracy: float, dtype: str, chunks: tuple[int, ...], missing: tuple[float, ...] = ()) -> Plan:
    pipeline = Pipeline.parse(f"zfp(accuracy={accuracy!r})")
    return Plan("/v", pipeline, np.dtype(dtype), chunks, missing=Missing(missing))


def unchecked(wanted: Plan, values: Any, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the chunk is encoded without being decoded."""
    decoded = []
    decode = Pipeline.decode

    def counted(self: Pipeline, *arguments: Any) -> Any:
        decoded.append(1)
        return decode(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(Pipeline, "decode", counted)
        encode_chunk(wanted, tuple(slice(0, n) for n in values.shape), values)
    return not decoded


@given(
    st.sampled_from(["f4", "f8"]),
    st.integers(1, 4),
    st.sampled_from(["uniform", "signs", "spikes", "two", "edges"]),
    st.integers(0, 30),
    st.floats(1, 2, exclude_max=True),
    st.integers(-60, 60),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=1500)
def test_encode_chunk_without_a_check_keeps_the_bound(
    dtype: str, rank: int, kind: str, above: int, mantissa: float, exponent: int, seed: int
) -> None:
    """The hardest values: no two alike side by side, as near to the limit as it goes unchecked."""
    random = np.random.default_rng(seed)
    shape = (8,) * rank if rank < 4 else (4, 4, 4, 8)
    values = {
        "uniform": lambda: random.uniform(-1, 1, shape),
        "signs": lambda: random.choice([-1.0, 1.0], shape),
        "spikes": lambda: (random.uniform(size=shape) < 0.1) * random.uniform(-1, 1, shape),
        "two": lambda: random.choice([1.0, np.nextafter(1, 0), -1.0, 0.0], shape),
        "edges": lambda: np.sign(np.indices(shape).sum(0) % 2 - 0.5) * random.uniform(0.99, 1, shape),
    }[kind]()
    values = (values * mantissa * 2.0**exponent).astype(dtype)
    largest = float(np.abs(values).max())
    accuracy = largest * 2.0 ** (above - SPARED[dtype]) or 1.0
    wanted = plan(accuracy, dtype, shape)
    found = encode_chunk(wanted, tuple(slice(0, n) for n in shape), values)
    assert found.mask == 0
    again = wanted.pipeline.decode(found.data, found.mask, ChunkType(wanted.dtype, shape))
    assert largest_error(values, again) <= accuracy


@pytest.mark.parametrize(
    ("accuracy", "missing", "expected"),
    [
        (0.1, (), True),
        (0.1, (1e20,), True),
        (0.1, (-999.0,), True),
        (0.1, (100.05,), False),
        (0.1, (0.0,), False),
        (1e-5, (), False),
    ],
)
def test_encode_chunk_checks_what_is_near_a_limit(
    accuracy: float, missing: tuple[float, ...], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.linspace(-100, 100, 256, dtype="f4").reshape(16, 16)
    assert unchecked(plan(accuracy, "f4", (16, 16), missing), values, monkeypatch) == expected


@pytest.mark.parametrize(("dtype", "exponent"), [("f4", -100), ("f8", -970)])
def test_encode_chunk_of_tiny_values_keeps_a_bound_that_is_tinier(dtype: str, exponent: int) -> None:
    """libzfp scales such blocks by infinity: they decode to something else, and go without zfp."""
    values = np.ldexp(np.linspace(0.5, 1, 64), exponent).astype(dtype)
    wanted = plan(2.0 ** (exponent - 10), dtype, (64,))
    found = encode_chunk(wanted, (slice(0, 64),), values)
    again = wanted.pipeline.decode(found.data, found.mask, ChunkType(wanted.dtype, (64,)))
    assert largest_error(values, again) <= 2.0 ** (exponent - 10)
    assert found.mask == 1


def test_encode_chunk_with_a_huge_value_checked_and_stored_without_zfp(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.linspace(-100, 100, 256, dtype="f4").reshape(16, 16)
    values[3, 3] = 9.96921e36
    wanted = plan(0.1, "f4", (16, 16))
    assert not unchecked(wanted, values, monkeypatch)
    assert encode_chunk(wanted, (slice(0, 16), slice(0, 16)), values).mask == 1
