"""D30: filters of groups outlive a repack."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import tamis
from tamis.hdf5 import create_group, group_filters, group_phase_change

FILTERS = "deflate(9)|fletcher32"
STEPS = [f"temperature at 2 m above ground, time step {i:05d}" for i in range(200)]


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_d30_repack_keeps_filters_of_groups(tmp_path: Path, libver: str) -> None:
    """D30: h5repack drops filters of groups; tamis keeps them, with all links."""
    source, target = tmp_path / "a.h5", tmp_path / "b.h5"
    values = np.linspace(0, 1, 4096, dtype="f4").reshape(64, 64)
    with h5py.File(source, "w", libver=libver) as file:
        file.create_dataset("TS", data=values, chunks=(16, 64))
        group = create_group(file, "steps", FILTERS, max_compact=4, min_dense=2)
        for name in STEPS:
            group[name] = file["TS"]
        create_group(group, "inner", "deflate(1)!", max_compact=0)["again"] = h5py.SoftLink("/TS")
    tamis.repack(source, target, {"TS": "zfp(accuracy=0.001)"})
    with h5py.File(target) as file:
        assert str(group_filters(file["steps"])) == FILTERS
        assert group_phase_change(file["steps"]) == (4, 2)
        assert str(group_filters(file["steps/inner"])) == "deflate(1)!"
        assert group_phase_change(file["steps/inner"]) == (0, 0)
        assert list(file["steps"]) == sorted(["inner", *STEPS])
        assert all(file["steps"][name] == file["TS"] for name in STEPS)
        assert np.abs(file["steps/inner/again"][...] - values).max() <= 0.001
    # Filtered in the file, not in the properties alone.
    assert STEPS[100].encode() not in target.read_bytes()
