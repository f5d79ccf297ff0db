"""The ladder of tolerances and precisions: what encoder, decoder and comparison find one mode after the other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tamis import DataError, zfp
from tamis.accuracy.difference import largest_error
from tamis.zfp.arrays import rungs_of

SHAPES = ((37,), (9, 14), (6, 5, 11), (3, 5, 4, 7))
SCALES = {"f4": (1.0, 1e-40, 3e38, 1e-30), "f8": (1.0, 5e-320, 1e308, 1e-200)}


def fields(shape: tuple[int, ...], dtype: str) -> dict[str, NDArray[Any]]:
    """Return fields of many kinds."""
    random = np.random.default_rng(sum(shape))
    smooth = np.cumsum(random.normal(size=shape), axis=-1)
    rough = random.normal(size=shape) * 2.0 ** random.integers(-30, 30, shape)
    holes = np.where(random.random(shape) < 0.3, 0.0, smooth)
    steps = np.round(smooth)
    kinds = {"smooth": smooth, "rough": rough, "holes": holes, "steps": steps, "zeros": np.zeros(shape)}
    kinds["constant"] = np.full(shape, 273.15)
    for number, scale in enumerate(SCALES[dtype]):
        kinds[f"scale {number}"] = smooth / np.abs(smooth).max() * scale
    return {name: values.astype(dtype) for name, values in kinds.items()}


Modes = list[zfp.Accuracy | zfp.Precision]


def tolerances(high: int, low: int) -> Modes:
    """Return powers of two from one exponent down to another, as far as there are such floats."""
    return [zfp.Accuracy(2.0**exponent) for exponent in range(min(high, 1023), max(low, -1074) - 1, -1)]


def check(values: NDArray[Any], modes: Modes, valid: NDArray[np.bool_] | None = None) -> None:
    """Compare each rung with what is encoded, decoded and compared."""
    inside = slice(None) if valid is None else valid
    for mode, rung in zip(modes, rungs_of(values, modes, valid), strict=True):
        stream = zfp.encode(values, mode)
        after = zfp.decode(stream, values.shape, values.dtype, mode)
        assert rung.nbytes == len(stream), rung
        assert rung.error == largest_error(values[inside], after[inside]), rung
        with np.errstate(over="ignore"):
            squares = np.square(values[inside].astype("f8") - after[inside].astype("f8"))
        assert rung.squares == pytest.approx(float(squares.sum()), rel=1e-12, abs=0.0), rung


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_each_rung_is_what_one_mode_gives(shape: tuple[int, ...], dtype: str) -> None:
    for values in fields(shape, dtype).values():
        top = math.frexp(float(np.abs(values).max()) or 1.0)[1]
        # From no planes to all of them, whatever the size of the values.
        check(values, tolerances(top + 3, top - (40 if dtype == "f4" else 70)))
        check(values, [zfp.Precision(precision) for precision in (1, 2, 3, 9, 20, 31, 32, 33, 53, 64)])


def test_modes_may_have_any_order() -> None:
    values = fields((6, 5, 11), "f4")["smooth"]
    check(values, [zfp.Accuracy(0.5), zfp.Precision(3), zfp.Accuracy(1e-3), zfp.Accuracy(8), zfp.Precision(12)])


def test_errors_of_missing_values_do_not_count() -> None:
    values = fields((6, 5, 11), "f4")["smooth"]
    valid = np.random.default_rng(0).random(values.shape) < 0.5
    check(values, tolerances(4, -12), valid)
    assert rungs_of(values, tolerances(4, 4), np.zeros(values.shape, bool))[0][1:] == (0.0, 0.0)


def test_strides_and_byte_order_do_not_matter() -> None:
    values = fields((6, 5, 11), "f4")["smooth"]
    for other in (np.asfortranarray(values), values.astype(">f4"), np.repeat(values, 2, axis=2)[:, :, ::2]):
        assert rungs_of(other, tolerances(4, -12)) == rungs_of(values, tolerances(4, -12))


@pytest.mark.parametrize("mode", [zfp.Rate(8), zfp.Reversible(), zfp.Expert(maxbits=400)])
def test_modes_without_a_ladder_are_refused(mode: Any) -> None:
    with pytest.raises(ValueError, match="expected floats, and tolerances or precisions"):
        rungs_of(np.ones((5, 9), "f4"), [mode])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(value: float) -> None:
    values = np.ones((5, 9), "f4")
    values[3, 7] = value
    with pytest.raises(DataError, match=r"found NaN or infinity at index \(3, 7\)"):
        rungs_of(values, tolerances(0, -3))
