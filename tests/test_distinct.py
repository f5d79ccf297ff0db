"""Distinct values, as those of numpy.unique."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tamis.distinct import distinct


@pytest.mark.parametrize(
    "values",
    [
        np.array([], np.int64),
        np.array([3, 1, 1, 2, 3]),
        np.array([[2.5, -1.0], [2.5, 0.0]], np.float32),
        np.zeros((0, 3), np.uint8),
        np.random.default_rng(1).integers(0, 50, 1000),
    ],
)
def test_distinct_any_values_as_numpy_unique(values: NDArray[Any]) -> None:
    found = distinct(values)
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, np.unique(values))


def test_distinct_first_call_imports_nothing() -> None:
    code = "import sys, numpy, tamis.distinct as d; d.distinct(numpy.arange(9)); print('numpy.ma' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
