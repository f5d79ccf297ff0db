"""What programs that show files read from them, with the plugin and without it."""

from __future__ import annotations

import re
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest
from document_blocks import blocks
from numpy.typing import NDArray

import tamis

from .conftest import Done, Run, Target

pytestmark = [pytest.mark.check, pytest.mark.peer]

PARAVIEW = ("pvpython", Path(__file__).with_name("paraview_values.py"))
XDMF = ("pvpython", Path(__file__).with_name("paraview_xdmf.py"))
PAGE = Path(__file__).parents[2] / "docs" / "simulation.md"
WHOLE = '<DataItem Dimensions="64 64 64" Format="HDF" NumberType="Float" Precision="4">simulation.h5:/p</DataItem>'


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


@pytest.mark.parametrize("reader", ["2", "3"])
def test_paraview_reads_hdf5_through_xdmf_with_the_plugin_alone(reader: str, run: Run, tmp_path: Path) -> None:
    field = np.sin(np.linspace(0, 20, 4 * 64**3, dtype="f4")).reshape(4, 64, 64, 64)
    (description,) = [block.text for block in blocks(PAGE.read_text()) if block.file == "run.xmf"]
    if reader == "3":  # a step alone, because this reader cannot take parts of a dataset, with filters or without
        field = field[1]
        description = re.sub(
            r"<DataItem ItemType.*</DataItem>\n(?= *</Attribute>)", WHOLE, description, flags=re.DOTALL
        )
    with h5py.File(tmp_path / "simulation.h5", "w") as file:
        tamis.hdf5.write(file, "p", field, filters="zfp(accuracy=1e-3)", chunks=(*[1] * (field.ndim - 3), 64, 64, 64))
    (tmp_path / "run.xmf").write_text(description.replace("simulation.h5", str(tmp_path / "simulation.h5")))
    expected = (field if field.ndim == 3 else field[1]).ravel()
    done = run(*XDMF, tmp_path / "run.xmf", reader)
    assert done.code == 0, done.output[-2000:]
    np.testing.assert_allclose(values_of(done), expected, rtol=0, atol=1e-3)
    done = run(*XDMF, tmp_path / "run.xmf", reader, plugin=False)
    assert "rror" in done.output
    found = values_of(done)
    assert found.size == 0 or not np.allclose(found, expected, rtol=0, atol=1e-3)
