"""Known defect U108: bounds, types and shapes at their limits are errors in words, or work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis


@pytest.mark.parametrize("values", [(1e300, 0.0), (1e20, 1e-308), (-1e308, 1e308), (1.0, 0.0)])
@pytest.mark.parametrize("bound", [5e-324, 6e-308, 1e-300])
def test_u108_pack_with_a_bound_near_the_smallest_number_is_refused(
    tmp_path: Path, values: tuple[float, float], bound: float
) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["v"] = np.array(values * 600)
    with pytest.raises(tamis.ParameterError, match="expected a bound that integers of 32 bits can keep"):
        tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"v": f"pack(bound={bound})|deflate"})


@pytest.fixture
def nested(tmp_path: Path) -> Path:
    """Make a file with a type of 360 compound types in each other, and an array of numbers."""
    dtype = np.dtype("f4")
    for _ in range(360):
        dtype = np.dtype([("a", dtype)])
    with h5py.File(tmp_path / "n.h5", "w", libver="latest") as file:
        file.create_dataset("x", data=np.zeros(1000, dtype), chunks=(100,))
        file["y"] = np.linspace(0, 1, 10_000)
    return tmp_path / "n.h5"


JOBS: dict[str, Callable[[Path], Any]] = {
    "inspect": lambda path: tamis.inspect(path).to_json(),
    "plan": tamis.plan,
    "verify": lambda path: tamis.verify(path, path),
    "report": lambda path: tamis.report(path, path),
    "repack": lambda path: tamis.repack(path, path.with_name("o.h5"), {"*": "deflate(1)"}),
    "to zarr": lambda path: tamis.repack(path, path.with_name("o.zarr"), {}),
    "export": lambda path: tamis.export(path, path.with_name("o.json")),
}


@pytest.mark.matrix
@pytest.mark.parametrize("job", JOBS)
def test_u108_deeply_nested_types_are_copied_or_an_error(nested: Path, job: str) -> None:
    try:
        JOBS[job](nested)
    except tamis.TamisError as error:
        assert "nested too deeply" in str(error) or "/x" in str(error)  # noqa: PT017  # some jobs copy it


def test_u108_deeply_nested_type_does_not_keep_plan_from_the_others(nested: Path) -> None:
    plan = tamis.plan(nested)
    assert [variable.path for variable in plan.datasets] == ["/y"]


def test_u108_selection_of_nothing_through_references_is_empty(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", (0, 4), "f4", chunks=(2, 2), maxshape=(None, 4))
    tamis.export(tmp_path / "a.h5", tmp_path / "r.json")
    with tamis.open(tmp_path / "r.json") as file:
        assert file["v"][...].shape == (0, 4)
        assert file["v"][:, 1].shape == (0,)
