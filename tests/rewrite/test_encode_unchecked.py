"""Chunks that are written without being decoded are within the bound all the same; verification would find others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Pipeline
from tamis.accuracy.difference import largest_error
from tamis.filters import ChunkType
from tamis.meaning import Missing
from tamis.rewrite.encode import ChunkEncoder, Encoded

SPARED = {"f4": 18, "f8": 44}


def pipeline(accuracy: float) -> Pipeline:
    return Pipeline.parse(f"zfp(accuracy={accuracy!r})")


def encode(accuracy: float, values: Any, missing: tuple[float, ...] = ()) -> Encoded:
    encoder = ChunkEncoder(pipeline(accuracy), ChunkType(values.dtype, values.shape), missing=Missing(missing))
    return encoder.encode(values)


def unchecked(accuracy: float, values: Any, missing: tuple[float, ...], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the chunk is encoded without being decoded."""
    decoded = []
    decode = Pipeline.decode

    def counted(self: Pipeline, *arguments: Any) -> Any:
        decoded.append(1)
        return decode(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(Pipeline, "decode", counted)
        encode(accuracy, values, missing)
    return not decoded


@pytest.mark.check
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
    found = encode(accuracy, values)
    assert found.mask == 0
    again = pipeline(accuracy).decode(found.data, found.mask, ChunkType(values.dtype, shape))
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
    assert unchecked(accuracy, values, missing, monkeypatch) == expected


@pytest.mark.parametrize(("dtype", "exponent"), [("f4", -100), ("f8", -970)])
def test_encode_chunk_of_tiny_values_keeps_a_bound_that_is_tinier(dtype: str, exponent: int) -> None:
    """libzfp scales such blocks by infinity: they decode to something else, and go without zfp."""
    values = np.ldexp(np.linspace(0.5, 1, 64), exponent).astype(dtype)
    accuracy = 2.0 ** (exponent - 10)
    found = encode(accuracy, values)
    again = pipeline(accuracy).decode(found.data, found.mask, ChunkType(values.dtype, (64,)))
    assert largest_error(values, again) <= accuracy
    assert found.mask == 1


def test_encode_chunk_with_a_huge_value_checked_and_stored_without_zfp(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.linspace(-100, 100, 256, dtype="f4").reshape(16, 16)
    values[3, 3] = 9.96921e36
    assert not unchecked(0.1, values, (), monkeypatch)
    assert encode(0.1, values).mask == 1
