"""What programs that show files read from them, with the plugin and without it."""

from __future__ import annotations

from pathlib import Path

import netCDF4
import numpy as np
import pytest
from numpy.typing import NDArray

from .conftest import Done, Run, Target

pytestmark = [pytest.mark.check, pytest.mark.peer]

PARAVIEW = ("pvpython", Path(__file__).with_name("paraview_values.py"))


def values_of(done: Done) -> NDArray[np.float64]:
    return np.array(done.values.split(), float)


@pytest.mark.parametrize("kind", ["zfp", "masks", "rounded"])
def test_paraview_with_the_plugin_reads_every_value_within_the_bound(
    kind: str, targets: dict[str, Target], run: Run
) -> None:
    done = run(*PARAVIEW, targets[kind].path)
    assert done.code == 0, done.output[-2000:]
    targets[kind].check(values_of(done))


def test_paraview_without_the_plugin_reads_rounded_values_and_none_of_zfp(targets: dict[str, Target], run: Run) -> None:
    done = run(*PARAVIEW, targets["rounded"].path, plugin=False)
    assert done.code == 0, done.output[-2000:]
    targets["rounded"].check(values_of(done))
    done = run(*PARAVIEW, targets["zfp"].path, plugin=False)
    assert (done.code, done.values) == (1, "")
    assert "no values of t" in done.output


@pytest.mark.parametrize("kind", ["packed", "zeros"])
def test_paraview_unpacks_valid_values_and_shows_missing_ones_as_a_number(
    kind: str, targets: dict[str, Target], run: Run
) -> None:
    done = run(*PARAVIEW, targets[kind].path, plugin=False)
    assert done.code == 0, done.output[-2000:]
    with netCDF4.Dataset(targets[kind].path) as file:
        variable = file["t"]
        fill = float(variable._FillValue) * float(variable.scale_factor) + float(variable.add_offset)
    found = values_of(done)
    is_fill = np.isclose(found, fill, rtol=1e-12)
    assert is_fill.any()
    targets[kind].check(np.where(is_fill, np.nan, found))
