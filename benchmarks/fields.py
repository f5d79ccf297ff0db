"""Deterministic test fields: random phases under a turbulence-like spectrum, from rough to well resolved."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SHAPES = {1: (1 << 19,), 2: (768, 768), 3: (80, 80, 80), 4: (28, 28, 28, 28)}
CUTOFFS = {"rough": 0.35, "smooth": 0.05}
_INTEGER_SCALE = {"int32": 2.0**20, "int64": 2.0**40}


def field(rank: int, kind: str, dtype: str) -> NDArray[np.generic]:
    """Field of unit standard deviation; integers have 21 or 41 bits and a sign.

    Parameters
    ----------
    rank
        1 to 4 axes, see `SHAPES`.
    kind
        Of `CUTOFFS`: the share of the grid's resolution at which the spectrum ends.
    """
    shape = SHAPES[rank]
    spectrum = np.fft.rfftn(np.random.default_rng(rank).standard_normal(shape))
    squares = np.zeros(spectrum.shape)
    for axis, extent in enumerate(shape):
        waves = (np.fft.rfftfreq(extent) if axis == rank - 1 else np.fft.fftfreq(extent)) * max(shape)
        squares += waves.reshape([-1 if i == axis else 1 for i in range(rank)]) ** 2
    squares.flat[0] = 1
    spectrum *= squares ** ((-5 / 3 - (rank - 1)) / 4) * np.exp(-squares / (CUTOFFS[kind] * max(shape)) ** 2)
    values = np.fft.irfftn(spectrum, s=shape, axes=range(rank))
    values = values / values.std()
    if dtype in _INTEGER_SCALE:
        values = np.round(values * _INTEGER_SCALE[dtype])
    return np.ascontiguousarray(values.astype(dtype))
