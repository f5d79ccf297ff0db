"""Values that packing may spoil."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


def hostile(random: np.random.Generator, count: int) -> Iterator[tuple[str, Any, dict[str, Any], float]]:
    """Values that packing may spoil, by what is special: name, values, attributes, and the bound."""
    noise = random.standard_normal(count)
    smooth = np.cumsum(noise) / 100 + 280
    ties = np.rint(smooth / 0.125) * 0.125 + np.where(noise > 0, 0.0625, 0.0)
    heavy = np.sign(noise) * np.abs(noise) ** 9
    gaps = random.random(count) < 0.3
    for dtype in (np.float32, np.float64):
        marked = {"_FillValue": dtype(1e20), "missing_value": dtype(1e20)}
        yield "smooth", smooth.astype(dtype), {}, 0.1
        yield "fine", smooth.astype(dtype), {}, 0.001
        yield "ties", ties.astype(dtype), {}, 0.0625
        yield "around zero", noise.astype(dtype), {"valid_min": dtype(-3), "valid_max": dtype(3)}, 0.01
        yield "zeros", np.where(gaps, 0, np.abs(noise)).astype(dtype), {}, 0.1
        yield "marked", np.where(gaps, 1e20, smooth).astype(dtype), marked, 0.05
        yield "nan", np.where(gaps, np.nan, smooth).astype(dtype), {}, 0.05
        yield "both", np.where(gaps, np.where(noise > 0, np.nan, 1e20), smooth).astype(dtype), marked, 0.05
        yield "mark among values", np.where(gaps, 0, noise).astype(dtype), {"_FillValue": dtype(0)}, 0.01
        yield "spikes", np.where(random.random(count) < 1e-4, 1e30, smooth).astype(dtype), {}, 0.1
        yield "heavy", heavy.astype(dtype), {}, 1.0
        yield "large", (noise * 1e30).astype(dtype), {}, 1e26
        yield "tiny", (noise * 1e-30).astype(dtype), {}, 1e-33
        yield "denormal", (noise * float(np.finfo(dtype).tiny)).astype(dtype), {}, float(np.finfo(dtype).tiny)
        yield "far from zero", (noise + 1e5).astype(dtype), {}, 0.01
        yield "constant", np.full(count, 7.3, dtype), {}, 0.1
