"""Fields that the codec is compared on: by type, shape, content and memory layout, the same on every run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Field = np.ndarray[Any, Any]


def float_values(content: str, dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> Field:
    """Finite values, but for `specials` and `bits`."""
    info = np.finfo(dtype)
    places = np.indices(shape).astype("f8")
    match content:
        case "smooth":
            return 300 * sum(np.sin(0.1 * (axis + 1) * place) for axis, place in enumerate(places))
        case "noise":
            return rng.standard_normal(shape)
        case "constant":
            return np.full(shape, 273.15)
        case "zeros":
            return np.zeros(shape)
        case "signed zeros":
            return rng.choice([0.0, -0.0], shape)
        case "subnormal":
            return float(info.smallest_subnormal) * rng.integers(-1000, 1000, shape)
        case "least normal":
            return float(info.smallest_normal) * rng.choice([-1, -0.4, 0, 0.3, 1, 1.5], shape)
        case "huge range":
            return rng.standard_normal(shape) * 10.0 ** rng.uniform(info.minexp * 0.3, info.maxexp * 0.29, shape)
        case "largest":
            return float(info.max) * rng.choice([-1, 1, 0.5, 1e-3], shape)
        case "sparse":
            return rng.standard_normal(shape) * (rng.random(shape) < 0.05)
        case "fill values":
            return np.where(rng.random(shape) < 0.2, 9.96921e36, 280 + rng.random(shape))
        case "integral":
            return rng.integers(-9, 9, shape)
        case "specials":
            return rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.5, float(info.smallest_subnormal)], shape)
        case "bits":
            return np.frombuffer(rng.bytes(int(np.prod(shape)) * info.bits // 8), dtype).reshape(shape)
    raise AssertionError(content)


def integer_values(content: str, dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> Field:
    """Values in the range of the lossy modes, but for `full range`."""
    info = np.iinfo(dtype)
    lossy = 1 << info.bits - 2
    places = np.indices(shape).astype("f8")
    match content:
        case "smooth":
            return 1e6 * sum(np.sin(0.1 * (axis + 1) * place) for axis, place in enumerate(places))
        case "noise":
            return rng.integers(-1000, 1000, shape)
        case "constant":
            return np.full(shape, -77)
        case "zeros":
            return np.zeros(shape)
        case "sparse":
            return rng.integers(-lossy + 1, lossy, shape) * (rng.random(shape) < 0.05)
        case "limits":
            return rng.choice(np.array([1 - lossy, lossy - 1, 0, 1, -1], dtype), shape)
        case "wide":
            return rng.integers(1 - lossy, lossy, shape)
        case "powers":
            return np.int64(1) << rng.integers(0, info.bits - 2, shape)
        case "full range":
            values = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
            return np.where(rng.random(shape) < 0.1, rng.choice(np.array([info.min, info.max], dtype), shape), values)
    raise AssertionError(content)


def laid_out(values: Field, layout: str) -> Field:
    """Place the values in memory in another way; what lies between them is poison."""
    poison = np.nan if values.dtype.kind == "f" else np.iinfo(values.dtype).min
    match layout:
        case "c":
            return values
        case "fortran":
            return np.asfortranarray(values)
        case "axes rolled":
            return np.moveaxis(np.ascontiguousarray(np.moveaxis(values, 0, -1)), -1, 0)
        case "reversed":
            turn = (slice(None, None, -1),) * values.ndim
            return np.ascontiguousarray(values[turn])[turn]
        case "stepped":
            every = (slice(1, None, 2),) * values.ndim
            room = np.full([2 * extent + 1 for extent in values.shape], poison, values.dtype)
            room[every] = values
            return room[every]
        case "stepped back":
            every = (slice(None, None, 3),) * (values.ndim - 1) + (slice(None, None, -2),)
            room = np.full([*(3 * n - 2 for n in values.shape[:-1]), 2 * values.shape[-1] - 1], poison, values.dtype)
            room[every] = values
            return room[every]
        case "within":
            inner = (slice(1, -2),) * values.ndim
            room = np.full([extent + 3 for extent in values.shape], poison, values.dtype)
            room[inner] = values
            return room[inner]
        case "read-only":
            values = values.copy()
            values.flags.writeable = False
            return values
        case "broadcast":
            return np.broadcast_to(values[:1], values.shape)
    raise AssertionError(layout)


@pytest.fixture(scope="session")
def make_field() -> Callable[..., Field]:
    """Make a field from a type, a shape, a content, a layout and a seed."""

    def make(dtype: str, shape: tuple[int, ...], content: str, layout: str = "c", seed: int = 0) -> Field:
        values_of = float_values if np.dtype(dtype).kind == "f" else integer_values
        values = np.ascontiguousarray(values_of(content, dtype, shape, np.random.default_rng(seed)), dtype)
        field = laid_out(values, layout)
        assert field.shape == shape
        assert field.dtype == dtype
        return field

    return make
