"""Unpacking by division, which is the arithmetic of Zarr's codec ``scale_offset``: value = code / scale + offset.

The scale is 1 / step, which few steps have exactly. But a quotient is rounded, too: if the scale errs by less than a
quarter of what rounding allows, each multiple of the step that a float can hold is the nearest one to its quotient, so
that division gives the same bits as ``code * step``. Such a step is called invertible.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

_WIDE = np.dtype(np.float64)
"""Readers may compute in this type and round at the end: zarrita.js does."""


def is_invertible(step: float, dtype: np.dtype[Any]) -> bool:
    """Return whether division by the scale of a step is exact for each of its multiples that a type holds.

    With p bits in a number of the type, and a scale of (1 + d) / step, a multiple x < 2^(e+1) becomes x / (1 + d), less
    than 2^(e+1) * abs(d) away from it. Half of the distance between numbers there is 2^(e-p), and 2^(e-p-1) below 2^e:
    so the nearest one is x if abs(d) < 2^-(p+1).
    """
    return all(_relative_error(step, kind) < Fraction(1, 1 << (np.finfo(kind).nmant + 2)) for kind in {dtype, _WIDE})


def _relative_error(step: float, dtype: np.dtype[Any]) -> Fraction:
    """Return how far the scale of a step in a type is from 1 / step, relative to that."""
    with np.errstate(over="ignore"):
        scale = float(dtype.type(scale_of(step)))
    return abs(1 - Fraction(scale) * Fraction(step)) if math.isfinite(scale) else Fraction(1)


def scale_of(step: float) -> float:
    """Return the scale of a step; a type with fewer digits has the nearest number of its own."""
    return 1 / step


def step_of(scale: np.floating[Any]) -> np.floating[Any]:
    """Return the step of a scale, in its type; the same as before if the step is invertible."""
    with np.errstate(all="ignore"):
        return scale.dtype.type(1) / scale


def divided(codes: NDArray[Any], scale: np.floating[Any], offset: np.floating[Any]) -> NDArray[Any]:
    """Return code / scale + offset, computed in the type of scale and offset."""
    with np.errstate(all="ignore"):
        return np.asarray(codes.astype(scale.dtype) / scale + offset, scale.dtype)


def invertible_step(most: float, bits: int, dtype: np.dtype[Any]) -> float:
    """Return the largest step up to `most` that has only so many bits and is invertible; powers of two always are."""
    fraction, exponent = math.frexp(most)
    whole = math.floor(math.ldexp(fraction, bits))
    while not is_invertible(float(whole), dtype):
        whole -= 1
    return math.ldexp(whole, exponent - bits)


def exact_steps(dtype: np.dtype[Any], step: float) -> int:
    """Return the largest number of steps whose product and sums are exact in a type."""
    odd = step.as_integer_ratio()[0]
    while not odd & 1:
        odd >>= 1
    return int(((1 << (np.finfo(dtype).nmant + 1)) - 1) // odd)
